/**
 * Lists what all runs of one processor share.
 */
import type * as Clock from "effect/Clock";
import type { Prices } from "../../domain/Prices.ts";
import type { Breakers } from "../../paths/Breakers.ts";
import type { PathsService } from "../../paths/Paths.ts";
import type { BoundedRecorder } from "../../recorder/BoundedRecorder.ts";
import type { HeldPool } from "../attempt/Reveal.ts";
import type { Watchdog } from "../attempt/Watchdog.ts";
import type { RetryGate } from "../pacing/RetryGate.ts";
import { providersMax, type Throttle } from "../pacing/Throttle.ts";
import type { UserDecisions } from "../questions/UserDecisions.ts";
import type { ToolGuard } from "../tools/ToolGuard.ts";
import type { Backlog } from "./Backlog.ts";
import type { Groups } from "./Groups.ts";

/** What all runs of a processor share. */
export interface Shared {
  readonly recorder: BoundedRecorder;
  /** What the recorder did not take. */
  readonly backlog: Backlog;
  readonly decisions: UserDecisions["Service"];
  readonly guard: ToolGuard["Service"];
  readonly watchdog: Watchdog;
  readonly throttle: Throttle;
  readonly groups: Groups;
  readonly prices: Prices;
  readonly gate: RetryGate;
  readonly breakers: Breakers;
  /** Whether requests may go, over all runs that share it. */
  readonly paths: PathsService;
  readonly pool: HeldPool;
  readonly clock: Clock.Clock;
  /** Providers that this process has had a response from, the latest `providersMax` of them. */
  readonly reached: Reached;
  /** Paths whose record was asked whether they were ever reached, the latest `providersMax` of them. */
  readonly askedOf: Reached;
  readonly drainMs: number;
  /** Tells this processor's runs from those of others on record. */
  readonly drawn: string;
}

/**
 * Providers that have responded to this process: a name that does not resolve is then the network's doing. The latest
 * `providersMax` of them are kept, because a caller may name as many as it likes (L11).
 */
export class Reached {
  readonly #providers = new Set<string>();

  has(provider: string): boolean {
    return this.#providers.has(provider);
  }

  add(provider: string): void {
    if (this.#providers.has(provider)) return;
    this.#providers.add(provider);
    for (const oldest of this.#providers) {
      if (this.#providers.size > providersMax) this.#providers.delete(oldest);
      break;
    }
  }

  /** How many are remembered. */
  get size(): number {
    return this.#providers.size;
  }
}
