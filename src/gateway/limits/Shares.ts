/**
 * Divides a gateway's resources among its clients. No client may hold more than half of what the other clients leave, so a new client
 * always finds some room.
 */
import type { Socket } from "node:net";
import { connectionsFor, maxDescriptors } from "./Descriptors.ts";

/** Client that holds resources; undefined for a client without a limit. */
export type Holder = string | undefined;

/**
 * Identifies the client of a request: by its token if there are several tokens, otherwise by its address. A client on the gateway's own
 * machine has no limit, because such a gateway serves one user.
 */
export const holderOf = (
  token: string | undefined,
  address: string | undefined,
  tokens: { readonly length: number },
): Holder => {
  if (tokens.length > 1) return token;
  return address === undefined || /^(?:::1|(?:::ffff:)?127(?:\.\d{1,3}){3})$/i.test(address) ? undefined : address;
};

/** Counts each client's use of one resource, for example bytes. */
export class Shares {
  readonly #held = new Map<string, number>();
  #total = 0;

  get total(): number {
    return this.#total;
  }

  /** True if a client may hold `more` in addition. With `isFirst` (the client holds nothing else yet) it may exceed its share. */
  mayHold(holder: Holder, more: number, max: number, isFirst = false): boolean {
    if (holder === undefined || isFirst) return true;
    const held = this.#held.get(holder) ?? 0;
    return held + more <= (max - (this.#total - held)) / 2;
  }

  of(holder: Holder): number {
    return holder === undefined ? 0 : (this.#held.get(holder) ?? 0);
  }

  /** Adds to the amount that a client holds; `more` may be negative. */
  add(holder: Holder, more: number): void {
    this.#total += more;
    if (holder === undefined) return;
    const held = (this.#held.get(holder) ?? 0) + more;
    if (held > 0) this.#held.set(holder, held);
    else this.#held.delete(holder);
  }
}

/** Number of new connections after which the descriptor limit is read again, since it may change while the process runs. */
const limitReadEvery = 16;

/** Identifies a connection. The values are the same for a TCP socket and the TLS socket above it. */
type Ends = Pick<Socket, "remoteAddress" | "remotePort">;

/** The connections of a gateway, each assigned to the client whose requests it carries. */
export class Connections {
  #max: number;
  readonly #shares = new Shares();
  readonly #claimed = new Map<string, { readonly holder: Holder }>();
  /** Connections that have not carried an admitted request yet, oldest first. */
  readonly #unclaimed = new Map<string, Socket>();
  readonly #whenShort: () => void;
  readonly #readLimit: () => number | undefined;
  #opened = 0;
  /** Number of connections that the descriptors allow. */
  #room = Number.POSITIVE_INFINITY;

  /**
   * @param max maximum number of connections
   * @param whenShort called for each connection that is closed because descriptors are exhausted
   * @param readLimit returns the descriptor limit of the process
   */
  constructor(max: number, whenShort: () => void = () => undefined, readLimit = maxDescriptors) {
    this.#max = max;
    this.#whenShort = whenShort;
    this.#readLimit = readLimit;
  }

  limit(max: number): void {
    this.#max = max;
  }

  get open(): number {
    return this.#claimed.size + this.#unclaimed.size;
  }

  /** Number of connections that have not carried an admitted request yet. */
  get unclaimedCount(): number {
    return this.#unclaimed.size;
  }

  isUnclaimed(socket: Ends): boolean {
    return this.#unclaimed.has(keyOf(socket));
  }

  /**
   * Registers a new connection. If more than half of the maximum are unclaimed, the oldest unclaimed connection is closed. If descriptors
   * are short, the new connection is closed, so that earlier connections can reach their providers.
   */
  register(socket: Socket): void {
    if (this.#opened++ % limitReadEvery === 0)
      this.#room = connectionsFor(this.#readLimit() ?? Number.POSITIVE_INFINITY);
    if (this.open >= this.#room) {
      socket.destroy();
      this.#whenShort();
      return;
    }
    const key = keyOf(socket);
    this.#unclaimed.set(key, socket);
    socket.once("close", () => this.#unregister(key, socket));
    const [oldest] = this.#unclaimed.values();
    if (this.#unclaimed.size > Math.max(1, this.#max / 2)) oldest?.destroy();
  }

  /**
   * Assigns a connection to the client of an admitted request.
   *
   * @returns false if the client holds too many connections
   */
  claim(socket: Ends, holder: Holder): boolean {
    const key = keyOf(socket);
    const claimed = this.#claimed.get(key);
    if (claimed !== undefined && claimed.holder === holder) return true;
    if (claimed === undefined && !this.#unclaimed.has(key)) return true;
    const isFirst = this.#shares.of(holder) === 0;
    if (!this.#shares.mayHold(holder, 1, this.#max, isFirst)) return false;
    if (claimed !== undefined) this.#shares.add(claimed.holder, -1);
    this.#unclaimed.delete(key);
    this.#claimed.set(key, { holder });
    this.#shares.add(holder, 1);
    return true;
  }

  #unregister(key: string, socket: Socket): void {
    if (this.#unclaimed.get(key) === socket) this.#unclaimed.delete(key);
    const claimed = this.#claimed.get(key);
    if (claimed === undefined) return;
    this.#claimed.delete(key);
    this.#shares.add(claimed.holder, -1);
  }
}

const keyOf = ({ remoteAddress, remotePort }: Ends): string => `${remoteAddress} ${remotePort}`;
