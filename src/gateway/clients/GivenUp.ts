/**
 * Words the final failure of a run for its client. The words do not look transient to the client, and they include the provider's
 * own if it refused the run.
 */
import type { RelayInterrupted } from "../../adapters/relay/RelayInterrupted.ts";
import type { ProviderWords, Recalled, ToldClient } from "../../adapters/relay/RelayRepeats.ts";
import type { RelayHeaders, RelayRequest } from "../../adapters/relay/RelayTransport.ts";
import type { WireProtocol } from "../../provider/Protocols.ts";
import { isOutOfDescriptors } from "../limits/Descriptors.ts";
import type { Treatment } from "./ClientRow.ts";
import { codeOf, messageOf, quoting } from "./GivenUpWords.ts";
import { isTransientText } from "./PassingWords.ts";
import { pageOf, providerWordsOf, type WebPage } from "./ProviderWords.ts";

/**
 * The failure as its client receives it: one plain sentence for a person, a code (for example `ECONNREFUSED`), and the headers
 * `x-should-retry: false`, `x-recovery-run`, `x-recovery-attempts`, `x-recovery-rule` and `x-recovery-code`.
 */
export type GivenUp = ToldClient;

/** The gateway's response to a run that failed for good before its head. */
export interface GivenUpRefusal {
  readonly status: Treatment["status"];
  readonly headers: RelayHeaders;
  /** The body, as JSON of the protocol. */
  readonly document: object;
}

/**
 * True if the gateway has abandoned a run, so that its client must not retry: the run was retried, or it broke without a response
 * of the provider. A provider's refusal that was not retried passes unchanged. A gateway that closes, cannot record or cannot open
 * a connection answers 503.
 *
 * @param repeated true if the request repeats one whose run has retried, so that its budget may be empty
 */
export const isGivenUp = (error: RelayInterrupted, repeated: boolean): boolean => {
  const { attempts, failure, reason, response, rule } = error;
  if (isOutOfDescriptors(failure)) return false;
  if (rule === "lifecycle_closed" || reason === "refused" || reason === "record_failed") return false;
  if (rule === "user_cancelled" || rule === "caller_interrupted") return false;
  if (response === undefined) return true;
  if (rule === "not_retryable") return false;
  return attempts > 1 || (repeated && rule === "budget_exhausted");
};

/** The way in which a shown response broke. */
export interface ShownBreak {
  /** True if the request repeats one that broke before. */
  readonly repeated: boolean;
  /** True if the provider reported the failure, by an error event or by a response in place of the stream. */
  readonly said: boolean;
}

/**
 * True if a shown response that broke ends as a broken connection. Such a client recovers by retrying, as it does without a
 * gateway, and an error event would end its turn. This happens once; the repeat gets the error event.
 */
export const isLeftToClient = (
  { mends, onBreak }: Pick<Treatment, "mends" | "onBreak">,
  { repeated, said }: ShownBreak,
): boolean => onBreak === "tell" && !repeated && (mends === "errors" || (mends === "cuts" && !said));

/**
 * Builds the client's view of a run that failed for good.
 *
 * @param request the client's request, whose credentials are redacted from the provider's words
 */
export const finalFailureOf = (error: RelayInterrupted, request?: RelayRequest): GivenUp => {
  const code = codeOf(error.failure);
  const page = pageOf(error.response, request);
  const said = error.rule === "user_cancelled" ? undefined : (titleOf(page) ?? providerWordsOf(error, request));
  return {
    ...(said === undefined ? {} : { said }),
    message: messageOf({ ...factsOf(error), page: page?.clause }),
    code,
    headers: [["x-should-retry", "false"], ...error.headers, ["x-recovery-code", code]],
  };
};

const titleOf = (page: WebPage | undefined): ProviderWords | undefined =>
  page?.title === undefined
    ? undefined
    : { message: undefined, code: undefined, response: undefined, title: page.title };

const factsOf = ({ attempts, failure, rule }: RelayInterrupted) => ({ attempts, failure, rule });

/** Builds the answer to a repeat of a failed request: the remembered failure, with its age in whole seconds. */
export const recallFailure = ({ ageMs, told }: Recalled): GivenUp => {
  const age = String(Math.floor(ageMs / 1000));
  return {
    ...told,
    message: `${told.message} This was determined ${age} s ago, and nothing has been sent since.`,
    headers: [...told.headers, ["x-recovery-age", age]],
  };
};

/** Builds the sentence for a client. It quotes the provider's own words unless they would make the client retry. */
export const sentenceOf = ({ message, said }: GivenUp, { asksByWords }: Pick<Treatment, "asksByWords">): string =>
  said === undefined ? message : quoting(message, said, asksByWords);

/**
 * The complete response for a failure before the head. The document also has the code, unless the code is a word that makes clients retry,
 * because some of them read the whole document as the message.
 */
export const refusalOf = (
  told: GivenUp,
  protocol: Pick<WireProtocol, "givenUp">,
  treatment: Pick<Treatment, "asksByWords" | "status">,
): GivenUpRefusal => {
  const { code, headers } = told;
  const { status } = treatment;
  const named = code === undefined || isTransientText(code) ? undefined : code;
  return { status, headers, document: protocol.givenUp.document(sentenceOf(told, treatment), named, status) };
};
