/**
 * Bounds how many retries of one provider are under way at once and have not been answered yet.
 *
 * The throttle spaces retries in time; this keeps a provider that accepts connections and answers none of them from being
 * held by every run of a process. First come, first served.
 */
import * as Effect from "effect/Effect";

/** Retries of one provider that may wait for their first part at the same time. */
export const unansweredMax = 32;

interface Lane {
  active: number;
  readonly waiting: Array<() => void>;
}

/** The lanes of one process, a provider each; a lane that nobody uses is forgotten. */
export class RetryGate {
  readonly #lanes = new Map<string, Lane>();

  /** Retries of a provider that are under way and unanswered. */
  active(provider: string): number {
    return this.#lanes.get(provider)?.active ?? 0;
  }

  /**
   * Waits for a place.
   *
   * @param hold is given the way to give the place back, in the very step that grants it: whoever is interrupted in that
   *   step still holds it. Giving back twice does nothing.
   */
  enter(provider: string, hold: (leave: () => void) => void): Effect.Effect<void> {
    return Effect.callback((resume) => {
      const lane = this.#lane(provider);
      const admit = () => {
        lane.active += 1;
        hold(once(() => this.#leave(provider, lane)));
        resume(Effect.void);
      };
      if (lane.active < unansweredMax) {
        admit();
        return;
      }
      lane.waiting.push(admit);
      return Effect.sync(() => {
        const at = lane.waiting.indexOf(admit);
        if (at >= 0) lane.waiting.splice(at, 1);
      });
    });
  }

  #lane(provider: string): Lane {
    const lane = this.#lanes.get(provider) ?? { active: 0, waiting: [] };
    this.#lanes.set(provider, lane);
    return lane;
  }

  #leave(provider: string, lane: Lane): void {
    lane.active -= 1;
    const next = lane.waiting.shift();
    if (next !== undefined) next();
    else if (lane.active === 0) this.#lanes.delete(provider);
  }
}

const once = (run: () => void): (() => void) => {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    run();
  };
};
