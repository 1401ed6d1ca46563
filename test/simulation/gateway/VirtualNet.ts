/**
 * A network in this process: hosts that listen, are away or lose packets, and connections that deliver bytes late, in pieces or never.
 */
import { type Server, Socket } from "node:net";
import type { Owner, VirtualTime } from "./VirtualTime.ts";

/** How a host is away. `refused`: nothing listens; `lost`: packets vanish; `unnamed`: its name has no address; `unroutable`: no route. */
export type AwayKind = "refused" | "lost" | "unnamed" | "unroutable";

/** A time in which a host cannot be reached, in milliseconds from the start. */
export interface Away {
  readonly at: number;
  readonly ms: number;
  readonly kind: AwayKind;
}

/** The properties of a path. */
export interface Way {
  /** Time that a packet takes, in milliseconds. */
  readonly latencyMs: number;
  /** Maximum bytes of a packet, so that a read may end anywhere. */
  readonly packetBytes: number;
}

/** One end of a connection. */
export class End {
  peer: End | undefined;
  onData: (bytes: Buffer) => void = ignore;
  onEnd: () => void = ignore;
  onReset: () => void = ignore;
  readonly owner: Owner;
  readonly #time: VirtualTime;
  readonly #way: Way;
  readonly #host: Host;
  /** Bytes that arrived and were not read. */
  readonly #inbox: Array<Buffer> = [];
  #isReading = true;
  #isHandingOver = false;
  /** Bytes that were sent and not read by the peer. */
  #outstanding = 0;
  readonly #accepted: Array<() => void> = [];
  #arrivesAt = 0;
  #ended = false;
  #endArrived = false;
  /** True after this end closed, or learned of a reset. */
  closed = false;

  constructor(time: VirtualTime, owner: Owner, way: Way, host: Host) {
    this.#time = time;
    this.owner = owner;
    this.#way = way;
    this.#host = host;
  }

  /** True if bytes arrived that were not read. */
  get hasUnread(): boolean {
    return this.#inbox.length > 0;
  }

  /** Sends bytes. @param accepted called once the system has taken them */
  write(bytes: Buffer, accepted: () => void = ignore): void {
    if (this.closed) return;
    this.#outstanding += bytes.byteLength;
    const size = Math.max(this.#way.packetBytes, Math.ceil(bytes.byteLength / packetsMax));
    for (let at = 0; at < bytes.byteLength; at += size) {
      const packet = bytes.subarray(at, at + size);
      this.#send((peer) => peer.#take(packet));
    }
    this.#accepted.push(accepted);
    this.#settle();
  }

  /** Ends the writing side (FIN). */
  end(): void {
    if (this.closed || this.#ended) return;
    this.#ended = true;
    this.#send((peer) => {
      peer.#endArrived = true;
      peer.#handOver();
    });
  }

  /** Closes the end. If the peer's bytes were not all read, the peer learns of a reset. */
  close(): void {
    if (this.closed) return;
    if (this.hasUnread) {
      this.reset();
      return;
    }
    this.end();
    this.#over();
    this.#send((peer) => {
      // A peer that still sends gets a reset in return.
      if (!peer.closed && peer.#outstanding > 0) peer.#breakOff();
    });
  }

  reset(): void {
    if (this.closed) return;
    this.#over();
    this.#send((peer) => peer.#breakOff());
  }

  pause(): void {
    this.#isReading = false;
  }

  resume(): void {
    if (this.#isReading) return;
    this.#isReading = true;
    this.#handOver();
  }

  #over(): void {
    this.closed = true;
    this.#inbox.length = 0;
    this.#accepted.length = 0;
  }

  /** Delivers something to the peer after the latency, in order, and not before a lost path works again. */
  #send(deliver: (peer: End) => void): void {
    const { now } = this.#time;
    const works = this.#host.worksAt(now, "lost");
    if (works === Number.POSITIVE_INFINITY) return;
    this.#arrivesAt = Math.max(this.#arrivesAt, Math.max(now, works) + this.#way.latencyMs);
    const { peer } = this;
    if (peer === undefined) return;
    this.#time.after(
      this.#arrivesAt - now,
      () => {
        if (!peer.closed) deliver(peer);
      },
      peer.owner,
    );
  }

  #take(packet: Buffer): void {
    this.#inbox.push(packet);
    this.#handOver();
  }

  #handOver(): void {
    if (this.#isHandingOver) return;
    this.#isHandingOver = true;
    while (this.#isReading && this.#inbox.length > 0 && !this.closed) {
      const bytes = this.#inbox.shift();
      if (bytes === undefined) break;
      if (this.peer !== undefined) {
        this.peer.#outstanding -= bytes.byteLength;
        this.peer.#settle();
      }
      this.onData(bytes);
    }
    this.#isHandingOver = false;
    if (!this.#endArrived || this.#inbox.length > 0 || this.closed || !this.#isReading) return;
    this.#endArrived = false;
    this.onEnd();
  }

  /** The system takes bytes until its buffers are full. */
  #settle(): void {
    while (this.#accepted.length > 0 && this.#outstanding <= bufferBytes) {
      const accepted = this.#accepted.shift();
      if (accepted !== undefined) this.#time.after(0, accepted, this.owner);
    }
  }

  /** Learns of a reset. Bytes that were not read are lost. */
  #breakOff(): void {
    if (this.closed) return;
    this.#over();
    this.onReset();
  }
}

const ignore = (): void => undefined;

/** Maximum packets of one write, so that a long text takes no hours of real time. */
const packetsMax = 48;

/** Bytes that the systems of both ends keep for a reader. */
const bufferBytes = 256 * 1024;

/** A host of the world. */
export class Host {
  readonly name: string;
  readonly way: Way;
  readonly #time: VirtualTime;
  /** The times in which it is away. */
  readonly away: Array<Away>;
  readonly onConnection: (end: End) => void;
  /** Connects that were tried, as times. */
  readonly connects: Array<number> = [];

  constructor(
    time: VirtualTime,
    { away, name, way }: { readonly name: string; readonly way: Way; readonly away: ReadonlyArray<Away> },
    onConnection: (end: End) => void,
  ) {
    this.#time = time;
    this.name = name;
    this.way = way;
    this.away = [...away];
    this.onConnection = onConnection;
  }

  /** Goes away as soon as the last packet has arrived. */
  goAway({ kind, ms }: Pick<Away, "kind" | "ms">): void {
    this.away.push({ at: this.#time.now + this.way.latencyMs + 1, ms, kind });
  }

  /** The kind in which the host is away; undefined if it can be reached. */
  awayAt(now: number): Away | undefined {
    return this.away.find(({ at, ms }) => at <= now && now < at + ms);
  }

  /** The time from which it is not away in this way. */
  worksAt(now: number, kind: AwayKind): number {
    const away = this.awayAt(now);
    return away?.kind === kind ? this.worksAt(away.at + away.ms, kind) : now;
  }
}

/** Times after which TCP repeats a connect, in milliseconds. */
const synMs = [0, 1_000, 3_000, 7_000, 15_000, 31_000, 63_000];

/** Time after which TCP gives a connect up, in milliseconds. */
const synLimitMs = 127_000;

const errorOf = (code: string, syscall: string, host: string, port: number): Error =>
  Object.assign(new Error(`${syscall} ${code} ${host}:${port}`), { code, syscall, address: host, port });

const codes = {
  refused: ["ECONNREFUSED", "connect"],
  unnamed: ["ENOTFOUND", "getaddrinfo"],
  unroutable: ["ENETUNREACH", "connect"],
} as const;

const awayError = (kind: keyof typeof codes, host: string, port: number): Error => {
  const [code, syscall] = codes[kind];
  return errorOf(code, syscall, host, port);
};

/** The hosts, listeners and open connections. */
export class VirtualNet {
  readonly #time: VirtualTime;
  readonly #hosts = new Map<string, Host>();
  readonly #listeners = new Map<number, Server>();
  readonly #sockets = new Set<Socket>();
  #ports = 40_000;

  constructor(time: VirtualTime) {
    this.#time = time;
  }

  /** Number of sockets of the gateway that are open. */
  get open(): number {
    return this.#sockets.size;
  }

  add(host: Host): void {
    this.#hosts.set(host.name, host);
  }

  listen(server: Server, port: number): void {
    this.#ports += 1;
    this.#listeners.set(port === 0 ? this.#ports : port, server);
  }

  portOf(server: Server): number {
    return [...this.#listeners].find(([, it]) => it === server)?.[0] ?? 0;
  }

  closeListener(server: Server): void {
    for (const [port, it] of this.#listeners) if (it === server) this.#listeners.delete(port);
  }

  /** Opens a connection of the gateway to a host. */
  connect(name: string, port: number): Socket {
    const socket = new VirtualSocket(this.#time, { allowHalfOpen: false });
    this.#keep(socket);
    const host = this.#hosts.get(name);
    if (host === undefined) {
      this.#time.after(0, () => socket.destroy(errorOf("ENOTFOUND", "getaddrinfo", name, port)), "gateway");
      return socket;
    }
    host.connects.push(this.#time.now);
    for (const ms of synMs) this.#time.after(ms, () => this.#knock(socket, host, port), "world");
    this.#time.after(synLimitMs, () => this.#fail(socket, errorOf("ETIMEDOUT", "connect", name, port)), "world");
    return socket;
  }

  /** A packet that opens a connection. If it is lost, another follows. */
  #knock(socket: VirtualSocket, host: Host, port: number): void {
    if (!socket.connecting || socket.destroyed) return;
    const away = host.awayAt(this.#time.now);
    if (away?.kind === "lost") return;
    if (away !== undefined) {
      this.#fail(socket, awayError(away.kind, host.name, port));
      return;
    }
    const [near, far] = this.#pair(host, "gateway");
    this.#time.after(
      2 * host.way.latencyMs,
      () => {
        if (!socket.connecting || socket.destroyed) return;
        socket.open(near, { address: "10.0.0.1", port }, this.#port());
        host.onConnection(far);
      },
      "gateway",
    );
  }

  #fail(socket: VirtualSocket, error: Error): void {
    if (!socket.connecting || socket.destroyed) return;
    this.#time.after(
      0,
      () => {
        if (socket.connecting) socket.destroy(error);
      },
      "gateway",
    );
  }

  #port(): number {
    this.#ports += 1;
    return this.#ports;
  }

  /** Opens a connection of a client to the gateway. @returns the client's end; undefined if nothing listens */
  call(port: number, host: Host): End | undefined {
    const server = this.#listeners.get(port);
    if (server === undefined) return undefined;
    const [near, far] = this.#pair(host, "gateway");
    const socket = new VirtualSocket(this.#time, { allowHalfOpen: true });
    this.#keep(socket);
    this.#time.after(
      host.way.latencyMs,
      () => {
        socket.open(near, { address: "10.0.0.2", port: this.#port() }, port);
        server.emit("connection", socket);
      },
      "gateway",
    );
    return far;
  }

  #pair(host: Host, owner: Owner): readonly [near: End, far: End] {
    const [near, far] = [new End(this.#time, owner, host.way, host), new End(this.#time, "world", host.way, host)];
    near.peer = far;
    far.peer = near;
    return [near, far];
  }

  #keep(socket: Socket): void {
    this.#sockets.add(socket);
    socket.once("close", () => this.#sockets.delete(socket));
  }
}

interface Address {
  readonly address: string;
  readonly port: number;
}

/** A socket of the gateway over a virtual connection. */
class VirtualSocket extends Socket {
  readonly #time: VirtualTime;
  #end: End | undefined;
  #timeoutMs = 0;
  #cancelTimeout: () => void = ignore;
  resetAndClosing = false;

  override readonly setTimeout = (ms: number, callback?: () => void): this => {
    this.#timeoutMs = ms;
    // Node's field is read-only for its users.
    Reflect.set(this, "timeout", ms);
    if (callback !== undefined && ms > 0) this.once("timeout", callback);
    if (callback !== undefined && ms === 0) this.removeListener("timeout", callback);
    this.#touch();
    return this;
  };

  constructor(time: VirtualTime, options: { readonly allowHalfOpen: boolean }) {
    super(options);
    this.#time = time;
    // Node sets it while it connects.
    Reflect.set(this, "connecting", true);
  }

  /** Gives the socket its connection. */
  open(end: End, peer: Address, localPort: number): void {
    this.#end = end;
    Reflect.set(this, "connecting", false);
    // The fields in which Node keeps both addresses.
    Reflect.set(this, "_peername", { ...peer, family: "IPv4" });
    Reflect.set(this, "_sockname", { address: "127.0.0.1", family: "IPv4", port: localPort });
    end.onData = (bytes) => {
      this.#touch();
      if (!this.push(bytes)) end.pause();
    };
    end.onEnd = () => {
      this.push(null);
      // Node reads a socket without a reader, to learn of its end.
      this.read(0);
    };
    end.onReset = () =>
      this.destroy(Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET", syscall: "read" }));
    this.emit("connect");
    this.emit("ready");
    this.read(0);
  }

  override _read(): void {
    this.#end?.resume();
  }

  override _write(chunk: Buffer | string, encoding: BufferEncoding, callback: (error?: Error | null) => void): void {
    this.#onceOpen(() => {
      this.#touch();
      const bytes = typeof chunk === "string" ? Buffer.from(chunk, encoding) : Buffer.from(chunk);
      if (this.#end?.closed !== false)
        callback(Object.assign(new Error("write EPIPE"), { code: "EPIPE", syscall: "write" }));
      else this.#end.write(bytes, () => callback());
    });
  }

  override _writev(
    chunks: Array<{ chunk: Buffer | string; encoding: BufferEncoding }>,
    callback: (error?: Error | null) => void,
  ): void {
    const parts = chunks.map(({ chunk, encoding }) =>
      typeof chunk === "string" ? Buffer.from(chunk, encoding) : Buffer.from(chunk),
    );
    this._write(Buffer.concat(parts), "latin1", callback);
  }

  override _final(callback: (error?: Error | null) => void): void {
    this.#onceOpen(() => {
      this.#end?.end();
      callback();
    });
  }

  override _destroy(error: Error | null, callback: (error?: Error | null) => void): void {
    this.#cancelTimeout();
    if (this.resetAndClosing) this.#end?.reset();
    else this.#end?.close();
    super._destroy(error, callback);
  }

  override resetAndDestroy(): this {
    this.resetAndClosing = true;
    return this.destroy();
  }

  override setKeepAlive(): this {
    return this;
  }

  override setNoDelay(): this {
    return this;
  }

  override ref(): this {
    return this;
  }

  override unref(): this {
    return this;
  }

  #touch(): void {
    this.#cancelTimeout();
    if (this.#timeoutMs > 0 && !this.destroyed)
      this.#cancelTimeout = this.#time.after(this.#timeoutMs, () => void this.emit("timeout"), "gateway");
  }

  #onceOpen(run: () => void): void {
    if (this.connecting) this.once("connect", run);
    else run();
  }
}
