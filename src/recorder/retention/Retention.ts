/**
 * Says which ended runs a store forgets by itself, and what a look at them comes to.
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
  /** How much a shelf of a server takes, whichever is first. */
  readonly size: { readonly ageMs: number; readonly runs: number };
}

/** Shelves are small beside what is kept, and few: what is forgotten with one may be older, or more, by so much. */
const shelfSize = (ageMs: number, runs: number) => ({
  ageMs: Math.max(Math.min(dayMs, ageMs), ageMs / shelvesKept),
  runs: Math.min(Math.max(Math.ceil(runs / shelvesInKept), shelfRunsMin), Number.MAX_SAFE_INTEGER),
});

/** Most shelves of one age that are kept. */
const shelvesKept = 200;

/** Shelves over which the runs that are kept lie, and least runs of one. */
const [shelvesInKept, shelfRunsMin] = [8, 1_000];

/** What is old by a retention, at a moment in milliseconds since the epoch. */
export const oldAt = (at: number, retention: Retention): Old => {
  const { ageMs, runs } = { ...retentionDefault, ...retention };
  return {
    at,
    endedBefore: at - ageMs,
    keep: runs,
    keptFrom: at - Math.min(keptLeastMs, ageMs),
    size: shelfSize(ageMs, runs),
  };
};

/** What a look came to; of one that changes nothing, what it would come to. */
export interface Looked {
  /** Ended runs that were forgotten. */
  readonly runs: number;
  /** Shelves of a server that were dropped. */
  readonly dropped: number;
  /** Shelves from which the runs are gone: the next look drops them. */
  readonly emptied: number;
  /** A next shelf was opened. */
  readonly opened: boolean;
  /**
   * The role of this process may neither open nor drop shelves. `untended`: its owner has not come for so long that runs are forgotten row
   * by row, and what they leave is to be vacuumed.
   */
  readonly lacksRight: "no" | "tended" | "untended";
}

/** What a look that found nothing comes to. */
export const nothing: Looked = { runs: 0, dropped: 0, emptied: 0, opened: false, lacksRight: "no" };

/** Looks at what is old in a store once, as a program that keeps runs does from time to time. */
export interface Retaining {
  /**
   * Forgets what is old.
   *
   * @param told how many runs are forgotten by now
   */
  readonly look: (retention: Retention, told?: (runs: number) => void) => Effect.Effect<Looked, RecorderError>;
  /** What that would come to. */
  readonly due: (retention: Retention) => Effect.Effect<Looked, RecorderError>;
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
