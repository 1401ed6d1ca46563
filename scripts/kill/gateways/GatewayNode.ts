/**
 * One of several gateways over one PostgreSQL. It may be killed, stopped or cut off at any moment. Started with one JSON argument; it
 * says its address, and runs until it is killed.
 */
import { Clock, Context, Effect, Layer, References, Schema } from "effect";
import { Gateway } from "../../../src/gateway/Gateway.ts";
import { layer } from "../../../src/gateway/GatewayLayers.ts";
import { ShiftedClock } from "../ShiftedClock.ts";
import { leaseMs, lingerMs } from "../streams/StreamStates.ts";

/** What the parent says. */
const Work = Schema.fromJsonString(
  Schema.Struct({
    /** The provider. */
    upstream: Schema.String,
    store: Schema.String,
    aheadMs: Schema.Finite,
  }),
);
type Work = typeof Work.Type;

/** What it logs the parent does not read. */
const quiet = Layer.succeed(References.MinimumLogLevel, "None");

const main = ({ store, upstream }: Work) =>
  Effect.gen(function* () {
    const gateway = layer({
      db: store,
      port: 0,
      leaseMs,
      lingerMs,
      deliveryLog: true,
      onQuestion: "hold",
      continueText: "auto",
      upstreams: { openai: `${upstream}/v1`, anthropic: upstream, gemini: upstream },
    });
    const services = yield* Layer.build(Layer.provideMerge(gateway, quiet));
    process.stdout.write(`${Context.get(services, Gateway).url}\n`);
    return yield* Effect.never;
  });

const work = Schema.decodeSync(Work)(process.argv[2] ?? "{}");
await Effect.runPromise(
  Effect.scoped(
    Effect.gen(function* () {
      const clock = new ShiftedClock(yield* Clock.Clock, work.aheadMs);
      return yield* Effect.provideService(main(work), Clock.Clock, clock);
    }),
  ),
);
