/**
 * Measures the time for which a kept connection has waited for a request, by two clocks: on some systems the monotonic clock stops during
 * sleep, and the wall clock may be changed.
 */

/** The two clocks of a client. */
export interface ClientClocks {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Wall clock, milliseconds since the epoch. */
  readonly nowMs: () => number;
}

/** Measures how long one connection has had no exchange. */
export class IdleTime {
  readonly #clocks: ClientClocks;
  #since: { readonly now: number; readonly nowMs: number } | undefined;

  constructor(clocks: ClientClocks) {
    this.#clocks = clocks;
  }

  /** True if the connection is waiting for a request. */
  get isIdle(): boolean {
    return this.#since !== undefined;
  }

  begin(): void {
    this.#since = { now: this.#clocks.now(), nowMs: this.#clocks.nowMs() };
  }

  /**
   * Ends the idle time.
   *
   * @returns idle time in monotonic milliseconds; 0 if the connection was not idle
   */
  end(): number {
    const since = this.#since;
    this.#since = undefined;
    return since === undefined ? 0 : this.#clocks.now() - since.now;
  }

  /** Returns true if the idle time exceeds a limit, in milliseconds, by either clock. */
  isLongerThan(limitMs: number): boolean {
    if (this.#since === undefined) return false;
    const { now, nowMs } = this.#clocks;
    return Math.max(now() - this.#since.now, nowMs() - this.#since.nowMs) > limitMs;
  }
}
