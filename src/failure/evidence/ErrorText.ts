/** Reads the message of an error. It is the last resort if there is no meaningful code, status or class. */
import type { TransportOperation } from "../../domain/Failure.ts";
import type { TransportMeaning } from "../../domain/TransportCodes.ts";

/** Meaning of a message, and the part of the request to which it belongs. */
export interface TextRow {
  readonly meaning: TransportMeaning;
  readonly operation?: TransportOperation;
}

const retry: TextRow = { meaning: "retry" };
const connect: TextRow = { meaning: "retry", operation: "connect" };
const body: TextRow = { meaning: "retry", operation: "body" };
const never: TextRow = { meaning: "never", operation: "connect" };
const cancelled: TextRow = { meaning: "cancelled" };

const dns: TextRow = { meaning: "dns", operation: "connect" };

/** [the runtime or client, the pattern, its meaning]. */
type Row = readonly [string, RegExp, TextRow];

/**
 * Messages of `fetch` itself, matched from their start. A TypeError is usually a bug, so only these messages make it a network failure.
 * Safari and Chromium append the host to some of them.
 */
const fetchRows: ReadonlyArray<Row> = [
  ["undici", /^fetch failed$/i, retry],
  ["undici", /^terminated$/i, body],
  ["Chromium", /^failed to fetch(?: \([^()]*\))?\.?$|^network error$/i, retry],
  ["Firefox", /^NetworkError when attempting to fetch resource\.?$|^network error\.$/i, retry],
  ["Firefox", /^error in (?:input|body) stream\.?$/i, body],
  ["Safari", /^load failed(?: \([^()]*\))?\.?$|^the request timed out\.?$/i, retry],
  ["Safari", /^the network connection was lost\.?$/i, retry],
  ["Safari", /^the internet connection appears to be offline\.?$|^could not connect to the server\.?$/i, connect],
  ["Safari", /^a server with the specified hostname could not be found\.?$/i, dns],
  ["Cloudflare Workers", /^network connection lost\.?$/i, retry],
  ["Bun", /^the socket connection was closed unexpectedly\b/i, retry],
  [
    "Bun",
    /^unable to connect\. is the computer able to access the url\b|^was there a typo in the url or port\b/i,
    connect,
  ],
  ["Deno", /^error sending request\b.*\binvalid peer certificate\b/is, never],
  ["Deno", /^error sending request\b.*\bdns error\b/is, dns],
  ["Deno", /^error sending request\b.*\bclient error \(Connect\)/is, connect],
  ["Deno", /^error sending request (?:for|from) /i, retry],
  ["Deno", /^(?:request or response body error: )?error reading a body from connection\b/i, body],
  ["Deno, hyper", /^(?:connection error: )?connection closed before message completed\.?$|^unexpected eof\b/i, body],
];

/** Messages of errors of other classes. A short message must match as a whole. */
const rows: ReadonlyArray<Row> = [
  [
    "OpenSSL, Node",
    /\bself[- ]signed certificate\b|\bcertificate has expired\b|\bcertificate is not yet valid\b/i,
    never,
  ],
  ["OpenSSL, Node", /\bunable to (?:verify the first|get local issuer) certificate\b/i, never],
  ["Node", /\bdoes not match certificate's altnames\b/i, never],
  ["Go", /\bx509: |\bhandshake failure\b|\bwrong version number\b/i, never],
  ["undici", /\bother side closed\b/i, retry],
  ["Firefox, Safari", /\bNetworkError when attempting to fetch\b|\bnetwork connection was lost\b/i, retry],
  ["Node", /\bsocket hang up\b|\bpremature close\b|\bnetwork socket disconnected\b/i, retry],
  ["Go, zlib", /\bunexpected EOF\b|\bunexpected end of file\b/i, body],
  [
    "Go, libc",
    /\bconnection reset\b|\bbroken pipe\b|\bconnection aborted\b|\bsoftware caused connection abort\b/i,
    retry,
  ],
  [
    "Go, libc",
    /\bconnection refused\b|\bno route to host\b|\bnetwork is unreachable\b|\bTLS handshake timeout\b/i,
    connect,
  ],
  ["Go, libc", /\bi\/o timeout\b|\bconnection timed out\b|\boperation timed out\b|\bdeadline exceeded\b/i, retry],
  ["OpenAI and Anthropic SDKs", /^connection error\.?$|^request timed out\.?$/i, retry],
  ["Bun", /\bsocket connection was closed unexpectedly\b/i, retry],
  ["Bun", /\bunable to connect\. is the computer able to access the url\b/i, connect],
  ["Deno, hyper", /\berror reading a body from connection\b|\bconnection closed before message completed\b/i, body],
  ["httpx", /\bincomplete (?:chunked|message) (?:read|body)\b|\bwithout sending (?:complete|a) \w+/i, body],
  ["Envoy", /\bupstream connect error or disconnect\b|\bupstream prematurely closed\b/i, retry],
  ["Node", /^aborted$/i, retry], // an IncomingMessage whose peer disconnected
  ["fetch, SDKs", /\b(?:operation|request) was aborted\b|^aborterror$|\bsignal is aborted\b/i, cancelled],
  ["Effect.runPromise, Cause.squash", /^All fibers interrupted without error$/, cancelled],
  ["Go, gRPC", /\bcontext cancell?ed\b|\brequest cancell?ed\b/i, cancelled],
];

const allRows: ReadonlyArray<Row> = [...fetchRows, ...rows];

/**
 * Reads a transport failure from a message.
 *
 * @param message the message of an error, or a thrown string
 * @param className the error's class. For TypeError only messages of `fetch` count, and for other classes of programming errors no message
 *   counts
 */
export const read = (message: string, className: string | undefined): TextRow | undefined => {
  if (className !== undefined && programming.has(className)) return undefined;
  const believed = className === "TypeError" ? fetchRows : allRows;
  return believed.find(([, pattern]) => pattern.test(message))?.[2];
};

/** Returns true for a class that only faulty code throws. `SchemaError` quotes the data that does not match. */
export const isProgramming = (className: string | undefined): boolean =>
  className !== undefined && (programming.has(className) || className === "TypeError");

const programming: ReadonlySet<string> = new Set([
  "ReferenceError",
  "RangeError",
  "SyntaxError",
  "EvalError",
  "URIError",
  "AssertionError",
  "SchemaError",
  "ParseError",
]);

/** Returns the status that a message names: `Request failed with status code 503`, `HTTP 502`, `429 Too Many Requests`. */
export const findStatus = (message: string): number | undefined => {
  const found = /^([45]\d\d) (?:[A-Z{"<]|status code)|\b(?:HTTP|status(?: code)?):? ?([45]\d\d)\b/i.exec(message);
  const digits = found?.[1] ?? found?.[2];
  return digits === undefined ? undefined : Number(digits);
};
