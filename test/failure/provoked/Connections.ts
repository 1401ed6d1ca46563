/**
 * Expected outcomes of connections that fail, break and end.
 */
import {
  aiSdk,
  anthropic,
  bytes,
  clients,
  effect,
  everyone,
  except,
  nodeHttp,
  overUndici,
  raw,
  sdks,
} from "./clients/Names.ts";
import { faults } from "./Faults.ts";
import { broken, final, impossible, type Outcome, retryable } from "./Outcome.ts";
import type { Expected, Section } from "./Section.ts";

const all = (outcome: Outcome) => [[everyone, outcome]] as const;

/** Node's http and undici name the same end differently. */
const byLibrary = (node: Outcome, undici: Outcome) =>
  [
    [nodeHttp, node],
    [overUndici, undici],
  ] as const;

const closed = byLibrary(broken("ECONNRESET"), broken("UND_ERR_SOCKET"));
const aborted = retryable("cancelled", { by: "provider" });
/** The SDKs themselves report their caller's abort. */
const ownWord = final("cancelled", { by: "caller" });
const damaged = retryable("protocol", { reason: "damaged_frame" });

const expected: Expected = {
  "connection refused": all(broken("ECONNREFUSED", "connect")),
  "name that no DNS knows": all(impossible("ENOTFOUND")),
  "connect timeout (no TLS answer)": [
    [except(overUndici, ...anthropic), broken("UND_ERR_CONNECT_TIMEOUT", "connect")],
    [anthropic, broken()],
  ],
  "TLS handshake reset": all(broken("ECONNRESET")),
  "TLS handshake closed": all(broken("ECONNRESET")),
  "TLS to a port that speaks HTTP": byLibrary(impossible("EPROTO"), impossible("ERR_SSL_WRONG_VERSION_NUMBER")),
  "self-signed certificate": all(impossible("DEPTH_ZERO_SELF_SIGNED_CERT")),
  "expired certificate": all(impossible("CERT_HAS_EXPIRED")),
  "certificate of another host": all(impossible("ERR_TLS_CERT_ALTNAME_INVALID")),

  "reset before the head": all(broken("ECONNRESET")),
  "close before the head": closed,
  "close inside the head": closed,
  "no HTTP": byLibrary(
    retryable("protocol", { reason: "not_a_stream", code: "HPE_INVALID_CONSTANT" }),
    retryable("protocol", { reason: "not_a_stream" }),
  ),
  "head larger than allowed": byLibrary(
    final("protocol", { reason: "oversize", code: "HPE_HEADER_OVERFLOW" }),
    final("protocol", { reason: "oversize", code: "UND_ERR_HEADERS_OVERFLOW" }),
  ),
  "head timeout": [
    [except(overUndici, ...anthropic, "Effect HttpClient (undici)"), broken("UND_ERR_HEADERS_TIMEOUT", "head")],
    [anthropic, broken()],
  ],
  "the client's own timeout": [
    [[...effect, ...sdks], broken()],
    [aiSdk, "no error"],
  ],
  "abort by a signal before the head": [
    [["node:http"], { ...aborted, code: "ABORT_ERR" }],
    [except(everyone, "node:http", ...sdks, ...aiSdk), aborted],
    [sdks, ownWord],
    [aiSdk, "no error"],
  ],
  "AbortSignal.timeout before the head": [
    [[...raw, "openai"], broken()],
    [effect, aborted],
    [anthropic, ownWord],
    [aiSdk, "no error"],
  ],

  "reset after the head": all(broken("ECONNRESET")),
  "close after the head": closed,
  "reset in the body": all(broken("ECONNRESET")),
  "close in the body": closed,
  "reset in a body with connection: close": byLibrary(broken("ECONNRESET"), broken(undefined, "body")),
  "close in a body with connection: close": byLibrary(broken("ECONNRESET"), broken(undefined, "body")),
  "close inside a content-length": closed,
  "close of a body without a length": all("no error"),
  "reset of a body without a length": all("no error"),
  "broken chunk size": byLibrary(broken("ECONNRESET"), damaged),
  "broken gzip": [
    [[...nodeHttp, "undici", "Effect HttpClient (undici)"], "no error"],
    [except(overUndici, "undici", "Effect HttpClient (undici)"), { ...damaged, code: "Z_DATA_ERROR" }],
  ],
  "body timeout": [[except(overUndici, "Effect HttpClient (undici)"), broken("UND_ERR_BODY_TIMEOUT", "body")]],
  "abort by a signal in the body": [
    [["node:http"], broken("ECONNRESET")],
    [except(bytes, "node:http"), aborted],
    [[...sdks, ...aiSdk], "no error"],
  ],
};

/** Connections over HTTP/1.1, with and without TLS. */
export const connections: Section = {
  title: "Connections",
  about:
    "HTTP/1.1 on loopback, with keep-alive and chunked bodies unless stated otherwise. A body with neither a length nor chunks always seems to end cleanly, and only the terminal marker shows whether it is complete.",
  clients,
  faults,
  expected,
};
