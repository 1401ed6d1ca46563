/**
 * Answers connections whose bytes are not HTTP/1.1.
 *
 * A client that speaks HTTP/2 gets its answer in HTTP/2, so that its user learns how to reach the gateway. AWS's SDK for Bedrock is such a
 * client by default, and without an answer it reports only that its session was closed. Any other connection is answered as Node does
 * without a listener.
 */
import type { Server } from "node:http";
import { Socket } from "node:net";
import type { Duplex } from "node:stream";

/** The message for a client that speaks HTTP/2. */
export const http2Message =
  "stream-recovery gateway: this port speaks HTTP/1.1 only. In AWS's SDK for JavaScript, pass `requestHandler: new NodeHttpHandler()` to the client.";

/** Answers the invalid bytes of a server's connections. */
export const answerProtocolErrors = (server: Server): void => {
  server.on("clientError", (error: NodeJS.ErrnoException, socket: Duplex) => {
    if (!socket.writable || isAnswering(socket)) return void socket.destroy();
    const sent = Reflect.get(error, "rawPacket");
    if (error.code !== "HPE_PAUSED_H2_UPGRADE" || !Buffer.isBuffer(sent))
      return void socket.end(`HTTP/1.1 ${statusOf(error.code)}\r\nConnection: close\r\n\r\n`, () => socket.destroy());
    socket.end(http2Answer(sent));
    // The client closes the connection once it has the answer. A reset could discard the answer before the client has read it.
    if (socket instanceof Socket) socket.setTimeout(lingerMs, () => socket.destroy());
  });
};

/** Time for which an HTTP/2 client may read its answer, in milliseconds. */
const lingerMs = 1_000;

/** True if a response is under way on the connection. An answer would become part of it. */
const isAnswering = (socket: Duplex): boolean => {
  const response: unknown = Reflect.get(socket, "_httpMessage"); // Node's own field, which its default handler reads too
  return typeof response === "object" && response !== null && Reflect.get(response, "headersSent") === true;
};

const statusOf = (code = ""): string => statuses.get(code) ?? "400 Bad Request";

const statuses: ReadonlyMap<string, string> = new Map([
  ["HPE_HEADER_OVERFLOW", "431 Request Header Fields Too Large"],
  ["HPE_CHUNK_EXTENSIONS_OVERFLOW", "413 Payload Too Large"],
  ["ERR_HTTP_REQUEST_TIMEOUT", "408 Request Timeout"],
]);

// HTTP/2 (RFC 9113, RFC 7541)

/** Length of the preface that an HTTP/2 client sends first, in bytes. */
const prefaceBytes = 24;

const frameType = { data: 0, headers: 1, settings: 4, goAway: 7 } as const;

const frame = (type: number, flags: number, stream: number, payload: Buffer): Buffer => {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
};

/** Builds the answer: a response with status 400 to the first request, if that request's head has arrived, and the end of the session. */
const http2Answer = (sent: Buffer): Buffer => {
  const stream = requestIn(sent);
  const end = Buffer.alloc(8);
  end.writeUInt32BE(stream ?? 0, 0);
  end.writeUInt32BE(http11Required, 4);
  return Buffer.concat([
    frame(frameType.settings, 0, 0, Buffer.alloc(0)),
    ...(stream === undefined ? [] : [frame(frameType.headers, endHeaders, stream, responseHead)]),
    ...(stream === undefined ? [] : [frame(frameType.data, endStream, stream, responseBody)]),
    frame(frameType.goAway, 0, 0, Buffer.concat([end, Buffer.from(http2Message)])),
  ]);
};

/** Returns the stream of the first request; undefined if the head of that request has not arrived. */
const requestIn = (sent: Buffer): number | undefined => {
  for (let at = prefaceBytes; at + 9 <= sent.length; at += 9 + sent.readUIntBE(at, 3))
    if (sent.readUInt8(at + 3) === frameType.headers) return sent.readUInt32BE(at + 5);
  return undefined;
};

const endStream = 0x1;
const endHeaders = 0x4;
/** The error code with which a server asks for HTTP/1.1. */
const http11Required = 0xd;

/** Response body for HTTP/2 requests, in AWS's error format, because AWS's SDK sends them by default. */
const responseBody = Buffer.from(JSON.stringify({ __type: "ValidationException", message: http2Message }));

/** `:status: 400` and `content-type: application/json`, each by its index in the static table. */
const responseHead = Buffer.concat([
  Buffer.of(0x8c, 0x0f, 0x10, "application/json".length),
  Buffer.from("application/json"),
]);
