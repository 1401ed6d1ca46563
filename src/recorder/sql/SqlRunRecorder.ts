/**
 * Keeps runs in a database, so that they outlive their process and another process can take them over.
 *
 * The same entries produce the same record as in `RunRecorder.layerMemory`. The statements need serialisable transactions. On SQLite every
 * transaction is serialisable, and on PostgreSQL the recorder requests it.
 */
import { hostname } from "node:os";
import * as Clock from "effect/Clock";
import type * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type * as Scope from "effect/Scope";
import * as SqlClient from "effect/sql/SqlClient";
import { toMs } from "../../domain/Durations.ts";
import { monotonicMs, runWithin } from "../MonotonicTime.ts";
import { checkAnswer } from "../Question.ts";
import { RecorderError, runError } from "../RecorderError.ts";
import * as RunRecord from "../RunRecord.ts";
import { listLimitDefault, type PruneQuery, RunRecorder, recorderWaitMs, type Write } from "../RunRecorder.ts";
import { criteriaAt, type Retaining, type Retention, retentionDefault, withRetaining } from "../retention/Retention.ts";
import { OutageLog } from "../shared/OutageLog.ts";
import { withTransfer } from "../transfer/RunTransfer.ts";
import { readVariables } from "./Environment.ts";
import * as SqlEntryCheck from "./entry/SqlEntryCheck.ts";
import * as ServerDemands from "./postgres/ServerDemands.ts";
import * as SqlRoom from "./postgres/SqlRoom.ts";
import { type CommitOne, lockWaitMsDefault, SqlDatabase } from "./SqlDatabase.ts";
import * as SqlDialect from "./SqlDialect.ts";
import { beatsInLease, SqlLease } from "./SqlLease.ts";
import * as SqlNotifications from "./SqlNotifications.ts";
import * as SqlOwnership from "./SqlOwnership.ts";
import * as SqlRuns from "./SqlRuns.ts";
import * as SqlStore from "./SqlStore.ts";
import * as SqlTables from "./SqlTables.ts";
import * as SqlTransfer from "./SqlTransfer.ts";
import * as SqlWriter from "./SqlWriter.ts";
import * as SqlFile from "./sqlite/SqlFile.ts";
import * as SqlNodeSqlite from "./sqlite/SqlNodeSqlite.ts";

/**
 * Default lease of a process, in milliseconds. If the process dies, its runs can be taken over after this time. A living process renews the
 * lease three times in this time.
 */
export const leaseMsDefault = 15_000;

/** Maximum lease and lock timeout, in milliseconds. */
const dayMs = 24 * 60 * 60 * 1_000;

/** Options of a recorder over any SQL database. All are optional. */
export interface SqlRunRecorderOptions {
  /** Lease of this process, as milliseconds or a duration; default 15,000. */
  readonly leaseMs?: Duration.Input;
  /**
   * Unique name of this process, never reused. Another process can report the end of this process by its name (`RunRecorder.processEnded`),
   * before its lease expires. 1 to 64 characters of a-z, 0-9 and -.
   */
  readonly process?: string;
  /** Runs to delete automatically; false for none. */
  readonly retention?: Retention | false;
  /**
   * Maximum wait for another program's lock, as milliseconds or a duration, before writes fail as `locked`; default 5,000. The wait starts
   * when a write first meets the lock. After that, later writes try only once while the lock remains.
   */
  readonly lockWaitMs?: Duration.Input;
  /** Name of the database in error messages. */
  readonly place?: string;
  /**
   * Prefix of the table names, to distinguish them from a program's own: 1 to 40 characters of a-z, 0-9 and _; default `stream_recovery_`.
   * Tables of the first version of this package, which had no prefix, are renamed when the store is opened.
   */
  readonly prefix?: string;
}

/** Options of a recorder on a SQLite file. All are optional. */
export interface SqlFileOptions extends SqlRunRecorderOptions, Partial<SqlNodeSqlite.NodeSqliteOptions> {}

/** The layers of RunRecorder over SQL. */
export const SqlRunRecorder = {
  /**
   * Keeps runs in the database of a client, next to the tables of its program.
   *
   * The recorder never writes inside a transaction of its caller, which could roll the write back. SQLite has one writer, so a stream that
   * runs inside such a transaction cannot be recorded there, and its writes fail as `locked`.
   *
   * Fails if the database cannot be used, its server is too old, a newer version of this package made the tables, or an option is invalid.
   */
  layer: (options: SqlRunRecorderOptions = {}): Layer.Layer<RunRecorder, RecorderError, SqlClient.SqlClient> =>
    Layer.effect(RunRecorder, make(options, { client: true, tables: true })),

  /**
   * Keeps runs in one SQLite file, which any number of processes may share.
   *
   * Fails if the name is the address of a server, because SQLite would create a file of that name.
   *
   * @param options.file default `$STREAM_RECOVERY_DB` of the program's `ConfigProvider`, else `stream-recovery/runs.db` in the user's state folder
   * @param options.leaseMs lease of this process, as milliseconds or a duration; default 15,000
   * @param options.synchronous `full` (default) survives a power loss, `normal` a crash of the process
   * @param options.retention runs to delete automatically; false for none
   * @param options.prefix prefix of the table names. Required if the file belongs to another program
   */
  layerFile: (options: SqlFileOptions = {}): Layer.Layer<RunRecorder, RecorderError> =>
    Layer.unwrap(
      Effect.gen(function* () {
        const file = options.file ?? SqlFile.defaultFile(yield* readVariables(SqlFile.variables));
        const named = options.file === undefined ? "$STREAM_RECOVERY_DB" : "file";
        const problem = SqlFile.findProblem(file, "a file, or PostgresRunRecorder.layer for a PostgreSQL address");
        if (problem !== undefined) return yield* badOptionError(`${named}: ${problem}`);
        const shared = { client: false, tables: options.prefix !== undefined };
        return Layer.provide(
          Layer.effect(RunRecorder, make({ place: file, ...options }, shared)),
          SqlNodeSqlite.layerOfStore({ ...options, file }),
        );
      }),
    ),
} as const;

/** `client` and `tables` are true if the program also uses the client for its own statements, or the database for its own tables. */
interface Shared {
  readonly client: boolean;
  readonly tables: boolean;
}

/** Connections that serve a single purpose each, in addition to the connections of the client. */
export interface OwnConnections {
  /** Connection for heartbeats, so that no other work of this process delays them. By default heartbeats use the main connection. */
  readonly beats?: SqlClient.SqlClient;
  /** Commits a statement in one round trip. Without it, a run starts with an ordinary transaction. */
  readonly commitOne?: CommitOne;
  /** Listens for notifications of other processes. Without it, the store is polled. */
  readonly listen?: SqlNotifications.Listen;
  /** Limits that all connections, including the connections of the client, have requested from their server. */
  readonly limits?: ServerDemands.ServerLimits;
}

/**
 * Creates a recorder over the client in the services. All SQL layers of this package use it.
 *
 * @param own connections in addition to the client's
 */
export const make = (
  options: SqlRunRecorderOptions,
  shared: Shared,
  { beats, commitOne, limits, listen }: OwnConnections = {},
): Effect.Effect<RunRecorder["Service"], RecorderError, SqlClient.SqlClient | Scope.Scope> =>
  Effect.gen(function* () {
    const [client, clock] = yield* Effect.all([SqlClient.SqlClient, Clock.Clock]);
    const leaseMs = toMs(options.leaseMs ?? leaseMsDefault);
    const lockWaitMs = options.lockWaitMs === undefined ? undefined : toMs(options.lockWaitMs);
    const { place = "the database of runs", prefix = SqlTables.prefixDefault } = options;
    const problem =
      SqlDialect.findProblem(client) ??
      SqlTables.prefixProblem(prefix) ??
      msProblem("leaseMs", leaseMs, 1) ??
      msProblem("lockWaitMs", lockWaitMs, 0) ??
      processProblem(options.process);
    if (problem !== undefined) return yield* problem;
    const closeMs = (lockWaitMs ?? lockWaitMsDefault) + recorderSlackMs;
    const newer = { unwritable: undefined };
    const use = { place, shared, newer, ...(lockWaitMs === undefined ? {} : { lockWaitMs }) };
    const database = new SqlDatabase(SqlTables.make(client, prefix), { ...use, ...(commitOne && { commitOne }) });
    const beating = beats === undefined ? database : new SqlDatabase(SqlTables.make(beats, prefix), use);
    const now = () => clock.currentTimeMillisUnsafe();
    const lease = new SqlLease(database.tables, {
      leaseMs,
      ...(options.process === undefined ? {} : { process: options.process }),
      label: `${process.pid}@${hostname()}`,
      now,
      elapsed: () => monotonicMs(clock),
    });
    yield* prepare(database, place, limits);
    const words = yield* SqlNotifications.make(database, lease, now, listen && { listen, beating });
    // A recorder that has written nothing has no lease to release.
    yield* Effect.addFinalizer(() =>
      lease.id === undefined
        ? Effect.void
        : logFailure(releaseLease(database.write(lease.end), closeMs), "could not release the lease"),
    );
    const inGroups = yield* SqlWriter.make(database, lease, closeMs);
    // The fast path closes before the writer, which then commits the writes that the fast path could not.
    const write = yield* SqlWriter.makeTogether(database, lease, inGroups);
    yield* Effect.forkScoped(runHeartbeat(database, beating, lease));
    const looking = yield* startRetention(makeRetaining(database, now), options);
    const silentWaitMs = Math.max(leaseMs, leaseMsDefault) * leasesWaited;
    const recorder = {
      ...(beating === database ? {} : { hurry: Effect.sync(() => database.shortenTimeouts()) }),
      ...(yield* serve({ database, lease, clock, waitMs: silentWaitMs }, write, words?.announceAnswer)),
      ...(words?.facts === undefined ? {} : { shared: words.facts }),
      ...(words === undefined ? {} : { cancels: words.cancels, pacing: words.pacing }),
      // Longer than the lock timeout, so that the error of the lock arrives first.
      waitMs: (lockWaitMs ?? lockWaitMsDefault) + recorderSlackMs,
      claimWaitMs: silentWaitMs + recorderWaitMs,
    };
    return withRetaining(withTransfer(recorder, SqlTransfer.make(database)), looking);
  });

/** Creates the tables, but only if the server meets the requirements. */
const prepare = (database: SqlDatabase, place: string, limits: ServerDemands.ServerLimits | undefined) => {
  const { dialect, sql } = database.tables;
  if (dialect.name !== "postgres") return database.ready;
  return Effect.andThen(database.execute(ServerDemands.checkServer(sql, place, limits)), database.ready);
};

/**
 * Returns an error for an invalid process name. Only characters that every database sorts alike are allowed, because lease ids start with
 * the name and are searched in that order.
 */
const processProblem = (process: string | undefined): RecorderError | undefined =>
  process === undefined || /^[a-z\d-]{1,64}$/.test(process)
    ? undefined
    : badOptionError("process: expected 1 to 64 of a-z, 0-9 and -");

/** Returns an error for an invalid duration. A lease of 0 ms would expire at once, and an infinite one never. */
const msProblem = (name: string, ms: number | undefined, min: number): RecorderError | undefined =>
  ms === undefined || (ms >= min && ms <= dayMs)
    ? undefined
    : badOptionError(`${name}: expected ${min} to ${dayMs} milliseconds, got ${ms}`);

const badOptionError = (message: string): RecorderError =>
  new RecorderError({ reason: "bad_option", run_id: "", message });

/**
 * Renews the lease while the recorder lives. A failed heartbeat is retried before the next one is due. After an outage, the lease is thus
 * renewed before other processes may declare this process dead.
 */
const runHeartbeat = (database: SqlDatabase, beating: SqlDatabase, lease: SqlLease): Effect.Effect<never> => {
  const outage = new OutageLog({ away: "could not renew the lease", back: "renewing the lease again" });
  const renew = Effect.suspend(() => {
    const { silentMs } = lease;
    // Programs of several versions may share a server, and a newer program may have migrated to tables that this one must not write.
    const known = beating === database ? Effect.void : beating.ready;
    const beaten = Effect.andThen(known, beating.write(lease.beat(beating.tables)));
    return Effect.flatMap(Effect.tap(beaten, outage.recordSuccess), (beat) => {
      if (beat === undefined) return Effect.void;
      const { held, id } = beat;
      if (held === undefined) {
        lease.handleFence(id);
        return Effect.logWarning(
          "another process has taken over the runs of this process, which was silent for too long",
        );
      }
      lease.adopt(held);
      const late = Effect.logWarning("the lease was renewed late; no process has taken it over, so it is valid again", {
        silent_ms: Math.round(silentMs),
      });
      return Effect.andThen(
        silentMs <= lease.beatMs * beatsInLease ? Effect.void : late,
        SqlOwnership.releasePending(database, lease),
      );
    });
  });
  const onFailure = ({ message }: RecorderError) => outage.recordFailure(message);
  const beat = Effect.suspend(() => (lease.isToBeat ? Effect.catch(renew, onFailure) : Effect.void));
  const pause = Effect.suspend(() => Effect.sleep(outage.isOn ? lease.beatMs / triesInBeat : lease.beatMs));
  return Effect.forever(Effect.andThen(pause, beat));
};

/** Time for which a caller waits in addition to the lock timeout, in milliseconds. */
const recorderSlackMs = 1_000;

/**
 * Maximum duration of a claim, in leases of this process or of the default length, whichever is longer. A claim waits for the lease of
 * another process, which may be longer than this process's. Leases longer than the maximum remain watched, and their runs are taken over
 * later.
 */
const leasesWaited = 4;

/** Number of retries of a failed heartbeat before the next one would be due. */
const triesInBeat = 4;

const serve = (
  given: SqlOwnership.Ownership,
  write: Write,
  answered: SqlNotifications.Answered = () => Effect.void,
): Effect.Effect<RunRecorder["Service"]> => {
  const { clock, database, lease } = given;
  const { tables } = database;
  const run = (runId: string) => Effect.map(database.read(SqlStore.load(tables, runId)), (stored) => stored?.record);
  return Effect.map(SqlOwnership.makeClaim(given), (claim) =>
    RunRecorder.of({
      durable: true,
      write,
      run,
      runs: (query) => database.read(SqlRuns.list(tables, query ?? {})),
      incidents: (runId) => Effect.map(run(runId), (record) => record?.incidents ?? []),
      claim,
      release: (runId) => SqlOwnership.release(given, runId),
      orphans: (limit = listLimitDefault, options) => SqlOwnership.orphans(given, limit, options?.waits ?? true),
      // The transaction of the answer also sends the notification, so that a notified process finds the answer.
      answer: (it) =>
        database.write(
          Effect.tap(
            answer(database, it, () => clock.currentTimeMillisUnsafe()),
            answered(it.run_id),
          ),
        ),
      digest: (content) => database.digest(content),
      probe: probe(database),
      prune: (query: PruneQuery) => SqlRuns.prune(database, query),
      onLost: (listener) => lease.onLost(listener),
      processEnded: (process) => database.write(lease.fenceAll(process)),
    }),
  );
};

/** Row that a file must accept after its disk was full. It is larger than a write of a run, which changes 7 pages of 4 KiB. */
const asMuch = "x".repeat(32 * 1024);

/**
 * Checks that the store accepts writes. It writes an unchanged value, which detects locks and, on a file, a full disk. But such a write may
 * fit into an existing page of a server or of a file's journal, even if a run would not. So after a full disk, it also writes as much as a
 * run does.
 */
const probe = (database: SqlDatabase): Effect.Effect<void, RecorderError> =>
  Effect.suspend(() => {
    const { dialect, meta, sql } = database.tables;
    const written = sql`UPDATE ${meta} SET value = value WHERE name = 'schema_version'`;
    if (!database.isFull) return Effect.asVoid(database.write(written));
    const isServer = dialect.name === "postgres";
    const found = isServer
      ? database.write(Effect.andThen(SqlRoom.tryInsert(database.tables), written))
      : // A file needs two commits, because a rolled back write never reaches its journal. The next probe replaces a leftover row.
        Effect.andThen(
          database.write(sql`INSERT OR REPLACE INTO ${meta} (name, value) VALUES ('room', ${asMuch})`),
          database.write(sql`DELETE FROM ${meta} WHERE name = 'room'`),
        );
    return Effect.map(found, () => {
      database.isFull = false;
    });
  });

/** Records an answer. The owner of the run finds a new version in the run's row, and reads the run again before it writes. */
const answer = Effect.fnUntraced(function* (database: SqlDatabase, given: RunRecorder.Answer, now: () => number) {
  const { by, choice, revision, run_id } = given;
  const stored = yield* SqlStore.load(database.tables, run_id);
  const unanswered = checkAnswer(stored?.record, given, now());
  if (unanswered !== undefined) return yield* unanswered;
  if (stored === undefined) return yield* runError("unknown_run", run_id);
  const checked = SqlEntryCheck.normalizeEntries(run_id, [{ _tag: "QuestionAnswered", revision, answer: choice, by }]);
  if ("reason" in checked) return yield* checked;
  const next = RunRecord.applyAll(stored.record, checked) ?? stored.record;
  if (typeof next === "string") return yield* runError(next, run_id);
  yield* SqlStore.update(database.tables, run_id, stored, next, stored.owner);
  return next;
});

/** Creates the retention. One call deletes old runs and expired leases. */
const makeRetaining = (database: SqlDatabase, now: () => number): Retaining => {
  const findOld = (retention: Retention) =>
    Effect.map(SqlRuns.readAgreedNow(database, now()), (at) => ({ at, which: criteriaAt(at, retention) }));
  return {
    deleteOld: Effect.fnUntraced(function* (retention, told) {
      const { at, which } = yield* findOld(retention);
      const gone = yield* SqlRuns.prune(database, which, told);
      yield* SqlRuns.pruneLeases(database, at);
      return gone;
    }),
    countOld: (retention) => Effect.flatMap(findOld(retention), ({ which }) => SqlRuns.countOld(database, which)),
  };
};

const retain = ({ deleteOld: look }: Retaining, retention: Retention) => {
  const { everyMs } = { ...retentionDefault, ...retention };
  return Effect.forever(
    Effect.andThen(logFailure(look(retention), "could not delete old runs"), Effect.sleep(everyMs)),
  );
};

/** Starts automatic retention, unless the options disable it. */
const startRetention = (looking: Retaining, { retention }: SqlRunRecorderOptions) =>
  retention === false
    ? Effect.succeed(looking)
    : Effect.as(Effect.forkScoped(retain(looking, retention ?? {})), looking);

/** Releases the lease. If the release is not confirmed in time, the error explains the consequence. */
const releaseLease = (ends: Effect.Effect<void, RecorderError>, ms: number): Effect.Effect<void, RecorderError> =>
  Effect.flatMap(runWithin(ends, ms), (isDone) => {
    if (isDone) return Effect.void;
    const message =
      "the store did not confirm in time; open runs of this process are taken over when its lease expires";
    return Effect.fail(new RecorderError({ reason: "unavailable", run_id: "", message }));
  });

/** Logs a failure for which no caller waits. The failure has already been counted. */
const logFailure = (effect: Effect.Effect<unknown, RecorderError>, what: string): Effect.Effect<void> =>
  Effect.catch(Effect.asVoid(effect), (error) => Effect.logWarning(`${what}: ${error.message}`));
