/**
 * Carries one request and its response over undici: says how far the request got, holds what has arrived, aborts at once.
 *
 * undici calls `onRequestStart` immediately before it writes the first byte and never before it has a connection. Until then no
 * byte of the request can have left this process; from then on there is no proof that none has.
 */

import type { Dispatcher } from "@effect/platform-node/Undici";
import { Effect } from "effect";
import type { Delivery } from "../../domain/AttemptFacts.ts";
import type { TransportOperation } from "../../domain/Failure.ts";
import type { Waiting } from "./Connector.ts";
import type { Opening } from "./Tunnel.ts";

/** Response bytes that may wait unread before the socket is paused. */
export const unreadBytesMax = 256 * 1024;

/** The reporters of an exchange while it runs. Both are called synchronously and must not throw. */
export interface Reporters {
  /** `not_sent` when the exchange opens, `ambiguous` before the first byte is written, `accepted` at a response head. */
  readonly delivery?: (delivery: Delivery, status?: number) => void;
  /** Bytes of the response body that have just come. */
  readonly bytes?: (count: number) => void;
}

/** A response's status and headers, names in lower case; a header that came several times is joined by commas (RFC 9110, 5.3). */
export interface Head {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** The error that broke an exchange, and the part of the request in which it did. */
export interface ExchangeBreak {
  readonly error: unknown;
  readonly operation: TransportOperation;
  /** The request itself was refused on this side: an address, header or body that cannot be sent. */
  readonly unsendable: boolean;
}

/** The connection that carries an exchange. */
export interface Carried {
  /** Counts the connections of a client, from 1. */
  readonly connection: number;
  /** It had carried a request before. */
  readonly reused: boolean;
  /** Milliseconds that it had waited for this request; 0 for a fresh one. */
  readonly idleMs: number;
}

/** Carries exchanges, one at a time. */
export interface Carrier {
  /** A request is about to be written. */
  readonly begin: () => Carried;
  /** The response has come whole. */
  readonly free: () => void;
  /** The connection broke under the exchange, or brought no response. */
  readonly broke: () => void;
}

/** The times of an exchange, in monotonic milliseconds. */
interface Times {
  readonly openedAt: number;
  startedAt: number | undefined;
  headAt: number | undefined;
  firstByteAt: number | undefined;
  carried: Carried | undefined;
}

/** One exchange, for one reader. */
export class Exchange implements Dispatcher.DispatchHandler, Waiting {
  connecting: Opening | undefined = undefined;
  delivery: Delivery = "not_sent";
  /** Set before the request may be written. */
  carrier: Carrier | undefined = undefined;
  /** Called once, when the exchange is over in any way; it must not throw. */
  whenOver: (() => void) | undefined = undefined;
  /** Size of the request's body, in bytes. */
  requestBytes = 0;
  /** Bytes of the response's body so far. */
  receivedBytes = 0;
  readonly times: Times;
  readonly #reporters: Reporters;
  readonly #now: () => number;
  #controller: Dispatcher.DispatchController | undefined = undefined;
  #given: { readonly status: number; readonly headers: IncomingHeaders } | undefined = undefined;
  /** The same, once it was asked for. */
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

  /** The response head. */
  get head(): Effect.Effect<Head, ExchangeBreak> {
    return this.#when(() => this.#known);
  }

  /** All bytes that have arrived since the last read, at least one array; undefined at the clean end of the body. */
  get read(): Effect.Effect<ReadonlyArray<Uint8Array> | undefined, ExchangeBreak> {
    const look = () =>
      this.#chunks.length > 0 ? this.#take() : this.#over && this.#broken === undefined ? ended : undefined;
    return Effect.map(this.#when(look), (chunks) => (chunks === ended ? undefined : chunks));
  }

  /** Why it has broken; what arrived before that may still be read. */
  get broken(): ExchangeBreak | undefined {
    return this.#broken;
  }

  /** What a read gives now; undefined while it would wait. */
  poll(): ReadonlyArray<Uint8Array> | "ended" | ExchangeBreak | undefined {
    if (this.#chunks.length > 0) return this.#take();
    return this.#broken ?? (this.#over ? "ended" : undefined);
  }

  /** Calls back once, when there may be something to poll. For the reader alone, which then waits in no read. */
  wait(wake: () => void): void {
    this.#wake = wake;
  }

  /** The status of the response, once its head has come. */
  get status(): number | undefined {
    return this.#given?.status;
  }

  /** Gives the exchange up: its socket is destroyed at once, also one that is still being opened. */
  abort(): void {
    if (this.#over) return;
    this.#end();
    this.#chunks = [];
    // A request that was written and got no response: its connection may be dead, and the others of its origin too.
    if (this.delivery === "ambiguous") this.carrier?.broke();
    this.#controller?.abort(aborted());
    this.connecting?.destroy(aborted());
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#controller !== undefined) {
      this.#refuseRepeat(controller);
      return;
    }
    this.#controller = controller;
    if (this.#over) {
      controller.abort(aborted());
      return;
    }
    this.times.startedAt = this.#now();
    this.times.carried = this.carrier?.begin();
    this.#report("ambiguous");
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHeaders): void {
    this.#report("accepted", status);
    // 1xx: the response itself is still to come (RFC 9110, 15.2).
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
    // Most reads bring one. A list that grows has room for seventeen.
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
    this.whenOver?.();
  }

  /** The request cannot be sent as it is; no byte of it was written. */
  refuse(error: unknown): void {
    this.#break(error, true);
  }

  #break(error: unknown, unsendable: boolean): void {
    if (this.#over) return;
    this.#end();
    this.#broken = { error, operation: this.#operation(error), unsendable };
    if (this.delivery !== "not_sent") this.carrier?.broke();
    this.#notify();
  }

  /** Refuses a second dispatch of one request, so that undici cannot write a second copy of it. */
  #refuseRepeat(controller: Dispatcher.DispatchController): void {
    const error = new Error("The request was about to be written a second time");
    controller.abort(error);
    this.#break(error, false);
  }

  get #known(): Head | undefined {
    if (this.#head === undefined && this.#given !== undefined)
      this.#head = { status: this.#given.status, headers: flat(this.#given.headers) };
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

  /** Waits for a value; a value that arrived before an error is given first. */
  #when<A>(look: () => A | undefined): Effect.Effect<A, ExchangeBreak> {
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

  /** Wakes the reader once undici's parser has returned: everything of one socket read is handed over together. */
  #notify(): void {
    if (this.#waking) return;
    this.#waking = true;
    // Node's `queueMicrotask` makes an async resource for each call, and costs four times as much.
    void done.then(this.#woken);
  }

  readonly #woken = (): void => {
    this.#waking = false;
    const wake = this.#wake;
    this.#wake = undefined;
    wake?.();
  };
}

const done = Promise.resolve();

const ended: ReadonlyArray<Uint8Array> = [];

const aborted = () => new Error("The exchange was given up");

type IncomingHeaders = Readonly<Record<string, string | ReadonlyArray<string> | undefined>>;

const flat = (headers: IncomingHeaders): Readonly<Record<string, string>> => {
  const result: Record<string, string> = {};
  for (const [name, value] of Object.entries(headers)) {
    if (value !== undefined) result[name] = typeof value === "string" ? value : value.join(", ");
  }
  return result;
};
