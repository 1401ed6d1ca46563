/**
 * Sends requests over HTTP/2 where a server offers it (ALPN), over as few connections as its limit of streams permits, and over
 * HTTP/1.1 where it does not.
 *
 * A request is written once. Until its stream may be opened it waits here and is not sent. It waits for a connection and never for the
 * end of another's stream: a model may stream for minutes, and the waiting one's clocks would take that for a stall.
 */
import type { Socket } from "node:net";
import type * as Undici from "@effect/platform-node/Undici";
import { Effect } from "effect";
import type { Probed } from "../../paths/Path.ts";
import { type Connector, ConnectStalled, targetOf, type Waiting } from "./Connector.ts";
import { Exchange } from "./Exchange.ts";
import { Http2Session, type SessionHost } from "./Http2Session.ts";
import { headersOf } from "./Http2Stream.ts";
import { originsMax } from "./Origin.ts";
import * as Probe from "./Probe.ts";
import type { Opening } from "./Tunnel.ts";
import { Dispatcher } from "./Undici.ts";

/** What the connections of a client need. */
export interface Http2Options extends Omit<SessionHost, "origin" | "changed"> {
  /** Offers `h2` and `http/1.1`. */
  readonly connector: Connector;
  /** Milliseconds for the connection with its first SETTINGS. */
  readonly connectMs: number;
  readonly origins: { readonly of: (name: string) => SessionHost["origin"] };
  /** For plain `http`, and for servers without HTTP/2. */
  readonly http1: Undici.Dispatcher;
}

/** A request that waits for its stream. */
interface Pending {
  readonly options: Undici.Dispatcher.DispatchOptions;
  readonly handler: Undici.Dispatcher.DispatchHandler;
  readonly waiting: Waiting | undefined;
}

/** undici's interface over HTTP/2. */
export class Http2Dispatcher extends Dispatcher {
  readonly #options: Http2Options;
  readonly #lanes = new Map<string, Lane>();
  #closed = false;

  constructor(options: Http2Options) {
    super();
    this.#options = options;
  }

  override dispatch(options: Undici.Dispatcher.DispatchOptions, handler: Undici.Dispatcher.DispatchHandler): boolean {
    const origin = String(options.origin);
    if (!origin.startsWith("https:") || this.#closed) return this.#options.http1.dispatch(options, handler);
    // A request that cannot be sent is refused here, before anything is told of it.
    headersOf(options.headers);
    const lane = this.#lanes.get(origin) ?? new Lane(origin, this.#options);
    if (this.#lanes.size >= originsMax && !this.#lanes.has(origin)) this.#forget();
    this.#lanes.set(origin, lane);
    lane.send({ options, handler, waiting: this.#options.connector.waiting() });
    return true;
  }

  /**
   * Asks the way to an origin: over its connection where one is open, else by a connection that is made as for a request.
   *
   * @param ms longest time in milliseconds
   */
  probe(origin: string, ms: number): Effect.Effect<Probed> {
    return this.#lanes.get(origin)?.ask(ms) ?? Probe.connection(this.#options.connector, origin, ms);
  }

  /** Drops the first origin that nothing is under way to; that it speaks no HTTP/2 is found again. */
  #forget(): void {
    for (const [origin, lane] of this.#lanes) {
      if (!lane.idle) continue;
      this.#lanes.delete(origin);
      return;
    }
  }

  // undici's signature has a callback's form too, which no caller here uses.
  override destroy(): Promise<void> {
    this.#closed = true;
    for (const lane of this.#lanes.values()) lane.destroy();
    this.#lanes.clear();
    return this.#options.http1.destroy();
  }
}

/** The way to one origin. */
class Lane {
  readonly #origin: string;
  readonly #options: Http2Options;
  #pending: Array<Pending> = [];
  #opening: Opening | undefined;
  /** Counts the connections that were given up while they were opened. */
  #attempt = 0;
  /** In the order in which they were opened: the first with room has the next stream, so that the last ones idle. */
  readonly #sessions = new Set<Http2Session>();
  /** No connection could be made the last time. */
  #unmade = false;
  /** A connection has agreed on HTTP/2. */
  #http2 = false;
  /** The origin speaks no HTTP/2. */
  #http1 = false;
  #destroyed = false;

  constructor(origin: string, options: Http2Options) {
    this.#origin = origin;
    this.#options = options;
  }

  /** Nothing waits, nothing is being opened, no connection is open. */
  get idle(): boolean {
    return this.#pending.length === 0 && this.#opening === undefined && this.#sessions.size === 0;
  }

  send(pending: Pending): void {
    this.#pending.push(pending);
    if (pending.waiting !== undefined)
      pending.waiting.connecting = { destroy: (error) => this.#giveUp(pending, error) };
    this.#flow();
  }

  destroy(): void {
    this.#destroyed = true;
    const closed = new Error("The client was closed");
    this.#opening?.destroy(closed);
    this.#failAll(closed);
    for (const session of this.#sessions) session.destroy(closed);
  }

  /**
   * A PING on every connection that is open; one that is not answered in time is dropped with its streams. Undefined where a connection has
   * to be made to know: where none is open, where none could be made and those that are there take no further stream, and where the answer
   * would stand behind an upload.
   */
  ask(ms: number): Effect.Effect<Probed> | undefined {
    const open = [...this.#sessions].filter((session) => !session.over);
    const takes = open.some((session) => session.open && !session.full);
    if (open.length === 0 || (this.#unmade && !takes) || open.some((session) => session.uploads)) return undefined;
    return Effect.callback((resume) => {
      let left = open.length;
      for (const session of open)
        session.ask(ms, (error) => {
          left -= 1;
          if (error === undefined) resume(Effect.succeed(Probe.works));
          else if (left === 0) resume(Effect.succeed(Probe.failed(error)));
        });
    });
  }

  /** Writes what may be written now. */
  #flow(): void {
    if (this.#http1) {
      this.#overHttp1();
      return;
    }
    for (const session of this.#sessions) {
      if (session.stale) session.discard();
      while (session.free && this.#pending.length > 0) {
        for (const { handler, options } of this.#take(1)) {
          if (handler instanceof Exchange) handler.carrier = session.carrier();
          session.send(options, handler);
        }
      }
    }
    if (this.#pending.length === 0 || this.#opening !== undefined || this.#destroyed) return;
    if ([...this.#sessions].every((session) => !session.open || session.full)) this.#open();
  }

  #overHttp1(): void {
    for (const { handler, options, waiting } of this.#take(this.#pending.length))
      this.#options.connector.dispatching(waiting ?? { connecting: undefined }, () =>
        this.#options.http1.dispatch(options, handler),
      );
  }

  #take(count: number): ReadonlyArray<Pending> {
    const taken = this.#pending.splice(0, count);
    for (const { waiting } of taken) if (waiting !== undefined) waiting.connecting = undefined;
    return taken;
  }

  /** A request that is given up; the connection is too, where no other request waits for it. */
  #giveUp(pending: Pending, error: Error): void {
    const at = this.#pending.indexOf(pending);
    if (at < 0) return;
    this.#pending.splice(at, 1);
    pending.handler.onResponseError?.(unsent, error);
    if (this.#pending.length > 0) return;
    const opening = this.#opening;
    // The next request opens a connection of its own: the end of this one must not fail it.
    this.#opening = undefined;
    this.#attempt += 1;
    opening?.destroy(error);
  }

  #failAll(error: Error): void {
    for (const { handler } of this.#take(this.#pending.length)) handler.onResponseError?.(unsent, error);
  }

  #open(): void {
    const { connectMs, connector, now } = this.#options;
    const begunAt = now();
    const target = targetOf(this.#origin);
    const attempt = this.#attempt;
    const failed = (error: Error): void => {
      if (attempt !== this.#attempt) return;
      this.#opening = undefined;
      this.#unmade = true;
      this.#failAll(error);
    };
    const opened = (error: Error | null, socket: Socket | null | undefined): void => {
      if (attempt !== this.#attempt) {
        socket?.on("error", () => undefined).destroy();
        return;
      }
      if (socket === null || socket === undefined) {
        failed(error ?? new ConnectStalled());
        return;
      }
      if ("alpnProtocol" in socket && socket.alpnProtocol === "h2") {
        this.#settle(socket, Math.max(1, connectMs - (now() - begunAt)), failed);
        return;
      }
      socket.on("error", () => undefined).destroy();
      this.#opening = undefined;
      this.#unmade = false;
      // One of several servers behind a name may be older than the others.
      if (this.#http2) this.#overHttp1();
      else this.#http1 = true;
      this.#flow();
    };
    try {
      this.#opening = connector.open(target, opened);
    } catch (error) {
      // A certificate that cannot be read.
      failed(error instanceof Error ? error : new ConnectStalled());
    }
  }

  /** Waits for the peer's SETTINGS within what is left of the connect clock. */
  #settle(socket: Socket, ms: number, failed: (error: Error) => void): void {
    let settled = false;
    const session = new Http2Session(
      this.#origin,
      socket,
      { ...this.#options, origin: this.#options.origins.of(this.#origin), changed: () => this.#changed(session) },
      (error) => {
        clearTimeout(timer);
        if (settled) return;
        settled = true;
        if (error !== undefined) {
          failed(error);
          return;
        }
        this.#opening = undefined;
        this.#unmade = false;
        this.#http2 = true;
      },
    );
    this.#sessions.add(session);
    const give = (error: Error): void => {
      if (settled) return;
      settled = true;
      session.destroy(error);
      failed(error);
    };
    const timer = setTimeout(() => give(new ConnectStalled()), ms);
    this.#opening = { destroy: give };
  }

  #changed(session: Http2Session): void {
    const { over, unused } = session;
    const isNews = (over || unused !== undefined) && this.#sessions.delete(session);
    // A peer that ends a connection before it takes a request would end the next one as well: that is for the policy to wait out.
    if (isNews && unused !== undefined) this.#failAll(unused);
    this.#flow();
  }
}

/** The controller of a request that was never written. */
const unsent: Undici.Dispatcher.DispatchController = {
  aborted: true,
  paused: false,
  reason: null,
  abort: () => undefined,
  pause: () => undefined,
  resume: () => undefined,
};
