/**
 * Describes what a caller gives to `StreamProcessor.run`, and what an attempt's factory is given.
 */
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
import type { Taps } from "./Taps.ts";
import type { SettledCall } from "./ToolCall.ts";

/** Parts of an attempt that no longer count: those behind `keep_through`. */
export interface Withdrawn {
  readonly attempt: number;
  readonly keep_through: number;
}

/** What the factory of an attempt needs to know, and the reporters that a transport calls. */
export interface AttemptContext {
  readonly run_id: string;
  /** Counts the attempts of the run, from 1. */
  readonly attempt: number;
  /** How this attempt came to be. */
  readonly mode: AttemptMode;
  /**
   * Which request to send: the run's `first`, a `continue` built from the settled transcript and `calls`, or a `resume` of
   * the very same response from `cursor`. A `replay` repeats the failed attempt's own request, so after a `continue` it
   * says `continue` here, with the same calls.
   */
  readonly request: "first" | "continue" | "resume";
  /** What became of every call of the run when the continuation was decided; empty for the first request. */
  readonly calls: ReadonlyArray<SettledCall>;
  /**
   * What the run has withdrawn so far: of each attempt named only the parts through `keep_through` count. The events that say
   * so may not have been taken yet; a continuation must not send what they withdraw.
   */
  readonly discarded: ReadonlyArray<Withdrawn>;
  /** The route that the attempt goes by: the `id` of one of `routes`; undefined for the run's own first one. */
  readonly route: string | undefined;
  /**
   * The seam that the continuation has to prove: its request quotes the end of what was shown, or gives it as a prefill. With request
   * `continue` only, where text is gone on with.
   */
  readonly seam: SeamPlan | undefined;
  /** The cursor to resume from; with request `resume` only. */
  readonly cursor: string | undefined;
  /**
   * Reports how far the request got. A transport that calls it with `not_sent` before it starts takes over the proof;
   * without one an attempt is `ambiguous` from its first pull and `accepted` from its first part. With `accepted` it says the
   * status of the head: one that refuses lets no other request of the path go before it is known for how long.
   */
  readonly delivery: (delivery: Delivery, status?: number) => void;
  /** Reports bytes that arrived: they feed the `silence` clock and the counters. */
  readonly bytes: (count: number) => void;
}

/** Another way to a model: its own provider, requests and reader. */
export interface RunRoute<P, E, R> {
  /** Names the route in events, on record and in its breaker, in at most 128 characters; no other route has it. */
  readonly id: string;
  /** The provider of the route and its model. */
  readonly provider: Provider;
  /** Opens an attempt that goes by this route. */
  readonly attempt: (attempt: AttemptContext) => Stream.Stream<P, E, R>;
  /** Builds the continuation of an attempt that went by this route. Without it no attempt on this route is continued. */
  readonly canContinue?: (attempt: AttemptContext) => Stream.Stream<P, E, R>;
  /** Says what a part of this route proves. */
  readonly observe: (part: P) => Observation;
  /** The path of its requests. Default: as that of a run. */
  readonly path?: string | Path;
  /** Whether 400, 401 and 404 are this route's own fault: its credential and model are not the caller's. Default true. */
  readonly own?: boolean;
}

/** What was spent before a run began. */
export interface SpentBefore {
  /** Automatic retries. */
  readonly retries: number;
  /** The failed run whose request this one repeats. */
  readonly retryOf?: string | undefined;
}

/** What was spent before a run began, where another process knows it. */
export interface SpentElsewhere {
  /** What it comes to. It is asked once, before the first decision. */
  readonly asked: Effect.Effect<SpentBefore>;
  /** It is asked beside the first attempt already: which run this one repeats is put on record as soon as that is known. */
  readonly beside: boolean;
}

/** One model request and how to make, read and judge its attempts. */
export type RunOptions<P, E, R> = RunBase<P, E, R> & TextOptions<P>;

/** Chooses between a question and a continuation after shown text breaks. `continueText: "auto"` requires a `seam`. */
export type TextOptions<P> = TextContinues<P> | TextAsks<P>;

/** Every break behind shown text asks; with a seam the question offers to continue. */
export interface TextAsks<P> {
  readonly continueText?: "ask";
  readonly seam?: () => TextSeam<P>;
}

/** Shown text goes on without a question. */
export interface TextContinues<P> {
  /**
   * `auto` continues text that was shown without a question, if `seam` proves that nothing comes twice or is missing. Default
   * `ask`.
   */
  readonly continueText: "auto";
  /**
   * Joins the text of a continuation to what was shown: `ProtocolSeam.make` for decoded events, `PlainSeam.make` for the caller's own
   * parts. Each run calls it once for a seam of its own. Required with `auto`.
   */
  readonly seam: () => TextSeam<P>;
}

/** The options of a run without those for text that was shown. */
export interface RunBase<P, E, R> {
  /** The provider and its model. `reasoning` says whether the model thinks, which chooses a clock. */
  readonly provider: Provider;
  /** Exactly the tools that the request exposes, after permission filters: guarded ones from ToolGuard, or plain boundaries. */
  readonly tools: ReadonlyArray<ToolBoundary>;
  /**
   * Opens an attempt; `canContinue` opens a continuation. The stream must end cleanly or fail; its scope is closed before the next
   * attempt starts.
   */
  readonly attempt: (attempt: AttemptContext) => Stream.Stream<P, E, R>;
  /**
   * Says what a part proves. It must be pure and must not throw. A count that is no natural number is clamped to one; an
   * observation with a word or a call that is not known ends the attempt as `caller_failed`, with an `ObservationError`.
   */
  readonly observe: (part: P) => Observation;
  /**
   * The path of the request: runs of one path share what is known of it, and wait for it together. Default: the origin that the
   * client of each attempt reports, as `ProviderClient` does, else the provider's id; one credential for all.
   */
  readonly path?: string | Path;
  /**
   * Further routes, in the order in which a run moves to them; the run's own `provider`, `attempt` and `observe` are the first.
   * At most `routesMax` with the first one. Only a replay moves, and no route is tried twice.
   */
  readonly routes?: ReadonlyArray<RunRoute<P, E, R>>;
  /**
   * Whether 400, 401 and 404 of the first route are the route's own fault; with `credential` a 401 is. Default false: they are the
   * caller's.
   */
  readonly ownRoute?: boolean | "credential";
  /**
   * The group of runs (one agent and its sub-agents) whose `max_group_retries` and `max_group_wasted_tokens` this run shares. It
   * counts for one processor, in the scope of the `path`'s credential, and is forgotten an hour after its last word.
   */
  readonly group?: string;
  /** Tokens of the request, as the caller counts or estimates them: what the next attempt would repeat, until a provider tells. */
  readonly requestTokens?: number;
  /** Finishes that count as failures, so that another route may take them. Default none. */
  readonly finishFailures?: ReadonlyArray<FinishFailure>;
  /** The run's id; made up when left out. It must be new: one that is on record, live, parked or ended, is `refused`. */
  readonly runId?: string;
  /**
   * What the first request is built from, as text: the runtime's own serialisation of its transcript. Only its digest is
   * kept, and `StreamProcessor.takeUp` takes no other.
   */
  readonly transcript?: string;
  /** The failed run whose request this one repeats: a client's own retry. */
  readonly retryOf?: string;
  /**
   * Says what an error of the stream means; by default the FailureClassifier does. What is no failure is taken for the most
   * restrictive one that it can mean, `unknown` at last.
   */
  readonly classify?: (error: E) => Failure;
  /**
   * The signal of the user's Stop, the one that the attempt gives its SDK. Once it has aborted, the run is cancelled in the
   * user's name: what breaks then is never retried, whether the SDK's error or the abort is seen first. A run whose signal
   * has aborted before sends nothing. A signal that aborts by a timeout interrupts the run as an unsigned caller does.
   */
  readonly signal?: AbortSignal;
  /** Hands parts over as they come (`live`, the default), or only once the terminal marker has proven the response whole. */
  readonly reveal?: "live" | "on_complete";
  /**
   * Longest time from the run's start, in milliseconds, for which `on_complete` holds a response; then it goes on as if it had
   * been shown from its start. No limit by default.
   */
  readonly holdMaxMs?: number;
  /**
   * `always` (the default) asks every question that the policy leaves to a person. `if_it_matters` stops where every choice
   * leaves the caller with what it has: nothing can be retried, continued or told of a call.
   */
  readonly asks?: "always" | "if_it_matters";
  /**
   * False for a caller of `run` that cannot throw anything away: nothing is ever handed over twice, as with `parts`. Default
   * true.
   */
  readonly discardable?: boolean;
  /**
   * Builds the continuation: opens an attempt whose request goes on from the settled transcript, `calls` and `seam`. It opens the
   * attempts with `request` `continue`. Without it no attempt is continued.
   */
  readonly canContinue?: (attempt: AttemptContext) => Stream.Stream<P, E, R>;
  /** Times that the run goes on behind text that was shown, each a paid request. Default 2. */
  readonly maxSeams?: number;
  /** Reads from a part the cursor that would resume this very response behind it. */
  readonly cursor?: (part: P) => string | undefined;
  /** Renews the credentials after a `rejected.auth`; tried once a run. */
  readonly refreshCredentials?: Effect.Effect<unknown, unknown, R>;
  /**
   * Takes a response with nothing in it for a failure, and asks once more: no call, no text but white space, no refusal, no limit.
   * Thoughts alone are nothing; a response without a word is, up to 8 output tokens. Default false.
   */
  readonly emptyIsFailure?: boolean;
  /** False for a response that comes whole: the `first_progress` clock is then off. Default true. */
  readonly streaming?: boolean;
  /** Clocks of the attempt, in milliseconds; `false` is off. */
  readonly clocks?: ClockOptions;
  /** What the run may spend; left-out fields have the defaults. */
  readonly budget?: Partial<Budget>;
  /**
   * How long the run goes on without its consumer, in milliseconds, at most `lingerMsMax`. A consumer that goes away without a signed
   * cancel may come back by `StreamProcessor.attach` for so long, and for as long behind the run's end; then the run is cancelled in
   * its user's name. What `attempt` uses must outlive its consumer. Default 0: the run ends with its consumer.
   */
  readonly lingerMs?: number;
  /** Another policy than the default one. */
  readonly policy?: RecoveryPolicy;
  /** @internal What was spent before the run began, where that is known elsewhere. It lessens the budget. */
  readonly spentBefore?: SpentElsewhere;
  /**
   * @internal No other process can show the response to this caller: where one has taken the run over, text that the caller has begun to
   * receive goes on to its end. Nothing else of the run does. It is asked in the step in which the run is lost: every call of the response
   * must be observed.
   */
  readonly flowsOn?: () => boolean;
  /**
   * @internal How long a refused request may wait for its next attempt, in milliseconds, if the provider announced no wait. Asked with each
   * decision; undefined: for as long as the policy says. A longer wait ends the run as a spent budget does.
   */
  readonly patienceMs?: () => number | undefined;
  /**
   * @internal A digest of what parts say that were not handed over; undefined if they say nothing. It is asked after an attempt has broken:
   * two attempts that broke behind the same words would break there again.
   */
  readonly digestOf?: (parts: ReadonlyArray<P>) => string | undefined;
  /** @internal The taps of the run's output. */
  readonly taps?: Taps<P>;
  /** Weighs a held part, in bytes. A weight that is no number from 0 is replaced by the default one. */
  readonly sizeOf?: (part: P, observation: Observation) => number;
}

/** Longest time for which a run goes on without its consumer, in milliseconds: a day. */
export const lingerMsMax = 86_400_000;

/** Most routes of a run, the first one included. */
export const routesMax = 16;

/** Whether a response with nothing in it is a failure of the run. */
export const raisesEmpty = ({
  emptyIsFailure,
  finishFailures,
}: Pick<RunOptions<never, never, never>, "emptyIsFailure" | "finishFailures">): boolean =>
  emptyIsFailure === true || finishFailures?.includes("empty") === true;

/** Whether a finish may be a failure of the run. */
export const raisesFinish = ({
  emptyIsFailure,
  finishFailures = [],
}: Pick<RunOptions<never, never, never>, "emptyIsFailure" | "finishFailures">): boolean =>
  emptyIsFailure === true || finishFailures.length > 0;

/** What a caller gives to `StreamProcessor.takeUp`. */
export interface TakeUpOptions<P, E, R> {
  /** How to go on: as for `run`. Its `runId` is not used. */
  readonly request: RunOptions<P, E, R>;
  /** What the run's first request was built from, as it was given to `run`. */
  readonly transcript: string;
  /** What the caller holds of a response that can be resumed: the cursor behind the last part that it has kept. */
  readonly cursor?: string;
}

/**
 * What an ended run still needs: its calls may run later, and the store may take its end later. Its request and what reads
 * a response may be large, and are let go (L11).
 */
export const letGo = <P, E, R>(options: RunOptions<P, E, R>): RunOptions<P, E, R> => {
  // Here, and not among the parameters: the published types would name the internal options, which they do not have.
  const { canContinue, continueText, flowsOn, group, provider, refreshCredentials, requestTokens, tools } = options;
  const text: TextOptions<P> = continueText === "auto" ? { continueText, seam: seamOfEnded } : {};
  return {
    provider,
    tools,
    attempt: () => Stream.empty,
    observe: () => none,
    ...(canContinue === undefined ? {} : { canContinue: () => Stream.empty }),
    ...text,
    ...(flowsOn === undefined ? {} : { flowsOn }),
    ...(group === undefined ? {} : { group }),
    ...(refreshCredentials === undefined ? {} : { refreshCredentials: Effect.void }),
    ...(requestTokens === undefined ? {} : { requestTokens }),
  };
};

/** An ended run joins nothing; its seam was made when it began. */
const seamOfEnded = (): never => {
  throw new Error("the run has ended");
};
