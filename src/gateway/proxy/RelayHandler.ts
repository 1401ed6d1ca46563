/** Serves one model request: executes its run and writes the output to the client, which may leave at any moment. */
import { Cause, Context, Effect, Exit, type Fiber, Scope } from "effect";
import * as Relay from "../../adapters/relay/Relay.ts";
import type { RelayPlan } from "../../adapters/relay/RelayPlan.ts";
import type { RelayEvent } from "../../adapters/relay/RelayReader.ts";
import { InterruptSignature } from "../../runtime/contract/InterruptSignature.ts";
import type { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import type { StoreState } from "../api/StoreHealth.ts";
import { type Manner, mannerOf } from "../clients/Manner.ts";
import type { GatewaySettings } from "../config/GatewayOptions.ts";
import type { Access } from "../log/AccessRecord.ts";
import { logDefect } from "../log/Defect.ts";
import { countWait } from "../log/RequestMeasures.ts";
import type { Routing } from "../routes/Routing.ts";
import type { Way } from "../routing/Way.ts";
import type { ClientResponse } from "./ClientResponse.ts";
import type { PathWatch } from "./PathWatch.ts";
import { beforeHead, behindHead, type EndedRequest, fromMemory } from "./RunEnding.ts";
import { withStoreWord } from "./StoreWord.ts";
import type { TrafficMeter } from "./TrafficMeter.ts";

/** Services and settings that `relay` uses. */
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
  readonly routing: Pick<Routing, "options" | "transport">;
  readonly meter: TrafficMeter["Service"];
  readonly watch: PathWatch;
  /** Returns the state of the store's writes. */
  readonly store: () => StoreState;
  readonly settings: Pick<GatewaySettings, "manner">;
}

/** Prefix of the id of every gateway run. Such a run cannot continue after its process has died, because its client is gone. */
export const runIdPrefix = "gw_";

/**
 * Relays a request until its response has ended.
 *
 * @param way the mode that the request asks for (`reveal`), and the provider in whose format gateway errors are written
 */
export const relay = (
  plan: RelayPlan,
  way: Pick<Way, "asked" | "upstream">,
  client: ClientResponse,
  serving: RelayServing,
): Effect.Effect<void, never, StreamProcessor> =>
  Effect.withFiber((fiber: Fiber.Fiber<unknown, unknown>) => {
    const scope = Scope.makeUnsafe();
    const { meter, options, routing, watch } = serving;
    const manner = mannerOf(
      { headers: plan.request.headers, protocol: plan.protocol.id, asked: way.asked },
      serving.settings.manner,
    );
    const request: EndedRequest = { plan, manner, upstream: way.upstream, client, repeats: options.repeats };
    const told = reporting({ meter, watch, routing: routing.options }, client.access);
    const relayed = Effect.suspend(() => {
      client.whenGone(() => fiber.interruptUnsafe(undefined, userGone));
      return Effect.flatMap(fromMemory(request), (isAnswered) =>
        isAnswered ? Effect.void : Scope.provide(copyTo(request, told.event, serving, scope, fiber.context), scope),
      );
    });
    return Effect.onExit(relayed, (exit) => {
      const closed = Effect.ensuring(Scope.close(scope, exit), Effect.sync(told.closed));
      // An interrupted response must not be taken for complete.
      return Exit.isFailure(exit) && Cause.hasInterrupts(exit.cause) ? Effect.ensuring(client.break, closed) : closed;
    });
  });

/** Runs a request and copies its response to its client. */
const copyTo = (
  request: EndedRequest,
  onEvent: Relay.RelayOptions["onEvent"] & {},
  { options, routing, store }: RelayServing,
  scope: Scope.Closeable,
  services: Context.Context<never>,
): Effect.Effect<void, never, StreamProcessor | Scope.Scope> => {
  const { client, manner, plan } = request;
  let response: Relay.RelayedResponse | undefined;
  const copied = Relay.copy(
    plan,
    {
      ...openingOf({ options, routing }, manner),
      onKeepAlive: () => client.access.recordNoOp(),
      onWaited: (wait) => {
        client.access.addWait(wait.ms);
        countWait(wait, services);
      },
      onEvent,
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
  return Effect.matchEffect(copied, {
    // Forgets the failure of an earlier run only after completion, because another run of the same request may have failed meanwhile.
    onSuccess: () => Effect.andThen(options.repeats?.forgetResponse(plan.request) ?? Effect.void, client.end),
    onFailure: (error) => (response === undefined ? beforeHead(error, request) : behindHead(error, request, response)),
  });
};

/**
 * Builds the action for a client that leaves after the response head was sent. After the terminal marker the action does not cancel the
 * run, but closes its scope.
 */
const leaving = (
  { cancel }: Relay.RelayedResponse,
  scope: Scope.Closeable,
  services: Context.Context<never>,
): (() => void) => {
  const leave = Effect.flatMap(cancel, (cancelled) => (cancelled ? Effect.void : Scope.close(scope, Exit.void)));
  const left = Effect.catchCause(leave, (cause) => logDefect("cannot abandon a request whose client left", cause));
  return () => void Effect.runForkWith(services)(left);
};

/** Builds the relay options for the treatment that a client gets. */
export const openingOf = ({ options, routing }: Pick<RelayServing, "options" | "routing">, manner: Manner) => ({
  ...options,
  ...routing.options,
  ...holdOptionsOf(manner),
  transport: routing.transport,
  asks: "if_it_matters" as const,
  runIdPrefix,
});

/**
 * Converts the treatment of a client to relay options: how long output is withheld, how the connection is kept alive, and how a broken
 * response ends.
 */
const holdOptionsOf = ({ firstNoOp, holdMaxMs, onBreak, patienceMs, reveal }: Manner) => ({
  reveal,
  firstNoOp,
  head: { withinMs: patienceMs },
  ending: onBreak === "abort" ? ("break" as const) : onBreak,
  ...(holdMaxMs === undefined ? {} : { holdMaxMs }),
});

/** Marks an interrupt as the user's cancel. */
export const userGone = Context.make(InterruptSignature, "user");

/** Receivers of the events of a run besides its access record, and the routes that the run may take. */
interface Listeners {
  readonly meter: TrafficMeter["Service"];
  readonly watch: PathWatch;
  readonly routing: Routing["options"];
}

/** Reports a run's events to the meter, the path watch and the access record. */
export const reporting = ({ meter, routing, watch }: Listeners, access: Pick<Access, "recordEvent" | "addFacts">) => {
  let runId: string | undefined;
  let path = routing.path?.id;
  return {
    event: (event: RelayEvent, { run_id }: Relay.RelayRun): void => {
      if (runId === undefined) meter.opened(run_id);
      runId = run_id;
      access.recordEvent(event, run_id);
      if (event._tag === "AttemptStarted") {
        const moved = routing.routes?.find(({ id }) => id === event.route);
        path = (moved ?? routing).path?.id;
        access.addFacts({ route: moved?.id ?? routing.route?.id });
      }
      if (event._tag === "Waiting" && event.for === "path" && path !== undefined) watch.onWait(path, run_id);
      else if (event._tag !== "AttemptStarted" && event._tag !== "RunCompleted") watch.look();
      if (event._tag !== "RunInterrupted" && event._tag !== "CallVerified") meter.changed({ run_id, what: event._tag });
    },
    closed: (): void => {
      if (runId !== undefined) meter.closed(runId);
    },
  };
};
