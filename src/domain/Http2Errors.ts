/** Maps the error codes of HTTP/2 to their meaning for a repeat of the same request. The classifier and `decide` share this table. */

/** Error codes of RFC 9113, section 7, in numeric order. */
export const names = [
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

/** Name of an HTTP/2 error code. */
export type Http2Name = (typeof names)[number];

/**
 * Resets by the peer after which the same request may succeed, because the request did not cause them: the peer stopped, failed, refused or
 * was busy, a settings frame was late, a frame arrived after a close, or a tunnel broke.
 */
const transient: ReadonlySet<string> = new Set<Http2Name>([
  "NO_ERROR",
  "INTERNAL_ERROR",
  "REFUSED_STREAM",
  "CANCEL",
  "ENHANCE_YOUR_CALM",
  "SETTINGS_TIMEOUT",
  "STREAM_CLOSED",
  "CONNECT_ERROR",
]);

/** Node's own codes for a stream or session that ended without a numeric code. */
export const nodeCodes: ReadonlyArray<string> = [
  "ERR_HTTP2_STREAM_ERROR",
  "ERR_HTTP2_SESSION_ERROR",
  "ERR_HTTP2_STREAM_CANCEL",
  "ERR_HTTP2_GOAWAY_SESSION",
  "ERR_HTTP2_INVALID_SESSION",
  "ERR_HTTP2_INVALID_STREAM",
  "ERR_HTTP2_ERROR",
  "ERR_HTTP2_PING_CANCEL",
];

/** End of an HTTP/2 stream or session, and its meaning for a repeat of the same request. */
export interface Http2End {
  /** Code of the reset or GOAWAY, as in RFC 9113. */
  readonly http2_code?: string;
  readonly retryable: boolean;
  /**
   * True if the peer says that it never processed the stream (RFC 9113, 6.8 and 8.7). If omitted, the default of the failure's kind
   * applies.
   */
  readonly not_processed?: boolean;
}

/** Returns the name of a code, with or without nghttp2's prefix. */
export const nameOf = (word: string | undefined): Http2Name | undefined => {
  const bare = word?.replace(/^NGHTTP2_/, "");
  return names.find((name) => name === bare);
};

/**
 * Returns true if the same request may succeed after a reset by the peer.
 *
 * @param code the code's name; a code unknown to RFC 9113 counts as INTERNAL_ERROR, as its section 7 permits
 */
export const isSurvivable = (code: string): boolean => transient.has(nameOf(code) ?? "INTERNAL_ERROR");

/** Returns true for one of Node's own HTTP/2 codes. */
export const isNodeCode = (code: string): boolean => code.startsWith("ERR_HTTP2_");

/** Returns the meaning of one of Node's own codes. If the session ended before the stream began, nothing was processed. */
export const fromNodeCode = (code: string): Http2End => {
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
      return { retryable: false }; // rejected by nghttp2, or an invalid call from our side
  }
};
