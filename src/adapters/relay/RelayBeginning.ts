/**
 * The options of relayed requests, and the start of a run: its attempts on any of its routes, and its reports to the client.
 */
import { Clock, Context, Effect, Random, Scope } from "effect";
import type * as Json from "../../domain/Json.ts";
import type { Budget } from "../../domain/RunFacts.ts";
import * as Tokens from "../../facts/Tokens.ts";
import type { Path } from "../../paths/Path.ts";
import type { RecoveryPolicy } from "../../policy/RecoveryPolicy.ts";
import type { Tolerance } from "../../provider/Protocols.ts";
import type { PrefillRule } from "../../provider/seam/Prefills.ts";
import type { Framing } from "../../provider/stream/Framing.ts";
import * as Sse from "../../provider/stream/Sse.ts";
import { fromReader } from "../../runtime/attempt/AsyncSource.ts";
import { envelopeBytes } from "../../runtime/attempt/Reveal.ts";
import type { ClockOptions } from "../../runtime/contract/Clocks.ts";
import { openPull } from "../../runtime/contract/LazyStream.ts";
import type { RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import type { RunBase, RunOptions, SpentBefore } from "../../runtime/contract/RunOptions.ts";
import type { Taps } from "../../runtime/contract/Taps.ts";
import { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { Presence } from "../../stages/output/Presence.ts";
import * as Routes from "../../stages/routes/Routes.ts";
import * as Seam from "../../stages/seam/Seam.ts";
import type { RelayPart } from "./RelayFrames.ts";
import { RelayHeads } from "./RelayHeads.ts";
import { type RelayInterrupted, recoveryHeaders, toRelayInterrupted } from "./RelayInterrupted.ts";
import type { RelayPlan } from "./RelayPlan.ts";
import { type Events, type RelayBytes, type RelayEnding, type RelayEvent, RelayReader } from "./RelayReader.ts";
import { type FailedRequest, isMarkedRetry, type RelayRepeats, remainingBudget } from "./RelayRepeats.ts";
import { RelaySource } from "./RelaySource.ts";
import type { RelayHead, RelayTransport } from "./RelayTransport.ts";
import { type RelayWait, RelayWaits } from "./RelayWaits.ts";
import { digestOf } from "./RelayWords.ts";
import { RelaySeam } from "./seam/RelaySeam.ts";
import type { WithTimeout } from "./WholeBody.ts";

/** An alternative route for a request, with its plan and transport there. */
export interface RelayRoute {
  /** Name of the route in `x-recovery-route`, in events and on record. */
  readonly id: string;
  /** Plan of the request with the route's provider. */
  readonly plan: RelayPlan;
  /** Adapts the request to this route and sends it. */
  readonly transport: RelayTransport;
  readonly path?: Path;
  /** True if the statuses 400, 401 and 404 are this route's fault, as in `RunRoute`. Default true. */
  readonly own?: boolean;
  /** As in `RelayOptions`, for text that this route shows. */
  readonly continueText?: "auto" | "ask";
}

/** Options of a relayed request. */
export interface RelayOptions {
  readonly transport: RelayTransport;
  /** The first route, if routes have names. Every response then names the route that it came from. */
  readonly route?: Pick<RelayRoute, "id"> & { readonly own?: boolean | "credential" };
  /** Further routes, in the order in which the run moves to them. */
  readonly routes?: ReadonlyArray<RelayRoute>;
  /** Finishes that count as failures, so that another route may take over. Default: none. */
  readonly finishFailures?: RunOptions<never, never, never>["finishFailures"];
  /** `live` (the default) sends parts as they arrive. `on_complete` sends nothing until the response is proven complete. */
  readonly reveal?: "live" | "on_complete";
  /**
   * Time at which the head is sent to the client: with the provider's (`first`, the default), or with the first content
   * (`content`). `{ withinMs }` is like `content` for a stream, but waits at most that many milliseconds.
   */
  readonly head?: "first" | "content" | { readonly withinMs: number };
  /**
   * Mode for a stream that breaks after shown text. `auto` asks the provider for the rest, and delivers it if the seam is proven.
   * Default `ask`.
   */
  readonly continueText?: "auto" | "ask";
  /** Rules for further providers that accept a prefill. They are checked before the built-in rules. */
  readonly prefills?: ReadonlyArray<PrefillRule>;
  /** Maximum time for which `on_complete` holds a response before it continues as `live`, in milliseconds; no limit by default. */
  readonly holdMaxMs?: number;
  /** Ending of a run that breaks for good after its head. Default `break`. */
  readonly ending?: RelayEnding;
  /** `if_it_matters` asks a person only if an answer can change something for the client. Default `always`. */
  readonly asks?: "always" | "if_it_matters";
  /** True if a response without content counts as a failure. It is then held until its end is known. Default false. */
  readonly emptyIsFailure?: boolean;
  /** Budget of the run. Omitted fields have their defaults. */
  readonly budget?: Partial<Budget>;
  /** Path of the request, and the scope of its cooldowns. Default: the provider's id, with one credential for all requests. */
  readonly path?: Path;
  /** Group of runs that share a budget with this run, within the scope of the path's credential. */
  readonly group?: string;
  /**
   * Maximum wait of a request without streaming for its path, in milliseconds. Its client receives nothing meanwhile, so the request is
   * then abandoned and the client is asked to repeat it. If omitted, it waits like a request with streaming.
   */
  readonly pathPatienceMs?: number;
  /** Clocks of an attempt, in milliseconds; `false` switches a clock off. */
  readonly clocks?: ClockOptions;
  /** Replaces the default policy. */
  readonly policy?: RecoveryPolicy;
  /** Deviations from the protocol that count as healthy, for example `doneWithoutFinish`. The number of choices comes from the request. */
  readonly tolerance?: Tolerance;
  /** Signal of the client's own Stop. The run listens to it, even if a fetch below sees it first. */
  readonly signal?: AbortSignal;
  /** Renews the credentials after they were refused, once per run. If omitted, such a refusal ends the run. */
  readonly refreshCredentials?: Effect.Effect<unknown, unknown>;
  /** Remembers failed requests, so that a client's own retries share a budget. One instance serves all requests. */
  readonly repeats?: RelayRepeats;
  /** Time without a byte after which a client that waits for held bytes gets its protocol's no-op, in milliseconds. */
  readonly keepAliveMs?: number;
  /**
   * Form of a keep-alive before the first event of the response: a comment line (the default, if the protocol's clients accept it),
   * or the no-op for clients that count events.
   */
  readonly firstNoOp?: "event" | "comment";
  /** Presence of the client, if the embedder tracks it itself, for example before there is a response. One instance per request. */
  readonly presence?: Presence;
  /** Called for every keep-alive that is sent to the client; must not throw. */
  readonly onKeepAlive?: () => void;
  /** Called after every wait of the run for a path or a cooldown; must not throw. */
  readonly onWaited?: (wait: RelayWait) => void;
  /** Prefix of the ids of all runs; default `run_`. */
  readonly runIdPrefix?: string;
  /** Called synchronously with every event of the run except its parts. An error that it throws is logged. */
  readonly onEvent?: (event: RelayEvent, run: RelayRun) => void;
}

/** The run of an event. */
export interface RelayRun {
  readonly run_id: string;
  /** Id of the failed run that the client repeats with this run. */
  readonly retry_of: string | undefined;
  readonly plan: RelayPlan;
}

/** A response that may be sent to its client. */
export interface RelayedResponse extends RelayRun {
  /** The provider's head, with `x-recovery-run` and `x-recovery-attempts` (so far) after its own headers. */
  readonly head: RelayHead;
  /** Returns the data of the last event that was sent, if it is JSON. An embedder's own ending continues from it. */
  readonly last: () => Json.JsonRecord | undefined;
  /** Returns true if a part of the response itself was sent. */
  readonly begun: () => boolean;
  /** Returns true if the provider's own error event was forwarded. */
  readonly handedOn: () => boolean;
  /** True if the terminal marker was sent. A client that closes after that has the whole response. */
  readonly isComplete: () => boolean;
  /** Cancels the run. Succeeds with false if the terminal marker was already sent, so that nothing was cancelled. */
  readonly cancel: Effect.Effect<boolean>;
  /** Marks the client as absent. It may return. From this step on, nothing is handed over. */
  readonly away: Effect.Effect<void>;
  /** Marks the client as present. Held parts pass as they would have before. */
  readonly back: Effect.Effect<void>;
  /** Returns true if held parts did not fit and were discarded, so that no client can have the whole response. */
  readonly evicted: () => boolean;
}

/** A response that is read on demand. */
export interface RelayResponse extends RelayedResponse {
  readonly read: Effect.Effect<RelayBytes, RelayInterrupted>;
}

/** Destination of a copied response. Its functions must not block or throw. */
export interface RelaySink {
  /** Called once, before any bytes, when the head may be sent. Never called if the run ends before. */
  readonly head: (response: RelayedResponse) => void;
  /** Returns true if the sink accepts bytes, false while its socket must drain. If its client has gone, it accepts and drops them. */
  readonly isReady: () => boolean;
  /** Receives whole events, in order. They count as shown (L4). */
  readonly write: (bytes: ReadonlyArray<Uint8Array<ArrayBuffer>>) => void;
  /** Completes once the sink is ready. */
  readonly drained: Effect.Effect<void>;
}

/** A run that has begun. */
export interface BegunRun {
  readonly run: RelayRun;
  readonly heads: RelayHeads;
  readonly presence: Presence;
  readonly reader: RelayReader;
  readonly waits: RelayWaits;
  readonly services: Context.Context<never>;
  /** Scope of the run. Closing it ends the run. */
  readonly scope: Scope.Closeable;
  readonly pull: Events;
  /** Remembers the retries that the run has spent, for the client's own repeat of its request. */
  readonly rememberSpent: (cancelled: boolean) => Effect.Effect<void>;
  /** Converts the failure of the run to the error for its client, and remembers the retries that the run has spent. */
  readonly failing: (error: RunInterrupted) => Effect.Effect<never, RelayInterrupted>;
  /** Creates the response with a head that may be sent now. */
  readonly responseOf: (head: RelayHead) => RelayedResponse;
}

/**
 * Begins a run.
 *
 * @param taps `tee` gets the parts that leave the run, and `room` says when they may; `begin` adds the client's presence
 */
export const begin = (
  plan: RelayPlan,
  options: RelayOptions,
  taps?: Pick<Taps<RelayPart>, "tee" | "room">,
): Effect.Effect<BegunRun, never, StreamProcessor | Scope.Scope> =>
  Effect.contextWith((services: Context.Context<StreamProcessor | Scope.Scope>) =>
    Effect.flatMap(repeatedRun(plan, options), (before) => beginAfter(plan, options, services, before, taps)),
  );

const beginAfter = (
  plan: RelayPlan,
  options: RelayOptions,
  services: Context.Context<StreamProcessor | Scope.Scope>,
  before: RepeatedRun,
  taps: Pick<Taps<RelayPart>, "tee" | "room"> | undefined,
): Effect.Effect<BegunRun> => {
  const processor = Context.get(services, StreamProcessor);
  const ambient = Context.get(services, Scope.Scope);
  const heads = new RelayHeads();
  const presence = presenceOf(options, heads);
  const { repeated } = before;
  const runId = makeRunId(options.runIdPrefix ?? "run_", Context.get(services, Random.Random));
  const run: RelayRun = { run_id: runId, retry_of: repeated?.run_id, plan };
  const observe = options.onEvent;
  const waits = new RelayWaits(Context.get(services, Clock.Clock), ambient, options.onWaited);
  heads.setOpenListener(waits);
  const reader = new RelayReader(heads, {
    observe: (event) => {
      waits.onEvent(event);
      observe?.(event, run);
    },
    ending: options.ending ?? "break",
    framing: plan.protocol.framing,
    withholds: typeof options.head === "object",
    repeats: repeated !== undefined,
  });
  const scope = Scope.forkUnsafe(ambient);
  const events = processor.run(runOptions(run, options, heads, [before, services, { presence, ...taps }, waits]));
  const rememberSpent = (cancelled: boolean) =>
    spending(run, options, before, () => ({ spent: reader.attempts - waits.pathAttempts - 1, cancelled }));
  // `Stream.toPull` would wrap every pull in a copy of all services and a semaphore.
  return Effect.map(openPull(events, scope), (pull) => ({
    ...{ run, heads, presence, reader, waits, services, scope, pull, rememberSpent },
    failing: (error) =>
      Effect.flatMap(rememberSpent(error.failure.kind === "cancelled"), () =>
        Effect.fail(
          toRelayInterrupted(error, reader.attempts, before.repeated?.run_id, error.route ?? options.route?.id),
        ),
      ),
    responseOf: (head) => ({
      ...run,
      head: withRunHeaders(head, run, heads),
      last: () => reader.last,
      begun: () => reader.begun,
      handedOn: () => reader.handedOn,
      isComplete: () => reader.isComplete,
      cancel: Effect.suspend(() => (reader.isComplete ? Effect.succeed(false) : processor.cancel(run.run_id))),
      ...comingAndGoing(presence),
    }),
  }));
};

/** Adds the headers of a run. Our own head names no route, because no route has answered yet. */
const withRunHeaders = (head: RelayHead, { plan, run_id }: RelayRun, heads: RelayHeads): RelayHead => {
  const route = head === ownHeadOf(plan) ? undefined : heads.route;
  return { ...head, headers: [...head.headers, ...recoveryHeaders(run_id, heads.attempt, undefined, route)] };
};

/** Returns the presence of the client. Eviction also discards the events that are kept for the response. */
const presenceOf = ({ presence = new Presence() }: RelayOptions, heads: RelayHeads): Presence => {
  presence.whenEvicted(() => heads.forget());
  return presence;
};

/** Creates the functions by which the embedder reports that a client leaves and returns. */
const comingAndGoing = (presence: Presence): Pick<RelayedResponse, "away" | "back" | "evicted"> => ({
  away: Effect.sync(() => presence.markAway()),
  back: Effect.sync(() => presence.markPresent()),
  evicted: () => presence.isEvicted,
});

/** Returns the head of a stream for which no attempt has a head yet: the same object for every request of a form. */
export const ownHeadOf = ({ protocol: { framing = Sse.framing } }: Pick<RelayPlan, "protocol">): RelayHead => {
  const made = ownHeads.get(framing) ?? {
    status: 200,
    statusText: "OK",
    headers: [
      ["content-type", framing.contentType],
      ["cache-control", "no-cache"],
      ["x-recovery-waiting", "true"],
    ],
  };
  ownHeads.set(framing, made);
  return made;
};

const ownHeads = new WeakMap<Framing, RelayHead>();

/** Completes if a request without streaming has waited for its path up to its limit. */
export const awaitPathTimeout = (
  { streaming }: RelayPlan,
  { pathPatienceMs }: RelayOptions,
  waits: RelayWaits,
): Effect.Effect<"given_up"> =>
  streaming || pathPatienceMs === undefined
    ? Effect.never
    : Effect.as(waits.untilPathHasTaken(pathPatienceMs), "given_up");

/** The part of a route that sends and reads a request. */
type Way = Pick<RelayRoute, "plan" | "transport" | "continueText">;

/** Creates the seam of a run, if any of its routes continues shown text. */
const seamOf = (
  { streaming }: RelayPlan,
  { continueText, prefills, routes = [] }: RelayOptions,
): RelaySeam | undefined =>
  streaming && [continueText, ...routes.map((it) => it.continueText)].includes("auto")
    ? new RelaySeam(prefills)
    : undefined;

/** Creates the attempts of a run on any of its routes. */
const attempts = (heads: RelayHeads, seam: RelaySeam | undefined, services: Context.Context<never>) => {
  const clock = Context.get(services, Clock.Clock);
  const within: WithTimeout = (ms, promise) =>
    Effect.runPromiseWith(services)(
      Effect.timeoutOrElse(
        Effect.promise(() => promise),
        { duration: ms, orElse: () => Effect.undefined },
      ),
    );
  const source = (way: Way, context: RelaySourceContext, route: string | undefined) => {
    const { continueText, plan, transport } = way;
    heads.route = route;
    return new RelaySource({
      ...{ plan, transport, context, heads, within },
      seam: continueText === "auto" ? seam : undefined,
      nowMs: () => clock.currentTimeMillisUnsafe(),
    });
  };
  return (way: Way, route: string | undefined) => (context: RelaySourceContext) =>
    fromReader<RelayPart, unknown>(
      () => source(way, context, route),
      (error) => heads.recordRoute(error),
    );
};

/** Mutable options of a run during assembly, because one spread per omitted option would cost more than all assignments. */
type Draft = { -readonly [Key in keyof RelayedBase]: RelayedBase[Key] };

type RelayedRun = RunOptions<RelayPart, unknown, never>;
type RelayedBase = RunBase<RelayPart, unknown, never>;

const runOptions = (
  { plan, run_id }: RelayRun,
  options: RelayOptions,
  heads: RelayHeads,
  [before, services, taps, waits]: [RepeatedRun, Context.Context<never>, Taps<RelayPart>, RelayWaits],
): RelayedRun => {
  const seam = seamOf(plan, options);
  const { later, repeated } = before;
  const beside = isMarkedRetry(plan.request);
  const attempt = attempts(heads, seam, services);
  const observe = (part: RelayPart) => part.observation;
  const tolerant =
    options.tolerance === undefined ? plan : { ...plan, tolerance: { ...options.tolerance, ...plan.tolerance } };
  const { continueText = "ask", finishFailures, route, routes = [] } = options;
  const first = attempt({ plan: tolerant, transport: options.transport, continueText }, route?.id);
  const made: Draft = {
    ...{ runId: run_id, provider: plan.provider, tools: plan.tools, observe, sizeOf, taps },
    digestOf: (parts) => digestOf(parts, plan.protocol.framing),
    attempt: first,
    discardable: false,
    reveal: options.reveal ?? "live",
    streaming: plan.streaming,
    budget: remainingBudget(options.budget ?? {}, repeated),
    requestTokens: Tokens.estimateRequest(plan.request.body),
    isNewId: true,
  };
  // Another process can resume a background response, which needs its id on record first. Any other run ends with its client, so its record
  // may lag.
  if (plan.resumes !== true) made.record = "behind";
  if (repeated !== undefined) made.retryOf = repeated.run_id;
  if (routes.length > 0)
    made.routes = Routes.of(
      routes.map((it) => {
        const open = attempt(it, it.id);
        const continues = seam === undefined ? {} : { canContinue: open };
        return { ...it, provider: it.plan.provider, attempt: open, ...continues, observe };
      }),
      route,
    );
  if (finishFailures !== undefined) made.finishFailures = finishFailures;
  if (plan.resumes === true) made.cursor = cursorOf;
  if (seam !== undefined) made.canContinue = first;
  if (options.holdMaxMs !== undefined) made.holdMaxMs = options.holdMaxMs;
  if (options.asks !== undefined) made.asks = options.asks;
  if (options.emptyIsFailure !== undefined) made.emptyIsFailure = options.emptyIsFailure;
  const { head } = options;
  if (typeof head === "object") made.patienceMs = patienceOf(heads, waits, head.withinMs);
  if (later !== undefined) made.spentBefore = { asked: later, beside };
  if (options.path !== undefined) made.path = options.path;
  if (options.group !== undefined) made.group = options.group;
  if (options.signal !== undefined) made.signal = options.signal;
  if (options.refreshCredentials !== undefined) made.refreshCredentials = options.refreshCredentials;
  if (options.clocks !== undefined) made.clocks = options.clocks;
  if (options.policy !== undefined) made.policy = options.policy;
  if (seam === undefined) return made;
  return Object.assign(made, { continueText: "auto" as const, seam: Seam.of(() => seam) });
};

/** Time for which a client without a head can still get a refusal as an HTTP status. */
const patienceOf = (heads: RelayHeads, waits: RelayWaits, withinMs: number) => () =>
  heads.sent ? undefined : waits.remainingWait(withinMs);

const cursorOf = ({ cursor }: RelayPart): string | undefined => cursor;

/** Weight of a held part in bytes: its own bytes and its decoded event if that is kept, but at least `envelopeBytes`. */
const sizeOf = ({ bytes, decoded }: RelayPart): number =>
  Math.max(envelopeBytes, bytes.byteLength + 2 * (decoded?.event.data.length ?? 0));

type RelaySourceContext = ConstructorParameters<typeof RelaySource>[0]["context"];

/** Remembers the retries that a failed run has spent, for the client's own repeat of its request. */
const spending = (
  { plan, run_id }: RelayRun,
  { repeats }: RelayOptions,
  before: RepeatedRun,
  failed: () => Omit<FailedRequest, "run_id">,
): Effect.Effect<void> =>
  Effect.suspend(() => repeats?.recordSpent(plan.request, { run_id, ...failed() }, before.repeated) ?? Effect.void);

/** Retries spent by the failed run that the client repeats with this run, as far as this process knows. */
class RepeatedRun {
  repeated: FailedRequest | undefined;
  /** Result of the query of other processes; undefined if no other process is asked. */
  readonly later: Effect.Effect<SpentBefore> | undefined;

  constructor(repeated: FailedRequest | undefined, asked: Effect.Effect<FailedRequest | undefined> | undefined) {
    this.repeated = repeated;
    this.later =
      asked &&
      Effect.map(asked, (found) => {
        this.repeated = found;
        return { retries: found?.spent ?? 0, retryOf: found?.run_id };
      });
  }
}

/** Finds the failed run that a request repeats: here now, or at other processes once the run needs to know. */
const repeatedRun = (
  { request }: RelayPlan,
  { repeats }: RelayOptions,
): Effect.Effect<RepeatedRun, never, Scope.Scope> => {
  if (repeats === undefined) return Effect.succeed(new RepeatedRun(undefined, undefined));
  return Effect.flatMap(repeats.take(request), (found) =>
    found === undefined
      ? Effect.map(repeats.elsewhere(request), (asked) => new RepeatedRun(undefined, asked))
      : Effect.succeed(new RepeatedRun(found, undefined)),
  );
};

/** Creates a run id from 96 random bits, so that ids of processes that share a store do not collide. */
const makeRunId = (prefix: string, random: Context.Service.Shape<typeof Random.Random>): string => {
  const part = () =>
    Math.floor(random.nextDoubleUnsafe() * 2 ** 32)
      .toString(36)
      .padStart(7, "0");
  return prefix + part() + part() + part();
};
