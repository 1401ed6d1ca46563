/**
 * Says which tests `npm test` runs, and which `npm run test:long` runs. CI runs both, so that each test runs once.
 */
import type { ViteUserConfig } from "vitest/config";

/**
 * Tests that start many processes, kill them, drive browsers and other people's clients, or play whole matrices: each of
 * these files took 15 s or more on two cores. A file belongs here when it does.
 */
const long: ReadonlyArray<string> = [
  "test/adapters/ai-sdk/Matrix.test.ts",
  "test/adapters/effect-ai/Matrix.test.ts",
  "test/adapters/fetch/Matrix.test.ts",
  "test/agent/*.test.ts",
  "test/cli/conformance.test.ts",
  "test/cli/demo.test.ts",
  "test/cli/runs/runsFile.test.ts",
  "test/docs.test.ts",
  "test/gateway/clients/ForeignProvider.test.ts",
  "test/gateway/clients/Table.test.ts",
  "test/cli/serve.test.ts",
  "test/gateway/page/Browser.test.ts",
  "test/kill/*.test.ts",
  "test/matrix/*.test.ts",
  "test/package.test.ts",
  "test/provider/Recordings.test.ts",
  "test/readme.test.ts",
  "test/recorder/sql/SqlProcesses.test.ts",
  "test/storm/*.test.ts",
];

/**
 * The configuration of a suite.
 *
 * @param suite `quick` for what a change is tried with, `long` for the rest, `all` for files that are named one by one
 */
export const suiteOf = (suite: "quick" | "long" | "all"): ViteUserConfig => {
  const reporter = process.env.CI === undefined ? "default" : "dot";
  // Where `.ci/run` wants the numbers of a run.
  const report = process.env.TEST_REPORT;
  return {
    root: new URL("..", import.meta.url).pathname,
    test: {
      include: suite === "long" ? [...long] : ["test/**/*.test.ts"],
      exclude: suite === "quick" ? [...long] : [],
      testTimeout: 30_000,
      hookTimeout: 30_000,
      // Two cores is the smallest machine this runs on; real sockets want a core to themselves.
      maxWorkers: 2,
      reporters: report === undefined ? [reporter] : [reporter, ["json", { outputFile: report }]],
    },
  };
};
