/**
 * Measures the cost of happy runs on an SQLite file and on PostgreSQL, alternating in one process: CPU of this process and of the server,
 * bytes written, and statements.
 */
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Effect, Layer, ManagedRuntime, Metric, Stream } from "effect";
import { fromAsyncIterable, RunRecorder, StreamProcessor, UserDecisions } from "../../../src/index.ts";
import { PostgresRunRecorder } from "../../../src/recorder/postgres/PostgresRunRecorder.ts";
import type { RecorderError } from "../../../src/recorder/RecorderError.ts";
import * as SqlFailure from "../../../src/recorder/sql/SqlFailure.ts";
import { SqlRunRecorder } from "../../../src/recorder/sql/SqlRunRecorder.ts";
import * as E from "../../../test/recorder/Entries.ts";
import { events } from "../Events.ts";
import { median } from "../Median.ts";
import { makeSourceError, options, withoutLog } from "../Runs.ts";
import { database, type Server, using } from "./Server.ts";
import { commonest, kindsOf } from "./Statements.ts";

/** The size of the measurement. */
export interface WritesSize {
  /** Number of runs of one round, and how many of them are concurrent. */
  readonly runs: number;
  readonly concurrent: number;
  /** Number of measured rounds. One more round warms up. */
  readonly rounds: number;
}

/** Medians over the rounds. All values are per run. */
export interface Writes {
  /** CPU of this process for the three writes alone, and for a run of 20 events, in microseconds. */
  readonly sqlite_us: number;
  readonly postgres_us: number;
  readonly sqlite_run_us: number;
  readonly postgres_run_us: number;
  readonly memory_run_us: number;
  /** Medians of the rounds' ratios. */
  readonly ratio: number;
  readonly run_ratio: number;
  /** CPU of the server, in microseconds. */
  readonly server_us: number;
  /** Bytes that SQLite wrote, and bytes of PostgreSQL's log. */
  readonly sqlite_bytes: number;
  readonly wal_bytes: number;
  /** The same for consecutive runs, so that no two writes share a transaction. */
  readonly alone_us: number;
  readonly alone_server_us: number;
  readonly alone_wal_bytes: number;
  /** The log of a run that breaks once and is retried. */
  readonly broken_wal_bytes: number;
  readonly rows_bytes: number;
  readonly transactions: number;
  readonly undone: number;
  readonly statements: number;
  readonly run_statements: number;
  readonly run_transactions: number;
  readonly notifies: number;
  /** The most frequent statements, each with its frequency per run. */
  readonly commonest: ReadonlyArray<string>;
}

/** Number of events of a run, including its start and its terminal marker. */
const eventsOfRun = 20;

/** Number of consecutive runs. */
const aloneRuns = 400;

/** Number of statements that are listed. */
const commonestMax = 8;

type Services = RunRecorder | StreamProcessor;
type Runtime = ManagedRuntime.ManagedRuntime<Services, RecorderError>;

const runtimeOf = (recorder: Layer.Layer<RunRecorder, RecorderError>): Runtime =>
  ManagedRuntime.make(
    StreamProcessor.layer.pipe(Layer.provideMerge(Layer.merge(recorder, UserDecisions.layerHeadless()))),
  );

let made = 0;

/** The three writes of a happy run, without the run itself. */
const writes = Effect.gen(function* () {
  made += 1;
  const id = `bench-${made}`;
  const recorder = yield* RunRecorder;
  yield* recorder.write(id, [E.begun(id, Date.now()), E.attempt(1)]);
  yield* recorder.write(id, [E.raised(1, { progress: "output", shown: "text" })]);
  yield* recorder.write(id, [E.ended({ at: Date.now() })]);
});

/** The writes of a run that breaks once: an incident with its facts and evidence, a second attempt, and the end. */
const brokenWrites = Effect.gen(function* () {
  made += 1;
  const id = `bench-${made}`;
  const recorder = yield* RunRecorder;
  yield* recorder.write(id, [E.begun(id, Date.now()), E.attempt(1)]);
  yield* recorder.write(id, [E.raised(1, { progress: "output" }), E.noted(5), E.opened(id, 1)]);
  yield* recorder.write(id, [E.marked(id, 1, "acted_on"), E.attempt(2, "replay")]);
  yield* recorder.write(id, [E.raised(2, { progress: "output", shown: "text" })]);
  yield* recorder.write(id, [E.ended({ at: Date.now(), attempts: 2 })]);
});

const source = () => fromAsyncIterable(() => events(eventsOfRun - 2, "saturated"), makeSourceError);
const run = Effect.flatMap(StreamProcessor, (processor) => Stream.runDrain(processor.run(options(source))));

const replicate = (
  runtime: Runtime,
  one: Effect.Effect<unknown, unknown, Services>,
  { concurrent, runs }: WritesSize,
) => runtime.runPromise(withoutLog(Effect.replicateEffect(one, runs, { concurrency: concurrent, discard: true })));

/** CPU of this process per run, in microseconds. */
const cpuOf = async (runtime: Runtime, one: Effect.Effect<unknown, unknown, Services>, size: WritesSize) => {
  const before = process.cpuUsage();
  await replicate(runtime, one, size);
  const { system, user } = process.cpuUsage(before);
  return (system + user) / size.runs;
};

/** Bytes that this process has passed to the kernel so far. */
const writtenBytes = (): number =>
  Number(/wchar: (\d+)/.exec(readFileSync("/proc/self/io", "utf8"))?.[1] ?? Number.NaN);

const round = async (sqlite: Runtime, postgres: Runtime, server: Server, size: WritesSize, sqliteFirst: boolean) => {
  const ofSqlite = async () => {
    const from = writtenBytes();
    const us = await cpuOf(sqlite, writes, size);
    return { us, bytes: (writtenBytes() - from) / size.runs };
  };
  const ofPostgres = async () => {
    const [wal, cpu] = [await server.walBytes(), server.cpuUs()];
    const us = await cpuOf(postgres, writes, size);
    const spent = server.cpuUs() - cpu;
    return { us, server: spent / size.runs, wal: ((await server.walBytes()) - wal) / size.runs };
  };
  if (sqliteFirst) return { file: await ofSqlite(), base: await ofPostgres() };
  const base = await ofPostgres();
  return { file: await ofSqlite(), base };
};

/** Measures consecutive runs, and runs that break once. */
const measureConsecutive = async (postgres: Runtime, server: Server, size: WritesSize) => {
  const single = { ...size, runs: aloneRuns, concurrent: 1 };
  const [wal, cpu] = [await server.walBytes(), server.cpuUs()];
  const us = await cpuOf(postgres, writes, single);
  const [cpuAfter, walAfter] = [server.cpuUs(), await server.walBytes()];
  await replicate(postgres, brokenWrites, { ...size, runs: aloneRuns });
  return {
    alone_us: us,
    alone_server_us: (cpuAfter - cpu) / aloneRuns,
    alone_wal_bytes: (walAfter - wal) / aloneRuns,
    broken_wal_bytes: ((await server.walBytes()) - walAfter) / aloneRuns,
  };
};

/** Counts the server's statements for one kind of run. */
const countsOf = async (
  postgres: Runtime,
  server: Server,
  one: Effect.Effect<unknown, unknown, Services>,
  size: WritesSize,
) => {
  await server.count();
  const before = await postgres.runPromise(commits);
  await replicate(postgres, one, size);
  const committed = (await postgres.runPromise(commits)) - before;
  const counted = await server.counted(database);
  const kinds = kindsOf(counted, size.runs);
  return { counted, kinds, transactions: committed / size.runs };
};

const commits = Effect.map(Metric.value(SqlFailure.commits), ({ count }) => Number(count));

const counts = async (postgres: Runtime, server: Server, size: WritesSize) => {
  const { counted, kinds, transactions } = await countsOf(postgres, server, writes, size);
  const ofRun = await countsOf(postgres, server, run, size);
  return {
    transactions,
    undone: Math.max(0, kinds.transactions - transactions),
    statements: kinds.all,
    notifies: Math.max(kinds.notifies, ofRun.kinds.notifies),
    run_statements: ofRun.kinds.all,
    run_transactions: ofRun.transactions,
    commonest: commonest(counted, size.runs, commonestMax),
  };
};

const measureWrites = async (server: Server, file: string, size: WritesSize): Promise<Writes> => {
  const memory = runtimeOf(RunRecorder.layerMemory({ runsMax: 100_000 }));
  const sqlite = runtimeOf(SqlRunRecorder.layerFile({ file, synchronous: "normal", retention: false }));
  const postgres = runtimeOf(PostgresRunRecorder.layer({ address: server.address(database), retention: false }));
  const all: Array<Awaited<ReturnType<typeof round>>> = [];
  const ofRuns: Array<{ readonly memory: number; readonly sqlite: number; readonly postgres: number }> = [];
  for (let n = 0; n <= size.rounds; n += 1) {
    const found = await round(sqlite, postgres, server, size, n % 2 === 0);
    const runs = {
      memory: await cpuOf(memory, run, size),
      sqlite: await cpuOf(sqlite, run, size),
      postgres: await cpuOf(postgres, run, size),
    };
    // The first round warms up.
    if (n === 0) continue;
    all.push(found);
    ofRuns.push(runs);
  }
  const of = (value: (one: (typeof all)[number]) => number) => median(all.map(value));
  const ofRun = (value: (one: (typeof ofRuns)[number]) => number) => median(ofRuns.map(value));
  const rows_bytes = await bytesOfRows(server);
  const values = {
    sqlite_us: of(({ file: { us } }) => us),
    postgres_us: of(({ base: { us } }) => us),
    sqlite_run_us: ofRun((one) => one.sqlite),
    postgres_run_us: ofRun((one) => one.postgres),
    memory_run_us: ofRun((one) => one.memory),
    ratio: of(({ base, file: { us } }) => base.us / us),
    run_ratio: ofRun((one) => one.postgres / one.sqlite),
    server_us: of(({ base }) => base.server),
    sqlite_bytes: of(({ file: { bytes } }) => bytes),
    wal_bytes: of(({ base }) => base.wal),
    rows_bytes,
    ...(await measureConsecutive(postgres, server, size)),
    ...(await counts(postgres, server, size)),
  };
  for (const runtime of [memory, sqlite, postgres]) await runtime.dispose();
  return values;
};

/** Bytes of tables and indexes per run. Nothing is vacuumed, so replaced row versions are included. */
const bytesOfRows = async (server: Server): Promise<number> => {
  const [row] = await server.rows<{ readonly bytes: string; readonly runs: string }>(
    `SELECT (SELECT sum(pg_total_relation_size(c.oid)) FROM pg_class c
        WHERE c.relkind = 'r' AND c.relname LIKE 'stream_recovery_%')::text AS bytes,
      (SELECT count(*) FROM stream_recovery_runs)::text AS runs`,
  );
  return Number(row?.bytes) / Number(row?.runs);
};

/** Measures on a temporary server and a temporary file. */
export const measure = async (size: WritesSize): Promise<Writes> => {
  const folder = mkdtempSync(join(tmpdir(), "bench-store-"));
  try {
    return await using((server) => measureWrites(server, join(folder, "runs.db"), size));
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
};
