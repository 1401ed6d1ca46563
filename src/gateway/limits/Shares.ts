/**
 * Shares what a gateway holds between its clients: none may hold more than half of what the others leave, so that there is
 * always room for one more.
 */
import type { Socket } from "node:net";
import { connectionsFor, maxDescriptors } from "./Descriptors.ts";

/** The client that something is held for; undefined if it has nobody to share with. */
export type Holder = string | undefined;

/**
 * Names the client of a request. Several tokens are several clients. With one token or none, an address is a client, and a gateway
 * that is used from its own machine has one user, who has all of it.
 */
export const holderOf = (
  token: string | undefined,
  address: string | undefined,
  tokens: { readonly length: number },
): Holder => {
  if (tokens.length > 1) return token;
  return address === undefined || /^(?:::1|(?:::ffff:)?127(?:\.\d{1,3}){3})$/i.test(address) ? undefined : address;
};

/** Counts what each client holds of one thing, such as bytes. */
export class Shares {
  readonly #held = new Map<string, number>();
  #total = 0;

  /** What all hold together. */
  get total(): number {
    return this.#total;
  }

  /** Whether a client may hold so much more. The first thing that it asks for may be more than its share. */
  mayHold(holder: Holder, more: number, max: number, isFirst = false): boolean {
    if (holder === undefined || isFirst) return true;
    const held = this.#held.get(holder) ?? 0;
    return held + more <= (max - (this.#total - held)) / 2;
  }

  /** What a client holds. */
  of(holder: Holder): number {
    return holder === undefined ? 0 : (this.#held.get(holder) ?? 0);
  }

  /** A client holds so much more, or less. */
  add(holder: Holder, more: number): void {
    this.#total += more;
    if (holder === undefined) return;
    const held = (this.#held.get(holder) ?? 0) + more;
    if (held > 0) this.#held.set(holder, held);
    else this.#held.delete(holder);
  }
}

/** After so many new connections the limit of descriptors is read again: it may be changed while the process runs. */
const limitReadEvery = 16;

/** A connection as it is told apart, also when TLS wraps it. */
type Ends = Pick<Socket, "remoteAddress" | "remotePort">;

/** The connections of a gateway, by the client whose requests they have carried. */
export class Connections {
  #max: number;
  readonly #shares = new Shares();
  readonly #claimed = new Map<string, { readonly holder: Holder }>();
  /** Those that have carried no admitted request, the oldest first. */
  readonly #unclaimed = new Map<string, Socket>();
  readonly #whenShort: () => void;
  readonly #readLimit: () => number | undefined;
  #opened = 0;
  /** Connections for which there are descriptors. */
  #room = Number.POSITIVE_INFINITY;

  /**
   * @param max most connections
   * @param whenShort called for each connection that is closed for want of descriptors
   * @param readLimit gives how many descriptors the process may have
   */
  constructor(max: number, whenShort: () => void = () => undefined, readLimit = maxDescriptors) {
    this.#max = max;
    this.#whenShort = whenShort;
    this.#readLimit = readLimit;
  }

  /** Sets another limit, for what comes from now on. */
  limit(max: number): void {
    this.#max = max;
  }

  /** Connections that are open. */
  get open(): number {
    return this.#claimed.size + this.#unclaimed.size;
  }

  /**
   * A connection has been opened. Beyond half of all, the oldest that nobody has claimed gives its place up. One for which there are
   * not enough descriptors is closed, so that those before it can reach their providers.
   */
  opened(socket: Socket): void {
    if (this.#opened++ % limitReadEvery === 0)
      this.#room = connectionsFor(this.#readLimit() ?? Number.POSITIVE_INFINITY);
    if (this.open >= this.#room) {
      socket.destroy();
      this.#whenShort();
      return;
    }
    const key = keyOf(socket);
    this.#unclaimed.set(key, socket);
    socket.once("close", () => this.#closed(key, socket));
    const [oldest] = this.#unclaimed.values();
    if (this.#unclaimed.size > Math.max(1, this.#max / 2)) oldest?.destroy();
  }

  /**
   * An admitted request has come over a connection: it is its client's from now on.
   *
   * @returns whether the client may have it beside its others
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

  #closed(key: string, socket: Socket): void {
    if (this.#unclaimed.get(key) === socket) this.#unclaimed.delete(key);
    const claimed = this.#claimed.get(key);
    if (claimed === undefined) return;
    this.#claimed.delete(key);
    this.#shares.add(claimed.holder, -1);
  }
}

const keyOf = ({ remoteAddress, remotePort }: Ends): string => `${remoteAddress} ${remotePort}`;
