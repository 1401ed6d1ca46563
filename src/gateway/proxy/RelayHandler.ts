/**
 * Serves one model request: its run, and the bytes of it that may leave, to a client that may go away at any moment.
 */
import { Context, Effect, Exit, type Fiber, Scope } from "effect";
import * as Relay from "../../adapters/relay/Relay.ts";
import type { RelayPlan } from "../../adapters/relay/RelayPlan.ts";
import type { RelayEvent } from "../../adapters/relay/RelayReader.ts";
import { InterruptSignature } from "../../runtime/contract/InterruptSignature.ts";
import type { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import type { StoreState } from "../api/StoreHealth.ts";
import { type Manner, mannerOf } from "../clients/Manner.ts";
import type { GatewaySettings } from "../config/GatewayOptions.ts";
import type { Access } from "../log/AccessRecord.ts";
import { logged } from "../log/Defect.ts";
import { countWait } from "../log/RequestMeasures.ts";
import type { Routing } from "../routes/Routing.ts";
import type { Way } from "../routing/Way.ts";
import type { ClientResponse } from "./ClientResponse.ts";
import type { PathWatch } from "./PathWatch.ts";
import { beforeHead, behindHead, type EndedRequest, fromMemory } from "./RunEnding.ts";
import { withStoreWord } from "./StoreWord.ts";
import type { TrafficMeter } from "./TrafficMeter.ts";

/** What relaying needs of the gateway. */
export interface RelayServing {
  readonly options: Pick<
    Relay.RelayOptions,
    | "emptyIsFailure"
    | "group"
    | "keepAliveMs"
    | "pathPatienceMs"
    | "prefills"
    | "repeats"
    | "budget"
    | "clocks"
    | "policy"
  >;
  /** The routes of the request, with the way of each. */
  readonly routing: Pick<Routing, "options" | "transport">;
  readonly meter: TrafficMeter["Service"];
  readonly watch: PathWatch;
  /** How the store's writes go. */
  readonly store: () => StoreState;
  /** What is configured for all clients. */
  readonly settings: Pick<GatewaySettings, "manner">;
}

/** Begins the id of every run of a gateway: such a run cannot go on after its process has died, because its client is gone. */
export const runIdPrefix = "gw_";

/**
 * Relays a request to its end.
 *
 * @param way what the request asks for, and whose words an error of ours is in
 */
export const relay = (
  plan: RelayPlan,
  way: Pick<Way, "asked" | "upstream">,
  client: ClientResponse,
  serving: RelayServing,
): Effect.Effect<void, never, StreamProcessor> =>
  Effect.suspend(() => {
    const scope = Scope.makeUnsafe();
    return Effect.withFiber<void, never, StreamProcessor>((fiber) =>
      relayed(plan, way, client, serving, scope, fiber),
    ).pipe(
      // Whatever ends this, the client must not take what it has for the whole.
      Effect.onInterrupt(() => client.break),
      Effect.onExit((exit) => Scope.close(scope, exit)),
    );
  });

const relayed = Effect.fnUntraced(function* (
  plan: RelayPlan,
  { asked, upstream }: Pick<Way, "asked" | "upstream">,
  client: ClientResponse,
  { meter, options, routing, settings, store, watch }: RelayServing,
  scope: Scope.Closeable,
  fiber: Fiber.Fiber<unknown, unknown>,
) {
  const services = yield* Effect.context<StreamProcessor>();
  const told = reporting({ meter, watch, routing: routing.options }, client.access);
  yield* Scope.addFinalizer(scope, Effect.sync(told.closed));
  client.whenGone(() => fiber.interruptUnsafe(undefined, userGone));
  const manner = mannerOf({ headers: plan.request.headers, protocol: plan.protocol.id, asked }, settings.manner);
  const request: EndedRequest = { plan, manner, upstream, client, repeats: options.repeats };
  if (yield* fromMemory(request)) return;
  let response: Relay.RelayedResponse | undefined;
  const copied = Relay.copy(
    plan,
    {
      ...openingOf({ options, routing }, manner),
      flowsOn: true,
      onKeepAlive: () => client.access.heard(),
      onWaited: (wait) => {
        client.access.waited(wait.ms);
        countWait(wait, services);
      },
      onEvent: told.event,
    },
    {
      isReady: client.isReady,
      drained: client.drained,
      write: (bytes) => client.passOn(bytes),
      head: (came) => {
        response = came;
        client.whenGone(leaving(came, scope, services), came.isComplete);
        client.head(withStoreWord(came.head, store), plan.streaming);
      },
    },
  );
  // What its client was told is looked for once it has completed: another run of the same request may be given up meanwhile.
  const completed = Effect.suspend(() => options.repeats?.completed(plan.request) ?? Effect.void);
  yield* Scope.provide(copied, scope).pipe(
    Effect.andThen(completed),
    Effect.andThen(client.end),
    Effect.catchTag("RelayInterrupted", (error) =>
      response === undefined ? beforeHead(error, request) : behindHead(error, request, response),
    ),
  );
});

/** What is done once a client has left behind its head. Once the marker has left it cancels nothing: the run is over, as its reader is. */
const leaving = (
  { cancel }: Relay.RelayedResponse,
  scope: Scope.Closeable,
  services: Context.Context<never>,
): (() => void) => {
  const leave = Effect.flatMap(cancel, (cancelled) => (cancelled ? Effect.void : Scope.close(scope, Exit.void)));
  const left = Effect.catchCause(leave, (cause) => logged("a request whose client left could not be given up", cause));
  return () => void Effect.runForkWith(services)(left);
};

/** How a run is opened for clients of a manner. */
export const openingOf = ({ options, routing }: Pick<RelayServing, "options" | "routing">, manner: Manner) => ({
  ...options,
  ...routing.options,
  ...heldFor(manner),
  transport: routing.transport,
  asks: "if_it_matters" as const,
  runIdPrefix,
});

/** What the relay holds back from a client, how it keeps it waiting, and what it ends with. */
const heldFor = ({ firstNoOp, holdMaxMs, onBreak, patienceMs, reveal }: Manner) => ({
  reveal,
  firstNoOp,
  head: { withinMs: patienceMs },
  ending: onBreak === "abort" ? ("break" as const) : onBreak,
  ...(holdMaxMs === undefined ? {} : { holdMaxMs }),
});

/** Signs an interrupt as a user's cancel. */
export const userGone = Context.make(InterruptSignature, "user");

/** Who is told of a run besides its access line, and the routes that it may take. */
interface Listeners {
  readonly meter: TrafficMeter["Service"];
  readonly watch: PathWatch;
  readonly routing: Routing["options"];
}

/** Tells the meter, the watch over the paths and the access line what becomes of a run. */
export const reporting = ({ meter, routing, watch }: Listeners, access: Pick<Access, "followed" | "learned">) => {
  let runId: string | undefined;
  let path = routing.path?.id;
  return {
    event: (event: RelayEvent, { run_id }: Relay.RelayRun): void => {
      if (runId === undefined) meter.opened(run_id);
      runId = run_id;
      access.followed(event, run_id);
      if (event._tag === "AttemptStarted") {
        const moved = routing.routes?.find(({ id }) => id === event.route);
        path = (moved ?? routing).path?.id;
        access.learned({ route: moved?.id ?? routing.route?.id });
      }
      if (event._tag === "Waiting" && event.for === "path" && path !== undefined) watch.waits(path, run_id);
      else if (event._tag !== "AttemptStarted" && event._tag !== "RunCompleted") watch.look();
      if (event._tag !== "RunInterrupted" && event._tag !== "CallVerified") meter.changed({ run_id, what: event._tag });
    },
    closed: (): void => {
      if (runId !== undefined) meter.closed(runId);
    },
  };
};
