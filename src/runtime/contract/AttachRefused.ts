/**
 * Options for attaching a reader to a run, and the error that a refused reader gets.
 */
import * as Schema from "effect/Schema";
import { label } from "../../domain/Limits.ts";

/**
 * The position after which a reader attaches: the last part that it already has.
 *
 * `attempt` and `ordinal` name that part; ordinal 0 is the `AttemptStarted` event of the attempt. For a caller of `parts`,
 * `parts` is the total number of parts that it has.
 */
export type AttachAfter = { readonly attempt: number; readonly ordinal: number } | { readonly parts: number };

/** Options for attaching a reader to a run. */
export interface AttachOptions {
  /** The reader's position. It receives exactly the events after it, or all events of the run if it is absent. */
  readonly after?: AttachAfter;
}

/** The reader could not be attached. The run is unchanged. */
export class AttachRefused extends Schema.TaggedError<AttachRefused>()("AttachRefused", {
  reason: Schema.Literals([
    /** This process has no such run. It never existed, another process has it, or it is no longer kept. */
    "unknown",
    /** The run was started without `linger`. */
    "not_lingering",
    /** The run's output exceeded the limits, so the kept output is incomplete. */
    "evicted",
    /** The run was cancelled, or its reader stopped because it had everything it wanted. No more output is delivered. */
    "ended",
    /** `after` names a part that the run has not handed over yet. */
    "ahead",
    /** The processor is closed. */
    "closed",
  ]),
  run_id: Schema.String,
  /** The reason as a sentence for people. */
  message: Schema.String,
}) {
  /** @internal Makes the refusal of a reader of a run. */
  static of(runId: string, reason: AttachRefused["reason"]): AttachRefused {
    return new AttachRefused({ reason, run_id: label(String(runId)), message: sentences[reason] });
  }
}

/** Messages for the caller. */
const sentences: Readonly<Record<AttachRefused["reason"], string>> = {
  unknown: "No run with this id is available here: it never existed, or its linger time is over.",
  not_lingering: "The run was started without `linger` and ends with its consumer.",
  evicted: "The run's output was evicted because it exceeded the limit of what is kept for a reader.",
  ended: "The run was cancelled, or its reader had everything that it wanted.",
  ahead: "`after` names a position that the run has not reached.",
  closed: "The processor is closed.",
};
