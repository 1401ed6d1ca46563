/** Defines the errors of a run store. */
import * as Schema from "effect/Schema";

/**
 * A run's record could not be written or read. `reason` says why. A caller that may act only on recorded state must not act after this
 * error (L8).
 *
 * - `fenced`: another process has taken the run over, so this process may no longer write it; or this process has released the run, and
 *   must claim it before it continues the run.
 * - `owned`: a live process owns the run, so it cannot be taken over.
 * - `answered`: a write that requires an open question (`QuestionStillOpen`) arrived after the answer.
 * - `invalid`: a value of the write could not be read back, so nothing was written. The message names the field, and `entry` is its
 *   position in the write.
 * - `bad_option`: the recorder was created with an invalid option, which the message names.
 * - `newer_schema`, `read_only`, `disk_full`, `locked` and `corrupt` concern the whole store; `run_id` may then be empty.
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

/** Messages about one run. */
const ofRun = {
  unknown_run: "the run was never started in this recorder",
  run_exists: "a run with this id is already recorded",
  run_ended: "the run has ended and takes no further entries",
  answered: "its question was answered before the write, which requires an open question",
  full: "every kept run is still live; raise runsMax or end some runs",
  owned: "a live process owns the run",
  invalid: "a value of the write cannot be read back, so nothing of the write is on record",
  fenced: "this process no longer owns the run: it released the run, or another process has taken it over or may do so",
  corrupt: "its record in the database is damaged and cannot be read; no other run is affected",
} as const;

/** Creates an error that concerns one run. */
export const runError = (reason: keyof typeof ofRun, run_id: string, cause?: unknown): RecorderError =>
  new RecorderError({
    reason,
    run_id,
    message: `${run_id}: ${ofRun[reason]}`,
    ...(cause === undefined ? {} : { cause }),
  });

/**
 * Creates an error about a write that could not be read back.
 *
 * @param entry index of the entry in the write
 * @param field path of the field in its entry, and the expected value
 */
export const invalidEntryError = (run_id: string, entry: number, field: string): RecorderError =>
  new RecorderError({ reason: "invalid", run_id, entry, message: `${run_id}: ${ofRun.invalid}. ${field}` });

/** Reasons that concern the store and not the entries. The store may accept the same write later. */
const ofStore: ReadonlySet<string> = new Set([
  "locked",
  "disk_full",
  "read_only",
  "corrupt",
  "unavailable",
  "full",
  "newer_schema",
]);

/**
 * True if an error concerns the whole store rather than one run. A damaged row concerns only its run; a damaged store concerns every run,
 * and may be repaired.
 */
export const isOfStore = ({ reason, run_id }: RecorderError): boolean =>
  ofStore.has(reason) && !(reason === "corrupt" && run_id !== "");
