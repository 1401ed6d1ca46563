/**
 * Probes of a run's path by the way in its options, and the effect of a connection to the wrong host.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Layer, References, Stream } from "effect";
import { TestClock } from "effect/testing";
import { type ProviderError, providerError } from "../../../src/client/ProviderError.ts";
import type { Failure } from "../../../src/domain/Failure.ts";
import * as Observation from "../../../src/domain/Observation.ts";
import type { PathWay, Probed } from "../../../src/paths/Path.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";

const refused: Failure = { kind: "transport", operation: "connect", code: "ECONNREFUSED" };
const foreign: Failure = { kind: "transport", operation: "connect", code: "DEPTH_ZERO_SELF_SIGNED_CERT" };

/** A provider that answers or refuses connections, and its path's answer to a probe. */
class Network {
  failure: Failure | undefined;
  finds: Probed = { _tag: "works" };
  probes = 0;
  requests = 0;
  readonly way: PathWay = {
    probe: Effect.sync(() => {
      this.probes += 1;
      return this.finds;
    }),
    dropIdle: () => undefined,
  };

  /** Plays a run to its end. */
  get asked() {
    return Effect.gen({ self: this }, function* () {
      const processor = yield* StreamProcessor;
      return yield* processor
        .run<Observation.Observation, ProviderError, never>({
          provider: { id: "p", reasoning: false },
          path: { id: "https://p", way: this.way },
          tools: [],
          attempt: ({ delivery }) => {
            delivery("not_sent");
            if (this.failure !== undefined) return Stream.fail(providerError(this.failure, "not_sent"));
            this.requests += 1;
            delivery("accepted");
            return Stream.make(Observation.text(1), Observation.terminal("stop"));
          },
          observe: (part) => part,
        })
        .pipe(Stream.runDrain, Effect.match({ onSuccess: () => "whole", onFailure: ({ rule }) => rule }));
    });
  }
}

const layer = Layer.merge(StreamProcessor.layerDefault, Layer.succeed(References.MinimumLogLevel, "None"));

describe("A path defined in the options", () => {
  it.effect("is probed while it is down, and its runs are admitted once a probe works", () =>
    Effect.gen(function* () {
      const network = new Network();
      assert.strictEqual(yield* network.asked, "whole");
      network.failure = refused;
      network.finds = { _tag: "failed", reason: "network", code: "ECONNREFUSED" };
      const run = yield* Effect.forkChild(network.asked);
      yield* TestClock.adjust("20 seconds");
      assert.isAbove(network.probes, 10);
      assert.isUndefined(run.pollUnsafe(), "it waits");
      network.failure = undefined;
      network.finds = { _tag: "works" };
      yield* TestClock.adjust("2 seconds");
      assert.deepStrictEqual([yield* Fiber.join(run), network.requests], ["whole", 2]);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("that was reached before: a wrong certificate is waited for, even if the origin returns at once", () =>
    Effect.gen(function* () {
      const network = new Network();
      assert.strictEqual(yield* network.asked, "whole");
      // The captive portal disappears between the connection and the probe.
      network.failure = foreign;
      const run = yield* Effect.forkChild(network.asked);
      yield* TestClock.adjust(1);
      network.failure = undefined;
      yield* TestClock.adjust("10 seconds");
      assert.deepStrictEqual([run.pollUnsafe() !== undefined, network.requests], [true, 2]);
      assert.strictEqual(yield* Fiber.join(run), "whole");
    }).pipe(Effect.provide(layer)),
  );

  it.effect("that was never reached: a wrong certificate fails at once", () =>
    Effect.gen(function* () {
      const network = new Network();
      network.failure = foreign;
      assert.strictEqual(yield* network.asked, "not_retryable");
    }).pipe(Effect.provide(layer)),
  );
});
