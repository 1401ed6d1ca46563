/**
 * Serves a model request from the run that it repeats, if it may attach to one, or else from a new run. The new run outlives its client if
 * lingering is configured.
 *
 * A lingering run has a fiber of its own, a child of the fiber of its first request, which waits until the run ends. The request's body is
 * kept in memory and counted while the run is live, because a retry may need it. All clients, including the first, read from the log
 * (`LingeringRun`).
 */
import { Context, Effect, Exit, Fiber, Scope } from "effect";
import * as Relay from "../../adapters/relay/Relay.ts";
import type { RelayInterrupted } from "../../adapters/relay/RelayInterrupted.ts";
import type { RelayPlan } from "../../adapters/relay/RelayPlan.ts";
import type { RelayEvent } from "../../adapters/relay/RelayReader.ts";
import { closeRun } from "../../adapters/relay/RelayWaits.ts";
import { InterruptSignature } from "../../runtime/contract/InterruptSignature.ts";
import type { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { mannerOf } from "../clients/Manner.ts";
import type { Access, AccessFacts } from "../log/AccessRecord.ts";
import { countWait } from "../log/RequestMeasures.ts";
import type { ClientResponse } from "../proxy/ClientResponse.ts";
import { openingOf, type RelayServing, relay, reporting, userGone } from "../proxy/RelayHandler.ts";
import { beforeHead, behindHead, type EndedRequest, fromMemory, unheard } from "../proxy/RunEnding.ts";
import { withStoreWord } from "../proxy/StoreWord.ts";
import type { Way } from "../routing/Way.ts";
import type { KeyedRequest } from "./AttachKey.ts";
import type { Attachments } from "./Attachments.ts";
import type { AttachWish } from "./AttachWish.ts";
import type { LingeringRun, StopReason } from "./LingeringRun.ts";

/** Services and settings that `serveRun` uses. */
export interface RunServing extends RelayServing {
  readonly attachments: Attachments;
}

/** A model request with its attachment options. */
export interface AttachingRequest extends Pick<Way, "asked" | "server" | "upstream"> {
  /** Path and query without the gateway's own prefixes. */
  readonly target: string;
  readonly attach: AttachWish;
}

/** Serves a request until its response ends. If the client leaves earlier, the run may continue until it ends. */
export const serveRun = (
  plan: RelayPlan,
  asked: AttachingRequest,
  client: ClientResponse,
  serving: RunServing,
): Effect.Effect<void, never, StreamProcessor> =>
  Effect.suspend(() =>
    asked.attach.lingerMs === 0 && !serving.attachments.mightRepeat(asked.attach)
      ? relay(plan, asked, client, serving)
      : serveAttachable(plan, asked, client, serving),
  );

const serveAttachable = Effect.fnUntraced(function* (
  plan: RelayPlan,
  asked: AttachingRequest,
  client: ClientResponse,
  serving: RunServing,
): Effect.fn.Return<void, never, StreamProcessor> {
  const { body, headers, method, tenant } = plan.request;
  const request: KeyedRequest = { body, headers, method, tenant, target: asked.target, upstream: asked.server.name };
  const { attachments } = serving;
  // A key costs as much as the rest of a request with a long body. If no run can match it now, it is computed when a repeat might.
  const key = attachments.mayKeyLater(request, asked.attach) ? undefined : yield* attachments.keyOf(request);
  if (key !== undefined && (yield* attachments.serveRepeat(key, asked.attach, client))) return;
  if (asked.attach.lingerMs === 0) return yield* relay(plan, asked, client, serving);
  const manner = mannerOf({ headers, protocol: plan.protocol.id, asked: asked.asked }, serving.settings.manner);
  const ended: EndedRequest = { plan, manner, upstream: asked.upstream, client, repeats: serving.options.repeats };
  if (yield* fromMemory(ended)) return;
  client.access.markLingering();
  const run = attachments.begin({
    ...{ request, key, wish: asked.attach },
    refuse: (error, to) => beforeHead(error, { ...ended, client: to }),
  });
  const reader = run.take(client, 0);
  const working = yield* Effect.forkChild(runLingering(run, ended, serving), { startImmediately: true });
  yield* run.serve(reader);
  const exit = yield* Fiber.await(working);
  // If the run was stopped, the stop has determined its end, so the fiber's exit is ignored.
  if (run.stop === undefined) yield* exit;
});

interface Opened {
  response: Relay.RelayedResponse | undefined;
}

/** Runs a lingering run in its own fiber until it ends. A stop interrupts the fiber. */
const runLingering = (run: LingeringRun, request: EndedRequest, serving: RunServing) =>
  Effect.withFiber<void, never, StreamProcessor>((working) => {
    const scope = Scope.makeUnsafe();
    const opened: Opened = { response: undefined };
    const { context } = working;
    run.setStopAction((why) => void Effect.runForkWith(context)(stopWork(why, opened, scope, working)));
    const reporter = reporting({ ...serving, routing: serving.routing.options }, linesOf(run, request));
    const endRun = Effect.sync(() => {
      reporter.closed();
      run.end("broken");
      serving.attachments.onEnd(run);
    });
    const options = optionsOf(run, request, serving, [reporter.event, context]);
    const sink = logOf(run, opened, serving, request.plan.streaming);
    const work = copyToEnd(run, request, serving, [
      Scope.provide(Relay.copy(request.plan, options, sink), scope),
      opened,
    ]);
    return Effect.onExit(work, (exit) => Effect.ensuring(Scope.close(scope, exit), endRun));
  });

const stopWork = Effect.fnUntraced(function* (
  why: StopReason,
  { response }: Opened,
  scope: Scope.Closeable,
  working: Fiber.Fiber<unknown, unknown>,
) {
  if (why === "closing") yield* closeRun(scope);
  // After the terminal marker `cancel` has no effect, so the run's scope is closed instead.
  else if (response !== undefined && !(yield* response.cancel)) yield* Scope.close(scope, Exit.void);
  working.interruptUnsafe(undefined, why === "closing" ? gatewayCloses : userGone);
});

const gatewayCloses = Context.make(InterruptSignature, "lifecycle");

/** Creates the sink that writes to the run's log, from which the client reads. */
const logOf = (
  run: LingeringRun,
  opened: Opened,
  { attachments, store }: RunServing,
  streaming: boolean,
): Relay.RelaySink => ({
  isReady: () => run.shouldProduce,
  drained: run.waitUntil(() => (run.shouldProduce ? true : undefined)),
  write: (bytes) => attachments.onEvicted(run.append(bytes)),
  head: (response) => {
    opened.response = response;
    run.setHead(withStoreWord(response.head, store), streaming, response.isComplete);
  },
});

const copyToEnd = (
  run: LingeringRun,
  request: EndedRequest,
  { attachments, options }: RunServing,
  [copied, opened]: readonly [Effect.Effect<void, RelayInterrupted, StreamProcessor>, Opened],
): Effect.Effect<void, never, StreamProcessor> =>
  Effect.matchEffect(copied, {
    // The remembered failure of the request is removed only after completion, because another run of the same request may have failed in
    // the meantime.
    onSuccess: () =>
      Effect.map(options.repeats?.forgetResponse(request.plan.request) ?? Effect.void, () => run.complete()),
    onFailure: (error) => {
      if (opened.response !== undefined)
        return behindHead(error, { ...request, client: sinkOf(run, attachments) }, opened.response);
      return Effect.map(run.client === undefined ? unheard(error, request) : Effect.void, () => run.fail(error));
    },
  });

/**
 * Replaces the client when a run breaks after its head. The ending is written to the log, so that present and later readers get the same
 * ending.
 */
const sinkOf = (run: LingeringRun, attachments: Attachments): Pick<ClientResponse, "break" | "end" | "write"> => ({
  write: (chunks) => Effect.sync(() => attachments.onEvicted(run.append(chunks))),
  end: Effect.sync(() => run.endBody("end")),
  break: Effect.sync(() => run.endBody("break")),
});

/** Selects the access records that describe the run: those of its first request and of its current reader. */
const linesOf = (run: LingeringRun, { client }: EndedRequest) => {
  const forEachLine = (tell: (line: Access) => void): void => {
    tell(client.access);
    const reads = run.client?.access;
    if (reads !== undefined && reads !== client.access) tell(reads);
  };
  return {
    each: forEachLine,
    recordEvent: (event: RelayEvent, runId: string) => forEachLine((line) => line.recordEvent(event, runId)),
    addFacts: (facts: AccessFacts) => forEachLine((line) => line.addFacts(facts)),
  };
};

const optionsOf = (
  run: LingeringRun,
  request: EndedRequest,
  serving: RunServing,
  [report, services]: readonly [ReturnType<typeof reporting>["event"], Context.Context<never>],
): Relay.RelayOptions => ({
  ...openingOf(serving, request.manner),
  presence: run.presence,
  onKeepAlive: () => run.client?.access.recordNoOp(),
  onWaited: (wait) => {
    linesOf(run, request).each((line) => line.addWait(wait.ms));
    countWait(wait, services);
  },
  onEvent: (event, of) => {
    serving.attachments.setRunId(run, of.run_id);
    report(event, of);
  },
});
