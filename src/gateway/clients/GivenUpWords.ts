/**
 * Words what the client of a run that was given up is told: what broke, and why nothing more is tried.
 *
 * The sentences are fixed and name no provider. A provider's own words are quoted in them as far as its client goes by the status:
 * to others "Overloaded" would be a reason to ask again, which is what the run has done already.
 */
import type { ProviderWords } from "../../adapters/relay/RelayRepeats.ts";
import type { Rule } from "../../domain/Decision.ts";
import type { Failure, FailureKind, RejectedReason } from "../../domain/Failure.ts";
import { codedWords } from "../../policy/Explanation.ts";
import { connectWords } from "../../story/PathWords.ts";
import { saysPassing, withoutPassing } from "./PassingWords.ts";

/** Of a run what its words are made of. */
export interface GivenUpFacts {
  readonly failure: Failure;
  readonly rule: Rule;
  readonly attempts: number;
  /** A web page that came in place of a response, in a clause. */
  readonly page?: string | undefined;
}

/**
 * What broke, in one word of a fixed form: the code of the error, else the kind of the failure. A code of another form is text of
 * unknown origin and is not told.
 */
export const codeOf = (failure: Failure): string => {
  const own = [failure.code, failure.fingerprint?.code].find((code) => code !== undefined && plainCode.test(code));
  return own ?? failure.kind;
};

const plainCode = /^[A-Za-z][\w.-]{0,63}$/;

/** Ends the clause about a web page; its title follows. */
export const pageInPlace = "came in place of the model provider's response";

/** Begins every message: who says it. */
const speaker = "stream-recovery gateway: ";

/**
 * A message with the provider's own words in it.
 *
 * @param message of `messageOf`
 * @param asksByWords leaves out the words by which clients ask again
 */
export const quoting = (
  message: string,
  { code, message: said, title }: Pick<ProviderWords, "code" | "message" | "title">,
  asksByWords: boolean,
): string => {
  if (title !== undefined) return message.replace(pageInPlace, () => `${pageInPlace}, with the title "${title}"`);
  const text = said === undefined || !asksByWords ? said : withoutPassing(said);
  const named = code === undefined || (asksByWords && saysPassing(code)) ? undefined : code;
  if (text === undefined && named === undefined) return message;
  const coded = named === undefined ? "" : ` (${named})`;
  const quote = text === undefined ? `answers${coded}` : `says "${text}"${coded}`;
  const own = named === undefined ? message : message.replace(coded, "");
  const quoted = `${speaker}the model provider ${quote}: ${own.slice(speaker.length)}`;
  // Two harmless texts may make such a word together.
  return asksByWords && saysPassing(quoted) ? message : quoted;
};

/** The message: who says it, what broke, and why nothing more is tried. */
export const messageOf = ({ attempts, failure, page, rule }: GivenUpFacts): string => {
  const code = codeOf(failure);
  const named = code === failure.kind || saysPassing(code) ? "" : ` (${code})`;
  const happened = `${speaker}${page ?? codedWords(failure) ?? whatHappened(failure)}${named}.`;
  const why = rule === "outage_too_long" ? tooLong(failure) : reasons[rule];
  const tries = attempts > 1 ? `${attempts} attempts were made.` : "";
  return [happened, why, saysPassing(tries) ? "" : tries, "Nothing more is tried."]
    .filter((sentence) => sentence !== undefined && sentence !== "")
    .join(" ");
};

const whatHappened = (failure: Failure): string => {
  switch (failure.kind) {
    case "transport":
      return (
        plainly.get(failure.code ?? "") ??
        (failure.operation === "connect"
          ? "the model provider could not be reached"
          : "the way to the model provider broke")
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

/** The commonest codes of Node in plain words, because opencode asks again where it reads one. */
const plainly: ReadonlyMap<string, string> = new Map(
  ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN"].map((code) => [
    code,
    `the model provider could not be reached: ${connectWords.get(code)}`,
  ]),
);

const happenings: Readonly<Record<Exclude<FailureKind, "transport" | "stalled" | "rejected">, string>> = {
  truncated: "the model's response stopped before its end",
  rate_limited: "the model provider takes no more requests for now",
  overloaded: "the model provider has no room for more requests",
  server_error: "the model provider failed at the request",
  protocol: "the model's response could not be read",
  invalid_tool_input: "the model wrote a tool call that cannot be read",
  empty: "the model's response was empty",
  refused: "the model refused to answer",
  model_length: "the model's response reached its limit of length",
  cancelled: "the response was cancelled",
  caller_failed: "the program that reads the response failed",
  crashed: "the gateway's process ended in the middle of the response",
  unknown: "the response failed in a way that is not known",
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
const providerTool = "The provider may have run a tool of its own, so the request was not repeated.";
const shown = "A part of the response had been shown, so the request was not repeated.";

/** An outage and an announced wait share one limit. */
const tooLong = ({ kind }: Failure): string =>
  kind === "rate_limited" || kind === "overloaded"
    ? "It asks for a longer wait than is allowed."
    : "It was waited for as long as is allowed.";

/** Why a run stopped, where the number of its attempts does not say it. */
const reasons: Readonly<Partial<Record<Rule, string>>> = {
  unknown_failure: "Whether it is safe to ask once more cannot be told.",
  recovery_refused: "The rest of the response was refused.",
  not_retryable: "The same request would meet the same fault.",
  tool_outcome_unknown: mayHaveRun,
  tool_call_handed_over: mayHaveRun,
  tool_input_shown: mayHaveRun,
  tool_ran: mayHaveRun,
  provider_tool_activity: providerTool,
  side_effects_unprovable: providerTool,
  text_shown: shown,
  retry_after_too_long: "The provider asks for a longer wait than is allowed.",
  token_budget: "Responses that broke have cost as much as they may.",
  throttled: "Other requests are being repeated at this provider already.",
};
