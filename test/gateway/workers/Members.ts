/**
 * The processes of a test that reach each other: the workers of one gateway, or gateways with addresses.
 */
import type { RequestListener } from "node:http";
import { Clock, Effect, Redacted, type Scope } from "effect";
import { OtherGateways } from "../../../src/gateway/attach/OtherGateways.ts";
import { sharedKey } from "../../../src/gateway/workers/SharedKey.ts";
import type { HopListener, HopTarget } from "../../../src/gateway/workers/SignedWire.ts";
import * as WorkerSockets from "../../../src/gateway/workers/WorkerSockets.ts";
import type { SharedFacts } from "../../../src/recorder/shared/SharedFacts.ts";
import { folder } from "../../cli/ServeProcess.ts";
import * as MemoryFacts from "../../recorder/shared/MemoryFacts.ts";
import { serverOf } from "../../Servers.ts";

/** Signs what the members say. */
export const key = sharedKey(Redacted.make("the secret of a test"), "hop");

/** The sockets of so many workers in one folder. */
export const members = Effect.fnUntraced(function* (workers: number) {
  const dir = yield* folder;
  const numbers = Array.from({ length: workers }, (_, at) => at + 1);
  return yield* Effect.forEach(numbers, (self) => WorkerSockets.make({ self, workers, folder: dir }, key));
});

/** Those of two workers. */
export const two = Effect.gen(function* () {
  const [first, second] = yield* members(2);
  return first === undefined || second === undefined ? yield* Effect.die("too few") : { first, second };
});

/** Creates a store that gateways share. */
export const store = Effect.map(Clock.Clock, (clock) => MemoryFacts.make(() => clock.currentTimeMillisUnsafe()));

/** Serves several gateways that listen at one address: the last one gets each request, as a chosen worker would. */
export const gatewaysAt = Effect.fnUntraced(function* (
  all: ReadonlyArray<SharedFacts>,
): Effect.fn.Return<ReadonlyArray<OtherGateways>, never, Scope.Scope> {
  let taken: RequestListener = () => undefined;
  const origin = yield* serverOf((request, response) => taken(request, response));
  const made = yield* Effect.forEach(all, (facts) => OtherGateways.make(origin, facts));
  taken = (request, response) => void made.at(-1)?.wire.take(request, response);
  for (const gateway of made) yield* gateway.publish;
  return made;
});

/** Serves one gateway at its own address. */
export const gateway = (facts: SharedFacts): Effect.Effect<OtherGateways, never, Scope.Scope> =>
  Effect.flatMap(gatewaysAt([facts]), ([made]) => (made === undefined ? Effect.die("none") : Effect.succeed(made)));

/** A process that serves hops, and the target by which another one reaches it. */
export interface Reached {
  readonly serveHops: (listener: HopListener) => Effect.Effect<void, never, Scope.Scope>;
  readonly target: HopTarget;
}

/** Both ways in which a process is reached. */
export const ways: Readonly<Record<string, Effect.Effect<Reached, never, Scope.Scope>>> = {
  "a Unix socket": Effect.map(two, ({ first, second }) => ({
    serveHops: second.serveHops,
    target: first.hopTo(2),
  })),
  "an address": Effect.gen(function* () {
    const shared = yield* store;
    const [first, second] = [yield* gateway(shared.process()), yield* gateway(shared.process())];
    return {
      serveHops: (listener) => second.wire.serveHops(listener),
      target: first.wire.hopTo({ origin: second.origin, aheadMs: 0 }),
    };
  }),
};
