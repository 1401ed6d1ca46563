/**
 * Says why a store of runs did not do what it was asked for.
 */
import * as Schema from "effect/Schema";

/**
 * A run's record could not be written or read. `reason` says why. A caller that acts on records must then not act (L8).
 *
 * `fenced`: another process has taken the run over, and this one writes nothing of it any more; or this process gave the run
 * back, and may not drive it on without a claim. `owned`: a living process drives the run, so it cannot be taken over.
 * `invalid`: a write holds a value that could not be read back. The message names its field, `entry` is its place in the
 * write, and nothing of the write was taken. `bad_option`: the recorder was made with an impossible option, which the message
 * names.
 * `newer_schema`, `read_only`, `disk_full`, `locked` and `corrupt` are said of the store as a whole; `run_id` may be empty
 * then.
 */
export class RecorderError extends Schema.TaggedError<RecorderError>()("RecorderError", {
  reason: Schema.Literals([
    "unknown_run",
    "run_exists",
    "run_ended",
    "full",
    "fenced",
    "owned",
    "invalid",
    "newer_schema",
    "read_only",
    "disk_full",
    "locked",
    "corrupt",
    "unavailable",
    "bad_option",
  ]),
  run_id: Schema.String,
  message: Schema.String,
  entry: Schema.optionalKey(Schema.Int),
  cause: Schema.optionalKey(Schema.Defect()),
}) {}
