/**
 * Hears what other processes say, by LISTEN on a connection of its own.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Queue from "effect/Queue";
import { inRealTime, realClock } from "../MonotonicTime.ts";
import type { Listen } from "../sql/SqlWords.ts";
import * as PostgresClient from "./PostgresClient.ts";

/**
 * From one question to a server that says nothing to the next, in milliseconds: a connection that was cut off without a word is found
 * by it, and one on which nothing moves would be closed.
 */
const askMs = 5_000;

/** Listens to a database. */
export const listen =
  (options: Pick<PostgresClient.PostgresClientOptions, "address" | "lockMs" | "password" | "sockets">): Listen =>
  (channel, { heard, ready }) => {
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
      // What is not answered in time ends with the socket, which is closed when nothing moves on it.
      const asking = Effect.forever(Effect.andThen(inRealTime(askMs), own.query("SELECT 1")));
      return yield* Effect.raceFirst(hearing, asking);
    });
    return Effect.provideService(Effect.scoped(listening), Clock.Clock, realClock);
  };
