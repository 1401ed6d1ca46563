/**
 * Starts gateways over one PostgreSQL, as on several machines: each has its own connections, its own lease and its own numbers.
 */
import { Context, Deferred, Effect, Exit, Layer, References, type Scope } from "effect";
import { Gateway } from "../../../src/gateway/Gateway.ts";
import { type GatewayProgram, layer, type PageServices } from "../../../src/gateway/GatewayLayers.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { longMs, type Provider, providerOf } from "../attach/AttachCases.ts";
import { upstreamsAt } from "../GatewayCases.ts";

/** What a client shows. */
export const credential = { authorization: "Bearer sk-0123456789abcdef0123456789abcdef" } as const;

/** One gateway. */
export interface Node {
  readonly url: string;
  readonly services: Context.Context<Gateway | PageServices>;
  readonly recorder: RunRecorder["Service"];
}

/** Starts a gateway over a database. */
export const node = (
  db: string,
  upstream: string,
  program: GatewayProgram = {},
): Effect.Effect<Node, never, Scope.Scope> =>
  Effect.gen(function* () {
    const upstreams = upstreamsAt(upstream);
    const limits = { drainMs: 50, ...program.limits };
    const options = { db, port: 0, upstreams, lingerMs: longMs, ...program, limits };
    const quiet = Layer.succeed(References.MinimumLogLevel, "None");
    const services = yield* Layer.build(Layer.fresh(layer(options).pipe(Layer.provideMerge(quiet))));
    return { url: Context.get(services, Gateway).url, services, recorder: Context.get(services, RunRecorder) };
  }).pipe(Effect.orDie);

/** A provider, and two gateways over one database in front of it. */
export interface Two extends Provider {
  readonly at: string;
  readonly one: Node;
  readonly other: Node;
}

/** Starts them. */
export const two = (
  db: string,
  said: ReadonlyArray<Buffer>,
  program: GatewayProgram = {},
): Effect.Effect<Two, never, Scope.Scope> =>
  Effect.gen(function* () {
    const provider = yield* providerOf(said);
    const one = yield* node(db, provider.at, program);
    const other = yield* node(db, provider.at, program);
    return { ...provider, one, other };
  });

/** Waits until a gateway hears what the others say. */
export const listening = ({ services }: Pick<Node, "services">): Effect.Effect<void> =>
  Effect.suspend(() => {
    const { shared } = Context.get(services, RunRecorder);
    if (shared === undefined || shared.hasNotifications()) return Effect.void;
    const heard = Deferred.makeUnsafe<void>();
    const ends = shared.on(() => {
      if (shared.hasNotifications()) Deferred.doneUnsafe(heard, Exit.void);
    });
    return Effect.ensuring(shared.hasNotifications() ? Effect.void : Deferred.await(heard), Effect.sync(ends));
  });
