/**
 * Describes the final failure of a run to its client: the failure, and the reason why the gateway stops trying.
 *
 * The sentences are fixed and do not name a provider. A provider's message is quoted in full only for clients that decide by the status.
 * Any other client might retry because of a word such as "Overloaded", although the run was already retried.
 */
import type { ProviderWords } from "../../adapters/relay/RelayRepeats.ts";
import type { Rule } from "../../domain/Decision.ts";
import type { Failure, FailureKind, RejectedReason } from "../../domain/Failure.ts";
import { codedWords } from "../../policy/Explanation.ts";
import { connectWords } from "../../story/PathWords.ts";
import { isTransientText, withoutPassing } from "./PassingWords.ts";

/** Facts about a failed run that determine its message. */
export interface GivenUpFacts {
  readonly failure: Failure;
  readonly rule: Rule;
  readonly attempts: number;
  /** A clause about a web page that arrived instead of a response. */
  readonly page?: string | undefined;
}

/**
 * Returns a one-word code for the failure: the error's own code, or else the kind of the failure. A code with other characters may be any
 * text, so it is not used.
 */
export const codeOf = (failure: Failure): string => {
  const own = [failure.code, failure.fingerprint?.code].find((code) => code !== undefined && plainCode.test(code));
  return own ?? failure.kind;
};

const plainCode = /^[A-Za-z][\w.-]{0,63}$/;

/** End of the clause about a web page. Its title may follow. */
export const pageInPlace = "arrived instead of the model provider's response";

/** Start of every message, which says who wrote it. */
const speaker = "stream-recovery gateway: ";

/**
 * Adds a quotation of the provider to a message.
 *
 * @param message a result of `messageOf`
 * @param asksByWords true to omit the words that make clients retry
 */
export const withQuote = (
  message: string,
  { code, message: said, title }: Pick<ProviderWords, "code" | "message" | "title">,
  asksByWords: boolean,
): string => {
  if (title !== undefined) return message.replace(pageInPlace, () => `${pageInPlace}, with the title "${title}"`);
  const text = said === undefined || !asksByWords ? said : withoutPassing(said);
  const named = code === undefined || (asksByWords && isTransientText(code)) ? undefined : code;
  if (text === undefined && named === undefined) return message;
  const coded = named === undefined ? "" : ` (${named})`;
  const quote = text === undefined ? `answers${coded}` : `says "${text}"${coded}`;
  const own = named === undefined ? message : message.replace(coded, "");
  const quoted = `${speaker}the model provider ${quote}: ${own.slice(speaker.length)}`;
  // Two harmless strings may together contain a word that makes clients retry.
  return asksByWords && isTransientText(quoted) ? message : quoted;
};

/** Creates the message: its author, the failure, and the reason why the gateway stops trying. */
export const messageOf = ({ attempts, failure, page, rule }: GivenUpFacts): string => {
  const code = codeOf(failure);
  const named = code === failure.kind || isTransientText(code) ? "" : ` (${code})`;
  const happened = `${speaker}${page ?? codedWords(failure) ?? describeFailure(failure)}${named}.`;
  const why = rule === "outage_too_long" ? describeLongWait(failure) : reasons[rule];
  const tries = attempts > 1 ? `${attempts} attempts were made.` : "";
  return [happened, why, isTransientText(tries) ? "" : tries, "There are no further attempts."]
    .filter((sentence) => sentence !== undefined && sentence !== "")
    .join(" ");
};

const describeFailure = (failure: Failure): string => {
  switch (failure.kind) {
    case "transport":
      return (
        plainly.get(failure.code ?? "") ??
        (failure.operation === "connect"
          ? "the model provider could not be reached"
          : "the connection to the model provider broke")
      );
    case "stalled":
      return failure.clock === "connect"
        ? "the model provider could not be reached"
        : "the model provider stopped sending";
    case "rejected":
      return `the model provider refused the request: ${refusals[failure.reason]}`;
    default:
      return happenings[failure.kind];
  }
};

/** Replaces the most common Node codes with plain words, because opencode retries if a message contains such a code. */
const plainly: ReadonlyMap<string, string> = new Map(
  ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"].map((code) => [
    code,
    `the model provider could not be reached: ${connectWords.get(code)}`,
  ]),
);

const happenings: Readonly<Record<Exclude<FailureKind, "transport" | "stalled" | "rejected">, string>> = {
  truncated: "the model's response stopped before its end",
  rate_limited: "the model provider accepts no more requests for now",
  overloaded: "the model provider has no room for more requests",
  server_error: "the model provider failed to process the request",
  protocol: "the model's response could not be read",
  invalid_tool_input: "the model wrote a tool call that cannot be read",
  empty: "the model's response was empty",
  refused: "the model refused to answer",
  model_length: "the model's response reached its length limit",
  cancelled: "the response was cancelled",
  caller_failed: "the program that reads the response failed",
  crashed: "the gateway's process ended during the response",
  unknown: "the response failed for an unknown reason",
};

const refusals: Readonly<Record<RejectedReason, string>> = {
  auth: "its credentials are not valid",
  permission: "it is not permitted",
  quota: "the account's quota or balance is used up",
  invalid_request: "it is not valid",
  context_overflow: "it is longer than the model can read",
  payload_too_large: "it is too large",
  content_policy: "the content policy forbids it",
  not_found: "the model or address does not exist",
};

const mayHaveRun = "A tool may have run, so the request was not repeated.";
const providerTool = "The provider may have run one of its own tools, so the request was not repeated.";
const shown = "Part of the response had been shown, so the request was not repeated.";

/** Explains that a run would have to wait too long, after an outage or because the provider asked for a wait. */
const describeLongWait = ({ kind }: Failure): string =>
  kind === "rate_limited" || kind === "overloaded"
    ? "It asks for a longer wait than the limit allows."
    : "The gateway waited as long as the limit allows.";

/** Reasons why a run stopped, for the rules that the number of attempts does not explain. */
const reasons: Readonly<Partial<Record<Rule, string>>> = {
  unknown_failure: "We cannot tell whether a retry is safe.",
  recovery_refused: "The rest of the response could not be requested.",
  not_retryable: "The same request would fail again.",
  tool_outcome_unknown: mayHaveRun,
  tool_call_handed_over: mayHaveRun,
  tool_input_shown: mayHaveRun,
  tool_ran: mayHaveRun,
  provider_tool_activity: providerTool,
  side_effects_unprovable: providerTool,
  text_shown: shown,
  retry_after_too_long: "The provider asks for a longer wait than the limit allows.",
  token_budget: "Broken responses have used up the token budget.",
  throttled: "Repeats of other requests have used up the retry budget for this provider.",
};
