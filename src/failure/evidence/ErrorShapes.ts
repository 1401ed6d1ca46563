/**
 * Recognises the error classes of Effect, the AI SDK, the OpenAI and Anthropic SDKs and the platform by name and structure.
 *
 * No class is imported, so an SDK's error is recognised in any version, even if a program contains several copies of the SDK.
 */
import type { Failure } from "../../domain/Failure.ts";
import { className, get, isObject, text } from "../thrown/CauseChain.ts";

/**
 * Evidence in the class of an error. `timeout` and `cancelled` are precise. `connection` is a wrapper that tells little, so an abort inside
 * it takes precedence. `definite` is the library's own statement. `own` is final, even if the error contains other errors. `weak` applies
 * if no error inside has a meaning.
 */
export type Shape =
  | { readonly strength: "own" | "definite" | "weak"; readonly failure: Failure }
  | { readonly strength: "cancelled"; readonly by: "caller" | "provider" }
  | { readonly strength: "timeout" | "connection" };

const definiteShape = (failure: Failure): Shape => ({ strength: "definite", failure });
const ownShape = (failure: Failure): Shape => ({ strength: "own", failure });
const damaged = definiteShape({ kind: "protocol", reason: "damaged_frame" });
/**
 * A complete response in a form that the SDK does not know. It is not retryable, because the same SDK would fail on the next response too.
 */
const misread = definiteShape({ kind: "protocol", reason: "damaged_frame", retryable: false });
/** Effect's DecodeError may wrap any error of the body, for example a broken connection or invalid bytes. */
const unread: Shape = { strength: "weak", failure: { kind: "protocol", reason: "damaged_frame" } };
const malformed = definiteShape({ kind: "rejected", reason: "invalid_request", not_processed: false });
const badCall = definiteShape({ kind: "invalid_tool_input" });
/** A complete call that does not fit the caller's tools. The stream itself is not broken. */
const misfitCall = ownShape({ kind: "invalid_tool_input", retryable: false });
const caller = ownShape({ kind: "caller_failed" });
const truncated = definiteShape({ kind: "truncated" });
const timeout: Shape = { strength: "timeout" };
const cancelled: Shape = { strength: "cancelled", by: "provider" };
/** The caller aborted its own request, by its signal or its token (law L10). */
const aborted: Shape = { strength: "cancelled", by: "caller" };
const connection: Shape = { strength: "connection" };

/** Shapes by `name`, `_tag` or class. The OpenAI and Anthropic SDKs leave `name` at `Error`. */
const byName: ReadonlyMap<string, Shape> = new Map([
  ["AbortError", cancelled], // DOMException, Node, undici, node-fetch
  ["APIUserAbortError", aborted], // OpenAI and Anthropic SDKs
  ["CanceledError", aborted], // axios
  ["RequestAbortedError", cancelled], // undici, Mistral SDK
  ["ClientAbort", cancelled],
  ["TimeoutError", timeout], // AbortSignal.timeout, ky, Effect.timeout around the attempt
  ["APIConnectionTimeoutError", timeout],
  ["RequestTimeoutError", timeout],
  ["ConnectTimeoutError", timeout],
  ["HeadersTimeoutError", timeout],
  ["BodyTimeoutError", timeout],
  ["APIConnectionError", connection],
  ["ConnectionError", connection],
  ["SocketError", connection],
  ["FetchError", connection], // node-fetch
  ["TransportError", connection], // Effect HttpClientError's reason
  ["NetworkError", connection], // DOMException
  ["ConnectionReset", connection], // Deno
  ["ConnectionAborted", connection],
  ["ConnectionRefused", connection],
  ["BrokenPipe", connection],
  ["UnexpectedEof", connection],
  ["TimedOut", timeout],
  // AI SDK
  ["AI_JSONParseError", damaged],
  ["AI_TypeValidationError", misread],
  ["AI_InvalidResponseDataError", damaged],
  ["AI_InvalidStreamPartError", damaged],
  ["AI_EmptyResponseBodyError", truncated],
  ["AI_InvalidToolInputError", badCall],
  ["AI_NoSuchToolError", badCall],
  ["AI_ToolExecutionError", caller], // a tool's own ECONNRESET is not the provider's
  ["AI_LoadAPIKeyError", definiteShape({ kind: "rejected", reason: "auth", not_processed: false })],
  ["AI_NoSuchModelError", definiteShape({ kind: "rejected", reason: "not_found", not_processed: false })],
  ["AI_InvalidPromptError", malformed],
  ["AI_InvalidArgumentError", malformed],
  ["AI_UnsupportedFunctionalityError", malformed],
]);

/**
 * Messages with which `fetch` in undici rejects a request or its redirect. Each is the whole message of the cause of `fetch failed`, and
 * the same request would be rejected again.
 */
const fetchRefusals: ReadonlyMap<string, Shape> = new Map([
  ["bad port", malformed],
  ["unknown scheme", malformed],
  ["URL scheme must be a HTTP(S) scheme", malformed],
  ["about scheme is not supported", malformed],
  ["failed to fetch the data URL", malformed],
  ["not implemented... yet...", malformed], // file:
  ["invalid method", malformed],
  ["unexpected redirect", malformed],
  ["redirect count exceeded", malformed],
  ['cross origin not allowed for request mode "cors"', malformed],
  ['request mode cannot be "same-origin"', malformed],
  ["local URLs only", malformed],
  ["blocked", malformed],
  ["proxy authentication required", definiteShape({ kind: "rejected", reason: "auth", not_processed: false })],
]);

/** Reasons of Effect's HttpClientError. StatusCodeError is read by the status of its response. */
const httpClientReasons: ReadonlyMap<string, Shape> = new Map([
  ["TransportError", connection],
  ["EncodeError", malformed],
  ["InvalidUrlError", malformed],
  ["DecodeError", unread],
  ["EmptyBodyError", truncated],
]);

/** Reasons of Effect's AiError, for errors without a more exact status in `http`. UnknownError has no meaning. */
const aiReasons: ReadonlyMap<string, Shape> = new Map([
  ["RateLimitError", definiteShape({ kind: "rate_limited" })],
  ["QuotaExhaustedError", definiteShape({ kind: "rejected", reason: "quota" })],
  ["AuthenticationError", definiteShape({ kind: "rejected", reason: "auth" })],
  ["ContentPolicyError", definiteShape({ kind: "rejected", reason: "content_policy" })],
  ["InvalidRequestError", definiteShape({ kind: "rejected", reason: "invalid_request" })],
  ["InternalProviderError", definiteShape({ kind: "server_error" })],
  ["InvalidResponseError", damaged],
  ["InvalidOutputError", damaged],
  ["StructuredOutputError", caller], // the response was complete, but does not match the caller's schema
  ["UnsupportedSchemaError", malformed],
  ["InvalidUserInputError", malformed],
  ["ToolNotFoundError", misfitCall],
  ["ToolParameterValidationError", misfitCall],
  ["InvalidToolResultError", caller],
  ["ToolResultEncodingError", caller],
  ["ToolConfigurationError", caller],
  ["ToolkitRequiredError", caller],
]);

/**
 * Recognises one object of a cause chain.
 *
 * @returns undefined if neither its class nor its structure is known
 */
export const recognise = (error: object): Shape | undefined => {
  const tag = text(error, "_tag");
  const reason = get(error, "reason");
  if (tag === "AiError" && isObject(reason)) return isMisfit(error, reason) ? caller : classifyAiReason(reason);
  if (tag === "Interrupt") return cancelled; // a reason of Effect's Cause, for an interrupt that this side did not request
  if (tag === "HttpClientError" && isObject(reason)) return httpClientReasons.get(text(reason, "_tag") ?? "");
  if (isAiReason(error)) return classifyAiReason(error);
  if (isCollectedShort(error)) return truncated;
  const refused = text(error, "message") === "fetch failed" ? text(get(error, "cause"), "message") : undefined;
  if (refused !== undefined && fetchRefusals.has(refused)) return fetchRefusals.get(refused);
  if (text(error, "name") === "HTTPParserError") return parserError(text(error, "message") ?? "");
  for (const name of [text(error, "name"), tag, className(error)]) {
    const shape = name === undefined ? undefined : byName.get(name);
    if (shape !== undefined) return shape;
  }
  return isDamagedJson(error) ? damaged : apiCall(error);
};

const classifyAiReason = (reason: object): Shape | undefined => {
  const tag = text(reason, "_tag") ?? "";
  if (tag === "NetworkError") return httpClientReasons.get(text(reason, "reason") ?? "") ?? connection;
  if (tag === "AuthenticationError" && text(reason, "kind") === "InsufficientPermissions")
    return definiteShape({ kind: "rejected", reason: "permission" });
  return aiReasons.get(tag);
};

/**
 * `effect/ai` checks the parts of a response against the caller's schemas, after its provider module has decoded them. It reports a
 * mismatch with the same reason that provider modules use for an unreadable frame. Only the error's `module` distinguishes the two.
 */
const isMisfit = (error: object, reason: object): boolean =>
  text(error, "module") === "LanguageModel" && text(reason, "_tag") === "InvalidOutputError";

const isAiReason = (error: object): boolean => get(error, "~effect/ai/AiError/Reason") !== undefined;

/**
 * True for an SDK error about a stream that ended too early. Some calls of the OpenAI and Anthropic SDKs collect a stream and report the
 * missing part in an error of the SDK's base class. The message of a subclass, for example APIError, comes from the provider.
 */
const isCollectedShort = (error: object): boolean =>
  /^(?:OpenAI|Anthropic)Error$/.test(className(error) ?? "") &&
  /^(?:request ended without sending any chunks$|stream ended without producing a |missing (?:finish_reason|role) for choice )/.test(
    text(error, "message") ?? "",
  );

/**
 * undici's parser omits llhttp's code (7.29, 8.12) and quotes its message. "Invalid EOF state" means that the connection closed within a
 * chunked body, so the bytes were not damaged. A response that is not HTTP was never a stream.
 */
const parserError = (message: string): Shape => {
  if (/\bInvalid EOF state\b/.test(message)) return definiteShape({ kind: "transport", operation: "body" });
  return /\bExpected HTTP\/|\bInvalid HTTP version\b|\bInvalid (?:response )?status\b/.test(message)
    ? definiteShape({ kind: "protocol", reason: "not_a_stream" })
    : damaged;
};

/** Classifies the AI SDK's call error. Without a status there was no response from the provider. */
const apiCall = (error: object): Shape | undefined =>
  text(error, "name") === "AI_APICallError" && get(error, "isRetryable") === true ? connection : undefined;

/**
 * True for a JSON SyntaxError, which has "JSON" in its message in all engines. It counts as a damaged frame, because attempts parse
 * provider data. Any other SyntaxError is a mistake in code around the stream, so its kind is `unknown`.
 */
const isDamagedJson = (error: object): boolean =>
  (text(error, "name") === "SyntaxError" || className(error) === "SyntaxError") &&
  /\bJSON\b/.test(text(error, "message") ?? "");
