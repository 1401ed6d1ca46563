/**
 * Measures how much slower a busy machine is than a quiet one. A play that says when something has to be there is played on machines
 * that do other things too: there it may take so many times as long.
 */
import { Effect } from "effect";

/** From one measurement to the next, and how long one works, in milliseconds: a fiftieth of one core. */
const [everyMs, workMs] = [500, 10];

/** On a machine that is slower than this, what takes a moment elsewhere takes longer than a node waits for it. */
export const slownessMax = 2;

/** How many milliseconds one of work takes here. */
export class Slowness {
  #wallMs = 0;
  #cpuMs = 0;

  /** On average since the beginning: 1 on a quiet machine. */
  get factor(): number {
    return this.#cpuMs === 0 ? 1 : Math.max(1, this.#wallMs / this.#cpuMs);
  }

  /** Measures again and again. */
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
