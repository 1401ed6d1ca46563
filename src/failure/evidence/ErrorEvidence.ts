/**
 * Collects the evidence of an unknown error from every object of its cause chain, before the classifier decides.
 */
import type { Http2End } from "../../domain/Http2Errors.ts";
import { lookup, operationOf, type TransportRow } from "../../domain/TransportCodes.ts";
import * as Http2Codes from "../tables/Http2Codes.ts";
import { isError } from "../tables/HttpStatus.ts";
import { className, get, isInstance, isObject, type Link, listLinks, number, text } from "../thrown/CauseChain.ts";
import * as ErrorBody from "./ErrorBody.ts";
import { recognise, type Shape } from "./ErrorShapes.ts";

/** A finding, and the object of the cause chain that it was read from. */
export interface Found<A> {
  readonly value: A;
  readonly link: Link;
  /** Position in the chain; a lower one is closer to the thrown error. */
  readonly index: number;
}

/** Evidence about the connection in one object of the chain: its code, or the end of an HTTP/2 stream. */
export interface TransportFinding {
  readonly row: TransportRow;
  readonly code?: string;
  readonly http2?: Http2End;
}

/** Everything that a cause chain proves. `FailureClassifier` reads it in its order of precedence. */
export interface Evidence {
  readonly links: ReadonlyArray<Link>;
  readonly status?: Found<number>;
  readonly body?: Found<ErrorBody.BodyReading>;
  /** True if an SDK or a stream presents a body as the provider's error. Even an unknown code is then the provider's. */
  readonly providerSpoke: boolean;
  readonly transport?: Found<TransportFinding>;
  readonly shapes: ReadonlyArray<Found<Shape>>;
  /** Objects with response headers, outermost first. */
  readonly headers: ReadonlyArray<unknown>;
  readonly messages: ReadonlyArray<Found<string>>;
}

/** Reads a whole cause chain. */
export const collect = (error: unknown): Evidence => {
  const links = listLinks(error);
  const found = links.map((link, index) => ({ link, index }));
  const status = findFirst(found, (link) => (typeof link.value === "string" ? undefined : statusOf(link.value)));
  const body = pickBody(findAll(found, bodyOf));
  const transport = pickTransport(
    findAll(found, (link) => (isObject(link.value) ? transportOf(link.value) : undefined)),
  );
  return {
    links,
    ...(status === undefined ? {} : { status }),
    ...(body === undefined ? {} : { body }),
    ...(transport === undefined ? {} : { transport }),
    providerSpoke: links.some(isProviderError),
    shapes: findAll(found, (link) => (isObject(link.value) ? recognise(link.value) : undefined)),
    headers: links.flatMap((link) => (isObject(link.value) ? headersOf(link.value) : [])),
    messages: findAll(found, messageOf),
  };
};

type Place = { readonly link: Link; readonly index: number };

const findAll = <A>(places: ReadonlyArray<Place>, read: (link: Link) => A | undefined): ReadonlyArray<Found<A>> =>
  places.flatMap(({ link, index }) => {
    const value = read(link);
    return value === undefined ? [] : [{ value, link, index }];
  });

const findFirst = <A>(places: ReadonlyArray<Place>, read: (link: Link) => A | undefined): Found<A> | undefined =>
  findAll(places, read)[0];

/**
 * Reads the status of an HTTP response, in the spellings of all clients. gaxios puts the status into `code`. The numeric codes of
 * DOMException are too small to be statuses.
 */
const statusOf = (value: object): number | undefined =>
  isStatusInvented(value)
    ? undefined
    : [
        number(value, "status"),
        number(value, "statusCode"),
        number(value, "status_code"),
        number(get(value, "$metadata"), "httpStatusCode"), // AWS SDK
        number(value, "code"),
      ].find(isError);

/**
 * True if no response had this status. The AI SDK's gateway error says 500 or 408 even without a response. If there was a response, its
 * status is in the cause.
 */
const isStatusInvented = (value: object): boolean =>
  isAiStreamError(value) ||
  (get(value, Symbol.for("vercel.ai.gateway.error")) === true && isObject(get(value, "cause")));

/**
 * True for the AI SDK (from 7), which wraps an error event of a stream. If the event has no status, the SDK derives one from the message
 * ("Overloaded" becomes 503). No response had that status, and a 503 would mean that the provider processed nothing. The error's `data`
 * contains the provider's event.
 */
const isAiStreamError = (value: object): boolean => text(value, "name") === "AI_StreamProviderError";

/** True if the AI SDK could not read a value, which may be the provider's error in a form that the SDK does not know. */
const isMisread = (value: object): boolean => {
  if (text(value, "name") !== "AI_TypeValidationError") return false;
  const read = get(value, "value");
  if (!isObject(read) || isInstance(read)) return false;
  return isObject(get(read, "error")) || text(read, "error") !== undefined || text(read, "type") === "error";
};

/** Fields in which clients keep the provider's response. */
const bodyFields: ReadonlySet<string> = new Set(["error", "data", "body", "responseBody"]);

const bodyOf = (link: Link): ErrorBody.BodyReading | undefined => {
  const { value, via } = link;
  if (typeof value === "string")
    return via !== "error" && bodyFields.has(via) ? ErrorBody.read(value) : readText(value);
  if (isBody(link)) return ErrorBody.read(value);
  if (isMisread(value)) return ErrorBody.read(get(value, "value"));
  return isFromProvider(value) ? toInstanceReading(withName(ErrorBody.read(value), value)) : undefined;
};

/** Reads a thrown string. If it is JSON, it is a body; otherwise it is only a message. */
const readText = (value: string): ErrorBody.BodyReading | undefined => {
  const json = ErrorBody.parse(value);
  return json === undefined ? undefined : ErrorBody.read(json);
};

const isBody = ({ value, via, depth }: Link): boolean =>
  isObject(value) && !isInstance(value) && text(value, "_tag") === undefined && (depth === 0 || bodyFields.has(via));

/** Classes of SDKs whose `code` and `type` come from the provider. In other classes a `code` may mean anything. */
const sdkClasses =
  /^(?:APIError|OpenAIError|AnthropicError|MistralError|SDKError|CohereError|GroqError|GoogleGenerativeAI\w*|ApiError)$/;

const isFromProvider = (value: object): boolean =>
  statusOf(value) !== undefined || text(value, "$fault") !== undefined || sdkClasses.test(className(value) ?? "");

/** Adds the exception name, which AWS SDK errors carry in `name`. */
const withName = (reading: ErrorBody.BodyReading, value: object): ErrorBody.BodyReading => {
  const name = text(value, "$fault") === undefined ? undefined : text(value, "name");
  return name === undefined ? reading : ErrorBody.read({ code: name, message: text(value, "message") ?? name });
};

/**
 * Reads the fields of an error instance. The SDK wrote its message, so we trust the fields only if the code is known.
 */
const toInstanceReading = (reading: ErrorBody.BodyReading): ErrorBody.BodyReading => ({
  ...reading,
  form: reading.byCode === undefined ? "absent" : "schema",
});

const isProviderError = (link: Link): boolean => {
  if (typeof link.value === "string") return false;
  if (isAiStreamError(link.value)) return isObject(get(link.value, "data"));
  if (isMisread(link.value)) return true;
  if (sdkClasses.test(className(link.value) ?? "")) return isObject(get(link.value, "error"));
  return (
    link.depth === 0 && isBody(link) && (isObject(get(link.value, "error")) || text(link.value, "type") === "error")
  );
};

/** Returns the reading with the most specific code. If none has a code, returns the one that most likely comes from the provider. */
const pickBody = (readings: ReadonlyArray<Found<ErrorBody.BodyReading>>): Found<ErrorBody.BodyReading> | undefined => {
  const weight = ({ value }: Found<ErrorBody.BodyReading>) =>
    (value.byCode?.rank ?? 0) * 10 +
    ["absent", "text", "json", "schema"].indexOf(value.form) * 2 +
    Number(value.carries);
  return readings.reduce<Found<ErrorBody.BodyReading> | undefined>(
    (best, next) => (best === undefined || weight(next) > weight(best) ? next : best),
    undefined,
  );
};

const transportOf = (value: object): TransportFinding | undefined => {
  if (isFileError(value)) return undefined;
  const code = text(value, "code");
  const http2 = Http2Codes.read(value);
  const row = code === undefined ? undefined : lookup(code);
  if (http2 === undefined && row === undefined) return undefined;
  const operation = row?.operation ?? operationOf(text(value, "syscall"));
  const meaning = http2 === undefined ? (row?.meaning ?? "retry") : http2.retryable ? "retry" : "never";
  return {
    row: operation === undefined ? { meaning } : { meaning, operation },
    ...(code === undefined ? {} : { code }),
    ...(http2 === undefined ? {} : { http2 }),
  };
};

/** True for a file's EACCES or EMFILE. Such an error comes from a tool or the configuration and not from the network. */
const isFileError = (value: object): boolean =>
  text(value, "path") !== undefined && text(value, "syscall") !== undefined && text(value, "syscall") !== "connect";

/** Returns the most specific cause, for example a certificate error under a closed socket, or a failed lookup under a network error. */
const pickTransport = (findings: ReadonlyArray<Found<TransportFinding>>): Found<TransportFinding> | undefined => {
  const named = findings.find(({ value }) => value.http2?.http2_code !== undefined);
  if (named !== undefined) return named;
  for (const meaning of ["never", "malformed", "oversize", "dns", "not_a_stream", "damaged", "retry"]) {
    const match = findings.find(({ value }) => value.row.meaning === meaning);
    if (match !== undefined) return match;
  }
  return findings[0];
};

const headersOf = (value: object): ReadonlyArray<unknown> =>
  [get(value, "headers"), get(value, "responseHeaders")].filter(isObject);

const messageOf = (link: Link): string | undefined => {
  if (typeof link.value === "string") return bodyFields.has(link.via) && link.via !== "error" ? undefined : link.value;
  return isFileError(link.value) ? undefined : text(link.value, "message");
};
