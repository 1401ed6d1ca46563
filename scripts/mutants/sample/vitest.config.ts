/**
 * Runs quick tests against a mutation, in the order of the files on the command line.
 */

import { defineConfig } from "vitest/config";
import { BaseSequencer, type TestSpecification } from "vitest/node";
import { suiteOf } from "../../../test/Suites.ts";

/** Time after which a waiting test counts as hung by a mutation, in milliseconds. Healthy quick tests need less. */
const hangMs = 30_000;

/** Sorts files in the order of the command line. With `--bail 1` the first failure ends the run, so the order determines its cost. */
class AsNamed extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const named = process.argv;
    const rank = ({ moduleId }: TestSpecification) => named.findIndex((path) => moduleId.endsWith(`/${path}`));
    return files.toSorted((a, b) => rank(a) - rank(b));
  }
}

const quick = suiteOf("quick");

export default defineConfig({
  ...quick,
  test: { ...quick.test, env: { TEST_LIMIT_MS: String(hangMs) }, sequence: { sequencer: AsNamed } },
});
