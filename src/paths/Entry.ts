/**
 * Describes one path as the table of all paths keeps it, and the dependencies of the table.
 */
import type { PathWay } from "./Path.ts";
import { type PathState, unknownPath } from "./PathState.ts";
import { Queue } from "./Queue.ts";
import type { Waves } from "./Waves.ts";

/** Dependencies of a table. */
export interface TableWorld {
  /** Returns monotonic milliseconds. */
  readonly now: () => number;
  /** Returns milliseconds since the epoch. */
  readonly wall: () => number;
  /** Returns a number between 0 and 1. */
  readonly jitter: () => number;
  /** Called when something becomes due at a time, perhaps earlier than was known. */
  readonly due: (at: number) => void;
  /** Called when a path must be probed now. The result is passed to `recordProbe`. */
  readonly probe: (due: DueProbe) => void;
  /** Called when a waiting run has thrown, which it must not. */
  readonly onError: (error: unknown) => void;
  /** Reports this process's findings about a path to the other processes; omitted if there are none. */
  readonly reportFinding?: (path: string, word: PathWord) => void;
  /** Returns the number of processes that release requests together; omitted for one. */
  readonly processCount?: () => number;
}

/** A path that must be probed. */
export interface DueProbe {
  readonly path: string;
  readonly way: PathWay;
  /** Distinguishes it from other probes of the path. */
  readonly number: number;
}

/**
 * Finding of one process about a path, for the others: it was reached for the first time, a probe or a connect found it down, or
 * it is back after that.
 */
export type PathWord = "reached" | "down" | "returning";

/** One path. Times are in monotonic milliseconds. */
export interface Entry {
  readonly id: string;
  way: PathWay | undefined;
  state: PathState;
  /** Set while it is returning. */
  waves: Waves | undefined;
  readonly queue: Queue;
  /** Time at which a run last reported on it or asked for it. */
  usedAt: number;
  /** Time at which its standing was last wanted. */
  wantedAt: number;
  /**
   * Time at which requests may be released because of news. It is in a later step, because the current one may still bring a
   * refusal.
   */
  stepAt: number;
  /** Time at which cooldowns may release a request, as last planned. */
  lanesAt: number;
  /** True if there was news since the requests were told what they wait for. */
  hasNews: boolean;
  /** Finding last reported to the other processes; undefined after it is over. */
  told: PathWord | undefined;
  /** Number of the probe in flight. A wake abandons it. */
  probe: number;
  /** Called when the next probe ends, with true if it failed. */
  readonly askers: Set<(failed: boolean) => void>;
}

/** Returns the entry of a path about which nothing is known yet. */
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
