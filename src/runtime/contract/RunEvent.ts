/**
 * Describes what a caller of `StreamProcessor.run` sees.
 *
 * The grammar, tested: `AttemptStarted` opens every attempt; its `Part`s follow, ordinals from 1 without a gap. After a
 * break comes `RetryScheduled`, then any number of `Waiting`, or `QuestionAsked` and then, unless the question was overtaken, `QuestionAnswered`; then
 * `AttemptDiscarded` for what was handed over and must be thrown away, directly before the next `AttemptStarted`: a wait
 * that is cut short withdraws nothing. `CallVerified` comes between a break and what follows from it. A stream that takes up
 * a run of an earlier process begins behind the break: its first `AttemptDiscarded` may name an attempt of that process, of
 * which all that was kept must go. A stream ends exactly once: with `RunCompleted` as its last element, or by failing
 * with `RunInterrupted`.
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

/** An attempt begins; its parts follow. */
export interface AttemptStarted {
  readonly _tag: "AttemptStarted";
  readonly run_id: string;
  readonly attempt: number;
  readonly mode: AttemptMode;
  /** The `id` of the route that it goes by; left out for the run's own first one. */
  readonly route?: string;
}

/** A part of the provider's stream, unchanged. */
export interface PartEvent<P> {
  readonly _tag: "Part";
  readonly attempt: number;
  /** Counts the parts of an attempt that were handed over, from 1. */
  readonly ordinal: number;
  readonly part: P;
  /** Present on the part that makes calls whole. */
  readonly calls?: ReadonlyArray<ReadyCall>;
  /** In place of `calls` for a reader that attaches, if a reader before it was handed them. They may have been run. */
  readonly delivered_calls?: ReadonlyArray<DeliveredCall>;
}

/** Throw away what this attempt showed after `keep_through`; 0 throws all of it away. */
export interface AttemptDiscarded {
  readonly _tag: "AttemptDiscarded";
  readonly attempt: number;
  readonly keep_through: number;
}

/** The run retries by itself after `delay_ms`. */
export interface RetryScheduled {
  readonly _tag: "RetryScheduled";
  /** The attempt that broke. */
  readonly attempt: number;
  readonly mode: AttemptMode;
  readonly rule: Rule;
  readonly delay_ms: number;
  readonly message: string;
}

/**
 * The run waits: for its path, or for the end of a wait that its provider has announced. It comes any number of times between
 * `RetryScheduled`, or an answer, and the next `AttemptStarted`. A first request that waits says so behind its `AttemptStarted`,
 * before any part; so does a later one whose path went down, or whose provider refused another one, in the moment of its start.
 */
export interface Waiting {
  readonly _tag: "Waiting";
  readonly for: "path" | "cooldown";
  /** When this wait began: wall clock, milliseconds since the epoch. */
  readonly since: number;
  /** When it is over at the latest, as far as that is known. */
  readonly until?: number;
}

/** The run waits for an answer. */
export interface QuestionAsked {
  readonly _tag: "QuestionAsked";
  readonly question: Question;
}

/** The answer that was taken. */
export interface QuestionAnswered {
  readonly _tag: "QuestionAnswered";
  readonly revision: number;
  readonly choice: Choice;
}

/** A tool has said of its own call, whose outcome was unknown, whether the call happened; no person has to be asked about it. */
export interface CallVerified {
  readonly _tag: "CallVerified";
  readonly attempt: number;
  readonly call: string;
  readonly tool: string;
  readonly verdict: "it_ran" | "it_did_not_run";
}

/**
 * The text that was shown goes on: the seam is proven, and what this attempt hands over stands directly behind it. It comes before
 * the first part of such an attempt.
 */
export interface Continued {
  readonly _tag: "Continued";
  readonly attempt: number;
  /**
   * The text that the caller has before the seam, in UTF-16 code units: that of the whole run, earlier responses that were not withdrawn
   * included. The `at` on record counts the text of the one response that is continued.
   */
  readonly at: number;
  readonly proof: SeamProof;
}

/** The response is whole, by the provider's own terminal marker. */
export interface RunCompleted {
  readonly _tag: "RunCompleted";
  readonly run_id: string;
  readonly attempts: number;
  /** The provider's own word for why it finished. */
  readonly finish: string | undefined;
  /** What still broke after the terminal marker; the response is whole all the same. */
  readonly late_failure: Failure | undefined;
  /** The `id` of the route that has answered; left out for the run's own first one. */
  readonly route?: string;
}

/** What a caller of `run` sees. */
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

/** Every event but `Part`, which alone holds something of the caller's. */
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
 * The schema of a run's events, for a wire: `Schema.toCodecJson(RunEvent.schema(Part))`, or the `success` of an Rpc stream
 * whose `error` is `RunInterrupted`.
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
 * The provider's own error: any value in this process (L12). On a wire only its fingerprint goes, which is bounded and
 * holds no message, header or address; the other side reads that.
 */
const Cause = Schema.declare((_value): _value is unknown => true, {
  identifier: "Cause",
  toCodecJson: () =>
    Schema.link<unknown>()(
      Fingerprint,
      SchemaTransformation.transform({ decode: (print): unknown => print, encode: fingerprintOf }),
    ),
});

/** A cause that has come over a wire already is its fingerprint. */
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
    /** The policy permits no retry; `rule` says why. */
    "do_not_retry",
    /** A question was answered `stop`, by a person or by configuration. */
    "stopped",
    /** A question was answered `accept`: the part of the response that was shown is kept. */
    "accepted_partial",
    /** The store did not take what has to be on record first: an incident, an attempt or a call (L8). */
    "record_failed",
    /**
     * Nothing was sent: the id is on record already, no record could hold an option, or the run cannot be taken up. A store
     * that was away may say so later, once it is back.
     */
    "refused",
    /** No answer has come yet. The run is kept, and `StreamProcessor.takeUp` goes on with it. */
    "parked",
    /** Another process drives the run now. With rule `already_complete` the whole response was handed over all the same. */
    "taken_over",
    /** Another reader has taken the place of this one. The run goes on. */
    "attached_elsewhere",
  ]),
  run_id: Schema.String,
  rule: Rule,
  failure: Failure,
  attempts: Schema.Natural,
  /** What happened, whether a tool ran, what is safe to do. */
  message: Schema.String,
  /** The id of the route that failed so; left out for the first one. */
  route: Schema.optionalKey(Schema.String),
  cause: Schema.optionalKey(Cause),
}) {}
