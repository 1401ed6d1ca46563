/**
 * Says where a reader attaches to a run, and why it may not.
 */
import * as Schema from "effect/Schema";

/**
 * What a reader has of a run already. By `attempt` and `ordinal`: the last part that it has; ordinal 0 is the `AttemptStarted` of that
 * attempt. By `parts`: how many parts it has in all, for a caller of `parts`.
 */
export type AttachAfter = { readonly attempt: number; readonly ordinal: number } | { readonly parts: number };

/** How a reader attaches to a run. */
export interface AttachOptions {
  /** What the reader has already: it gets exactly what comes behind it. Left out, it gets the run from its first event. */
  readonly after?: AttachAfter;
}

/** No reader can be attached to the run. Nothing has changed for it. */
export class AttachRefused extends Schema.TaggedError<AttachRefused>()("AttachRefused", {
  reason: Schema.Literals([
    /** No run of this id is here: there never was one, it is another process's, or its time is over. */
    "unknown",
    /** The run was started without `lingerMs`. */
    "not_lingering",
    /** What the run has said does not fit into its bounds, so that it is not whole any more. */
    "evicted",
    /** The run was cancelled, or its reader had all that it wanted: nothing more of it is handed over. */
    "ended",
    /** `after` names something that the run has not handed over. */
    "ahead",
    /** The processor is closed. */
    "closed",
  ]),
  run_id: Schema.String,
  /** What was wrong, for a person. */
  message: Schema.String,
}) {}
