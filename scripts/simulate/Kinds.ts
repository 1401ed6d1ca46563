/**
 * A common interface to the kinds of simulation: each plays seeds, reports violations, and summarises.
 */
import { type Mode, playSeed, report, Summary } from "../../test/simulation/Campaign.ts";
import * as Crash from "../../test/simulation/crash/Campaign.ts";
import * as Gateway from "../../test/simulation/gateway/Campaign.ts";
import { lines } from "../../test/simulation/Transcript.ts";

/** The result of one seed. */
export interface Outcome {
  /** The violations, one line each. */
  readonly broken: ReadonlyArray<string>;
  /** Describes a failure for a person: the seed, the violations, and the smallest scenario. */
  readonly report: () => Promise<string>;
  readonly story: () => string;
}

/** One kind of simulation. It counts the runs it plays. */
export interface Kind {
  readonly play: (seed: number) => Promise<Outcome>;
  readonly summary: () => string;
  /** Simulated hours so far, if the kind counts them. */
  readonly hours?: () => number;
}

/** Runs in a single process under virtual time. In mode `liveness`, nothing fails after a random moment. */
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

/** A whole gateway between scripted clients and a scripted provider, in one process and in virtual time. */
export const gateway = (): Kind => {
  let ms = 0;
  let asked = 0;
  const ends = new Map<string, number>();
  return {
    play: async (seed) => {
      const judged = await Gateway.playSeed(seed);
      ms += judged.history.ms;
      asked += judged.history.asked.length;
      for (const { end, status } of judged.history.calls) {
        const name = `${status ?? "no status"}, ${end?.how ?? "no end"}`;
        ends.set(name, (ends.get(name) ?? 0) + 1);
      }
      return {
        broken: judged.violations.map(({ found, law }) => `${law}: ${found}`),
        report: () => Gateway.report(judged),
        story: () =>
          [`world ${seed} ${judged.digest}`, JSON.stringify(judged.history.world), ...judged.story].join("\n"),
      };
    },
    summary: () =>
      [
        `${(ms / 3_600_000).toFixed(1)} simulated hours, ${asked} requests at the provider`,
        "ends:",
        ...table(ends),
      ].join("\n"),
    hours: () => ms / 3_600_000,
  };
};

const table = (counts: ReadonlyMap<string, number>): ReadonlyArray<string> =>
  [...counts].sort(([, a], [, b]) => b - a).map(([name, count]) => `  ${String(count).padStart(8)} ${name}`);
