/**
 * Maps the error codes of Node, undici, Bun, Deno and browsers to their meaning for a request. The classifier and `decide` share
 * this table.
 */
import * as Schema from "effect/Schema";

/** The part of a request during which a transport failed. */
export const TransportOperation = Schema.Literals(["connect", "write", "head", "body"]);
export type TransportOperation = typeof TransportOperation.Type;

/**
 * Meaning of a code. `retry`: the connection broke. `never`: the same request fails again. `dns`: retryable only if the host was
 * reached before. `cancelled`: an abort. `damaged`, `not_a_stream`, `oversize`: the bytes do not follow the protocol.
 * `malformed`: the request itself cannot be sent.
 */
export type TransportMeaning =
  | "retry"
  | "never"
  | "dns"
  | "cancelled"
  | "damaged"
  | "not_a_stream"
  | "oversize"
  | "malformed";

/** Meaning of a code, and the part of the request to which it belongs. */
export interface TransportRow {
  readonly meaning: TransportMeaning;
  readonly operation?: TransportOperation;
}

const rows = (
  meaning: TransportMeaning,
  operation: TransportOperation | undefined,
  codes: string,
): ReadonlyArray<readonly [string, TransportRow]> =>
  codes
    .trim()
    .split(/\s+/)
    .map((code) => [code, operation === undefined ? { meaning } : { meaning, operation }]);

const table: ReadonlyMap<string, TransportRow> = new Map([
  ...rows(
    "retry",
    undefined,
    "ECONNRESET ECONNABORTED ETIMEDOUT ESOCKETTIMEDOUT ENETRESET ENETDOWN ENOTCONN EAGAIN EINTR",
  ),
  ...rows("retry", "write", "EPIPE"),
  ...rows("retry", "connect", "ECONNREFUSED EHOSTUNREACH EHOSTDOWN ENETUNREACH EADDRNOTAVAIL EAI_AGAIN"),
  // Node: a server or a socket that closed early.
  ...rows("retry", undefined, "ERR_STREAM_PREMATURE_CLOSE ERR_SOCKET_CLOSED ERR_SOCKET_CONNECTION_TIMEOUT"),
  ...rows("retry", "connect", "ERR_TLS_HANDSHAKE_TIMEOUT EAI_FAIL"),
  // undici. Its HTTP/2 client reports INFO for a stream that closed early.
  ...rows("retry", undefined, "UND_ERR_SOCKET UND_ERR_INFO"),
  ...rows("retry", "connect", "UND_ERR_CONNECT_TIMEOUT UND_ERR_PRX_CONN"),
  ...rows("retry", "head", "UND_ERR_HEADERS_TIMEOUT"),
  ...rows("retry", "body", "UND_ERR_BODY_TIMEOUT UND_ERR_RES_CONTENT_LENGTH_MISMATCH"),
  // llhttp: the connection closed inside a message.
  ...rows("retry", "body", "HPE_INVALID_EOF_STATE HPE_CLOSED_CONNECTION"),
  // Bun and Chromium's network errors (also in Electron).
  ...rows("retry", undefined, "ConnectionClosed ConnectionReset Timeout ERR_CONNECTION_RESET ERR_CONNECTION_CLOSED"),
  ...rows(
    "retry",
    undefined,
    "ERR_NETWORK ERR_NETWORK_CHANGED ERR_INTERNET_DISCONNECTED ERR_TIMED_OUT ERR_NETWORK_IO_SUSPENDED",
  ),
  ...rows("retry", "connect", "ConnectionRefused FailedToOpenSocket ERR_CONNECTION_REFUSED ERR_CONNECTION_TIMED_OUT"),
  ...rows("retry", "body", "ERR_INCOMPLETE_CHUNKED_ENCODING ERR_CONTENT_LENGTH_MISMATCH"),
  // Name lookups. A laptop that wakes up may get ENOTFOUND for a name that it resolved an hour ago.
  ...rows("dns", "connect", "ENOTFOUND ENODATA EAI_NONAME EAI_NODATA ERR_NAME_NOT_RESOLVED"),
  // TLS certificates and protocol errors. The next handshake would get the same certificate.
  ...rows("never", "connect", "EPROTO CERT_HAS_EXPIRED CERT_NOT_YET_VALID CERT_REVOKED CERT_REJECTED CERT_UNTRUSTED"),
  ...rows(
    "never",
    "connect",
    "CERT_SIGNATURE_FAILURE CERT_CHAIN_TOO_LONG DEPTH_ZERO_SELF_SIGNED_CERT INVALID_CA INVALID_PURPOSE",
  ),
  ...rows("never", "connect", "SELF_SIGNED_CERT_IN_CHAIN UNABLE_TO_GET_ISSUER_CERT UNABLE_TO_GET_ISSUER_CERT_LOCALLY"),
  ...rows(
    "never",
    "connect",
    "UNABLE_TO_VERIFY_LEAF_SIGNATURE UNABLE_TO_GET_CRL HOSTNAME_MISMATCH ERR_TLS_CERT_ALTNAME_INVALID",
  ),
  ...rows(
    "never",
    "connect",
    "UND_ERR_PRX_TLS ERR_CERT_AUTHORITY_INVALID ERR_CERT_DATE_INVALID ERR_CERT_COMMON_NAME_INVALID",
  ),
  // Failures on this side: a dispatcher or socket that this process closed, or a limit of the system.
  ...rows(
    "never",
    undefined,
    "UND_ERR_DESTROYED UND_ERR_CLOSED ERR_STREAM_DESTROYED ERR_STREAM_WRITE_AFTER_END EMFILE ENFILE",
  ),
  ...rows(
    "never",
    undefined,
    "UND_ERR_NOT_SUPPORTED UND_ERR_BPL_MISSING_UPSTREAM UND_ERR_MAX_ORIGINS_REACHED EACCES EPERM",
  ),
  ...rows("cancelled", undefined, "ABORT_ERR UND_ERR_ABORTED UND_ERR_ABORT ERR_CANCELED ECANCELED ERR_ABORTED"),
  ...rows("oversize", undefined, "UND_ERR_HEADERS_OVERFLOW UND_ERR_RES_EXCEEDED_MAX_SIZE HPE_HEADER_OVERFLOW"),
  ...rows("not_a_stream", "head", "HPE_INVALID_CONSTANT HPE_INVALID_VERSION HPE_INVALID_STATUS"),
  ...rows("not_a_stream", "head", "InvalidHTTPResponse"),
  ...rows("damaged", undefined, "Z_DATA_ERROR Z_BUF_ERROR ERR_ENCODING_INVALID_ENCODED_DATA"),
  ...rows("damaged", undefined, "ZlibError BrotliDecompressionError ZstdDecompressionError"),
  ...rows(
    "malformed",
    undefined,
    "ERR_INVALID_URL UND_ERR_REQ_CONTENT_LENGTH_MISMATCH ERR_INVALID_CHAR ERR_UNESCAPED_CHARACTERS",
  ),
]);

/** Families of codes that are too large for one row per code. */
const families: ReadonlyArray<readonly [RegExp, TransportRow]> = [
  [/^ERR_(?:SSL|OSSL)_[A-Z0-9_]{1,48}$/, { meaning: "never", operation: "connect" }],
  [/^ERR_TLS_[A-Z0-9_]{1,48}$/, { meaning: "never", operation: "connect" }],
  [/^HPE_[A-Z_]{1,48}$/, { meaning: "damaged" }],
];

/**
 * Prefix of the codes of an egress proxy's own failures. The proxy's status follows (`PROXY_407`), or the code of the failure on the way to
 * the proxy.
 */
export const proxyPrefix = "PROXY_";

/**
 * Failures of an egress proxy other than a refusal. The proxy hangs up, does not speak HTTP, sends too much, does not answer in time, or
 * breaks without a code.
 */
const proxyCodes: ReadonlyMap<string, TransportMeaning> = new Map([
  ["PROXY_CLOSED", "retry"],
  ["PROXY_BAD_RESPONSE", "never"],
  ["PROXY_HEAD_OVERFLOW", "never"],
  ["PROXY_STALLED", "retry"],
  ["PROXY_FAILED", "retry"],
]);

/** Every code that has its own row. */
export const codes: ReadonlyArray<string> = [...table.keys(), ...proxyCodes.keys()];

/** Temporary statuses of a proxy: a timeout, too many requests, and failures on its way to the origin. */
const passingStatus = /^(?:408|425|429|500|502|503|504|52[0-4])$/;

const proxyRow = (code: string): TransportRow | undefined => {
  if (!code.startsWith(proxyPrefix)) return undefined;
  const rest = code.slice(proxyPrefix.length);
  const meaning =
    proxyCodes.get(code) ?? (/^[1-5]\d\d$/.test(rest) ? classifyProxyStatus(rest) : classifyProxyCode(rest));
  return meaning === undefined ? undefined : { meaning, operation: "connect" };
};

const classifyProxyStatus = (status: string): TransportMeaning => (passingStatus.test(status) ? "retry" : "never");

/**
 * Returns the meaning of a code that occurred on the way to a proxy. `never` and `dns` keep their meaning; any other known code means that
 * the connection broke.
 */
const classifyProxyCode = (code: string): TransportMeaning | undefined => {
  const meaning = (table.get(code) ?? familyOf(code))?.meaning;
  return meaning === undefined || meaning === "never" || meaning === "dns" ? meaning : "retry";
};

const familyOf = (code: string): TransportRow | undefined => families.find(([pattern]) => pattern.test(code))?.[1];

/**
 * Looks up a code.
 *
 * @param code the `code` of an error, as its runtime spells it
 */
export const lookup = (code: string): TransportRow | undefined => table.get(code) ?? proxyRow(code) ?? familyOf(code);

/**
 * Returns true if a code shows that the host that answered is not the origin, because its certificate is wrong or its bytes are not TLS. If
 * the origin was reached before, the cause is temporary: a captive portal or a wrong clock.
 */
export const isForeign = (code: string): boolean =>
  foreign.has(code.startsWith(proxyPrefix) ? code.slice(proxyPrefix.length) : code);

/** Codes of `isForeign`. Codes about our own client certificate, or about certificate files that cannot be read, are excluded. */
const foreign: ReadonlySet<string> = new Set(
  `EPROTO CERT_HAS_EXPIRED CERT_NOT_YET_VALID CERT_REVOKED CERT_REJECTED CERT_UNTRUSTED CERT_SIGNATURE_FAILURE
  CERT_CHAIN_TOO_LONG DEPTH_ZERO_SELF_SIGNED_CERT INVALID_CA INVALID_PURPOSE SELF_SIGNED_CERT_IN_CHAIN
  UNABLE_TO_GET_ISSUER_CERT UNABLE_TO_GET_ISSUER_CERT_LOCALLY UNABLE_TO_VERIFY_LEAF_SIGNATURE HOSTNAME_MISMATCH
  ERR_TLS_CERT_ALTNAME_INVALID ERR_SSL_WRONG_VERSION_NUMBER ERR_SSL_PACKET_LENGTH_TOO_LONG`.split(/\s+/),
);

/**
 * Finds a code of the table inside a message, for example `read ECONNRESET`. Codes are words in capitals, which ordinary sentences do not
 * contain.
 */
export const findInText = (message: string): string | undefined => {
  for (const [word] of message.matchAll(/\b[A-Z][A-Z0-9_]{3,48}\b/g)) {
    if (/^(?:E[A-Z]|UND_ERR|ERR_|HPE_|CERT_)/.test(word) && lookup(word) !== undefined) return word;
  }
  return undefined;
};

/** Returns the operation of a system call (`syscall` of Node's errors). */
export const operationOf = (syscall: string | undefined): TransportOperation | undefined => {
  if (syscall === "connect" || syscall === "getaddrinfo" || syscall === "queryA") return "connect";
  return syscall === "write" ? "write" : undefined;
};
