/**
 * Classifies an error that an attempt threw, a response that is not a stream, or a stream event.
 *
 * All evidence is collected first (`ErrorEvidence`). Then the strongest evidence decides, in this order: a status, the provider's own code,
 * a transport code, the class of the error, its message. An error that none of them explains is `unknown`, and the policy asks.
 */
import { type Failure, resolve, type TransportOperation } from "../domain/Failure.ts";
import * as TransportCodes from "../domain/TransportCodes.ts";
import * as ErrorBody from "./evidence/ErrorBody.ts";
import { collect, type Evidence, type Found, type TransportFinding } from "./evidence/ErrorEvidence.ts";
import * as ErrorText from "./evidence/ErrorText.ts";
import { classifyBody, classifyStatus, codeOf, withHeaderCode } from "./ProviderFailure.ts";
import * as Http2Codes from "./tables/Http2Codes.ts";
import * as HttpStatus from "./tables/HttpStatus.ts";
import { lookupText } from "./tables/ProviderErrors.ts";
import * as RetryAfter from "./tables/RetryAfter.ts";
import { className, elements, get, isObject, type Link, text } from "./thrown/CauseChain.ts";
import { codeLabel, nameLabel } from "./thrown/ErrorLabel.ts";

/** Context that a caller knows in addition to the error. */
export interface ClassifyContext {
  /** Wall-clock time, in milliseconds since the epoch, for a Retry-After that is a date or an epoch. */
  readonly nowMs?: number;
  /** True if this process has reached the host before. The name is then known to be valid, so a failed lookup is the network's fault. */
  readonly reachedHostBefore?: boolean;
  /** The part of the request during which the error occurred. */
  readonly operation?: TransportOperation;
}

/** A response head with its body, as text or parsed JSON. */
export interface ErrorResponse {
  readonly status: number;
  readonly headers: RetryAfter.HeadersLike;
  readonly body?: unknown;
}

/**
 * Classifies any thrown value by its whole cause chain, eight causes deep. It never throws, and the result contains no text of the value.
 *
 * An abort is `cancelled` by `provider`, because the runtime checks for its own aborts before it classifies. If an SDK itself reports that
 * its caller aborted, the failure is `cancelled` by `caller`.
 *
 * @param error the value that an attempt threw or failed with
 * @param context the caller's knowledge in addition to the error
 */
export const classify = (error: unknown, context: ClassifyContext = {}): Failure => {
  const evidence = collect(error);
  const [failure, link] = findStrongest(evidence, context);
  return finish(failure, link, typeof error);
};

/**
 * Classifies a response that is not a stream: a status of 300 or more, or an error body with a 2xx status.
 *
 * @param response status, headers and as much of the body as was read
 * @param context the caller's knowledge in addition to the response
 */
export const classifyResponse = (response: ErrorResponse, context: ClassifyContext = {}): Failure => {
  const body = withHeaderCode(ErrorBody.read(response.body), response.headers);
  const named = { name: "Response", depth: 0 };
  if (HttpStatus.isError(response.status))
    return withFingerprint(classifyStatus(response.status, body, [response.headers], context.nowMs), named, body);
  if (body.form === "schema")
    return withFingerprint(classifyBody(body, [response.headers], context.nowMs), named, body);
  return response.status >= 300 && response.status < 400
    ? withFingerprint(
        { kind: "rejected", reason: "invalid_request", status: response.status, not_processed: false },
        named,
        body,
      )
    : withFingerprint({ kind: "protocol", reason: "not_a_stream", ...pageCode(response) }, named, body);
};

/**
 * Distinguishes a web page from other bodies that are not a stream. A web page comes from a proxy or a sign-in portal, even if its content
 * type says otherwise.
 */
const pageCode = ({ body, headers }: ErrorResponse): { readonly code?: string } =>
  /^\s*(?:text\/html|application\/xhtml\+xml)\b/i.test(RetryAfter.readHeader(headers, "content-type") ?? "") ||
  (typeof body === "string" && /^\s*<(?:!doctype html|html)\b/i.test(body))
    ? { code: "web_page" }
    : {};

/**
 * Classifies the error inside a stream event of any protocol.
 *
 * @param json the parsed `data` of the event
 * @returns a failure that is `in_band`; undefined if the event carries no error
 */
export const classifyEvent = (json: unknown): Failure | undefined => {
  const failure = readEventFailure(elements(json).find(isObject) ?? json);
  return failure === undefined ? undefined : { ...failure, in_band: true };
};

/**
 * Reads the evidence in the order of its strength. A status outranks every class, except a class of strength `own` that wraps it, so an
 * abort that wraps a 500 is a server error.
 */
const findStrongest = (evidence: Evidence, context: ClassifyContext): readonly [Failure, Link | undefined] => {
  const { status, body, transport } = evidence;
  const own = evidence.shapes.find(({ value }) => value.strength === "own");
  if (own?.value.strength === "own" && own.index <= (status ?? body ?? own).index) return [own.value.failure, own.link];
  const reading = withHeaderCode(body?.value ?? ErrorBody.absent, evidence.headers[0]);
  if (status !== undefined)
    return [classifyStatus(status.value, reading, evidence.headers, context.nowMs), status.link];
  if (body !== undefined && (reading.byCode !== undefined || reading.status !== undefined || evidence.providerSpoke))
    return [classifyBody(reading, evidence.headers, context.nowMs), body.link];
  const byCaller = isTimeout(evidence) ? undefined : findCallerAbort(evidence);
  if (byCaller !== undefined) return [{ kind: "cancelled", by: "caller" }, byCaller.link];
  const aborted = transport?.value.row.meaning === "cancelled";
  if (transport !== undefined && !(aborted && isTimeout(evidence)))
    return [classifyTransport(transport.value, context), transport.link];
  return classifyByShape(evidence, context) ?? [{ kind: "unknown" }, evidence.links[0]];
};

/**
 * True for a timeout. Node's AbortError keeps the signal's reason as its cause, so an `AbortSignal.timeout` is not mistaken for a cancel.
 */
const isTimeout = (evidence: Evidence): boolean => evidence.shapes.some(({ value }) => value.strength === "timeout");

/** Finds an SDK's own report that its caller aborted the request. */
const findCallerAbort = (evidence: Evidence) =>
  evidence.shapes.find(({ value }) => value.strength === "cancelled" && value.by === "caller");

/** Reads classes and messages. A bare wrapper (`APIConnectionError`) tells less than any message inside it. */
const classifyByShape = (evidence: Evidence, context: ClassifyContext): readonly [Failure, Link] | undefined => {
  const shape = (strength: string) => evidence.shapes.find(({ value }) => value.strength === strength);
  const timeout = shape("timeout");
  if (timeout !== undefined) return [transportFailure({ meaning: "retry" }, context), timeout.link];
  const cancelled = shape("cancelled");
  if (cancelled !== undefined) return [{ kind: "cancelled", by: "provider" }, cancelled.link];
  const definite = shape("definite");
  if (definite?.value.strength === "definite") return [withWait(definite.value.failure, evidence), definite.link];
  for (const message of evidence.messages) {
    const failure = classifyText(message, context);
    if (failure !== undefined) return [failure, message.link];
  }
  const weak = shape("weak");
  if (weak?.value.strength === "weak") return [weak.value.failure, weak.link];
  const connection = shape("connection");
  return connection === undefined ? undefined : [transportFailure({ meaning: "retry" }, context), connection.link];
};

const classifyTransport = ({ row, code, http2 }: TransportFinding, context: ClassifyContext): Failure => {
  const failure = transportFailure(row, context, code);
  return http2 === undefined || failure.kind !== "transport" ? failure : { ...failure, ...http2 };
};

const transportFailure = (row: TransportCodes.TransportRow, context: ClassifyContext, code?: string): Failure => {
  const passed = codeLabel(code);
  const coded = passed === undefined ? {} : { code: passed };
  const operation = context.operation ?? row.operation;
  const placed = operation === undefined ? {} : { operation };
  switch (row.meaning) {
    case "retry":
      return { kind: "transport", ...coded, ...placed };
    case "never":
      return { kind: "transport", retryable: false, ...coded, ...placed };
    case "dns":
      return { kind: "transport", retryable: context.reachedHostBefore === true, ...coded, ...placed };
    case "cancelled":
      return { kind: "cancelled", by: "provider", ...coded };
    case "damaged":
      return { kind: "protocol", reason: "damaged_frame", ...coded };
    case "not_a_stream":
      return { kind: "protocol", reason: "not_a_stream", ...coded };
    case "oversize":
      return { kind: "protocol", reason: "oversize", ...coded };
    case "malformed":
      return { kind: "rejected", reason: "invalid_request", not_processed: false, ...coded };
  }
};

/**
 * Reads a message, which is weak evidence. A status in it determines the kind, but does not prove that the provider rejected the request.
 */
const classifyText = ({ value, link }: Found<string>, context: ClassifyContext): Failure | undefined => {
  const owner = typeof link.value === "string" ? undefined : className(link.value);
  if (!ErrorText.isProgramming(owner)) {
    const status = ErrorText.findStatus(value);
    const body = ErrorBody.read(value);
    if (status !== undefined) return classifyStatus(status, { ...body, form: "text" }, [], context.nowMs);
    if (body.form === "schema") return { ...classifyBody(body, [], context.nowMs), not_processed: false };
    const provider = lookupText(value, undefined);
    if (provider !== undefined) return { ...provider.failure, not_processed: false };
    const code = TransportCodes.findInText(value);
    const row = code === undefined ? undefined : TransportCodes.lookup(code);
    if (row !== undefined) return transportFailure(row, context, code);
    const http2 = Http2Codes.readText(value);
    if (http2 !== undefined) return { ...transportFailure({ meaning: "retry" }, context), kind: "transport", ...http2 };
  }
  const row = ErrorText.read(value, owner);
  return row === undefined ? undefined : transportFailure(row, context);
};

const readEventFailure = (event: unknown): Failure | undefined => {
  if (!isObject(event)) return undefined;
  const type = text(event, "type");
  const named = { name: "StreamEvent", depth: 0 };
  const failureOf = (body: ErrorBody.BodyReading) => withFingerprint(classifyBody(body, []), named, body);
  if (type === "response.failed")
    return failureOf(ErrorBody.read({ error: get(get(event, "response"), "error") ?? {} }));
  const announced = type === "error" || text(event, "object") === "error";
  if (announced || hasError(event)) {
    const body = ErrorBody.read(event);
    if (announced || body.carries) return failureOf(body);
  }
  for (const choice of [...elements(get(event, "choices")), ...elements(get(event, "candidates"))]) {
    const body = finishReading(choice);
    if (body !== undefined) return failureOf(body);
  }
  return undefined;
};

const hasError = (event: object): boolean => {
  const error = get(event, "error");
  return (
    isObject(error) ||
    (typeof error === "string" && error !== "") ||
    ErrorBody.findExceptionKey(event) !== undefined ||
    ErrorBody.isBare(event)
  );
};

/** Reads a choice that ends in an error: the `error` of OpenRouter and Mistral, or the finish reasons of Zhipu, DeepSeek and Gemini. */
const finishReading = (choice: unknown): ErrorBody.BodyReading | undefined => {
  if (isObject(get(choice, "error"))) {
    const body = ErrorBody.read({ error: get(choice, "error") });
    if (body.carries) return body;
  }
  const addFingerprint = text(choice, "finish_reason") ?? text(choice, "finishReason");
  if (addFingerprint === undefined) return undefined;
  const native = text(choice, "native_finish_reason");
  if (addFingerprint === "error") return ErrorBody.read({ error: { code: native ?? "error", type: "server_error" } });
  return finishErrors.has(addFingerprint) ? ErrorBody.read({ error: { code: addFingerprint } }) : undefined;
};

const finishErrors: ReadonlySet<string> = new Set([
  "network_error",
  "insufficient_system_resource",
  "MALFORMED_FUNCTION_CALL",
  "UNEXPECTED_TOOL_CALL",
]);

/** Adds the wait that a library has already parsed (`retryAfter` of Effect's AiError, a Duration). */
const withWait = (failure: Failure, evidence: Evidence): Failure => {
  const wait = evidence.links.map((link) => RetryAfter.fromError(link.value)).find((found) => found !== undefined);
  return wait === undefined ? failure : { ...failure, retry_after_ms: wait };
};

type Named = { readonly name: string; readonly depth: number };

const withFingerprint = (failure: Failure, named: Named, body: ErrorBody.BodyReading): Failure => {
  const code = codeOf(body).code ?? failure.code;
  return withFlags({ ...failure, fingerprint: { ...named, ...(code === undefined ? {} : { code }) } });
};

const finish = (failure: Failure, link: Link | undefined, fallback: string): Failure => {
  const value = link?.value;
  const code = failure.code ?? (isObject(value) ? codeLabel(get(value, "code")) : undefined);
  const name = isObject(value)
    ? nameLabel(className(value), [text(value, "name"), text(value, "_tag")], "Object")
    : typeof value === "string"
      ? "String"
      : fallback;
  return withFlags({
    ...failure,
    fingerprint: { name, depth: link?.depth ?? 0, ...(code === undefined ? {} : { code }) },
  });
};

/** Fills in the two flags that a decision reads, so that readers of the failure need no defaults. */
const withFlags = (failure: Failure): Failure => {
  const { retryable, not_processed } = resolve(failure);
  return { ...failure, retryable, not_processed };
};
