/**
 * Lists what all runs of one processor share.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import type * as Scope from "effect/Scope";
import type { Prices } from "../../domain/Prices.ts";
import { Breakers } from "../../paths/Breakers.ts";
import { Paths, type PathsService } from "../../paths/Paths.ts";
import { type BoundedRecorder, bounded } from "../../recorder/BoundedRecorder.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import type { HeldPool } from "../attempt/Reveal.ts";
import { Watchdog } from "../attempt/Watchdog.ts";
import { TokenPrices } from "../contract/TokenPrices.ts";
import { Groups } from "../pacing/Groups.ts";
import { RetryGate } from "../pacing/RetryGate.ts";
import { SharedGroups } from "../pacing/SharedGroups.ts";
import { SharedThrottle } from "../pacing/SharedThrottle.ts";
import { providersMax } from "../pacing/Throttle.ts";
import { UserDecisions } from "../questions/UserDecisions.ts";
import { ToolGuard } from "../tools/ToolGuard.ts";
import { Backlog } from "./Backlog.ts";
import { ReportedOrigins } from "./ReportedOrigins.ts";

/** What all runs of a processor share. */
export interface Shared {
  readonly recorder: BoundedRecorder;
  /** What the recorder did not take. */
  readonly backlog: Backlog;
  readonly decisions: UserDecisions["Service"];
  readonly guard: ToolGuard["Service"];
  readonly watchdog: Watchdog;
  readonly throttle: SharedThrottle;
  readonly groups: Groups;
  readonly sharedGroups: SharedGroups;
  readonly prices: Prices;
  readonly gate: RetryGate;
  readonly breakers: Breakers;
  /** Whether requests may go, over all runs that share it. */
  readonly paths: PathsService;
  /** The origins of runs that name no path. */
  readonly origins: ReportedOrigins;
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

/** The paths that the context shares, or the processor's own. */
const pathsHere = Effect.flatMap(
  Effect.serviceOption(Paths),
  Option.match({ onNone: () => Paths.make, onSome: Effect.succeed }),
);

/**
 * Makes what all runs of a processor share.
 *
 * @param drainMs how long a decision waits for tool handlers that still run
 * @param drawn tells this processor's runs from those of others on record
 */
export const make = Effect.fnUntraced(function* (
  drainMs: number,
  drawn: string,
): Effect.fn.Return<Shared, never, RunRecorder | UserDecisions | ToolGuard | Scope.Scope> {
  const recorder = bounded(yield* RunRecorder);
  const groups = new Groups();
  const paths = yield* pathsHere;
  return {
    recorder,
    backlog: yield* Backlog.make,
    decisions: yield* UserDecisions,
    guard: yield* ToolGuard,
    watchdog: yield* Watchdog.make,
    throttle: new SharedThrottle(recorder.pacing),
    groups,
    sharedGroups: new SharedGroups(groups, recorder.pacing),
    prices: yield* TokenPrices,
    gate: new RetryGate(),
    breakers: new Breakers(),
    paths,
    origins: new ReportedOrigins(paths),
    pool: { used: 0 },
    clock: yield* Clock.Clock,
    reached: new Reached(),
    askedOf: new Reached(),
    drainMs,
    drawn,
  };
});

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
