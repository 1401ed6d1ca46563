/**
 * Assigns every test to one suite: `npm test`, `npm run test:long` or `npm run test:pg`. CI runs all three, so each test
 * runs once.
 */
import { accessSync, constants, readFileSync, statfsSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { TestProjectInlineConfiguration, ViteUserConfig } from "vitest/config";

const root = fileURLToPath(new URL("..", import.meta.url));

// Workers and child processes reuse the code that earlier ones compiled, which halves the start of the command line from its
// sources.
process.env.NODE_COMPILE_CACHE ??= `${root}node_modules/.cache/compiled`;

/** Minimum free memory for test files, in bytes. */
const roomMin = 2 * 1024 ** 3;

/** Returns true if a folder is in memory, has room and allows programs to be executed from it. */
const isFit = (folder: string): boolean => {
  try {
    accessSync(folder, constants.W_OK);
    const { bavail, bsize } = statfsSync(folder);
    const options = new RegExp(`^tmpfs ${folder} tmpfs (\\S+) `, "m").exec(readFileSync("/proc/mounts", "utf8"))?.[1];
    return options !== undefined && !options.split(",").includes("noexec") && bavail * bsize >= roomMin;
  } catch {
    return false; // not Linux, or not accessible to this user
  }
};

// Every commit of a store waits for the disk, and the tests of stores spent most of their time on that. A folder in memory avoids it.
if (process.env.TMPDIR === undefined && isFit("/dev/shm")) process.env.TMPDIR = "/dev/shm";

/** Tests of the long suite whose clients or clocks have real timeouts, which a busy machine would exceed. */
export const timed: ReadonlyArray<string> = [
  "test/adapters/ai-sdk/Matrix.test.ts",
  "test/adapters/effect-ai/Matrix.test.ts",
  "test/adapters/fetch/Matrix.test.ts",
  "test/gateway/clients/Table.test.ts",
  "test/matrix/ContinuedText.test.ts",
  "test/matrix/Matrix.test.ts",
  "test/outage/Outage.test.ts",
  "test/runtime/attempt/StoppedProcess.test.ts",
  "test/storm/Storm.test.ts",
];

/**
 * Tests that start many processes, kill them, drive browsers and other people's clients, wait in real time, play whole matrices, or play the
 * many seeds of a property of which the quick suite plays only the first.
 */
export const long: ReadonlyArray<string> = [
  ...timed,
  "test/adapters/fetch/ClientAborts.test.ts",
  "test/adapters/relay/Collected.test.ts",
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
  "test/cli/serve/StoppedBeforeRecord.test.ts",
  "test/cli/serveAdvertise.test.ts",
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
  "test/examples/Examples.test.ts",
  "test/examples/TenLines.test.ts",
  "test/failure/TotalityCampaign.test.ts",
  "test/failure/provoked/Provoked.test.ts",
  "test/field/Words.test.ts",
  "test/gateway/attach/Fetch.test.ts",
  "test/gateway/attach/Process.test.ts",
  "test/gateway/attach/Recorded.test.ts",
  "test/gateway/clients/ContinuedSdks.test.ts",
  "test/gateway/clients/ForeignProvider.test.ts",
  "test/gateway/clients/GivenUp.test.ts",
  "test/gateway/clients/OwnEvents.test.ts",
  "test/gateway/clients/Stacks.test.ts",
  "test/gateway/clients/StandIns.test.ts",
  "test/gateway/clients/StandInsHeld.test.ts",
  "test/gateway/page/Behind.test.ts",
  "test/gateway/page/Browser.test.ts",
  "test/gateway/page/PathBoard.test.ts",
  "test/gateway/page/Tabs.test.ts",
  "test/gateway/proxy/BrokenEnd.test.ts",
  "test/gateway/proxy/ContinueText.test.ts",
  "test/gateway/proxy/Outage.test.ts",
  "test/gateway/proxy/Probes.test.ts",
  "test/gateway/proxy/TakenOver.test.ts",
  "test/gateway/proxy/Waiting.test.ts",
  "test/gateway/routes/Moving.test.ts",
  "test/histories/Histories.test.ts",
  "test/kill/Kill.test.ts",
  "test/kill/workers/Workers.test.ts",
  "test/model.test.ts",
  "test/operation.test.ts",
  "test/outage/TwoMachines.test.ts",
  "test/package.test.ts",
  "test/policy/LawsCampaign.test.ts",
  "test/policy/SeamLaws.test.ts",
  "test/policy/Totality.test.ts",
  "test/portable/*.test.ts",
  "test/provider/Recordings.test.ts",
  "test/provider/seam/MessageSplice.test.ts",
  "test/provider/seam/ResponseSplice.test.ts",
  "test/provider/seam/Splices.test.ts",
  "test/readme.test.ts",
  "test/recorder/export/Canaries.test.ts",
  "test/recorder/export/Runs.test.ts",
  "test/recorder/sql/SqlProcesses.test.ts",
  "test/recorder/sql/SqlUpgrade.test.ts",
  "test/runtime/run/Signals.test.ts",
  "test/seam/Campaign.test.ts",
  "test/seam/Simulation.test.ts",
  "test/simulation/Campaign.test.ts",
  "test/simulation/crash/Campaign.test.ts",
  "test/simulation/crash/Crash.test.ts",
  "test/simulation/gateway/Campaign.test.ts",
  "test/stages/output/LeaveAnywhere.test.ts",
  "test/stages/output/LeaveCampaign.test.ts",
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
 * Time limits of a test on an idle machine, in milliseconds; `TimeLimit.ts` scales them, and no test sets its own. Tests that start
 * many processes took 20 s on one machine and 65 s on another of the same size.
 */
const limitsMs = { quick: 120_000, long: 600_000, postgres: 600_000, all: 600_000 } as const;

const all = "test/**/*.test.ts";

/** A part of the long suite that runs by itself. The first part is the timed one, for which a third file is too much load. */
const part = (name: "timed" | "long"): TestProjectInlineConfiguration => ({
  extends: true,
  test: {
    name,
    include: name === "timed" ? [...timed] : long.filter((file) => !timed.includes(file)),
    maxWorkers: name === "timed" ? 2 : 3,
    sequence: { groupOrder: name === "timed" ? 0 : 1 },
  },
});

/**
 * Returns the Vitest configuration of a suite.
 *
 * @param suite `quick` for the checks of a change, `postgres` for tests that need the server, `long` for the rest, `all` for
 *   files named on the command line
 */
export const suiteOf = (suite: "quick" | "long" | "postgres" | "all"): ViteUserConfig => {
  const reporter = process.env.CI === undefined ? "default" : "dot";
  // Set by `.ci/run`, which reads the report.
  const report = process.env.TEST_REPORT;
  return {
    root,
    test: {
      // The parts of the long suite name their own files; Vitest would add these.
      ...(suite === "long" ? {} : { include: suite === "postgres" ? [...postgres] : [all] }),
      exclude: suite === "quick" ? [...long, ...postgres] : suite === "all" ? [...postgres] : [],
      setupFiles: ["test/NodeUndici.ts", "test/TimeLimit.ts"],
      env: { TEST_LIMIT_MS: String(limitsMs[suite]) },
      ...(suite === "postgres" ? { globalSetup: ["test/recorder/postgres/Server.ts"] } : {}),
      ...(suite === "long"
        ? { globalSetup: ["test/package/Packed.ts", "scripts/langchain/Setup.ts", "scripts/sdks/Setup.ts"] }
        : {}),
      // A worker of the quick suite runs many files: loading effect again for each took as long as the tests themselves.
      isolate: suite !== "quick",
      // Node runs the sources itself. Vite's module runner reads each import through a getter at each use, which slows hot code down.
      experimental: { viteModuleRunner: false, nodeLoader: false },
      // Two cores is the smallest supported machine. A third file computes while others wait.
      maxWorkers: 3,
      ...(suite === "long" ? { projects: [part("timed"), part("long")] } : {}),
      // Tests that mostly wait, for example for a retry, are in `describe.concurrent`.
      maxConcurrency: 10,
      reporters: report === undefined ? [reporter] : [reporter, ["json", { outputFile: report }]],
    },
  };
};
