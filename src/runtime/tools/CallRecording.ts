/**
 * Decides which calls must be on record before they are handed over, and how an attempt breaks if they cannot be recorded (L8).
 */
import type { Failure } from "../../domain/Failure.ts";
import { RecorderError } from "../../recorder/RecorderError.ts";
import type { NamedCall } from "./ToolLedger.ts";

/** The parts of a run that this decision reads. */
interface CallOwner {
  /** `guarded` is true if calls start only through the guard, which starts no call that is not on record. */
  readonly sideEffects: { readonly guarded: boolean };
  readonly options: { readonly tools: ReadonlyArray<{ readonly name: string; readonly effect: string }> };
  readonly shared: { readonly recorder: { readonly durable: boolean } };
  readonly isVolatile: boolean;
}

/**
 * Returns true if these calls must be on record before they are handed over. Text never has to be on record. Nor does a read-only call, a
 * call that only the guard can start, or a call of a run that no other process can take over: a volatile run, or a run whose record ends
 * with its process.
 *
 * @param calls the calls about to be handed over
 */
export const isRecordNeeded = (
  { isVolatile, options, shared, sideEffects }: CallOwner,
  calls: ReadonlyArray<NamedCall>,
): boolean => {
  const effectOf = (tool: string) => options.tools.find(({ name }) => name === tool)?.effect;
  const isRecovered = shared.recorder.durable && !isVolatile;
  return isRecovered && !sideEffects.guarded && calls.some(({ tool }) => effectOf(tool) !== "read_only");
};

/**
 * Returns the failure of an attempt whose call could not be recorded. A process that recovers the run would not know of the call and would
 * let it run again (L8).
 */
export const unrecordedCallEnd = (
  runId: string,
): { readonly _tag: "failed"; readonly failure: Failure; readonly cause: RecorderError } => {
  const message = `${runId}: a tool call could not be recorded, so it was not handed over`;
  return {
    _tag: "failed",
    failure: { kind: "unknown" },
    cause: new RecorderError({ reason: "unavailable", run_id: runId, message }),
  };
};
