/**
 * Draws the events of a world: outages of its paths, rate limits and overloads of its providers, and sleeps of its process.
 */
import { Dice } from "../../test/simulation/Dice.ts";

/** The kind of an outage. `blip`: every connection is reset, but new ones work. */
export type OutageKind = "refused" | "unresolved" | "black_hole" | "captive" | "blip";

/** An outage of a path. Times are in milliseconds. */
export interface Outage {
  readonly path: number;
  readonly kind: OutageKind;
  readonly from: number;
  readonly to: number;
  /** For a black hole: true if connections that were open and not abandoned continue after it. */
  readonly resumes: boolean;
}

/** A period in which a provider refuses a credential, or everyone. */
export interface Limit {
  readonly kind: "rate_limited" | "overloaded";
  readonly path: number;
  readonly model: number;
  /** Undefined for an overload. */
  readonly key?: number;
  readonly from: number;
  readonly to: number;
  /** True if its refusals contain a retry time. */
  readonly announced: boolean;
}

/** A sleep of the process. */
export interface Sleep {
  readonly at: number;
  readonly ms: number;
  /** The fate of open connections during the sleep. */
  readonly peers: "alive" | "reset" | "silent";
}

/** All events of a world. */
export interface Weather {
  readonly outages: ReadonlyArray<Outage>;
  readonly limits: ReadonlyArray<Limit>;
  readonly sleeps: ReadonlyArray<Sleep>;
  /** A moment at which all agents send a request while the first path is down. */
  readonly crowd: Crowd;
}

/** The moment at which all agents send a request, and the outage that they wait for. */
export interface Crowd {
  readonly at: number;
  readonly outage: Outage;
}

/** The dimensions of a world. */
export interface WorldSize {
  readonly paths: number;
  readonly keys: number;
  readonly models: number;
}

const seconds = 1_000;
const minutes = 60_000;

/** Duration of the crowd's outage, and time left after it, in milliseconds. */
const crowdMs = 2 * minutes;
const behindCrowdMs = 2 * minutes;

/** Separate seed for the overloads around outages, so that they do not affect the rest of a seed's weather. */
const spellsSeed = 0x5_be_11;

/**
 * Draws the weather.
 *
 * @param lengthMs duration of the whole play, in milliseconds
 */
export const weatherOf = (seed: number, { keys, models, paths }: WorldSize, lengthMs: number): Weather => {
  const dice = new Dice(seed);
  const calmFrom = Math.max(minutes, lengthMs - crowdMs - behindCrowdMs);
  const outages = Array.from({ length: paths }, (_, path) => outagesOf(dice, path, calmFrom - minutes)).flat();
  const spells = new Dice(seed ^ spellsSeed);
  const crowd: Outage = { path: 0, kind: "refused", from: calmFrom, to: calmFrom + crowdMs, resumes: false };
  return {
    outages: [...outages, crowd],
    limits: [
      ...rateLimits(dice, { keys, models, paths }, calmFrom),
      ...overloads(dice, paths, models, calmFrom),
      ...outages.flatMap((outage) => spellsAround(spells, outage, models)),
    ],
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

/** Draws outages of two seconds at intervals of four. */
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

/** Minimum duration of an outage with overloads around it. A flapping path already causes enough trouble. */
const spellOutageMs = 5 * seconds;

/** Maximum overload before an outage, in milliseconds. Retries after 1 to 2 s, 2 to 4 s and 4 to 8 s meet at most three refusals in it. */
const spellMs = 6_500;

/** Draws overloads of all models around an outage: some end when it begins, some overlap its start, and some follow its end. */
const spellsAround = (dice: Dice, { from, kind, path, to }: Outage, models: number): ReadonlyArray<Limit> => {
  const isBefore = dice.chance(0.5);
  const isInto = dice.chance(0.25);
  const isBehind = dice.chance(0.25);
  const start = Math.max(0, from - dice.between(seconds, spellMs));
  const into = from + dice.between(seconds, 10 * seconds);
  const behind = to + dice.between(500, 2 * seconds);
  if (kind === "captive" || kind === "blip" || to - from < spellOutageMs) return [];
  const spells: ReadonlyArray<Pick<Limit, "from" | "to" | "announced">> = [
    ...(isBefore ? [{ from: start, to: from, announced: false }] : []),
    ...(isInto && !isBefore ? [{ from: start, to: into, announced: true }] : []),
    ...(isBehind ? [{ from: to, to: behind, announced: false }] : []),
  ];
  return spells.flatMap((spell) =>
    Array.from({ length: models }, (_, model) => ({ kind: "overloaded" as const, path, model, ...spell })),
  );
};

const sleepsOf = (dice: Dice, until: number): ReadonlyArray<Sleep> => {
  const all: Array<Sleep> = [];
  for (let at = dice.between(4 * minutes, 15 * minutes); at < until; at += dice.between(15 * minutes, 30 * minutes)) {
    const peers = dice.pick(["alive", "reset", "silent"] as const);
    all.push({ at, ms: dice.between(30 * seconds, 10 * minutes), peers });
  }
  return all;
};
