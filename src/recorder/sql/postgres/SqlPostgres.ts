/**
 * Runs the store's transactions on PostgreSQL, and finds out what became of one whose connection broke at its COMMIT.
 *
 * Writes are SERIALIZABLE: the store decides by what it has read, and with less two processes may each decide by rows that
 * the other one changes. A transaction that PostgreSQL undoes for that is run again by its caller.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { isSqlError, type SqlError } from "effect/sql/SqlError";
import { inRealTime, monotonicMs, realClock } from "../../MonotonicTime.ts";
import { RecorderError } from "../../RecorderError.ts";
import { leavesOpen, OutcomeUnknown, sqlStateOf } from "./SqlState.ts";

/** Runs a body as one transaction. */
export type Transact = <A, E>(body: Effect.Effect<A, E>) => Effect.Effect<A, E | SqlError>;

/** So long the server is asked what became of a transaction, before that counts as unknown, in milliseconds. */
const askedMs = 5_000;

/**
 * Longest that a statement which makes tables may take, and longest wait for a process that makes them, in milliseconds. No
 * statement takes longer.
 */
export const migrationMs = 18_000;

/** From one such question to the next, in milliseconds. */
const askPauseMs = 100;

/** Sees the database at one moment, however many tables are read, and takes no lock. */
export const read =
  (sql: SqlClient.SqlClient): Transact =>
  (body) =>
    within(sql, body, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY");

/**
 * Makes tables while no other process does. What another one has made until then is seen: this is the one transaction that
 * must see more than the moment in which it began.
 *
 * @param name what the lock is called: the store's prefix
 */
export const migrate =
  (sql: SqlClient.SqlClient, name: string): Transact =>
  (body) => {
    const locked = Effect.gen(function* () {
      const limit = String(migrationMs);
      // To make tables takes longer than a write waits, and so does it to wait for who makes them.
      yield* sql`SELECT set_config('lock_timeout', ${limit}, true), set_config('statement_timeout', ${limit}, true)`;
      // Stores of one name in two schemas are two stores.
      yield* sql`SELECT pg_advisory_xact_lock(hashtextextended(concat(current_schema(), '.', ${name}::text), 0))`;
      return yield* body;
    });
    return within(sql, locked, "BEGIN ISOLATION LEVEL READ COMMITTED");
  };

/**
 * Runs a transaction that may write. It fails with `OutcomeUnknown`, as a defect, only where the server cannot be asked
 * whether it was committed; any other failure says that nothing was written.
 */
export const write = (sql: SqlClient.SqlClient): Transact => {
  let demanded = false;
  const demand = Effect.suspend(() => {
    if (demanded) return Effect.void;
    return Effect.flatMap(isolation(sql), (level) => {
      if (level !== "serializable") return Effect.die(notSerializable(level));
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
        done = { value, xid: yield* transactionId(sql) };
        return value;
      });
      return Effect.catchIf(within(sql, whole, "BEGIN ISOLATION LEVEL SERIALIZABLE"), leavesOpen, (error) => {
        const known = done;
        if (known?.xid === undefined) return Effect.fail(error);
        return Effect.flatMap(outcome(sql, known.xid), (status) => {
          if (status === "committed") return Effect.succeed(known.value);
          return status === "aborted" ? Effect.fail(error) : Effect.die(new OutcomeUnknown("COMMIT", { cause: error }));
        });
      });
    });
};

/** A transaction whose connection is lost cannot be undone either, and the loss comes back as a defect of its cleanup. */
const within = <A, E>(
  sql: SqlClient.SqlClient,
  body: Effect.Effect<A, E>,
  begin: string,
): Effect.Effect<A, E | SqlError> =>
  Effect.provideService(sql.withTransaction(body), SqlClient.BeginTransaction, begin).pipe(
    Effect.provideService(Clock.Clock, realClock),
    Effect.catchDefect((defect) => (isSqlError(defect) ? Effect.fail(defect) : Effect.die(defect))),
  );

const isolation = (sql: SqlClient.SqlClient): Effect.Effect<string, SqlError> =>
  Effect.map(
    sql<{ readonly level: string }>`SELECT current_setting('transaction_isolation') AS level`,
    ([row]) => row?.level ?? "",
  );

const notSerializable = (level: string): RecorderError =>
  new RecorderError({
    reason: "bad_option",
    run_id: "",
    message: `the client began a transaction that is ${level === "" ? "of no known level" : level} where serializable was asked for: its withTransaction does not follow BeginTransaction of effect/sql. Use PgClient of @effect/sql-pg`,
  });

/** Ids that a statement of the transaction has told, by its connection: each transaction has an object of its own for that. */
const told = new WeakMap<object, string>();

/** When the server was started, as it says: another server, such as a standby that has taken over, says something else. */
const startedAt = "extract(epoch FROM pg_postmaster_start_time())::text";

/** Stands behind an id: when the transaction began by the server's clock, in seconds since the epoch, and when that server was started. */
const sinceWhen = `'@' || extract(epoch FROM now())::text || '@' || ${startedAt}`;

/** What a statement selects beside its own columns, so that the id need not be asked for; `note` takes it. */
export const idColumn = `, pg_current_xact_id()::text || ${sinceWhen} AS xid`;

/** Takes note of a transaction's id that one of its statements gave. */
export const note = (sql: SqlClient.SqlClient, xid: string | undefined): Effect.Effect<void> =>
  Effect.contextWith((context: Context.Context<never>) => {
    const [connection] = Context.getOrUndefined(context, sql.transactionService) ?? [];
    if (connection !== undefined && xid !== undefined) told.set(connection, xid);
    return Effect.void;
  });

/** The transaction's id; undefined where it has written nothing. */
const transactionId = (sql: SqlClient.SqlClient): Effect.Effect<string | undefined, SqlError> =>
  Effect.contextWith((context: Context.Context<never>) => {
    const [connection] = Context.getOrUndefined(context, sql.transactionService) ?? [];
    const known = connection === undefined ? undefined : told.get(connection);
    if (known !== undefined) return Effect.succeed(known);
    return Effect.map(
      sql<{ readonly xid: string | null }>`
        SELECT pg_current_xact_id_if_assigned()::text || ${sql.literal(sinceWhen)} AS xid`,
      ([row]) => row?.xid ?? undefined,
    );
  });

/** The code by which a server refuses to tell of a number that it has not given yet: the one parameter that may be invalid there. */
const notGivenYet = "22023";

type Outcome = "committed" | "aborted" | "unknown";

/**
 * What became of a transaction, by the server's word. It is asked in real time: the socket is.
 *
 * A server that crashed gives numbers again whose transactions are not in its log: one that is committed under that number may be
 * another process's. So does a standby that has taken over without having heard of them. A server that starts again, or is another one, was started
 * at another time, and one that recovers by itself from a process that died begins its statistics anew.
 *
 * A number that such a server has not given yet is of a transaction that is not in its log, so that nothing of it can be there. A
 * standby does not know every number that its primary has given, and says nothing.
 *
 * @param xid its id, its beginning and its server's start, as `idColumn` gives them
 */
export const outcome = Effect.fnUntraced(function* (sql: SqlClient.SqlClient, xid: string) {
  const begunAt = monotonicMs(realClock);
  const [id = "", at = "", started = ""] = xid.split("@");
  // A question to a server that does not answer lasts as long as a connection is waited for.
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
    // Too old for the server to know of it.
    if (status === null) return "unknown" satisfies Outcome;
    yield* inRealTime(askPauseMs);
  } while (monotonicMs(realClock) - begunAt < askedMs);
  return "unknown" satisfies Outcome;
});
