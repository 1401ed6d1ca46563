/**
 * Draws what happens to a world: outages of its paths, limits and overloads of its providers, and sleep of its process.
 */
import type { Dice } from "../../test/simulation/Dice.ts";

/** How a path is away. `blip`: every connection is reset, and the next one works. */
export type OutageKind = "refused" | "unresolved" | "black_hole" | "captive" | "blip";

/** A path is away from one moment to another, in milliseconds. */
export interface Outage {
  readonly path: number;
  readonly kind: OutageKind;
  readonly from: number;
  readonly to: number;
  /** Of a black hole: connections that were open go on behind it, where they were not given up. */
  readonly resumes: boolean;
}

/** A provider takes no more from a credential, or at all, until a moment. */
export interface Limit {
  readonly kind: "rate_limited" | "overloaded";
  readonly path: number;
  readonly model: number;
  /** Left out for an overload. */
  readonly key?: number;
  readonly from: number;
  readonly to: number;
  /** Whether its refusals say how long. */
  readonly announced: boolean;
}

/** The process sleeps. */
export interface Sleep {
  readonly at: number;
  readonly ms: number;
  /** What becomes of open connections. */
  readonly peers: "alive" | "reset" | "silent";
}

/** Everything that happens. */
export interface Weather {
  readonly outages: ReadonlyArray<Outage>;
  readonly limits: ReadonlyArray<Limit>;
  readonly sleeps: ReadonlyArray<Sleep>;
  /** All agents ask at once while the first path is away. */
  readonly crowd: Crowd;
}

/** The moment at which all agents ask, and the outage that they wait for. */
export interface Crowd {
  readonly at: number;
  readonly outage: Outage;
}

/** How big the world is. */
export interface WorldSize {
  readonly paths: number;
  readonly keys: number;
  readonly models: number;
}

const seconds = 1_000;
const minutes = 60_000;

/** How long the crowd waits, in milliseconds, and what is left behind it. */
const crowdMs = 2 * minutes;
const behindCrowdMs = 2 * minutes;

/**
 * Draws the weather of some time.
 *
 * @param lengthMs of the whole time, in milliseconds
 */
export const weatherOf = (dice: Dice, { keys, models, paths }: WorldSize, lengthMs: number): Weather => {
  const calmFrom = Math.max(minutes, lengthMs - crowdMs - behindCrowdMs);
  const outages = Array.from({ length: paths }, (_, path) => outagesOf(dice, path, calmFrom - minutes)).flat();
  const crowd: Outage = { path: 0, kind: "refused", from: calmFrom, to: calmFrom + crowdMs, resumes: false };
  return {
    outages: [...outages, crowd],
    limits: [...rateLimits(dice, { keys, models, paths }, calmFrom), ...overloads(dice, paths, models, calmFrom)],
    sleeps: sleepsOf(dice, calmFrom - 12 * minutes),
    crowd: { at: calmFrom + 5 * seconds, outage: crowd },
  };
};

const outagesOf = (dice: Dice, path: number, until: number): ReadonlyArray<Outage> => {
  const all: Array<Outage> = [];
  let at = dice.between(20 * seconds, 3 * minutes);
  while (at < until) {
    const found = dice.chance(0.15) ? flapping(dice, path, at) : [outageOf(dice, path, at)];
    all.push(...found.filter(({ to }) => to < until));
    at = Math.max(...found.map(({ to }) => to)) + dice.between(40 * seconds, 6 * minutes);
  }
  return all;
};

const outageOf = (dice: Dice, path: number, from: number): Outage => {
  const kind = dice.weighted<OutageKind>([
    [4, "refused"],
    [2, "unresolved"],
    [4, "black_hole"],
    [1, "captive"],
    [3, "blip"],
  ]);
  const ms = dice.weighted([
    [4, dice.between(5 * seconds, 20 * seconds)],
    [4, dice.between(20 * seconds, minutes)],
    [2, dice.between(minutes, 3 * minutes)],
    [1, dice.between(3 * minutes, 10 * minutes)],
  ]);
  return { path, kind, from, to: kind === "blip" ? from : from + ms, resumes: dice.chance(0.5) };
};

/** Away and back every two seconds. */
const flapping = (dice: Dice, path: number, from: number): ReadonlyArray<Outage> =>
  Array.from({ length: dice.between(3, 10) }, (_, index) => {
    const start = from + index * 4 * seconds;
    return { path, kind: "refused" as const, from: start, to: start + 2 * seconds, resumes: false };
  });

const rateLimits = (dice: Dice, size: WorldSize, until: number): ReadonlyArray<Limit> => {
  const all: Array<Limit> = [];
  for (let key = 0; key < size.keys; key += 1) {
    for (let at = dice.between(minutes, 40 * minutes); at < until; at += dice.between(15 * minutes, 50 * minutes)) {
      const to = at + dice.between(3 * seconds, 50 * seconds);
      const where = { path: dice.between(0, size.paths - 1), model: dice.between(0, size.models - 1) };
      all.push({ kind: "rate_limited", ...where, key, from: at, to, announced: true });
    }
  }
  return all;
};

const overloads = (dice: Dice, paths: number, models: number, until: number): ReadonlyArray<Limit> => {
  const all: Array<Limit> = [];
  for (let path = 0; path < paths; path += 1) {
    for (let at = dice.between(5 * minutes, 25 * minutes); at < until; at += dice.between(15 * minutes, 40 * minutes)) {
      const announced = dice.chance(0.8);
      const ms = announced ? dice.between(3 * seconds, 30 * seconds) : dice.between(500, 2 * seconds);
      all.push({ kind: "overloaded", path, model: dice.between(0, models - 1), from: at, to: at + ms, announced });
    }
  }
  return all;
};

const sleepsOf = (dice: Dice, until: number): ReadonlyArray<Sleep> => {
  const all: Array<Sleep> = [];
  for (let at = dice.between(4 * minutes, 15 * minutes); at < until; at += dice.between(15 * minutes, 30 * minutes)) {
    const peers = dice.pick(["alive", "reset", "silent"] as const);
    all.push({ at, ms: dice.between(30 * seconds, 10 * minutes), peers });
  }
  return all;
};
