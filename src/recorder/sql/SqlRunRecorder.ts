/**
 * Keeps runs in a database: they outlive their process, and another one can take them over.
 *
 * It makes the same record of the same entries as `RunRecorder.layerMemory`. Only the place differs.
 * Its statements need serialisable transactions. On SQLite every transaction is one; on PostgreSQL it asks for them.
 */
import { hostname } from "node:os";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type * as Scope from "effect/Scope";
import * as SqlClient from "effect/sql/SqlClient";
import { endsWithin, monotonicMs } from "../MonotonicTime.ts";
import { refusal } from "../Question.ts";
import { RecorderError, refused } from "../RecorderError.ts";
import * as RunRecord from "../RunRecord.ts";
import { commitsTogether, listLimitDefault, type PruneQuery, RunRecorder, recorderWaitMs } from "../RunRecorder.ts";
import { oldAt, type Retaining, type Retention, retained, retentionDefault } from "../retention/Retention.ts";
import { OutageLog } from "../shared/OutageLog.ts";
import { transferring } from "../transfer/RunTransfer.ts";
import * as SqlEntryCheck from "./entry/SqlEntryCheck.ts";
import * as ServerDemands from "./postgres/ServerDemands.ts";
import * as SqlRoom from "./postgres/SqlRoom.ts";
import { lockWaitMsDefault, SqlDatabase } from "./SqlDatabase.ts";
import * as SqlDialect from "./SqlDialect.ts";
import { beatsInLease, SqlLease } from "./SqlLease.ts";
import * as SqlOwnership from "./SqlOwnership.ts";
import * as SqlRuns from "./SqlRuns.ts";
import * as SqlStore from "./SqlStore.ts";
import * as SqlTables from "./SqlTables.ts";
import * as SqlTransfer from "./SqlTransfer.ts";
import * as SqlWords from "./SqlWords.ts";
import * as SqlWriter from "./SqlWriter.ts";
import * as SqlFile from "./sqlite/SqlFile.ts";
import * as SqlNodeSqlite from "./sqlite/SqlNodeSqlite.ts";

/** Lease of a process, in milliseconds: so long after its death its runs can be taken over. Renewed three times as often. */
export const leaseMsDefault = 15_000;

/** Longest lease and longest wait for a lock, in milliseconds. */
const dayMs = 24 * 60 * 60 * 1_000;

/** How runs are kept. */
export interface SqlRunRecorderOptions {
  /** Lease of this process, in milliseconds; default 15,000. */
  readonly leaseMs?: number;
  /**
   * A name of this process that no other process ever has: by it another one says that this one has ended
   * (`RunRecorder.processEnded`), before its lease is over. 1 to 64 of a-z, 0-9 and -.
   */
  readonly process?: string;
  /** What is forgotten by itself; false for nothing. */
  readonly retention?: Retention | false;
  /**
   * Longest wait for another program's lock, in milliseconds, before writes fail as `locked`; default 5,000. It counts from
   * when the lock was first met: while it stays, later writes try once.
   */
  readonly lockWaitMs?: number;
  /** The database, as a person knows it: failures name it. */
  readonly place?: string;
  /**
   * What the names of the tables begin with, so that they stand beside a program's own: 1 to 40 of a-z, 0-9 and _; default
   * `stream_recovery_`. Tables of the first version, which had none, get it when they are opened.
   */
  readonly prefix?: string;
}

/** Where the file is and how it is written, besides. */
export interface SqlFileOptions extends SqlRunRecorderOptions, Partial<SqlNodeSqlite.NodeSqliteOptions> {}

/** The layers of RunRecorder over SQL. */
export const SqlRunRecorder = {
  /**
   * Keeps runs in the database of a client, beside the tables of the program that it belongs to.
   *
   * The recorder never writes inside of a transaction of its caller, which could undo the write. SQLite has one writer: a
   * stream that runs inside of such a transaction cannot be recorded there, and its writes fail as `locked`.
   *
   * Fails where the database cannot be used, is on a server that is too old, was made by a newer version of this package, or an option
   * cannot be.
   */
  layer: (options: SqlRunRecorderOptions = {}): Layer.Layer<RunRecorder, RecorderError, SqlClient.SqlClient> =>
    Layer.effect(RunRecorder, make(options, { client: true, tables: true })),

  /**
   * Keeps runs in one SQLite file, which any number of processes share.
   *
   * Fails where the name is an address of a server, of which SQLite would make a file.
   *
   * @param options.file default `$STREAM_RECOVERY_DB`, else `stream-recovery/runs.db` in the user's state folder
   * @param options.leaseMs lease of this process, in milliseconds; default 15,000
   * @param options.synchronous `full` (default) survives a power loss, `normal` a crash of the process
   * @param options.retention what is forgotten by itself; false for nothing
   * @param options.prefix what the tables' names begin with. Only where it is given the file may be another program's
   */
  layerFile: (options: SqlFileOptions = {}): Layer.Layer<RunRecorder, RecorderError> =>
    Layer.suspend(() => {
      const file = options.file ?? SqlFile.defaultFile();
      const named = options.file === undefined ? "$STREAM_RECOVERY_DB" : "file";
      const problem = SqlFile.problem(file, "a file, or PostgresRunRecorder.layer for an address of PostgreSQL");
      if (problem !== undefined) return Layer.effect(RunRecorder, Effect.fail(badOption(`${named}: ${problem}`)));
      const shared = { client: false, tables: options.prefix !== undefined };
      return Layer.provide(
        Layer.effect(RunRecorder, make({ place: file, ...options }, shared)),
        SqlNodeSqlite.layerOfStore({ ...options, file }),
      );
    }),
} as const;

/** What belongs to a program as well: the client, which has its statements, and the database, which has its tables. */
interface Shared {
  readonly client: boolean;
  readonly tables: boolean;
}

/** Connections that serve one purpose only. */
export interface OwnConnections {
  /** For heartbeats, so that nothing else that this process does holds them up; left out, they share the one of everything else. */
  readonly beats?: SqlClient.SqlClient;
  /** Hears what other processes say; left out, it is looked for. */
  readonly listen?: SqlWords.Listen;
  /** What all of them, that of the client too, have asked their server for. */
  readonly limits?: ServerDemands.ServerLimits;
}

/**
 * Makes a recorder over the client of the services. The layers of this package are made of it.
 *
 * @param own connections besides that of the client
 */
export const make = (
  options: SqlRunRecorderOptions,
  shared: Shared,
  { beats, limits, listen }: OwnConnections = {},
): Effect.Effect<RunRecorder["Service"], RecorderError, SqlClient.SqlClient | Scope.Scope> =>
  Effect.gen(function* () {
    const [client, clock] = yield* Effect.all([SqlClient.SqlClient, Clock.Clock]);
    const {
      leaseMs = leaseMsDefault,
      lockWaitMs,
      place = "the database of runs",
      prefix = SqlTables.prefixDefault,
    } = options;
    const problem =
      SqlDialect.problem(client) ??
      SqlTables.prefixProblem(prefix) ??
      msProblem("leaseMs", leaseMs, 1) ??
      msProblem("lockWaitMs", lockWaitMs, 0) ??
      processProblem(options.process);
    if (problem !== undefined) return yield* problem;
    const closeMs = (lockWaitMs ?? lockWaitMsDefault) + recorderSlackMs;
    const newer = { unwritable: undefined };
    const use = { place, shared, newer, ...(lockWaitMs === undefined ? {} : { lockWaitMs }) };
    const database = new SqlDatabase(SqlTables.make(client, prefix), use);
    const beating = beats === undefined ? database : new SqlDatabase(SqlTables.make(beats, prefix), use);
    const now = () => clock.currentTimeMillisUnsafe();
    const lease = new SqlLease(database.tables, {
      leaseMs,
      ...(options.process === undefined ? {} : { process: options.process }),
      label: `${process.pid}@${hostname()}`,
      now,
      elapsed: () => monotonicMs(clock),
    });
    yield* readied(database, place, limits);
    const words = yield* SqlWords.make(database, lease, now, listen && { listen, beating });
    // A recorder that has written nothing holds no lease, and has nothing to give up.
    yield* Effect.addFinalizer(() =>
      lease.id === undefined
        ? Effect.void
        : reported(givenUp(database.write(lease.end), closeMs), "the lease was not given up"),
    );
    const { together, write } = yield* SqlWriter.make(database, lease, closeMs);
    // It closes first: what it could not commit the writer still does.
    const inStep = yield* SqlWriter.makeTogether(database, lease);
    yield* Effect.forkScoped(heartbeat(database, beating, lease));
    const looking = yield* retainedBy(retaining(database, now), options);
    const silentWaitMs = Math.max(leaseMs, leaseMsDefault) * leasesWaited;
    const recorder = {
      ...(beating === database ? {} : { hurry: Effect.sync(() => database.hurry()) }),
      ...(yield* serve({ database, lease, clock, waitMs: silentWaitMs }, write, words?.answered)),
      ...(words?.facts === undefined ? {} : { shared: words.facts }),
      ...(words === undefined ? {} : { cancels: words.cancels, pacing: words.pacing }),
      // The lock's own wait comes to its end first, and says what it is.
      waitMs: (lockWaitMs ?? lockWaitMsDefault) + recorderSlackMs,
      claimWaitMs: silentWaitMs + recorderWaitMs,
    };
    if (inStep !== undefined) commitsTogether(recorder, inStep);
    else if (together !== undefined) commitsTogether(recorder, together, true);
    return retained(transferring(recorder, SqlTransfer.make(database)), looking);
  });

/** Makes tables only on a server that has what the statements need. */
const readied = (database: SqlDatabase, place: string, limits: ServerDemands.ServerLimits | undefined) => {
  const { dialect, sql } = database.tables;
  if (dialect.name !== "postgres") return database.ready;
  return Effect.andThen(database.once(ServerDemands.meet(sql, place, limits)), database.ready);
};

/** Names are compared by their order in the store. */
const processProblem = (process: string | undefined): RecorderError | undefined =>
  process === undefined || /^[a-z\d-]{1,64}$/.test(process)
    ? undefined
    : badOption("process: expected 1 to 64 of a-z, 0-9 and -");

/** A lease of 0 ms would be over at once, and an infinite one never. */
const msProblem = (name: string, ms: number | undefined, min: number): RecorderError | undefined =>
  ms === undefined || (ms >= min && ms <= dayMs)
    ? undefined
    : badOption(`${name}: expected ${min} to ${dayMs} milliseconds, got ${ms}`);

const badOption = (message: string): RecorderError => new RecorderError({ reason: "bad_option", run_id: "", message });

/**
 * Renews the lease while the recorder lives. A beat that fails is tried again sooner than the next one is due: after an
 * outage a living process must be heard before a process that waits may take it for dead.
 */
const heartbeat = (database: SqlDatabase, beating: SqlDatabase, lease: SqlLease): Effect.Effect<never> => {
  const outage = new OutageLog({ away: "the lease was not renewed", back: "the lease can be renewed again" });
  const renewed = Effect.suspend(() => {
    const { silentMs } = lease;
    // Processes of several versions share a server: a newer one may have brought tables that this one must not write.
    const known = beating === database ? Effect.void : beating.ready;
    const beaten = Effect.andThen(known, beating.write(lease.beat(beating.tables)));
    return Effect.flatMap(Effect.tap(beaten, outage.worked), (beat) => {
      if (beat === undefined) return Effect.void;
      const { held, id } = beat;
      if (held === undefined) {
        lease.lose(id);
        return Effect.logWarning("another process has taken over the runs of this one, which was silent for too long");
      }
      lease.adopt(held);
      const late = Effect.logWarning(
        "the lease was not renewed in time; it is good again, as no process has taken it over",
        {
          silent_ms: Math.round(silentMs),
        },
      );
      return Effect.andThen(
        silentMs <= lease.beatMs * beatsInLease ? Effect.void : late,
        SqlOwnership.giveBack(database, lease),
      );
    });
  });
  const failed = ({ message }: RecorderError) => outage.failed(message);
  const beat = Effect.suspend(() => (lease.isToBeat ? Effect.catch(renewed, failed) : Effect.void));
  const pause = Effect.suspend(() => Effect.sleep(outage.isOn ? lease.beatMs / triesInBeat : lease.beatMs));
  return Effect.forever(Effect.andThen(pause, beat));
};

/** How much longer a caller waits for a call than the call waits for a lock, in milliseconds. */
const recorderSlackMs = 1_000;

/**
 * Leases that a claim may take, of this process or of the default length: it waits for one, which may be another process's
 * and longer. A process of a still longer lease is watched on, and its runs are taken later.
 */
const leasesWaited = 4;

/** How often a beat that failed is tried before the next one would be due. */
const triesInBeat = 4;

const serve = (
  given: SqlOwnership.Ownership,
  write: SqlWriter.Write,
  answered: SqlWords.Answered = () => Effect.void,
): Effect.Effect<RunRecorder["Service"]> => {
  const { clock, database, lease } = given;
  const { tables } = database;
  const run = (runId: string) => Effect.map(database.read(SqlStore.load(tables, runId)), (stored) => stored?.record);
  return Effect.map(SqlOwnership.claimer(given), (claim) =>
    RunRecorder.of({
      durable: true,
      write,
      run,
      runs: (query) => database.read(SqlRuns.list(tables, query ?? {})),
      incidents: (runId) => Effect.map(run(runId), (record) => record?.incidents ?? []),
      claim,
      release: (runId) => SqlOwnership.release(given, runId),
      orphans: (limit = listLimitDefault, options) => SqlOwnership.orphans(given, limit, options?.waits ?? true),
      // Said in the transaction of the answer: whoever hears it finds the answer.
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

/** What a file is asked to take once its disk was full: no less than the pages that a write of a run changes, which are 7 of 4 KiB. */
const asMuch = "x".repeat(32 * 1024);

/**
 * Writes a page although its value stays: a lock is met as by any other write, and so is a full disk by a file. Such a write finds room
 * inside of a page of a server, or of a file's journal, where the disk has none for a run: where it was full, as much as a run is written too.
 */
const probe = (database: SqlDatabase): Effect.Effect<void, RecorderError> =>
  Effect.suspend(() => {
    const { dialect, meta, sql } = database.tables;
    const written = sql`UPDATE ${meta} SET value = value WHERE name = 'schema_version'`;
    if (!database.isFull) return Effect.asVoid(database.write(written));
    const isServer = dialect.name === "postgres";
    const found = isServer
      ? database.write(Effect.andThen(SqlRoom.tried(database.tables), written))
      : // What a file takes back has not come to its journal. A row that a process leaves there by its death is the next one's.
        Effect.andThen(
          database.write(sql`INSERT OR REPLACE INTO ${meta} (name, value) VALUES ('room', ${asMuch})`),
          database.write(sql`DELETE FROM ${meta} WHERE name = 'room'`),
        );
    return Effect.map(found, () => {
      database.isFull = false;
    });
  });

/** The process that drives the run finds another version in its row, and reads the run again before it writes. */
const answer = Effect.fnUntraced(function* (database: SqlDatabase, given: RunRecorder.Answer, now: () => number) {
  const { by, choice, revision, run_id } = given;
  const stored = yield* SqlStore.load(database.tables, run_id);
  const unanswered = refusal(stored?.record, given, now());
  if (unanswered !== undefined) return yield* unanswered;
  if (stored === undefined) return yield* refused("unknown_run", run_id);
  const checked = SqlEntryCheck.readable(run_id, [{ _tag: "QuestionAnswered", revision, answer: choice, by }]);
  if ("reason" in checked) return yield* checked;
  const next = RunRecord.applyAll(stored.record, checked) ?? stored.record;
  if (typeof next === "string") return yield* refused(next, run_id);
  yield* SqlStore.update(database.tables, run_id, stored, next, stored.owner);
  return next;
});

/** Looks at what is old once, and at leases that are over. */
const retaining = (database: SqlDatabase, now: () => number): Retaining => {
  const old = (retention: Retention) =>
    Effect.map(SqlRuns.agreedNow(database, now()), (at) => ({ at, which: oldAt(at, retention) }));
  return {
    look: Effect.fnUntraced(function* (retention, told) {
      const { at, which } = yield* old(retention);
      const gone = yield* SqlRuns.prune(database, which, told);
      yield* SqlRuns.pruneLeases(database, at);
      return gone;
    }),
    due: (retention) => Effect.flatMap(old(retention), ({ which }) => SqlRuns.due(database, which)),
  };
};

/** Forgets what is old, now and from time to time. */
const retain = ({ look }: Retaining, retention: Retention) => {
  const { everyMs } = { ...retentionDefault, ...retention };
  return Effect.forever(
    Effect.andThen(reported(look(retention), "old runs were not forgotten"), Effect.sleep(everyMs)),
  );
};

/** Lets a process forget what is old by itself, unless its options say that it does not. */
const retainedBy = (looking: Retaining, { retention }: SqlRunRecorderOptions) =>
  retention === false
    ? Effect.succeed(looking)
    : Effect.as(Effect.forkScoped(retain(looking, retention ?? {})), looking);

/** Gives up a lease; where that is not known in time, whoever reads the log learns what it means. */
const givenUp = (ends: Effect.Effect<void, RecorderError>, ms: number): Effect.Effect<void, RecorderError> =>
  Effect.flatMap(endsWithin(ends, ms), (isDone) => {
    if (isDone) return Effect.void;
    const message = "the store did not say so in time; open runs of this process are taken over when its lease is over";
    return Effect.fail(new RecorderError({ reason: "unavailable", run_id: "", message }));
  });

/** A failure that no caller waits for goes to the log. It was counted where it happened. */
const reported = (effect: Effect.Effect<unknown, RecorderError>, what: string): Effect.Effect<void> =>
  Effect.catch(Effect.asVoid(effect), (error) => Effect.logWarning(`${what}: ${error.message}`));
