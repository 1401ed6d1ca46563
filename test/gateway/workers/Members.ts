/**
 * Members of one bus, in one process.
 */
import { Effect, Redacted } from "effect";
import type { BusPort } from "../../../src/gateway/workers/BusEnvelope.ts";
import { BusRouter } from "../../../src/gateway/workers/BusRouter.ts";
import * as WorkerBus from "../../../src/gateway/workers/WorkerBus.ts";

const secret = Redacted.make("a secret");

/** A member that is let in by `join`; what is sent to it arrives at once, as a structured clone. */
export const newcomer = Effect.fnUntraced(function* (self: number, router: BusRouter, workers: number) {
  const end = yield* WorkerBus.make(
    { self, secret, workers, folder: undefined },
    { send: (it) => router.route(self, structuredClone(it)) },
  );
  const port: BusPort = {
    send: (it) => {
      end.receive(structuredClone(it));
      return true;
    },
  };
  return { ...end, port, join: () => router.join(self, port) };
});

const member = Effect.fnUntraced(function* (self: number, router: BusRouter, workers: number) {
  const made = yield* newcomer(self, router, workers);
  made.join();
  return made;
});

/** A router, its supervisor, and so many workers. */
export const members = Effect.fnUntraced(function* (count: number) {
  const router = new BusRouter();
  const supervisor = yield* member(WorkerBus.supervisor, router, count);
  const numbers = Array.from({ length: count }, (_, at) => at + 1);
  return { router, supervisor, ends: yield* Effect.forEach(numbers, (self) => member(self, router, count)) };
});
