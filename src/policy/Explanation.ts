/**
 * Explains a decision in one or two plain sentences: the failure, whether a tool ran, and the step that is safe.
 *
 * This module describes the failure by its kind; Rules.ts has the sentence of each rule. All phrases are fixed and contain no message, name
 * or content from outside. A rejection keeps the provider's own reason, so an unpaid bill is never described as a lost connection.
 */
import { type AttemptFacts, fresh } from "../domain/AttemptFacts.ts";
import type { Decision } from "../domain/Decision.ts";
import { type Failure, isMalformed, type RejectedReason } from "../domain/Failure.ts";
import * as FailureReading from "../domain/FailureReading.ts";
import * as Json from "../domain/Json.ts";
import type { SeamFault } from "../domain/SeamWords.ts";
import { hasCutCall, hasUnknownOutcome, readableRows } from "./CutCalls.ts";
import { type RuleEntry, rules } from "./Rules.ts";

/**
 * Explains a decision. The text never contradicts the facts. It never throws, because an unknown value is described as unknown.
 *
 * @param given the failure that was decided on
 * @param facts the facts that were decided on
 */
export const explain = (decision: Decision, given: Failure, facts: AttemptFacts): string => {
  const failure = FailureReading.read(given);
  const known = Json.record(facts) === undefined ? fresh : facts;
  const { because, route, rule, wait_for } = Json.record(decision) === undefined ? noDecision : decision;
  const late = rule === "already_complete" && !isMalformed(failure);
  const happened = late
    ? `The answer had already ended when ${describeLateFailure(failure)}`
    : describeFailure(failure, known);
  const describeTools = () => toolSentence(known);
  // An untyped caller may pass a rule of a newer version, which has no entry here.
  const entry: RuleEntry | undefined = Object.hasOwn(rules, rule) ? rules[rule] : undefined;
  if (entry === undefined) return `${happened}; ${describeTools()}`;
  const parts = { because: Array.isArray(because) ? because : [], failure, facts: known, tools: describeTools };
  const said = typeof entry.sentence === "string" ? entry.sentence : entry.sentence(parts);
  // Mentions every unknown outcome, except before an automatic retry. A retry either resumes the answer with its running tools, or no call
  // was open.
  const isUnsaid = entry.action !== "auto_retry_once" && hasUnknownOutcome(known) && !said.includes(outcomeUnknown);
  const unknown = isUnsaid ? ` A tool had ${outcomeUnknown}.` : "";
  return `${happened}; ${said}${unknown}${describeSending(route, wait_for)}`;
};

/** Describes the route of a retry, or the event for which the retry waits. */
const describeSending = (route: Decision["route"], waitFor: Decision["wait_for"]): string => {
  if (route === "next") return " It is sent to the next route.";
  return waitFor !== undefined && Object.hasOwn(waits, waitFor) ? ` ${waits[waitFor]}` : "";
};

/** Part of every sentence about a tool of unknown outcome. */
const outcomeUnknown = "started and its outcome is not known";

const noDecision: Partial<Decision> & Pick<Decision, "rule"> = { rule: "unknown_failure" };

const describeLateFailure = (failure: Failure): string => {
  if (failure.kind !== "cancelled") return "the stream failed";
  return lateCancels[failure.by];
};

const lateCancels = {
  user: "the user cancelled",
  lifecycle: "the session was closed",
  caller: "the calling program interrupted it",
  provider: "the model provider cancelled it",
} as const;

const waits = {
  path: "It is sent when the provider can be reached again.",
  cooldown: "It is sent when the wait that the provider announced is over.",
} as const;

/**
 * Returns a clause about a failure that only its code identifies; undefined for any other code. For the first three codes nothing was sent.
 * The others are bodies that do not match their headers.
 */
export const codedWords = ({ code, kind }: Pick<Failure, "code" | "kind">): string | undefined =>
  code === undefined || (kind !== "protocol" && kind !== "rejected") ? undefined : coded.get(code);

const coded: ReadonlyMap<string, string> = new Map([
  ["continuation_unbuildable", "we could not build a request for the rest of the answer"],
  ["signature_expired", "the signature of the request has expired, and only its client can sign a repeat"],
  ["resume_cursor_unreadable", "the cursor at which the answer continues could not be read"],
  ["web_page", "a web page arrived in place of the model provider's response"],
  ["unknown_encoding", "the response has an unknown content encoding"],
  ...["gzip", "deflate", "br", "zstd"].map(
    (name) => [`not_${name}`, `the response's header says ${name}, but its body is not ${name}`] as const,
  ),
]);

const sentenceCase = (words: string): string => words.replace(/^./, (letter) => letter.toUpperCase());

const describeFailure = (failure: Failure, facts: AttemptFacts): string => {
  const { delivery, progress, shown } = facts;
  const words = codedWords(failure);
  if (words !== undefined) return sentenceCase(words);
  // Partial facts may omit the progress, but shown content or a call proves that something arrived.
  const isEmpty = progress === "none" && shown === "nothing" && readableRows(facts).length === 0;
  const hasContent = progress === "reasoning" || progress === "output" || shown === "reasoning" || shown === "text";
  switch (failure.kind) {
    case "transport":
      // If nothing was sent, no connection can have been lost.
      return !hasContent && (failure.operation === "connect" || delivery === "not_sent")
        ? "The connection to the model provider could not be established"
        : "The connection to the model provider was lost";
    case "truncated":
      return isEmpty
        ? "The model provider's response was empty"
        : "The model's answer ended early, without the provider's end marker";
    case "stalled":
      // A clock that ends before the first content contradicts an answer with content, so the clause for `idle` describes it.
      return stalls[hasContent && isBeforeContent(failure.clock) ? "idle" : failure.clock];
    case "rate_limited":
      return "The model provider limits the rate of requests";
    case "overloaded":
      return "The model provider is overloaded";
    case "server_error":
      return `The model provider had an internal error${withStatus(failure)}`;
    case "rejected":
      return `The model provider rejected the request: ${rejections[failure.reason]}${withStatus(failure)}`;
    case "protocol":
      if (failure.reason === "seam_unproven")
        return `The answer could not be joined to the shown text${seamFaultClause(failure)}`;
      return failure.reason === "oversize"
        ? "The model provider sent more data than allowed"
        : "The model provider's stream was damaged";
    case "invalid_tool_input":
      return "The model wrote a tool call that cannot be read";
    case "empty":
      return "The model finished without an answer";
    case "refused":
      return "The model refused to answer";
    case "model_length":
      return "The answer reached the model's length limit";
    case "cancelled":
      return cancels[failure.by];
    case "caller_failed":
      return "The program that reads the answer failed";
    case "crashed":
      return isEmpty ? "The process ended before the answer began" : "The process ended in the middle of the answer";
    case "unknown":
      return "The stream failed for an unknown reason";
  }
};

/** Reasons that new text was not joined to the shown text, phrased to follow a colon. */
export const seamFaults: Readonly<Record<SeamFault, string>> = {
  differs: "the new text did not begin with the end of the shown text",
  stopped: "the new text ended before it had repeated the end of the shown text",
  not_text: "a tool call, an image or a refusal came before the new text had repeated the end of the shown text",
  repeats: "after the seam, the new text repeated text that had been shown",
  unwritable: "this protocol cannot express the join",
};

/** Describes an unproven seam. Its code is a `SeamFault`; any other code is from outside and is not repeated. */
const seamFaultClause = ({ code }: Failure): string => {
  const known: Readonly<Record<string, string>> = seamFaults;
  return code !== undefined && Object.hasOwn(known, code) ? `: ${known[code]}` : "";
};

const stalls = {
  connect: "The model provider could not be reached in time",
  first_progress: "The model provider did not begin to answer in time",
  idle: "The model's answer made no progress for too long",
  silence: "The model provider fell silent",
  attempt: "The attempt took longer than its limit",
  run: "The run took longer than its limit",
} as const;

const isBeforeContent = (clock: keyof typeof stalls): boolean => clock === "connect" || clock === "first_progress";

const cancels = {
  user: "The user cancelled the answer",
  lifecycle: "The session was closed",
  caller: "The calling program interrupted the answer",
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

const toolSentence = (facts: AttemptFacts): string => {
  const rows = readableRows(facts);
  if (hasCutCall(facts)) return `A tool had ${outcomeUnknown}.`;
  if (rows.some((row) => row.phase === "settled")) return "A tool has run.";
  if (rows.some((row) => row.executor === "provider")) return "The provider had started one of its own tools.";
  return rows.length === 0 ? "No tool was called." : "A tool had been called, and we cannot prove whether it ran.";
};
