/**
 * Says why a store of runs did not do what it was asked for.
 */
import * as Schema from "effect/Schema";

/**
 * A run's record could not be written or read. `reason` says why. A caller that acts on records must then not act (L8).
 *
 * `fenced`: another process has taken the run over, and this one writes nothing of it any more; or this process gave the run
 * back, and may not drive it on without a claim. `owned`: a living process drives the run, so it cannot be taken over.
 * `answered`: a write that rests on an open question (`QuestionStillOpen`) came after its answer.
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
    "answered",
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

/** What is said of one run. */
const ofRun = {
  unknown_run: "the run was never started in this recorder",
  run_exists: "a run with this id is already recorded",
  run_ended: "the run has ended and takes no further entries",
  answered: "its question was answered before the write, which rests on an open one",
  full: "every kept run is still live; raise runsMax or end some runs",
  owned: "a living process drives the run",
  invalid: "a value of the write could not be read back, so nothing of the write is on record",
  fenced:
    "this process does not drive the run on: it gave the run back, or another process has taken it over or may do so",
  corrupt: "its record in the database is damaged and cannot be read; no other run is affected",
} as const;

/** A refusal that concerns one run. */
export const refused = (reason: keyof typeof ofRun, run_id: string, cause?: unknown): RecorderError =>
  new RecorderError({
    reason,
    run_id,
    message: `${run_id}: ${ofRun[reason]}`,
    ...(cause === undefined ? {} : { cause }),
  });

/**
 * A write that could not be read back.
 *
 * @param entry which entry of the write, from 0
 * @param field what does not fit, as a path into its entry, and what was expected there
 */
export const invalid = (run_id: string, entry: number, field: string): RecorderError =>
  new RecorderError({ reason: "invalid", run_id, entry, message: `${run_id}: ${ofRun.invalid}. ${field}` });

/** Reasons that concern the store and not the entries: it may take the same write later. */
const ofStore: ReadonlySet<string> = new Set([
  "locked",
  "disk_full",
  "read_only",
  "corrupt",
  "unavailable",
  "full",
  "newer_schema",
]);

/** Whether an error is the store's. A damaged row is one run's alone; a damaged store is every run's, and may be repaired. */
export const isOfStore = ({ reason, run_id }: RecorderError): boolean =>
  ofStore.has(reason) && !(reason === "corrupt" && run_id !== "");
