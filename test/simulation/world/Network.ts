/**
 * Plays a path that goes away after some refusals. It decides a request's fate before the provider's own scripts do.
 */
import { Effect } from "effect";
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
  readonly #now: () => number;
  #refused = 0;
  #refusedAfter = 0;
  /** The end of the outage once it has begun, in virtual milliseconds. */
  #awayUntil: number | undefined;

  /** @param now the time of the outside world: a process that freezes, or whose clock jumps, ends no outage */
  constructor(scenario: Scenario, calm: Calm, now: () => number) {
    this.#scenario = scenario;
    this.#calm = calm;
    this.#now = now;
  }

  /** The run options for this path. */
  get options(): { readonly path?: { readonly id: string; readonly way: PathWay }; readonly group?: string } {
    const { outage } = this.#scenario.world;
    if (outage === null) return {};
    const way: PathWay = {
      probe: Effect.sync(() =>
        this.#isAway(this.#now())
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

  /** The script of a request that does not reach the provider; undefined for one that does. */
  meets(): AttemptScript | undefined {
    const { outage } = this.#scenario.world;
    const now = this.#now();
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
