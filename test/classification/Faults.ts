/**
 * Breaks one connection in every way that a loopback server can break it.
 */
import type * as net from "node:net";
import * as Certificates from "./Certificates.ts";
import type { Ask, Client, Provoked } from "./Client.ts";
import { provoke } from "./Client.ts";
import { type Behaviour, closedPort, withServer } from "./Servers.ts";

/** One way to break; `run` gives what the client says of it. */
export interface Fault {
  readonly name: string;
  readonly run: (client: Client) => Promise<Provoked>;
}

/** Limits short enough for a test and not to be met by a healthy loopback. */
const limitMs = 40;

const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const start = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n";
const chunked = `${start}transfer-encoding: chunked\r\n\r\n`;

/** An event that every dialect here takes for a beginning. */
const firstEvents: Readonly<Record<string, string>> = {
  "openai-chat": `data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"hello"}}]}\n\n`,
  "anthropic-messages": `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}\n\n`,
  "ai-gateway": `data: {"type":"text-start","id":"0"}\n\ndata: {"type":"text-delta","id":"0","delta":"hello"}\n\n`,
};

/** The beginning of a stream in a client's dialect. */
export const firstEvent = (client: Client): string => firstEvents[client.protocol ?? "openai-chat"] ?? "";

/** A whole answer that streams some text, event for event. */
export const streamed = (...texts: ReadonlyArray<string>): string => `${chunked}${texts.map(chunk).join("")}`;

const plain =
  (behaviour: (client: Client) => Behaviour, limits: Omit<Ask, "url"> = {}, atOnce = false) =>
  (client: Client): Promise<Provoked> =>
    withServer(behaviour(client), { atOnce }, (port) =>
      provoke(client, { url: `http://127.0.0.1:${port}/`, ...limits }),
    );

/** Aborts by a signal of ours when the client has read the first bytes. */
const abortInBody = (client: Client): Promise<Provoked> => {
  const controller = new AbortController();
  return withServer(
    (socket) => void socket.write(streamed(firstEvent(client))),
    {},
    (port) =>
      provoke(client, {
        url: `http://127.0.0.1:${port}/`,
        signal: controller.signal,
        onBytes: () => controller.abort(),
      }),
  );
};

/** Aborts when the server has the request. */
const abortBeforeHead = (client: Client): Promise<Provoked> => {
  const controller = new AbortController();
  return withServer(
    () => controller.abort(),
    {},
    (port) => provoke(client, { url: `http://127.0.0.1:${port}/`, signal: controller.signal }),
  );
};

const secured =
  (certificate: string, ca?: string) =>
  (client: Client): Promise<Provoked> =>
    withServer(
      (socket) => void socket.end(streamed(firstEvent(client))),
      { certificate },
      (port) => provoke(client, { url: `https://127.0.0.1:${port}/`, ...(ca === undefined ? {} : { ca }) }),
    );

/** A server in plain text, and a client that begins a TLS handshake with it. */
const unsecured =
  (behaviour: Behaviour, limits: Omit<Ask, "url"> = {}) =>
  (client: Client): Promise<Provoked> =>
    withServer(behaviour, {}, (port) => provoke(client, { url: `https://127.0.0.1:${port}/`, ...limits }));

const silent: Behaviour = () => undefined;
const resetAfter = (bytes: string) => (socket: net.Socket) => void socket.write(bytes, () => socket.resetAndDestroy());
const closeAfter = (bytes: string) => (socket: net.Socket) => void socket.end(bytes);

/** The head alone, then a reset once the client has had the turn to see it: both in one segment is another fault. */
const connecting: ReadonlyArray<Fault> = [
  {
    name: "connection refused",
    run: async (client) => provoke(client, { url: `http://127.0.0.1:${await closedPort()}/` }),
  },
  { name: "name that no DNS knows", run: (client) => provoke(client, { url: "http://provider.invalid/" }) },
  { name: "connect timeout (no TLS answer)", run: unsecured(silent, { connectMs: limitMs }) },
  { name: "TLS handshake reset", run: unsecured((socket) => socket.resetAndDestroy()) },
  { name: "TLS handshake closed", run: unsecured((socket) => socket.destroy()) },
  { name: "TLS to a port that speaks HTTP", run: unsecured(closeAfter("HTTP/1.1 400 Bad Request\r\n\r\n")) },
  { name: "self-signed certificate", run: secured(Certificates.localhost) },
  { name: "expired certificate", run: secured(Certificates.expired, Certificates.expired) },
  { name: "certificate of another host", run: secured(Certificates.elsewhere, Certificates.elsewhere) },
];

const before: ReadonlyArray<Fault> = [
  { name: "reset before the head", run: plain(() => (socket) => socket.resetAndDestroy()) },
  { name: "close before the head", run: plain(() => closeAfter("")) },
  { name: "close inside the head", run: plain(() => closeAfter("HTTP/1.1 200 OK\r\ncontent-")) },
  { name: "no HTTP", run: plain(() => closeAfter("SSH-2.0-OpenSSH_9.2\r\n")) },
  { name: "head larger than allowed", run: plain(() => closeAfter(`${start}x-large: ${"x".repeat(100_000)}\r\n\r\n`)) },
  { name: "head timeout", run: plain(() => silent, { headMs: limitMs }) },
  { name: "the client's own timeout", run: plain(() => silent, { timeoutMs: limitMs }) },
  { name: "abort by a signal before the head", run: abortBeforeHead },
  {
    name: "AbortSignal.timeout before the head",
    run: (client) => plain(() => silent, { signal: AbortSignal.timeout(limitMs) })(client),
  },
];

const inside: ReadonlyArray<Fault> = [
  { name: "reset after the head", run: plain(() => resetAfter(chunked)) },
  { name: "reset in the body", run: plain((client) => resetAfter(streamed(firstEvent(client)))) },
  { name: "close inside a chunked body", run: plain((client) => closeAfter(streamed(firstEvent(client)))) },
  {
    name: "close inside a content-length",
    run: plain((client) => closeAfter(`${start}content-length: 5000\r\n\r\n${firstEvent(client)}`)),
  },
  {
    name: "close of a body without a length",
    run: plain((client) => closeAfter(`${start}\r\n${firstEvent(client)}`)),
  },
  { name: "broken chunk size", run: plain((client) => closeAfter(`${streamed(firstEvent(client))}ZZ\r\n`)) },
  {
    name: "broken gzip",
    run: plain(() => closeAfter(`${start}content-encoding: gzip\r\ncontent-length: 20\r\n\r\n${"x".repeat(20)}`)),
  },
  {
    name: "body timeout",
    run: plain((client) => (socket) => void socket.write(streamed(firstEvent(client))), { bodyMs: limitMs }),
  },
  { name: "abort by a signal in the body", run: abortInBody },
];

/** All faults of a connection, in the order of a request. */
export const faults: ReadonlyArray<Fault> = [...connecting, ...before, ...inside];
