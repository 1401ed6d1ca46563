/**
 * Runs the store's transactions on PostgreSQL, and determines the outcome of a transaction whose connection broke during COMMIT.
 *
 * Writes are SERIALIZABLE, because the store decides by the rows that it has read. At a lower isolation level, two processes could each
 * decide by rows that the other one changes. The caller retries a transaction that PostgreSQL aborts for that reason.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { isSqlError, type SqlError } from "effect/sql/SqlError";
import { monotonicMs, realClock, sleepRealTime } from "../../MonotonicTime.ts";
import { RecorderError } from "../../RecorderError.ts";
import { isOutcomeUnknown, OutcomeUnknown, sqlStateOf } from "./SqlState.ts";

/** Runs a body as one transaction. */
export type Transact = <A, E>(body: Effect.Effect<A, E>) => Effect.Effect<A, E | SqlError>;

/**
 * Maximum time for which the server is asked for the outcome of a transaction, in milliseconds. After that the outcome counts as unknown.
 */
const askedMs = 5_000;

/**
 * Timeout of a statement that creates tables, and of the wait for another process that creates them, in milliseconds. No statement has a
 * longer timeout.
 */
export const migrationMs = 18_000;

/** Pause between two queries for an outcome, in milliseconds. */
const askPauseMs = 100;

/** Reads a snapshot across all tables, without locks. */
export const read =
  (sql: SqlClient.SqlClient): Transact =>
  (body) =>
    runTransaction(sql, body, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");

/**
 * Runs a migration, one process at a time. This is the only transaction that must see commits after its start, because another
 * process may have migrated meanwhile.
 *
 * @param name name of the lock: the store's prefix
 */
export const migrate =
  (sql: SqlClient.SqlClient, name: string): Transact =>
  (body) => {
    const runLocked = Effect.gen(function* () {
      const limit = String(migrationMs);
      // Creating tables takes longer than a write may wait, and so does waiting for another process that creates them.
      yield* sql`SELECT set_config('lock_timeout', ${limit}, true), set_config('statement_timeout', ${limit}, true)`;
      // Stores with the same prefix in two schemas are different stores.
      yield* sql`SELECT pg_advisory_xact_lock(hashtextextended(concat(current_schema(), '.', ${name}::text), 0))`;
      return yield* body;
    });
    return runTransaction(sql, runLocked, "BEGIN ISOLATION LEVEL READ COMMITTED");
  };

/**
 * Runs a transaction that may write. It dies with `OutcomeUnknown` only if the server cannot report the outcome. Any other failure means
 * that nothing was written.
 */
export const write = (sql: SqlClient.SqlClient): Transact => {
  let demanded = false;
  const demand = Effect.suspend(() => {
    if (demanded) return Effect.void;
    return Effect.flatMap(readIsolation(sql), (level) => {
      if (level !== "serializable") return Effect.die(isolationError(level));
      demanded = true;
      return Effect.void;
    });
  });
  return <A, E>(body: Effect.Effect<A, E>) =>
    Effect.suspend(() => {
      let done: { readonly value: A; readonly xid: string | undefined } | undefined;
      const whole = Effect.gen(function* () {
        yield* demand;
        const value = yield* body;
        done = { value, xid: yield* readTransactionId(sql) };
        return value;
      });
      return Effect.catchIf(
        runTransaction(sql, whole, "BEGIN ISOLATION LEVEL SERIALIZABLE"),
        isOutcomeUnknown,
        (error) => {
          const known = done;
          if (known?.xid === undefined) return Effect.fail(error);
          return Effect.flatMap(readOutcome(sql, known.xid), (status) => {
            if (status === "committed") return Effect.succeed(known.value);
            return status === "aborted"
              ? Effect.fail(error)
              : Effect.die(new OutcomeUnknown("COMMIT", { cause: error }));
          });
        },
      );
    });
};

/** Runs a transaction. If its connection is lost, the rollback fails too, and the failure becomes a defect of the cleanup. */
const runTransaction = <A, E>(
  sql: SqlClient.SqlClient,
  body: Effect.Effect<A, E>,
  begin: string,
): Effect.Effect<A, E | SqlError> =>
  Effect.provideService(sql.withTransaction(body), SqlClient.BeginTransaction, begin).pipe(
    Effect.provideService(Clock.Clock, realClock),
    Effect.catchDefect((defect) => (isSqlError(defect) ? Effect.fail(defect) : Effect.die(defect))),
  );

const readIsolation = (sql: SqlClient.SqlClient): Effect.Effect<string, SqlError> =>
  Effect.map(
    sql<{ readonly level: string }>`SELECT current_setting('transaction_isolation') AS level`,
    ([row]) => row?.level ?? "",
  );

const isolationError = (level: string): RecorderError =>
  new RecorderError({
    reason: "bad_option",
    run_id: "",
    message: `the client began a transaction of level ${level === "" ? "unknown" : level}, but the recorder needs serializable: its withTransaction does not follow BeginTransaction of effect/sql. Use PgClient of @effect/sql-pg`,
  });

/** Transaction ids by connection. Each transaction has its own connection object. */
const transactionIds = new WeakMap<object, string>();

/** Start of the server, by its own clock. It differs on another server, for example on a promoted standby. */
const startedAt = "extract(epoch FROM pg_postmaster_start_time())::text";

/** Suffix of an id: start of the transaction by the server's clock, in seconds since the epoch, and start of the server. */
const sinceWhen = `'@' || extract(epoch FROM now())::text || '@' || ${startedAt}`;

/** Extra column that saves a query for the id. `rememberXid` receives it. */
export const idColumn = `, pg_current_xact_id()::text || ${sinceWhen} AS xid`;

/** Remembers the transaction id that a statement returned. */
export const rememberXid = (sql: SqlClient.SqlClient, xid: string | undefined): Effect.Effect<void> =>
  Effect.contextWith((context: Context.Context<never>) => {
    const [connection] = Context.getOrUndefined(context, sql.transactionService) ?? [];
    if (connection !== undefined && xid !== undefined) transactionIds.set(connection, xid);
    return Effect.void;
  });

/** Returns the transaction's id; undefined if it has written nothing. */
const readTransactionId = (sql: SqlClient.SqlClient): Effect.Effect<string | undefined, SqlError> =>
  Effect.contextWith((context: Context.Context<never>) => {
    const [connection] = Context.getOrUndefined(context, sql.transactionService) ?? [];
    const known = connection === undefined ? undefined : transactionIds.get(connection);
    if (known !== undefined) return Effect.succeed(known);
    return Effect.map(
      sql<{ readonly xid: string | null }>`
        SELECT pg_current_xact_id_if_assigned()::text || ${sql.literal(sinceWhen)} AS xid`,
      ([row]) => row?.xid ?? undefined,
    );
  });

/**
 * Error code for an id that the server has not assigned yet. Of the parameters of the statement in `readOutcome`, only the id can be
 * invalid.
 */
const notGivenYet = "22023";

type Outcome = "committed" | "aborted" | "unknown";

/**
 * Asks the server for the outcome of a transaction. The pauses are in real time, because the socket is too.
 *
 * A crashed server reassigns ids whose transactions are not in its log, and a promoted standby reassigns ids that it never received. So a
 * commit under this id may be another process's, and it does not count if the server has crashed or changed since. A restarted or different
 * server has a different start time, and a server that recovers from a crashed backend resets its statistics.
 *
 * An id that a server has not assigned yet belongs to a transaction that is not in its log, so no change of that transaction can exist. A
 * standby does not know all ids that its primary has assigned, so its answers do not count.
 *
 * @param xid id and start of the transaction, and start of its server, as in `idColumn`
 */
export const readOutcome = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, xid: string) {
  const begunAt = monotonicMs(realClock);
  const [id = "", at = "", started = ""] = xid.split("@");
  // If the server is unresponsive, each query lasts until the connection timeout.
  do {
    const rows = yield* Effect.catch(
      sql<{ readonly status: string | null; readonly crashed: boolean }>`
        SELECT CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE pg_xact_status(${id}::text::xid8) END AS status,
          ${sql.literal(startedAt)} <> ${started}::text
            OR extract(epoch FROM pg_stat_get_bgwriter_stat_reset_time()) >= ${at}::double precision AS crashed`,
      (error) => Effect.succeed(sqlStateOf(error) === notGivenYet ? [{ status: "aborted", crashed: true }] : []),
    );
    const status = rows[0]?.status;
    if (status === "committed") return (rows[0]?.crashed === false ? status : "unknown") satisfies Outcome;
    if (status === "aborted") return status satisfies Outcome;
    // The server no longer remembers a transaction this old.
    if (status === null) return "unknown" satisfies Outcome;
    yield* sleepRealTime(askPauseMs);
  } while (monotonicMs(realClock) - begunAt < askedMs);
  return "unknown" satisfies Outcome;
});
