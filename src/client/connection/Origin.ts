/** Remembers facts about each origin of a client: if it was ever reached, the time of its last call, and its open connections. */
import { dropOldest } from "../../domain/Limits.ts";

/** Maximum origins that are remembered. Beyond it the origin that was added first is evicted. */
export const originsMax = 1024;

/**
 * Time for which connect failures of an origin that was never reached may be retried, in milliseconds from the first request that failed to
 * connect. Such an address is more often wrong than down, and its client is waiting (DESIGN.md, 13). An origin that is just starting gets
 * three tries in this time.
 */
export const unreachedMs = 2_000;

/** A connection that its origin can close while it is idle. */
export interface KeptConnection {
  /** Closes the connection if it is idle. */
  readonly discard: () => void;
  /** Marks the connection as possibly dead, even while it is in use. No further request is written to it. */
  readonly suspect: () => void;
}

/** One origin: scheme, host and port. */
export class Origin {
  /** True if a connection to the origin was ever made. After that, a failed name lookup counts as the network's fault. */
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
   * @returns milliseconds since the end of the previous call (0 while another call is running, undefined for the first one), and the number
   *   of connections that were recycled since then
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
   * @returns true if the address counts as wrong, because the origin was never reached and connecting has failed for long enough
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

  /** Marks every open connection as possibly dead. Called after a suspension, and if the path does not work. */
  suspect(): void {
    for (const connection of [...this.connections]) connection.suspect();
  }

  /** Closes every idle connection: if one connection broke, the others may be dead too. */
  discardIdle(): void {
    for (const connection of [...this.connections]) connection.discard();
  }
}

/** The origins of one client, at most `originsMax`. */
export class Origins {
  readonly #origins = new Map<string, Origin>();

  /** Closes every idle connection of every origin. */
  discard(): void {
    for (const origin of this.#origins.values()) origin.discardIdle();
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
