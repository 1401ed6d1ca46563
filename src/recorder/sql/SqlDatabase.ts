/**
 * Runs the store's transactions: it waits for the locks of other processes, makes missing tables, and puts a failure into the
 * recorder's words.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Random from "effect/Random";
import type * as SqlClient from "effect/sql/SqlClient";
import { isSqlError, type SqlError } from "effect/sql/SqlError";
import { digester } from "../Digest.ts";
import { inRealTime, monotonicMs, realClock } from "../MonotonicTime.ts";
import { RecorderError } from "../RecorderError.ts";
import { failureOf, isUndecided, OutcomeUnknown } from "./postgres/SqlState.ts";
import * as SqlFailure from "./SqlFailure.ts";
import * as SqlSchema from "./SqlSchema.ts";
import type { SqlTables } from "./SqlTables.ts";
import type * as SqlNodeSqlite from "./sqlite/SqlNodeSqlite.ts";

/** Longest pause before a lock is tried again, in milliseconds. */
const lockPauseMs = 8;

/** Longest pause before a server that cannot be reached is tried again, in milliseconds. */
const awayPauseMs = 200;

/** Most times that PostgreSQL undoes one transaction for the sake of others before that is a failure. */
const conflictsMax = 100;

/** Transactions that were undone for each other begin again at a moment within so many pauses for a lock. */
const conflictSpread = 4;

/** First pause, in milliseconds; each is twice as long as the one before. Another process's commit takes less. */
const lockFirstPauseMs = 1;

/** Longest wait for another program's lock by default, in milliseconds, before a write fails as `locked`. */
export const lockWaitMsDefault = 5_000;

/** Why nothing may be written, as far as a process knows: a newer program has changed the tables. */
export interface Newer {
  unwritable: RecorderError | undefined;
}

/** The same once the process is about to end, in milliseconds. */
const hurriedMs = 1_000;

/** How the store uses its database. */
export interface DatabaseOptions {
  /** What several clients of one process know together. */
  readonly newer?: Newer;
  /** The database, as a person knows it. */
  readonly place: string;
  /** Longest wait for another program's lock, in milliseconds. */
  readonly lockWaitMs?: number;
  /** What is a program's own: the client, whose connection it may hold, and the database, whose tables are left alone. */
  readonly shared: { readonly client: boolean; readonly tables: boolean };
}

/** The store's database. */
export class SqlDatabase {
  readonly tables: SqlTables;
  /** A write met a full disk, and no probe has found room since. */
  isFull = false;
  readonly #options: DatabaseOptions;
  #digest: ReturnType<typeof digester> | undefined;

  readonly #patience: LockPatience;
  readonly #newer: Newer;

  constructor(tables: SqlTables, options: DatabaseOptions) {
    this.tables = tables;
    this.#options = options;
    this.#newer = options.newer ?? { unwritable: undefined };
    this.#patience = new LockPatience(options.lockWaitMs ?? lockWaitMsDefault);
    const { step } = tables.dialect;
    // A program's own connection may be inside of a transaction that the program's other fibers know of.
    if (step !== undefined && !options.shared.client) {
      this.step = (rows) => {
        const made = this.#newer.unwritable === undefined && step(rows);
        if (made === true) this.#patience.over();
        return made;
      };
    }
    this.free = options.shared.client ? this.#explained(this.#apart(Effect.void, true)) : Effect.void;
  }

  /** Makes the tables where they are missing, and reads the store's key. */
  readonly ready: Effect.Effect<void, RecorderError> = Effect.suspend(() =>
    this.#explained(this.#apart(this.#prepared, true)),
  );

  /**
   * Runs a transaction that may write. The body may be run again; it touches nothing but the database. It is never part of
   * a transaction of its caller, with which it could be undone.
   */
  write<A, E>(
    body: Effect.Effect<A, E | SqlError | SqlFailure.RowChanged>,
  ): Effect.Effect<A, Explained<E> | RecorderError> {
    if (this.#newer.unwritable !== undefined) return Effect.fail(this.#newer.unwritable);
    const transaction = this.#connected(body, this.tables.dialect.write);
    const written = Effect.tap(this.#withTables(transaction), () => Effect.sync(() => this.#patience.over()));
    return this.#explained(this.#apart(written, true));
  }

  /**
   * Commits statements in this very step. Anything but true says that nothing is committed, whatever the reason: `write` finds out. Left
   * out where the store cannot.
   */
  readonly step: SqlNodeSqlite.Step | undefined;

  /** The process is about to end: a lock, and a server that is away, are waited for a moment only. */
  hurry(): void {
    this.#patience.hurry();
  }

  /** Reads at one moment. A reader never waits for a writer, and needs no file that can be written. */
  read<A, E>(body: Effect.Effect<A, E | SqlError>): Effect.Effect<A, Explained<E> | RecorderError> {
    const snapshot = this.#connected(body, this.tables.dialect.read);
    return this.#explained(this.#apart(this.#withTables(snapshot), false));
  }

  /** Runs a statement as a transaction by itself, of the database's own isolation: for rows that no run's record rests on. */
  once<A, E>(statement: Effect.Effect<A, E | SqlError>): Effect.Effect<A, Explained<E> | RecorderError> {
    const { unwritable } = this.#newer;
    if (unwritable !== undefined) return Effect.fail(unwritable);
    const told = Effect.catchIf(this.#withTables(statement), isUndecided, (cause) =>
      Effect.die(new OutcomeUnknown("a statement", { cause })),
    );
    return this.#explained(this.#apart(told, true));
  }

  /**
   * Fails where a write would have to wait for a transaction of its own caller. SQLite has one connection for writing: the
   * caller waits for the record, and the record would wait for the caller.
   */
  readonly free: Effect.Effect<void, RecorderError>;

  /** The digest under the store's key. */
  digest(content: string): Effect.Effect<string, RecorderError> {
    return Effect.suspend(() => {
      if (this.#digest !== undefined) return this.#digest(content);
      return Effect.andThen(
        this.ready,
        Effect.suspend(() => this.digest(content)),
      );
    });
  }

  readonly #prepared = Effect.suspend(() =>
    Effect.map(SqlSchema.ready(this.tables, this.#options.place, this.#options.shared.tables), (found) => {
      this.#digest = digester(found.key);
      this.#newer.unwritable = found.unwritable;
    }).pipe(
      Effect.tapError((error) =>
        Effect.sync(() => {
          if (error instanceof RecorderError && error.reason === "newer_schema") this.#newer.unwritable = error;
        }),
      ),
    ),
  );

  /** A file that was replaced by an empty one gets its tables when they are missed. */
  #withTables<A, E>(body: Effect.Effect<A, E | SqlError>): Effect.Effect<A, E | SqlError | RecorderError> {
    return Effect.catchIf(body, SqlSchema.isMissingTable, () => Effect.andThen(this.#prepared, body));
  }

  /** Leaves a transaction that the caller is in: the store has its own. */
  #apart<A, E>(body: Effect.Effect<A, E>, writes: boolean): Effect.Effect<A, E | SqlFailure.ConnectionHeld> {
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
            // A read sees what is committed, as the caller has written nothing of the store, and needs no other connection.
            return writes ? Effect.fail(new SqlFailure.ConnectionHeld()) : body;
          }),
        orElse: () => alone,
      });
    });
  }

  /** A program that holds the connection for longer than a lock is waited for is reported as a lock. */
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
        this.#patience.waits(triedAt, false);
        return Effect.fail(new SqlFailure.ConnectionHeld());
      });
      return Effect.raceFirst(begin(marked), Effect.andThen(inRealTime(this.#patience.leftMs), late));
    });
  }

  #explained<A, E>(body: Effect.Effect<A, E>): Effect.Effect<A, Explained<E> | RecorderError> {
    const explained = (cause: unknown) => {
      const error = SqlFailure.explained(cause, this.#options.place);
      if (error.reason === "disk_full") this.isFull = true;
      return Effect.andThen(SqlFailure.count(error), Effect.fail(error));
    };
    return patiently(body, this.#patience).pipe(
      Effect.catch((error): Effect.Effect<never, Explained<E> | RecorderError> => {
        if (isOfDatabase(error)) return explained(error);
        // A failure that is not the database's is the body's own.
        return Effect.andThen(SqlFailure.countDamage(error), Effect.fail(error as Explained<E>));
      }),
      // A cleanup that fails dies inside of the transaction. Its caller is told of it as of any other failure.
      Effect.catchDefect(explained),
      // A program that traces its runs wants spans of them, and not of every statement here.
      Effect.withTracerEnabled(false),
    );
  }
}

/** The failures that are left when those of the database are put into the recorder's words. */
type Explained<E> = Exclude<E, SqlError | SqlFailure.RowChanged | SqlFailure.ConnectionHeld>;

const isOfDatabase = (error: unknown): error is SqlError | SqlFailure.RowChanged | SqlFailure.ConnectionHeld =>
  isSqlError(error) || error instanceof SqlFailure.RowChanged || error instanceof SqlFailure.ConnectionHeld;

/** Whether the transaction that the caller's services name goes on: a fiber may outlive the one that it was forked in. */
const isOpen = (sql: SqlClient.SqlClient): Effect.Effect<boolean> =>
  Effect.map(Effect.exit(sql.afterCommit(Effect.void)), Exit.isSuccess);

/**
 * How long a lock is waited for: once, by the write that meets it first, and not anew by every later one. A process that has
 * to end while its store is locked has several things to write one after the other, and still ends.
 */
class LockPatience {
  #waitMs: number;
  #metAt = 0;
  #lastMetAt = Number.NEGATIVE_INFINITY;

  constructor(waitMs: number) {
    this.#waitMs = waitMs;
  }

  /**
   * The lock was met (again): whether to try again. A lock that no write has met for the whole wait is another one. What a try
   * itself lasts says nothing: one of a server that does not answer may last longer than the wait.
   *
   * @param triedAt when the write began to try
   * @param again the same write has met it before
   */
  waits(triedAt: number, again: boolean): boolean {
    const now = monotonicMs(realClock);
    const isKnown = again ? this.#lastMetAt > Number.NEGATIVE_INFINITY : triedAt - this.#lastMetAt <= this.#waitMs;
    if (!isKnown) this.#metAt = now;
    this.#lastMetAt = now;
    return now - this.#metAt < this.#waitMs;
  }

  /** How long a lock that is met now is still waited for, in milliseconds: at least so long that it is tried. */
  get leftMs(): number {
    const now = monotonicMs(realClock);
    const left = now - this.#lastMetAt > this.#waitMs ? this.#waitMs : this.#waitMs - (now - this.#metAt);
    return Math.max(lockPauseMs, left);
  }

  /** From now on nothing is waited for longer than that. */
  hurry(): void {
    this.#waitMs = Math.min(this.#waitMs, hurriedMs);
  }

  /** A write got through. */
  over(): void {
    this.#lastMetAt = Number.NEGATIVE_INFINITY;
  }
}

const patiently = <A, E, R>(
  body: Effect.Effect<A, E, R>,
  patience: LockPatience,
  pauseMs = lockFirstPauseMs,
  tried = 1,
): Effect.Effect<A, E, R> =>
  Effect.suspend(() => {
    const triedAt = monotonicMs(realClock);
    return Effect.catchIf(
      body,
      (error) => isPassing(error, tried) && patience.waits(triedAt, tried > 1),
      (error) =>
        Effect.andThen(
          Effect.flatMap(pauseFor(error, pauseMs), inRealTime),
          patiently(body, patience, Math.min(pauseMs * 2, awayPauseMs), tried + 1),
        ),
    );
  });

/** Whether the same transaction may get through a moment later. */
const isPassing = (error: unknown, tried: number): boolean => {
  if (error instanceof SqlFailure.RowChanged) return true;
  const server = failureOf(error);
  // The server itself has waited for the lock.
  if (server !== undefined)
    return server === "away" || server === "undecided" || (server === "conflicted" && tried < conflictsMax);
  return isSqlError(error) && SqlFailure.explained(error, "").reason === "locked";
};

/** Transactions that were undone for each other begin apart. */
const pauseFor = (error: unknown, pauseMs: number): Effect.Effect<number> => {
  const server = failureOf(error);
  if (server === "away" || server === "undecided") return Effect.succeed(pauseMs);
  const lockMs = Math.min(pauseMs, lockPauseMs);
  return server === "conflicted" ? Random.nextBetween(0, lockMs * conflictSpread) : Effect.succeed(lockMs);
};
