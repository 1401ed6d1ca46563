/**
 * Keeps back a call that could not be put on record (law L8): whoever recovers the run would not know of it, and would have
 * it run again.
 */
import type { Failure } from "../domain/Failure.ts";
import { RecorderError } from "../recorder/RecorderError.ts";
import type { NamedCall } from "./ToolLedger.ts";

/** What stands between a call and its hand-over. */
interface Owner {
  readonly runId: string;
  /** The run's calls start through the guard only, which starts none that is not on record. */
  readonly sideEffects: { readonly guarded: boolean };
  readonly options: { readonly tools: ReadonlyArray<{ readonly name: string; readonly effect: string }> };
  readonly shared: { readonly recorder: { readonly durable: boolean } };
}

/**
 * How an attempt breaks that has such a call; undefined where the hand-over may go on. Text goes on in any case, and so does
 * every call where nobody could recover the run: the record ends with its process.
 *
 * @param calls what is about to be handed over
 */
export const keptBack = (
  { options, runId, shared, sideEffects }: Owner,
  calls: ReadonlyArray<NamedCall>,
): { readonly _tag: "failed"; readonly failure: Failure; readonly cause: RecorderError } | undefined => {
  const effectOf = (tool: string) => options.tools.find(({ name }) => name === tool)?.effect;
  const repeatable = calls.every(({ tool }) => effectOf(tool) === "read_only");
  if (!shared.recorder.durable || sideEffects.guarded || repeatable) return undefined;
  const message = `${runId}: a tool call could not be put on record, so it was not handed over`;
  return {
    _tag: "failed",
    failure: { kind: "unknown" },
    cause: new RecorderError({ reason: "unavailable", run_id: runId, message }),
  };
};
