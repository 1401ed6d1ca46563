/**
 * Receives notifications of other processes by LISTEN on a separate connection.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Queue from "effect/Queue";
import { realClock, sleepRealTime } from "../MonotonicTime.ts";
import type { Listen } from "../sql/SqlNotifications.ts";
import * as PostgresClient from "./PostgresClient.ts";

/**
 * Pause between two queries on a silent connection, in milliseconds. The queries detect a connection that was cut off silently. They also
 * cause traffic, which keeps the connection open.
 */
const askMs = 5_000;

/** Listens to channels of a database. */
export const listen =
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
