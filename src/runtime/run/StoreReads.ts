/**
 * Limits the time that a volatile run waits for facts of other processes (L8). After that the run decides from what its own process knows.
 */
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type { Queue } from "../../recorder/WriteQueue.ts";

/** Maximum total time that a volatile run waits for reads of the store, in milliseconds. */
export const readsMsMax = 250;

/** Reads of the store that a run waits for. */
export interface StoreReads {
  /**
   * Waits for a read within the run's limit.
   *
   * @param otherwise the value to use if the store does not answer in time
   */
  within<A, B, E, R>(read: Effect.Effect<A, E, R>, otherwise: B): Effect.Effect<A | B, E, R>;
}

/** A durable run waits for each read as long as that read allows. */
export const unboundedReads: StoreReads = { within: (read) => read };

/** The reads of one volatile run. */
export class BoundedReads implements StoreReads {
  readonly #queue: Pick<Queue, "isAway">;
  readonly #now: () => number;
  #leftMs = readsMsMax;

  /** @param now monotonic clock, in milliseconds */
  constructor(queue: Pick<Queue, "isAway">, now: () => number) {
    this.#queue = queue;
    this.#now = now;
  }

  within<A, B, E, R>(read: Effect.Effect<A, E, R>, otherwise: B): Effect.Effect<A | B, E, R> {
    return Effect.suspend(() => {
      if (this.#leftMs <= 0 || this.#queue.isAway) return Effect.succeed(otherwise);
      const from = this.#now();
      return Effect.ensuring(
        Effect.timeoutOrElse(read, {
          duration: Duration.millis(this.#leftMs),
          orElse: () => Effect.succeed(otherwise),
        }),
        Effect.sync(() => {
          this.#leftMs -= Math.max(0, this.#now() - from);
        }),
      );
    });
  }
}
