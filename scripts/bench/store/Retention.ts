/**
 * Measures the deletion of an hour's worth of old runs while new runs are recorded: its speed, its addition to the server's log, and the
 * latency of the concurrent writes.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Effect, Layer, ManagedRuntime } from "effect";
import { RunRecorder } from "../../../src/index.ts";
import { PostgresRunRecorder } from "../../../src/recorder/postgres/PostgresRunRecorder.ts";
import { retainingOf } from "../../../src/recorder/retention/Retention.ts";
import * as E from "../../../test/recorder/Entries.ts";
import { quantile } from "../Median.ts";
import { database, type Server, using } from "./Server.ts";

/** The size of the measurement. */
export interface RetentionSize {
  /** Number of old, ended runs in each round. */
  readonly runs: number;
  /** Number of runs that start per second meanwhile, with three writes each. */
  readonly perSecond: number;
  /** Duration of the same writes without a deletion, in milliseconds. */
  readonly aloneMs: number;
  readonly rounds: number;
}

/** Latencies of writes at a fixed rate, in milliseconds. */
interface Paced {
  readonly writes: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
}

/** Results of one round. Bytes are per deleted run. */
export interface Retention {
  readonly runs: number;
  readonly forgottenMs: number;
  /** The server's log without that of the concurrent writes. It starts right after a checkpoint, so every page is written in full once. */
  readonly walBytes: number;
  readonly vacuumWalBytes: number;
  readonly vacuumMs: number;
  readonly alone: Paced;
  readonly beside: Paced;
}

/** Age of the old runs, and the retention, in milliseconds. */
const [agoMs, keptMs] = [48 * 3_600_000, 24 * 3_600_000];

/** Number of old runs that are recorded concurrently. */
const filling = 200;

/** Pause between the writes of a new run, in milliseconds. */
const stepMs = 40;

type Recorder = RunRecorder["Service"];
type Run = <A, Failure>(effect: Effect.Effect<A, Failure>) => Promise<A>;

let made = 0;

/** The three writes of a happy run. */
const writeHappyRun = (
  recorder: Recorder,
  endedAt: () => number,
  between: Effect.Effect<void>,
  took: (ms: number) => void,
) =>
  Effect.suspend(() => {
    made += 1;
    const id = `kept-${made}`;
    const timed = (write: Effect.Effect<void, unknown>) =>
      Effect.suspend(() => {
        const from = performance.now();
        return Effect.andThen(
          write,
          Effect.sync(() => took(performance.now() - from)),
        );
      });
    return timed(recorder.write(id, [E.begun(id, endedAt()), E.attempt(1)])).pipe(
      Effect.andThen(between),
      Effect.andThen(timed(recorder.write(id, [E.raised(1, { progress: "output", shown: "text" })]))),
      Effect.andThen(between),
      Effect.andThen(timed(Effect.suspend(() => recorder.write(id, [E.ended({ at: endedAt() })])))),
    );
  });

/** Starts runs at a fixed rate until a promise settles. */
const startPaced = async (recorder: Recorder, run: Run, perSecond: number, until: Promise<unknown>): Promise<Paced> => {
  const took: Array<number> = [];
  const runs: Array<Promise<void>> = [];
  let isOver = false;
  const over = until.finally(() => {
    isOver = true;
  });
  const one = writeHappyRun(recorder, Date.now, Effect.sleep(stepMs), (ms) => took.push(ms));
  const from = performance.now();
  while (!isOver) {
    runs.push(run(one));
    await pause(Math.max(0, from + (runs.length * 1_000) / perSecond - performance.now()));
  }
  await Promise.all([...runs, over]);
  return { writes: took.length, p50Ms: quantile(took, 0.5), p99Ms: quantile(took, 0.99) };
};

const round = async (server: Server, recorder: Recorder, run: Run, size: RetentionSize): Promise<Retention> => {
  const old = writeHappyRun(
    recorder,
    () => Date.now() - agoMs,
    Effect.void,
    () => undefined,
  );
  await run(Effect.replicateEffect(old, size.runs, { concurrency: filling, discard: true }));
  await server.rows("VACUUM ANALYZE");
  await server.rows("CHECKPOINT");
  const walFrom = await server.walBytes();
  const alone = await startPaced(recorder, run, size.perSecond, pause(size.aloneMs));
  const ofWrites = ((await server.walBytes()) - walFrom) / alone.writes;
  const retaining = retainingOf(recorder);
  if (retaining === undefined) throw new Error("the store has no retention");
  await server.rows("CHECKPOINT");
  const [wal, began] = [await server.walBytes(), performance.now()];
  let forgottenMs = 0;
  const looks = run(retaining.deleteOld({ ageMs: keptMs, runs: Number.MAX_SAFE_INTEGER })).then((runs) => {
    forgottenMs = performance.now() - began;
    if (runs !== size.runs) throw new Error(`expected ${size.runs} deleted runs, got ${runs}`);
  });
  const beside = await startPaced(recorder, run, size.perSecond, looks);
  const walAfter = await server.walBytes();
  const vacuumFrom = performance.now();
  await server.rows("VACUUM");
  return {
    runs: size.runs,
    forgottenMs,
    walBytes: (walAfter - wal - ofWrites * beside.writes) / size.runs,
    vacuumWalBytes: ((await server.walBytes()) - walAfter) / size.runs,
    vacuumMs: performance.now() - vacuumFrom,
    alone,
    beside,
  };
};

/** Measures on a temporary server. */
export const retention = (size: RetentionSize): Promise<ReadonlyArray<Retention>> =>
  using(async (server) => {
    const layer = PostgresRunRecorder.layer({ address: server.address(database), retention: false });
    const runtime = ManagedRuntime.make(Layer.orDie(layer));
    const recorder = await runtime.runPromise(RunRecorder);
    const found: Array<Retention> = [];
    for (let n = 0; n < size.rounds; n += 1) found.push(await round(server, recorder, runtime.runPromise, size));
    await runtime.dispose();
    return found;
  });
