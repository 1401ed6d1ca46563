/**
 * Extracts from a provider's final refusal what a person needs to know: its message, its code, and the response itself.
 *
 * The provider may echo a credential, so all text is redacted before it is sent to the client.
 */
import type { RelayInterrupted } from "../../adapters/relay/RelayInterrupted.ts";
import type { ProviderWords, ToldRefusal } from "../../adapters/relay/RelayRepeats.ts";
import {
  fieldOf,
  isNamed,
  type RelayRefusal,
  type RelayRequest,
  readAddress,
} from "../../adapters/relay/RelayTransport.ts";
import { textOf } from "../../adapters/relay/WholeBody.ts";
import * as Json from "../../domain/Json.ts";
import * as ErrorBody from "../../failure/evidence/ErrorBody.ts";
import * as EventStream from "../../provider/stream/EventStream.ts";
import { pageInPlace } from "./GivenUpWords.ts";
import { isTransientText, withoutPassing } from "./PassingWords.ts";

/** Maximum length of a quoted message, in UTF-16 code units. */
export const quoteCharactersMax = 400;

/**
 * Response headers that are not forwarded: those that may contain a credential (`dropped`), and those that describe other bytes or that the
 * gateway sets itself (`replaced`).
 */
const dropped = ["authorization", "set-cookie", "set-cookie2", "x-api-key", "api-key", "x-goog-api-key"];
const replaced = ["content-length", "content-encoding", "x-should-retry"];

/**
 * Extracts the provider's message and code from the final refusal of a run.
 *
 * @param request the client's request, whose credentials are redacted
 * @returns undefined if there was no response, or if it cannot be parsed
 */
export const providerWordsOf = (
  error: RelayInterrupted,
  request: RelayRequest | undefined,
): ProviderWords | undefined => {
  const bytes = error.response?.body ?? eventOf(error.cause);
  if (bytes === undefined) return undefined;
  const credentials = request === undefined ? [] : credentialsOf(request);
  const text = textOf(bytes);
  // A web page with a success status comes from a proxy or a login page, not from the provider.
  if (error.response !== undefined && isPage(error.response.head, text)) return undefined;
  const { code, message } = wordsOf(text);
  const quoted = message === undefined ? undefined : toQuote(redact(message, credentials));
  const response = error.response === undefined ? undefined : refusalOf(error.response, text, credentials);
  return { message: quoted, code, response };
};

/** Maximum length of a quoted title, in UTF-16 code units. */
export const titleCharactersMax = 80;

/** A web page that arrived with a success status. */
export interface WebPage {
  /** A clause that describes the page and names its content type. */
  readonly clause: string;
  /** The page's title, without words that make clients retry. */
  readonly title: string | undefined;
}

/**
 * Recognises a web page with a success status. Returns undefined for any other response.
 *
 * @param request the client's request, whose credentials are redacted
 */
export const pageOf = (response: RelayRefusal | undefined, request: RelayRequest | undefined): WebPage | undefined => {
  if (response === undefined) return undefined;
  const text = textOf(response.body);
  if (!isPage(response.head, text)) return undefined;
  const type = /^\s*([\w.+-]{1,32}\/[\w.+-]{1,32})/.exec(fieldOf(response.head.headers, "content-type") ?? "")?.[1];
  const typed = type === undefined || isTransientText(type) ? "" : ` (${type.toLowerCase()})`;
  const [, inner = ""] = /<title[^>]{0,256}>([^<]{1,1024})/i.exec(text) ?? [];
  const line = toQuote(redact(inner, request === undefined ? [] : credentialsOf(request)));
  const title = line === undefined ? undefined : withoutPassing(line.slice(0, titleCharactersMax).toWellFormed());
  return { clause: `a web page${typed} ${pageInPlace}`, title };
};

const isPage = ({ headers, status }: RelayRefusal["head"], text: string): boolean =>
  status >= 200 &&
  status <= 299 &&
  (/^\s*(?:text\/html|application\/xhtml\+xml)\b/i.test(fieldOf(headers, "content-type") ?? "") ||
    /^\s*<(?:!doctype html|html)\b/i.test(text));

/** Returns the bytes of an error event that ended a run: its payload, if it is a binary message of Amazon's. */
const eventOf = (cause: unknown): ReadonlyArray<Uint8Array<ArrayBuffer>> | undefined => {
  const bytes = Json.record(cause)?.bytes;
  if (!(bytes instanceof Uint8Array)) return undefined;
  // A relayed event owns its bytes, which are never shared memory, so the cast is safe.
  const event = bytes as Uint8Array<ArrayBuffer>;
  const payload = EventStream.read(event)?.payload;
  return [payload === undefined ? event : new Uint8Array(payload)];
};

const wordsOf = (text: string): { readonly message: string | undefined; readonly code: string | undefined } => {
  const json = Json.record(ErrorBody.parse(text));
  const failed = Json.record(json?.response)?.error; // the Responses event `response.failed`
  const { codes, form, messages } = ErrorBody.read(failed === undefined ? (json ?? text) : { error: failed });
  const first = messages[0];
  // A web page is not quoted as a message. A router embeds its upstream's error as text in its own error, so the embedded error is
  // preferred.
  const isMarkup = form === "text" && first?.trimStart().startsWith("<") === true;
  const inner = messages.map((it) => ErrorBody.parse(it)).find((it) => it !== undefined);
  return {
    message: isMarkup ? undefined : inner === undefined ? first : (ErrorBody.read(inner).messages[0] ?? first),
    code: codes.find((code) => /^[A-Za-z0-9][\w.-]{2,47}$/.test(code) && redact(code, []) === code),
  };
};

/** Formats text as one line of limited length. Returns undefined if the text contains no letter or digit. */
const toQuote = (message: string): string | undefined => {
  const line = message
    .replaceAll(/[\p{Cc}\p{Cf}\s]+/gu, " ")
    .replaceAll('"', "'")
    .trim();
  if (!/[\p{L}\p{N}]/u.test(line)) return undefined;
  return line.length > quoteCharactersMax ? `${line.slice(0, quoteCharactersMax - 1).toWellFormed()}…` : line;
};

const refusalOf = ({ head }: RelayRefusal, text: string, credentials: ReadonlyArray<string>): ToldRefusal => ({
  status: head.status,
  headers: head.headers
    .filter(([given]) => ![...dropped, ...replaced].some((name) => isNamed(given, name)))
    .map(([name, value]) => [name, redact(value, credentials, "exact")] as const),
  body: redact(text, credentials),
});

const redacted = "[redacted]";

/**
 * Minimum length of a credential that is redacted wherever it occurs, in UTF-16 code units. A shorter credential might equal an ordinary
 * word.
 */
const exactCharactersMin = 6;

/** Patterns of credentials, including those of other services. Ids of requests and responses, recognised by their prefixes, are kept. */
const patterns: ReadonlyArray<RegExp> = [
  // Keys by their prefix: OpenAI, Anthropic, xAI, Groq, Hugging Face, GitHub, Slack, Google, AWS, JSON web tokens.
  /\b(?:sk|pk|rk|xai|gsk|hf|gh[oprsu]|xox[abprs])[-_][\w.*-]{6,}/g,
  /\b(?:AIza|AKIA|ASIA|eyJ)[\w.*-]{12,}/g,
  // A run of letters and digits that is too long for a name.
  /\b(?!(?:req|request|msg|resp|chatcmpl|gen)_)(?=[A-Za-z_]*\d)(?=[\d_]*[A-Za-z])[A-Za-z0-9_]{24,}\b/g,
  /(?<=\bbearer\s)[\w.~+/*-]{6,}=*/gi,
  /(?<=\b(?:api[-_ ]?key|access[-_ ]?token|secret|password)["']?\s{0,2}[:=]\s{0,2}["']?)(?=[^\s"'&,;\\]{0,64}\d)[^\s"'&,;\\{}[\]]{8,}/gi,
];

const credentialHeaders = ["authorization", "x-api-key", "api-key", "x-goog-api-key", "cookie"];

/** Returns the credentials of a request, in the form in which a response might echo them. */
export const credentialsOf = ({ headers, url }: RelayRequest): ReadonlyArray<string> =>
  [...credentialHeaders.map((name) => fieldOf(headers, name)), readAddress(url)?.searchParams.get("key") ?? undefined]
    .map((value) => value?.replace(/^\s*bearer\s+/i, "").trim())
    .filter((value): value is string => value !== undefined && value.length >= exactCharactersMin);

/**
 * Redacts credentials in text.
 *
 * @param credentials the credentials of the request
 * @param kinds `exact`: redact only these credentials; `any`: also text that looks like a credential
 */
export const redact = (text: string, credentials: ReadonlyArray<string>, kinds: "exact" | "any" = "any"): string => {
  const known = credentials.reduce((rest, credential) => rest.replaceAll(credential, redacted), text);
  return kinds === "exact" ? known : patterns.reduce((rest, pattern) => rest.replaceAll(pattern, redacted), known);
};
