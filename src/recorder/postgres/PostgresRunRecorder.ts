/**
 * Keeps runs in PostgreSQL, which processes on many machines share. Its records equal those in a SQLite file.
 */

import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Queue from "effect/Queue";
import type * as Redacted from "effect/Redacted";
import * as Scope from "effect/Scope";
import * as SqlClient from "effect/sql/SqlClient";
import { toMs } from "../../domain/Durations.ts";
import { realClock, sleepRealTime } from "../MonotonicTime.ts";
import { RecorderError } from "../RecorderError.ts";
import { RunRecorder } from "../RunRecorder.ts";
import { readVariables } from "../sql/Environment.ts";
import { lockWaitMsDefault } from "../sql/SqlDatabase.ts";
import type { Listen } from "../sql/SqlNotifications.ts";
import { make, type SqlRunRecorderOptions } from "../sql/SqlRunRecorder.ts";
import * as PostgresAddress from "./PostgresAddress.ts";
import * as PostgresClient from "./PostgresClient.ts";

/** Options of the PostgreSQL recorder. Only `address` is required. */
export interface PostgresOptions extends SqlRunRecorderOptions {
  /** `postgres://ROLE@HOST:PORT/DATABASE?sslmode=verify-full`; docs/postgres.md lists the parameters. Never contains a password. */
  readonly address: string;
  /**
   * The password, or an effect that returns it for each new connection. By default, the content of the file that
   * `$PGPASSWORD_FILE` names, or else `$PGPASSWORD`.
   */
  readonly password?: Redacted.Redacted | Effect.Effect<Redacted.Redacted>;
  /** Maximum connections in addition to the heartbeat's; default 8. A group of writes uses one, and each reader another. */
  readonly connections?: number;
}

/** Default number of connections in addition to the heartbeat's. */
export const connectionsDefault = 8;

/** Maximum value of `connections`. */
const connectionsMax = 100;

/** The layer of RunRecorder over PostgreSQL. */
export const PostgresRunRecorder = {
  /**
   * Keeps runs in a PostgreSQL database of version 13 or newer. Missing tables are created.
   *
   * Writes are serialisable transactions. Each is on the server's disk when it returns, unless the server is configured otherwise
   * (`synchronous_commit`). The heartbeat has its own connection.
   *
   * Fails if the database cannot be used, a newer version of this package made the tables, or an option is invalid.
   *
   * @param options.address address of the database
   * @param options.password source of the password; default `$PGPASSWORD_FILE` or `$PGPASSWORD` of the program's `ConfigProvider`
   * @param options.connections maximum connections in addition to the heartbeat's; default 8
   * @param options.leaseMs lease of this process, as milliseconds or a duration; default 15,000
   * @param options.lockWaitMs timeout for locks and for an unreachable server, as milliseconds or a duration; default 5,000
   */
  layer: (options: PostgresOptions): Layer.Layer<RunRecorder, RecorderError> =>
    Layer.effect(RunRecorder, openRecorder(options)),
};

const openRecorder = Effect.fnUntraced(function* (options: PostgresOptions) {
  const { connections = connectionsDefault } = options;
  const lockMs = toMs(options.lockWaitMs ?? lockWaitMsDefault);
  const address = PostgresAddress.parse(options.address);
  if (address instanceof RecorderError) return yield* address;
  if (!Number.isInteger(connections) || connections < 1 || connections > connectionsMax) {
    return yield* badConnections(connections);
  }
  const password =
    options.password ?? PostgresClient.passwordOf(yield* readVariables(["PGPASSWORD", "PGPASSWORD_FILE"]));
  const sockets = new PostgresClient.Sockets();
  // This scope closes last. So the deadline after which an exiting process no longer uses its server applies to everything that closes
  // before.
  const ending = yield* Effect.acquireRelease(Scope.make(), (scope, exit) => Scope.close(scope, exit));
  const client = (name: string, most: number) =>
    PostgresClient.make({ address, connections: most, lockMs, name, password, sockets });
  // A process limited to one connection starts its runs on that connection, which takes more round trips.
  const commitOne =
    connections === 1
      ? undefined
      : yield* PostgresClient.makeCommitOne({ address, lockMs, name: "stream-recovery starts", password, sockets });
  const sql = yield* client("stream-recovery", Math.max(1, connections - 1));
  const beats = yield* client("stream-recovery heartbeat", 1);
  const prefix = options.prefix ?? address.prefix;
  const place = options.place ?? PostgresAddress.placeOf(address);
  const made = make(
    { ...options, place, ...(prefix === undefined ? {} : { prefix }) },
    // The connections belong to the recorder, but the server's database may have tables of other programs.
    { client: false, tables: true },
    {
      beats,
      ...(commitOne === undefined ? {} : { commitOne }),
      limits: PostgresClient.limitsOf(lockMs),
      listen: listen({ address, lockMs, password, sockets }),
    },
  );
  const recorder = yield* Effect.provideService(made, SqlClient.SqlClient, sql);
  const over = Effect.andThen(
    sleepRealTime(PostgresClient.lastUseMs),
    Effect.sync(() => sockets.end()),
  );
  // Read before `hurry` is replaced below.
  const statements = recorder.hurry ?? Effect.void;
  const hurry = Effect.gen(function* () {
    yield* statements;
    yield* Effect.sync(() => sockets.shortenTimeouts());
    yield* Effect.forkIn(Effect.interruptible(over), ending);
  });
  // Closing the recorder shortens the timeouts too, because a closing caller has as little time as a gateway that was asked to stop.
  yield* Effect.addFinalizer(() => hurry);
  // Mutates instead of copying: `withTransfer` uses this object as its WeakMap key.
  return Object.assign(recorder, { hurry });
});

const badConnections = (connections: number): RecorderError =>
  new RecorderError({
    reason: "bad_option",
    run_id: "",
    message: `connections: expected 1 to ${connectionsMax}, got ${connections}`,
  });

/**
 * Pause between two queries on a silent connection, in milliseconds. The queries detect a connection that was cut off silently. They also
 * cause traffic, which keeps the connection open.
 */
const askMs = 5_000;

/** Receives the notifications of other processes by LISTEN on a separate connection. */
const listen =
  (options: Pick<PostgresClient.PostgresClientOptions, "address" | "lockMs" | "password" | "sockets">): Listen =>
  (channel, { onNotification: heard, ready }) => {
    const listening = Effect.gen(function* () {
      const connection = yield* PostgresClient.connection({ ...options, name: "stream-recovery words" });
      const own = yield* connection.pin;
      const queue = yield* own.listen(channel);
      yield* ready;
      const hearing = Effect.forever(
        Effect.map(Queue.takeAll(queue), (all) => {
          for (const { payload } of all) heard(payload);
        }),
      );
      // If a query gets no answer, the socket's timeout closes the connection.
      const asking = Effect.forever(Effect.andThen(sleepRealTime(askMs), own.query("SELECT 1")));
      return yield* Effect.raceFirst(hearing, asking);
    });
    return Effect.provideService(Effect.scoped(listening), Clock.Clock, realClock);
  };
