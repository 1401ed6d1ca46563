/**
 * Writes one response to its client: as fast as the client takes it and no faster, whole, or broken so that no client can take
 * it for whole.
 */
import type { ServerResponse } from "node:http";
import { Clock, Effect } from "effect";
import { type Deadline, Deadlines } from "../../adapters/relay/deadline/Deadlines.ts";
import type { RelayHead } from "../../adapters/relay/RelayTransport.ts";
import type { UpstreamName } from "../config/Options.ts";
import type { Access } from "../log/AccessRecord.ts";
import type { Refused } from "../routing/Admission.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";
import { isEventStream, reasonPhrase, sendable, unbuffered, without } from "../upstream/Headers.ts";
import { breakOff, reset } from "./BrokenEnd.ts";
import { isUnacknowledged } from "./KernelSockets.ts";
import { discarded, isUnread } from "./Lingering.ts";
import { wroteChunk } from "./SmallChunk.ts";

/**
 * A socket that takes none of the bytes which wait for it for so long, in milliseconds, is silent: a client that reads takes some in
 * each round trip.
 */
export const silentMs = 500;

/** The response to one request. */
export class ClientResponse {
  /** What the access line says of the request. */
  readonly access: Access;
  readonly #response: ServerResponse;
  readonly #slowMs: number;
  #over = false;
  #gone = false;
  /** The client waits for a word before it sends its body. */
  #expects = false;
  /** A refusal is written, and its response stays open while the client still sends. */
  #lingers = false;
  #onGone: (() => void) | undefined;
  #isComplete: () => boolean = never;
  #wake: (() => void) | undefined;

  /** @param slowMs a client that takes nothing for so long is given up, in milliseconds */
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
      // Who waits for the socket goes on in this step, and might end the response: that its client has left is said before.
      if (!this.#over) {
        access.ended(this.#isComplete() ? "whole" : "left");
        this.#onGone?.();
      }
      wake();
    });
    // A write that meets a closed socket says so here; `close` is what counts.
    response.on("error", wake);
  }

  /** The client has gone before it had everything. */
  get gone(): boolean {
    return this.#gone && !this.#over;
  }

  /** A head has been written. */
  get begun(): boolean {
    return this.#response.headersSent;
  }

  /** The client waits for `100 Continue` before it sends its body (RFC 9110, 10.1.1); `invite` says it. */
  expectsInvitation(): void {
    this.#expects = true;
  }

  /** Asks a client that waits for it to send its body; called before a body is read, and never where it is refused unread. */
  readonly invite = (): void => {
    if (this.#expects && !this.#gone && !this.begun) this.#response.writeContinue();
    this.#expects = false;
  };

  /**
   * Whether the client's socket is silent: it has gone, or bytes wait for it of which it takes none for `silentMs`. Where the system says
   * so, also that it leaves unacknowledged what it was sent.
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
   * What is done when the client goes away before the end; the last one given counts. Called at once if it has.
   *
   * @param isComplete whether the client has the terminal marker, so that closing cancels nothing
   */
  whenGone(act: () => void, isComplete: () => boolean = never): void {
    this.#onGone = act;
    this.#isComplete = isComplete;
    if (this.gone) act();
  }

  /**
   * Writes a head and sends it at once.
   *
   * @param stream comments may come between the events: a length would be wrong
   */
  head({ headers, status, statusText }: RelayHead, stream = false): void {
    if (this.#gone || this.begun) return;
    const whole = stream ? without(headers, "content-length") : headers;
    const sent = isEventStream(headers) ? unbuffered(whole) : whole;
    this.#response.writeHead(status, reasonPhrase(statusText), sendable(sent).flat());
    this.access.headed(status);
    // A write of nothing sends the head. `flushHeaders` would send bytes above ASCII in a header as UTF-8.
    this.#response.write(empty);
  }

  /** Whether it takes bytes now. One whose client is gone takes them, and drops them. */
  readonly isReady = (): boolean => this.#gone || !this.#response.writableNeedDrain;

  /** Done once it is ready: its socket has drained, or its client is gone or given up. */
  get drained(): Effect.Effect<void> {
    return Effect.suspend(() => (this.isReady() ? Effect.void : this.#drained));
  }

  /** Writes bytes in this step. */
  writeNow(chunks: ReadonlyArray<Bytes>): void {
    // Node joins the writes of one turn by itself; its own `cork` may ask for a drain that never comes.
    if (this.#counts(chunks)) for (const chunk of chunks) this.#response.write(chunk);
  }

  /**
   * Writes what has just come, in this step. What comes alone leaves for less than by `writeNow`, which a loop of many writes needs: a client that
   * reads as fast as it is written to would ask for no pause in a step, however long that is.
   */
  passOn(chunks: ReadonlyArray<Bytes>): void {
    if (this.#counts(chunks) && !wroteChunk(this.#response, chunks))
      for (const chunk of chunks) this.#response.write(chunk);
  }

  /** Counts what is written; whether somebody is there to read it. */
  #counts(chunks: ReadonlyArray<Bytes>): boolean {
    if (this.#gone) return false;
    if (this.#over) throw new Error("A response was written to after its end");
    for (const { byteLength } of chunks) this.access.wrote(byteLength);
    return true;
  }

  /** Writes bytes; it returns when more may come, or the client is gone. */
  write(chunks: ReadonlyArray<Bytes>): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.writeNow(chunks);
      return this.drained;
    });
  }

  /** Ends a whole response; it returns when everything is on its way, or the client is gone. */
  get end(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#over = true;
      if (this.#gone || this.#lingers) return Effect.void;
      this.access.ended("whole");
      this.#response.end();
      // Most responses are with the system in the same step; Node says that they are finished a turn later.
      const sent = this.#response.writableLength === 0 ? Effect.void : this.#drained;
      return isUnread(this.#response.req) ? Effect.andThen(sent, this.#lingered) : sent;
    });
  }

  /** Lets a client that still sends read what it was told, and closes its connection where it does not stop. */
  get #lingered(): Effect.Effect<void> {
    return Effect.suspend(() => {
      const { req, socket } = this.#response;
      return Effect.map(discarded(req), () => {
        if (this.#lingers || !req.complete) socket?.destroy();
      });
    });
  }

  /**
   * Breaks the response behind what was written, so that no client takes it for whole. One that was ended before stays whole: its bytes
   * may wait for their client still.
   */
  get break(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#over = true;
      this.access.ended("broken");
      if (!this.#response.writableEnded) return breakOff(this.#response, this.#slowMs);
      return this.#gone || this.#response.writableFinished ? Effect.void : this.#drained;
    });
  }

  /** Breaks what has not been ended, whatever state it is in: no client waits behind a handler that has left it. */
  get settle(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (!this.#over) return this.break;
      return this.#lingers ? this.#lingered : Effect.void;
    }).pipe(Effect.catchCause(() => Effect.sync(() => void this.#response.destroy())));
  }

  /** Says that a defect is why nothing else comes: by a status where no head has left, and else by a break. */
  get fail(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (!this.begun && !this.#over) this.refuse(defect, undefined);
      return this.settle;
    }).pipe(Effect.catchCause(() => Effect.sync(() => void this.#response.destroy())));
  }

  /** Responds with a document of the gateway's own, in the words that the provider's clients read. */
  refuse(
    { code, headers: demanded = [], message, reason, status }: Refused,
    upstream: UpstreamName | undefined,
    extra: RelayHead["headers"] = [],
  ): void {
    if (this.#gone || this.begun) return;
    const document = errorBody({ code, status, reason, message }, upstream);
    this.access.learned({ refused: reason });
    this.answer(status, document, [["x-recovery-refused", reason], ...demanded, ...extra]);
  }

  /**
   * Responds with a document.
   *
   * @param own headers beside those of its type and length
   */
  answer(status: number, document: object, own: RelayHead["headers"]): void {
    const type = ["content-type", "application/json"] as const;
    this.reply(status, Buffer.from(JSON.stringify(document)), [type, ...own]);
  }

  /**
   * Responds with a body that is whole.
   *
   * @param own headers beside that of its length
   */
  reply(status: number, body: Buffer, own: RelayHead["headers"]): void {
    if (this.#gone || this.begun) return;
    const unread = isUnread(this.#response.req);
    this.#over = true;
    this.#lingers = unread;
    this.access.ended("whole");
    const headers: RelayHead["headers"] = [
      ["content-length", String(body.byteLength)],
      ["x-content-type-options", "nosniff"],
      ...without(own, "x-content-type-options"),
      // What is left of a body that was not read would be taken for the next request.
      ...(!unread || own.some(([name]) => name === "connection") ? [] : [["connection", "close"] as const]),
    ];
    this.#response.writeHead(status, sendable(headers).flat());
    this.access.headed(status);
    this.access.wrote(body.byteLength);
    // An end would close the connection under a client that still sends: it is told first, and closed when it has stopped.
    if (!unread) return void this.#response.end(body);
    this.#response.write(body);
    this.#response.socket?.end();
  }

  get #drained(): Effect.Effect<void> {
    return Effect.flatMap(Clock.Clock, (clock) =>
      Effect.callback<void>((resume) => {
        const deadlines = Deadlines.of(clock);
        const done = () => {
          this.#wake = undefined;
          deadlines.clear(slow);
          resume(Effect.void);
        };
        const slow: Deadline = {
          act: () => {
            const { socket } = this.#response;
            if (socket === null) this.#response.destroy();
            else reset(socket);
            done();
          },
          at: 0,
          place: -1,
        };
        deadlines.set(slow, deadlines.now() + this.#slowMs);
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
  message: "A defect of the gateway ended this request; its log has the place.",
};

/**
 * A refusal as JSON, in the shape that a provider's clients read.
 *
 * @param upstream the provider; OpenAI's shape without one
 */
export const errorBody = ({ code, message, reason, status }: Refused, upstream?: UpstreamName): object => {
  const said = `stream-recovery gateway: ${message}`;
  if (upstream === "gemini") return { error: { code: status, message: said, status: reason.toUpperCase() } };
  const error = { type: `gateway_${reason}`, message: said, param: null, code: code ?? reason };
  return upstream === "anthropic" ? { type: "error", error } : { error };
};
