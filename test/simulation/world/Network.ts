/**
 * Plays the path of a run that goes away after some refusals: what a request meets before the provider's own scripts are played.
 */
import { Clock, Effect } from "effect";
import type { Failure } from "../../../src/domain/Failure.ts";
import type { PathWay } from "../../../src/paths/Path.ts";
import type { Calm } from "../Calm.ts";
import type { AttemptScript, Scenario } from "../Scenario.ts";

const script = (failure: Failure, delivery: "not_sent" | "accepted"): AttemptScript => ({
  steps: [{ delivery }, { fail: failure }],
  closes: 0,
  factoryThrows: false,
});

const unconnected = script({ kind: "transport", operation: "connect", code: "ECONNREFUSED" }, "not_sent");

/** The network between one run and its provider. */
export class Network {
  readonly #scenario: Scenario;
  readonly #calm: Calm;
  #refused = 0;
  #refusedAfter = 0;
  /** When the outage ends, once it has begun; in virtual milliseconds. */
  #awayUntil: number | undefined;

  constructor(scenario: Scenario, calm: Calm) {
    this.#scenario = scenario;
    this.#calm = calm;
  }

  /** The run's options that its path needs. */
  get options(): { readonly path?: { readonly id: string; readonly way: PathWay }; readonly group?: string } {
    const { outage } = this.#scenario.world;
    if (outage === null) return {};
    const way: PathWay = {
      probe: Effect.map(Clock.currentTimeMillis, (now) =>
        this.#isAway(now)
          ? ({ _tag: "failed", reason: "network", code: "ECONNREFUSED" } as const)
          : ({ _tag: "works" } as const),
      ),
      dropIdle: () => undefined,
    };
    return {
      ...(outage.probes ? { path: { id: "https://simulated", way } } : {}),
      ...(outage.group ? { group: "tree" } : {}),
    };
  }

  /** The script of a request that does not come to the provider's own; undefined for one that does. */
  meets(now: number): AttemptScript | undefined {
    const { outage } = this.#scenario.world;
    if (outage === null || this.#calm.isOn) return undefined;
    if (this.#refused < outage.refusals) {
      this.#refused += 1;
      return this.#refusal(outage.retryAfterMs);
    }
    this.#awayUntil ??= now + outage.ms;
    if (this.#isAway(now)) return unconnected;
    if (this.#refusedAfter >= outage.after) return undefined;
    this.#refusedAfter += 1;
    return this.#refusal(outage.retryAfterMs);
  }

  #isAway(now: number): boolean {
    return !this.#calm.isOn && this.#awayUntil !== undefined && now < this.#awayUntil;
  }

  #refusal(waitMs: number): AttemptScript {
    return script({ kind: "overloaded", status: 529, ...(waitMs > 0 ? { retry_after_ms: waitMs } : {}) }, "accepted");
  }
}
