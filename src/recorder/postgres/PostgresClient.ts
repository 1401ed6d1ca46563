/**
 * Opens connections to PostgreSQL over `@effect/sql-pg`, with the TLS of the address and with a timeout on every wait.
 */
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import type { ConnectionOptions } from "node:tls";
import { PgClient, PgConnection, PgPool } from "@effect/sql-pg";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Redacted from "effect/Redacted";
import * as Reactivity from "effect/reactivity/Reactivity";
import * as Scope from "effect/Scope";
import { isSqlError, type SqlError } from "effect/sql/SqlError";
import { realClock } from "../MonotonicTime.ts";
import { RecorderError } from "../RecorderError.ts";
import type { ServerLimits } from "../sql/postgres/ServerDemands.ts";
import { migrationMs } from "../sql/postgres/SqlPostgres.ts";
import type { CommitOne } from "../sql/SqlDatabase.ts";
import type { PostgresAddress } from "./PostgresAddress.ts";

/** A password, or an effect that returns the current one for each connection. */
export type Password = Redacted.Redacted | Effect.Effect<Redacted.Redacted>;

/** The server, the password and the limits of a client. */
export interface PostgresClientOptions {
  readonly address: PostgresAddress;
  readonly password: Password | undefined;
  readonly connections: number;
  /** Maximum wait for a lock of another transaction, in milliseconds. */
  readonly lockMs: number;
  /** Name under which the server lists the connections (`application_name`). */
  readonly name: string;
  /** Tracks the sockets of the connections, and closes those whose server is silent for too long. */
  readonly sockets?: Sockets;
}

/**
 * Time without traffic after which a connection is closed, in milliseconds. Otherwise the kernel would wait for a quarter of an hour if a
 * server is cut off silently. Idle connections are reopened on demand. A running statement causes no traffic either, so this time exceeds
 * the longest statement timeout.
 */
const quietMs = migrationMs + 2_000;

/**
 * Time without traffic after which an exiting process closes a connection, in milliseconds. It is short, because a supervisor waits for the
 * exit.
 */
const hurriedMs = 2_000;

/**
 * Maximum time for which an exiting process uses its server, in milliseconds. Its last writes take a few milliseconds. With an unresponsive
 * server, however, each of the last steps would time out separately.
 */
export const lastUseMs = 4_000;

/** The open sockets of a process, at most as many as its connection pools allow. All have the same timeout for a silent server. */
export class Sockets {
  readonly #open = new Set<Socket>();
  #quietMs = quietMs;
  #isOver = false;

  /** Tracks a socket until it closes, and closes it if its server is silent for too long. */
  watch(socket: Socket): void {
    if (this.#isOver)
      return void socket.destroy(new Error("this process is about to exit and no longer uses its server"));
    this.#open.add(socket);
    socket.once("close", () => this.#open.delete(socket));
    socket.setTimeout(this.#quietMs, () => socket.destroy(new Error("the server sent nothing for too long")));
  }

  /** Closes all sockets at once, even with statements in flight, and refuses new ones. */
  end(): void {
    this.#isOver = true;
    for (const socket of this.#open) socket.destroy(new Error("the server did not answer in time"));
  }

  /** Shortens all timeouts, because the process is about to exit. */
  shortenTimeouts(): void {
    this.#quietMs = hurriedMs;
    for (const socket of this.#open) socket.setTimeout(hurriedMs);
  }
}

/**
 * Maximum idle time of a transaction on the server, in milliseconds. It is short, because the locks of an idle transaction block other
 * transactions.
 */
const idleTransactionMs = 10_000;

/** Timeout of a statement on the server, in milliseconds. */
const statementMs = 15_000;

/** Returns the limits that a new connection requests from its server. @param lockMs as in `PostgresClientOptions` */
export const limitsOf = (lockMs: number): ServerLimits => ({
  lock_timeout: Math.max(1, Math.round(lockMs)),
  statement_timeout: statementMs,
  idle_in_transaction_session_timeout: idleTransactionMs,
});

/**
 * Creates a client. The client closes after its users, so that they can still open connections while they close.
 *
 * Fails if a file in the address cannot be read.
 */
export const make = ({
  address,
  connections,
  lockMs,
  name,
  password,
  sockets,
}: PostgresClientOptions): Effect.Effect<PgClient.PgClient, RecorderError, Scope.Scope> =>
  Effect.gen(function* () {
    const ssl = yield* tlsOf(address);
    const made = PgClient.make({
      ...configOf({ address, lockMs, name, password, ...(sockets && { sockets }) }, ssl),
      maxConnections: connections,
    });
    // Sockets and servers take real time, even if a test controls this process's clock.
    const real = Effect.provideService(Effect.provide(made, Reactivity.layer), Clock.Clock, realClock);
    return yield* Effect.mapError(withSeparateScope(real), unusableAddressError);
  });

/** Opens one connection for the lifetime of the scope. If the connection breaks, it is not reopened. */
export const connection = (
  options: Omit<PostgresClientOptions, "connections">,
): Effect.Effect<PgConnection.PgConnection, RecorderError | SqlError, Scope.Scope> =>
  Effect.flatMap(tlsOf(options.address), (ssl) =>
    Effect.provideService(PgConnection.make(configOf(options, ssl)), Clock.Clock, realClock),
  );

/** Creates the function that commits a statement in one round trip. It has its own connection. */
export const makeCommitOne = (
  options: Omit<PostgresClientOptions, "connections">,
): Effect.Effect<CommitOne, RecorderError, Scope.Scope> =>
  Effect.gen(function* () {
    const ssl = yield* tlsOf(options.address);
    const made = PgPool.make({ ...configOf(options, ssl), maxConnections: 1, multiplex: true });
    const real = Effect.provideService(made, Clock.Clock, realClock);
    const pool = yield* Effect.mapError(withSeparateScope(real), unusableAddressError);
    return (text, values) =>
      Effect.provideService(
        pool.use((connection) => commitOn(connection, text, values)),
        Clock.Clock,
        realClock,
      );
  });

/**
 * Sends BEGIN, the statement and COMMIT without waiting for responses. If BEGIN fails, the server still runs the statement, so the
 * statement must be safe outside a transaction.
 */
const commitOn = Effect.fnUntraced(function* (
  connection: PgConnection.PgConnection,
  text: string,
  values: Parameters<CommitOne>[1],
) {
  const send = (sql: string, params: Parameters<CommitOne>[1] = []) =>
    Effect.forkChild(connection.query(sql, params), { startImmediately: true });
  const sent = [yield* send("BEGIN ISOLATION LEVEL SERIALIZABLE"), yield* send(text, values), yield* send("COMMIT")];
  const [begun, written, ended] = yield* Fiber.awaitAll(sent);
  if (begun?._tag !== "Success" || written?._tag !== "Success" || ended?._tag !== "Success") return undefined;
  return ended.value.command === "COMMIT" ? written.value.rows : undefined;
});

const configOf = (
  { address, lockMs, name, password, sockets = new Sockets() }: Omit<PostgresClientOptions, "connections">,
  ssl: ConnectionOptions | false,
): PgClient.PgClientConfig => {
  const { database, host, port, prepares, role, schema } = address;
  return {
    host,
    port,
    ssl,
    stream: () => {
      const socket = host.startsWith("/")
        ? connect({ path: `${host}/.s.PGSQL.${port}` })
        : connect({ host, port, noDelay: true, keepAlive: true, keepAliveInitialDelay: quietMs / 2 });
      sockets.watch(socket);
      return socket;
    },
    applicationName: name,
    prepare: prepares,
    ...(database === undefined ? {} : { database }),
    ...(role === undefined ? {} : { username: role }),
    ...(password === undefined ? {} : { password }),
    startupParameters: {
      ...Object.fromEntries(Object.entries(limitsOf(lockMs)).map(([limit, ms]) => [limit, String(ms)])),
      // Every statement of the store can use an index. A sequential scan would conflict with every concurrent write, so it is disabled.
      enable_seqscan: "off",
      jit: "off",
      ...(schema === undefined ? {} : { search_path: schema }),
    },
  };
};

/**
 * Runs an effect in a separate scope, which closes after everything that is added later to the caller's scope. A pool opens connections in
 * fibers of its scope, and a closing scope starts none. Without the separate scope, a finalizer that lost its connection would wait forever
 * for the next one.
 */
const withSeparateScope = <A, E>(made: Effect.Effect<A, E, Scope.Scope>): Effect.Effect<A, E, Scope.Scope> =>
  Effect.flatMap(
    Effect.acquireRelease(Scope.make(), (scope, exit) => Scope.close(scope, exit)),
    (scope) => Scope.provide(made, scope),
  );

/** Returns the TLS options; false for plain text. */
const tlsOf = (address: PostgresAddress): Effect.Effect<ConnectionOptions | false, RecorderError> => {
  const { certificate, key, rootCertificate, tls } = address;
  if (tls === "disable") return Effect.succeed(false);
  return Effect.try({
    try: () => ({
      // As in libpq, `require` encrypts but does not verify the server.
      rejectUnauthorized: tls !== "require",
      // As in libpq, `verify-ca` requires a trusted signature but accepts a certificate for another host.
      ...(tls === "verify-ca" ? { checkServerIdentity: () => undefined } : {}),
      ...(rootCertificate === undefined ? {} : { ca: readFileSync(rootCertificate) }),
      ...(certificate === undefined ? {} : { cert: readFileSync(certificate) }),
      ...(key === undefined ? {} : { key: readFileSync(key) }),
    }),
    catch: unreadableFileError,
  });
};

/** Creates the error for a file that cannot be read. The system's message contains the file name. */
const unreadableFileError = (cause: unknown): RecorderError =>
  new RecorderError({
    reason: "bad_option",
    run_id: "",
    message: `the PostgreSQL address: ${cause instanceof Error ? cause.message : String(cause)}`,
  });

const unusableAddressError = (error: SqlError): RecorderError =>
  new RecorderError({
    reason: "bad_option",
    run_id: "",
    message: `the PostgreSQL address: ${isSqlError(error) ? error.reason.message : "it cannot be used"}`,
  });

/**
 * Returns the password in the environment. `$PGPASSWORD_FILE` names a file with only the password, which is read for each
 * connection; otherwise `$PGPASSWORD` is used.
 */
export const passwordOf = (env: Readonly<Record<string, string | undefined>>): Password | undefined => {
  const { PGPASSWORD: password, PGPASSWORD_FILE: file } = env;
  if (file !== undefined && file !== "") {
    // If the file is missing, an empty password is sent. The server refuses it and the connection is retried, so the file may be restored
    // later.
    return Effect.sync(() => Redacted.make(readOrEmpty(file)));
  }
  return password === undefined || password === "" ? undefined : Redacted.make(password);
};

const readOrEmpty = (file: string): string => {
  try {
    return readFileSync(file, "utf8").replace(/\r?\n$/, "");
  } catch {
    return "";
  }
};
