/**
 * Keeps runs in a database: they outlive their process, and another one can take them over.
 *
 * It is the recorder of `RunRecorder.layerMemory` with the same record of the same entries; only where it is kept differs.
 * The statements count on serialisable transactions, which on SQLite every transaction is.
 */
import { hostname } from "node:os";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type * as Scope from "effect/Scope";
import * as SqlClient from "effect/sql/SqlClient";
import { refusal } from "./Answering.ts";
import type { RecorderError } from "./RecorderError.ts";
import * as RunRecord from "./RunRecord.ts";
import { type Answer, listLimitDefault, type PruneQuery, RunRecorder } from "./RunRecorder.ts";
import { SqlDatabase } from "./SqlDatabase.ts";
import * as SqlFailure from "./SqlFailure.ts";
import { defaultFile } from "./SqlFile.ts";
import { SqlLease } from "./SqlLease.ts";
import * as SqlNodeSqlite from "./SqlNodeSqlite.ts";
import * as SqlOwnership from "./SqlOwnership.ts";
import * as SqlRuns from "./SqlRuns.ts";
import * as SqlStore from "./SqlStore.ts";
import * as SqlWriter from "./SqlWriter.ts";

/** Lease of a process, in milliseconds: so long after its death its runs can be taken over. Renewed three times as often. */
export const leaseMsDefault = 15_000;

/** Which ended runs are forgotten by themselves. */
export interface Retention {
  /** Milliseconds since their end; default 30 days. */
  readonly ageMs?: number;
  /** Most ended runs kept; default 100,000. */
  readonly runs?: number;
  /** How often that is looked at, in milliseconds; default one hour, and once at the start. */
  readonly everyMs?: number;
}

/** Ended runs are kept 30 days, and the newest 100,000 of them. */
export const retentionDefault: Required<Retention> = {
  ageMs: 30 * 24 * 60 * 60 * 1_000,
  runs: 100_000,
  everyMs: 60 * 60 * 1_000,
};

/** How runs are kept. */
export interface SqlRunRecorderOptions {
  /** Lease of this process, in milliseconds; default 15,000. */
  readonly leaseMs?: number;
  /** What is forgotten by itself; false for nothing. */
  readonly retention?: Retention | false;
  /**
   * Longest wait for another program's lock, in milliseconds, before writes fail as `locked`; default 5,000. It counts from
   * when the lock was first met: while it stays, later writes try once.
   */
  readonly lockWaitMs?: number;
  /** The database, as a person knows it: failures name it. */
  readonly place?: string;
}

/** Where the file is and how it is written, besides. */
export interface SqlFileOptions extends SqlRunRecorderOptions, Partial<SqlNodeSqlite.NodeSqliteOptions> {}

/** The layers of RunRecorder over SQL. */
export const SqlRunRecorder = {
  /**
   * Keeps runs in the database of a client.
   *
   * Fails where the database cannot be used or was made by a newer version of this package.
   */
  layer: (options: SqlRunRecorderOptions = {}): Layer.Layer<RunRecorder, RecorderError, SqlClient.SqlClient> =>
    Layer.effect(RunRecorder, make(options)),

  /**
   * Keeps runs in one SQLite file, which any number of processes share.
   *
   * @param options.file default `$STREAM_RECOVERY_DB`, else `stream-recovery/runs.db` in the user's state folder
   * @param options.leaseMs lease of this process, in milliseconds; default 15,000
   * @param options.synchronous `full` (default) survives a power loss, `normal` a crash of the process
   * @param options.retention what is forgotten by itself; false for nothing
   */
  layerFile: (options: SqlFileOptions = {}): Layer.Layer<RunRecorder, RecorderError> =>
    Layer.suspend(() => {
      const file = options.file ?? defaultFile();
      return Layer.provide(
        SqlRunRecorder.layer({ place: file, ...options }),
        SqlNodeSqlite.layer({ ...options, file }),
      );
    }),
} as const;

const make = (
  options: SqlRunRecorderOptions,
): Effect.Effect<RunRecorder["Service"], RecorderError, SqlClient.SqlClient | Scope.Scope> =>
  Effect.gen(function* () {
    const [sql, clock] = yield* Effect.all([SqlClient.SqlClient, Clock.Clock]);
    const now = () => clock.currentTimeMillisUnsafe();
    const leaseMs = options.leaseMs ?? leaseMsDefault;
    const database = new SqlDatabase(sql, options.place ?? "the database of runs", options.lockWaitMs);
    const lease = new SqlLease(sql, { leaseMs, label: `${process.pid}@${hostname()}`, now });
    yield* database.ready;
    // Who has written nothing holds no lease, and has nothing to wait for.
    yield* Effect.addFinalizer(() =>
      lease.id === undefined ? Effect.void : reported(database.write(lease.end), "the lease was not given up"),
    );
    const write = yield* SqlWriter.make(database, lease);
    const beat = reported(
      Effect.suspend(() => (lease.isNeeded ? database.write(lease.beat) : Effect.void)),
      "the lease was not renewed",
    );
    yield* Effect.forkScoped(Effect.forever(Effect.andThen(Effect.sleep(leaseMs / 3), beat)));
    if (options.retention !== false) yield* Effect.forkScoped(retain(database, options.retention ?? {}, now));
    return serve(database, lease, write, now);
  });

const serve = (
  database: SqlDatabase,
  lease: SqlLease,
  write: SqlWriter.Write,
  now: () => number,
): RunRecorder["Service"] => {
  const run = (runId: string) =>
    Effect.map(database.read(SqlStore.load(database.sql, runId)), (stored) => stored?.record);
  return RunRecorder.of({
    durable: true,
    write,
    run,
    runs: (query) => database.read(SqlRuns.list(database.sql, query ?? {})),
    incidents: (runId) => Effect.map(run(runId), (record) => record?.incidents ?? []),
    claim: (runId) => SqlOwnership.claim(database, lease, runId, now),
    release: (runId) => SqlOwnership.release(database, lease, runId),
    orphans: (limit = listLimitDefault) => SqlOwnership.orphans(database, lease, limit, now),
    answer: (given) => database.write(answer(database, given, now)),
    digest: (content) => database.digest(content),
    prune: (query: PruneQuery) => SqlRuns.prune(database, query),
  });
};

/** Whoever drives the run finds another version in its row, and reads it again before it writes. */
const answer = Effect.fnUntraced(function* (database: SqlDatabase, given: Answer, now: () => number) {
  const { by, choice, revision, run_id } = given;
  const stored = yield* SqlStore.load(database.sql, run_id);
  const refused = refusal(stored?.record, given, now());
  if (refused !== undefined) return yield* refused;
  if (stored === undefined) return yield* SqlFailure.refused("unknown_run", run_id);
  const next = RunRecord.apply(stored.record, { _tag: "QuestionAnswered", revision, answer: choice, by });
  if (typeof next === "string") return yield* SqlFailure.refused(next, run_id);
  yield* SqlStore.update(database.sql, run_id, stored, next, stored.owner);
  return next;
});

/** Forgets what is old, now and from time to time. */
const retain = (database: SqlDatabase, retention: Retention, now: () => number) => {
  const { ageMs, everyMs, runs } = { ...retentionDefault, ...retention };
  const once = Effect.suspend(() => SqlRuns.prune(database, { endedBefore: now() - ageMs, keep: runs })).pipe(
    Effect.andThen(SqlRuns.pruneLeases(database, now())),
  );
  return Effect.forever(Effect.andThen(reported(once, "old runs were not forgotten"), Effect.sleep(everyMs)));
};

/** What nobody waits for is told in the log; the failure was counted where it happened. */
const reported = (effect: Effect.Effect<unknown, RecorderError>, what: string): Effect.Effect<void> =>
  Effect.catch(Effect.asVoid(effect), (error) => Effect.logWarning(`${what}: ${error.message}`));
