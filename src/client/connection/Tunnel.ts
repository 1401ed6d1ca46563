/**
 * Opens a connection to an origin through an egress proxy. It connects to the proxy, sends CONNECT, and opens the origin's TLS inside the
 * tunnel.
 *
 * Plain `http` uses CONNECT too. If the request line had an absolute address instead, the proxy's own 502 or 403 would resemble the
 * provider's response, and the proxy's credentials would be sent together with the provider's.
 */
import type { Socket } from "node:net";
import type * as Undici from "@effect/platform-node/Undici";
import { Redacted } from "effect";
import { lookup, proxyPrefix } from "../../domain/TransportCodes.ts";
import type { EgressProxy } from "./EgressProxy.ts";

/** A connection that is being opened. */
export interface Opening {
  /** Abandons the opening. No socket remains, and the callback gets the error unless it was already called. */
  readonly destroy: (error: Error) => unknown;
}

/**
 * The proxy itself failed, and no byte of a request was written. The code starts with `PROXY_`, followed by the status of the proxy's
 * response or the code of the error on the way to the proxy. It contains no address.
 */
export class ProxyFailed extends Error {
  override readonly name = "ProxyFailed";
  readonly code: string;

  constructor(code: string, cause?: unknown) {
    super("The egress proxy did not open a tunnel", cause === undefined ? {} : { cause });
    this.code = code;
  }
}

/** Connectors for a socket to a proxy, and for TLS over that socket. */
export interface TunnelConnectors {
  readonly toProxy: Undici.buildConnector.connector;
  readonly toOrigin: Undici.buildConnector.connector;
}

/** One tunnel while it is being opened. */
export class Tunnel implements Opening {
  readonly #proxy: EgressProxy;
  readonly #target: Undici.buildConnector.Options;
  readonly #connectors: TunnelConnectors;
  readonly #callback: Undici.buildConnector.Callback;
  /** The connection to the proxy. */
  #socket: Socket | undefined;
  /** The origin's TLS over that connection. */
  #inside: Socket | undefined;
  #over = false;
  /** True after the proxy has opened the tunnel. Only the TLS handshake with the origin is still to come. */
  open = false;

  /**
   * @param target destination of the tunnel, as undici asks for it
   * @param callback called once, with the socket or the error
   */
  constructor(
    proxy: EgressProxy,
    target: Undici.buildConnector.Options,
    connectors: TunnelConnectors,
    callback: Undici.buildConnector.Callback,
  ) {
    this.#proxy = proxy;
    this.#target = target;
    this.#connectors = connectors;
    this.#callback = callback;
    const { hostname, port, secure } = proxy;
    const way = { protocol: secure ? "https:" : "http:", hostname, host: withBrackets(hostname), port: String(port) };
    this.#socket = asSocket(connectors.toProxy(way, (error, socket) => this.#onConnected(error, socket)));
  }

  destroy(error: Error): void {
    this.#fail(error);
  }

  /**
   * Continues after the connection to the proxy was opened or has failed. With an error, undici omits the socket, although its type says
   * null.
   */
  #onConnected(error: Error | null, socket: Socket | null | undefined): void {
    if (socket === null || socket === undefined) {
      this.#fail(proxyFailureOf(error));
      return;
    }
    if (this.#over) {
      socket.destroy();
      return;
    }
    this.#socket = socket;
    const response = new ConnectResponse();
    const readable = (): void => {
      for (let bytes = read(socket); bytes !== null; bytes = read(socket)) {
        const reading = response.push(bytes);
        if (reading.kind === "more") continue;
        settle();
        this.#onResponse(reading, socket);
        return;
      }
    };
    const onClose = (): void => this.#fail(new ProxyFailed(`${proxyPrefix}CLOSED`));
    const onError = (broken: Error): void => this.#fail(proxyFailureOf(broken));
    const settle = (): void => {
      socket.off("readable", readable).off("end", onClose).off("close", onClose).off("error", onError);
    };
    socket.on("error", onError).on("end", onClose).on("close", onClose).on("readable", readable);
    socket.write(connectRequest(this.#target, this.#proxy));
  }

  #onResponse(reading: ConnectReading, socket: Socket): void {
    if (reading.kind !== "status") this.#fail(new ProxyFailed(proxyPrefix + reading.kind.toUpperCase()));
    else if (reading.status > 299) this.#fail(new ProxyFailed(`${proxyPrefix}${reading.status}`));
    else this.#continueInTunnel(socket);
  }

  /** Continues in the open tunnel. From here on, failures are those of the origin. */
  #continueInTunnel(socket: Socket): void {
    this.open = true;
    if (this.#target.protocol !== "https:") {
      this.#complete(socket);
      return;
    }
    const inside = { ...this.#target, httpSocket: socket };
    const onSecured = (error: Error | null, secured: Socket | null | undefined): void => {
      if (secured === null || secured === undefined) this.#fail(error);
      else this.#complete(secured);
    };
    try {
      this.#inside = asSocket(this.#connectors.toOrigin(inside, onSecured));
    } catch (error) {
      // An unreadable certificate throws here, inside an event of the socket, so the error must be caught here.
      this.#fail(error instanceof Error ? error : null);
    }
  }

  #complete(socket: Socket): void {
    if (this.#over) {
      socket.destroy();
      return;
    }
    this.#over = true;
    this.#callback(null, socket);
  }

  #fail(error: Error | null | undefined): void {
    if (this.#over) return;
    this.#over = true;
    // If TLS itself fails, it leaves the connection below it open, so both sockets are destroyed.
    for (const socket of [this.#inside, this.#socket]) socket?.on("error", ignoreError).destroy();
    this.#callback(error ?? new ProxyFailed(`${proxyPrefix}FAILED`), null);
  }
}

/** An abandoned socket may still report an error, which no longer matters. */
const ignoreError = (): void => undefined;

/** Gives the sockets of undici's connectors a type, because the type of the connectors does not mention them. */
const asSocket = (socket: unknown): Socket | undefined => socket as Socket | undefined;

const read = (socket: Socket): Uint8Array | null => {
  const bytes: unknown = socket.read();
  return bytes instanceof Uint8Array ? bytes : null;
};

/** Wraps the error of the connection to the proxy. Keeps the code of the error only if it is a known one. */
const proxyFailureOf = (error: Error | null): ProxyFailed => {
  const inner: unknown = error !== null && "code" in error ? error.code : undefined;
  const code = typeof inner === "string" ? `${proxyPrefix}${inner}` : "";
  return new ProxyFailed(lookup(code) === undefined ? `${proxyPrefix}FAILED` : code, error ?? undefined);
};

const connectRequest = ({ hostname, port, protocol }: Undici.buildConnector.Options, proxy: EgressProxy): string => {
  const authority = `${withBrackets(hostname)}:${port || (protocol === "https:" ? 443 : 80)}`;
  const lines = [`CONNECT ${authority} HTTP/1.1`, `host: ${authority}`, "proxy-connection: keep-alive"];
  if (proxy.authorization !== undefined) lines.push(`proxy-authorization: ${Redacted.value(proxy.authorization)}`);
  return `${lines.join("\r\n")}\r\n\r\n`;
};

const withBrackets = (hostname: string): string => (hostname.includes(":") ? `[${hostname}]` : hostname);

/**
 * Reads a proxy's response to CONNECT: its status, or the reason why it is invalid.
 */

/** Maximum size of the head of a proxy's response, in bytes, including interim responses. Node has the same maximum for every head. */
export const connectHeadBytesMax = 16 * 1024;

/**
 * The response so far. `bad_response`: the bytes are not an HTTP/1 response, or data follows its head. The tunnel begins after the head,
 * and a server sends no data in it before the client does. `head_overflow`: the head is too long.
 */
export type ConnectReading =
  | { readonly kind: "more" }
  | { readonly kind: "status"; readonly status: number }
  | { readonly kind: "bad_response" | "head_overflow" };

/** Reads one response as it arrives. */
export class ConnectResponse {
  #text = "";
  #interim = 0;

  /** Adds the next bytes. Any result other than `more` is final. */
  push(bytes: Uint8Array): ConnectReading {
    this.#text += Buffer.from(bytes).toString("latin1");
    for (;;) {
      if (this.#interim + this.#text.length > connectHeadBytesMax) return { kind: "head_overflow" };
      // Bytes that cannot be HTTP are reported at once, without waiting for the connect clock.
      const begun = this.#text.slice(0, protocol.length);
      if (begun !== protocol.slice(0, begun.length)) return { kind: "bad_response" };
      const end = /\r?\n\r?\n/.exec(this.#text);
      if (end === null) return { kind: "more" };
      const status = Number(/^HTTP\/1\.[01] ([1-5]\d\d)(?:[ \r\n])/.exec(this.#text)?.[1]);
      if (Number.isNaN(status)) return { kind: "bad_response" };
      const behind = end.index + end[0].length;
      if (status >= 200) return this.#readFinal(status, behind);
      // After a 1xx response, the final response is still to come (RFC 9110, 15.2).
      this.#interim += behind;
      this.#text = this.#text.slice(behind);
    }
  }

  /** A refusal may have a body, which is not read. A success has none (RFC 9110, 9.3.6). */
  #readFinal(status: number, behind: number): ConnectReading {
    const opened = status < 300;
    return opened && this.#text.length > behind ? { kind: "bad_response" } : { kind: "status", status };
  }
}

const protocol = "HTTP/1.";
