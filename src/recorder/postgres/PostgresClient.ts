/**
 * Opens connections to PostgreSQL over `@effect/sql-pg`: protected as the address says, and never waited for without end.
 */
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import type { ConnectionOptions } from "node:tls";
import { PgClient, PgConnection } from "@effect/sql-pg";
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Redacted from "effect/Redacted";
import * as Reactivity from "effect/reactivity/Reactivity";
import * as Scope from "effect/Scope";
import { isSqlError, type SqlError } from "effect/sql/SqlError";
import { realClock } from "../MonotonicTime.ts";
import { RecorderError } from "../RecorderError.ts";
import type { ServerLimits } from "../sql/postgres/ServerDemands.ts";
import { migrationMs } from "../sql/postgres/SqlPostgres.ts";
import type { PostgresAddress } from "./PostgresAddress.ts";

/** Where a password comes from: a value, or what gives it anew for each connection. */
export type Password = Redacted.Redacted | Effect.Effect<Redacted.Redacted>;

/** How a database is connected to. */
export interface PostgresClientOptions {
  readonly address: PostgresAddress;
  readonly password: Password | undefined;
  readonly connections: number;
  /** Longest wait for another transaction's lock, in milliseconds. */
  readonly lockMs: number;
  /** What the server calls these connections. */
  readonly name: string;
  /** How long they wait for a silent server. */
  readonly sockets?: Sockets;
}

/**
 * A connection on which nothing has moved for so long is closed, in milliseconds: a server that was cut off without a word
 * would be waited for until the kernel gives up, a quarter of an hour later. One that is idle is opened again when needed.
 * Nothing moves while the server works on a statement either, so it is longer than the longest of them.
 */
const quietMs = migrationMs + 2_000;

/** The same once the process is about to end: its manager waits for it. */
const hurriedMs = 2_000;

/**
 * Longest that a process which is about to end uses its server at all, in milliseconds: what it has to write then takes a few, and
 * each of its last steps would wait anew for a server that says nothing.
 */
export const lastUseMs = 4_000;

/** The connections of a process, at most as many as its pools may have, and how long each waits for a server that says nothing. */
export class Sockets {
  readonly #open = new Set<Socket>();
  #quietMs = quietMs;
  #isOver = false;

  /** Watches one. */
  watch(socket: Socket): void {
    if (this.#isOver)
      return void socket.destroy(new Error("this process is about to end, and uses its server no more"));
    this.#open.add(socket);
    socket.once("close", () => this.#open.delete(socket));
    socket.setTimeout(this.#quietMs, () => socket.destroy(new Error("nothing came from the server for too long")));
  }

  /** Closes all of them at once, whatever is under way; none is opened any more. */
  end(): void {
    this.#isOver = true;
    for (const socket of this.#open) socket.destroy(new Error("the server was waited for long enough"));
  }

  /** From now on none waits long. */
  hurry(): void {
    this.#quietMs = hurriedMs;
    for (const socket of this.#open) socket.setTimeout(hurriedMs);
  }
}

/** Longest that the server lets a transaction of this program stand still, in milliseconds: its locks hold up others. */
const idleTransactionMs = 10_000;

/** Longest that the server works on one statement, in milliseconds. */
const statementMs = 15_000;

/** The limits that a server is asked for when a connection begins. @param lockMs as in `PostgresClientOptions` */
export const limitsOf = (lockMs: number): ServerLimits => ({
  lock_timeout: Math.max(1, Math.round(lockMs)),
  statement_timeout: statementMs,
  idle_in_transaction_session_timeout: idleTransactionMs,
});

/**
 * Makes a client. Its first connection is opened when it is needed, also while what uses it closes: it closes last.
 *
 * Fails where a file that the address names cannot be read.
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
    // Sockets and servers take real time, also where a test moves the clock of this process.
    const real = Effect.provideService(Effect.provide(made, Reactivity.layer), Clock.Clock, realClock);
    return yield* Effect.mapError(inScopeOfItsOwn(real), unusable);
  });

/** Opens one connection, which ends with the scope. It is lost for good where it breaks. */
export const connection = (
  options: Omit<PostgresClientOptions, "connections">,
): Effect.Effect<PgConnection.PgConnection, RecorderError | SqlError, Scope.Scope> =>
  Effect.flatMap(tlsOf(options.address), (ssl) =>
    Effect.provideService(PgConnection.make(configOf(options, ssl)), Clock.Clock, realClock),
  );

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
      // Every statement of the store finds its rows by an index. A whole table that is read is a conflict with whoever writes.
      enable_seqscan: "off",
      jit: "off",
      ...(schema === undefined ? {} : { search_path: schema }),
    },
  };
};

/**
 * A pool opens its connections in fibers of its scope, and a scope that has begun to close starts none: a finalizer whose
 * connection was lost would wait for the next one without end. So the pool's scope is closed by a finalizer of the caller's,
 * which runs behind all that were added later.
 */
const inScopeOfItsOwn = <A, E>(made: Effect.Effect<A, E, Scope.Scope>): Effect.Effect<A, E, Scope.Scope> =>
  Effect.flatMap(
    Effect.acquireRelease(Scope.make(), (scope, exit) => Scope.close(scope, exit)),
    (scope) => Scope.provide(made, scope),
  );

/** What TLS is told; false for plain text. */
const tlsOf = (address: PostgresAddress): Effect.Effect<ConnectionOptions | false, RecorderError> => {
  const { certificate, key, rootCertificate, tls } = address;
  if (tls === "disable") return Effect.succeed(false);
  return Effect.try({
    try: () => ({
      // As libpq has it: encrypted, and whoever answers is believed.
      rejectUnauthorized: tls !== "require",
      // The certificate is signed by one of those trusted, and may be another host's.
      ...(tls === "verify-ca" ? { checkServerIdentity: () => undefined } : {}),
      ...(rootCertificate === undefined ? {} : { ca: readFileSync(rootCertificate) }),
      ...(certificate === undefined ? {} : { cert: readFileSync(certificate) }),
      ...(key === undefined ? {} : { key: readFileSync(key) }),
    }),
    catch: unreadable,
  });
};

/** The file's name is part of the system's own message. */
const unreadable = (cause: unknown): RecorderError =>
  new RecorderError({
    reason: "bad_option",
    run_id: "",
    message: `the address of PostgreSQL: ${cause instanceof Error ? cause.message : String(cause)}`,
  });

const unusable = (error: SqlError): RecorderError =>
  new RecorderError({
    reason: "bad_option",
    run_id: "",
    message: `the address of PostgreSQL: ${isSqlError(error) ? error.reason.message : "it cannot be used"}`,
  });

/**
 * The password that the environment holds: `$PGPASSWORD_FILE` names a file with nothing else in it, which is read for each
 * connection; else `$PGPASSWORD` is it.
 */
export const passwordOf = (env: Readonly<Record<string, string | undefined>>): Password | undefined => {
  const { PGPASSWORD: password, PGPASSWORD_FILE: file } = env;
  if (file !== undefined && file !== "") {
    // A file that is gone is told by the server, which gets no password: its own refusal is retried, as the file may come back.
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
