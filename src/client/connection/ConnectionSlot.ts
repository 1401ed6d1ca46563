/**
 * Holds one connection at a time, with the number of its requests and its idle time.
 */
import type { Socket } from "node:net";
import type { buildConnector, Dispatcher } from "@effect/platform-node/Undici";
import type { Connector, Waiting } from "./Connector.ts";
import { type Carrier, Exchange } from "./Exchange.ts";
import { type ClientClocks, IdleTime } from "./IdleTime.ts";
import type { KeptConnection, Origin } from "./Origin.ts";
import { Client } from "./Undici.ts";

/** The dependencies that a slot gets from its client. */
export interface SlotHost extends ClientClocks {
  readonly origin: Origin;
  readonly connector: Connector;
  /** Returns the number of a newly opened connection. */
  readonly number: () => number;
  /** Maximum idle time of a connection that may still carry a request, in milliseconds. */
  readonly keepAliveMs: number;
}

/** The socket of a slot, and the request that waits for the slot's next socket. */
interface Held {
  socket: Socket | undefined;
  waiting: Waiting | undefined;
}

/**
 * undici's client for one connection at a time. It opens the next connection after the previous one has closed, so the socket changes over
 * time.
 */
export class ConnectionSlot extends Client implements Carrier, KeptConnection {
  readonly #host: SlotHost;
  readonly #held: Held;
  readonly #idle: IdleTime;
  #connection = 0;
  #requests = 0;
  /** True if the connection may be dead. It is then closed after its response. */
  #suspected = false;

  constructor(url: URL, options: object, host: SlotHost) {
    const held: Held = { socket: undefined, waiting: undefined };
    super(url, { ...options, connect: connectorOf(host, held) });
    this.#held = held;
    this.#host = host;
    this.#idle = new IdleTime(host);
    this.on("connect", () => {
      this.#connection = host.number();
      this.#requests = 0;
      this.#idle.begin();
      this.#suspected = false;
      host.origin.reached = true;
      host.origin.connections.add(this);
    });
    this.on("disconnect", (_url, _targets, error) => {
      host.origin.connections.delete(this);
      // undici reports a recycled socket only by this error message.
      if (error.message === "socket idle timeout") host.origin.recordIdleClose();
    });
  }

  /**
   * Assigns this slot to a request before undici may write the request. An idle connection that may be dead is closed first, so that undici
   * opens a new one.
   */
  override dispatch(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    // undici's timer is up to a second late, or more after a blocked event loop or a suspension. So the idle time is checked here.
    const spent = this.#suspected || this.#idle.isLongerThan(this.#host.keepAliveMs);
    if (spent && this.#idle.isIdle) {
      this.#held.waiting = handler instanceof Exchange ? handler : this.#host.connector.findWaiting();
      this.discard();
    }
    if (!(handler instanceof Exchange)) return super.dispatch(options, new Plain(handler, this));
    handler.carrier = this;
    return super.dispatch(options, handler);
  }

  begin(): { readonly connection: number; readonly reused: boolean; readonly idleMs: number } {
    this.#requests += 1;
    const idleMs = this.#idle.end();
    const reused = this.#requests > 1;
    return { connection: this.#connection, reused, idleMs: reused ? idleMs : 0 };
  }

  free(): void {
    this.#idle.begin();
    // The connection is closed in a later step, because undici still has to process the end of the response.
    if (this.#suspected) setImmediate(() => this.discard());
  }

  onBreak(): void {
    this.#host.origin.discardIdle();
  }

  /** Closes the connection if it is idle. A request that was assigned to it but not written yet uses a new connection. */
  discard(): void {
    if (!this.#idle.isIdle || this.#held.socket === undefined) return;
    this.#idle.end();
    this.#host.origin.recordIdleClose();
    this.#held.socket.destroy();
  }

  suspect(): void {
    this.#suspected = true;
    this.discard();
  }
}

/**
 * Records the socket of a slot. undici may open the socket in the context of the event that ended the previous connection, and that context
 * belongs to no request. So the waiting request's context is restored here.
 */
const connectorOf =
  ({ connector }: SlotHost, held: Held): buildConnector.connector =>
  (wanted, callback) => {
    const open = (): unknown =>
      connector.connect(wanted, (...result) => {
        held.socket = result[1] ?? undefined;
        callback(...result);
      });
    const { waiting } = held;
    held.waiting = undefined;
    if (waiting === undefined) open();
    else connector.withWaiting(waiting, open);
  };

/** A request without an exchange. It marks its connection as busy while it is in flight, so that the connection does not count as idle. */
class Plain implements Dispatcher.DispatchHandler {
  readonly #handler: Dispatcher.DispatchHandler;
  readonly #carrier: Carrier;

  constructor(handler: Dispatcher.DispatchHandler, carrier: Carrier) {
    this.#handler = handler;
    this.#carrier = carrier;
  }

  onRequestStart(...given: Given<"onRequestStart">): void {
    this.#carrier.begin();
    this.#handler.onRequestStart?.(...given);
  }

  onRequestUpgrade(...given: Given<"onRequestUpgrade">): void {
    this.#handler.onRequestUpgrade?.(...given);
  }

  onResponseStart(...given: Given<"onResponseStart">): void {
    this.#handler.onResponseStart?.(...given);
  }

  onResponseData(...given: Given<"onResponseData">): void {
    this.#handler.onResponseData?.(...given);
  }

  onResponseEnd(...given: Given<"onResponseEnd">): void {
    this.#carrier.free();
    this.#handler.onResponseEnd?.(...given);
  }

  onResponseError(...given: Given<"onResponseError">): void {
    this.#handler.onResponseError?.(...given);
  }
}

type Given<Name extends keyof Dispatcher.DispatchHandler> = Parameters<Required<Dispatcher.DispatchHandler>[Name]>;
