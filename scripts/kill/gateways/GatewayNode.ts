/**
 * One of several gateways over one PostgreSQL. It takes one JSON argument, prints its address, and runs until it is killed. It may be
 * killed, stopped or disconnected at any moment.
 */
import { Clock, Context, Effect, Layer, References, Schema } from "effect";
import { freePort } from "../../../src/cli/serve/FreePort.ts";
import { GatewayError, settingsOf } from "../../../src/gateway/config/GatewayOptions.ts";
import { Gateway } from "../../../src/gateway/Gateway.ts";
import { layer } from "../../../src/gateway/GatewayLayers.ts";
import { ShiftedClock } from "../ShiftedClock.ts";
import { leaseMs, lingerMs } from "../streams/StreamStates.ts";

/** The argument that the parent passes. */
const Work = Schema.fromJsonString(
  Schema.Struct({
    upstream: Schema.String,
    store: Schema.String,
    aheadMs: Schema.Finite,
  }),
);
type Work = typeof Work.Type;

/** The parent does not read the log. */
const quiet = Layer.succeed(References.MinimumLogLevel, "None");

const main = ({ store, upstream }: Work) =>
  Effect.gen(function* () {
    const settings = settingsOf({ port: 0 });
    if (settings instanceof GatewayError) return yield* settings;
    const port = yield* freePort(settings);
    const gateway = layer({
      db: store,
      port,
      leaseMs,
      lingerMs,
      advertise: `http://127.0.0.1:${port}`,
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
