/**
 * Says which tests `npm test` runs, and which `npm run test:long` and `npm run test:pg` run. CI runs all three, so that each test
 * runs once.
 */
import { fileURLToPath } from "node:url";
import type { ViteUserConfig } from "vitest/config";

const root = fileURLToPath(new URL("..", import.meta.url));

// Workers, and the processes that tests start, find what an earlier one has compiled: a start of the command line from its
// sources takes half the time.
process.env.NODE_COMPILE_CACHE ??= `${root}node_modules/.cache/compiled`;

/**
 * Tests that start many processes, kill them, drive browsers and other people's clients, play whole matrices, or play the many
 * seeds of a property whose first seeds the quick suite plays. A file that waits for any of these belongs here.
 */
export const long: ReadonlyArray<string> = [
  "test/adapters/ai-sdk/Matrix.test.ts",
  "test/adapters/effect-ai/Matrix.test.ts",
  "test/adapters/fetch/Matrix.test.ts",
  "test/adapters/relay/form/Campaign.test.ts",
  "test/adapters/relay/seam/RecordedStreams.test.ts",
  "test/cli/conformance.test.ts",
  "test/cli/demo.test.ts",
  "test/cli/outage.test.ts",
  "test/cli/paths.test.ts",
  "test/cli/processes.test.ts",
  "test/cli/runs/cancel.test.ts",
  "test/cli/runs/importFile.test.ts",
  "test/cli/runs/runsFile.test.ts",
  "test/cli/serve.test.ts",
  "test/cli/serve/HeapSettings.test.ts",
  "test/cli/serve/NodeFlags.test.ts",
  "test/cli/serveConfig.test.ts",
  "test/cli/serveWorkers.test.ts",
  "test/cli/serveWorkersAttach.test.ts",
  "test/cli/serveWorkersPage.test.ts",
  "test/cli/serveWorkersRepeats.test.ts",
  "test/cli/serveWorkersTls.test.ts",
  "test/client/BlackHole.test.ts",
  "test/cluster/OlderFile.test.ts",
  "test/docs.test.ts",
  "test/examples/Agent.test.ts",
  "test/examples/TenLines.test.ts",
  "test/failure/TotalityCampaign.test.ts",
  "test/gateway/attach/Process.test.ts",
  "test/gateway/attach/Recorded.test.ts",
  "test/gateway/clients/ContinuedSdks.test.ts",
  "test/gateway/clients/ForeignProvider.test.ts",
  "test/gateway/clients/Stacks.test.ts",
  "test/gateway/clients/StandIns.test.ts",
  "test/gateway/clients/StandInsHeld.test.ts",
  "test/gateway/clients/OwnEvents.test.ts",
  "test/gateway/clients/Table.test.ts",
  "test/gateway/page/Behind.test.ts",
  "test/gateway/page/Browser.test.ts",
  "test/gateway/page/PathBoard.test.ts",
  "test/gateway/page/Tabs.test.ts",
  "test/histories/Histories.test.ts",
  "test/kill/Kill.test.ts",
  "test/kill/workers/Workers.test.ts",
  "test/matrix/ContinuedText.test.ts",
  "test/matrix/Matrix.test.ts",
  "test/operation.test.ts",
  "test/outage/Outage.test.ts",
  "test/outage/TwoMachines.test.ts",
  "test/package.test.ts",
  "test/policy/SeamLaws.test.ts",
  "test/portable/*.test.ts",
  "test/provider/Recordings.test.ts",
  "test/readme.test.ts",
  "test/recorder/sql/SqlProcesses.test.ts",
  "test/recorder/sql/SqlUpgrade.test.ts",
  "test/runtime/attempt/StoppedProcess.test.ts",
  "test/runtime/run/Signals.test.ts",
  "test/seam/Campaign.test.ts",
  "test/simulation/Campaign.test.ts",
  "test/simulation/crash/Campaign.test.ts",
  "test/storm/Storm.test.ts",
];

/** Tests that need a PostgreSQL server, which the suite starts: `npm run test:pg`. */
export const postgres: ReadonlyArray<string> = [
  "test/cli/runs/PostgresRuns.test.ts",
  "test/cluster/Cluster.test.ts",
  "test/cluster/Rolling.test.ts",
  "test/cluster/Versions.test.ts",
  "test/examples/PostgresCluster.test.ts",
  "test/gateway/postgres/*.test.ts",
  "test/histories/PostgresHistories.test.ts",
  "test/kill/gateways/PostgresGateways.test.ts",
  "test/kill/nodes/PostgresNodes.test.ts",
  "test/recorder/postgres/*.test.ts",
];

/**
 * Time limits of a test on an idle machine, in milliseconds (`TimeLimit.ts` scales them). No test has one of its own. Tests that start many
 * processes took 20 s on one machine and 65 s on another of the same size.
 */
const limitsMs = { quick: 120_000, long: 600_000, postgres: 600_000, all: 600_000 } as const;

/** Every test file. */
const all = "test/**/*.test.ts";

/**
 * The configuration of a suite.
 *
 * @param suite `quick` for what a change is tried with, `postgres` for what needs its server, `long` for the rest, `all` for
 *   files that are named one by one
 */
export const suiteOf = (suite: "quick" | "long" | "postgres" | "all"): ViteUserConfig => {
  const reporter = process.env.CI === undefined ? "default" : "dot";
  // Where `.ci/run` wants the numbers of a run.
  const report = process.env.TEST_REPORT;
  return {
    root,
    test: {
      include: suite === "long" ? [...long] : suite === "postgres" ? [...postgres] : [all],
      exclude: suite === "quick" ? [...long, ...postgres] : suite === "all" ? [...postgres] : [],
      setupFiles: ["test/NodeUndici.ts", "test/TimeLimit.ts"],
      env: { TEST_LIMIT_MS: String(limitsMs[suite]) },
      ...(suite === "postgres" ? { globalSetup: ["test/recorder/postgres/Server.ts"] } : {}),
      ...(suite === "long" ? { globalSetup: ["test/package/Packed.ts"] } : {}),
      // A worker of the quick suite plays many files: to load effect anew for each took as long as the tests themselves.
      isolate: suite !== "quick",
      // Two cores is the smallest machine this runs on; real sockets want a core to themselves. With three files of the long suite at a time
      // a response of the fault matrix that waits came later than its clock.
      maxWorkers: 2,
      // Tests that mostly wait, for example for a retry, stand in `describe.concurrent`.
      maxConcurrency: 10,
      reporters: report === undefined ? [reporter] : [reporter, ["json", { outputFile: report }]],
    },
  };
};
