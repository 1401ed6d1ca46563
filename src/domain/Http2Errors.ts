/**
 * Says what the error codes of HTTP/2 mean for the same request: the one table that the classifier and `decide` read.
 */

/** RFC 9113, section 7, in the order of their numbers. */
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

/** One of them. */
export type Http2Name = (typeof names)[number];

/**
 * Peer resets that the same request may survive. Each speaks of the peer or of a moment, and not of the request: the peer
 * stopped, failed, refused or was busy; a settings frame was late, a frame came after a close, a tunnel broke.
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

/** Node's own codes for a stream or session that ended, which come without a number. */
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

/** How an HTTP/2 stream or session ended, and what that means for the same request. */
export interface Http2End {
  /** The code of the reset or GOAWAY, as in RFC 9113. */
  readonly http2_code?: string;
  readonly retryable: boolean;
  /** The peer says that it never took the stream up (RFC 9113, 6.8 and 8.7). Left out: not known, the kind's default. */
  readonly not_processed?: boolean;
}

/** The name of a code, with or without nghttp2's prefix. */
export const nameOf = (word: string | undefined): Http2Name | undefined => {
  const bare = word?.replace(/^NGHTTP2_/, "");
  return names.find((name) => name === bare);
};

/**
 * Whether the same request may survive a reset by the peer.
 *
 * @param code the code's name; one that RFC 9113 does not know counts as INTERNAL_ERROR, as its section 7 permits
 */
export const survivable = (code: string): boolean => transient.has(nameOf(code) ?? "INTERNAL_ERROR");

/** Whether a code is one of Node's own for HTTP/2. */
export const isNodeCode = (code: string): boolean => code.startsWith("ERR_HTTP2_");

/** What one of Node's own codes says: a session that had ended before the stream began takes nothing up. */
export const ofNodeCode = (code: string): Http2End => {
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
