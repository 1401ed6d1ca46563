/**
 * Says which ended runs a store forgets by itself.
 */
import type * as Effect from "effect/Effect";
import type { RecorderError } from "../RecorderError.ts";
import { parseDuration } from "./Duration.ts";

const dayMs = 24 * 60 * 60 * 1_000;

/** Which ended runs are forgotten by themselves. */
export interface Retention {
  /** Milliseconds since their end; default 30 days. */
  readonly ageMs?: number;
  /** Most ended runs kept, those that ended last; default 100,000. One that ended less than a minute ago is kept besides. */
  readonly runs?: number;
  /** How often that is looked at, in milliseconds; default one hour, and once at the start. */
  readonly everyMs?: number;
}

/** Ended runs are kept 30 days, and 100,000 of them, those that ended last. */
export const retentionDefault: Required<Retention> = {
  ageMs: 30 * dayMs,
  runs: 100_000,
  everyMs: 60 * 60 * 1_000,
};

/** How long ended runs are kept, as an operator says it. */
export interface Kept {
  /** A duration such as `30d`, `12h` or `2w`, from a minute on, or `forever`; left out, 30 days. */
  readonly keepRuns?: string | undefined;
  /** Most ended runs, those that ended last; left out, 100,000, and as many as there are where they are kept for ever. */
  readonly keepRunsMax?: number | undefined;
}

/** Least that ended runs are kept, in milliseconds: a client that comes back is told by them what became of its run. */
const keptLeastMs = 60_000;

/** Longer than any store lives, in milliseconds. */
const foreverMs = 100 * 365 * dayMs;

/** What is wrong with what an operator has said. */
export interface KeptProblem {
  readonly name: keyof Kept;
  readonly expected: string;
}

/** What an operator has said as a retention, or what is wrong with it. */
export const retentionOf = ({ keepRuns, keepRunsMax }: Kept): Required<Retention> | KeptProblem => {
  const isForever = keepRuns === "forever";
  const ageMs = isForever ? foreverMs : keepRuns === undefined ? retentionDefault.ageMs : parseDuration(keepRuns);
  if (ageMs === undefined || ageMs < keptLeastMs)
    return { name: "keepRuns", expected: "expected a duration from 1m on, such as 30d, 12h or 2w, or forever" };
  if (keepRunsMax !== undefined && !(Number.isSafeInteger(keepRunsMax) && keepRunsMax >= 0))
    return { name: "keepRunsMax", expected: `expected a whole number from 0 on, got ${keepRunsMax}` };
  return { ...retentionDefault, ageMs, runs: keepRunsMax ?? (isForever ? everyRun : retentionDefault.runs) };
};

/** So many runs that none is too many. */
export const everyRun = Number.MAX_SAFE_INTEGER;

/** Which runs are old at a moment. */
export interface Old {
  /** The moment, in milliseconds since the epoch. A run that ended later did so by a wrong clock, and takes no other's place. */
  readonly at: number;
  /** Milliseconds since the epoch. */
  readonly endedBefore: number;
  /** Most ended runs that are kept, those that ended last. */
  readonly keep: number;
  /** No run that has ended since is one too many, in milliseconds since the epoch. */
  readonly keptFrom: number;
}

/** What is old by a retention, at a moment in milliseconds since the epoch. */
export const oldAt = (at: number, retention: Retention): Old => {
  const { ageMs, runs } = { ...retentionDefault, ...retention };
  return {
    at,
    endedBefore: at - ageMs,
    keep: runs,
    keptFrom: at - Math.min(keptLeastMs, ageMs),
  };
};

/** Looks at what is old in a store once, as a program that keeps runs does from time to time. */
export interface Retaining {
  /**
   * Forgets ended runs that are old; returns how many.
   *
   * @param told how many runs are forgotten by now
   */
  readonly look: (retention: Retention, told?: (runs: number) => void) => Effect.Effect<number, RecorderError>;
  /** Counts what that would forget. */
  readonly due: (retention: Retention) => Effect.Effect<number, RecorderError>;
}

// Kept beside the service: a program's own recorder forgets by itself, and as it likes.
const retainings = new WeakMap<object, Retaining>();

/** Says how the store of this very recorder forgets what is old. */
export const retained = <Recorder extends object>(recorder: Recorder, retaining: Retaining): Recorder => {
  retainings.set(recorder, retaining);
  return recorder;
};

/** How the store of a recorder forgets what is old; undefined where it does not. */
export const retainingOf = (recorder: object): Retaining | undefined => retainings.get(recorder);
