/**
 * Measures the cost of the SQL recorder on a temporary file.
 */
import { closeSync, fsyncSync, mkdtempSync, openSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { DatabaseSync } from "node:sqlite";
import { Effect, Layer, ManagedRuntime, Metric, Stream } from "effect";
import { fromAsyncIterable, RunRecorder, StreamProcessor, UserDecisions } from "../../src/index.ts";
import type { Entry } from "../../src/recorder/RunRecord.ts";
import * as SqlFailure from "../../src/recorder/sql/SqlFailure.ts";
import { SqlRunRecorder } from "../../src/recorder/sql/SqlRunRecorder.ts";
import * as E from "../../test/recorder/Entries.ts";
import { events } from "./Events.ts";
import { quantile } from "./Median.ts";
import { makeSourceError, options, withoutLog } from "./Runs.ts";

/** A measurement and its size. */
export type SqliteSize =
  | { readonly what: "happy"; readonly store: "memory" | Synchronous; readonly runs: number }
  /** `at` is the number of concurrent runs. */
  | { readonly what: "beside"; readonly store: "memory" | Synchronous; readonly runs: number; readonly at: number }
  | { readonly what: "incident"; readonly store: Synchronous; readonly commits: number }
  | { readonly what: "orphans"; readonly runs: number }
  | { readonly what: "stored"; readonly runs: number };

/** Results by name. Each measurement has different names. */
export type Sqlite = Readonly<Record<string, number>>;

type Synchronous = "full" | "normal";

/** Number of deltas of a happy run. */
const deltas = 100;

/** Number of deltas of a short run. */
const shortDeltas = 18;

/** Maximum ended runs that are deleted in one call. */
const prunedRuns = 10_000;

/** Measures on a file in a temporary folder. */
export const measure = async (size: SqliteSize): Promise<Sqlite> => {
  const folder = mkdtempSync(join(tmpdir(), "bench-sqlite-"));
  try {
    return await measureOne(size, join(folder, "runs.db"));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};

const measureOne = (size: SqliteSize, file: string): Promise<Sqlite> => {
  switch (size.what) {
    case "happy":
      return measureHappy(size.store, size.runs, file);
    case "beside":
      return measureConcurrent(size.store, size.runs, size.at, file);
    case "incident":
      return incident(size.store, size.commits, file);
    case "orphans":
      return orphans(size.runs, file);
    case "stored":
      return stored(size.runs, file);
  }
};

const recorderOf = (store: "memory" | Synchronous, file: string) =>
  store === "memory"
    ? RunRecorder.layerMemory({ runsMax: 100_000 })
    : SqlRunRecorder.layerFile({ file, synchronous: store, retention: false });

const runtimeOf = (store: "memory" | Synchronous, file: string) =>
  ManagedRuntime.make(
    StreamProcessor.layer.pipe(
      Layer.provide(Layer.merge(Layer.orDie(recorderOf(store, file)), UserDecisions.layerHeadless())),
    ),
  );

const run = (length: number) => {
  const source = () => fromAsyncIterable(() => events(length, "saturated"), makeSourceError);
  return Effect.flatMap(StreamProcessor, (processor) => Stream.runDrain(processor.run(options(source))));
};

/** Number of measured rounds, and of rounds that warm up before them, because the compilers run concurrently at first. */
const rounds = 7;

/** Measures the CPU time of concurrent short runs. Writes within one turn share a commit. */
const measureConcurrent = async (
  store: "memory" | Synchronous,
  runs: number,
  concurrency: number,
  file: string,
): Promise<Sqlite> => {
  const runtime = runtimeOf(store, file);
  const all = withoutLog(Effect.replicateEffect(run(shortDeltas), runs, { concurrency, discard: true }));
  for (let round = 0; round < rounds; round += 1) await runtime.runPromise(all);
  const before = await runtime.runPromise(commits);
  const micros: Array<number> = [];
  for (let round = 0; round < rounds; round += 1) {
    const from = process.cpuUsage();
    await runtime.runPromise(all);
    const { system, user } = process.cpuUsage(from);
    micros.push((user + system) / runs);
  }
  const each = ((await runtime.runPromise(commits)) - before) / rounds / runs;
  await runtime.dispose();
  return { cpu_us: quantile(micros, 0.5), commits: each };
};

/** Measures the wall time of consecutive runs. A commit waits for the disk. */
const measureHappy = async (store: "memory" | Synchronous, runs: number, file: string): Promise<Sqlite> => {
  const runtime = runtimeOf(store, file);
  const one = run(deltas);
  const many = (count: number) => runtime.runPromise(withoutLog(Effect.repeat(one, { times: count - 1 })));
  await many(Math.ceil(runs / 4));
  const [commitsBefore, from] = [await runtime.runPromise(commits), performance.now()];
  await many(runs);
  const us = ((performance.now() - from) * 1_000) / runs;
  const each = ((await runtime.runPromise(commits)) - commitsBefore) / runs;
  await runtime.dispose();
  return { us, commits: each };
};

const commits = Effect.map(Metric.value(SqlFailure.commits), ({ count }) => Number(count));

const withRecorder = <A>(
  file: string,
  store: Synchronous,
  body: (recorder: RunRecorder["Service"]) => Effect.Effect<A, unknown>,
): Promise<A> => Effect.runPromise(Effect.provide(Effect.flatMap(RunRecorder, body), recorderOf(store, file)));

/** Measures the write between a failure and the reaction to it: facts, evidence and the incident. */
const incident = (store: Synchronous, count: number, file: string): Promise<Sqlite> =>
  withRecorder(file, store, (recorder) =>
    Effect.gen(function* () {
      const micros: Array<number> = [];
      for (let run = 0; run < count; run += 1) {
        const runId = `r${run}`;
        yield* recorder.write(runId, [E.begun(runId), E.attempt(1)]);
        const from = performance.now();
        yield* recorder.write(runId, brokenEntries(runId));
        micros.push((performance.now() - from) * 1_000);
        yield* recorder.write(runId, [E.ended()]);
      }
      const warm = micros.slice(Math.ceil(count / 10));
      return { p50_us: quantile(warm, 0.5), p99_us: quantile(warm, 0.99) };
    }),
  );

const brokenEntries = (runId: string): ReadonlyArray<Entry> => [
  E.raised(1, { progress: "output", shown: "text", text_through: 1 }),
  E.noted(20, "failure", "transport"),
  E.opened(runId, 1),
];

/** Finds, claims and decides the runs of a dead process, each with a question. */
const orphans = async (runs: number, file: string): Promise<Sqlite> => {
  const ids = Array.from({ length: runs }, (_, n) => `r${n}`);
  await withRecorder(file, "full", (recorder) =>
    Effect.forEach(ids, (id) => recorder.write(id, [E.begun(id), E.attempt(1)]), {
      concurrency: "unbounded",
      discard: true,
    }),
  );
  return withRecorder(file, "full", (recorder) =>
    Effect.gen(function* () {
      const from = performance.now();
      let decided = 0;
      let found = yield* recorder.orphans();
      while (found.length > 0) {
        yield* Effect.forEach(found, ({ run_id }) => recorder.claim(run_id), { discard: true });
        yield* Effect.forEach(
          found,
          ({ run_id }) =>
            recorder.write(run_id, [
              ...brokenEntries(run_id),
              E.asked(run_id, 1),
              { _tag: "RunParked", reason: "question" },
            ]),
          { concurrency: "unbounded", discard: true },
        );
        decided += found.length;
        found = yield* recorder.orphans();
      }
      const ms = performance.now() - from;
      return { ms, decided, us_each: (ms * 1_000) / decided };
    }),
  );
};

/** Lists, shows and deletes among many stored runs. */
const stored = async (runs: number, file: string): Promise<Sqlite> => {
  await withRecorder(file, "normal", (recorder) => recorder.write("template", E.life("template")));
  const from = performance.now();
  fill(file, runs);
  const fill_ms = performance.now() - from;
  return withRecorder(file, "full", (recorder) =>
    Effect.gen(function* () {
      const middle = `template-${Math.floor(runs / 2)}`;
      const list_ms = yield* medianMs(recorder.runs());
      const page_ms = yield* medianMs(recorder.runs({ before: middle, state: "ended" }));
      const live_ms = yield* medianMs(recorder.runs({ state: "live" }));
      const orphans_ms = yield* medianMs(recorder.orphans());
      const show_ms = yield* medianMs(recorder.run(middle));
      const blocked = monitorEventLoopDelay({ resolution: 1 });
      blocked.enable();
      const before = performance.now();
      const pruned = yield* recorder.prune({ keep: runs - Math.min(prunedRuns, runs / 2) });
      const prune_ms = performance.now() - before;
      blocked.disable();
      const block_ms = blocked.max / 1e6;
      return { fill_ms, list_ms, page_ms, live_ms, orphans_ms, show_ms, pruned, prune_ms, block_ms };
    }),
  );
};

/** The median duration of several tries, in milliseconds. */
const medianMs = <A, X>(effect: Effect.Effect<A, X>): Effect.Effect<number, X> =>
  Effect.map(
    Effect.forEach(Array.from({ length: 9 }), () =>
      Effect.suspend(() => {
        const from = performance.now();
        return Effect.map(effect, () => performance.now() - from);
      }),
    ),
    (all) => quantile(all, 0.5),
  );

/** Copies the row of one run and its incidents many times. A recorder would take far too long. */
const fill = (file: string, runs: number): void => {
  const database = new DatabaseSync(file);
  database.exec(`PRAGMA synchronous = off; PRAGMA cache_size = -200000; PRAGMA foreign_keys = off; BEGIN;
    WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${runs})
    INSERT INTO stream_recovery_runs (run_id, version, owner, state, parked, provider, model, started_at, ended_at, broken, record)
      SELECT 'template-' || i, version, owner, state, parked, provider, model, started_at, ended_at + i, broken, record
      FROM n, (SELECT * FROM stream_recovery_runs WHERE run_id = 'template');
    INSERT INTO stream_recovery_incidents (run_id, id, n, incident)
      SELECT r.run_id, i.id, i.n, i.incident FROM stream_recovery_runs r, (SELECT * FROM stream_recovery_incidents WHERE run_id = 'template') i
      WHERE r.run_id <> 'template' AND r.seq % 10 = 0;
    COMMIT; PRAGMA synchronous = full; PRAGMA wal_checkpoint(TRUNCATE)`);
  // Otherwise the first measured commit would write the system's dirty pages too.
  const fd = openSync(file, "r+");
  fsyncSync(fd);
  closeSync(fd);
  database.close();
};
