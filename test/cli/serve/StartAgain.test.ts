/**
 * What `serve` is started with is what V8 reads only at its start: a process that has not been started so takes its own place.
 */
import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { availableParallelism, tmpdir } from "node:os";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { poolFlags, threadsOf } from "../../../src/cli/serve/HeapSettings.ts";
import { bareEnv, bin } from "../CommandLine.ts";
import { folder } from "../ServeProcess.ts";

/** Has each Node that starts say on stderr, before all else, who it is. */
const tells = `data:text/javascript,${encodeURIComponent(
  "console.error('node ' + JSON.stringify({ pid: process.pid, flags: process.execArgv, args: process.argv.slice(2) }))",
)}`;

interface Told {
  readonly pid: number;
  readonly flags: ReadonlyArray<string>;
  readonly args: ReadonlyArray<string>;
}

const node = ["--no-warnings", "--import", tells];
const flag = "--no-memory-reducer";

/** What is said of V8's threads on this machine, to each of so many processes. */
const pool = (processes: number): ReadonlyArray<string> => {
  const threads = threadsOf(availableParallelism(), processes);
  return threads === 4 ? [] : [`--v8-pool-size=${threads}`];
};

const env: NodeJS.ProcessEnv = { ...bareEnv(tmpdir()), STREAM_RECOVERY_PORT: "0", STREAM_RECOVERY_DB: "memory" };

interface Said {
  readonly stdout: string;
  readonly told: ReadonlyArray<Told>;
}

/** Runs a process to its end, or until it listens and is told to end. */
const said = (child: ChildProcess): Effect.Effect<Said & { readonly code: number | null }> =>
  Effect.promise(async () => {
    const output = { stdout: "", stderr: "" };
    child.stdout?.on("data", (bytes: Buffer) => {
      output.stdout += String(bytes);
      if (output.stdout.includes("listening on")) child.kill("SIGTERM");
    });
    child.stderr?.on("data", (bytes: Buffer) => {
      output.stderr += String(bytes);
    });
    const [code] = (await once(child, "close")) as [number | null];
    const told = [...output.stderr.matchAll(/^node (.+)$/gm)].map(([, line = ""]) => JSON.parse(line) as Told);
    return { code, stdout: output.stdout, told };
  });

const started = (args: ReadonlyArray<string>, flags: ReadonlyArray<string> = [], more: NodeJS.ProcessEnv = {}) =>
  said(
    spawn(process.execPath, [...node, ...flags, bin, ...args], {
      env: { ...env, ...more },
      stdio: ["pipe", "pipe", "pipe"],
    }),
  );

describe("the process of serve", () => {
  it.live("takes its own place with what V8 reads at its start, and is the same one to all others", () =>
    Effect.gen(function* () {
      const { code, stdout, told } = yield* started(["serve", "--check"]);
      assert.strictEqual(code, 0);
      assert.include(stdout, "127.0.0.1");
      const pid = told[0]?.pid ?? 0;
      assert.deepStrictEqual(told, [
        { pid, flags: node, args: ["serve", "--check"] },
        { pid, flags: [...node, flag, ...pool(1)], args: ["serve", "--check"] },
      ]);
    }),
  );

  it.live("serves, and ends as it is told", () =>
    Effect.gen(function* () {
      const { code, stdout, told } = yield* started(["serve"]);
      assert.match(stdout, /^listening on http:\/\/127\.0\.0\.1:\d+\n/);
      assert.lengthOf(told, 2);
      assert.strictEqual(code, 0);
    }),
  );

  it.live("stays where the command line of Node says something of it", () =>
    Effect.gen(function* () {
      const said = ["--memory_reducer", "--v8-pool-size=5"];
      const { told } = yield* started(["serve", "--check"], said);
      assert.deepStrictEqual(
        told.map(({ flags }) => flags),
        [[...node, ...said]],
      );
      const inEnvironment = yield* started(["serve", "--check"], ["--memory-reducer"], {
        NODE_OPTIONS: "--v8-pool-size=5",
      });
      assert.lengthOf(inEnvironment.told, 1);
    }),
  );

  it.live("stays where the environment says so, and where its program is not to be found again", () =>
    Effect.gen(function* () {
      const { code, told } = yield* started(["serve", "--check"], [], { STREAM_RECOVERY_START_AGAIN: "off" });
      assert.strictEqual(code, 0);
      assert.lengthOf(told, 1);
      // As of a Node that was replaced on the disk meanwhile.
      const gone = `data:text/javascript,${encodeURIComponent("process.execPath += ' (deleted)'")}`;
      const replaced = yield* started(["serve", "--check"], ["--import", gone]);
      assert.strictEqual(replaced.code, 0);
      assert.lengthOf(replaced.told, 1);
    }),
  );

  it.live("stays where it has a channel to who started it, which would be lost", () =>
    Effect.gen(function* () {
      const child = fork(bin, ["serve"], { env, execArgv: node, silent: true });
      const { code, told } = yield* said(child);
      assert.lengthOf(told, 1);
      assert.strictEqual(code, 0);
    }),
  );

  it.live("starts each of several workers so, although it could not take its own place", () =>
    Effect.gen(function* () {
      const several = ["serve", "--workers", "2", "--db", join(yield* folder, "runs.db")];
      const forked = yield* said(fork(bin, several, { env, execArgv: node, silent: true }));
      assert.deepStrictEqual(
        forked.told.map(({ flags }) => flags.includes(flag)),
        [false, true, true],
      );
      const threads = forked.told.slice(1).map(({ flags }) => flags.filter((it) => it.startsWith("--v8-pool-size")));
      assert.deepStrictEqual(threads, [pool(2), pool(2)]);
    }).pipe(Effect.scoped),
  );

  it("has as many threads for V8 as there are cores beside its loop's, at least one and at most Node's four", () => {
    const alone = [1, 2, 3, 4, 5, 64].map((cores) => threadsOf(cores, 1));
    assert.deepStrictEqual(alone, [1, 1, 2, 3, 4, 4]);
    assert.deepStrictEqual([threadsOf(4, 4), threadsOf(8, 4), threadsOf(32, 4)], [1, 1, 4]);
  });

  it("gives V8 the share of each process in the cores, and no other number than a person has said", () => {
    const flags = (processes: number, cores: number, execArgv: ReadonlyArray<string>, options = "") =>
      poolFlags({ cores, execArgv, options }, processes).join();
    const [one, two, three] = [1, 2, 3].map((threads) => `--v8-pool-size=${threads}`);
    assert.deepStrictEqual([flags(1, 1, []), flags(1, 2, []), flags(1, 4, []), flags(1, 5, [])], [one, one, three, ""]);
    assert.deepStrictEqual([flags(2, 2, []), flags(2, 6, []), flags(2, 16, [])], [one, two, ""]);
    // Started again as if it were alone: that is no person's word.
    assert.deepStrictEqual([flags(4, 4, ["--v8-pool-size=3"]), flags(2, 2, ["--v8-pool-size=1"])], [one, ""]);
    for (const processes of [1, 4]) {
      for (const said of ["--v8-pool-size=2", "--v8_pool_size=4", "--v8-pool-size=0"])
        assert.strictEqual(flags(processes, 4, [said]), "");
      assert.strictEqual(flags(processes, 4, ["--v8-pool-size", "2"]), "");
      for (const options of ["--v8-pool-size=3", "--no-warnings --v8-pool-size 3", '"--v8_pool_size=3"'])
        assert.strictEqual(flags(processes, 4, [], options), "");
    }
  });

  it.live("is no other command's", () =>
    Effect.gen(function* () {
      const { code, told } = yield* started(["policy", "--json"]);
      assert.strictEqual(code, 0);
      assert.lengthOf(told, 1);
    }),
  );
});
