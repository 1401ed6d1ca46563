/**
 * Says which of two things that a provider has said about one failure tells more: some say it twice, in an `error` event and
 * in the final event behind it.
 */
import type { Failure } from "../../domain/Failure.ts";

/** How much a failure tells: a reason that no retry changes the most, an error without a word the least. */
const weightOf = (failure: Failure): number => {
  switch (failure.kind) {
    case "rejected":
      return failure.reason === "invalid_request" ? 4 : 5;
    case "rate_limited":
    case "overloaded":
      return 3;
    case "invalid_tool_input":
    case "cancelled":
      return 2;
    case "server_error":
      return 1;
    default:
      return 0;
  }
};

/**
 * The failure that tells more; of equals the first, with the wait that only the other names.
 *
 * @param first what was said first
 * @param then what was said behind it
 */
export const better = (first: Failure, then: Failure): Failure => {
  if (weightOf(then) > weightOf(first)) return then;
  const waits = first.kind === then.kind && first.retry_after_ms === undefined && then.retry_after_ms !== undefined;
  return waits ? { ...first, retry_after_ms: then.retry_after_ms } : first;
};
