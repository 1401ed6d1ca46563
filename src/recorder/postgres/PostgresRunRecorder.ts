/**
 * Keeps runs in PostgreSQL, which processes on many machines share. It makes the same record as the SQLite file does.
 */
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import type * as Redacted from "effect/Redacted";
import * as Scope from "effect/Scope";
import * as SqlClient from "effect/sql/SqlClient";
import { inRealTime } from "../MonotonicTime.ts";
import { RecorderError } from "../RecorderError.ts";
import { RunRecorder } from "../RunRecorder.ts";
import { lockWaitMsDefault } from "../sql/SqlDatabase.ts";
import { make, type SqlRunRecorderOptions } from "../sql/SqlRunRecorder.ts";
import * as PostgresAddress from "./PostgresAddress.ts";
import * as PostgresClient from "./PostgresClient.ts";
import * as PostgresWords from "./PostgresWords.ts";

/** Which database, and how it is used. */
export interface PostgresOptions extends SqlRunRecorderOptions {
  /** `postgres://ROLE@HOST:PORT/DATABASE?sslmode=verify-full`; docs/postgres.md lists what may stand in it. Never a password. */
  readonly address: string;
  /**
   * The password, or an effect that gives it for each new connection. Left out, it is the content of the file that
   * `$PGPASSWORD_FILE` names, else `$PGPASSWORD`.
   */
  readonly password?: Redacted.Redacted | Effect.Effect<Redacted.Redacted>;
  /** Most connections besides the one of the heartbeat; default 8. A group of writes takes one, a reader another. */
  readonly connections?: number;
}

/** Connections of a process besides the one of its heartbeat. */
export const connectionsDefault = 8;

/** Most that may be asked for. */
const connectionsMax = 100;

/** The layer of RunRecorder over PostgreSQL. */
export const PostgresRunRecorder = {
  /**
   * Keeps runs in a PostgreSQL database of version 13 or newer. Tables are made where they are missing.
   *
   * Writes are serialisable transactions, and each is on the server's disk when it returns, if the server says so of itself
   * (`synchronous_commit`). The heartbeat has a connection of its own.
   *
   * Fails where the database cannot be used, was made by a newer version of this package, or an option cannot be.
   *
   * @param options.address which database
   * @param options.password where it comes from
   * @param options.connections most connections besides that of the heartbeat; default 8
   * @param options.leaseMs lease of this process, in milliseconds; default 15,000
   * @param options.lockWaitMs longest wait for a lock, and for a server that is away, in milliseconds; default 5,000
   */
  layer: (options: PostgresOptions): Layer.Layer<RunRecorder, RecorderError> =>
    Layer.effect(RunRecorder, opened(options)),
};

const opened = Effect.fnUntraced(function* (options: PostgresOptions) {
  const { connections = connectionsDefault, lockWaitMs: lockMs = lockWaitMsDefault } = options;
  const address = PostgresAddress.parse(options.address);
  if (address instanceof RecorderError) return yield* address;
  if (!Number.isInteger(connections) || connections < 1 || connections > connectionsMax) {
    return yield* badConnections(connections);
  }
  const password = options.password ?? PostgresClient.passwordOf(process.env);
  const sockets = new PostgresClient.Sockets();
  // Closed behind everything else: until then the time runs that the server has.
  const ending = yield* Effect.acquireRelease(Scope.make(), (scope, exit) => Scope.close(scope, exit));
  const client = (name: string, most: number) =>
    PostgresClient.make({ address, connections: most, lockMs, name, password, sockets });
  const sql = yield* client("stream-recovery", connections);
  const beats = yield* client("stream-recovery heartbeat", 1);
  const prefix = options.prefix ?? address.prefix;
  const place = options.place ?? PostgresAddress.placeOf(address);
  const made = make(
    { ...options, place, ...(prefix === undefined ? {} : { prefix }) },
    // The connections are the recorder's own, and a server's database is shared with other tables.
    { client: false, tables: true },
    {
      beats,
      limits: PostgresClient.limitsOf(lockMs),
      listen: PostgresWords.listen({ address, lockMs, password, sockets }),
    },
  );
  const recorder = yield* Effect.provideService(made, SqlClient.SqlClient, sql);
  const over = Effect.andThen(
    inRealTime(PostgresClient.lastUseMs),
    Effect.sync(() => sockets.end()),
  );
  // Taken now: the recorder is given this one in its place.
  const statements = recorder.hurry ?? Effect.void;
  const hurry = Effect.gen(function* () {
    yield* statements;
    yield* Effect.sync(() => sockets.hurry());
    yield* Effect.forkIn(Effect.interruptible(over), ending);
  });
  // Whoever closes it has no more time than a gateway that is told to stop.
  yield* Effect.addFinalizer(() => hurry);
  // The very same object: what gives its runs to another store is known by it.
  return Object.assign(recorder, { hurry });
});

const badConnections = (connections: number): RecorderError =>
  new RecorderError({
    reason: "bad_option",
    run_id: "",
    message: `connections: expected 1 to ${connectionsMax}, got ${connections}`,
  });
