/**
 * Remembers each origin of a client: whether it ever responded, when it was last called, and its open connections.
 */
import { dropOldest } from "../../domain/Limits.ts";

/** Most origins that are remembered; the one that was added first is forgotten. */
export const originsMax = 1024;

/** A connection that its origin can close while it is idle. */
export interface KeptConnection {
  /** Closes the connection if it only waits for a request. */
  readonly discard: () => void;
}

/** One origin: scheme, host and port. */
export class Origin {
  /** The origin has responded: a name lookup that fails from now on is the network's fault. */
  reached = false;
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

  /** A kept connection was closed by this client. */
  closedIdle(): void {
    this.#recycled += 1;
  }

  /** Closes every idle connection: where one broke, the others may be dead too. */
  distrust(): void {
    for (const connection of [...this.connections]) connection.discard();
  }
}

/** The origins of one client. */
export class Origins {
  readonly #origins = new Map<string, Origin>();

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
