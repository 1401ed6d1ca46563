/**
 * Remembers each origin of a client: whether it was ever reached, when it was last called, and its open connections.
 */
import { dropOldest } from "../../domain/Limits.ts";

/** Maximum origins that are remembered. The one that was added first is evicted. */
export const originsMax = 1024;

/**
 * Time during which connect failures of a never-reached origin may be retried, in milliseconds since the first request that
 * failed to connect. Such an address is more often wrong than down, and its client waits (DESIGN.md, 13). An origin that is
 * just starting gets three tries.
 */
export const unreachedMs = 2_000;

/** A connection that its origin can close while it is idle. */
export interface KeptConnection {
  /** Closes the connection if it is idle. */
  readonly discard: () => void;
  /** Marks the connection as possibly dead, even while it is in use. No further request is written on it. */
  readonly suspect: () => void;
}

/** One origin: scheme, host and port. */
export class Origin {
  /** True if a connection to the origin was ever made. From then on, a failed name lookup is the network's fault. */
  reached = false;
  /** Start of the first request that could not connect, in monotonic milliseconds. */
  #unreachedSince: number | undefined;
  readonly connections = new Set<KeptConnection>();
  /** Kept connections that this client closed since the previous call. */
  #recycled = 0;
  #running = 0;
  #lastEndedAt: number | undefined;

  /**
   * Records the start of a call.
   *
   * @param now monotonic milliseconds
   * @returns milliseconds since the end of the previous call, 0 while one runs, undefined for the first; and the connections
   * that were recycled since then
   */
  begin(now: number): { readonly idleMs: number | undefined; readonly recycled: number } {
    const idleMs = this.#running > 0 ? 0 : this.#lastEndedAt === undefined ? undefined : now - this.#lastEndedAt;
    const recycled = this.#recycled;
    this.#recycled = 0;
    this.#running += 1;
    return { idleMs, recycled };
  }

  end(now: number): void {
    this.#running -= 1;
    this.#lastEndedAt = now;
  }

  /**
   * Records that no connection could be made for a request.
   *
   * @param openedAt start of the request, in monotonic milliseconds
   * @param now monotonic milliseconds
   * @returns true if this is a wrong address and no outage: the origin was never reached, for long enough
   */
  isWrongAddress(openedAt: number, now: number): boolean {
    if (this.reached) return false;
    this.#unreachedSince ??= openedAt;
    return now - this.#unreachedSince > unreachedMs;
  }

  /** Records that this client closed a kept connection. */
  recordIdleClose(): void {
    this.#recycled += 1;
  }

  /** Stops trusting every connection that is open now: after a suspension, and if the path does not work. */
  suspect(): void {
    for (const connection of [...this.connections]) connection.suspect();
  }

  /** Closes every idle connection. If one broke, the others may be dead too. */
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
   * Looks up an origin, and remembers it if it is new.
   *
   * @param name name of the origin, as in `URL.origin`
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
