/** A jasmine reporter that writes its results in the format of jest and vitest. */
import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";

export default class JasmineJson {
  #results = [];

  specDone({ failedExpectations, filename, fullName, status }) {
    const failureMessages = failedExpectations.map(({ message }) => message);
    this.#results.push({ name: fileURLToPath(filename), assertionResults: [{ fullName, status, failureMessages }] });
  }

  jasmineDone() {
    writeFileSync(process.env.SDK_SUITES_OUTPUT, JSON.stringify({ testResults: this.#results }));
  }
}
