/**
 * Describes one path as the table of all keeps it, and what the table needs of its world.
 */
import type { PathWay } from "./Path.ts";
import { type PathState, unknownPath } from "./PathState.ts";
import { Queue } from "./Queue.ts";
import type { Waves } from "./Waves.ts";

/** What a table needs of its world. */
export interface TableWorld {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Milliseconds since the epoch. */
  readonly wall: () => number;
  /** Between 0 and 1. */
  readonly jitter: () => number;
  /** Something is to be done at a time, perhaps earlier than was known. */
  readonly due: (at: number) => void;
  /** A path is to be asked now; what is found comes by `probed`. */
  readonly probe: (due: DueProbe) => void;
  /** A run that waits has thrown what it must not. */
  readonly failed: (error: unknown) => void;
  /** Tells the other processes what this one has found out of a path; left out where there are none. */
  readonly found?: (path: string, word: PathWord) => void;
  /** How many processes let requests go together; one where it is left out. */
  readonly processes?: () => number;
}

/** A path that is to be asked. */
export interface DueProbe {
  readonly path: string;
  readonly way: PathWay;
  /** Tells it from other probes of the path. */
  readonly number: number;
}

/**
 * What one process finds out of a path, for the others: it was reached for the first time, a probe or a connect says that it is down, or
 * it is back behind that.
 */
export type PathWord = "reached" | "down" | "returning";

/** One path. Times are monotonic milliseconds. */
export interface Entry {
  readonly id: string;
  way: PathWay | undefined;
  state: PathState;
  /** While it is returning. */
  waves: Waves | undefined;
  readonly queue: Queue;
  /** When a run last told of it or asked for it. */
  usedAt: number;
  /** When somebody last wanted to know how it stands. */
  wantedAt: number;
  /** When requests may go because of what was heard: not in the same step, which may hear next that they may not. */
  stepAt: number;
  /** When cooldowns may let a request go, as it was last planned. */
  lanesAt: number;
  /** Something was heard since the requests were told for what they wait. */
  hasNews: boolean;
  /** What the other processes were told of it last; undefined once it is over. */
  told: PathWord | undefined;
  /** The number of the probe that is under way; a wake takes it for lost. */
  probe: number;
  /** Those who want to know what the next probe finds: whether it has failed. */
  readonly askers: Set<(failed: boolean) => void>;
}

/** A path of which nothing is known yet. */
export const newEntry = (id: string, now: number): Entry => ({
  id,
  way: undefined,
  state: unknownPath(now),
  waves: undefined,
  queue: new Queue(),
  usedAt: now,
  wantedAt: now,
  stepAt: Number.POSITIVE_INFINITY,
  lanesAt: Number.POSITIVE_INFINITY,
  hasNews: false,
  told: undefined,
  probe: 0,
  askers: new Set(),
});
