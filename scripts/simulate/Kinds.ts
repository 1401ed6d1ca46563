/**
 * The kinds of simulation behind one form: each plays a seed, says what was broken, and sums up.
 */
import { type Mode, playSeed, report, Summary } from "../../test/simulation/Campaign.ts";
import * as Crash from "../../test/simulation/crash/Campaign.ts";
import { lines } from "../../test/simulation/Transcript.ts";

/** What one seed gave. */
export interface Outcome {
  /** What was broken, a line each; none where everything held. */
  readonly broken: ReadonlyArray<string>;
  /** All that a person needs of a failure: the seed, what was broken, the smallest scenario. */
  readonly report: () => Promise<string>;
  /** Everything that happened. */
  readonly story: () => string;
}

/** One kind of simulation; it counts what it plays. */
export interface Kind {
  readonly play: (seed: number) => Promise<Outcome>;
  /** What was played so far, in words. */
  readonly summary: () => string;
}

/** Processes under virtual time that live through one run; for liveness nothing fails any more at a drawn moment. */
export const runs = (mode: Mode): Kind => {
  const summary = new Summary();
  return {
    play: async (seed) => {
      const played = await playSeed(seed, mode);
      summary.add(played);
      return {
        broken: played.violations.map(({ found, invariant }) => `${invariant}: ${found}`),
        report: () => report(played),
        story: () => [JSON.stringify(played.trace.scenario), ...lines(played.trace)].join("\n"),
      };
    },
    summary: () =>
      [
        `${summary.attempts} attempts`,
        ...(mode === "liveness" ? [`at most ${summary.calmMs} ms from the calm to the end`] : []),
        "decisions by rule:",
        ...table(summary.rules),
        "ends:",
        ...table(summary.ends),
      ].join("\n"),
  };
};

/** Runs that live in several processes, which die, are left or are recovered. */
export const crash = (): Kind => {
  let deaths = 0;
  const ends = new Map<string, number>();
  return {
    play: async (seed) => {
      const judged = await Crash.playStory(seed);
      const { end, problems } = judged;
      deaths += judged.deaths;
      ends.set(end, (ends.get(end) ?? 0) + 1);
      const told = () => Crash.told(judged);
      return { broken: problems, report: async () => told(), story: told };
    },
    summary: () => [`${deaths} processes died`, "ends:", ...table(ends)].join("\n"),
  };
};

const table = (counts: ReadonlyMap<string, number>): ReadonlyArray<string> =>
  [...counts].sort(([, a], [, b]) => b - a).map(([name, count]) => `  ${String(count).padStart(8)} ${name}`);
