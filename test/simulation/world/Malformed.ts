/** Names the failures of what was said, which leave the marker what it is. */
import type { Failure } from "../../../src/domain/Failure.ts";

/** Whether a failure is one of what the model wrote, not of the stream. */
export const runFailureIsMalformed = (failure: Failure): boolean =>
  failure.kind === "invalid_tool_input" || failure.kind === "empty";
