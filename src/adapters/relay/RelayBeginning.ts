/**
 * Describes how requests are relayed, and begins the run of one: its attempts, by any of its routes, and what its client may be
 * told of it.
 */
import { Clock, Context, Effect, Random, Scope } from "effect";
import type * as Json from "../../domain/Json.ts";
import type { Budget } from "../../domain/RunFacts.ts";
import * as Tokens from "../../facts/Tokens.ts";
import type { Path } from "../../paths/Path.ts";
import type { RecoveryPolicy } from "../../policy/RecoveryPolicy.ts";
import type { Tolerance } from "../../provider/Protocols.ts";
import type { PrefillRule } from "../../provider/seam/Prefills.ts";
import { fromReader } from "../../runtime/attempt/AsyncSource.ts";
import { envelopeBytes } from "../../runtime/attempt/Reveal.ts";
import type { ClockOptions } from "../../runtime/contract/Clocks.ts";
import { pullIn } from "../../runtime/contract/LazyStream.ts";
import { Presence } from "../../runtime/contract/Presence.ts";
import type { RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import type { RunBase, RunOptions, SpentBefore } from "../../runtime/contract/RunOptions.ts";
import type { Taps } from "../../runtime/contract/Taps.ts";
import { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import type { RelayPart } from "./RelayFrames.ts";
import { RelayHeads } from "./RelayHeads.ts";
import { interrupted, type RelayInterrupted, recoveryHeaders } from "./RelayInterrupted.ts";
import type { RelayPlan } from "./RelayPlan.ts";
import { type Events, type RelayBytes, type RelayEnding, type RelayEvent, RelayReader } from "./RelayReader.ts";
import { type FailedRequest, type RelayRepeats, remainingBudget, saysRetry } from "./RelayRepeats.ts";
import { RelaySource } from "./RelaySource.ts";
import type { RelayHead, RelayTransport } from "./RelayTransport.ts";
import { type RelayWait, RelayWaits } from "./RelayWaits.ts";
import { digestOf } from "./RelayWords.ts";
import { RelaySeam } from "./seam/RelaySeam.ts";
import type { WithTimeout } from "./WholeBody.ts";

/** Another way for a request: what it asks for there, and how it is sent. */
export interface RelayRoute {
  /** Names the route in `x-recovery-route`, in events and on record. */
  readonly id: string;
  /** The request's own plan, with the route's provider. */
  readonly plan: RelayPlan;
  /** Sends the request as it is on this route. */
  readonly transport: RelayTransport;
  readonly path?: Path;
  /** As of `RunRoute`. */
  readonly own?: boolean;
  /** As of the options, for what this route shows. */
  readonly continueText?: "auto" | "ask";
}

/** How requests are relayed. */
export interface RelayOptions {
  readonly transport: RelayTransport;
  /** The route that the run begins on, where routes have names: every response then says by which one it came. */
  readonly route?: Pick<RelayRoute, "id"> & { readonly own?: RunOptions<never, never, never>["ownRoute"] };
  /** Further routes, in the order in which the run moves to them. */
  readonly routes?: ReadonlyArray<RelayRoute>;
  /** Finishes that count as failures, so that another route may take them. Default none. */
  readonly finishFailures?: RunOptions<never, never, never>["finishFailures"];
  /** What is held back from the client. Default `live`. */
  readonly reveal?: "live" | "on_complete";
  /**
   * When the head goes to the client: with the provider's (`first`, the default), with the first content (`content`), or so for
   * a stream at the latest after so many milliseconds.
   */
  readonly head?: "first" | "content" | { readonly withinMs: number };
  /**
   * Whether a stream that breaks behind shown text goes on by itself. `auto`: the provider is asked for the rest, and what it says
   * leaves where the seam is proven (`seam/RelaySeam.ts`). Default `ask`.
   */
  readonly continueText?: "auto" | "ask";
  /** Which providers go on with a text that a request ends with, beside those that are known. */
  readonly prefills?: ReadonlyArray<PrefillRule>;
  /** A response that is held whole goes on as `live` after so many milliseconds; no limit by default. */
  readonly holdMaxMs?: number;
  /** What a run that breaks for good behind its head ends with. Default `break`. */
  readonly ending?: RelayEnding;
  /** Asks a person only where an answer changes something for the client. Default `always`. */
  readonly asks?: "always" | "if_it_matters";
  /**
   * Where another process has taken the run over: whether text of which the client has something goes on to its end, as long as no call
   * comes. For embedders whose clients no other process can show the response to. Default false: the connection breaks.
   */
  readonly flowsOn?: boolean;
  /** Takes a response with nothing in it for a failure, and holds it until its end is known. Default false. */
  readonly emptyIsFailure?: boolean;
  /** What a run may spend; left-out fields have the defaults. */
  readonly budget?: Partial<Budget>;
  /** The path of the request, and whose requests share a cooldown on it. Default: the provider's id, and one credential for all. */
  readonly path?: Path;
  /** The group of runs whose budget the run shares, in the scope of the path's credential. */
  readonly group?: string;
  /**
   * A request that does not stream is given up once it has waited so long for its path, in milliseconds: its client hears nothing
   * meanwhile, and is told to ask again. Left out, it waits as any other.
   */
  readonly pathPatienceMs?: number;
  /** Clocks of an attempt, in milliseconds; `false` is off. */
  readonly clocks?: ClockOptions;
  /** Another policy than the default one. */
  readonly policy?: RecoveryPolicy;
  /** How the provider's healthy streams differ, beside what the request itself says of its choices. */
  readonly tolerance?: Tolerance;
  /** The signal of the client's own Stop: the run listens to it, also where a fetch below sees it first. */
  readonly signal?: AbortSignal;
  /** Renews the credentials after a refusal of them, once a run. Left out, such a refusal ends the run. */
  readonly refreshCredentials?: Effect.Effect<unknown, unknown>;
  /** Remembers failed requests, so that a client's own retries share a budget. One for all requests. */
  readonly repeats?: RelayRepeats;
  /** After so many milliseconds without a byte a client that waits for what is held gets its protocol's no-op. */
  readonly keepAliveMs?: number;
  /**
   * What that is before an event of the response has left: a comment line (the default, where the protocol's clients take them),
   * or the no-op, for clients that count events.
   */
  readonly firstNoOp?: "event" | "comment";
  /** Whether a client reads, where that is known before there is a response, or elsewhere. One for each request. */
  readonly presence?: Presence;
  /** Called with every keep-alive that goes to the client; it must not throw. */
  readonly onKeepAlive?: () => void;
  /** Called with every wait of the run for a path or a cooldown, once it is over; it must not throw. */
  readonly onWaited?: (wait: RelayWait) => void;
  /** Begins the id of every run; default `run_`. */
  readonly runIdPrefix?: string;
  /** Called synchronously with every event of the run but its parts; an error that it throws is logged. */
  readonly onEvent?: (event: RelayEvent, run: RelayRun) => void;
}

/** Which run an event belongs to. */
export interface RelayRun {
  readonly run_id: string;
  /** The failed run that the client repeats with this one. */
  readonly retry_of: string | undefined;
  readonly plan: RelayPlan;
}

/** A response whose bytes are on their way to its client. */
export interface RelayedResponse extends RelayRun {
  /** The provider's head with `x-recovery-run` and `x-recovery-attempts` (so far) behind its own headers. */
  readonly head: RelayHead;
  /** The data of the last event that has left, where it is JSON: what an ending of the embedder's own goes on from. */
  readonly last: () => Json.JsonRecord | undefined;
  /** Whether something of the response itself has left. */
  readonly begun: () => boolean;
  /** Whether the provider's own error event was handed on. */
  readonly handedOn: () => boolean;
  /** True once the terminal marker has left: a client that closes after it has the whole response. */
  readonly isComplete: () => boolean;
  /** Returns whether there was something to cancel; once the terminal marker has left there is not. */
  readonly cancel: Effect.Effect<boolean>;
  /** The client has gone away and may come back: from this step on nothing is handed over. */
  readonly away: Effect.Effect<void>;
  /** A client reads again: what was held passes on as it would have. */
  readonly back: Effect.Effect<void>;
  /** What was held for a client that is away did not fit, and was thrown away: no client can have the whole response. */
  readonly evicted: () => boolean;
}

/** A response that is read on demand. */
export interface RelayResponse extends RelayedResponse {
  readonly read: Effect.Effect<RelayBytes, RelayInterrupted>;
}

/** What a response is copied to. Nothing of it waits or throws. */
export interface RelaySink {
  /** The head may go to the client now. Called once, before any bytes; never for a run that ends before. */
  readonly head: (response: RelayedResponse) => void;
  /** Whether it takes bytes now: not while its socket must drain. One whose client has gone takes them, and drops them. */
  readonly isReady: () => boolean;
  /** Takes whole events, in order. They count as shown (L4). */
  readonly write: (bytes: ReadonlyArray<Uint8Array<ArrayBuffer>>) => void;
  /** Done once it is ready. */
  readonly drained: Effect.Effect<void>;
}

/** A run that has begun. */
export interface BegunRun {
  readonly run: RelayRun;
  readonly heads: RelayHeads;
  readonly presence: Presence;
  readonly reader: RelayReader;
  readonly waits: RelayWaits;
  /** The run ends with it. */
  readonly scope: Scope.Closeable;
  readonly pull: Events;
  /** Remembers what the run has spent, for the client's own repeat of its request. */
  readonly spends: (cancelled: boolean) => Effect.Effect<void>;
  /** The run has broken. */
  readonly failing: (error: RunInterrupted) => Effect.Effect<never, RelayInterrupted>;
  /** The response with a head, which may go to the client now. */
  readonly responseOf: (head: RelayHead) => RelayedResponse;
}

/**
 * Begins a run.
 *
 * @param taps of its output, beside its presence
 */
export const begin = Effect.fnUntraced(function* (
  plan: RelayPlan,
  options: RelayOptions,
  taps?: Pick<Taps<RelayPart>, "tee" | "room">,
): Effect.fn.Return<BegunRun, never, StreamProcessor | Scope.Scope> {
  const processor = yield* StreamProcessor;
  const heads = new RelayHeads();
  const presence = presenceOf(options, heads);
  const { repeats } = options;
  const repeated = repeats === undefined || repeats.isEmpty ? undefined : yield* repeats.take(plan.request);
  const before = new RepeatedRun(repeated, repeated === undefined ? yield* elsewhere(plan, options) : undefined);
  const run: RelayRun = { run_id: yield* makeRunId(options.runIdPrefix ?? "run_"), retry_of: repeated?.run_id, plan };
  const observe = options.onEvent;
  const waits = yield* RelayWaits.make(options.onWaited);
  heads.tellsOpened(waits);
  const reader = new RelayReader(heads, {
    observe: (event) => {
      waits.heard(event);
      observe?.(event, run);
    },
    ending: options.ending ?? "break",
    withholds: typeof options.head === "object",
    repeats: repeated !== undefined,
  });
  const scope = yield* Scope.fork(yield* Effect.scope);
  const events = processor.run(
    runOptions(run, options, heads, [before, yield* Effect.context<never>(), { presence, ...taps }, waits]),
  );
  // `Stream.toPull` would put a copy of all services, and a semaphore, around every pull.
  const pull = yield* pullIn(events, scope);
  const spends = (cancelled: boolean) =>
    spending(run, options, before, () => ({ spent: reader.attempts - waits.pathAttempts - 1, cancelled }));
  return {
    ...{ run, heads, presence, reader, waits, scope, pull, spends },
    failing: (error) =>
      Effect.flatMap(spends(error.failure.kind === "cancelled"), () =>
        Effect.fail(interrupted(error, reader.attempts, before.repeated?.run_id, error.route ?? options.route?.id)),
      ),
    responseOf: (head) => ({
      ...run,
      head: named(head, run, heads),
      last: () => reader.last,
      begun: () => reader.begun,
      handedOn: () => reader.handedOn,
      isComplete: () => reader.isComplete,
      cancel: Effect.suspend(() => (reader.isComplete ? Effect.succeed(false) : processor.cancel(run.run_id))),
      ...comingAndGoing(presence),
    }),
  };
});

/** A head that says of which run it is. Nothing has answered yet where it is our own. */
const named = (head: RelayHead, { run_id }: RelayRun, heads: RelayHeads): RelayHead => {
  const route = head === ownHead ? undefined : heads.route;
  return { ...head, headers: [...head.headers, ...recoveryHeaders(run_id, heads.attempt, undefined, route)] };
};

/** Whether a client reads the run; what no client can have any more is not kept for one either. */
const presenceOf = ({ presence = new Presence() }: RelayOptions, heads: RelayHeads): Presence => {
  presence.whenEvicted(() => heads.forget());
  return presence;
};

/** How the embedder says that a client goes away and comes back. */
const comingAndGoing = (presence: Presence): Pick<RelayedResponse, "away" | "back" | "evicted"> => ({
  away: Effect.sync(() => presence.leaves()),
  back: Effect.sync(() => presence.returns()),
  evicted: () => presence.isEvicted,
});

/** The head of a stream that no attempt has a head for yet. */
export const ownHead: RelayHead = {
  status: 200,
  statusText: "OK",
  headers: [
    ["content-type", "text/event-stream; charset=utf-8"],
    ["cache-control", "no-cache"],
    ["x-recovery-waiting", "true"],
  ],
};

/** Done once a request that does not stream has waited for its path for as long as it may. */
export const givesUp = (
  { streaming }: RelayPlan,
  { pathPatienceMs }: RelayOptions,
  waits: RelayWaits,
): Effect.Effect<"given_up"> =>
  streaming || pathPatienceMs === undefined
    ? Effect.never
    : Effect.as(waits.untilPathHasTaken(pathPatienceMs), "given_up");

/** How a request is sent and read by one route. */
type Way = Pick<RelayRoute, "plan" | "transport" | "continueText">;

/** What goes on with the shown text of a run, where any of its routes lets it. */
const seamOf = (
  { streaming }: RelayPlan,
  { continueText, prefills, routes = [] }: RelayOptions,
): RelaySeam | undefined =>
  streaming && [continueText, ...routes.map((it) => it.continueText)].includes("auto")
    ? new RelaySeam(prefills)
    : undefined;

/** Makes the attempts of a run, by any of its routes. */
const attempts = (
  options: RelayOptions,
  heads: RelayHeads,
  seam: RelaySeam | undefined,
  services: Context.Context<never>,
) => {
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
      emptyIsFailure: options.emptyIsFailure === true,
    });
  };
  return (way: Way, route: string | undefined) => (context: RelaySourceContext) =>
    fromReader<RelayPart, unknown>(
      () => source(way, context, route),
      (error) => heads.threw(error),
    );
};

/** Options of a run while they are put together: a copy for each that is left out would cost more than all that are given. */
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
  const beside = saysRetry(plan.request);
  const attempt = attempts(options, heads, seam, services);
  const observe = (part: RelayPart) => part.observation;
  const tolerant =
    options.tolerance === undefined ? plan : { ...plan, tolerance: { ...options.tolerance, ...plan.tolerance } };
  const { continueText = "ask", finishFailures, route, routes = [] } = options;
  const first = attempt({ plan: tolerant, transport: options.transport, continueText }, route?.id);
  const made: Draft = {
    ...{ runId: run_id, provider: plan.provider, tools: plan.tools, observe, sizeOf, digestOf, taps },
    attempt: first,
    discardable: false,
    reveal: options.reveal ?? "live",
    streaming: plan.streaming,
    budget: remainingBudget(options.budget ?? {}, repeated),
    requestTokens: Tokens.ofRequest(plan.request.body),
  };
  if (repeated !== undefined) made.retryOf = repeated.run_id;
  if (route?.own !== undefined) made.ownRoute = route.own;
  if (routes.length > 0)
    made.routes = routes.map((it) => {
      const open = attempt(it, it.id);
      const continues = seam === undefined ? {} : { canContinue: open };
      return { ...it, provider: it.plan.provider, attempt: open, ...continues, observe };
    });
  if (finishFailures !== undefined) made.finishFailures = finishFailures;
  if (plan.resumes === true) made.cursor = cursorOf;
  if (seam !== undefined) made.canContinue = first;
  if (options.holdMaxMs !== undefined) made.holdMaxMs = options.holdMaxMs;
  if (options.asks !== undefined) made.asks = options.asks;
  // A document is handed over as bytes, and what they call is not seen.
  if (options.flowsOn === true) {
    const isStream = () => heads.isStream;
    made.flowsOn = isStream;
  }
  if (options.emptyIsFailure !== undefined) made.emptyIsFailure = options.emptyIsFailure;
  const { head } = options;
  // A client that has no head yet can still be told of a refusal by a status.
  if (typeof head === "object") {
    const patienceMs = () => (heads.sent ? undefined : waits.leftOf(head.withinMs));
    made.patienceMs = patienceMs;
  }
  if (later !== undefined) made.spentBefore = { asked: later, beside };
  if (options.path !== undefined) made.path = options.path;
  if (options.group !== undefined) made.group = options.group;
  if (options.signal !== undefined) made.signal = options.signal;
  if (options.refreshCredentials !== undefined) made.refreshCredentials = options.refreshCredentials;
  if (options.clocks !== undefined) made.clocks = options.clocks;
  if (options.policy !== undefined) made.policy = options.policy;
  if (seam === undefined) return made;
  const ofRun = () => seam;
  return Object.assign(made, { continueText: "auto" as const, seam: ofRun });
};

const cursorOf = ({ cursor }: RelayPart): string | undefined => cursor;

/** Bytes that a held part takes: its own, its decoded event if that is kept, and at least an envelope. */
const sizeOf = ({ bytes, decoded }: RelayPart): number =>
  Math.max(envelopeBytes, bytes.byteLength + 2 * (decoded?.event.data.length ?? 0));

type RelaySourceContext = ConstructorParameters<typeof RelaySource>[0]["context"];

/** Remembers what a failed run has spent, for the client's own repeat of its request. */
const spending = (
  { plan, run_id }: RelayRun,
  { repeats }: RelayOptions,
  before: RepeatedRun,
  failed: () => Omit<FailedRequest, "run_id">,
): Effect.Effect<void> =>
  Effect.suspend(() => repeats?.spent(plan.request, { run_id, ...failed() }, before.repeated) ?? Effect.void);

/** What the run had spent that the client repeats with this one, as far as it is known by now. */
class RepeatedRun {
  repeated: FailedRequest | undefined;
  /** Where another process is asked: what it comes to. */
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

const elsewhere = ({ request }: RelayPlan, { repeats }: RelayOptions) =>
  repeats?.elsewhere(request) ?? Effect.undefined;

/** 96 random bits, so that ids of several processes that share a store do not meet. */
const makeRunId = (prefix: string): Effect.Effect<string> =>
  Effect.map(Random.Random, (random) => {
    const part = () =>
      Math.floor(random.nextDoubleUnsafe() * 2 ** 32)
        .toString(36)
        .padStart(7, "0");
    return prefix + part() + part() + part();
  });
