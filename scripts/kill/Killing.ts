/**
 * Plays a batch: starts its process, kills it with SIGKILL at the drawn moments, and lets the last process finish.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Deferred, Effect, Layer, type Scope } from "effect";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import { SqlRunRecorder } from "../../src/recorder/sql/SqlRunRecorder.ts";
import { FaultProvider } from "../../src/testing/index.ts";
import { program } from "../programs/Program.ts";
import * as Diary from "./Diary.ts";
import { integrityOf } from "./Integrity.ts";
import * as KillJudge from "./KillJudge.ts";
import type { Batch } from "./Plan.ts";

/** The result of a batch. */
export interface Outcome {
  readonly seed: number;
  readonly runs: number;
  /** Number of processes that were killed while they worked. */
  readonly kills: number;
  /** Number of unfinished runs at a kill, summed over all kills. */
  readonly hit: number;
  readonly asked: number;
  readonly problems: ReadonlyArray<string>;
}

/** Timeout of the last process, in milliseconds. If it expires, a run has no end. */
const endMsMax = 60_000;

/** Plays a batch to its end. */
export const play = (batch: Batch): Effect.Effect<Outcome, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "kill-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
    );
    const provider = yield* FaultProvider.make({ script: batch.script });
    const db = join(folder, "runs.db");
    const argument = JSON.stringify({ url: provider.url, folder, db, plans: batch.plans });
    const problems: Array<string> = [];
    let kills = 0;
    let hit = 0;
    for (const afterMs of batch.kills) {
      const killed = yield* runProcess(argument, afterMs);
      if (!killed) break;
      kills += 1;
      const remains = yield* remainsOf(batch, folder, db);
      hit += remains.filter(({ record }) => record !== undefined && record.state !== "ended").length;
      problems.push(...remains.flatMap(KillJudge.problemsNow), ...integrity(db));
    }
    if (yield* runProcess(argument, endMsMax)) problems.push(`batch ${batch.seed}: the last process did not end`);
    const remains = yield* remainsOf(batch, folder, db);
    problems.push(...remains.flatMap(KillJudge.problemsAtEnd), ...integrity(db));
    const asked = remains.filter(({ record }) => (record?.questions.length ?? 0) > 0).length;
    return { seed: batch.seed, runs: batch.plans.length, kills, hit, asked, problems };
  });

/** Runs one process for at most `afterMs` after its first output. Returns true if it had to be killed. */
const runProcess = (argument: string, afterMs: number): Effect.Effect<boolean> =>
  Effect.gen(function* () {
    const worker = yield* Effect.promise(() => program("scripts/kill/Worker.ts"));
    const child = spawn(process.execPath, [worker, argument], { stdio: ["ignore", "pipe", "pipe"] });
    const { ended, ready, told } = watch(child);
    yield* Effect.raceFirst(Deferred.await(ready), Deferred.await(ended));
    const inTime = yield* Effect.timeoutOption(Deferred.await(ended), afterMs);
    if (inTime._tag === "Some") {
      return inTime.value === 0 ? false : yield* Effect.die(new Error(`a process failed: ${told().slice(-2_000)}`));
    }
    child.kill("SIGKILL");
    yield* Deferred.await(ended);
    return true;
  });

const watch = (child: ChildProcess) => {
  const ready = Deferred.makeUnsafe<void>();
  const ended = Deferred.makeUnsafe<number | null>();
  let errors = "";
  child.stdout?.once("data", () => Deferred.doneUnsafe(ready, Effect.void));
  child.stderr?.on("data", (bytes: Buffer) => {
    errors = `${errors}${bytes.toString()}`.slice(-8_000);
  });
  child.once("close", (code) => Deferred.doneUnsafe(ended, Effect.succeed(code)));
  return { ready, ended, told: () => errors };
};

const remainsOf = (
  batch: Batch,
  folder: string,
  db: string,
): Effect.Effect<ReadonlyArray<KillJudge.Remains>, unknown> =>
  Effect.gen(function* () {
    const recorder = yield* RunRecorder;
    return yield* Effect.forEach(batch.plans, ({ run }) =>
      Effect.map(recorder.run(run), (record) => ({
        run,
        record,
        diary: Diary.diary(folder, run),
        marks: Diary.marks(folder, run),
      })),
    );
  }).pipe(Effect.provide(Layer.fresh(SqlRunRecorder.layerFile({ file: db, retention: false }))));

const integrity = (db: string): ReadonlyArray<string> => {
  const said = integrityOf(db);
  return said === "ok" ? [] : [`${db}: ${said}`];
};
