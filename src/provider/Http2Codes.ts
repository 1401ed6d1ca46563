/**
 * Reads how an HTTP/2 stream or session ended: the code, who reset it, and whether it was taken up at all.
 */
import { get, number, text } from "./CauseChain.ts";
import { known } from "./ErrorLabel.ts";

/** RFC 9113, section 7, in the order of their numbers. */
const names = [
  "NO_ERROR",
  "PROTOCOL_ERROR",
  "INTERNAL_ERROR",
  "FLOW_CONTROL_ERROR",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "FRAME_SIZE_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "COMPRESSION_ERROR",
  "CONNECT_ERROR",
  "ENHANCE_YOUR_CALM",
  "INADEQUATE_SECURITY",
  "HTTP_1_1_REQUIRED",
] as const;

/**
 * Peer resets that the same request may survive: DESIGN section 5, and the three that speak of a moment and not of the
 * request (a settings frame that was late, a frame after a close, a tunnel that broke).
 */
const transient: ReadonlySet<string> = new Set([
  "NO_ERROR",
  "INTERNAL_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "ENHANCE_YOUR_CALM",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "CONNECT_ERROR",
]);

known([
  ...names,
  ..."ERR_HTTP2_STREAM_ERROR ERR_HTTP2_SESSION_ERROR ERR_HTTP2_STREAM_CANCEL ERR_HTTP2_GOAWAY_SESSION".split(" "),
  ..."ERR_HTTP2_INVALID_SESSION ERR_HTTP2_INVALID_STREAM ERR_HTTP2_ERROR ERR_HTTP2_PING_CANCEL".split(" "),
]);

/** How an HTTP/2 stream or session ended, and what that means for the same request. */
export interface Http2End {
  /** The code of the reset or GOAWAY, as in RFC 9113. */
  readonly http2_code?: string;
  readonly retryable: boolean;
  /** The peer says that it never took the stream up (RFC 9113, 6.8 and 8.7). Left out: not known, the kind's default. */
  readonly not_processed?: boolean;
}

/**
 * Reads one error of node:http2, of undici's HTTP/2 client, or of a client that reports as node:http2 does.
 *
 * `rstCode` and `lastStreamID` stand on node's stream and session; a client that copies them onto its error, with
 * `streamId` and `origin` (`peer` or `local`), is understood exactly. Without an origin a reset is the peer's: a local
 * reset is made by a runtime that knows why.
 *
 * @param error one object of a cause chain
 */
export const read = (error: object): Http2End | undefined => {
  const code = text(error, "code") ?? "";
  const message = text(error, "message") ?? "";
  const numeric = number(error, "rstCode") ?? number(error, "http2Code") ?? number(error, "goawayCode");
  const marked = /^ERR_HTTP2_/.test(code);
  const name =
    (numeric === undefined ? undefined : names[numeric]) ??
    nameOf(text(error, "http2_code") ?? text(error, "http2Code")) ??
    (marked || speaksOfHttp2(message) ? nameIn(message) : undefined);
  if (name === undefined) return marked ? unnamed(code) : undefined;
  if (isLocal(error, message)) return { http2_code: name, retryable: false, not_processed: false };
  const below = belowGoaway(error, message);
  const retryable = transient.has(name) || below;
  return below ? { http2_code: name, retryable, not_processed: true } : { http2_code: name, retryable };
};

/** Reads a text that speaks of a reset, as Go's, Rust's and undici's messages do. */
export const readText = (message: string): Http2End | undefined => {
  const name = speaksOfHttp2(message) ? nameIn(message) : undefined;
  if (name === undefined) return undefined;
  return /\blocal(?:ly)?\b/i.test(message)
    ? { http2_code: name, retryable: false, not_processed: false }
    : { http2_code: name, retryable: transient.has(name) };
};

/** Codes that come without a number: a session that had ended before the stream began takes nothing up. */
const unnamed = (code: string): Http2End | undefined => {
  switch (code) {
    case "ERR_HTTP2_GOAWAY_SESSION":
      return { http2_code: "NO_ERROR", retryable: true, not_processed: true };
    case "ERR_HTTP2_INVALID_SESSION":
    case "ERR_HTTP2_STREAM_CANCEL":
    case "ERR_HTTP2_STREAM_ERROR":
    case "ERR_HTTP2_SESSION_ERROR":
    case "ERR_HTTP2_PING_CANCEL":
      return { retryable: true };
    default:
      return { retryable: false }; // nghttp2's own refusals and wrong calls of ours
  }
};

const speaksOfHttp2 = (message: string): boolean =>
  /NGHTTP2_|HTTP\/2|\bhttp2\b|\bGOAWAY\b|RST_STREAM|\bstream error: stream ID|\bReceived stream error\b|\bREFUSED_STREAM\b/i.test(
    message,
  );

const nameIn = (message: string): string | undefined => {
  for (const [word] of message.matchAll(/\b(?:NGHTTP2_)?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*\b/g)) {
    const name = nameOf(word);
    if (name !== undefined) return name;
  }
  const numeric = /\b(?:error code|with code|code|ErrCode)[ =:]{1,2}(\d{1,2})\b/.exec(message)?.[1];
  return numeric === undefined ? undefined : names[Number(numeric)];
};

const nameOf = (word: string | undefined): string | undefined => {
  const bare = word?.replace(/^NGHTTP2_/, "");
  return names.find((name) => name === bare);
};

const isLocal = (error: object, message: string): boolean => {
  if (get(error, "remoteReset") === false || get(error, "remote_reset") === false) return true;
  const origin = text(error, "origin") ?? text(error, "initiator");
  return origin === "local" || origin === "client" || /\b(?:reset|sent) (?:by us|locally)\b/i.test(message);
};

/** GOAWAY names the last stream that was taken up: those above it were not (RFC 9113, 6.8). */
const belowGoaway = (error: object, message: string): boolean => {
  const last =
    number(error, "lastStreamID") ??
    number(error, "lastStreamId") ??
    parsed(/\bLastStreamID=(\d{1,10})\b/.exec(message)?.[1]);
  const own = number(error, "streamID") ?? number(error, "streamId");
  return last !== undefined && own !== undefined && own > last;
};

const parsed = (digits: string | undefined): number | undefined => (digits === undefined ? undefined : Number(digits));
