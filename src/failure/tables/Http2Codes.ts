/** Reads the end of an HTTP/2 stream or session: its code, the side that reset it, and whether the peer processed the stream at all. */
import { fromNodeCode, type Http2End, isNodeCode, isSurvivable, nameOf, names } from "../../domain/Http2Errors.ts";
import { get, number, text } from "../thrown/CauseChain.ts";

/**
 * Reads one error of node:http2, of undici's HTTP/2 client, or of a client with the same fields.
 *
 * `rstCode` and `lastStreamID` are fields of node's stream and session. If a client copies these fields onto its error, with `streamId` and
 * `origin` (`peer` or `local`), the result is exact. Without an origin, the reset counts as the peer's, because a runtime that resets a
 * stream itself reports the reason.
 *
 * @param error one object of a cause chain
 */
export const read = (error: object): Http2End | undefined => {
  const code = text(error, "code") ?? "";
  const message = text(error, "message") ?? "";
  const numeric = number(error, "rstCode") ?? number(error, "http2Code") ?? number(error, "goawayCode");
  const marked = isNodeCode(code);
  const name =
    (numeric === undefined ? undefined : names[numeric]) ??
    nameOf(text(error, "http2_code") ?? text(error, "http2Code")) ??
    (marked || isAboutHttp2(message) ? nameIn(message) : undefined);
  if (name === undefined) return marked ? fromNodeCode(code) : undefined;
  if (isLocal(error, message)) return { http2_code: name, retryable: false, not_processed: false };
  const below = isRefusedByGoaway(error, message);
  const retryable = isSurvivable(name) || below;
  return below ? { http2_code: name, retryable, not_processed: true } : { http2_code: name, retryable };
};

/** Reads a message about a reset, as in Go, Rust and undici. */
export const readText = (message: string): Http2End | undefined => {
  const name = isAboutHttp2(message) ? nameIn(message) : undefined;
  if (name === undefined) return undefined;
  return /\blocal(?:ly)?\b/i.test(message)
    ? { http2_code: name, retryable: false, not_processed: false }
    : { http2_code: name, retryable: isSurvivable(name) };
};

const isAboutHttp2 = (message: string): boolean =>
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

const isLocal = (error: object, message: string): boolean => {
  if (get(error, "remoteReset") === false || get(error, "remote_reset") === false) return true;
  const origin = text(error, "origin") ?? text(error, "initiator");
  return origin === "local" || origin === "client" || /\b(?:reset|sent) (?:by us|locally)\b/i.test(message);
};

/** True if the peer did not process the stream. GOAWAY names the last stream that the peer processed (RFC 9113, 6.8). */
const isRefusedByGoaway = (error: object, message: string): boolean => {
  const last =
    number(error, "lastStreamID") ??
    number(error, "lastStreamId") ??
    parseDigits(/\bLastStreamID=(\d{1,10})\b/.exec(message)?.[1]);
  const own = number(error, "streamID") ?? number(error, "streamId");
  return last !== undefined && own !== undefined && own > last;
};

const parseDigits = (digits: string | undefined): number | undefined =>
  digits === undefined ? undefined : Number(digits);
