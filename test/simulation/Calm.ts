/**
 * The calm of a scenario is the moment after which nothing fails: the provider answers, the store accepts writes, tools return and
 * the person answers. Liveness is judged from that moment.
 */
import { Deferred, Effect } from "effect";
import type { Scenario } from "./Scenario.ts";
import { pause } from "./world/VirtualTime.ts";

/** The calm of one scenario, which some scenarios never reach. */
export class Calm {
  readonly #begun = Deferred.makeUnsafe<void>();
  readonly #comes: boolean;
  /** True if the run's own watchdogs can detect a stream that hangs. */
  readonly clocksWork: boolean;

  constructor({ options, world }: Scenario) {
    this.#comes = world.calmAt !== null;
    const off = Object.values(options.clocks).includes(false) || !options.streaming;
    this.clocksWork = !off && !world.edges.some(({ field }) => field.startsWith("clocks."));
  }

  get isOn(): boolean {
    return Deferred.isDoneUnsafe(this.#begun);
  }

  begin(): void {
    Deferred.doneUnsafe(this.#begun, Effect.void);
  }

  /** Sleeps, but no longer than until the calm. */
  pause(ms: number): Effect.Effect<void> {
    return this.#comes ? Effect.raceFirst(pause(ms), Deferred.await(this.#begun)) : pause(ms);
  }

  /** Waits for the calm; never completes if there is none. */
  get forever(): Effect.Effect<void> {
    return this.#comes ? Deferred.await(this.#begun) : Effect.never;
  }
}
