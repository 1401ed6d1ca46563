/**
 * Says of a run that was given up what its client is told: in words that it does not take for a fault that passes, and with the
 * provider's own where it refused the run.
 */
import type { RelayInterrupted } from "../../adapters/relay/RelayInterrupted.ts";
import type { ProviderWords, Recalled, ToldClient } from "../../adapters/relay/RelayRepeats.ts";
import type { RelayHeaders, RelayRequest } from "../../adapters/relay/RelayTransport.ts";
import type { WireProtocol } from "../../provider/Protocols.ts";
import { isOutOfDescriptors } from "../limits/Descriptors.ts";
import type { Treatment } from "./ClientRow.ts";
import { codeOf, messageOf, quoting } from "./GivenUpWords.ts";
import { saysPassing } from "./PassingWords.ts";
import { pageOf, saidBy, type WebPage } from "./ProviderWords.ts";

/**
 * What the client of a run that was given up is told: one plain sentence for a person, what broke (such as `ECONNREFUSED`), and
 * the headers `x-should-retry: false`, `x-recovery-run`, `x-recovery-attempts`, `x-recovery-rule` and `x-recovery-code`.
 */
export type GivenUp = ToldClient;

/** A response of its own for a run that was given up before its head. */
export interface GivenUpRefusal {
  readonly status: Treatment["status"];
  readonly headers: RelayHeaders;
  /** The body, as JSON of the protocol. */
  readonly document: object;
}

/**
 * Whether the gateway gave a run up, so that its client must not ask again: what was retried, and what broke without a response
 * of the provider. A provider's refusal that was not retried passes unchanged, and a gateway that closes, cannot record or cannot
 * open a connection says so by a 503.
 *
 * @param repeated the request repeats one whose run has retried, so that nothing of its budget may be left
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

/** How a shown response broke. */
export interface ShownBreak {
  /** The request repeats one that broke before. */
  readonly repeated: boolean;
  /** The provider said it, by an error event of its own or in the stream's place. */
  readonly said: boolean;
}

/**
 * Whether a shown response that broke is left to its client, by a broken connection: the client mends it by asking again, as it
 * does without a gateway, and one that is told would give its turn up. It is left so once; its repeat is told.
 */
export const isLeftToClient = (
  { mends, onBreak }: Pick<Treatment, "mends" | "onBreak">,
  { repeated, said }: ShownBreak,
): boolean => onBreak === "tell" && !repeated && (mends === "errors" || (mends === "cuts" && !said));

/**
 * What the client of a run that was given up is told.
 *
 * @param request the client's: what it carries as credentials is redacted from the provider's words
 */
export const givenUp = (error: RelayInterrupted, request?: RelayRequest): GivenUp => {
  const code = codeOf(error.failure);
  const page = pageOf(error.response, request);
  const said = error.rule === "user_cancelled" ? undefined : (titleOf(page) ?? saidBy(error, request));
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

/** What a repeat of that request is told from memory, with its age in whole seconds. */
export const recalled = ({ ageMs, told }: Recalled): GivenUp => {
  const age = String(Math.floor(ageMs / 1000));
  return {
    ...told,
    message: `${told.message} This was found ${age} s ago, and nothing was sent since.`,
    headers: [...told.headers, ["x-recovery-age", age]],
  };
};

/** The sentence that a client is told: with the provider's own words, as far as they do not make it ask again. */
export const sentenceOf = ({ message, said }: GivenUp, { asksByWords }: Pick<Treatment, "asksByWords">): string =>
  said === undefined ? message : quoting(message, said, asksByWords);

/**
 * The response of its own that a client is told it with before a head. The code stands in the document too, but where it is a
 * word by which clients ask again: some of them read all of a document as the message.
 */
export const refusalOf = (
  told: GivenUp,
  protocol: Pick<WireProtocol, "givenUp">,
  treatment: Pick<Treatment, "asksByWords" | "status">,
): GivenUpRefusal => {
  const { code, headers } = told;
  const { status } = treatment;
  const named = code === undefined || saysPassing(code) ? undefined : code;
  return { status, headers, document: protocol.givenUp.document(sentenceOf(told, treatment), named, status) };
};
