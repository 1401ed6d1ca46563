/**
 * Expected outcomes of streams and sessions that an HTTP/2 peer ends.
 */
import { http2Clients, http2Faults } from "./Http2.ts";
import { broken, final, type Outcome, refused, retryable } from "./Outcome.ts";
import type { Expected, Group, Section } from "./Section.ts";

const plain = "node:http2";
const telling = "node:http2, codes copied onto the error";
const undici8 = ["undici", "undici fetch", "Effect HttpClient (undici)"];
const undici = ["undici", "undici fetch", "global fetch", "Effect HttpClient (undici)"];
const everyone = [plain, telling, ...undici];

const all = (outcome: Outcome): ReadonlyArray<Group> => [[everyone, outcome]];
const streamError = (http2_code: string) => ({ code: "ERR_HTTP2_STREAM_ERROR", http2_code });
const transient = (code: string) => all(retryable("transport", streamError(code)));
const permanent = (code: string) => all(final("transport", streamError(code)));

/** Codes with the same meaning before the head and in the body. */
const anywhere = (moment: string): Expected => ({
  [`RST_STREAM PROTOCOL_ERROR ${moment}`]: permanent("PROTOCOL_ERROR"),
  [`RST_STREAM INTERNAL_ERROR ${moment}`]: transient("INTERNAL_ERROR"),
  [`RST_STREAM FLOW_CONTROL_ERROR ${moment}`]: permanent("FLOW_CONTROL_ERROR"),
  [`RST_STREAM SETTINGS_TIMEOUT ${moment}`]: transient("SETTINGS_TIMEOUT"),
  [`RST_STREAM STREAM_CLOSED ${moment}`]: transient("STREAM_CLOSED"),
  [`RST_STREAM FRAME_SIZE_ERROR ${moment}`]: permanent("FRAME_SIZE_ERROR"),
  [`RST_STREAM REFUSED_STREAM ${moment}`]: all(refused("transport", streamError("REFUSED_STREAM"))),
  [`RST_STREAM COMPRESSION_ERROR ${moment}`]: permanent("COMPRESSION_ERROR"),
  [`RST_STREAM CONNECT_ERROR ${moment}`]: transient("CONNECT_ERROR"),
  [`RST_STREAM ENHANCE_YOUR_CALM ${moment}`]: transient("ENHANCE_YOUR_CALM"),
  [`RST_STREAM INADEQUATE_SECURITY ${moment}`]: permanent("INADEQUATE_SECURITY"),
  [`RST_STREAM HTTP_1_1_REQUIRED ${moment}`]: permanent("HTTP_1_1_REQUIRED"),
});

/** Node closes the streams of a lost connection with CANCEL, and reports that only in `rstCode`. */
const cancel = retryable("transport", { http2_code: "CANCEL" });
const silent: ReadonlyArray<Group> = [
  [[plain], "no error"],
  [[telling], cancel],
];
const goneAway: ReadonlyArray<Group> = [
  ...silent,
  [undici8, broken("UND_ERR_SOCKET")],
  [["global fetch"], retryable("transport", { code: "UND_ERR_SOCKET", http2_code: "NO_ERROR" })],
];

const expected: Expected = {
  ...anywhere("before the head"),
  ...anywhere("in the body"),
  "RST_STREAM NO_ERROR before the head": [
    [[plain, telling], "no error"],
    [undici, broken("UND_ERR_INFO")],
  ],
  "RST_STREAM NO_ERROR in the body": all("no error"),
  "RST_STREAM CANCEL before the head": [...silent, [undici, broken("UND_ERR_INFO")]],
  "RST_STREAM CANCEL in the body": [...silent, [undici, "no error"]],
  "GOAWAY below our stream": [
    [[plain, telling], refused("transport", streamError("REFUSED_STREAM"))],
    [undici8, retryable("transport", { code: "UND_ERR_INFO", http2_code: "NO_ERROR" })],
    [["global fetch"], retryable("transport", { code: "UND_ERR_SOCKET", http2_code: "NO_ERROR" })],
  ],
  "GOAWAY with our stream, before the head": goneAway,
  "GOAWAY with our stream, in the body": goneAway,
  "GOAWAY ENHANCE_YOUR_CALM in the body": [
    [
      [plain, telling, ...undici8],
      retryable("transport", { code: "ERR_HTTP2_SESSION_ERROR", http2_code: "ENHANCE_YOUR_CALM" }),
    ],
    [["global fetch"], retryable("transport", { code: "UND_ERR_SOCKET", http2_code: "ENHANCE_YOUR_CALM" })],
  ],
  "GOAWAY PROTOCOL_ERROR in the body": [
    [
      [plain, telling, ...undici8],
      final("transport", { code: "ERR_HTTP2_SESSION_ERROR", http2_code: "PROTOCOL_ERROR" }),
    ],
    [["global fetch"], final("transport", { code: "UND_ERR_SOCKET", http2_code: "PROTOCOL_ERROR" })],
  ],
  "HTTP/2 connection closed in the body": [...silent, [undici, broken("UND_ERR_SOCKET")]],
  "HTTP/2 connection reset in the body": [
    [[plain, ...undici], broken("ECONNRESET")],
    [[telling], retryable("transport", { code: "ECONNRESET", http2_code: "INTERNAL_ERROR" })],
  ],
  "clean end of an HTTP/2 stream without a marker": all("no error"),
};

/** HTTP/2 over TLS. */
export const http2: Section = {
  title: "HTTP/2",
  about: [
    "These are errors of a transport below `./fetch`, over TLS; `ProviderClient` speaks HTTP/1.1. The server sends every reset.",
    "",
    "- undici hides the last stream id of a GOAWAY, so only node:http2 reports that our stream was refused.",
    "- undici ends a body cleanly at CANCEL or NO_ERROR. So does node:http2, even if the connection closes; only its `rstCode` shows the reset.",
    "- At a GOAWAY, Node's own undici reports the GOAWAY's code, and undici 8 in most cases only a closed socket.",
    "- `not processed` counts only if nothing of the response has arrived.",
  ].join("\n"),
  clients: http2Clients,
  faults: http2Faults,
  expected,
};
