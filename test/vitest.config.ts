import { defineConfig } from "vitest/config";

const reporter = process.env.CI === undefined ? "default" : "dot";

// Where `.ci/run` wants the numbers of a run.
const report = process.env.TEST_REPORT;

export default defineConfig({
  root: new URL("..", import.meta.url).pathname,
  test: {
    include: ["test/**/*.test.ts"],
    testTimeout: 30_000,
    hookTimeout: 30_000,
    // Two cores is the smallest machine this runs on; real sockets want a core to themselves.
    maxWorkers: 2,
    reporters: report === undefined ? [reporter] : [reporter, ["json", { outputFile: report }]],
  },
});
