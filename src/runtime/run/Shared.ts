/**
 * Defines the state that all runs of one processor share.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import type * as Scope from "effect/Scope";
import type { Prices } from "../../domain/Prices.ts";
import { Paths, type PathsService } from "../../paths/Paths.ts";
import { type BoundedRecorder, toBounded } from "../../recorder/BoundedRecorder.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { make as makeQueue, type Queue, WriteQueue } from "../../recorder/WriteQueue.ts";
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

/** State that all runs of a processor share. */
export interface Shared {
  readonly recorder: BoundedRecorder;
  /** Entries of durable runs that the recorder did not take. */
  readonly backlog: Backlog;
  /** The queue to which volatile runs write. */
  readonly queue: Queue;
  readonly decisions: UserDecisions["Service"];
  readonly guard: ToolGuard["Service"];
  readonly watchdog: Watchdog;
  readonly throttle: SharedThrottle;
  readonly groups: Groups;
  readonly sharedGroups: SharedGroups;
  readonly prices: Prices;
  readonly gate: RetryGate;
  /** Decides whether requests may be sent, for all runs that share it. */
  readonly paths: PathsService;
  /** The origins that clients reported for runs that name no path. */
  readonly origins: ReportedOrigins;
  readonly pool: HeldPool;
  readonly clock: Clock.Clock;
  /** Up to `providersMax` providers that have responded to this process. */
  readonly reached: Reached;
  /** Up to `providersMax` paths for which the record was already searched for a response. */
  readonly askedOf: Reached;
  readonly drainMs: number;
  /** Distinguishes this processor's runs on record from those of other processors. */
  readonly drawn: string;
}

/** The `Paths` of the context, or the processor's own. */
const pathsHere = Effect.flatMap(
  Effect.serviceOption(Paths),
  Option.match({ onNone: () => Paths.make, onSome: Effect.succeed }),
);

/** The queue of the context, which the gateway's page also reads, or the processor's own. */
const queueHere = (recorder: RunRecorder["Service"]) =>
  Effect.flatMap(
    Effect.serviceOption(WriteQueue),
    Option.match({ onNone: () => makeQueue(recorder), onSome: Effect.succeed }),
  );

/**
 * Creates the state that all runs of a processor share.
 *
 * @param drainMs maximum time that a decision waits for running tool handlers, in milliseconds
 * @param drawn distinguishes this processor's runs on record from those of other processors
 */
export const make = Effect.fnUntraced(function* (
  drainMs: number,
  drawn: string,
): Effect.fn.Return<Shared, never, RunRecorder | UserDecisions | ToolGuard | Scope.Scope> {
  const service = yield* RunRecorder;
  const recorder = toBounded(service);
  const groups = new Groups();
  const paths = yield* pathsHere;
  return {
    recorder,
    backlog: yield* Backlog.make,
    queue: yield* queueHere(service),
    decisions: yield* UserDecisions,
    guard: yield* ToolGuard,
    watchdog: yield* Watchdog.make,
    throttle: new SharedThrottle(recorder.pacing),
    groups,
    sharedGroups: new SharedGroups(groups, recorder.pacing),
    prices: yield* TokenPrices,
    gate: new RetryGate(),
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
 * Providers that have responded to this process. If the name of one of these providers no longer resolves, the network is at fault. Only
 * the latest `providersMax` are kept, because a caller may use any number of names (L11).
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

  get size(): number {
    return this.#providers.size;
  }
}
