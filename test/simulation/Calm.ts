/**
 * The moment from which on nothing fails any more: the provider answers, the store takes writes, tools return and the person
 * answers. Liveness is judged from there.
 */
import { Deferred, Effect } from "effect";
import type { Scenario } from "./Scenario.ts";
import { pause } from "./world/VirtualTime.ts";

/** The calm of one scenario, which may never come. */
export class Calm {
  readonly #begun = Deferred.makeUnsafe<void>();
  readonly #comes: boolean;
  /** Whether the run's own clocks find a stream that hangs. */
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

  /** Waits so long, at most until the calm. */
  pause(ms: number): Effect.Effect<void> {
    return this.#comes ? Effect.raceFirst(pause(ms), Deferred.await(this.#begun)) : pause(ms);
  }

  /** Waits for the calm, which is for ever where it never comes. */
  get forever(): Effect.Effect<void> {
    return this.#comes ? Deferred.await(this.#begun) : Effect.never;
  }
}
