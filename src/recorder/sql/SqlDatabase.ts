/**
 * Runs the store's transactions. It waits for locks of other processes, creates missing tables, and reports failures as `RecorderError`.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Random from "effect/Random";
import type * as SqlClient from "effect/sql/SqlClient";
import { isSqlError, type SqlError } from "effect/sql/SqlError";
import { makeDigester } from "../Digest.ts";
import { monotonicMs, realClock, sleepRealTime } from "../MonotonicTime.ts";
import { RecorderError } from "../RecorderError.ts";
import { failureOf, isUndecided, OutcomeUnknown } from "./postgres/SqlState.ts";
import * as SqlFailure from "./SqlFailure.ts";
import * as SqlSchema from "./SqlSchema.ts";
import type { SqlTables } from "./SqlTables.ts";
import type * as SqlNodeSqlite from "./sqlite/SqlNodeSqlite.ts";

/** Maximum pause before a lock is tried again, in milliseconds. */
const lockPauseMs = 8;

/** Maximum pause before an unreachable server is tried again, in milliseconds. */
const awayPauseMs = 200;

/** Maximum serialisation conflicts of one transaction before it fails. */
const conflictsMax = 100;

/** Maximum random pause before a conflicting transaction restarts, as a multiple of the pause for a lock. */
const conflictSpread = 4;

/**
 * First pause before a lock is tried again, in milliseconds. Each pause doubles the previous one. A commit of another process takes less
 * than this.
 */
const lockFirstPauseMs = 1;

/** Default maximum wait for another program's lock, in milliseconds. After that a write fails as `locked`. */
export const lockWaitMsDefault = 5_000;

/** The reason why nothing may be written, if this process knows that a newer program has changed the tables. */
export interface Newer {
  unwritable: RecorderError | undefined;
}

/** Maximum wait for a lock once the process is about to exit, in milliseconds. */
const hurriedMs = 1_000;

/**
 * Commits one statement on a server as a SERIALIZABLE transaction in one round trip. Returns its rows, or undefined if
 * the commit is not confirmed.
 */
export type CommitOne = (
  text: string,
  values: ReadonlyArray<string | ReadonlyArray<string>>,
) => Effect.Effect<ReadonlyArray<object> | undefined, SqlError>;

/** Options of the store's database. */
export interface DatabaseOptions {
  readonly commitOne?: CommitOne;
  /** Shared by the clients of one process, so that all of them know whether a newer program has changed the tables. */
  readonly newer?: Newer;
  /** Name of the database for messages. */
  readonly place: string;
  /** Timeout for another program's lock, in milliseconds. */
  readonly lockWaitMs?: number;
  /**
   * `client`: the program also uses the client and may hold its connection. `tables`: the database also has tables of the program, which
   * stay untouched.
   */
  readonly shared: { readonly client: boolean; readonly tables: boolean };
}

/** The database of the store, with its transactions. */
export class SqlDatabase {
  readonly tables: SqlTables;
  /** True after a write found the disk full, until a probe finds room. */
  isFull = false;
  readonly #options: DatabaseOptions;
  #digest: ReturnType<typeof makeDigester> | undefined;

  readonly #patience: LockPatience;
  readonly #newer: Newer;

  constructor(tables: SqlTables, options: DatabaseOptions) {
    this.tables = tables;
    this.#options = options;
    this.#newer = options.newer ?? { unwritable: undefined };
    this.#patience = new LockPatience(options.lockWaitMs ?? lockWaitMsDefault);
    const { step } = tables.dialect;
    // The program's own client gets no synchronous commit, because its connection may be inside a transaction of another fiber.
    if (step !== undefined && !options.shared.client) {
      this.step = (rows) => {
        const made = this.#newer.unwritable === undefined && step(rows);
        if (made === true) this.#patience.forgetLock();
        return made;
      };
    }
    this.free = options.shared.client ? this.#explain(this.#runOutsideTransaction(Effect.void, true)) : Effect.void;
  }

  /** Creates missing tables and reads the store's key. */
  readonly ready: Effect.Effect<void, RecorderError> = Effect.suspend(() =>
    this.#explain(this.#runOutsideTransaction(this.#prepare, true)),
  );

  /**
   * Runs a transaction that may write. The body may run again, so it must change only the database. The transaction never joins a
   * transaction of its caller, which could roll it back.
   */
  write<A, E>(
    body: Effect.Effect<A, E | SqlError | SqlFailure.RowChanged>,
  ): Effect.Effect<A, Explained<E> | RecorderError> {
    if (this.#newer.unwritable !== undefined) return Effect.fail(this.#newer.unwritable);
    const transaction = this.#connected(body, this.tables.dialect.write);
    const written = Effect.tap(this.#withTables(transaction), () => Effect.sync(() => this.#patience.forgetLock()));
    return this.#explain(this.#runOutsideTransaction(written, true));
  }

  /**
   * Commits statements synchronously. Any result except true means that nothing is committed; `write` then reports the reason. Undefined if
   * the store cannot commit synchronously.
   */
  readonly step: SqlNodeSqlite.Step | undefined;

  /** True if a statement can be committed in one round trip. */
  get canCommitOne(): boolean {
    return this.#options.commitOne !== undefined && this.#newer.unwritable === undefined;
  }

  /**
   * Commits a statement in one round trip. The statement may run outside its transaction, so it must itself check everything that it relies
   * on.
   *
   * @returns the rows of the statement, or undefined if the commit is not confirmed; `write` then reports why
   */
  commitOne(template: string, values: Parameters<CommitOne>[1]): Effect.Effect<ReadonlyArray<object> | undefined> {
    const { commitOne } = this.#options;
    if (commitOne === undefined) return Effect.undefined;
    return commitOne(this.tables.textOf(template), values).pipe(
      Effect.tap((rows) => Effect.sync(() => rows && this.#patience.forgetLock())),
      Effect.catchCause(() => Effect.undefined),
      Effect.withTracerEnabled(false),
    );
  }

  /** Shortens all waits for locks and servers, because the process is about to exit. */
  shortenTimeouts(): void {
    this.#patience.shortenTimeouts();
  }

  /** Reads a snapshot. A reader never waits for a writer and does not need a writable file. */
  read<A, E>(body: Effect.Effect<A, E | SqlError>): Effect.Effect<A, Explained<E> | RecorderError> {
    const snapshot = this.#connected(body, this.tables.dialect.read);
    return this.#explain(this.#runOutsideTransaction(this.#withTables(snapshot), false));
  }

  /**
   * Runs a statement as its own transaction, at the database's default isolation. Do not use it for rows on which the record of a run
   * depends.
   */
  execute<A, E>(statement: Effect.Effect<A, E | SqlError>): Effect.Effect<A, Explained<E> | RecorderError> {
    const { unwritable } = this.#newer;
    if (unwritable !== undefined) return Effect.fail(unwritable);
    const checked = Effect.catchIf(this.#withTables(statement), isUndecided, (cause) =>
      Effect.die(new OutcomeUnknown("a statement", { cause })),
    );
    return this.#explain(this.#runOutsideTransaction(checked, true));
  }

  /**
   * Fails if a write would wait for a transaction of its own caller. SQLite has one connection for writing, so the two would deadlock.
   */
  readonly free: Effect.Effect<void, RecorderError>;

  digest(content: string): Effect.Effect<string, RecorderError> {
    return Effect.suspend(() => {
      if (this.#digest !== undefined) return this.#digest(content);
      return Effect.andThen(
        this.ready,
        Effect.suspend(() => this.digest(content)),
      );
    });
  }

  readonly #prepare = Effect.suspend(() =>
    Effect.map(SqlSchema.prepare(this.tables, this.#options.place, this.#options.shared.tables), (found) => {
      this.#digest = makeDigester(found.key);
      this.#newer.unwritable = found.unwritable;
    }).pipe(
      Effect.tapError((error) =>
        Effect.sync(() => {
          if (error instanceof RecorderError && error.reason === "newer_schema") this.#newer.unwritable = error;
        }),
      ),
    ),
  );

  /** Runs a body, and creates the tables first if the file was replaced by an empty one. */
  #withTables<A, E>(body: Effect.Effect<A, E | SqlError>): Effect.Effect<A, E | SqlError | RecorderError> {
    return Effect.catchIf(body, SqlSchema.isMissingTable, () => Effect.andThen(this.#prepare, body));
  }

  /** Runs a body outside the caller's transaction, because the store has its own transactions. */
  #runOutsideTransaction<A, E>(
    body: Effect.Effect<A, E>,
    writes: boolean,
  ): Effect.Effect<A, E | SqlFailure.ConnectionHeld> {
    if (!this.#options.shared.client) return body;
    const { sql } = this.tables;
    return Effect.contextWith((context: Context.Context<never>) => {
      if (Context.getOrUndefined(context, sql.transactionService) === undefined) return body;
      const alone = Effect.updateContext(body, (it: Context.Context<never>) =>
        Context.omit(sql.transactionService)(it),
      );
      return sql.onDialectOrElse({
        sqlite: () =>
          Effect.flatMap(isOpen(sql), (open): Effect.Effect<A, E | SqlFailure.ConnectionHeld> => {
            if (!open) return alone;
            // A read needs no other connection. It sees committed data, because the caller's transaction has not written to the store.
            return writes ? Effect.fail(new SqlFailure.ConnectionHeld()) : body;
          }),
        orElse: () => alone,
      });
    });
  }

  /** Runs a body on a connection. Fails as locked if a program holds the connection for longer than the lock timeout. */
  #connected<A, E>(
    body: Effect.Effect<A, E>,
    begin: (body: Effect.Effect<A, E>) => Effect.Effect<A, E | SqlError>,
  ): Effect.Effect<A, E | SqlError | SqlFailure.ConnectionHeld> {
    if (!this.#options.shared.client) return begin(body);
    return Effect.suspend(() => {
      const triedAt = monotonicMs(realClock);
      let begun = false;
      const marked = Effect.suspend(() => {
        begun = true;
        return body;
      });
      const late = Effect.suspend(() => {
        if (begun) return Effect.never;
        this.#patience.shouldRetry(triedAt, false);
        return Effect.fail(new SqlFailure.ConnectionHeld());
      });
      return Effect.raceFirst(begin(marked), Effect.andThen(sleepRealTime(this.#patience.leftMs), late));
    });
  }

  #explain<A, E>(body: Effect.Effect<A, E>): Effect.Effect<A, Explained<E> | RecorderError> {
    const failWith = (cause: unknown) => {
      const error = SqlFailure.explain(cause, this.#options.place);
      if (error.reason === "disk_full") this.isFull = true;
      return Effect.andThen(SqlFailure.count(error), Effect.fail(error));
    };
    return retryWhileLocked(body, this.#patience).pipe(
      Effect.catch((error): Effect.Effect<never, Explained<E> | RecorderError> => {
        if (isOfDatabase(error)) return failWith(error);
        // Any other failure comes from the body.
        return Effect.andThen(SqlFailure.countDamage(error), Effect.fail(error as Explained<E>));
      }),
      // A cleanup that fails becomes a defect of the transaction. The caller gets that defect as an ordinary failure.
      Effect.catchDefect(failWith),
      // A program that traces its runs wants its own spans, not one for every statement of the store.
      Effect.withTracerEnabled(false),
    );
  }
}

/** The failures that remain after the failures of the database have become `RecorderError`. */
type Explained<E> = Exclude<E, SqlError | SqlFailure.RowChanged | SqlFailure.ConnectionHeld>;

const isOfDatabase = (error: unknown): error is SqlError | SqlFailure.RowChanged | SqlFailure.ConnectionHeld =>
  isSqlError(error) || error instanceof SqlFailure.RowChanged || error instanceof SqlFailure.ConnectionHeld;

/** True if the transaction in the caller's services is still open. A fiber may outlive the transaction in which it was forked. */
const isOpen = (sql: SqlClient.SqlClient): Effect.Effect<boolean> =>
  Effect.map(Effect.exit(sql.afterCommit(Effect.void)), Exit.isSuccess);

/**
 * Limits the wait for locks. Only the first write that meets a lock uses the whole timeout. So a process can exit soon while its store is
 * locked, even if several writes are pending.
 */
class LockPatience {
  #waitMs: number;
  #metAt = 0;
  #lastMetAt = Number.NEGATIVE_INFINITY;

  constructor(waitMs: number) {
    this.#waitMs = waitMs;
  }

  /**
   * Returns true if a write that met the lock should try again. If no write has met the lock for a whole timeout, the next lock counts as a
   * new one. The duration of a try does not count, because it may exceed the timeout if a server is unresponsive.
   *
   * @param triedAt time at which the write began to try
   * @param again true if the same write has met the lock before
   */
  shouldRetry(triedAt: number, again: boolean): boolean {
    const now = monotonicMs(realClock);
    const isKnown = again ? this.#lastMetAt > Number.NEGATIVE_INFINITY : triedAt - this.#lastMetAt <= this.#waitMs;
    if (!isKnown) this.#metAt = now;
    this.#lastMetAt = now;
    return now - this.#metAt < this.#waitMs;
  }

  /** Remaining wait for a lock that is met now, in milliseconds; at least enough for one try. */
  get leftMs(): number {
    const now = monotonicMs(realClock);
    const left = now - this.#lastMetAt > this.#waitMs ? this.#waitMs : this.#waitMs - (now - this.#metAt);
    return Math.max(lockPauseMs, left);
  }

  /** Limits each further wait to `hurriedMs`, because the process is about to exit. */
  shortenTimeouts(): void {
    this.#waitMs = Math.min(this.#waitMs, hurriedMs);
  }

  /** Forgets the lock, because a write succeeded. */
  forgetLock(): void {
    this.#lastMetAt = Number.NEGATIVE_INFINITY;
  }
}

const retryWhileLocked = <A, E, R>(
  body: Effect.Effect<A, E, R>,
  patience: LockPatience,
  pauseMs = lockFirstPauseMs,
  tried = 1,
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const triedAt = monotonicMs(realClock);
    return Effect.catchIf(
      body,
      (error) => isPassing(error, tried) && patience.shouldRetry(triedAt, tried > 1),
      (error) =>
        Effect.andThen(
          Effect.flatMap(pauseFor(error, pauseMs), sleepRealTime),
          retryWhileLocked(body, patience, Math.min(pauseMs * 2, awayPauseMs), tried + 1),
        ),
    );
  });

/** True if the same transaction may succeed if it is tried again. */
const isPassing = (error: unknown, tried: number): boolean => {
  if (error instanceof SqlFailure.RowChanged) return true;
  const server = failureOf(error);
  // The server itself has already waited for the lock, so only these failures are worth another try.
  if (server !== undefined)
    return server === "away" || server === "undecided" || (server === "conflicted" && tried < conflictsMax);
  return isSqlError(error) && SqlFailure.explain(error, "").reason === "locked";
};

/** Returns the pause before the next try. Conflicting transactions restart at random times. */
const pauseFor = (error: unknown, pauseMs: number): Effect.Effect<number> => {
  const server = failureOf(error);
  if (server === "away" || server === "undecided") return Effect.succeed(pauseMs);
  const lockMs = Math.min(pauseMs, lockPauseMs);
  return server === "conflicted" ? Random.nextBetween(0, lockMs * conflictSpread) : Effect.succeed(lockMs);
};
