/**
 * Carries one request and its response over undici: tracks the progress of the request, holds the bytes that arrived, and aborts at once.
 *
 * undici calls `onRequestStart` immediately before it writes the first byte, and only once it has a connection. Before this call no byte of
 * the request can have left this process. After it, nothing proves that none has.
 */

import type { Dispatcher } from "@effect/platform-node/Undici";
import { Effect } from "effect";
import type { Delivery } from "../../domain/AttemptFacts.ts";
import type { TransportOperation } from "../../domain/Failure.ts";
import type { Waiting } from "./Connector.ts";
import type { Opening } from "./Tunnel.ts";

/** Maximum unread response bytes before the socket is paused. */
export const unreadBytesMax = 256 * 1024;

/** Callbacks for the progress of an exchange. Both are called synchronously and must not throw. */
export interface Reporters {
  /**
   * Called with `not_sent` when the exchange opens, with `ambiguous` before the first byte is written, and with `accepted` when a response
   * head arrives.
   */
  readonly delivery?: (delivery: Delivery, status?: number) => void;
  /** Called with the number of response body bytes that have just arrived. */
  readonly bytes?: (count: number) => void;
}

/** Status and headers of a response. Names are in lower case, and repeated headers are joined by commas (RFC 9110, 5.3). */
export interface Head {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** The error that broke an exchange, and the phase of the request in which it occurred. */
export interface ExchangeBreak {
  readonly error: unknown;
  readonly operation: TransportOperation;
  /** True if the request was refused before any byte was sent, because its address, a header or its body cannot be sent. */
  readonly unsendable: boolean;
}

/** The connection that carries an exchange. */
export interface Carried {
  /** Number of the connection, which the client counts from 1. */
  readonly connection: number;
  /** True if the connection had carried an earlier request. */
  readonly reused: boolean;
  /** Time for which the connection was idle before this request, in milliseconds; 0 for a new connection. */
  readonly idleMs: number;
}

/** A connection that carries exchanges, one at a time. */
export interface Carrier {
  /** Called before a request is written. */
  readonly begin: () => Carried;
  /** Called when the response is complete. */
  readonly free: () => void;
  /** Called when the connection broke under the exchange, or did not bring a response. */
  readonly onBreak: () => void;
}

/** The times of an exchange, in monotonic milliseconds. */
interface Times {
  readonly openedAt: number;
  startedAt: number | undefined;
  headAt: number | undefined;
  firstByteAt: number | undefined;
  carried: Carried | undefined;
}

/** One exchange, for a single reader. */
export class Exchange implements Dispatcher.DispatchHandler, Waiting {
  connecting: Opening | undefined = undefined;
  delivery: Delivery = "not_sent";
  /** Set before the request may be written. */
  carrier: Carrier | undefined = undefined;
  /** Called once, when the exchange ends for any reason. It must not throw. */
  onOver: (() => void) | undefined = undefined;
  requestBytes = 0;
  receivedBytes = 0;
  readonly times: Times;
  readonly #reporters: Reporters;
  readonly #now: () => number;
  #controller: Dispatcher.DispatchController | undefined = undefined;
  #given: { readonly status: number; readonly headers: IncomingHeaders } | undefined = undefined;
  /** The head in its public form, created on first use. */
  #head: Head | undefined = undefined;
  #chunks: Array<Uint8Array> = [];
  #unread = 0;
  #over = false;
  #broken: ExchangeBreak | undefined = undefined;
  #wake: (() => void) | undefined = undefined;
  #waking = false;

  /** @param now monotonic milliseconds */
  constructor(reporters: Reporters, now: () => number) {
    this.#reporters = reporters;
    this.#now = now;
    const openedAt = now();
    this.times = { openedAt, startedAt: undefined, headAt: undefined, firstByteAt: undefined, carried: undefined };
    reporters.delivery?.("not_sent");
  }

  /** Waits for the response head. */
  get head(): Effect.Effect<Head, ExchangeBreak> {
    return this.#waitFor(() => this.#knownHead);
  }

  /** Waits for bytes, and reads all that have arrived since the last read; undefined at the clean end of the body. */
  get read(): Effect.Effect<ReadonlyArray<Uint8Array> | undefined, ExchangeBreak> {
    const look = () =>
      this.#chunks.length > 0 ? this.#take() : this.#over && this.#broken === undefined ? ended : undefined;
    return Effect.map(this.#waitFor(look), (chunks) => (chunks === ended ? undefined : chunks));
  }

  /** The error that broke the exchange. Bytes that arrived earlier can still be read. */
  get broken(): ExchangeBreak | undefined {
    return this.#broken;
  }

  /** Returns the result that a read would have now; undefined if a read would wait. */
  poll(): ReadonlyArray<Uint8Array> | "ended" | ExchangeBreak | undefined {
    if (this.#chunks.length > 0) return this.#take();
    return this.#broken ?? (this.#over ? "ended" : undefined);
  }

  /** Calls back once when there may be a result to poll. Only the reader may call it, and not while it waits in a read. */
  wait(wake: () => void): void {
    this.#wake = wake;
  }

  /** Status of the response, after its head has arrived. */
  get status(): number | undefined {
    return this.#given?.status;
  }

  /** Abandons the exchange. Its socket is destroyed at once, even if it is still being opened. */
  abort(): void {
    if (this.#over) return;
    this.#end();
    this.#chunks = [];
    // The request was written but got no response, so its connection may be dead, and so may the other connections of its origin.
    if (this.delivery === "ambiguous") this.carrier?.onBreak();
    this.#controller?.abort(abortError());
    this.connecting?.destroy(abortError());
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#controller !== undefined) {
      this.#refuseRepeat(controller);
      return;
    }
    this.#controller = controller;
    if (this.#over) {
      controller.abort(abortError());
      return;
    }
    this.times.startedAt = this.#now();
    this.times.carried = this.carrier?.begin();
    this.#report("ambiguous");
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHeaders): void {
    this.#report("accepted", status);
    // After a 1xx response, the final response is still to come (RFC 9110, 15.2).
    if (status < 200) return;
    this.times.headAt = this.#now();
    this.#given = { status, headers };
    this.#notify();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#over) return;
    this.times.firstByteAt ??= this.#now();
    this.receivedBytes += chunk.byteLength;
    this.#reporters.bytes?.(chunk.byteLength);
    // Usually a read brings one chunk. An array literal has room for that chunk only, but V8 reserves room for seventeen elements when an
    // empty array grows.
    if (this.#chunks.length === 0) this.#chunks = [chunk];
    else this.#chunks.push(chunk);
    this.#unread += chunk.byteLength;
    if (this.#unread > unreadBytesMax) controller.pause();
    this.#notify();
  }

  onResponseEnd(): void {
    this.carrier?.free();
    this.#end();
    this.#notify();
  }

  onResponseError(_: Dispatcher.DispatchController | undefined, error: unknown): void {
    this.#break(error, false);
  }

  #end(): void {
    if (this.#over) return;
    this.#over = true;
    this.onOver?.();
  }

  /** Fails the exchange because the request cannot be sent. No byte of it was written. */
  refuse(error: unknown): void {
    this.#break(error, true);
  }

  #break(error: unknown, unsendable: boolean): void {
    if (this.#over) return;
    this.#end();
    this.#broken = { error, operation: this.#operation(error), unsendable };
    if (this.delivery !== "not_sent") this.carrier?.onBreak();
    this.#notify();
  }

  /** Refuses a second dispatch of a request, so that undici cannot write the request twice. */
  #refuseRepeat(controller: Dispatcher.DispatchController): void {
    const error = new Error("The request was about to be written a second time");
    controller.abort(error);
    this.#break(error, false);
  }

  get #knownHead(): Head | undefined {
    if (this.#head === undefined && this.#given !== undefined)
      this.#head = { status: this.#given.status, headers: flattenHeaders(this.#given.headers) };
    return this.#head;
  }

  #operation(error: unknown): TransportOperation {
    if (this.delivery === "not_sent") return "connect";
    if (this.#given !== undefined) return "body";
    const syscall = typeof error === "object" && error !== null && "syscall" in error ? error.syscall : undefined;
    return syscall === "write" ? "write" : "head";
  }

  #report(delivery: Delivery, status?: number): void {
    if (this.delivery === delivery) return;
    this.delivery = delivery;
    this.#reporters.delivery?.(delivery, status);
  }

  #take(): ReadonlyArray<Uint8Array> {
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#unread = 0;
    if (this.#controller?.paused === true) this.#controller.resume();
    return chunks;
  }

  /** Waits for a value. A value that arrived before an error is returned before the error. */
  #waitFor<A>(look: () => A | undefined): Effect.Effect<A, ExchangeBreak> {
    return Effect.callback<A, ExchangeBreak>((resume) => {
      const settle = () => {
        const found = look();
        if (found !== undefined) resume(Effect.succeed(found));
        else if (this.#broken !== undefined) resume(Effect.fail(this.#broken));
        else this.#wake = settle;
      };
      settle();
      return Effect.sync(() => {
        this.#wake = undefined;
      });
    });
  }

  /** Wakes the reader only after undici's parser has returned, so that everything from one socket read is delivered together. */
  #notify(): void {
    if (this.#waking) return;
    this.#waking = true;
    // Node's `queueMicrotask` creates an async resource for each call, and costs four times as much.
    void done.then(this.#wakeReader);
  }

  readonly #wakeReader = (): void => {
    this.#waking = false;
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  };
}

const done = Promise.resolve();

const ended: ReadonlyArray<Uint8Array> = [];

const abortError = () => new Error("The exchange was abandoned");

type IncomingHeaders = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>;

const flattenHeaders = (headers: IncomingHeaders): Readonly<Record<string, string>> => {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) result[name] = typeof value === "string" ? value : value.join(", ");
  }
  return result;
};
