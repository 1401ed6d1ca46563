/**
 * Limits how many retries of one provider wait for their first part at the same time.
 *
 * The throttle spaces retries in time. A provider that accepts connections but never responds could still block every run of a process, and
 * the gate prevents that. Places are granted in order of request.
 */
import * as Effect from "effect/Effect";

/** Maximum retries of one provider that wait for their first part at the same time. */
export const waitingRetriesMax = 32;

interface Lane {
  active: number;
  readonly waiting: Array<() => void>;
}

/** The gates of all providers of one process. A lane holds the retries of one provider; an empty lane is removed. */
export class RetryGate {
  readonly #lanes = new Map<string, Lane>();

  /** Number of retries of a provider that wait for their first part. */
  activeCount(provider: string): number {
    return this.#lanes.get(provider)?.active ?? 0;
  }

  /**
   * Waits for a place.
   *
   * @param hold receives the function that gives the place back, in the step that grants the place, so that a run interrupted in that
   *   step can still give it back. A second call has no effect.
   */
  enter(provider: string, hold: (leave: () => void) => void): Effect.Effect<void> {
    return Effect.callback((resume) => {
      const lane = this.#lane(provider);
      const admit = () => {
        lane.active += 1;
        hold(callOnce(() => this.#leave(provider, lane)));
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

const callOnce = (run: () => void): (() => void) => {
  let done = false;
  return () => {
    if (done) return;
    done = true;
    run();
  };
};
