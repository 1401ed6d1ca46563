/**
 * Carries one request over a stream of an HTTP/2 connection, as undici carries one over HTTP/1.1: the same calls in the same order.
 */
import { validateHeaderName, validateHeaderValue } from "node:http";
import { type ClientHttp2Session, type ClientHttp2Stream, constants, type OutgoingHttpHeaders } from "node:http2";
import { Readable } from "node:stream";
import type { Dispatcher } from "@effect/platform-node/Undici";

/**
 * How a stream or connection broke. The fields are those that the classifier reads: the code of a reset, or a GOAWAY with the last
 * stream that was taken up.
 */
export class Http2Broken extends Error {
  override readonly name = "Http2Broken";
  readonly code: string;
  readonly rstCode?: number;
  readonly goawayCode?: number;
  readonly lastStreamID?: number;
  readonly streamId?: number;

  constructor(
    code: string,
    fields: Partial<Record<"rstCode" | "goawayCode" | "lastStreamID" | "streamId", number>> = {},
    cause?: unknown,
  ) {
    super("The HTTP/2 stream ended before its response did", cause === undefined ? {} : { cause });
    this.code = code;
    Object.assign(this, fields);
  }
}

/** What a stream tells its connection. */
export interface StreamHost {
  /** Something came from the peer. */
  readonly heard: () => void;
  /** The stream has broken; its connection may know why. */
  readonly broken: (own: { readonly error: Error | undefined; readonly id: number; readonly reset: number }) => Error;
  /** It is closed. */
  readonly over: (stream: Http2Stream) => void;
  /** Bytes that were written on the connection so far. */
  readonly written: () => number;
  /** So many of them have come to the peer: it has responded to what ended with them. */
  readonly came: (bytes: number) => void;
}

/** One stream. */
export class Http2Stream implements Dispatcher.DispatchController {
  readonly #handler: Dispatcher.DispatchHandler;
  readonly #host: StreamHost;
  #stream: ClientHttp2Stream | undefined;
  #error: Error | undefined;
  /** Its head has come. The handler may have taken `rawHeaders` away since. */
  #begun = false;
  /** The peer has said the response's end. */
  #ended = false;
  #settled = false;
  aborted = false;
  paused = false;
  reason: Error | null = null;
  rawHeaders: Array<string> | null = null;

  constructor(handler: Dispatcher.DispatchHandler, host: StreamHost) {
    this.#handler = handler;
    this.#host = host;
  }

  /** Writes the request: from here on a part of it may be on its way. */
  send(session: ClientHttp2Session, { body, headers, method, path, origin }: Dispatcher.DispatchOptions): void {
    this.#handler.onRequestStart?.(this, null);
    if (this.aborted) {
      this.#host.over(this);
      return;
    }
    try {
      const { host, protocol } = new URL(String(origin));
      const sized = body instanceof Uint8Array ? { "content-length": String(body.byteLength) } : {};
      const fields = { ":method": method, ":path": path, ":authority": host, ":scheme": protocol.slice(0, -1) };
      const whole = body === null || body === undefined;
      this.#stream = session.request({ ...fields, ...sized, ...headersOf(headers) }, { endStream: whole });
      this.#listen(session, this.#stream);
      if (body instanceof Uint8Array) writeBytes(body, this.#stream);
      else if (body instanceof Readable) this.#write(body, this.#stream);
      else if (!whole) throw new TypeError("A body over HTTP/2 is bytes or a stream of them");
    } catch (error) {
      this.#fail(error instanceof Error ? error : new Http2Broken("ERR_HTTP2_ERROR"));
      this.#stream?.close(constants.NGHTTP2_CANCEL);
      if (this.#stream === undefined) this.#host.over(this);
    }
  }

  abort(reason: Error): void {
    if (this.aborted || this.#settled) return;
    this.aborted = true;
    this.reason = reason;
    this.#stream?.close(constants.NGHTTP2_CANCEL);
    this.#fail(reason);
  }

  pause(): void {
    this.paused = true;
    this.#stream?.pause();
  }

  resume(): void {
    this.paused = false;
    this.#stream?.resume();
  }

  #listen(session: ClientHttp2Session, stream: ClientHttp2Stream): void {
    stream.on("headers", (headers) => {
      this.#host.heard();
      if (!this.#settled) this.#handler.onResponseStart?.(this, Number(headers[":status"]), {}, "");
    });
    let written: number | undefined;
    stream.on("finish", () => {
      written = this.#host.written();
    });
    stream.on("response", (headers, _, raw: ReadonlyArray<string> | undefined) => {
      this.#host.heard();
      if (written !== undefined) this.#host.came(written);
      if (this.#settled) return;
      const { ":status": status, ...fields } = headers;
      this.#begun = true;
      this.rawHeaders = regular(raw ?? []);
      this.#handler.onResponseStart?.(this, Number(status), { ...fields }, "");
      stream.on("data", (chunk: Buffer) => {
        this.#host.heard();
        if (!this.#settled) this.#handler.onResponseData?.(this, chunk);
      });
    });
    // node:http2 ends a stream that was reset, and one whose connection is destroyed, as if its response had ended. It closes the stream
    // before that, and behind an end that the peer has said: which of them it is shows only here.
    const push = stream.push;
    const pushed = (chunk: unknown, encoding?: BufferEncoding): boolean => {
      if (chunk === null && !stream.closed && !session.destroyed) this.#ended = true;
      return push.call(stream, chunk, encoding);
    };
    stream.push = pushed;
    stream.on("end", () => {
      if (this.#ended && this.#begun) {
        this.#finish();
        // A peer that has answered needs the rest of the request no more (RFC 9113, 8.1), and may never read it.
        if (!stream.writableFinished) stream.close(constants.NGHTTP2_CANCEL);
      }
      // node:http2 lets a stream that was reset go once its request is written, which nothing writes any more.
      if (stream.closed) stream.destroy();
    });
    stream.on("error", (error: Error) => {
      this.#error ??= error;
    });
    stream.on("close", () => {
      const reset = stream.rstCode ?? constants.NGHTTP2_NO_ERROR;
      this.#fail(this.#host.broken({ error: this.#error, id: stream.id ?? Number.POSITIVE_INFINITY, reset }));
      this.#host.over(this);
    });
  }

  /**
   * Writes a body that comes, for as long as its stream takes it. `pipeline` is not for node:http2: where a stream is closed in the middle
   * of its body, node:http2 may write empty frames without an end then, within one turn, and the process stands still (Node 24.21).
   */
  #write(body: Readable, stream: ClientHttp2Stream): void {
    const cut = (): void => this.abort(new Http2Broken("ERR_STREAM_PREMATURE_CLOSE"));
    const stop = (): void => {
      body.off("close", cut).unpipe(stream).destroy();
    };
    body.on("error", (error: Error) => this.abort(error));
    body.on("end", () => body.off("close", cut)).on("close", cut);
    stream.on("aborted", stop).on("close", stop);
    body.pipe(stream);
  }

  #finish(): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#handler.onResponseEnd?.(this, {});
  }

  #fail(error: Error): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#handler.onResponseError?.(this, error);
  }
}

/**
 * Bytes that are handed over at one time: node:http2 takes as much as the peer's window permits and counts it as written, so that nothing would
 * say whether an upload moves.
 */
const sliceBytes = 256 * 1024;

const writeBytes = (body: Uint8Array, stream: ClientHttp2Stream): void => {
  let at = 0;
  const next = (): void => {
    for (let goesOn = true; goesOn && !stream.closed; ) {
      const slice = body.subarray(at, at + sliceBytes);
      at += sliceBytes;
      if (at >= body.byteLength) {
        stream.off("drain", next).end(slice);
        return;
      }
      goesOn = stream.write(slice);
    }
  };
  stream.on("drain", next);
  next();
};

/**
 * The fields of a request: HTTP/2 has names in lower case only, one line for a repeated name, and none that speak of a connection.
 *
 * @throws TypeError for a name or a value that cannot be sent
 */
export const headersOf = (given: Dispatcher.DispatchOptions["headers"]): OutgoingHttpHeaders => {
  // Without a prototype: a header may be named as what an object has.
  const fields: Record<string, string> = Object.create(null);
  for (const [name, value] of entriesOf(given)) {
    const key = name.toLowerCase();
    if (connectionFields.has(key)) continue;
    validateHeaderName(key);
    validateHeaderValue(key, value);
    const before = fields[key];
    fields[key] = before === undefined ? value : `${before}${key === "cookie" ? "; " : ", "}${value}`;
  }
  return fields;
};

/** RFC 9113, 8.2.2; `host` is said by `:authority`. */
const connectionFields: ReadonlySet<string> = new Set([
  "connection",
  "host",
  "http2-settings",
  "keep-alive",
  "proxy-connection",
  "te",
  "transfer-encoding",
  "upgrade",
]);

const entriesOf = (given: Dispatcher.DispatchOptions["headers"]): ReadonlyArray<readonly [string, string]> => {
  if (given === null || given === undefined) return [];
  if (!Array.isArray(given)) return Object.entries(given).map(([name, value]) => [name, String(value)]);
  const entries: Array<readonly [string, string]> = [];
  for (let at = 0; at + 1 < given.length; at += 2) entries.push([String(given[at]), String(given[at + 1])]);
  return entries;
};

/** Names and values of a response without those that begin with a colon, flat, as they came. */
const regular = (raw: ReadonlyArray<string>): Array<string> => {
  const flat: Array<string> = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] ?? "";
    if (!name.startsWith(":")) flat.push(name, raw[at + 1] ?? "");
  }
  return flat;
};
