/** What a configuration may say of providers that go on with a text. */
import { assert, describe, it } from "@effect/vitest";
import { readConfig } from "../../../src/gateway/config/ConfigFile.ts";

const problemsOf = (prefills: unknown): ReadonlyArray<string> => {
  const read = readConfig({
    text: JSON.stringify({ prefills }),
    shared: true,
    env: () => undefined,
    file: () => undefined,
  });
  return "problems" in read ? read.problems.map(({ message, path }) => `${path}: ${message}`) : [];
};

describe("prefills of a configuration", () => {
  it("rejects an origin that could match nothing, and names the expected form", () => {
    const problem = "$.prefills[0].origin: expected scheme and host, for example https://api.example, or *";
    for (const origin of ["api.example", "*.api.example", "", "api.example:8080", "https://"])
      assert.deepStrictEqual(problemsOf([{ origin, model: "*", form: "prefix" }]), [problem], origin);
  });

  it("accepts an origin with a path, a pattern, and any origin", () => {
    for (const origin of ["https://api.example", "http://127.0.0.1:8000/v1", "https://*.example", "*://host", "*"])
      assert.deepStrictEqual(problemsOf([{ origin, model: "*", form: "prefix" }]), [], origin);
  });
});
