/** Recognises failures of the content, which do not change the marker. */
import type { Failure } from "../../../src/domain/Failure.ts";

/** Returns true if a failure concerns the model's output and not the stream. */
export const runFailureIsMalformed = (failure: Failure): boolean =>
  failure.kind === "invalid_tool_input" || failure.kind === "empty";
