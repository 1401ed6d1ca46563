/**
 * Reads the error object that a provider put into a response body or a stream event, in any dialect.
 */

import { isError } from "../tables/HttpStatus.ts";
import { type CodeMeaning, lookup, lookupText } from "../tables/ProviderErrors.ts";
import * as RetryAfter from "../tables/RetryAfter.ts";
import { elements, get, isList, isObject, messageCharactersMax, number, text } from "../thrown/CauseChain.ts";

/** Maximum length of a body that is parsed, in UTF-16 code units. A longer one is not an error body. */
export const bodyCharactersMax = 262_144;

/** Maximum depth to which `error` inside `error` is read (an SDK keeps the whole body under `error`). */
const nestingMax = 4;

/**
 * Form of an error body. `schema`: a provider's error object with a code; `json`: other JSON; `text`: HTML or prose; `absent`: no body was
 * seen.
 */
export type BodyForm = "schema" | "json" | "text" | "absent";

/** Content of an error body, read once for all dialects. */
export interface BodyReading {
  readonly form: BodyForm;
  /** True if it contains an error: a code, a status or a message that is not empty. */
  readonly carries: boolean;
  /** Codes as the provider spelled them, the most specific first. They are untrusted, and are only passed on as labels. */
  readonly codes: ReadonlyArray<string>;
  /** HTTP status that the body itself names. */
  readonly status?: number;
  readonly byCode?: CodeMeaning;
  /** The code from which `byCode` comes. */
  readonly code?: string;
  readonly messages: ReadonlyArray<string>;
  readonly retryAfterMs?: number;
  /** Headers of the upstream's response, which OpenRouter passes on in the body. */
  readonly headers?: object;
}

/** Reading of a missing or empty body. */
export const absent: BodyReading = { form: "absent", carries: false, codes: [], messages: [] };

/**
 * Reads a body.
 *
 * @param body a string, parsed JSON, or undefined
 */
export const read = (body: unknown): BodyReading => {
  if (typeof body === "string") {
    const json = parse(body);
    if (json !== undefined) return read(json);
    return body.trim() === "" ? absent : { ...absent, form: "text", messages: [body.slice(0, messageCharactersMax)] };
  }
  if (!isObject(body)) return absent;
  const first = elements(body).find(isObject); // Gemini without SSE responds with an array of chunks
  const root = first ?? body;
  const holders = errorObjects(root);
  return holders.length === 0 ? { ...absent, form: "json" } : readHolders(root, holders);
};

/** Parses JSON, the `data:` line of an event stream, or JSON after a status (`429 {...}`, as in SDK messages). */
export const parse = (body: string): unknown => {
  if (body.length > bodyCharactersMax) return undefined;
  const trimmed = body.trim();
  const json = /^[{[]/.test(trimmed)
    ? trimmed
    : (/^data: ?(\{.*\})$/m.exec(trimmed)?.[1] ?? /^[45]\d\d (\{.*\})$/s.exec(trimmed)?.[1]);
  if (json === undefined) return undefined;
  try {
    const parsed: unknown = JSON.parse(json);
    return isObject(parsed) ? parsed : undefined;
  } catch {
    return undefined; // not JSON after all, so the string itself is read
  }
};

/** Returns the objects that describe the error, outermost first; none if the JSON is not an error. */
const errorObjects = (root: object): ReadonlyArray<object> => {
  const refused = baseRespError(root);
  if (refused !== undefined) return [refused];
  const holders: Array<object> = [];
  let holder: object = root;
  for (let depth = 0; depth < nestingMax; depth += 1) {
    const inner = get(holder, "error") ?? elements(get(holder, "errors"))[0];
    if (!isObject(inner)) break;
    holders.push(inner);
    holder = inner;
  }
  if (holders.length > 0) return isErrorRoot(root) ? [root, ...holders] : holders;
  const named = findExceptionKey(root);
  if (named !== undefined) return [root, get(root, named)].filter(isObject);
  return isErrorRoot(root) || typeof get(root, "error") === "string" ? [root] : [];
};

/**
 * Returns true if a stream event is an error although it has no `error` field. Such errors are MiniMax's `base_resp`, FastAPI's `detail`,
 * z.ai's `success: false`, a list of `errors`, or a code and a message in an event without any field of a protocol.
 */
export const isBare = (event: object): boolean => {
  if (baseRespError(event) !== undefined) return true;
  if (["choices", "candidates", "type", "object", "usage", "response"].some((field) => isPresent(get(event, field))))
    return false;
  if (get(event, "success") === false || elements(get(event, "errors")).some(isObject)) return true;
  const detail = get(event, "detail");
  if (text(event, "detail") !== undefined || elements(detail).some(isObject)) return true;
  const status = statusesOf(event).some(isError);
  return status && messagesOf(event).length > 0;
};

const isPresent = (value: unknown): boolean =>
  value !== undefined && value !== null && (!isList(value) || elements(value).length > 0);

/** Returns the error object of MiniMax, which responds with a 200 and reports the error in `base_resp`; 0 is success. */
const baseRespError = (root: object): object | undefined => {
  const response = get(root, "base_resp");
  const code = number(response, "status_code") ?? 0;
  return code === 0 ? undefined : { code: `base_resp_${code}`, message: text(response, "status_msg") };
};

/** True if the root itself is an error object, as with xAI, Mistral, Cohere, Bedrock, FastAPI, and the `error` event of Responses. */
const isErrorRoot = (root: object): boolean => {
  if (text(root, "type") === "error" || text(root, "object") === "error") return true;
  if (text(root, "__type") !== undefined || text(root, "error_type") !== undefined) return true;
  if (get(root, "detail") !== undefined && get(root, "choices") === undefined) return true;
  if (isSuccess(root)) return false;
  const said = text(root, "message") ?? text(root, "error") ?? text(root, "Message") ?? text(root, "msg");
  return said !== undefined && get(root, "choices") === undefined && get(root, "delta") === undefined;
};

/** True for a success. Servers that wrap every response put its content into `data`, with a code of 0 or 200 or a success flag. */
const isSuccess = (root: object): boolean => {
  const code = get(root, "code");
  if (!isPresent(get(root, "data"))) return false;
  return get(root, "success") === true || code === 0 || code === 200 || code === "0" || code === "200";
};

const readHolders = (root: object, holders: ReadonlyArray<object>): BodyReading => {
  const codes = holders.flatMap(codesOf);
  const named = findExceptionKey(root);
  if (named !== undefined) codes.push(named);
  const numbers = holders.flatMap(statusesOf);
  const messages = holders.flatMap(messagesOf);
  const spoken = findHighestRanked(codes);
  const policy = moderationMeaning(holders);
  const perDay = holders.some(isPerDay);
  const status = numbers.find(isError);
  const retryAfterMs = holders.map(RetryAfter.fromBody).find((wait) => wait !== undefined);
  const headers = holders.map((holder) => get(get(holder, "metadata"), "headers")).find(isObject);
  const said = codes.length > 0 || numbers.length > 0;
  const inErrorField = isObject(get(root, "error")) && messages.length > 0;
  const byCode = perDay ? lookup("insufficient_quota") : (policy ?? spoken?.meaning);
  return {
    form: said || inErrorField ? "schema" : "json",
    carries: said || messages.length > 0,
    codes,
    messages,
    ...(status === undefined ? {} : { status }),
    ...(byCode === undefined ? {} : { byCode }),
    ...(spoken === undefined ? {} : { code: spoken.code }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(headers === undefined ? {} : { headers }),
  };
};

const codeFields = ["code", "type", "status", "error_type", "__type", "errorCode", "Code"] as const;

const codesOf = (holder: object): ReadonlyArray<string> => {
  const own = codeFields.map((field) => text(holder, field));
  const inner = [get(holder, "innererror"), get(holder, "inner_error")].map((error) => text(error, "code")); // Azure
  const details = elements(get(holder, "details")).map((detail) => text(detail, "reason")); // google.rpc ErrorInfo
  const metadata = text(get(holder, "metadata"), "error_type"); // OpenRouter
  return [...own, numericCode(holder), ...inner, ...details, metadata].filter(
    (code): code is string => code !== undefined && code !== "error" && code.length <= 128,
  );
};

/** Reads a numeric code, which Zhipu and MiniMax send. Numbers too small for such a code are HTTP statuses. */
const numericCode = (holder: object): string | undefined => {
  const code = number(holder, "code");
  return code !== undefined && Number.isInteger(code) && code >= 1_000 && code <= 9_999 ? String(code) : undefined;
};

const statusesOf = (holder: object): ReadonlyArray<number> =>
  ["status", "status_code", "statusCode", "http_code", "code"]
    .map((field) => number(holder, field) ?? parseStatus(text(holder, field)))
    .filter((status): status is number => status !== undefined && status !== 0);

const parseStatus = (value: string | undefined): number | undefined =>
  value !== undefined && /^[45]\d\d$/.test(value) ? Number(value) : undefined;

/** Lists the messages of an error. `raw` is the upstream's own response, which OpenRouter passes on as a string. */
const messagesOf = (holder: object): ReadonlyArray<string> =>
  [
    text(holder, "message"),
    text(holder, "error"),
    text(holder, "detail"),
    text(holder, "Message"),
    text(holder, "msg"),
    text(get(holder, "metadata"), "raw"),
  ].filter((message): message is string => message !== undefined);

/** Returns the code of the highest rank; the first one if several have it. */
const findHighestRanked = (codes: ReadonlyArray<string>): { code: string; meaning: CodeMeaning } | undefined => {
  let best: { code: string; meaning: CodeMeaning } | undefined;
  for (const code of codes) {
    const meaning = lookup(code);
    if (meaning !== undefined && (best === undefined || meaning.rank > best.meaning.rank)) best = { code, meaning };
  }
  return best;
};

/** True for a daily limit (google.rpc QuotaFailure), which does not end within a minute, even if RetryInfo says so. */
const isPerDay = (holder: object): boolean =>
  elements(get(holder, "details")).some((detail) =>
    elements(get(detail, "violations")).some((violation) => /PerDay/.test(text(violation, "quotaId") ?? "")),
  );

/** Returns the meaning of a 403 from OpenRouter's moderation, which lists its reasons. */
const moderationMeaning = (holders: ReadonlyArray<object>): CodeMeaning | undefined =>
  holders.some((holder) => elements(get(get(holder, "metadata"), "reasons")).length > 0)
    ? lookup("content_policy_violation")
    : undefined;

/** Finds the exception in Bedrock's event stream, where it is the key: `{ throttlingException: { message } }`. */
export const findExceptionKey = (root: object): string | undefined => {
  try {
    const keys = Object.keys(root);
    return keys.length > 4 ? undefined : keys.find((key) => /^[a-z][A-Za-z]{2,60}Exception$/.test(key));
  } catch {
    return undefined; // a proxy that hides its keys
  }
};

/** Returns the meaning of the messages, for a body without a specific code. */
export const findByText = (reading: BodyReading, status: number | undefined): CodeMeaning | undefined => {
  for (const message of reading.messages) {
    const found = lookupText(message, status);
    if (found !== undefined) return found;
  }
  return undefined;
};
