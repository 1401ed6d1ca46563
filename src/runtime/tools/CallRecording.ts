/**
 * Says which calls have to be on record before they are handed over, and how an attempt breaks where they cannot be (L8).
 */
import type { Failure } from "../../domain/Failure.ts";
import { RecorderError } from "../../recorder/RecorderError.ts";
import type { NamedCall } from "./ToolLedger.ts";

/** What stands between a call and its hand-over. */
interface CallOwner {
  /** The run's calls start through the guard only, which starts none that is not on record. */
  readonly sideEffects: { readonly guarded: boolean };
  readonly options: { readonly tools: ReadonlyArray<{ readonly name: string; readonly effect: string }> };
  readonly shared: { readonly recorder: { readonly durable: boolean } };
}

/**
 * Whether these calls may be handed over only once they are on record. Text goes on in any case, and so does every call where
 * no process could recover the run: the record ends with its process.
 *
 * @param calls what is about to be handed over
 */
export const needsRecord = ({ options, shared, sideEffects }: CallOwner, calls: ReadonlyArray<NamedCall>): boolean => {
  const effectOf = (tool: string) => options.tools.find(({ name }) => name === tool)?.effect;
  return shared.recorder.durable && !sideEffects.guarded && calls.some(({ tool }) => effectOf(tool) !== "read_only");
};

/**
 * How an attempt breaks whose call could not be recorded: a process that recovered the run would not know of the call, and
 * would have it run again (L8).
 */
export const keptBack = (
  runId: string,
): { readonly _tag: "failed"; readonly failure: Failure; readonly cause: RecorderError } => {
  const message = `${runId}: a tool call could not be put on record, so it was not handed over`;
  return {
    _tag: "failed",
    failure: { kind: "unknown" },
    cause: new RecorderError({ reason: "unavailable", run_id: runId, message }),
  };
};
