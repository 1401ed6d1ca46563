/**
 * Tries randomly drawn mutations and measures the share that the tests notice.
 *
 * Each mutation is checked by the compiler first, then by the tests nearest to its file, then by simulations. The rest of the quick tests
 * run once for all remaining mutations together.
 */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import { Schema } from "effect";
import { seeded } from "../../../test/Seeded.ts";
import { Copy } from "../runner/Copy.ts";
import { inLanes } from "../runner/Lanes.ts";
import { sitesOf } from "./Apply.ts";
import { Killers, simulationRuns } from "./Killers.ts";
import { type Mutation, sampleOf } from "./Mutations.ts";
import { NearTests } from "./NearTests.ts";
import { allMutations, explanations, reportSample, type Sampled } from "./Survivors.ts";
import { tryTogether } from "./Together.ts";
import { Types } from "./Types.ts";

/** Minimum percentage of a sample that tests and simulations must notice. */
export const killedShareMin = 85;

/** Maximum test files that each mutation is tried against separately. */
const nearFilesMax = 14;

/** Time limit of these test files, in milliseconds. */
const nearMsMax = 240_000;

/** An outcome as a line of the results file. `open`: neither the near tests nor the simulations noticed it. */
const Line = Schema.Struct({
  mutation: Schema.String,
  state: Schema.Literals(["killed", "survived", "ill-typed", "error", "open"]),
  by: Schema.optionalKey(Schema.String),
  seconds: Schema.Finite,
});
type Outcome = Omit<typeof Line.Type, "mutation">;

/** Stores outcomes in a file, so that an interrupted sample can be continued. */
class Results {
  readonly #file: string | undefined;
  readonly #known = new Map<string, Outcome>();

  constructor(file: string | undefined) {
    this.#file = file;
    if (file === undefined || !existsSync(file)) return;
    for (const line of readFileSync(file, "utf8").split("\n").filter(Boolean)) {
      const { mutation, ...outcome } = Schema.decodeUnknownSync(Schema.fromJsonString(Line))(line);
      this.#known.set(mutation, outcome);
    }
  }

  of(mutation: Mutation): Outcome | undefined {
    return this.#known.get(keyOf(mutation));
  }

  add(mutation: Mutation, outcome: Outcome): void {
    this.#known.set(keyOf(mutation), outcome);
    if (this.#file !== undefined)
      appendFileSync(this.#file, `${JSON.stringify({ mutation: keyOf(mutation), ...outcome })}\n`);
  }
}

const keyOf = ({ find, path, replace, start }: Mutation): string => `${path}:${start}: ${find} → ${replace}`;

const textOf = ({ find, line, operator, path, replace }: Mutation): string =>
  `${path}:${line} ${operator}: ${find} → ${replace}`.replaceAll(/\s+/g, " ").slice(0, 160);

/** The sample to draw. */
export interface SampleOptions {
  readonly count: number;
  readonly json: boolean;
  readonly lanes: number;
  /** The results file, if the sample must survive this process. */
  readonly results: string | undefined;
  readonly seed: number;
}

/**
 * Draws a sample, tries it and prints its report.
 *
 * @returns the exit code: 1 if too few mutations are killed or a survivor is unexplained
 */
export const playSample = async (options: SampleOptions, root: string): Promise<number> => {
  const { count, json, lanes, seed } = options;
  const all = allMutations(root);
  const sample = sampleOf(all, count, seeded(seed));
  console.error(`${sample.length} of ${all.length} mutations, --seed ${seed}`);
  const results = new Results(options.results);
  const near = new NearTests(root);
  const copies = Array.from({ length: Math.min(lanes, sample.length) }, () => new Copy(root));
  const healthy = new Map<string, boolean>();
  const benches = new Map(
    copies.map((copy): [Copy, Bench] => [copy, { killers: new Killers(copy, healthy), types: new Types(copy) }]),
  );
  const [first] = benches.values();
  try {
    if (first === undefined) throw new Error("the sample is empty");
    await checkHealth(first);
    let done = 0;
    await inLanes(sample, copies, async (mutation, copy) => {
      const bench = benches.get(copy) ?? first;
      const outcome = results.of(mutation) ?? (await tryAlone(mutation, bench, near.of(mutation.path), root));
      if (results.of(mutation) === undefined) results.add(mutation, outcome);
      done += 1;
      const by = outcome.by ?? "nothing";
      console.error(`${done}/${sample.length} ${outcome.state} ${textOf(mutation)}, ${by} (${outcome.seconds} s)`);
    });
    await closeOpen(sample, results, near, first.killers, root);
  } finally {
    for (const { types } of benches.values()) types.close();
    for (const copy of copies) copy.remove();
  }
  const sampled = sample.map((mutation): Sampled => {
    const { by, seconds, state } = results.of(mutation) ?? { state: "error", seconds: 0, by: "it was not tried" };
    return { mutation, state: state === "open" ? "error" : state, seconds, ...(by === undefined ? {} : { by }) };
  });
  const report = reportSample(sampled, all.length, explanations(root));
  console.log(json ? JSON.stringify(sampled, null, 2) : report.text);
  return report.killedShare >= killedShareMin && report.unexplained === 0 ? 0 : 1;
};

/** The tools that try mutations in one copy of the sources. */
interface Bench {
  readonly killers: Killers;
  readonly types: Types;
}

const checkHealth = async ({ killers }: Bench): Promise<void> => {
  for (const kind of Object.keys(simulationRuns) as ReadonlyArray<keyof typeof simulationRuns>) {
    const broken = await killers.simulate([], kind);
    if (broken !== undefined) throw new Error(`without a mutation a simulation does not pass: ${broken}`);
  }
};

const tryAlone = async (
  mutation: Mutation,
  { killers, types }: Bench,
  near: ReadonlyArray<string>,
  root: string,
): Promise<Outcome> => {
  const began = performance.now();
  const sites = sitesOf([mutation], root);
  const find = async (): Promise<Omit<Outcome, "seconds">> => {
    if (!(await types.accept(sites))) return { state: "ill-typed" };
    const by =
      (await killers.findKiller(sites, near.slice(0, nearFilesMax), nearMsMax)) ??
      (await killers.simulate(sites, "runs")) ??
      (await killers.simulate(sites, "crash"));
    return by === undefined ? { state: "open" } : { state: "killed", by };
  };
  const found = await find().catch(
    (error: unknown): Omit<Outcome, "seconds"> => ({ state: "error", by: String(error).slice(0, 300) }),
  );
  return { ...found, seconds: Math.round((performance.now() - began) / 100) / 10 };
};

const closeOpen = async (
  sample: ReadonlyArray<Mutation>,
  results: Results,
  near: NearTests,
  killers: Killers,
  root: string,
): Promise<void> => {
  const open = sample.filter((mutation) => results.of(mutation)?.state === "open");
  const files = near.ofAny(open.map(({ path }) => path));
  const secondsOf = (mutation: Mutation) => results.of(mutation)?.seconds ?? 0;
  await tryTogether(open, files, killers, root, (mutation, by) => {
    console.error(`killed ${textOf(mutation)}, ${by}`);
    results.add(mutation, { state: "killed", by, seconds: secondsOf(mutation) });
  });
  for (const mutation of open)
    if (results.of(mutation)?.state === "open")
      results.add(mutation, { state: "survived", seconds: secondsOf(mutation) });
};
