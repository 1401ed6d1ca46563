/**
 * Runs transactions of the store: waits for other processes' locks, makes missing tables, and says in the recorder's words
 * what failed.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as SqlClient from "effect/sql/SqlClient";
import { isSqlError, type SqlError } from "effect/sql/SqlError";
import { digester } from "./Digest.ts";
import type { RecorderError } from "./RecorderError.ts";
import * as SqlFailure from "./SqlFailure.ts";
import * as SqlSchema from "./SqlSchema.ts";

/** Pause before a lock is tried again, in milliseconds. */
const lockPauseMs = 25;

/** Longest wait for another program's lock by default, in milliseconds, before a write fails as `locked`. */
export const lockWaitMsDefault = 5_000;

/** Another process's lock takes real time, also where a test moves the clock of this one. */
const realClock = Clock.Clock.defaultValue();

/** The store's database. */
export class SqlDatabase {
  readonly sql: SqlClient.SqlClient;
  readonly #place: string;
  #digest: ReturnType<typeof digester> | undefined;

  readonly #patience: LockPatience;

  /**
   * @param place the database, as a person knows it
   * @param lockWaitMs longest wait for another program's lock, in milliseconds
   */
  constructor(sql: SqlClient.SqlClient, place: string, lockWaitMs = lockWaitMsDefault) {
    this.sql = sql;
    this.#place = place;
    this.#patience = new LockPatience(lockWaitMs);
  }

  /** Makes the tables where they are missing, and reads the store's key. */
  readonly ready: Effect.Effect<void, RecorderError> = Effect.suspend(() => this.#told(this.#prepared));

  /** Runs a transaction that may write. The body may be run again; it touches nothing but the database. */
  write<A, E>(body: Effect.Effect<A, E | SqlError>): Effect.Effect<A, Exclude<E, SqlError> | RecorderError> {
    const written = Effect.tap(this.#withTables(this.sql.withTransaction(body)), this.#patience.over);
    return this.#told(written);
  }

  /** Reads at one moment. A reader never waits for a writer, and needs no file that can be written. */
  read<A, E>(body: Effect.Effect<A, E | SqlError>): Effect.Effect<A, Exclude<E, SqlError> | RecorderError> {
    const snapshot = Effect.provideService(this.sql.withTransaction(body), SqlClient.BeginTransaction, "BEGIN");
    return this.#told(this.#withTables(snapshot));
  }

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
    Effect.map(SqlSchema.ready(this.sql, this.#place), (key) => {
      this.#digest = digester(key);
    }),
  );

  /** A file that was replaced by an empty one gets its tables when they are missed. */
  #withTables<A, E>(body: Effect.Effect<A, E | SqlError>): Effect.Effect<A, E | SqlError | RecorderError> {
    return Effect.catchIf(body, SqlSchema.isMissingTable, () => Effect.andThen(this.#prepared, body));
  }

  #told<A, E>(body: Effect.Effect<A, E | SqlError>): Effect.Effect<A, Exclude<E, SqlError> | RecorderError> {
    const explained = (cause: unknown) => {
      const error = SqlFailure.explained(cause, this.#place);
      return Effect.andThen(SqlFailure.count(error), Effect.fail(error));
    };
    return patiently(body, this.#patience).pipe(
      Effect.catch((error): Effect.Effect<never, Exclude<E, SqlError> | RecorderError> => {
        if (isSqlError(error)) return explained(error);
        // What is no failure of the database is the body's own.
        return Effect.andThen(SqlFailure.countDamage(error), Effect.fail(error as Exclude<E, SqlError>));
      }),
      // A cleanup that failed dies inside of the transaction; its caller is told like of any other failure.
      Effect.catchDefect(explained),
      // A program that traces its runs wants spans of them, and not of every statement here.
      Effect.withTracerEnabled(false),
    );
  }
}

/**
 * How long a lock is waited for: once, by whoever meets it, and not anew by every write that comes after. A process that is
 * to end while its store is locked has several things to write one after the other, and ends all the same.
 */
class LockPatience {
  readonly #waitMs: number;
  #metAt = 0;
  #lastMetAt = Number.NEGATIVE_INFINITY;

  constructor(waitMs: number) {
    this.#waitMs = waitMs;
  }

  /** The lock was met (again): whether to try again. One that nobody has met for so long as it is waited for is another one. */
  waits(): boolean {
    const now = Number(realClock.monotonicTimeNanosUnsafe()) / 1e6;
    if (now - this.#lastMetAt > this.#waitMs) this.#metAt = now;
    this.#lastMetAt = now;
    return now - this.#metAt < this.#waitMs;
  }

  /** A write got through. */
  readonly over: Effect.Effect<void> = Effect.sync(() => {
    this.#lastMetAt = Number.NEGATIVE_INFINITY;
  });
}

const patiently = <A, E, R>(body: Effect.Effect<A, E, R>, patience: LockPatience): Effect.Effect<A, E, R> =>
  Effect.catchIf(
    body,
    (error) => isLocked(error) && patience.waits(),
    () =>
      Effect.andThen(
        pause,
        Effect.suspend(() => patiently(body, patience)),
      ),
  );

const pause = Effect.provideService(Effect.sleep(lockPauseMs), Clock.Clock, realClock);

const isLocked = (error: unknown): boolean => isSqlError(error) && SqlFailure.explained(error, "").reason === "locked";
