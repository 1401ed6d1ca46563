/**
 * Holds one HTTP/2 connection to an origin: opens streams on it, as many as the peer permits, and says exactly how each ended.
 *
 * node:http2 stands here and not undici's client, which repeats a request by itself after a GOAWAY or a REFUSED_STREAM, opens streams
 * before it knows how many are permitted, and asks by no PING whether a silent connection still lives.
 */
import { type ClientHttp2Session, connect, constants } from "node:http2";
import type { Socket } from "node:net";
import type { Dispatcher } from "@effect/platform-node/Undici";
import type { Carried, Carrier } from "./Exchange.ts";
import { Http2Broken, Http2Stream } from "./Http2Stream.ts";
import { type ClientClocks, IdleTime } from "./IdleTime.ts";
import type { KeptConnection, Origin } from "./Origin.ts";
import { probeMs } from "./Probe.ts";

/** Most streams at a time on one connection; the peer may permit fewer (RFC 9113 recommends no fewer than 100). */
export const streamsMax = 100;

/** A connection with open streams on which nothing came is asked by a PING after so long, in milliseconds, and dropped where none is answered. */
export const pingMsDefault = 10_000;

/** Bytes that may come on one stream unread, and on all streams of a connection: one that is not read must not stop the others. */
const streamWindowBytes = 256 * 1024;
const connectionWindowBytes = 32 * 1024 * 1024;

/**
 * A PING stands behind what was written before it: what the peer has proven by no answer may still be on its way. So much of it is taken for
 * that, in bytes (Linux keeps up to 4 MiB of a connection), over the slowest uplink that a peer is waited for on, in bytes a millisecond.
 */
const onTheWayBytesMax = 4 * 1024 * 1024;
const uplinkBytesPerMs = 64;

/** From so many unproven bytes on the answer to a PING says when they came rather than whether the peer lives. */
const uploadBytes = 64 * 1024;

/**
 * What node:http2 keeps of one connection at most, in megabytes. It counts what this side has yet to send, which is bounded where bodies are,
 * and refuses responses beyond: with its default ten large prompts cost the answers to them.
 */
const sessionMemoryMb = 4_000;

/** Most headers of a response, and the longest block of a request's headers, in bytes: HTTP/1.1 has neither as narrow as node:http2. */
const responseHeadersMax = 2_000;
const requestHeadersBytesMax = 1024 * 1024;

/** Most questions that are on their way behind an upload: node:http2 ends a connection over the eleventh SETTINGS. */
const unansweredMax = 5;

/** What a connection needs of the client that it belongs to. */
export interface SessionHost extends ClientClocks {
  readonly origin: Origin;
  /** The number of a connection that was opened just now. */
  readonly number: () => number;
  /** Longest idle time, in milliseconds. */
  readonly keepAliveMs: number;
  readonly pingMs: number;
  /** There is room for a stream that there was not before, or the connection takes no new ones any more. */
  readonly changed: () => void;
}

/** One connection. */
export class Http2Session implements KeptConnection {
  readonly #session: ClientHttp2Session;
  readonly #socket: Socket;
  readonly #host: SessionHost;
  readonly #number: number;
  readonly #streams = new Set<Http2Stream>();
  #requests = 0;
  readonly #idle: IdleTime;
  /** Milliseconds that it had waited for the request that is being written. */
  #waitedMs = 0;
  #idleTimer: NodeJS.Timeout | undefined;
  /** The peer has said how many streams it permits. */
  #ready = false;
  /** It may be dead: a PING has been asked that is not answered yet. */
  #suspected = false;
  #pings: NodeJS.Timeout | undefined;
  #heardAt: number;
  /** Counts what has come from the peer. */
  #heard = 0;
  /** Bytes that were written and have come to the peer, as its answers say. */
  #provenBytes = 0;
  /** A stream was opened on it. */
  #used = false;
  /** It was closed from here while it idled. */
  #discarded = false;
  /** PINGs and SETTINGS that are not answered yet. */
  #unanswered = 0;
  /** Who waits for the answer to a PING. */
  readonly #askers: Array<(error: Error | undefined) => void> = [];
  #draining = false;
  #goaway: { readonly code: number; readonly last: number } | undefined;
  #error: Error | undefined;

  /** @param socket TLS that has agreed on `h2` */
  constructor(url: string, socket: Socket, host: SessionHost, ready: (error: Error | undefined) => void) {
    this.#host = host;
    this.#socket = socket;
    this.#idle = new IdleTime(host);
    this.#number = host.number();
    this.#heardAt = host.now();
    this.#session = connect(url, {
      createConnection: () => socket,
      peerMaxConcurrentStreams: streamsMax,
      maxSessionMemory: sessionMemoryMb,
      maxHeaderListPairs: responseHeadersMax,
      maxSendHeaderBlockLength: requestHeadersBytesMax,
      settings: { enablePush: false, initialWindowSize: streamWindowBytes },
    });
    this.#session.on("error", (error: Error) => {
      this.#error ??= error;
    });
    socket.on("error", (error: Error) => {
      this.#error ??= error;
    });
    this.#session.on("goaway", (code: number, last: number) => this.#gone(code, last));
    // Streams are opened once the peer has said how many it permits.
    this.#session.on("remoteSettings", () => {
      this.#ready = true;
      ready(undefined);
      host.changed();
      this.#rest();
    });
    this.#session.on("connect", () => {
      if (!this.#session.destroyed) this.#session.setLocalWindowSize(connectionWindowBytes);
    });
    this.#session.on("close", () => {
      ready(this.#error ?? new Http2Broken("ERR_STREAM_PREMATURE_CLOSE"));
      this.#closed();
    });
    host.origin.reached = true;
    host.origin.connections.add(this);
  }

  /** Whether a stream may be opened now. */
  get free(): boolean {
    return this.#ready && this.open && !this.#suspected && this.#streams.size < this.#permitted;
  }

  /**
   * Whether no stream can be opened before another ends, or before it is known whether the connection lives. Where the peer permits none
   * for now, a further connection would get none either.
   */
  get full(): boolean {
    return this.#streams.size > 0 && (this.#streams.size >= this.#permitted || (this.#suspected && this.uploads));
  }

  /** Whether much was written of which it is not known that it has come: a PING is answered behind it. */
  get uploads(): boolean {
    return this.#unprovenBytes > uploadBytes;
  }

  get #unprovenBytes(): number {
    return Math.min(this.#socket.bytesWritten - this.#provenBytes, onTheWayBytesMax);
  }

  /** What the peer has ended it by, where it did so before there was a stream; undefined where there was one, or where it is open. */
  get unused(): Error | undefined {
    if (!this.#ready || this.#used || this.#discarded || this.open) return undefined;
    return this.#error ?? new Http2Broken("ERR_STREAM_PREMATURE_CLOSE");
  }

  get #permitted(): number {
    return Math.min(streamsMax, this.#session.remoteSettings.maxConcurrentStreams ?? streamsMax);
  }

  /** Whether it takes new streams, now or later. */
  get open(): boolean {
    return !(this.#draining || this.#session.closed || this.#session.destroyed);
  }

  /** Whether it has idled for too long for a request to be written on it. */
  get stale(): boolean {
    return this.#idle.isLongerThan(this.#host.keepAliveMs);
  }

  /** Whether nothing of it is left. */
  get over(): boolean {
    return this.#session.destroyed && this.#streams.size === 0;
  }

  /** Writes a request on a stream of its own. */
  send(options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    const stream = new Http2Stream(handler, {
      heard: () => this.#hear(),
      broken: (own) => this.#brokenAs(own),
      over: (ended) => this.#ended(ended),
      written: () => this.#socket.bytesWritten,
      came: (bytes) => this.#prove(bytes),
    });
    this.#used = true;
    this.#streams.add(stream);
    clearTimeout(this.#idleTimer);
    this.#waitedMs = this.#idle.end();
    this.#listen();
    stream.send(this.#session, options);
  }

  /** What carries one exchange on this connection. */
  carrier(): Carrier {
    let heardBefore = this.#heard;
    return {
      begin: () => {
        heardBefore = this.#heard;
        return this.#begin();
      },
      free: () => undefined,
      broke: () => {
        // A request that nothing came behind: the connection may be dead. Whatever came since proves that it is not.
        if (this.#heard > heardBefore && this.#error === undefined) return;
        this.#drain();
        this.#host.origin.distrust();
      },
    };
  }

  #begin(): Carried {
    this.#requests += 1;
    const reused = this.#requests > 1;
    return { connection: this.#number, reused, idleMs: reused ? this.#waitedMs : 0 };
  }

  #hear(): void {
    this.#heard += 1;
    this.#heardAt = this.#host.now();
  }

  #prove(bytes: number): void {
    this.#provenBytes = Math.max(this.#provenBytes, bytes);
  }

  /** Closes the connection if no request is on it. */
  discard(): void {
    if (this.#streams.size > 0 || this.#session.destroyed || !this.#ready) return;
    this.#host.origin.closedIdle();
    this.#draining = true;
    this.#discarded = true;
    this.#end();
  }

  /** Ends the connection now: node:http2 would keep its socket until the peer has ended it too, which may never be. */
  #end(error?: Error): void {
    this.#session.destroy(error);
    setImmediate(() => this.#socket.destroy());
  }

  /** Closes the connection if no request is on it; else it takes no further one before a PING was answered. */
  suspect(): void {
    this.discard();
    if (!this.open || this.#suspected) return;
    this.#suspected = true;
    this.ask(probeMs, () => {
      this.#suspected = false;
      this.#host.changed();
    });
  }

  /** Closes the connection with all that is on it; each of its streams fails by the error. */
  destroy(error: Error): void {
    this.#error ??= error;
    this.#draining = true;
    this.#discarded = true;
    this.#end(error);
  }

  /** No new streams; those that are open go on to their ends. */
  #drain(): void {
    if (this.#draining) return;
    this.#draining = true;
    if (this.#streams.size === 0) this.#end();
    else this.#session.close();
    this.#host.changed();
  }

  #gone(code: number, last: number): void {
    // The first of two may only say that a second will name the last stream (RFC 9113, 6.8).
    this.#goaway = { code, last: Math.min(last, this.#goaway?.last ?? last) };
    this.#drain();
  }

  #ended(stream: Http2Stream): void {
    if (!this.#streams.delete(stream)) return;
    if (this.#streams.size === 0) {
      clearTimeout(this.#pings);
      this.#pings = undefined;
      if (this.#draining) this.#end();
      else this.#rest();
    }
    this.#host.changed();
  }

  /** Closes the connection when it has idled for too long. */
  #rest(): void {
    if (this.#streams.size > 0 || this.#idle.idle || !this.open) return;
    this.#idle.begin();
    this.#idleTimer = setTimeout(() => this.discard(), this.#host.keepAliveMs).unref();
  }

  #closed(): void {
    this.#draining = true;
    clearTimeout(this.#idleTimer);
    clearTimeout(this.#pings);
    this.#host.origin.connections.delete(this);
    this.#host.changed();
  }

  /**
   * Asks by a PING whether the connection lives; one that says nothing in time is dropped with its streams.
   *
   * @param ms time for anything to come, in milliseconds; where it is asked already, that question's time
   * @param told called once, with what broke the connection where it is dead
   */
  ask(ms: number, told: (error: Error | undefined) => void): void {
    this.#askers.push(told);
    if (this.#askers.length > 1) return;
    const dead = new Http2Broken("ERR_HTTP2_PING_CANCEL");
    const heard = this.#heard;
    const written = this.#socket.bytesWritten;
    let waitedMs = 0;
    let timer: NodeJS.Timeout | undefined;
    const tell = (error: Error | undefined): void => {
      clearTimeout(timer);
      for (const asker of this.#askers.splice(0)) asker(error);
    };
    const late = (): void => {
      if (this.#askers.length === 0) return;
      // An upload that moves is acknowledged by the peer, which lives.
      if (this.#heard !== heard || this.#socket.bytesWritten > written + uploadBytes) {
        tell(undefined);
        return;
      }
      const leftMs = ms + this.#unprovenBytes / uplinkBytesPerMs - waitedMs;
      if (leftMs >= 1) wait(leftMs);
      else {
        this.destroy(dead);
        tell(dead);
      }
    };
    // What came while this process did not run is read before the timer's word counts.
    const wait = (waitMs: number): void => {
      waitedMs += waitMs;
      timer = setTimeout(() => setImmediate(late), waitMs).unref();
    };
    if (this.#session.destroyed) {
      tell(this.#error ?? dead);
      return;
    }
    wait(ms);
    this.#question((error) => {
      if (error === null) {
        this.#hear();
        this.#prove(written);
        tell(undefined);
      } else if (this.#session.destroyed) tell(this.#error ?? dead);
    });
  }

  /** node:http2 sends no PING on a connection that takes no new streams, and says at once that none was answered. SETTINGS are answered too. */
  #question(answered: (error: Error | null) => void): void {
    if (this.#unanswered >= unansweredMax) return;
    this.#unanswered += 1;
    const heard = (error: Error | null): void => {
      this.#unanswered -= 1;
      answered(error);
    };
    if (this.#session.closed) this.#session.settings({}, heard);
    else this.#session.ping(heard);
  }

  /** Looks after the connection while streams are on it: once nothing has come for long enough, it is asked. */
  #listen(): void {
    const silentMs = this.#host.now() - this.#heardAt;
    this.#pings ??= setTimeout(
      () => {
        this.#pings = undefined;
        if (this.#session.destroyed || this.#streams.size === 0) return;
        if (this.#host.now() - this.#heardAt < this.#host.pingMs) this.#listen();
        else this.ask(Math.min(this.#host.pingMs, probeMs), () => this.#listen());
      },
      Math.max(1, this.#host.pingMs - silentMs),
    ).unref();
  }

  /** Why a stream is broken: a GOAWAY below it, the connection, or its own reset, in this order of what is known. */
  #brokenAs({
    error,
    id,
    reset,
  }: {
    readonly error: Error | undefined;
    readonly id: number;
    readonly reset: number;
  }): Error {
    const goaway = this.#goaway;
    if (goaway !== undefined && id > goaway.last) {
      const { code: goawayCode, last: lastStreamID } = goaway;
      return new Http2Broken("ERR_HTTP2_GOAWAY_SESSION", { goawayCode, lastStreamID, streamId: id });
    }
    if (this.#error !== undefined) return withGoaway(this.#error, goaway?.code);
    // node:http2 closes the streams of a connection that has ended as if it had cancelled them itself.
    if (this.#session.destroyed && reset === constants.NGHTTP2_CANCEL)
      return withGoaway(new Http2Broken("ERR_STREAM_PREMATURE_CLOSE"), goaway?.code);
    if (reset !== constants.NGHTTP2_NO_ERROR) {
      this.#hear();
      return new Http2Broken("ERR_HTTP2_STREAM_ERROR", { rstCode: reset, streamId: id });
    }
    return error ?? new Http2Broken("ERR_STREAM_PREMATURE_CLOSE");
  }
}

/** A connection that the peer has given up with a code ended by that code. */
const withGoaway = (error: Error, code: number | undefined): Error =>
  code === undefined || code === constants.NGHTTP2_NO_ERROR
    ? error
    : new Http2Broken("ERR_HTTP2_SESSION_ERROR", { goawayCode: code }, error);
