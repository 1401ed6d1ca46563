/**
 * Events that a caller of `StreamProcessor.run` receives, and the error that ends a run.
 *
 * The grammar is tested. `AttemptStarted` opens every attempt; its `Part`s follow with ordinals from 1 without a gap. A break is followed
 * by `RetryScheduled` and any number of `Waiting`, or by `QuestionAsked` and, unless the question was superseded, `QuestionAnswered`.
 * `AttemptDiscarded` withdraws parts that were handed over. It comes directly before the next `AttemptStarted`, so a run that ends during a
 * wait withdraws nothing. `CallVerified` comes between a break and the reaction to it. A stream that resumes a run of an earlier process
 * starts after the break: its first `AttemptDiscarded` may name an attempt of that process, and the caller must discard everything that it
 * kept of that attempt. A stream ends exactly once: with `RunCompleted` as its last element, or by failing with `RunInterrupted`.
 */
import * as Schema from "effect/Schema";
import * as SchemaTransformation from "effect/SchemaTransformation";
import { Choice, Decision, Rule } from "../../domain/Decision.ts";
import { Failure, Fingerprint } from "../../domain/Failure.ts";
import { Milliseconds } from "../../domain/Limits.ts";
import { AttemptMode } from "../../domain/RunFacts.ts";
import { SeamProof } from "../../domain/SeamWords.ts";
import * as FailureClassifier from "../../failure/FailureClassifier.ts";
import type { Question } from "../../recorder/Question.ts";
import type { DeliveredCall, ReadyCall } from "./ToolCall.ts";

export type { DeliveredCall, ReadyCall } from "./ToolCall.ts";

/** An attempt starts; its parts follow. */
export interface AttemptStarted {
  readonly _tag: "AttemptStarted";
  readonly run_id: string;
  readonly attempt: number;
  readonly mode: AttemptMode;
  /** The `id` of the attempt's route; absent for the run's own first route. */
  readonly route?: string;
}

/** A part of the provider's stream, unchanged. */
export interface PartEvent<P> {
  readonly _tag: "Part";
  readonly attempt: number;
  /** Position among the delivered parts of the attempt, from 1. */
  readonly ordinal: number;
  readonly part: P;
  /** Calls that this part completes. */
  readonly calls?: ReadonlyArray<ReadyCall>;
  /** Replaces `calls` for a reader that attaches after an earlier reader received them. These calls may already have run. */
  readonly delivered_calls?: ReadonlyArray<DeliveredCall>;
}

/** Tells the caller to discard the parts of this attempt after ordinal `keep_through`; 0 discards all of them. */
export interface AttemptDiscarded {
  readonly _tag: "AttemptDiscarded";
  readonly attempt: number;
  readonly keep_through: number;
}

/** The run retries automatically after `delay_ms` milliseconds. */
export interface RetryScheduled {
  readonly _tag: "RetryScheduled";
  /** The number of the attempt that broke. */
  readonly attempt: number;
  readonly mode: AttemptMode;
  readonly rule: Rule;
  readonly delay_ms: number;
  readonly message: string;
}

/**
 * The run waits for its path, or for a wait that its provider announced.
 *
 * It occurs any number of times between `RetryScheduled` or an answer and the next `AttemptStarted`. A first request that waits emits it
 * after its `AttemptStarted` and before any part. A later request does the same if its path went down, or its provider refused another
 * request, just before it was sent.
 */
export interface Waiting {
  readonly _tag: "Waiting";
  readonly for: "path" | "cooldown";
  /** Start of this wait, in milliseconds since the epoch (wall clock). */
  readonly since: number;
  /** Latest end of the wait, in milliseconds since the epoch, if known. */
  readonly until?: number;
}

/** The run waits for an answer to a question. */
export interface QuestionAsked {
  readonly _tag: "QuestionAsked";
  readonly question: Question;
}

/** The answer that was accepted. */
export interface QuestionAnswered {
  readonly _tag: "QuestionAnswered";
  readonly revision: number;
  readonly choice: Choice;
}

/** A tool reports whether its own call of unknown outcome ran, so that no person has to answer. */
export interface CallVerified {
  readonly _tag: "CallVerified";
  readonly attempt: number;
  readonly call: string;
  readonly tool: string;
  readonly verdict: "it_ran" | "it_did_not_run";
}

/**
 * The text that was shown continues. The seam (the place where the texts join) is proven, and the parts of this attempt directly follow the
 * text. Comes before the first part of the attempt.
 */
export interface Continued {
  readonly _tag: "Continued";
  readonly attempt: number;
  /**
   * Length of the text that the caller has before the seam, in UTF-16 code units. Counts the whole run, including earlier responses that
   * were not withdrawn. The `at` on record counts only the response that is continued.
   */
  readonly at: number;
  readonly proof: SeamProof;
}

/** The response is complete, proven by the provider's own terminal marker. */
export interface RunCompleted {
  readonly _tag: "RunCompleted";
  readonly run_id: string;
  readonly attempts: number;
  /** The provider's own finish reason. */
  readonly finish: string | undefined;
  /** A failure after the terminal marker. The response is complete nevertheless. */
  readonly late_failure: Failure | undefined;
  /** The `id` of the route that answered; absent for the run's own first route. */
  readonly route?: string;
}

/** An event that a caller of `run` receives. */
export type RunEvent<P> =
  | AttemptStarted
  | PartEvent<P>
  | AttemptDiscarded
  | RetryScheduled
  | Waiting
  | QuestionAsked
  | QuestionAnswered
  | CallVerified
  | Continued
  | RunCompleted;

const readyCall = {
  run_id: Schema.String,
  attempt: Schema.Natural,
  call: Schema.String,
  id: Schema.String,
  tool: Schema.String,
  input: Schema.UndefinedOr(Schema.String),
};

const ReadyCallSchema = Schema.Struct(readyCall);

const DeliveredCallSchema = Schema.Struct({ ...readyCall, delivered: Schema.Literal(true) });

const QuestionSchema = Schema.Struct({
  run_id: Schema.String,
  revision: Schema.Natural,
  incident: Schema.String,
  rule: Rule,
  message: Schema.String,
  choices: Schema.Array(Choice),
  default_choice: Choice,
  may_repeat: Schema.Array(Schema.String),
  asked_at: Schema.Finite,
  expires_at: Schema.optionalKey(Schema.Finite),
  decision: Decision,
});

/** Schemas of all events except `Part`, the only event that carries the caller's type. */
const ownEvents = [
  Schema.TaggedStruct("AttemptStarted", {
    run_id: Schema.String,
    attempt: Schema.Natural,
    mode: AttemptMode,
    route: Schema.optionalKey(Schema.String),
  }),
  Schema.TaggedStruct("AttemptDiscarded", { attempt: Schema.Natural, keep_through: Schema.Natural }),
  Schema.TaggedStruct("RetryScheduled", {
    attempt: Schema.Natural,
    mode: AttemptMode,
    rule: Rule,
    delay_ms: Milliseconds,
    message: Schema.String,
  }),
  Schema.TaggedStruct("Waiting", {
    for: Schema.Literals(["path", "cooldown"]),
    since: Milliseconds,
    until: Schema.optionalKey(Milliseconds),
  }),
  Schema.TaggedStruct("QuestionAsked", { question: QuestionSchema }),
  Schema.TaggedStruct("QuestionAnswered", { revision: Schema.Natural, choice: Choice }),
  Schema.TaggedStruct("CallVerified", {
    attempt: Schema.Natural,
    call: Schema.String,
    tool: Schema.String,
    verdict: Schema.Literals(["it_ran", "it_did_not_run"]),
  }),
  Schema.TaggedStruct("Continued", { attempt: Schema.Natural, at: Schema.Natural, proof: SeamProof }),
  Schema.TaggedStruct("RunCompleted", {
    run_id: Schema.String,
    attempts: Schema.Natural,
    finish: Schema.UndefinedOr(Schema.String),
    late_failure: Schema.UndefinedOr(Failure),
    route: Schema.optionalKey(Schema.String),
  }),
] as const;

/**
 * Returns the schema of a run's events for a wire: use it in `Schema.toCodecJson(RunEvent.schema(Part))`, or as the `success` of
 * an Rpc stream whose `error` is `RunInterrupted`.
 *
 * @param part the schema of the caller's parts
 */
export const schema = <Part extends Schema.Top>(part: Part) =>
  Schema.Union([
    Schema.TaggedStruct("Part", {
      attempt: Schema.Natural,
      ordinal: Schema.Natural,
      part,
      calls: Schema.optionalKey(Schema.Array(ReadyCallSchema)),
      delivered_calls: Schema.optionalKey(Schema.Array(DeliveredCallSchema)),
    }),
    ...ownEvents,
  ]);

/**
 * The provider's own error: any value in this process (L12). A wire carries only its fingerprint, which is bounded and contains
 * no message, header or address; the receiver decodes the fingerprint.
 */
const Cause = Schema.declare((_value): _value is unknown => true, {
  identifier: "Cause",
  toCodecJson: () =>
    Schema.link<unknown>()(
      Fingerprint,
      SchemaTransformation.transform({ decode: (print): unknown => print, encode: fingerprintOf }),
    ),
});

/** Returns the fingerprint of a cause. A cause that arrived over a wire is already a fingerprint. */
const fingerprintOf = (cause: unknown): Fingerprint =>
  isFingerprint(cause) ? cause : (FailureClassifier.classify(cause).fingerprint ?? { name: "Error", depth: 0 });

const isFingerprint = Schema.is(Fingerprint);

/**
 * Ends a run that did not complete.
 *
 * `cause` is the provider's own error, unchanged (L12); in JSON it is its fingerprint.
 */
export class RunInterrupted extends Schema.TaggedError<RunInterrupted>()("RunInterrupted", {
  reason: Schema.Literals([
    /** The policy does not allow a retry; `rule` names the reason. */
    "do_not_retry",
    /** A person or the configuration answered a question with `stop`. */
    "stopped",
    /** A question was answered with `accept`: the part of the response that was shown is kept. */
    "accepted_partial",
    /** The store did not accept an entry that must be on record first: an incident, an attempt or a call (L8). */
    "record_failed",
    /**
     * Nothing was sent, because the id is already on record, an option cannot be recorded, or the run cannot be taken up. After a store
     * outage, this refusal may arrive only when the store is available again.
     */
    "refused",
    /** No answer has arrived yet. The run is kept, and `StreamProcessor.takeUp` resumes it. */
    "parked",
    /** Another process owns the run now. */
    "taken_over",
    /** Another reader has replaced this reader. The run continues. */
    "attached_elsewhere",
  ]),
  run_id: Schema.String,
  rule: Rule,
  failure: Failure,
  attempts: Schema.Natural,
  /** A sentence for people: what happened, whether a tool ran, and which step is safe. */
  message: Schema.String,
  /** The id of the route that failed; absent for the run's own first route. */
  route: Schema.optionalKey(Schema.String),
  cause: Schema.optionalKey(Cause),
}) {}
