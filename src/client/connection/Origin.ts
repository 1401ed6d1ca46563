/**
 * Remembers each origin of a client: whether it ever responded, when it was last called, and its open connections.
 */
import { dropOldest } from "../../domain/Limits.ts";

/** Most origins that are remembered; the one that was added first is forgotten. */
export const originsMax = 1024;

/**
 * How long a connect failure of an origin that was never reached may be retried, in milliseconds since the first request that
 * found it so. Such an address is more often wrong than away, and its client waits (DESIGN.md, 13): one that is just being started
 * has three tries at it.
 */
export const unreachedMs = 2_000;

/** A connection that its origin can close while it is idle. */
export interface KeptConnection {
  /** Closes the connection if it only waits for a request. */
  readonly discard: () => void;
  /** The connection may be dead, also one that is in use: no further request is written on it before it has proven that it lives. */
  readonly suspect: () => void;
}

/** One origin: scheme, host and port. */
export class Origin {
  /** A connection was made to the origin: a name lookup that fails from now on is the network's fault. */
  reached = false;
  /** Since when it cannot be connected to: the begin of the first request that failed so, in monotonic milliseconds. */
  #unreachedSince: number | undefined;
  /** Its open connections. */
  readonly connections = new Set<KeptConnection>();
  /** Kept connections that this client closed since the previous call. */
  #recycled = 0;
  #running = 0;
  #lastEndedAt: number | undefined;

  /**
   * A call begins.
   *
   * @param now monotonic milliseconds
   * @returns milliseconds since the end of the previous call, 0 while one runs, undefined for the first; and the connections
   *   that were recycled since then
   */
  begin(now: number): { readonly idleMs: number | undefined; readonly recycled: number } {
    const idleMs = this.#running > 0 ? 0 : this.#lastEndedAt === undefined ? undefined : now - this.#lastEndedAt;
    const recycled = this.#recycled;
    this.#recycled = 0;
    this.#running += 1;
    return { idleMs, recycled };
  }

  /** A call has ended. */
  end(now: number): void {
    this.#running -= 1;
    this.#lastEndedAt = now;
  }

  /**
   * No connection could be made for a request.
   *
   * @param openedAt when the request began, in monotonic milliseconds
   * @param now monotonic milliseconds
   * @returns whether this is no outage but an address that leads nowhere: the origin was never reached, for long enough
   */
  unconnected(openedAt: number, now: number): boolean {
    if (this.reached) return false;
    this.#unreachedSince ??= openedAt;
    return now - this.#unreachedSince > unreachedMs;
  }

  /** A kept connection was closed by this client. */
  closedIdle(): void {
    this.#recycled += 1;
  }

  /** Trusts no connection any more that was opened until now: after a suspension, and where the path does not work. */
  suspect(): void {
    for (const connection of [...this.connections]) connection.suspect();
  }

  /** Closes every idle connection: where one broke, the others may be dead too. */
  distrust(): void {
    for (const connection of [...this.connections]) connection.discard();
  }
}

/** The origins of one client. */
export class Origins {
  readonly #origins = new Map<string, Origin>();

  /** Closes every idle connection of every origin. */
  discard(): void {
    for (const origin of this.#origins.values()) origin.distrust();
  }

  /**
   * Looks an origin up, or begins to remember it.
   *
   * @param name as `URL.origin` spells it
   */
  of(name: string): Origin {
    const known = this.#origins.get(name);
    if (known !== undefined) return known;
    const origin = new Origin();
    this.#origins.set(name, origin);
    dropOldest(this.#origins, originsMax);
    return origin;
  }
}
