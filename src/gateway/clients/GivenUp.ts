/**
 * Describes the final failure of a run to its client. The description contains no words that make the client retry. It quotes the provider
 * if the provider refused the run.
 */
import type { RelayInterrupted } from "../../adapters/relay/RelayInterrupted.ts";
import type { ProviderWords, Recalled, ToldClient } from "../../adapters/relay/RelayRepeats.ts";
import type { RelayHeaders, RelayRequest } from "../../adapters/relay/RelayTransport.ts";
import type { WireProtocol } from "../../provider/Protocols.ts";
import { isOutOfDescriptors } from "../limits/Descriptors.ts";
import type { Treatment } from "./ClientRow.ts";
import { codeOf, messageOf, withQuote } from "./GivenUpWords.ts";
import { isTransientText } from "./PassingWords.ts";
import { pageOf, providerWordsOf, type WebPage } from "./ProviderWords.ts";

/**
 * The failure in the form that its client receives: a plain sentence for a person, a code (for example `ECONNREFUSED`), and the headers
 * `x-should-retry: false`, `x-recovery-run`, `x-recovery-attempts`, `x-recovery-rule` and `x-recovery-code`.
 */
export type GivenUp = ToldClient;

/** The gateway's response if a run failed before its head and cannot be recovered. */
export interface GivenUpRefusal {
  readonly status: Treatment["status"];
  readonly headers: RelayHeaders;
  /** The body, as a JSON document of the protocol. */
  readonly document: object;
}

/**
 * True if the client must not retry, because the gateway has stopped trying: the run was retried, or it failed without a response of the
 * provider. A provider's refusal that was not retried is forwarded unchanged. A gateway that shuts down, cannot record or has no free file
 * descriptor answers 503 instead.
 *
 * @param repeated true if the request repeats one whose run was retried, so that its budget may already be spent
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

/** Facts about the break of a shown response. */
export interface ShownBreak {
  /** True if the request repeats one whose response broke. */
  readonly repeated: boolean;
  /** True if the provider reported the failure itself, by an error event or by another response instead of the stream. */
  readonly said: boolean;
}

/**
 * True if the gateway breaks the connection instead of sending an error event. The client then retries, as it does without a gateway; an
 * error event would end its turn. If the response to the retry breaks too, the client gets the error event.
 */
export const isLeftToClient = (
  { mends, onBreak }: Pick<Treatment, "mends" | "onBreak">,
  { repeated, said }: ShownBreak,
): boolean => onBreak === "tell" && !repeated && (mends === "errors" || (mends === "cuts" && !said));

/**
 * Describes a run that failed and cannot be recovered.
 *
 * @param request the client's request, whose credentials are redacted from the provider's message
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

/** Creates the response to a repeat of a failed request: the remembered failure and its age in whole seconds. */
export const recallFailure = ({ ageMs, told }: Recalled): GivenUp => {
  const age = String(Math.floor(ageMs / 1000));
  return {
    ...told,
    message: `${told.message} This was determined ${age} s ago, and nothing has been sent since.`,
    headers: [...told.headers, ["x-recovery-age", age]],
  };
};

/** Creates the sentence for a client. It quotes the provider unless the quotation would make the client retry. */
export const sentenceOf = ({ message, said }: GivenUp, { asksByWords }: Pick<Treatment, "asksByWords">): string =>
  said === undefined ? message : withQuote(message, said, asksByWords);

/**
 * Creates the complete response for a failure before the head. The document contains the code only if the code does not look transient,
 * because some clients read the whole document as the message.
 */
export const refusalOf = (
  failure: GivenUp,
  protocol: Pick<WireProtocol, "givenUp">,
  treatment: Pick<Treatment, "asksByWords" | "status">,
): GivenUpRefusal => {
  const { code, headers } = failure;
  const { status } = treatment;
  const named = code === undefined || isTransientText(code) ? undefined : code;
  return { status, headers, document: protocol.givenUp.document(sentenceOf(failure, treatment), named, status) };
};
