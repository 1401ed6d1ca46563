/**
 * One place for a connection: knows which connection it holds, how often that was used and how long it has waited.
 */
import type { Socket } from "node:net";
import type { buildConnector, Dispatcher } from "@effect/platform-node/Undici";
import { type Carrier, Exchange } from "./Exchange.ts";
import type { Kept, Origin } from "./Origin.ts";
import { Client } from "./Undici.ts";

/** What a line needs of the client that it belongs to. */
export interface LineHost {
  readonly origin: Origin;
  readonly connect: buildConnector.connector;
  /** The number of a connection that was opened just now. */
  readonly number: () => number;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

/** undici's client of one connection at a time. It opens the next when the last one has gone, so that its socket changes. */
export class Line extends Client implements Carrier, Kept {
  readonly #host: LineHost;
  readonly #held: { socket: Socket | undefined };
  #connection = 0;
  #requests = 0;
  #idleSince: number | undefined;

  constructor(url: URL, options: object, host: LineHost) {
    const held: { socket: Socket | undefined } = { socket: undefined };
    super(url, {
      ...options,
      connect: (wanted, callback) =>
        host.connect(wanted, (...result) => {
          held.socket = result[1] ?? undefined;
          callback(...result);
        }),
    });
    this.#held = held;
    this.#host = host;
    this.on("connect", () => {
      this.#connection = host.number();
      this.#requests = 0;
      this.#idleSince = undefined;
      host.origin.lines.add(this);
    });
    this.on("disconnect", (_url, _targets, error) => {
      host.origin.lines.delete(this);
      // The only sign of a recycled socket: undici names the idle limit by this error's message alone.
      if (error.message === "socket idle timeout") host.origin.closedIdle();
    });
  }

  /** Tells an exchange who carries it, before undici may begin to write it. */
  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    if (handler instanceof Exchange) handler.carrier = this;
    return super.dispatch(options, handler);
  }

  begin(): { readonly connection: number; readonly reused: boolean; readonly idleMs: number } {
    this.#requests += 1;
    const idleMs = this.#idleSince === undefined ? 0 : this.#host.now() - this.#idleSince;
    this.#idleSince = undefined;
    return { connection: this.#connection, reused: this.#requests > 1, idleMs };
  }

  free(): void {
    this.#idleSince = this.#host.now();
  }

  broke(): void {
    this.#host.origin.distrust();
  }

  /** Closes the connection if it only waits. A request that was given to it and not written goes over a fresh one. */
  discard(): void {
    if (this.#idleSince === undefined || this.#held.socket === undefined) return;
    this.#idleSince = undefined;
    this.#host.origin.closedIdle();
    this.#held.socket.destroy();
  }
}
