/** Describes one path as `PathTable` keeps it, and the dependencies of the table. */
import type { PathWay } from "./Path.ts";
import { type PathState, unknownPath } from "./PathState.ts";
import { Queue } from "./Queue.ts";
import type { Waves } from "./Waves.ts";

/** Clocks, randomness and callbacks that a `PathTable` needs. */
export interface TableWorld {
  /** Returns monotonic milliseconds. */
  readonly now: () => number;
  /** Returns milliseconds since the epoch. */
  readonly wallNow: () => number;
  /** Returns a number between 0 and 1. */
  readonly jitter: () => number;
  /** Called with each newly planned time at which work is due. It may be earlier than a time that was planned before. */
  readonly onDue: (at: number) => void;
  /** Called when a path must be probed now. The result is passed to `recordProbe`. */
  readonly probe: (due: DueProbe) => void;
  /** Called with the error of a waiting run's callback, which must not throw. */
  readonly onError: (error: unknown) => void;
  /** Reports this process's findings about a path to the other processes; omitted if there are no other processes. */
  readonly reportFinding?: (path: string, word: PathWord) => void;
  /** Returns the number of processes that release requests together; omitted if there is only this process. */
  readonly processCount?: () => number;
}

/** A path that must be probed. */
export interface DueProbe {
  readonly path: string;
  readonly way: PathWay;
  /** Distinguishes the probe from other probes of the path. */
  readonly number: number;
}

/**
 * Finding of one process about a path, for the other processes: the path was reached for the first time, a probe or a connect found it
 * down, or it works again after that.
 */
export type PathWord = "reached" | "down" | "returning";

/** One path. Times are in monotonic milliseconds. */
export interface Entry {
  readonly id: string;
  way: PathWay | undefined;
  state: PathState;
  /** Releases requests in batches; set while the path is returning. */
  waves: Waves | undefined;
  readonly queue: Queue;
  /** Time at which a run last used the path or reported on it. */
  usedAt: number;
  /** Time at which a request last needed the state of the path. */
  wantedAt: number;
  /**
   * Time at which requests may be released because of an event. The release happens in a later step, because the current step may still
   * bring a refusal.
   */
  stepAt: number;
  /** Time at which cooldowns may release a request, as last planned. */
  lanesAt: number;
  /** True if the state changed since requests were last notified of the reason for their wait. */
  hasNews: boolean;
  /** Finding last reported to the other processes; undefined if it no longer holds. */
  reportedWord: PathWord | undefined;
  /** Number of the probe in flight. A suspension makes it obsolete. */
  probe: number;
  /** Called when the next probe ends, with true if the probe failed. */
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
  reportedWord: undefined,
  probe: 0,
  askers: new Set(),
});
