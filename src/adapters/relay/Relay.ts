/**
 * Relays requests that speak one of the four protocols, byte for byte, and recovers below a client that only sees bytes.
 *
 * The life of a relayed request:
 *
 * 1. `RelayPlan.recognise(request)` says what it asks for. `undefined`: it asks no model for a response, and the embedder passes
 *    it through untouched.
 * 2. `open(plan, options)` starts one run of StreamProcessor (`discardable: false`) in the ambient Scope. Each attempt goes
 *    through the `RelayTransport` and is read by a `RelaySource`: its events keep their own bytes (`RelayFrames`), a copy is
 *    decoded for what they prove. `open` succeeds with a `RelayResponse` once a head may go to the client, and fails with a
 *    `RelayInterrupted` when the run ends before: its `response` is the provider's own last response where there was one, its
 *    `headers` name run, attempts and rule.
 * 3. `RelayResponse.read` gives the next bytes that may leave (whole events, in order, adjacent ones as one view) and
 *    `undefined` at the clean end. It fails with `RelayInterrupted` where the connection to the client must break: the embedder
 *    must not end it cleanly then. There is one reader; a read is the demand, and only the first bytes are pulled ahead of it.
 * 4. `RelayResponse.cancel` is for a client that went away: a user's cancel, unless the terminal marker had left. The upstream
 *    is given up at once. Interrupting `open` or `read` with an `InterruptSignature`, or by a disconnect of Effect's HTTP
 *    server, signs the same.
 * 5. The embedder closes the Scope when the client has everything or has gone: that ends the run.
 *
 * A client that may come back. The embedder keeps the Scope open and says `away`, and `back` once it has a client again. In between
 * nothing is handed over: the run goes on, what arrives is held and not shown, within the byte limits of `Reveal.ts`, and a break in it is
 * replayed where nothing was shown. A `read` waits meanwhile: the embedder's one reading fiber goes on reading, and must not be
 * interrupted between two clients, because bytes that a read has given are not given again. Such a `read` gives no keep-alive. It
 * gives bytes before `back` only when the run has ended: then all that was held, and the end. Run events are told all the time.
 * `away` before `open` has succeeded is said by `presence`. Once `evicted`, no client can have the response any more: `back` changes
 * nothing, and the run goes on to its own end, or to the embedder's.
 *
 * What is held. `live`: the lifecycle prefix until the first reasoning, text or call, so that no client sees two starts; and
 * from the first byte of a call everything until the terminal marker. `on_complete`: everything until the protocol's last event
 * or a clean end behind the marker, within the byte limits of `Reveal.ts`, then as live. A break in held bytes is replayed where
 * the policy permits it and nothing was shown; reasoning that was handed over counts as text.
 *
 * Heads. With `head: "first"` the first successful head of a stream goes at once, so that a client's own clocks see what they
 * would see without the relay; a run that then fails breaks the connection. With `head: "content"` the head waits for the first
 * bytes and is that of their attempt, and a failure before them keeps its status and body. With `head: { withinMs }` the head of
 * a stream waits as with `content`, but no longer than that: then it is that of the newest attempt's stream or, where no attempt
 * has a head, one of our own with `x-recovery-waiting`. A document under way where a stream was asked for is waited for.
 *
 * Text that was shown (`continueText: "auto"`): a stream that breaks behind it is gone on with where the seam can be proven. The
 * events of a continuation are written anew, so that the client reads one response; those before the seam are the provider's own
 * bytes. The first head stays, no continuation crosses routes, and an error event of a continuation is not handed on.
 *
 * A background response of OpenAI outlives its connection (`RelayPlan.resumes`): a break behind its first event is read on by
 * GET, exactly behind the last event that was read, with the request's own headers. It is never posted a second time for that.
 *
 * An error event of the provider that ends the run is handed on as it came, with what the provider says behind it, and then
 * the connection breaks; `ending` says otherwise. A finish whose call cannot be read is handed on with the rest of its response
 * where the run does not repeat it. The relay writes no bytes of its own but those of `keepAliveMs`: they go while the client
 * waits for what is held or for what becomes of the run, between events only, and are never a terminal marker (L5).
 */
import { Clock, Deferred, Effect, Fiber, Random, Scope, Stream } from "effect";
import type * as Json from "../../domain/Json.ts";
import type { Budget } from "../../domain/RunFacts.ts";
import * as Tokens from "../../facts/Tokens.ts";
import type { Path } from "../../paths/Path.ts";
import type { RecoveryPolicy } from "../../policy/RecoveryPolicy.ts";
import type { Tolerance } from "../../provider/Protocols.ts";
import type { PrefillRule } from "../../provider/seam/Prefills.ts";
import { fromReader } from "../../runtime/attempt/AsyncSource.ts";
import type { ClockOptions } from "../../runtime/contract/Clocks.ts";
import { Presence } from "../../runtime/contract/Presence.ts";
import type { RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import type { RunOptions } from "../../runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../runtime/StreamProcessor.ts";
import { KeepAlive, pulseOf } from "./KeepAlive.ts";
import type { RelayPart } from "./RelayFrames.ts";
import { RelayHeads } from "./RelayHeads.ts";
import { interrupted, pathWaited, type RelayInterrupted, recoveryHeaders } from "./RelayInterrupted.ts";
import type { RelayPlan } from "./RelayPlan.ts";
import { type RelayBytes, type RelayEnding, type RelayEvent, RelayReader } from "./RelayReader.ts";
import { type FailedRequest, type RelayRepeats, remainingBudget } from "./RelayRepeats.ts";
import { RelaySource } from "./RelaySource.ts";
import type { RelayHead, RelayTransport } from "./RelayTransport.ts";
import { closeRun, type RelayWait, RelayWaits } from "./RelayWaits.ts";
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

/** A response on its way to the client. */
export interface RelayResponse extends RelayRun {
  /** The provider's head with `x-recovery-run` and `x-recovery-attempts` (so far) behind its own headers. */
  readonly head: RelayHead;
  readonly read: Effect.Effect<RelayBytes, RelayInterrupted>;
  /** The data of the last event that has left, where it is JSON: what an ending of the embedder's own goes on from. */
  readonly last: () => Json.JsonRecord | undefined;
  /** Whether something of the response itself has left. */
  readonly begun: () => boolean;
  /** Whether the provider's own error event was handed on. */
  readonly handedOn: () => boolean;
  /** Returns whether there was something to cancel; once the terminal marker has left there is not. */
  readonly cancel: Effect.Effect<boolean>;
  /** The client has gone away and may come back: from this step on nothing is handed over. */
  readonly away: Effect.Effect<void>;
  /** A client reads again: what was held passes on as it would have. */
  readonly back: Effect.Effect<void>;
  /** What was held for a client that is away did not fit, and was thrown away: no client can have the whole response. */
  readonly evicted: () => boolean;
}

/**
 * Starts a run for a request.
 *
 * @param plan what `RelayPlan.recognise` made of it
 * @throws RelayInterrupted when the run ends before a head may go to the client
 */
export const open = Effect.fn("Relay.open")(function* (
  plan: RelayPlan,
  options: RelayOptions,
): Effect.fn.Return<RelayResponse, RelayInterrupted, StreamProcessor | Scope.Scope> {
  const processor = yield* StreamProcessor;
  const heads = new RelayHeads();
  const presence = presenceOf(options, heads);
  const repeated = options.repeats === undefined ? undefined : yield* options.repeats.take(plan.request);
  const run: RelayRun = { run_id: yield* makeRunId(options.runIdPrefix ?? "run_"), retry_of: repeated?.run_id, plan };
  const observe = options.onEvent;
  const waits = yield* RelayWaits.make(options.onWaited);
  heads.opened = (attempt) => waits.opened(attempt);
  const scope = yield* Scope.fork(yield* Effect.scope);
  const events = processor.run({ ...(yield* runOptions(run, options, heads, repeated)), taps: { presence } });
  const pull = yield* Scope.provide(Stream.toPull(events), scope);
  const reader = new RelayReader(pull, heads, {
    observe: (event) => {
      waits.heard(event);
      observe?.(event, run);
    },
    ending: options.ending ?? "break",
    withholds: typeof options.head === "object",
    repeats: repeated !== undefined,
  });
  const retries = () => reader.attempts - waits.pathAttempts - 1;
  const spends = (cancelled: boolean) => spending(run, options, repeated, () => ({ spent: retries(), cancelled }));
  const failing = (error: RunInterrupted) =>
    Effect.flatMap(spends(error.failure.kind === "cancelled"), () =>
      Effect.fail(interrupted(error, reader.attempts, run.retry_of, error.route ?? options.route?.id)),
    );
  const first = yield* Effect.forkScoped(reader.take, { startImmediately: true });
  // A client that gives up before the head may repeat its request, and marks the repeat as a retry.
  const outcome = yield* Effect.raceFirst(
    Effect.catch(firstHead(first, heads, plan, options), failing),
    givesUp(plan, options, waits),
  ).pipe(Effect.onInterrupt(() => spends(true)));
  if (outcome === "given_up") {
    yield* closeRun(scope);
    yield* spends(false);
    const { attempts } = reader;
    return yield* pathWaited({ ...run, attempts, waitedMs: options.pathPatienceMs ?? 0 });
  }
  const head = outcome;
  heads.sent = plan.streaming;
  const read = yield* reading(reader, first, run, { ...options, presence });
  // Nothing has answered yet where the head is our own.
  const extra = recoveryHeaders(run.run_id, heads.attempt, undefined, head === ownHead ? undefined : heads.route);
  return {
    ...run,
    head: { ...head, headers: [...head.headers, ...extra] },
    read: Effect.catch(read, failing),
    last: () => reader.last,
    begun: () => reader.begun,
    handedOn: () => reader.handedOn,
    cancel: Effect.suspend(() =>
      reader.terminal || reader.ended ? Effect.succeed(false) : processor.cancel(run.run_id),
    ),
    ...comingAndGoing(presence),
  };
});

/** Whether a client reads the run; what no client can have any more is not kept for one either. */
const presenceOf = ({ presence = new Presence() }: RelayOptions, heads: RelayHeads): Presence => {
  presence.whenEvicted(() => heads.forget());
  return presence;
};

/** How the embedder says that a client goes away and comes back. */
const comingAndGoing = (presence: Presence): Pick<RelayResponse, "away" | "back" | "evicted"> => ({
  away: Effect.sync(() => presence.leaves()),
  back: Effect.sync(() => presence.returns()),
  evicted: () => presence.isEvicted,
});

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
const attempts = Effect.fnUntraced(function* (options: RelayOptions, heads: RelayHeads, seam: RelaySeam | undefined) {
  const clock = yield* Clock.Clock;
  const services = yield* Effect.context<never>();
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
});

const runOptions = Effect.fnUntraced(function* (
  { plan, run_id }: RelayRun,
  options: RelayOptions,
  heads: RelayHeads,
  repeated: FailedRequest | undefined,
) {
  const seam = seamOf(plan, options);
  const attempt = yield* attempts(options, heads, seam);
  const observe = (part: RelayPart) => part.observation;
  const tolerant = { ...plan, tolerance: { ...options.tolerance, ...plan.tolerance } };
  const { continueText = "ask", finishFailures, route, routes = [] } = options;
  const run: RunOptions<RelayPart, unknown, never> = {
    runId: run_id,
    ...(repeated === undefined ? {} : { retryOf: repeated.run_id }),
    provider: plan.provider,
    tools: plan.tools,
    attempt: attempt({ plan: tolerant, transport: options.transport, continueText }, route?.id),
    observe,
    ...(route?.own === undefined ? {} : { ownRoute: route.own }),
    ...(routes.length === 0
      ? {}
      : { routes: routes.map((it) => ({ ...it, provider: it.plan.provider, attempt: attempt(it, it.id), observe })) }),
    ...(finishFailures === undefined ? {} : { finishFailures }),
    ...(plan.resumes === true ? { cursor: (part: RelayPart) => part.cursor } : {}),
    ...(seam === undefined ? {} : { seam: () => seam, canContinue: true, continueText: "auto" as const }),
    sizeOf,
    discardable: false,
    reveal: options.reveal ?? "live",
    ...(options.holdMaxMs === undefined ? {} : { holdMaxMs: options.holdMaxMs }),
    ...(options.asks === undefined ? {} : { asks: options.asks }),
    streaming: plan.streaming,
    ...(options.emptyIsFailure === undefined ? {} : { emptyIsFailure: options.emptyIsFailure }),
    budget: remainingBudget(options.budget ?? {}, repeated),
    ...(options.path === undefined ? {} : { path: options.path }),
    ...(options.group === undefined ? {} : { group: options.group }),
    requestTokens: Tokens.ofRequest(plan.request.body),
    ...(options.signal === undefined ? {} : { signal: options.signal }),
    ...(options.clocks === undefined ? {} : { clocks: options.clocks }),
    ...(options.policy === undefined ? {} : { policy: options.policy }),
  };
  return run;
});

/** What is held of a part: its bytes, and its event where that is kept beside them. */
const sizeOf = ({ bytes, decoded }: RelayPart): number => bytes.byteLength + 2 * (decoded?.event.data.length ?? 0);

type RelaySourceContext = ConstructorParameters<typeof RelaySource>[0]["context"];

/** Done once a request that does not stream has waited for its path for as long as it may. */
const givesUp = (
  { streaming }: RelayPlan,
  { pathPatienceMs }: RelayOptions,
  waits: RelayWaits,
): Effect.Effect<"given_up"> =>
  streaming || pathPatienceMs === undefined
    ? Effect.never
    : Effect.as(waits.untilPathHasTaken(pathPatienceMs), "given_up");

/** The head that goes to the client: of the first stream that opens, or of the attempt that the first bytes come from. */
const firstHead = Effect.fnUntraced(function* (
  first: Fiber.Fiber<RelayBytes, RunInterrupted>,
  heads: RelayHeads,
  { streaming }: RelayPlan,
  { head = "first" }: RelayOptions,
) {
  const content = Effect.flatMap(Fiber.join(first), () =>
    // Bytes come after a head of their attempt, and a clean end after its marker.
    heads.head === undefined ? Effect.die(new Error("A body came before its head")) : Effect.succeed(heads.head),
  );
  if (head === "first") return yield* Effect.raceFirst(Deferred.await(heads.released), content);
  if (head === "content" || !streaming) return yield* content;
  return yield* Effect.timeoutOrElse(content, {
    duration: head.withinMs,
    orElse: () =>
      Effect.raceFirst(
        content,
        Effect.map(heads.late, (late) => late ?? ownHead),
      ),
  });
});

/** The head of a stream that no attempt has a head for yet. */
const ownHead: RelayHead = {
  status: 200,
  statusText: "OK",
  headers: [
    ["content-type", "text/event-stream; charset=utf-8"],
    ["cache-control", "no-cache"],
    ["x-recovery-waiting", "true"],
  ],
};

/** The reads of a response: the first bytes were taken when the run began, all others are taken on demand. */
const reading = Effect.fnUntraced(function* (
  reader: RelayReader,
  first: Fiber.Fiber<RelayBytes, RunInterrupted>,
  run: RelayRun,
  options: RelayOptions,
) {
  if (options.keepAliveMs !== undefined && run.plan.streaming) {
    const { firstNoOp = "comment", onKeepAlive, presence } = options;
    const { protocol, provider } = run.plan;
    const pulse = pulseOf(reader, { protocol, provider, run_id: run.run_id, firstNoOp, onKeepAlive, presence });
    return (yield* KeepAlive.make(Fiber.join(first), reader.take, options.keepAliveMs, pulse)).read;
  }
  let began = false;
  return Effect.suspend(() => {
    if (began) return reader.take;
    began = true;
    return Fiber.join(first);
  });
});

/** Remembers what a failed run has spent, for the client's own repeat of its request. */
const spending = (
  { plan, run_id }: RelayRun,
  { repeats }: RelayOptions,
  repeated: FailedRequest | undefined,
  failed: () => Omit<FailedRequest, "run_id">,
): Effect.Effect<void> =>
  Effect.suspend(() => repeats?.spent(plan.request, { run_id, ...failed() }, repeated) ?? Effect.void);

/** 96 random bits, so that ids of several processes that share a store do not meet. */
const makeRunId = (prefix: string): Effect.Effect<string> =>
  Effect.map(
    Effect.all([Random.next, Random.next, Random.next]),
    (parts) =>
      `${prefix}${parts
        .map((part) =>
          Math.floor(part * 2 ** 32)
            .toString(36)
            .padStart(7, "0"),
        )
        .join("")}`,
  );
