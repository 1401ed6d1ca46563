/**
 * Writes one response to its client, with backpressure. The response ends complete, or it is broken in a way that no client takes for
 * complete.
 */
import type { ServerResponse } from "node:http";
import { Clock, Effect } from "effect";
import { Alarm, Alarms } from "../../adapters/relay/Alarms.ts";
import type { RelayHead } from "../../adapters/relay/RelayTransport.ts";
import type { UpstreamName } from "../config/Options.ts";
import type { Access } from "../log/AccessRecord.ts";
import type { Refused } from "../routing/Admission.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";
import { isEventStream, reasonPhrase, sendable, without, withoutBuffering } from "../upstream/Headers.ts";
import { breakOff, reset } from "./BrokenEnd.ts";
import { isUnacknowledged } from "./KernelSockets.ts";
import { discardRest, isUnread } from "./Lingering.ts";
import { wroteChunk } from "./SmallChunk.ts";

/**
 * Time after which a socket that accepts none of its pending bytes counts as silent, in milliseconds. A client that reads accepts
 * some in each round trip.
 */
export const silentMs = 500;

/** The response to one request. */
export class ClientResponse {
  readonly access: Access;
  readonly #response: ServerResponse;
  readonly #slowMs: number;
  #over = false;
  #gone = false;
  /** True if the client waits for `100 Continue` before it sends its body. */
  #expects = false;
  /** True after a refusal whose connection stays open because the client is still sending. */
  #lingers = false;
  #onGone: (() => void) | undefined;
  #isComplete: () => boolean = never;
  #wake: (() => void) | undefined;

  /** @param slowMs timeout after which a client that reads nothing is disconnected, in milliseconds */
  constructor(response: ServerResponse, slowMs: number, access: Access) {
    this.access = access;
    this.#response = response;
    this.#slowMs = slowMs;
    response.sendDate = false;
    const wake = () => {
      const waiting = this.#wake;
      this.#wake = undefined;
      waiting?.();
    };
    response.on("drain", wake);
    response.on("finish", wake);
    response.on("close", () => {
      this.#gone = true;
      // A fiber that waits for the socket resumes in this step and might end the response, so the client's departure is recorded first.
      if (!this.#over) {
        access.recordEnd(this.#isComplete() ? "whole" : "left");
        this.#onGone?.();
      }
      wake();
    });
    // Writing to a closed socket reports an error here, but `close` is the event that matters.
    response.on("error", wake);
  }

  /** True if the client left before the response ended. */
  get isGone(): boolean {
    return this.#gone && !this.#over;
  }

  /** True after the head was written. */
  get hasBegun(): boolean {
    return this.#response.headersSent;
  }

  /** Notes that the client waits for `100 Continue` before it sends its body (RFC 9110, 10.1.1); `invite` sends the `100 Continue`. */
  expectInvitation(): void {
    this.#expects = true;
  }

  /** Sends a pending `100 Continue`. Called before the body is read, and not called if the body is refused unread. */
  readonly invite = (): void => {
    if (this.#expects && !this.#gone && !this.hasBegun) this.#response.writeContinue();
    this.#expects = false;
  };

  /**
   * Checks that the client's socket is silent: it is gone, or accepts none of its pending bytes for `silentMs`. Bytes that the client has
   * not acknowledged also count as pending, on systems that report them.
   */
  get isSilent(): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      const { socket } = this.#response;
      if (this.#gone || socket === null || socket.destroyed) return Effect.succeed(true);
      const waiting = socket.writableLength;
      if (waiting === 0) return Effect.sync(() => isUnacknowledged(socket));
      const written = socket.bytesWritten - waiting;
      return Effect.map(
        Effect.sleep(silentMs),
        () => socket.destroyed || (socket.writableLength > 0 && socket.bytesWritten - socket.writableLength <= written),
      );
    });
  }

  /**
   * Registers an action for a client that leaves before the end, and replaces the previous one. It runs at once if the client has left.
   *
   * @param isComplete true if the client has received the terminal marker, so that closing cancels nothing
   */
  whenGone(act: () => void, isComplete: () => boolean = never): void {
    this.#onGone = act;
    this.#isComplete = isComplete;
    if (this.isGone) act();
  }

  /**
   * Writes a head and sends it at once.
   *
   * @param stream true if comments may be inserted between events, which makes a content length wrong
   */
  head({ headers, status, statusText }: RelayHead, stream = false): void {
    if (this.#gone || this.hasBegun) return;
    const whole = stream ? without(headers, "content-length") : headers;
    const sent = isEventStream(headers) ? withoutBuffering(whole) : whole;
    this.#response.writeHead(status, reasonPhrase(statusText), sendable(sent));
    this.access.recordHead(status);
    // An empty write sends the head. `flushHeaders` would send non-ASCII header bytes as UTF-8.
    this.#response.write(empty);
  }

  /** True if the socket accepts bytes now. After the client has left, it accepts and drops them. */
  readonly isReady = (): boolean => this.#gone || !this.#response.writableNeedDrain;

  /** Waits until the response is ready: its socket has drained, or its client has left or was disconnected. */
  get drained(): Effect.Effect<void> {
    return Effect.suspend(() => (this.isReady() ? Effect.void : this.#drained));
  }

  writeNow(chunks: ReadonlyArray<Bytes>): void {
    // Node joins the writes of one turn by itself, and its `cork` may request a drain that never comes.
    if (this.#tryCount(chunks)) for (const chunk of chunks) this.#response.write(chunk);
  }

  /**
   * Writes bytes that have just arrived, in this step. For a lone chunk this is cheaper than `writeNow`. A loop of many writes must use
   * `writeNow`, because here a client that reads as fast as the loop writes never causes a pause.
   */
  passOn(chunks: ReadonlyArray<Bytes>): void {
    if (this.#tryCount(chunks) && !wroteChunk(this.#response, chunks))
      for (const chunk of chunks) this.#response.write(chunk);
  }

  /** Counts written bytes. Returns false if the client has left. */
  #tryCount(chunks: ReadonlyArray<Bytes>): boolean {
    if (this.#gone) return false;
    if (this.#over) throw new Error("Something wrote to a response after its end");
    for (const { byteLength } of chunks) this.access.recordWrite(byteLength);
    return true;
  }

  /** Writes bytes. Returns when more may be written, or the client is gone. */
  write(chunks: ReadonlyArray<Bytes>): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.writeNow(chunks);
      return this.drained;
    });
  }

  /** Ends a complete response. Returns after the system has accepted everything, or the client is gone. */
  get end(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#over = true;
      if (this.#gone || this.#lingers) return Effect.void;
      this.access.recordEnd("whole");
      this.#response.end();
      // The system usually accepts a response in the same step. Node reports it as finished one turn later.
      const sent = this.#response.writableLength === 0 ? Effect.void : this.#drained;
      return isUnread(this.#response.req) ? Effect.andThen(sent, this.#linger) : sent;
    });
  }

  /** Lets a client that is still sending its request read the response, and closes the connection if the client does not stop. */
  get #linger(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { req, socket } = this.#response;
      return Effect.map(discardRest(req), () => {
        if (this.#lingers || !req.complete) socket?.destroy();
      });
    });
  }

  /**
   * Breaks the response after the written bytes, so that no client takes it for complete. A response that has ended stays complete, since
   * its bytes may still be on their way.
   */
  get break(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#over = true;
      this.access.recordEnd("broken");
      if (!this.#response.writableEnded) return breakOff(this.#response, this.#slowMs);
      return this.#gone || this.#response.writableFinished ? Effect.void : this.#drained;
    });
  }

  /**
   * Called after the handler has returned. Breaks a response that has not ended, so that no client keeps waiting. After a whole
   * response, lets a client that is still sending read it.
   */
  get settle(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (!this.#over) return this.break;
      return this.#lingers ? this.#linger : Effect.void;
    }).pipe(Effect.catchCause(() => Effect.sync(() => void this.#response.destroy())));
  }

  /** Reports a defect: by an error status if no head was sent, and otherwise by a break. */
  get fail(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (!this.hasBegun && !this.#over) this.refuse(defect, undefined);
      return this.settle;
    }).pipe(Effect.catchCause(() => Effect.sync(() => void this.#response.destroy())));
  }

  /** Responds with the gateway's own error document, in the format of the provider's clients. */
  refuse(
    { code, headers: demanded = [], message, reason, status }: Refused,
    upstream: UpstreamName | undefined,
    extra: RelayHead["headers"] = [],
  ): void {
    if (this.#gone || this.hasBegun) return;
    const document = errorBody({ code, status, reason, message }, upstream);
    this.access.addFacts({ refused: reason });
    this.answer(status, document, [["x-recovery-refused", reason], ...demanded, ...extra]);
  }

  /**
   * Responds with a document.
   *
   * @param own headers in addition to type and length
   */
  answer(status: number, document: object, own: RelayHead["headers"]): void {
    const type = ["content-type", "application/json"] as const;
    this.reply(status, Buffer.from(JSON.stringify(document)), [type, ...own]);
  }

  /**
   * Responds with a complete body.
   *
   * @param own headers in addition to the length
   */
  reply(status: number, body: Buffer, own: RelayHead["headers"]): void {
    if (this.#gone || this.hasBegun) return;
    const unread = isUnread(this.#response.req);
    this.#over = true;
    this.#lingers = unread;
    this.access.recordEnd("whole");
    const headers: RelayHead["headers"] = [
      ["content-length", String(body.byteLength)],
      ["x-content-type-options", "nosniff"],
      ...without(own, "x-content-type-options"),
      // The rest of an unread body would be taken for the next request.
      ...(!unread || own.some(([name]) => name === "connection") ? [] : [["connection", "close"] as const]),
    ];
    this.#response.writeHead(status, sendable(headers));
    this.access.recordHead(status);
    this.access.recordWrite(body.byteLength);
    // Ending the response would close the connection under a client that is still sending. The client gets the response first, and the
    // connection is closed after the client has stopped.
    if (!unread) return void this.#response.end(body);
    this.#response.write(body);
    this.#response.socket?.end();
  }

  get #drained(): Effect.Effect<void> {
    return Effect.flatMap(Clock.Clock, (clock) =>
      Effect.callback<void>((resume) => {
        const alarms = Alarms.of(clock);
        const done = () => {
          this.#wake = undefined;
          alarms.clear(slow);
          resume(Effect.void);
        };
        const slow = new Alarm(() => {
          const { socket } = this.#response;
          if (socket === null) this.#response.destroy();
          else reset(socket);
          done();
        });
        alarms.set(slow, alarms.now() + this.#slowMs);
        this.#wake = done;
        return Effect.sync(done);
      }),
    );
  }
}

const empty = Buffer.alloc(0);

const never = (): boolean => false;

const defect: Refused = {
  status: 500,
  reason: "defect",
  message: "A defect in the gateway ended this request. See the gateway's log.",
};

/**
 * Formats a refusal as JSON in the format of a provider.
 *
 * @param upstream the provider; OpenAI's format by default
 */
export const errorBody = ({ code, message, reason, status }: Refused, upstream?: UpstreamName): object => {
  const said = `stream-recovery gateway: ${message}`;
  if (upstream === "gemini" || upstream === "code-assist")
    return { error: { code: status, message: said, status: reason.toUpperCase() } };
  if (upstream === "ollama") return { error: said };
  if (upstream === "cohere") return { message: said };
  if (upstream === "bedrock") return { __type: `gateway_${reason}`, message: said };
  const error = { type: `gateway_${reason}`, message: said, param: null, code: code ?? reason };
  return upstream === "anthropic" ? { type: "error", error } : { error };
};
