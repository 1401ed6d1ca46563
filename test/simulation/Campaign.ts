/** Plays the scenarios of many seeds, judges each, and shrinks a scenario that violates an invariant. */
import { hashOf } from "../Hashes.ts";
import { besideWell } from "./Beside.ts";
import { generate, generateCalm } from "./Generator.ts";
import type { Trace } from "./Journal.ts";
import type { Violation } from "./judge/Invariants.ts";
import { judge } from "./judge/Judge.ts";
import type { Scenario } from "./Scenario.ts";
import { smaller } from "./Shrink.ts";
import { simulate } from "./Simulation.ts";

/** The seed of the first scenario by default. */
export const baseSeed = 20_261_121;

/** `runs` plays any faults; `liveness` plays runs in which nothing fails after a random moment. */
export type Mode = "runs" | "liveness";

const scenarioOf = (seed: number, mode: Mode): Scenario => (mode === "runs" ? generate(seed) : generateCalm(seed));

/** The result of one seed. */
export interface Played {
  readonly seed: number;
  readonly mode: Mode;
  readonly trace: Trace;
  readonly violations: ReadonlyArray<Violation>;
}

export const playSeed = async (seed: number, mode: Mode = "runs"): Promise<Played> => ({
  ...{ seed, mode },
  ...(await judged(scenarioOf(seed, mode))),
});

const judged = async (scenario: Scenario): Promise<Pick<Played, "trace" | "violations">> => {
  const trace = await simulate(scenario);
  return { trace, violations: [...judge(trace), ...(await besideWell(trace))] };
};

/** The totals of a campaign so far. */
export class Summary {
  runs = 0;
  attempts = 0;
  /** Attempts by another route than the first. */
  moved = 0;
  /** The longest time from the calm to an end, in virtual milliseconds. */
  calmMs = 0;
  readonly rules = new Map<string, number>();
  readonly ends = new Map<string, number>();
  readonly broken: Array<Omit<Played, "trace">> = [];
  /** A line for each run, which changes if anything in its trace changes. */
  readonly digests: Array<string> = [];

  add({ mode, seed, trace, violations }: Played): void {
    this.runs += 1;
    for (const entry of trace.journal) {
      if (entry.what === "opened") this.attempts += 1;
      if (entry.what === "opened" && entry.context.route !== undefined) this.moved += 1;
      if (entry.what === "ended")
        this.calmMs = Math.max(this.calmMs, entry.at - (trace.scenario.world.calmAt ?? entry.at));
      if (entry.what !== "writing") continue;
      for (const it of entry.entries) {
        if (it._tag === "IncidentOpened") count(this.rules, it.incident.decision.rule);
        if (it._tag === "RunEnded") count(this.ends, it.end.state);
      }
    }
    this.digests.push(digest(seed, trace));
    if (violations.length > 0) this.broken.push({ mode, seed, violations });
  }
}

/** Plays this many seeds. The first that violates an invariant fails the campaign and is reported with its smallest scenario. */
export const playSeeds = async (runs: number, from: number, mode: Mode = "runs"): Promise<Summary> => {
  const summary = new Summary();
  for (let played = 0; played < runs; played += 1) summary.add(await playSeed(from + played, mode));
  const [first] = summary.broken;
  if (first === undefined) return summary;
  throw new Error(`${summary.broken.length} of ${runs} seeds break an invariant; the first:\n${await report(first)}`);
};

const digest = (seed: number, { closed, ended, journal, record, telemetry }: Trace): string => {
  const attempts = journal.filter(({ what }) => what === "opened").length;
  const end = record?.end === undefined ? record?.state : `${record.end.state} ${record.end.reason}`;
  const parts = { journal, record, telemetry: [...telemetry, ended, closed] };
  const hashes = Object.entries(parts).map(([name, it]) => `${name} ${hashOf(it)}`);
  return [`${seed}: ${attempts} attempts, ${journal.length} entries, ${end}`, ...hashes].join(", ");
};

const count = (counts: Map<string, number>, key: string): void => {
  counts.set(key, (counts.get(key) ?? 0) + 1);
};

/** The smallest scenario that still violates the first invariant that the seed's scenario violates. */
export const smallest = async (seed: number, mode: Mode): Promise<Scenario> => {
  const scenario = scenarioOf(seed, mode);
  const [first] = (await judged(scenario)).violations;
  if (first === undefined) return scenario;
  const breaks = async (it: Scenario) =>
    (await judged(it)).violations.some(({ invariant }) => invariant === first.invariant);
  return smaller(scenario, breaks);
};

/** Describes a failure for a person: the seed, the violations and the smallest scenario. */
export const report = async ({ mode, seed, violations }: Omit<Played, "trace">): Promise<string> =>
  [
    `seed ${seed}`,
    ...violations.map(({ found, invariant }) => `  ${invariant}: ${found}`),
    `  smallest scenario: ${JSON.stringify(await smallest(seed, mode))}`,
  ].join("\n");
