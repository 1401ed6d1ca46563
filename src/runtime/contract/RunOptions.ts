/**
 * Options of `StreamProcessor.run` and the context that an attempt factory receives.
 */
import type * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Stream from "effect/Stream";
import type { Delivery } from "../../domain/AttemptFacts.ts";
import type { Failure } from "../../domain/Failure.ts";
import { none, type Observation } from "../../domain/Observation.ts";
import type { AttemptMode, Budget, Provider } from "../../domain/RunFacts.ts";
import type { ToolBoundary } from "../../domain/SideEffects.ts";
import type { FinishFailure } from "../../failure/tables/FinishWords.ts";
import type { Path } from "../../paths/Path.ts";
import type { RecoveryPolicy } from "../../policy/RecoveryPolicy.ts";
import type { SeamPlan, TextSeam } from "../../seam/TextSeam.ts";
import type { ClockOptions } from "./Clocks.ts";
import type { BrokenText, Lingering, RouteGate, RouteHost, SeamSlot } from "./Stages.ts";
import type { Taps } from "./Taps.ts";
import type { SettledCall } from "./ToolCall.ts";

/** Withdrawn parts of an attempt: all parts after ordinal `keep_through`. */
export interface Withdrawn {
  readonly attempt: number;
  readonly keep_through: number;
}

/** Context of one attempt, with the callbacks by which its transport reports. */
export interface AttemptContext {
  readonly run_id: string;
  /** Number of the attempt within the run, from 1. */
  readonly attempt: number;
  /** The reason for this attempt: a first request, a replay, a continuation or a resumption. */
  readonly mode: AttemptMode;
  /**
   * The request to send: the run's `first`, a `continue` built from the settled transcript and `calls`, or a `resume` of the same response
   * from `cursor`. A `replay` repeats the request of the failed attempt, so the replay of a `continue` again has `request` `continue` and
   * the same calls.
   */
  readonly request: "first" | "continue" | "resume";
  /** Outcome of every call of the run at the time the continuation was decided; empty for the first request. */
  readonly calls: ReadonlyArray<SettledCall>;
  /**
   * Parts that the run has withdrawn so far. Of each attempt listed, only the parts through `keep_through` remain valid. The reader may not
   * have taken the corresponding events yet. A continuation must not send withdrawn parts.
   */
  readonly discarded: ReadonlyArray<Withdrawn>;
  /** The `id` of the attempt's route among the run's `routes`; undefined for the run's own first route. */
  readonly route: string | undefined;
  /**
   * The seam that the continuation must prove. The request quotes the end of the shown text, or sends the text as a prefill. Set only with
   * request `continue`, if text is continued.
   */
  readonly seam: SeamPlan | undefined;
  /** The cursor to resume from. Set only with request `resume`. */
  readonly cursor: string | undefined;
  /**
   * Reports how far the request got. A transport that reports `not_sent` before it starts must also report the later steps. Otherwise an
   * attempt is `ambiguous` from its first pull and `accepted` from its first part. Report `accepted` with the status of the response head:
   * after a refusal, no other request of the path is sent until the length of the wait is known.
   */
  readonly delivery: (delivery: Delivery, status?: number) => void;
  /** Reports received bytes, which reset the `silence` clock and feed the counters. */
  readonly bytes: (count: number) => void;
}

/** An alternative route to a model, with its own provider, requests and `observe`. */
export interface RunRoute<P, E, R> {
  /** Names the route in events, on record and in its breaker. Unique, at most 128 characters. */
  readonly id: string;
  /** The provider and model of the route. */
  readonly provider: Provider;
  /** Opens an attempt on this route. */
  readonly attempt: (attempt: AttemptContext) => Stream.Stream<P, E, R>;
  /** Opens a continuation of an attempt on this route. Without it, no attempt on this route is continued. */
  readonly canContinue?: (attempt: AttemptContext) => Stream.Stream<P, E, R>;
  /** Reports what a part of this route proves. */
  readonly observe: (part: P) => Observation;
  /** The path of this route's requests. Default: as for `RunBase.path`. */
  readonly path?: string | Path;
  /**
   * True if the statuses 400, 401 and 404 are this route's fault, because the caller chose neither its credential nor its model. Default
   * true.
   */
  readonly own?: boolean;
}

/** The routes of a run, with the stage that moves the run between them. `Routes.of` makes this value. */
export interface RunRoutes<P, E, R> {
  /** The routes after the first, in the order of failover. */
  readonly further: ReadonlyArray<RunRoute<P, E, R>>;
  /** True if the statuses 400, 401 and 404 of the first route are the route's fault; `credential` if only 401 is. */
  readonly own: boolean | "credential";
  /** Returns the routes as a run may use them, or what is wrong with them. */
  readonly admit: <P, E, R>(routes: RunRoutes<P, E, R>) => RunRoutes<P, E, R> | string;
  /** Creates the gate of a run; undefined if it has only one route. */
  readonly begin: <P, E, R>(
    routes: RunRoutes<P, E, R>,
    options: RunOptions<P, E, R>,
    host: RouteHost,
  ) => RouteGate<RunOptions<P, E, R>> | undefined;
}

/** The stage that continues shown text. `Seam.of` makes this value. */
export interface RunSeam<P> {
  /** Creates the seam of a run. */
  readonly make: () => TextSeam<P>;
  /** Maximum continuations after shown text, each a paid request. */
  readonly max: number;
  /** Returns the stage as a run may use it, or what is wrong with it. */
  readonly admit: <P>(seam: RunSeam<P>) => RunSeam<P> | string;
  /** Creates the slot of a run. */
  readonly begin: <P, B extends BrokenText>(seam: RunSeam<P>) => SeamSlot<P, B>;
}

/** The stage that lets a run continue without its consumer. `Linger.of` makes this value. */
export interface RunLinger {
  /** Time that the run continues, in milliseconds. */
  readonly ms: number;
  /** Returns the stage as a run may use it, or what is wrong with it. */
  readonly admit: (linger: RunLinger) => RunLinger | string;
  /** Creates the list of lingering runs. Called once per processor. */
  readonly begin: () => Lingering;
}

/** Retries spent before a run began. */
export interface SpentBefore {
  /** Number of automatic retries. */
  readonly retries: number;
  /** The id of the failed run whose request this one repeats. */
  readonly retryOf?: string | undefined;
}

/** Retries spent before a run began, known to another process. */
export interface SpentElsewhere {
  /** Looks up the retries. Run once, before the first decision. */
  readonly asked: Effect.Effect<SpentBefore>;
  /** True to run `asked` during the first attempt already, so that `retryOf` is recorded as soon as it is known. */
  readonly beside: boolean;
}

/** One model request, with everything needed to open its attempts and read their parts. */
export type RunOptions<P, E, R> = RunBase<P, E, R> & TextOptions<P>;

/** Controls a break after shown text: a question or a continuation. `continueText: "auto"` requires a `seam`. */
export type TextOptions<P> = TextContinues<P> | TextAsks<P>;

/** Every break after shown text asks a question. With a seam, the question offers a continuation. */
export interface TextAsks<P> {
  readonly continueText?: "ask";
  readonly seam?: RunSeam<P>;
}

/** Shown text is continued without a question. */
export interface TextContinues<P> {
  /** `auto` continues shown text without a question, if `seam` proves that no text is repeated or missing. Default `ask`. */
  readonly continueText: "auto";
  /**
   * Joins a continuation to the shown text: `Seam.of(…)` of `effect-stream-recovery/stages`, with `ProtocolSeam.make` for decoded events or
   * `PlainSeam.make` for the caller's own parts. Required with `auto`.
   */
  readonly seam: RunSeam<P>;
}

/** Options of a run, except those about continuing shown text. */
export interface RunBase<P, E, R> {
  /** The provider and its model. Its `reasoning` flag chooses the default of the `first_progress` clock. */
  readonly provider: Provider;
  /** Exactly the tools that the request exposes, after permission filters: guarded tools from ToolGuard, or plain boundaries. */
  readonly tools: ReadonlyArray<ToolBoundary>;
  /**
   * Opens an attempt; `canContinue` opens a continuation. The stream must end cleanly or fail. Its scope closes before the next
   * attempt starts.
   */
  readonly attempt: (attempt: AttemptContext) => Stream.Stream<P, E, R>;
  /**
   * Reports what a part proves. It must be pure and must not throw. A count that is not a natural number is replaced by the nearest natural
   * number. An observation with an unknown value or call ends the attempt as `caller_failed`, with an `ObservationError`.
   */
  readonly observe: (part: P) => Observation;
  /**
   * The path of the request. Runs on one path share what is known about it and wait for it together. Default: the origin that the
   * client of each attempt reports, as `ProviderClient` does, otherwise the provider's id. Then all runs count as having one credential.
   */
  readonly path?: string | Path;
  /**
   * Fallback routes: `Routes.of([…])` of `effect-stream-recovery/stages`. The run's own `provider`, `attempt` and `observe` form the first
   * route. Only a replay changes route, and no route is tried twice.
   */
  readonly routes?: RunRoutes<P, E, R>;
  /**
   * The group of runs (one agent and its sub-agents) that share `max_group_retries` and `max_group_wasted_tokens`. Counted per
   * processor, in the scope of the `path`'s credential, and forgotten an hour after its last use.
   */
  readonly group?: string;
  /**
   * Tokens of the request, counted or estimated by the caller. Until a provider reports the real number, they count as the cost of
   * repeating the request.
   */
  readonly requestTokens?: number;
  /** Finishes that count as failures, so that another route can answer. Default none. */
  readonly finishFailures?: ReadonlyArray<FinishFailure>;
  /**
   * Determines whether the run waits for its record (L8). `first` (default) makes the run durable: its start, each incident and each call
   * are on record before the run acts, and another process can take it over. `behind` makes the run volatile: its entries are written
   * later, no other process can take it over, and it waits for the store only before a guarded tool or a question.
   */
  readonly record?: "first" | "behind";
  /** The run's id; generated if absent. It must be new, because the id of a run that is on record (live, parked or ended) is `refused`. */
  readonly runId?: string;
  /**
   * Text that identifies the first request, for example the JSON of its model, messages and tools. `StreamProcessor.takeUp` accepts only
   * the same text, so that no process continues another request. Only its digest is kept.
   */
  readonly transcript?: string;
  /** The id of the failed run whose request this one repeats: a client's own retry. */
  readonly retryOf?: string;
  /**
   * Classifies an error of the stream; defaults to FailureClassifier. A result that is not a valid failure is replaced by the most
   * restrictive failure that it can mean, at worst `unknown`.
   */
  readonly classify?: (error: E) => Failure;
  /**
   * The user's Stop signal, the same one that the attempt gives its SDK. Once it aborts, the run counts as cancelled by the user, and no
   * later failure is retried, even if the SDK's error arrives before the abort. A run whose signal has already aborted sends nothing. A
   * signal that aborts by timeout acts like an unsigned interrupt of the caller.
   */
  readonly signal?: AbortSignal;
  /**
   * `live` (the default) hands parts over as they arrive. `on_complete` waits until the terminal marker has proven the response complete.
   */
  readonly reveal?: "live" | "on_complete";
  /**
   * Maximum time that `on_complete` holds a response, from the start of the run, as milliseconds or a duration. After that the run continues
   * as if it had been `live`. No limit by default.
   */
  readonly holdMaxMs?: Duration.Input;
  /**
   * `always` (the default) asks every question that the policy leaves to a person. `if_it_matters` stops the run instead of asking if no
   * answer would change anything for the caller: nothing can be retried or continued, and no call has an unknown outcome to settle.
   */
  readonly asks?: "always" | "if_it_matters";
  /** False for a caller of `run` that cannot discard parts. Then no part is ever handed over twice, as with `parts`. Default true. */
  readonly discardable?: boolean;
  /**
   * Opens a continuation: an attempt with `request` `continue`. Its request adds to the transcript the outcomes of the settled calls
   * (`calls`) or the shown text (`seam`). Without it, no attempt is continued.
   */
  readonly canContinue?: (attempt: AttemptContext) => Stream.Stream<P, E, R>;
  /** Reads the cursor from which this response can resume after the given part. */
  readonly cursor?: (part: P) => string | undefined;
  /** Renews the credentials after the provider has rejected them (`rejected.auth`). Tried once per run. */
  readonly refreshCredentials?: Effect.Effect<unknown, unknown, R>;
  /**
   * True to treat an empty response as a failure and request it once more. A response is empty if it has no call, no text except white
   * space, no refusal and no limit. A response with only reasoning is empty. A response without any text is not empty if the provider
   * reports more than 8 output tokens for it. Default false.
   */
  readonly emptyIsFailure?: boolean;
  /** False for a response that arrives in one piece, which switches the `first_progress` clock off. Default true. */
  readonly streaming?: boolean;
  /** Clocks of the attempt, as milliseconds or durations (`"5 minutes"`); `false` switches a clock off. */
  readonly clocks?: ClockOptions;
  /** Limits on what the run may spend. Absent fields use their defaults. */
  readonly budget?: Partial<Budget>;
  /**
   * Lets the run continue without its consumer: `Linger.of(ms)` of `effect-stream-recovery/stages`, for at most one day. A consumer that
   * leaves without a signed cancel can come back through `StreamProcessor.attach` within this time, and within the same time after the end
   * of the run. After that the run counts as cancelled by its user. Anything that `attempt` uses must outlive its consumer. Without it, the
   * run ends with its consumer.
   */
  readonly linger?: RunLinger;
  /** Replaces the default policy. */
  readonly policy?: RecoveryPolicy;
  /** @internal Retries that were spent elsewhere before the run began. These retries reduce the budget. */
  readonly spentBefore?: SpentElsewhere;
  /** @internal True if the id was just generated at random. No run on record can have it, so the store is not checked. */
  readonly isNewId?: boolean;
  /**
   * @internal Maximum wait of a refused request before its next attempt, in milliseconds, if the provider announced no wait. Called for
   *   each decision; undefined leaves the wait to the policy. If the policy's wait is at least as long, the retry budget counts as
   *   exhausted.
   */
  readonly patienceMs?: () => number | undefined;
  /**
   * @internal Returns a digest of the content of parts that were not handed over; undefined if they have none. Called after an
   *   attempt breaks: if two attempts break after the same content, a third would break there too.
   */
  readonly digestOf?: (parts: ReadonlyArray<P>) => string | undefined;
  /** @internal Hooks into the output of the run; see Taps.ts. */
  readonly taps?: Taps<P>;
  /** Returns the size of a held part, in bytes. A negative or non-numeric size is replaced by the default size. */
  readonly sizeOf?: (part: P, observation: Observation) => number;
}

/** Returns true if an empty response is a failure of the run. */
export const shouldFailOnEmpty = ({
  emptyIsFailure,
  finishFailures,
}: Pick<RunOptions<never, never, never>, "emptyIsFailure" | "finishFailures">): boolean =>
  emptyIsFailure === true || finishFailures?.includes("empty") === true;

/** Returns true if some finish may be a failure of the run. */
export const hasFinishFailures = ({
  emptyIsFailure,
  finishFailures = [],
}: Pick<RunOptions<never, never, never>, "emptyIsFailure" | "finishFailures">): boolean =>
  emptyIsFailure === true || finishFailures.length > 0;

/** Options of `StreamProcessor.takeUp`. */
export interface TakeUpOptions<P, E, R> {
  /** Options with which the run continues, as for `run`. Its `runId` is ignored. */
  readonly request: RunOptions<P, E, R>;
  /** The same text that was given to `run` as `transcript`. */
  readonly transcript: string;
  /** The cursor after the last part that the caller kept, if the response can be resumed. */
  readonly cursor?: string;
}

/**
 * Keeps only the options that an ended run still needs, because its calls may still run and its end may be recorded later. The functions
 * that open requests and read parts can hold much memory, so they are released (L11).
 */
export const releaseStreams = <P, E, R>(options: RunOptions<P, E, R>): RunOptions<P, E, R> => {
  // Destructured here. Destructured parameters would show up in the published types, which omit the internal options.
  const { canContinue, group, provider, refreshCredentials, requestTokens, tools } = options;
  const text: TextOptions<P> =
    options.continueText === "auto" ? { continueText: "auto", seam: { ...options.seam, make: failAfterEnd } } : {};
  return {
    provider,
    tools,
    attempt: () => Stream.empty,
    observe: () => none,
    ...(canContinue === undefined ? {} : { canContinue: () => Stream.empty }),
    ...text,
    ...(group === undefined ? {} : { group }),
    ...(refreshCredentials === undefined ? {} : { refreshCredentials: Effect.void }),
    ...(requestTokens === undefined ? {} : { requestTokens }),
  };
};

/** An ended run needs no seam. Its own seam was created when it began. */
const failAfterEnd = (): never => {
  throw new Error("the run has ended");
};
