/**
 * Implements the SQLite client of `effect/sql` over Node's built-in `node:sqlite`.
 *
 * It has one connection per process, because SQLite has only one writer at a time and a commit is faster than a switch to another thread.
 */
import type { DatabaseSync, StatementSync } from "node:sqlite";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Option from "effect/Option";
import * as Reactivity from "effect/reactivity/Reactivity";
import * as Semaphore from "effect/Semaphore";
import * as Stream from "effect/Stream";
import * as SqlClient from "effect/sql/SqlClient";
import type * as SqlConnection from "effect/sql/SqlConnection";
import { classifySqliteError, SqlError } from "effect/sql/SqlError";
import * as Statement from "effect/sql/Statement";
import { runWithin } from "../../MonotonicTime.ts";
import { SqlCheckpoints } from "./SqlCheckpoints.ts";
import { FileGone, identity, isFile, prepare, watchJournal } from "./SqlFile.ts";

/** Options for opening the file. */
export interface NodeSqliteOptions {
  /** A path, `:memory:`, or a `file:` URI of SQLite. */
  readonly file: string;
  /**
   * `full` makes every commit survive a power loss, `normal` only a crash of the process (SQLite, PRAGMA synchronous). Default `full`: a
   * tool that was started must be on record whatever happens (law L8).
   */
  readonly synchronous?: "normal" | "full";
}

/**
 * Time for which a statement blocks the thread on another process's lock, in milliseconds. A commit takes less time than this. If the lock
 * lasts longer, the caller waits without blocking and retries.
 */
const blockingMs = 20;

/** Maximum cached prepared statements. A statement with a list of values counts once per length of the list. */
const statementsMax = 256;

/** Size to which the journal is truncated after a checkpoint, in bytes. */
const journalBytes = 16 * 1024 * 1024;

/**
 * Maximum time that closing a file waits for its checkpoint thread, in milliseconds. The thread has at most `journalPagesMax` pages to
 * copy.
 */
const threadMs = 5_000;

/** SQLite's codes for a lock of another connection: busy, locked. */
const lockCodes: ReadonlySet<number> = new Set([5, 6]);

/** SQLite's codes after which a connection is reopened: readonly, I/O error, corrupt, cannot open, not a database. */
const staleCodes: ReadonlySet<number> = new Set([8, 10, 11, 14, 26]);

/** Provides a client for a store that itself waits for locks. A statement that meets a lock fails at once and does not block. */
export const layerOfStore = (options: NodeSqliteOptions): Layer.Layer<SqlClient.SqlClient> => layerOf(options, 0);

/**
 * Provides a client for one file. The client opens the file on first use, and again if the file was replaced or an error made the
 * connection unusable.
 */
export const layer = (options: NodeSqliteOptions): Layer.Layer<SqlClient.SqlClient> => layerOf(options, blockingMs);

const layerOf = (options: NodeSqliteOptions, lockMs: number): Layer.Layer<SqlClient.SqlClient> =>
  Layer.effectContext(Effect.map(make(options, lockMs), (client) => Context.make(SqlClient.SqlClient, client))).pipe(
    Layer.provide(Reactivity.layer),
  );

const make = Effect.fnUntraced(function* (options: NodeSqliteOptions, lockMs: number) {
  const holder = new Holder(options, lockMs);
  const semaphore = Semaphore.makeUnsafe(1);
  const connection = Effect.try({ try: () => holder.take(), catch: (cause) => toSqlError(cause, "open") });
  yield* Effect.addFinalizer(() => Effect.suspend(() => holder.end()));
  const acquirers = SqlClient.makeSqliteAcquirers({
    connection,
    semaphore,
    isTransaction: (it) => it.isTransaction,
  });
  const client = yield* SqlClient.make({
    ...acquirers,
    compiler: Statement.makeCompilerSqlite(),
    driver: "node-sqlite",
    // Takes the write lock at the start. A transaction that read first and wrote later would fail if another one had written in between.
    beginTransaction: begin,
    prepareTransactionControls: true,
    spanAttributes: [["db.system.name", "sqlite"]],
  });
  steps.set(client, (rows) => holder.idleConnection?.step(rows) ?? false);
  changes.set(client, {
    version: () => holder.idleConnection?.version,
    onWrite: (listener) => watchJournal(options.file, listener),
  });
  inOneStep.set(client, (body) =>
    Effect.flatMap(
      semaphore.withPermitsIfAvailable(1)(runStep(client, holder, body)),
      // If a transaction of another fiber is open or waits for its turn, this transaction waits as well.
      Option.getOrElse(() => client.withTransaction(body)),
    ),
  );
  return client;
});

const begin = "BEGIN IMMEDIATE";

/** Runs a transaction, as `withTransaction` of its client does. */
type Transact = <A, E>(body: Effect.Effect<A, E>) => Effect.Effect<A, E | SqlError>;

const inOneStep = new WeakMap<SqlClient.SqlClient, Transact>();

/**
 * Returns a function that runs a client's transaction synchronously if its connection is free. The fibers, spans and scopes of an
 * asynchronous transaction cost several times as much as SQLite's own work. The body of the transaction must wait only for statements.
 *
 * @param client any client; for a client of another driver, the result is its own `withTransaction`
 */
export const transactionOf = (client: SqlClient.SqlClient): Transact => inOneStep.get(client) ?? client.withTransaction;

/** A statement that changes one row, or none if the row is not as expected. */
export type RowStatement = readonly [sql: string, params: ReadonlyArray<string | number | null>];

/**
 * Commits statements synchronously: all of them, or none if one does not change its row. False means that nothing is committed, because a
 * row did not match or the database is busy or broken; an asynchronous transaction then reports the reason. `locked` means that nothing is
 * committed because another process is writing, which takes less than a millisecond.
 */
export type Step = (rows: ReadonlyArray<RowStatement>) => boolean | "locked";

const steps = new WeakMap<SqlClient.SqlClient, Step>();

/** Returns the synchronous commit of a client; undefined for another driver's client. */
export const stepOf = (client: SqlClient.SqlClient): Step | undefined => steps.get(client);

/** Detects writes to the file by other connections. */
export interface Changes {
  /**
   * Reads a number that changes after a write by another connection; undefined while this connection is in use or closed. Does not open the
   * file, so that the next user of the file gets the error of opening it.
   */
  readonly version: () => number | undefined;
  /**
   * Calls a listener when any connection writes, including this one. Returns a function that stops the calls; undefined if the system
   * cannot watch files.
   */
  readonly onWrite: (listener: () => void) => (() => void) | undefined;
}

const changes = new WeakMap<SqlClient.SqlClient, Changes>();

/** Returns the change detection of a client's file; undefined for another driver's client. */
export const changesOf = (client: SqlClient.SqlClient): Changes | undefined => changes.get(client);

/** @returns `withTransaction` if the connection is inside a transaction that could not be rolled back */
const runStep = <A, E>(
  client: SqlClient.SqlClient,
  holder: Holder,
  body: Effect.Effect<A, E>,
): Effect.Effect<Effect.Effect<A, E | SqlError>> =>
  Effect.contextWith((services: Context.Context<never>) =>
    Effect.sync(() => {
      let connection: Connection;
      try {
        connection = holder.take();
      } catch (cause) {
        return Effect.fail(toSqlError(cause, "open"));
      }
      if (connection.isTransaction) return client.withTransaction(body);
      return connection.transaction(() =>
        Effect.runSyncExitWith(Context.add(services, client.transactionService, [connection, 0]))(body),
      );
    }),
  );

/** Holds the open connection, and replaces it when it becomes unusable. */
class Holder {
  #open: Connection | undefined;
  /** Resolves once the threads of all closed connections have ended. */
  #threads: Promise<void> | undefined;
  readonly #options: NodeSqliteOptions;
  readonly #lockMs: number;

  constructor(options: NodeSqliteOptions, lockMs: number) {
    this.#options = options;
    this.#lockMs = lockMs;
  }

  take(): Connection {
    const { file } = this.#options;
    if (this.#open?.isStale === true) this.close();
    if (this.#open !== undefined && this.#open.identity !== identityOf(file)) {
      this.close();
      throw new FileGone(`${file} was deleted, moved or replaced while it was open`);
    }
    this.#open ??= new Connection(this.#options, this.#lockMs);
    return this.#open;
  }

  /** The open connection if it is usable and not in a transaction. `take` reports and repairs problems with the connection. */
  get idleConnection(): Connection | undefined {
    const open = this.#open;
    if (open === undefined || open.isStale || open.isTransaction) return undefined;
    return open.identity === identityOf(this.#options.file) ? open : undefined;
  }

  close(): void {
    const thread = this.#open?.close();
    this.#open = undefined;
    if (thread !== undefined) this.#threads = (this.#threads ?? Promise.resolve()).then(() => thread);
  }

  /** Closes the connection. Completes once no thread has the file open, or at the timeout. */
  end(): Effect.Effect<void> {
    this.close();
    const threads = this.#threads;
    if (threads === undefined) return Effect.void;
    // The result of the timeout is ignored, because nothing is lost if a disk takes longer.
    return Effect.asVoid(
      runWithin(
        Effect.promise(() => threads),
        threadMs,
      ),
    );
  }
}

class Connection implements SqlConnection.Connection {
  isStale = false;
  readonly identity: string | undefined;
  readonly #db: DatabaseSync;
  readonly #statements = new Map<string, StatementSync>();
  /** Copies pages from the journal into the file in another thread; undefined for a store without a file. */
  readonly #checkpoints: SqlCheckpoints | undefined;

  constructor({ file, synchronous = "full" }: NodeSqliteOptions, lockMs: number) {
    if (isFile(file)) prepare(file);
    this.#db = new (loadSqlite().DatabaseSync)(file, { timeout: lockMs, enableForeignKeyConstraints: true });
    try {
      this.#db.exec("PRAGMA journal_mode = WAL");
      this.#db.exec(`PRAGMA synchronous = ${synchronous}`);
      this.#db.exec(`PRAGMA journal_size_limit = ${journalBytes}`);
    } catch (error) {
      this.#db.close();
      throw error;
    }
    this.identity = identityOf(file);
    if (isFile(file))
      this.#checkpoints = new SqlCheckpoints({ file, synchronous }, (pages) => {
        if (this.#db.isOpen) this.#db.exec(`PRAGMA wal_autocheckpoint = ${pages}`);
      });
  }

  get isTransaction(): boolean {
    return this.#db.isOpen && this.#db.isTransaction;
  }

  /** @returns resolves once the checkpoint thread has ended; undefined without one */
  close(): Promise<void> | undefined {
    this.#statements.clear();
    if (this.#db.isOpen) this.#db.close();
    return this.#checkpoints?.end();
  }

  /** SQLite's `data_version`, which other connections' writes change. */
  get version(): number | undefined {
    try {
      return Number(this.#prepare("PRAGMA data_version").get()?.data_version);
    } catch {
      return undefined;
    }
  }

  /** Runs a synchronous body, and commits if it succeeds. */
  transaction<A, E>(body: () => Exit.Exit<A, E>): Exit.Exit<A, E | SqlError> {
    try {
      this.#prepare(begin).run();
      const exit = body();
      if (Exit.isFailure(exit)) this.#undo();
      else this.#prepare("COMMIT").run();
      return exit;
    } catch (cause) {
      this.#undo();
      return Exit.fail(this.#onError(cause));
    }
  }

  /** Commits all statements if each changes exactly one row, otherwise none of them. */
  step(rows: ReadonlyArray<RowStatement>): boolean | "locked" {
    try {
      // A single statement is its own transaction, so it needs neither BEGIN nor COMMIT.
      const [only] = rows;
      const isMade = rows.length === 1 && only !== undefined ? this.#tryChangeOne(only) : this.#commitAll(rows);
      if (isMade) this.#checkpoints?.countRows(rows.length);
      return isMade;
    } catch (cause) {
      this.#undo();
      if (lockCodes.has(primaryCode(cause) ?? 0)) return "locked";
      this.#onError(cause);
      return false;
    }
  }

  #commitAll(rows: ReadonlyArray<RowStatement>): boolean {
    this.#prepare(begin).run();
    for (const row of rows) {
      if (this.#tryChangeOne(row)) continue;
      this.#undo();
      return false;
    }
    this.#prepare("COMMIT").run();
    return true;
  }

  #tryChangeOne([sql, params]: RowStatement): boolean {
    // A RETURNING clause would make the statement 50 % more expensive.
    return Number(this.#prepare(sql).run(...params).changes) === 1;
  }

  /** Rolls back. SQLite may already have done so. If the rollback fails, the connection becomes stale, and closing it rolls back. */
  #undo(): void {
    try {
      if (this.isTransaction) this.#prepare("ROLLBACK").run();
    } catch {
      this.isStale = true;
    }
  }

  execute: SqlConnection.Connection["execute"] = (sql, params, transformRows) =>
    this.#run(() => {
      const rows = this.#prepare(sql).all(...values(params));
      return transformRows === undefined ? rows : transformRows(rows);
    });

  executeRaw: SqlConnection.Connection["executeRaw"] = (sql, params) =>
    this.#run(() => this.#prepare(sql).run(...values(params)));

  executeStream: SqlConnection.Connection["executeStream"] = (sql, params, transformRows) =>
    Stream.fromIterableEffect(this.execute(sql, params, transformRows));

  executeValues: SqlConnection.Connection["executeValues"] = (sql, params) =>
    this.#run(() => {
      // Prepares a new statement, because the row format is a setting of the statement and the cached statement has another one.
      const statement = this.#db.prepare(sql);
      statement.setReturnArrays(true);
      // The type declaration knows only rows as objects.
      return statement.all(...values(params)) as unknown as ReadonlyArray<ReadonlyArray<unknown>>;
    });

  executeValuesUnprepared: SqlConnection.Connection["executeValuesUnprepared"] = (sql, params) =>
    this.executeValues(sql, params);

  executeUnprepared: SqlConnection.Connection["executeUnprepared"] = (sql, params, transformRows) =>
    this.execute(sql, params, transformRows);

  #run<A>(body: () => A): Effect.Effect<A, SqlError> {
    return Effect.try({ try: body, catch: (cause) => this.#onError(cause) });
  }

  #onError(cause: unknown): SqlError {
    if (staleCodes.has(primaryCode(cause) ?? 0)) this.isStale = true;
    return toSqlError(cause, "execute");
  }

  #prepare(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    if (this.#statements.size >= statementsMax) this.#statements.clear();
    const made = this.#db.prepare(sql);
    this.#statements.set(sql, made);
    return made;
  }
}

const identityOf = (file: string): string | undefined => (isFile(file) ? identity(file) : undefined);

// Statements of this package bind only strings, numbers and null. SQLite's own check refuses anything else.
const values = (params: ReadonlyArray<unknown>) => params as ReadonlyArray<string | number | null>;

/** Returns SQLite's primary result code of a `node:sqlite` error; undefined for other errors. */
export const primaryCode = (cause: unknown): number | undefined =>
  cause instanceof Error && "errcode" in cause && typeof cause.errcode === "number" ? cause.errcode & 0xff : undefined;

/** Converts an error. Effect reads SQLite's code from `errno`, but Node writes it to `errcode`. */
const toSqlError = (cause: unknown, operation: string): SqlError => {
  if (cause instanceof Error && "errcode" in cause) Object.assign(cause, { errno: cause.errcode });
  const message = cause instanceof Error ? cause.message : String(cause);
  return new SqlError({ reason: classifySqliteError(cause, { message, operation }) });
};

/**
 * Loads `node:sqlite`. While that module is experimental, Node prints a warning once per process on the user's terminal. The warning is
 * suppressed, but only while loading.
 *
 * @throws Error if this Node has no SQLite
 */
const loadSqlite = (): typeof import("node:sqlite") => {
  const emit = process.emitWarning;
  const emitFiltered = (...all: Parameters<typeof emit>): void => {
    const [warning, kind] = all;
    if (!(String(kind) === "ExperimentalWarning" && /\bSQLite\b/i.test(String(warning)))) emit.apply(process, all);
  };
  // The declaration has overloads, and no single function can satisfy them.
  process.emitWarning = emitFiltered as typeof emit;
  try {
    const module = process.getBuiltinModule("node:sqlite");
    if (module === undefined) throw new Error(`Node ${process.versions.node} has no node:sqlite; use 22.19 or newer`);
    return module;
  } finally {
    process.emitWarning = emit;
  }
};
