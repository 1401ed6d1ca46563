/**
 * Carries one request and its response over undici: says how far the request got, holds what has arrived, aborts at once.
 *
 * undici calls `onRequestStart` immediately before it writes the first byte and never before it has a connection. Until
 * then nothing of the request can have left this process; from then on nothing proves that it did not.
 */

import type { Socket } from "node:net";
import type { Dispatcher } from "@effect/platform-node/Undici";
import { Effect } from "effect";
import type { Delivery } from "../domain/Attempt.ts";
import type { TransportOperation } from "../domain/Failure.ts";
import type { Waiting } from "./Connector.ts";

/** Response bytes that may wait unread before the socket is paused. */
export const unreadBytesMax = 256 * 1024;

/** Who wants to know about an exchange while it runs. Both are called synchronously and must not throw. */
export interface Reporters {
  /** `not_sent` when the exchange opens, `ambiguous` before the first byte is written, `accepted` at a response head. */
  readonly delivery?: (delivery: Delivery) => void;
  /** Bytes of the response body that have just come. */
  readonly bytes?: (count: number) => void;
}

/** A response's status and headers, names in lower case; a header that came several times is joined by commas (RFC 9110, 5.3). */
export interface Head {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
}

/** What broke an exchange, and in which part of the request. */
export interface Broken {
  readonly error: unknown;
  readonly operation: TransportOperation;
  /** The request itself was refused on this side: an address, header or body that cannot be sent. */
  readonly unsendable: boolean;
}

/** One exchange. `head` and `read` are for one reader. */
export class Exchange implements Dispatcher.DispatchHandler, Waiting {
  connecting: Socket | undefined = undefined;
  delivery: Delivery = "not_sent";
  readonly #reporters: Reporters;
  #controller: Dispatcher.DispatchController | undefined = undefined;
  #head: Head | undefined = undefined;
  #chunks: Array<Uint8Array> = [];
  #unread = 0;
  #over = false;
  #broken: Broken | undefined = undefined;
  #wake: (() => void) | undefined = undefined;
  #waking = false;

  constructor(reporters: Reporters) {
    this.#reporters = reporters;
    reporters.delivery?.("not_sent");
  }

  /** The response head. */
  readonly head: Effect.Effect<Head, Broken> = this.#when(() => this.#head);

  /** All bytes that have arrived since the last read, at least one array; undefined at the clean end of the body. */
  readonly read: Effect.Effect<ReadonlyArray<Uint8Array> | undefined, Broken> = Effect.map(
    this.#when(() =>
      this.#chunks.length > 0 ? this.#take() : this.#over && this.#broken === undefined ? ended : undefined,
    ),
    (chunks) => (chunks === ended ? undefined : chunks),
  );

  /** Gives the exchange up: its socket is destroyed at once, also one that is still being opened. */
  abort(): void {
    if (this.#over) return;
    this.#over = true;
    this.#chunks = [];
    this.#controller?.abort(aborted());
    this.connecting?.destroy(aborted());
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#over) controller.abort(aborted());
    else this.#report("ambiguous");
  }

  onResponseStart(_: Dispatcher.DispatchController, status: number, headers: IncomingHeaders): void {
    this.#report("accepted");
    // 1xx: the response itself is still to come (RFC 9110, 15.2).
    if (status < 200) return;
    this.#head = { status, headers: flat(headers) };
    this.#notify();
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Uint8Array): void {
    if (this.#over) return;
    this.#reporters.bytes?.(chunk.byteLength);
    this.#chunks.push(chunk);
    this.#unread += chunk.byteLength;
    if (this.#unread > unreadBytesMax) controller.pause();
    this.#notify();
  }

  onResponseEnd(): void {
    this.#over = true;
    this.#notify();
  }

  onResponseError(_: Dispatcher.DispatchController | undefined, error: unknown): void {
    this.#break(error, false);
  }

  /** The request cannot be sent as it is; nothing was written. */
  refuse(error: unknown): void {
    this.#break(error, true);
  }

  #break(error: unknown, unsendable: boolean): void {
    if (this.#over) return;
    this.#over = true;
    this.#broken = { error, operation: this.#operation(error), unsendable };
    this.#notify();
  }

  #operation(error: unknown): TransportOperation {
    if (this.delivery === "not_sent") return "connect";
    if (this.#head !== undefined) return "body";
    const syscall = typeof error === "object" && error !== null && "syscall" in error ? error.syscall : undefined;
    return syscall === "write" ? "write" : "head";
  }

  #report(delivery: Delivery): void {
    if (this.delivery === delivery) return;
    this.delivery = delivery;
    this.#reporters.delivery?.(delivery);
  }

  #take(): ReadonlyArray<Uint8Array> {
    const chunks = this.#chunks;
    this.#chunks = [];
    this.#unread = 0;
    if (this.#controller?.paused === true) this.#controller.resume();
    return chunks;
  }

  /** Waits for a value; what has arrived before an error comes before it. */
  #when<A>(look: () => A | undefined): Effect.Effect<A, Broken> {
    return Effect.callback<A, Broken>((resume) => {
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
    queueMicrotask(() => {
      this.#waking = false;
      const wake = this.#wake;
      this.#wake = undefined;
      wake?.();
    });
  }
}

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
