/**
 * Says a decision in a plain sentence or two: what happened, whether a tool ran, what is safe to do.
 *
 * The one place for such words. They are made of fixed phrases: never of a message, a name or content that came from
 * outside. A rejection keeps the provider's own kind: a bill that is not paid is never a lost connection.
 */
import type { AttemptFacts } from "../domain/AttemptFacts.ts";
import type { Decision } from "../domain/Decision.ts";
import type { Failure, RejectedReason } from "../domain/Failure.ts";
import * as FailureReading from "../domain/FailureReading.ts";

/**
 * The sentence of a decision.
 *
 * @param decision what was decided
 * @param given the failure that it was decided on
 * @param facts the facts that it was decided on
 */
export const explain = (decision: Decision, given: Failure, facts: AttemptFacts): string => {
  const failure = FailureReading.read(given);
  const happened = decision.rule === "already_complete" ? completed(failure) : whatHappened(failure);
  return `${happened}; ${byRule(decision, failure, facts)}`;
};

const completed = (failure: Failure): string =>
  failure.kind === "invalid_tool_input" || failure.kind === "empty"
    ? whatHappened(failure)
    : "The answer had already ended when the stream failed";

const whatHappened = (failure: Failure): string => {
  switch (failure.kind) {
    case "transport":
      return failure.operation === "connect"
        ? "The connection to the model provider could not be made"
        : "The connection to the model provider was lost";
    case "truncated":
      return "The model's answer ended early, without the provider's end marker";
    case "stalled":
      return stalls[failure.clock];
    case "rate_limited":
      return "The model provider limits the rate of requests";
    case "overloaded":
      return "The model provider is overloaded";
    case "server_error":
      return `The model provider had an internal error${withStatus(failure)}`;
    case "rejected":
      return `The model provider rejected the request: ${rejections[failure.reason]}${withStatus(failure)}`;
    case "protocol":
      return failure.reason === "oversize"
        ? "The model provider sent more than may be held"
        : "The model provider's stream was damaged";
    case "invalid_tool_input":
      return "The model wrote a tool call that cannot be read";
    case "empty":
      return "The model finished without an answer";
    case "cancelled":
      return cancels[failure.by];
    case "caller_failed":
      return "The program that reads the answer failed";
    case "crashed":
      return "The process ended in the middle of the answer";
    case "unknown":
      return "The stream failed in a way that is not known";
  }
};

const stalls = {
  connect: "The model provider could not be reached in time",
  first_progress: "The model provider did not begin to answer in time",
  idle: "The model's answer stood still for too long",
  silence: "The model provider fell silent",
  attempt: "The attempt took longer than its limit",
  run: "The run took longer than its limit",
} as const;

const cancels = {
  user: "The answer was cancelled by the user",
  lifecycle: "The session was closed",
  caller: "The answer was interrupted by the program around it",
  provider: "The model provider cancelled the answer",
} as const;

const rejections: Readonly<Record<RejectedReason, string>> = {
  auth: "its credentials are not valid",
  permission: "it is not permitted",
  quota: "the quota or the balance of the account is used up",
  invalid_request: "it is not valid",
  context_overflow: "it is longer than the model's context",
  payload_too_large: "it is too large",
  content_policy: "the content policy forbids it",
  not_found: "the model or address does not exist",
};

const withStatus = (failure: Failure): string => (failure.status === undefined ? "" : ` (status ${failure.status})`);

const byRule = (decision: Decision, failure: Failure, facts: AttemptFacts): string => {
  switch (decision.rule) {
    case "already_complete":
      return failure.kind === "invalid_tool_input" || failure.kind === "empty"
        ? `the answer ended and is kept as it is. ${toolSentence(facts)}`
        : "the answer is complete, nothing is repeated.";
    case "user_cancelled":
      return "it stays stopped, because the user cancelled.";
    case "lifecycle_closed":
      return "it stays stopped, because the session was closed.";
    case "caller_interrupted":
      return "it stays stopped here; where it is on record with its request, it can be gone on with later.";
    case "unknown_failure":
      return `whether it is safe to try again cannot be told. ${toolSentence(facts)}`;
    case "recovery_refused":
      return "the continuation was refused. What was settled before is kept.";
    case "not_retryable":
      return "the same request would fail again.";
    case "tool_outcome_unknown":
      return "a tool had started and its outcome is not known. Check what it did before you repeat or continue.";
    case "resume_cursor":
      return "the same answer is picked up where it broke. Nothing is repeated.";
    case "tool_call_handed_over":
      return "a complete tool call had been passed on, and nothing proves that it did not run. Check before you repeat.";
    case "tool_input_shown":
      return "a part of a tool call had been passed on, and nothing proves that it did not run. Check before you repeat.";
    case "provider_tool_activity":
      return "the provider had begun to run a tool of its own that may change something. Check before you repeat.";
    case "side_effects_unprovable":
      return "the provider may have run tools of its own, which cannot be told from here. Check before you repeat.";
    case "tools_settled":
      return "the tools that ran are finished, and the answer goes on from their results. No tool runs again.";
    case "tool_ran":
      return "a tool that may change something has already run. Repeating could run it again.";
    default:
      return byContent(decision, facts);
  }
};

/** The rules that depend on what was shown, and those that ask before an automatic retry. */
const byContent = (decision: Decision, facts: AttemptFacts): string => {
  switch (decision.rule) {
    case "text_closed_by_call":
      return "the text that was shown was finished, and the answer goes on after it. Nothing is repeated.";
    case "continue_text":
      return "the answer goes on after the text that was shown.";
    case "text_shown":
      return facts.shown === "nothing"
        ? `the answer had begun. ${toolSentence(facts)} Repeating gives a new answer.`
        : `a part of the answer had been shown. ${toolSentence(facts)} Repeating gives a new answer in its place.`;
    case "credentials_refreshed":
      return "it is sent again with fresh credentials.";
    case "not_sent":
      return "nothing of the request had been sent, so it is safely sent again.";
    case "not_processed":
      return "the provider did nothing with the request, so it is safely sent again.";
    case "tool_calls_fenced":
      return "no tool call that may change something had run, and none of this answer can, so it is safely asked again.";
    case "only_read_only_tools":
      return "only tools that change nothing were called, so it is safely asked again.";
    case "only_reasoning_shown":
      return "only reasoning had been shown and no tool was called, so it is safely asked again.";
    case "nothing_shown":
      return "nothing had been shown and no tool was called, so it is safely asked again.";
    case "retry_after_too_long":
      return `the provider asks for a longer wait than is allowed without a question. ${toolSentence(facts)}`;
    case "throttled":
      return `too many retries are under way at this provider. ${toolSentence(facts)} It can be tried again later.`;
    case "budget_exhausted":
      return `it was tried as often as is allowed. ${toolSentence(facts)}`;
    default:
      return toolSentence(facts);
  }
};

const toolSentence = (facts: AttemptFacts): string => {
  if (facts.tools.some((row) => row.phase === "dispatched" || row.phase === "outcome_unknown")) {
    return "A tool had started and its outcome is not known.";
  }
  if (facts.tools.some((row) => row.phase === "settled")) return "A tool has run.";
  if (facts.tools.some((row) => row.executor === "provider")) return "The provider had begun to run a tool of its own.";
  return facts.tools.length === 0
    ? "No tool was called."
    : "A tool had been called; whether it ran is not proven here.";
};
