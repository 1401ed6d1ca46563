/**
 * Decides which ended runs a store deletes automatically.
 */
import type * as Effect from "effect/Effect";
import type { RecorderError } from "../RecorderError.ts";
import { parseDuration } from "./Duration.ts";

const dayMs = 24 * 60 * 60 * 1_000;

/** Limits after which ended runs are deleted automatically. */
export interface Retention {
  /** Maximum age since the end of a run, in milliseconds; default 30 days. */
  readonly ageMs?: number;
  /** Maximum number of ended runs to keep, newest first; default 100,000. Runs that ended less than a minute ago are kept in addition. */
  readonly runs?: number;
  /** Interval of the check, in milliseconds; default one hour. A check also runs at the start. */
  readonly everyMs?: number;
}

/** Default retention: 30 days, and the newest 100,000 ended runs. */
export const retentionDefault: Required<Retention> = {
  ageMs: 30 * dayMs,
  runs: 100_000,
  everyMs: 60 * 60 * 1_000,
};

/** Retention of ended runs as an operator configures it. */
export interface Kept {
  /** A duration of at least a minute, for example `30d`, `12h` or `2w`, or `forever`. Default 30 days. */
  readonly keepRuns?: string | undefined;
  /** Maximum number of ended runs to keep, newest first. Default 100,000, or no limit with `forever`. */
  readonly keepRunsMax?: number | undefined;
}

/** Minimum time for which ended runs are kept, in milliseconds. A client that returns can then still learn the outcome of its run. */
const keptLeastMs = 60_000;

/** Longer than a store is ever in use, in milliseconds. */
const foreverMs = 100 * 365 * dayMs;

/** An invalid setting of an operator. */
export interface KeptProblem {
  readonly name: keyof Kept;
  readonly expected: string;
}

/** Converts an operator's settings to a retention, or reports the first problem. */
export const resolveRetention = ({ keepRuns, keepRunsMax }: Kept): Required<Retention> | KeptProblem => {
  const isForever = keepRuns === "forever";
  const ageMs = isForever ? foreverMs : keepRuns === undefined ? retentionDefault.ageMs : parseDuration(keepRuns);
  if (ageMs === undefined || ageMs < keptLeastMs)
    return { name: "keepRuns", expected: "expected a duration of at least 1m, for example 30d, 12h or 2w, or forever" };
  if (keepRunsMax !== undefined && !(Number.isSafeInteger(keepRunsMax) && keepRunsMax >= 0))
    return { name: "keepRunsMax", expected: `expected a whole number, not below 0, got ${keepRunsMax}` };
  return { ...retentionDefault, ageMs, runs: keepRunsMax ?? (isForever ? everyRun : retentionDefault.runs) };
};

/** Number of runs to keep that is never reached, so that all runs are kept. */
export const everyRun = Number.MAX_SAFE_INTEGER;

/** The criteria by which an ended run is old at one moment, and may be deleted. */
export interface Old {
  /** The moment, in milliseconds since the epoch. A run with a later end was recorded with a wrong clock, so it displaces no other run. */
  readonly at: number;
  /** Runs that ended earlier are old. Milliseconds since the epoch. */
  readonly endedBefore: number;
  /** Maximum number of ended runs to keep, newest first. */
  readonly keep: number;
  /** Runs that ended at or after this time are never surplus. Milliseconds since the epoch. */
  readonly keptFrom: number;
}

/** Returns the criteria of a retention at a moment, in milliseconds since the epoch. */
export const criteriaAt = (at: number, retention: Retention): Old => {
  const { ageMs, runs } = { ...retentionDefault, ...retention };
  return {
    at,
    endedBefore: at - ageMs,
    keep: runs,
    keptFrom: at - Math.min(keptLeastMs, ageMs),
  };
};

/** Deletes or counts the old runs of a store. */
export interface Retaining {
  /**
   * Deletes old ended runs and returns their number.
   *
   * @param told called with the number of runs deleted so far
   */
  readonly deleteOld: (
    retention: Retention,
    onProgress?: (runs: number) => void,
  ) => Effect.Effect<number, RecorderError>;
  /** Counts the runs that `deleteOld` would delete. */
  readonly countOld: (retention: Retention) => Effect.Effect<number, RecorderError>;
}

// Not part of the `RunRecorder` service, so that custom recorders need not implement retention.
const retainings = new WeakMap<object, Retaining>();

/** Attaches to a recorder the functions that delete its old runs. */
export const withRetaining = <Recorder extends object>(recorder: Recorder, retaining: Retaining): Recorder => {
  retainings.set(recorder, retaining);
  return recorder;
};

/** Returns the functions that delete the old runs of a recorder; undefined if it has none. */
export const retainingOf = (recorder: object): Retaining | undefined => retainings.get(recorder);
