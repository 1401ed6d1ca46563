/**
 * Holds one connection at a time, and knows how often it was used and how long it has waited.
 */
import type { Socket } from "node:net";
import type { buildConnector, Dispatcher } from "@effect/platform-node/Undici";
import { type Carrier, Exchange } from "./Exchange.ts";
import type { KeptConnection, Origin } from "./Origin.ts";
import { Client } from "./Undici.ts";

/** What a slot needs of the client that it belongs to. */
export interface SlotHost {
  readonly origin: Origin;
  readonly connect: buildConnector.connector;
  /** The number of a connection that was opened just now. */
  readonly number: () => number;
  /** Monotonic milliseconds. */
  readonly now: () => number;
}

/** undici's client for one connection at a time. It opens the next when the last one has gone, so its socket changes. */
export class ConnectionSlot extends Client implements Carrier, KeptConnection {
  readonly #host: SlotHost;
  readonly #held: { socket: Socket | undefined };
  #connection = 0;
  #requests = 0;
  #idleSince: number | undefined;

  constructor(url: URL, options: object, host: SlotHost) {
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
      host.origin.connections.add(this);
    });
    this.on("disconnect", (_url, _targets, error) => {
      host.origin.connections.delete(this);
      // undici marks a recycled socket by this error's message alone.
      if (error.message === "socket idle timeout") host.origin.closedIdle();
    });
  }

  /** Gives an exchange its carrier before undici may begin to write it. */
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

  /** Closes the connection if it is idle. A request that was given to it and not yet written goes over a fresh one. */
  discard(): void {
    if (this.#idleSince === undefined || this.#held.socket === undefined) return;
    this.#idleSince = undefined;
    this.#host.origin.closedIdle();
    this.#held.socket.destroy();
  }
}
