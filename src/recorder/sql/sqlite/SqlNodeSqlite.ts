/**
 * Speaks SQLite for `effect/sql` over `node:sqlite`, which is part of Node.
 *
 * One connection a process: SQLite has one writer at a time anyway, and a commit takes less than a turn to another thread.
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
import { endsWithin } from "../../MonotonicTime.ts";
import { SqlCheckpoints } from "./SqlCheckpoints.ts";
import { FileGone, identity, isFile, prepare } from "./SqlFile.ts";

/** How the file is opened. */
export interface NodeSqliteOptions {
  /** A path, `:memory:`, or a `file:` URI of SQLite. */
  readonly file: string;
  /**
   * `full` survives a power loss with every commit, `normal` a crash of the process only (SQLite, PRAGMA synchronous).
   * Default `full`: a tool that was started must be on record whatever happens (law L8).
   */
  readonly synchronous?: "normal" | "full";
}

/**
 * How long a statement blocks the thread for another process's lock, in milliseconds; a commit takes less. A caller that
 * meets a longer lock waits without blocking and tries again.
 */
const blockingMs = 20;

/** Most prepared statements kept; lists of values make a statement a length. */
const statementsMax = 256;

/** The journal is cut back to this many bytes after a checkpoint. */
const journalBytes = 16 * 1024 * 1024;

/** Longest that who closes a file waits for a thread, in milliseconds: there is a journal of `journalPagesMax` to copy at most. */
const threadMs = 5_000;

/** SQLite's codes for a lock of another connection: busy, locked. */
const lockCodes: ReadonlySet<number> = new Set([5, 6]);

/** SQLite's codes after which a connection is opened anew: readonly, I/O error, corrupt, cannot open, not a database. */
const staleCodes: ReadonlySet<number> = new Set([8, 10, 11, 14, 26]);

/** As `layer`, for a store that waits for a lock by itself: a statement that meets one fails at once, and blocks nothing. */
export const layerOfStore = (options: NodeSqliteOptions): Layer.Layer<SqlClient.SqlClient> => layerOf(options, 0);

/** A client over one file. It is opened when it is first used, and again when it was replaced or an error left it useless. */
export const layer = (options: NodeSqliteOptions): Layer.Layer<SqlClient.SqlClient> => layerOf(options, blockingMs);

const layerOf = (options: NodeSqliteOptions, lockMs: number): Layer.Layer<SqlClient.SqlClient> =>
  Layer.effectContext(Effect.map(make(options, lockMs), (client) => Context.make(SqlClient.SqlClient, client))).pipe(
    Layer.provide(Reactivity.layer),
  );

const make = Effect.fnUntraced(function* (options: NodeSqliteOptions, lockMs: number) {
  const holder = new Holder(options, lockMs);
  const semaphore = Semaphore.makeUnsafe(1);
  const connection = Effect.try({ try: () => holder.take(), catch: (cause) => failed(cause, "open") });
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
    // A transaction that reads first and writes later would fail when another one has written in between.
    beginTransaction: begin,
    prepareTransactionControls: true,
    spanAttributes: [["db.system.name", "sqlite"]],
  });
  steps.set(client, (rows) => holder.idle?.step(rows) ?? false);
  inOneStep.set(client, (body) =>
    Effect.flatMap(
      semaphore.withPermitsIfAvailable(1)(stepped(client, holder, body)),
      // Another fiber's transaction is open, or waits for its turn.
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
 * Gives what runs a transaction of a client in one step, where its connection is free: the fibers, spans and scopes of a
 * transaction that may wait cost several times what SQLite takes for it. Its body waits for nothing but statements.
 *
 * @param client any client; one that another driver made gives its own `withTransaction`
 */
export const transactionOf = (client: SqlClient.SqlClient): Transact => inOneStep.get(client) ?? client.withTransaction;

/** A statement that changes one row, or none where that row is not as it was known. */
export type RowStatement = readonly [sql: string, params: ReadonlyArray<string | number | null>];

/**
 * Commits statements now: all of them, or nothing where one does not change its row. False says that nothing is committed: one did not
 * fit, or the database is in use by another transaction or broken, which a transaction that may wait finds out. `locked` says that
 * nothing is committed because another process writes, which takes it less than a millisecond.
 */
export type Step = (rows: ReadonlyArray<RowStatement>) => boolean | "locked";

const steps = new WeakMap<SqlClient.SqlClient, Step>();

/** Gives what runs a transaction of a client without any effect; undefined for a client that another driver made. */
export const stepOf = (client: SqlClient.SqlClient): Step | undefined => steps.get(client);

/** @returns `withTransaction` where the connection is inside of a transaction that could not be undone, which it knows */
const stepped = <A, E>(
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
        return Effect.fail(failed(cause, "open"));
      }
      if (connection.isTransaction) return client.withTransaction(body);
      return connection.transaction(() =>
        Effect.runSyncExitWith(Context.add(services, client.transactionService, [connection, 0]))(body),
      );
    }),
  );

/** Holds the open connection, and lets go of one that is of no use any more. */
class Holder {
  #open: Connection | undefined;
  /** Done once the threads of all connections that were closed have ended. */
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

  /** The connection that is open, where it is good and in no transaction. What is wrong with it, `take` says and mends. */
  get idle(): Connection | undefined {
    const open = this.#open;
    if (open === undefined || open.isStale || open.isTransaction) return undefined;
    return open.identity === identityOf(this.#options.file) ? open : undefined;
  }

  close(): void {
    const thread = this.#open?.close();
    this.#open = undefined;
    if (thread !== undefined) this.#threads = (this.#threads ?? Promise.resolve()).then(() => thread);
  }

  /** Closes what is open; done once no thread holds a file any more, or has had its time. */
  end(): Effect.Effect<void> {
    this.close();
    const threads = this.#threads;
    if (threads === undefined) return Effect.void;
    // Nothing else is held up, and nothing is lost where a disk takes longer.
    return Effect.asVoid(
      endsWithin(
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
  /** At most `statementsMax`. */
  readonly #statements = new Map<string, StatementSync>();
  /** Left out where there is no file. */
  readonly #checkpoints: SqlCheckpoints | undefined;

  constructor({ file, synchronous = "full" }: NodeSqliteOptions, lockMs: number) {
    if (isFile(file)) prepare(file);
    this.#db = new (sqlite().DatabaseSync)(file, { timeout: lockMs, enableForeignKeyConstraints: true });
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

  /** @returns done once the thread of its checkpoints has ended; undefined where there is none */
  close(): Promise<void> | undefined {
    this.#statements.clear();
    if (this.#db.isOpen) this.#db.close();
    return this.#checkpoints?.end();
  }

  /** Runs a body that is over when it returns, and commits where it has succeeded. */
  transaction<A, E>(body: () => Exit.Exit<A, E>): Exit.Exit<A, E | SqlError> {
    try {
      this.#prepared(begin).run();
      const exit = body();
      if (Exit.isFailure(exit)) this.#undo();
      else this.#prepared("COMMIT").run();
      return exit;
    } catch (cause) {
      this.#undo();
      return Exit.fail(this.#told(cause));
    }
  }

  /** Commits statements that change a row each, or nothing of them. */
  step(rows: ReadonlyArray<RowStatement>): boolean | "locked" {
    try {
      // A statement outside of a transaction is one by itself: none has to be begun and committed for it.
      const [only] = rows;
      const isMade = rows.length === 1 && only !== undefined ? this.#changesOne(only) : this.#together(rows);
      if (isMade) this.#checkpoints?.committed(rows.length);
      return isMade;
    } catch (cause) {
      this.#undo();
      if (lockCodes.has(primaryCode(cause) ?? 0)) return "locked";
      this.#told(cause);
      return false;
    }
  }

  #together(rows: ReadonlyArray<RowStatement>): boolean {
    this.#prepared(begin).run();
    for (const row of rows) {
      if (this.#changesOne(row)) continue;
      this.#undo();
      return false;
    }
    this.#prepared("COMMIT").run();
    return true;
  }

  #changesOne([sql, params]: RowStatement): boolean {
    // To have it return the row costs half as much again.
    return Number(this.#prepared(sql).run(...params).changes) === 1;
  }

  /** SQLite may have undone it already; a connection that cannot is closed, which undoes it. */
  #undo(): void {
    try {
      if (this.isTransaction) this.#prepared("ROLLBACK").run();
    } catch {
      this.isStale = true;
    }
  }

  execute: SqlConnection.Connection["execute"] = (sql, params, transformRows) =>
    this.#run(() => {
      const rows = this.#prepared(sql).all(...values(params));
      return transformRows === undefined ? rows : transformRows(rows);
    });

  executeRaw: SqlConnection.Connection["executeRaw"] = (sql, params) =>
    this.#run(() => this.#prepared(sql).run(...values(params)));

  executeStream: SqlConnection.Connection["executeStream"] = (sql, params, transformRows) =>
    Stream.fromIterableEffect(this.execute(sql, params, transformRows));

  executeValues: SqlConnection.Connection["executeValues"] = (sql, params) =>
    this.#run(() => {
      // Not the kept statement: how its rows come out is a setting of the statement.
      const statement = this.#db.prepare(sql);
      statement.setReturnArrays(true);
      // The declaration knows rows as objects only.
      return statement.all(...values(params)) as unknown as ReadonlyArray<ReadonlyArray<unknown>>;
    });

  executeValuesUnprepared: SqlConnection.Connection["executeValuesUnprepared"] = (sql, params) =>
    this.executeValues(sql, params);

  executeUnprepared: SqlConnection.Connection["executeUnprepared"] = (sql, params, transformRows) =>
    this.execute(sql, params, transformRows);

  #run<A>(body: () => A): Effect.Effect<A, SqlError> {
    return Effect.try({ try: body, catch: (cause) => this.#told(cause) });
  }

  #told(cause: unknown): SqlError {
    if (staleCodes.has(primaryCode(cause) ?? 0)) this.isStale = true;
    return failed(cause, "execute");
  }

  #prepared(sql: string): StatementSync {
    const known = this.#statements.get(sql);
    if (known !== undefined) return known;
    if (this.#statements.size >= statementsMax) this.#statements.clear();
    const made = this.#db.prepare(sql);
    this.#statements.set(sql, made);
    return made;
  }
}

const identityOf = (file: string): string | undefined => (isFile(file) ? identity(file) : undefined);

// Statements of this package bind strings, numbers and null; anything else is refused by SQLite's own check.
const values = (params: ReadonlyArray<unknown>) => params as ReadonlyArray<string | number | null>;

/** SQLite's primary result code of an error of `node:sqlite`; undefined for other errors. */
export const primaryCode = (cause: unknown): number | undefined =>
  cause instanceof Error && "errcode" in cause && typeof cause.errcode === "number" ? cause.errcode & 0xff : undefined;

/** Effect reads SQLite's code from `errno`; Node writes it to `errcode`. */
const failed = (cause: unknown, operation: string): SqlError => {
  if (cause instanceof Error && "errcode" in cause) Object.assign(cause, { errno: cause.errcode });
  const message = cause instanceof Error ? cause.message : String(cause);
  return new SqlError({ reason: classifySqliteError(cause, { message, operation }) });
};

/**
 * Loads `node:sqlite`. Where it still counts as experimental Node says so once a process, on the user's terminal: that one
 * warning is left out, and only while it loads.
 *
 * @throws Error where this Node has no SQLite
 */
const sqlite = (): typeof import("node:sqlite") => {
  const emit = process.emitWarning;
  const filtered = (...all: Parameters<typeof emit>): void => {
    const [warning, kind] = all;
    if (!(String(kind) === "ExperimentalWarning" && /\bSQLite\b/i.test(String(warning)))) emit.apply(process, all);
  };
  // The declaration has overloads, which no single function can state.
  process.emitWarning = filtered as typeof emit;
  try {
    const module = process.getBuiltinModule("node:sqlite");
    if (module === undefined) throw new Error(`Node ${process.versions.node} has no node:sqlite: 22.19 or newer has`);
    return module;
  } finally {
    process.emitWarning = emit;
  }
};
