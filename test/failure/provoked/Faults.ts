/**
 * Breaks a connection in every way that a loopback server can.
 */
import type * as net from "node:net";
import * as Certificates from "./Certificates.ts";
import type { Ask, Client, Provoked } from "./clients/Client.ts";
import { provoke } from "./clients/Client.ts";
import { type Behaviour, closedPort, withServer } from "./Servers.ts";

/** One kind of break; `run` returns the client's outcome. */
export interface Fault {
  readonly name: string;
  readonly run: (client: Client) => Promise<Provoked>;
  /** Names of the clients that do not support it. */
  readonly without?: ReadonlyArray<string>;
}

/** Limits that are short enough for a test, and that a healthy loopback does not reach. */
const limitMs = 40;

const chunk = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;
const start = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n";
const last = "connection: close\r\n";
const chunked = `${start}transfer-encoding: chunked\r\n\r\n`;
const lastChunked = `${start}${last}transfer-encoding: chunked\r\n\r\n`;

/** Clients over node:http, which has no limits that end in an error of its own. Effect's undici backend sets its own. */
const nodeBacked = ["node:http", "Effect HttpClient (node:http)"];
const effectUndici = "Effect HttpClient (undici)";

/** A label of more than 63 octets (RFC 1035, 2.3.4): the resolver itself rejects the name, with or without a network. */
const unknownHost = `${"x".repeat(64)}.invalid`;

/** A first event that every dialect accepts. */
const firstEvents: Readonly<Record<string, string>> = {
  "openai-chat": `data: {"id":"1","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"hello"}}]}\n\n`,
  "anthropic-messages": `event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}\n\n`,
  "ai-gateway": `data: {"type":"text-start","id":"0"}\n\ndata: {"type":"text-delta","id":"0","delta":"hello"}\n\n`,
};

/** The first event of a stream in a client's dialect. */
export const firstEvent = (client: Client): string => firstEvents[client.protocol ?? "openai-chat"] ?? "";

/** A whole answer that streams some text, one event per text. */
export const streamed = (...texts: ReadonlyArray<string>): string => `${chunked}${chunks(...texts)}`;

const chunks = (...texts: ReadonlyArray<string>): string =>
  texts
    .filter((text) => text !== "")
    .map(chunk)
    .join("");

const plain =
  (behaviour: (client: Client) => Behaviour, limits: Omit<Ask, "url"> = {}, atOnce = false) =>
  (client: Client): Promise<Provoked> =>
    withServer(behaviour(client), { atOnce }, (port) =>
      provoke(client, { url: `http://127.0.0.1:${port}/`, ...limits }),
    );

/** Aborts by our own signal when the client has read the first bytes. */
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
const closeAfter = (bytes: string) => (socket: net.Socket) => void socket.end(bytes);

const connecting: ReadonlyArray<Fault> = [
  {
    name: "connection refused",
    run: async (client) => provoke(client, { url: `http://127.0.0.1:${await closedPort()}/` }),
  },
  { name: "name that no DNS knows", run: (client) => provoke(client, { url: `http://${unknownHost}/` }) },
  { name: "connect timeout (no TLS answer)", run: unsecured(silent, { connectMs: limitMs }), without: nodeBacked },
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
  { name: "head timeout", run: plain(() => silent, { headMs: limitMs }), without: [...nodeBacked, effectUndici] },
  {
    name: "the client's own timeout",
    run: plain(() => silent, { timeoutMs: limitMs }),
    without: ["node:http", "undici", "undici fetch", "global fetch", "global fetch over undici 8"],
  },
  { name: "abort by a signal before the head", run: abortBeforeHead },
  {
    name: "AbortSignal.timeout before the head",
    run: (client) => plain(() => silent, { signal: AbortSignal.timeout(limitMs) })(client),
  },
];

type Moment = "onHead" | "onBytes";

/** Answers, and acts once the client has seen the head or the first bytes, so that no result depends on the order of two packets. */
const breaking =
  (bytes: (text: string) => string, moment: Moment, act: (socket: net.Socket) => void) =>
  (client: Client): Promise<Provoked> => {
    const sockets: Array<net.Socket> = [];
    return withServer(
      (socket) => {
        sockets.push(socket);
        socket.write(bytes(firstEvent(client)));
      },
      {},
      (port) => provoke(client, { url: `http://127.0.0.1:${port}/`, [moment]: () => sockets.splice(0).forEach(act) }),
    );
  };

const reset = (socket: net.Socket) => void socket.resetAndDestroy();
const close = (socket: net.Socket) => void socket.end();

const inside: ReadonlyArray<Fault> = [
  { name: "reset after the head", run: breaking(() => chunked, "onHead", reset) },
  { name: "close after the head", run: breaking(() => chunked, "onHead", close) },
  { name: "reset in the body", run: breaking(streamed, "onBytes", reset) },
  { name: "close in the body", run: breaking(streamed, "onBytes", close) },
  {
    name: "reset in a body with connection: close",
    run: breaking((text) => `${lastChunked}${chunks(text)}`, "onBytes", reset),
  },
  {
    name: "close in a body with connection: close",
    run: breaking((text) => `${lastChunked}${chunks(text)}`, "onBytes", close),
  },
  {
    name: "close inside a content-length",
    run: breaking((text) => `${start}content-length: 5000\r\n\r\n${text}`, "onBytes", close),
  },
  {
    name: "close of a body without a length",
    run: breaking((text) => `${start}${last}\r\n${text}`, "onBytes", close),
  },
  {
    name: "reset of a body without a length",
    run: breaking((text) => `${start}${last}\r\n${text}`, "onBytes", reset),
  },
  { name: "broken chunk size", run: breaking(streamed, "onBytes", (socket) => void socket.end("ZZ\r\n")) },
  {
    name: "broken gzip",
    run: plain(() => closeAfter(`${start}content-encoding: gzip\r\ncontent-length: 20\r\n\r\n${"x".repeat(20)}`)),
  },
  {
    name: "body timeout",
    run: plain((client) => (socket) => void socket.write(streamed(firstEvent(client))), { bodyMs: limitMs }),
    without: [...nodeBacked, effectUndici],
  },
  { name: "abort by a signal in the body", run: abortInBody },
];

/** All faults of a connection, in the order of a request. */
export const faults: ReadonlyArray<Fault> = [...connecting, ...before, ...inside];
