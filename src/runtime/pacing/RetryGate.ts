/**
 * Bounds how many retries of one provider wait for their first part at the same time.
 *
 * The throttle spaces retries in time; the gate keeps a provider that accepts connections and responds to none of them from
 * holding every run of a process. Places are given in the order in which runs ask for them.
 */
import * as Effect from "effect/Effect";

/** Retries of one provider that may wait for their first part at the same time. */
export const waitingRetriesMax = 32;

interface Lane {
  active: number;
  readonly waiting: Array<() => void>;
}

/** The lanes of one process, a provider each; an empty lane is forgotten. */
export class RetryGate {
  readonly #lanes = new Map<string, Lane>();

  /** Retries of a provider that wait for their first part. */
  active(provider: string): number {
    return this.#lanes.get(provider)?.active ?? 0;
  }

  /**
   * Waits for a place.
   *
   * @param hold is given the way to give the place back, in the very step that grants it: a run that is interrupted in that
   *   step still holds the place. To give it back twice does nothing.
   */
  enter(provider: string, hold: (leave: () => void) => void): Effect.Effect<void> {
    return Effect.callback((resume) => {
      const lane = this.#lane(provider);
      const admit = () => {
        lane.active += 1;
        hold(once(() => this.#leave(provider, lane)));
        resume(Effect.void);
      };
      if (lane.active < waitingRetriesMax) {
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
