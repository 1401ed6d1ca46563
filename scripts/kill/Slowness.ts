/**
 * Measures how much slower a busy machine is than a quiet one. Plays with time limits also run on busy machines, and multiply their
 * limits by this factor.
 */
import { Effect } from "effect";

/** Interval between measurements, and CPU time of one, in milliseconds. Together they take a fiftieth of one core. */
const [everyMs, workMs] = [500, 10];

/** Beyond this factor, nodes may exceed timeouts that are ample on a quiet machine. */
export const slownessMax = 2;

/** Measures the wall time that a unit of CPU time takes. */
export class Slowness {
  #wallMs = 0;
  #cpuMs = 0;

  /** Average since the start; 1 on a quiet machine. */
  get factor(): number {
    return this.#cpuMs === 0 ? 1 : Math.max(1, this.#wallMs / this.#cpuMs);
  }

  /** Measures at intervals, forever. */
  readonly measured: Effect.Effect<never> = Effect.forever(
    Effect.andThen(
      Effect.sync(() => this.#measure()),
      Effect.sleep(everyMs),
    ),
  );

  #measure(): void {
    const begunAt = performance.now();
    const before = process.cpuUsage();
    let cpuMs = 0;
    while (cpuMs < workMs) {
      const { system, user } = process.cpuUsage(before);
      cpuMs = (system + user) / 1_000;
    }
    this.#cpuMs += cpuMs;
    this.#wallMs += performance.now() - begunAt;
  }
}
