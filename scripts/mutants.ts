/**
 * Puts old and wrong behaviours back into copies of the sources and looks which proof notices each: `npm run mutants`.
 */
import { parseArgs } from "node:util";
import { seeded } from "../test/Seeded.ts";
import type { Mutant, Proof } from "./mutants/Mutant.ts";
import { areas, catalogue, type Listed } from "./mutants/runner/Catalogue.ts";
import { Copy } from "./mutants/runner/Copy.ts";
import { type MutantResult, resultOf, table } from "./mutants/runner/MutantResult.ts";
import { sources } from "./mutants/runner/Site.ts";
import { proofText, type Said, testedTogether, tried } from "./mutants/runner/Trial.ts";
import { sampleOf } from "./mutants/sample/Mutations.ts";
import { allMutations, rooms, type Sampled, Sampling, sampleReport, simulationRuns } from "./mutants/sample/Sample.ts";

/** Percent of a sample that tests and simulations have to notice. */
const killedShareMin = 85;

const usage = `Tries every mutant of scripts/mutants/ against its proofs, two at a time, each in a copy of the sources.

  npm run mutants -- [--area NAME] [--only TEXT] [--json] [--lanes N]

  --area NAME   only the mutants of an area: ${areas().join(", ")}
  --only TEXT   only the mutants whose name holds this text
  --sample N    instead of the lists: N mutations that chance draws from the syntax trees of src/{${rooms.join(",")}}
  --seed N      the sample's seed; without one it is new, and printed
  --json        the results as JSON instead of a table
  --lanes N     how many mutants are tried side by side (default 2)
  --help        this text

A proof that fails without the mutant proves nothing, so that each is tried without it first.
Exit code 0: every mutant was killed, or ${killedShareMin} % of a sample. 1: one survived, or could not be tried. 2: bad arguments.
`;

const root = new URL("..", import.meta.url).pathname;

const options = () => {
  const flag = { type: "boolean", default: false } as const;
  const { values } = parseArgs({
    options: {
      area: { type: "string" },
      only: { type: "string" },
      lanes: { type: "string", default: "2" },
      sample: { type: "string" },
      seed: { type: "string", default: String(Date.now() % 1_000_000) },
      json: flag,
      help: { ...flag, short: "h" },
    },
  });
  const lanes = whole("lanes", values.lanes);
  const sample = values.sample === undefined ? undefined : whole("sample", values.sample);
  const seed = whole("seed", values.seed);
  if (values.area !== undefined && !areas().includes(values.area))
    throw new Error(`--area: expected one of ${areas().join(", ")}, got ${values.area}`);
  return { ...values, lanes, sample, seed };
};

const whole = (name: string, given: string): number => {
  const value = Number(given);
  if (!Number.isSafeInteger(value) || value < 1)
    throw new Error(`--${name}: expected a whole number from 1, got ${given}`);
  return value;
};

const main = async (): Promise<number> => {
  const { area, help, json, lanes, only, sample, seed } = options();
  if (help) {
    console.log(usage);
    return 0;
  }
  if (sample !== undefined) return drawn({ count: sample, json, lanes, seed });
  const listed = catalogue().filter(
    (it) => (area === undefined || it.area === area) && (only === undefined || it.mutant.name.includes(only)),
  );
  if (listed.length === 0) throw new Error("no mutant has such a name");
  const copies = Array.from({ length: Math.min(lanes, listed.length) }, () => new Copy(root));
  try {
    const results = await play(listed, copies);
    console.log(json ? JSON.stringify(results, null, 2) : table(results));
    return results.every(({ state }) => state === "killed") ? 0 : 1;
  } finally {
    for (const copy of copies) copy.remove();
  }
};

/** Draws a sample and tries it. */
const drawn = async ({
  count,
  json,
  lanes,
  seed,
}: {
  readonly count: number;
  readonly json: boolean;
  readonly lanes: number;
  readonly seed: number;
}): Promise<number> => {
  const all = allMutations(root);
  const sample = sampleOf(all, count, seeded(seed));
  console.error(`${sample.length} of ${all.length} mutations, --seed ${seed}`);
  const copies = Array.from({ length: Math.min(lanes, sample.length) }, () => new Copy(root));
  const healthy = new Map<string, boolean>();
  const samplings = new Map(copies.map((copy) => [copy, new Sampling(copy, healthy)]));
  let done = 0;
  try {
    for (const simulate of ["runs", "crash"] as const) {
      const said = await tried({ simulate, runs: simulationRuns[simulate] }, root);
      if (said.said !== "passed")
        throw new Error(`without a mutation the simulation does not pass: ${JSON.stringify(said)}`);
    }
    const results = await inLanes(sample, copies, async (mutation, copy): Promise<Sampled> => {
      const result = await (samplings.get(copy) ?? new Sampling(copy, healthy)).try(mutation);
      done += 1;
      const { find, line, operator, path, replace } = mutation;
      const change = `${path}:${line} ${operator}: ${find} → ${replace}`.replaceAll(/\s+/g, " ").slice(0, 160);
      console.error(
        `${done}/${sample.length} ${result.state} ${change}, ${result.by ?? "nothing"} (${result.seconds} s)`,
      );
      return result;
    });
    console.log(json ? JSON.stringify(results, null, 2) : sampleReport(results, all.length, root));
    const killed = results.filter(({ state }) => state === "killed").length;
    return killed * 100 >= killedShareMin * results.length ? 0 : 1;
  } finally {
    for (const copy of copies) copy.remove();
  }
};

const play = async (
  listed: ReadonlyArray<Listed>,
  copies: ReadonlyArray<Copy>,
): Promise<ReadonlyArray<MutantResult>> => {
  const baseline = await baselines(
    listed.flatMap(({ mutant }) => mutant.proofs),
    copies,
  );
  const all = sources(root);
  let done = 0;
  return inLanes(listed, copies, async (it, copy) => {
    const result = await resultOf(it, copy, all, baseline);
    done += 1;
    const by = result.by === undefined ? result.notes.join("; ") : `by ${result.by}`;
    console.error(`${done}/${listed.length} ${result.state} ${result.name} ${by} (${result.seconds} s)`);
    return result;
  });
};

/** What each distinct proof says of the sources as they are. */
const baselines = async (
  proofs: ReadonlyArray<Proof>,
  copies: ReadonlyArray<Copy>,
): Promise<(proof: Mutant["proofs"][number]) => Said> => {
  const distinct = [...new Map(proofs.map((proof) => [proofText(proof), proof])).values()];
  console.error(`without a mutant: ${distinct.length} proofs`);
  const simulations = distinct.filter((proof) => "simulate" in proof);
  const tests = distinct.filter((proof) => "test" in proof);
  const chunks = copies.map((_, lane) => tests.filter((__, at) => at % copies.length === lane));
  const said = new Map<string, Said>();
  await inLanes(chunks, copies, async (chunk, copy) => {
    for (const [text, it] of await testedTogether(chunk, copy.root)) said.set(text, it);
  });
  await inLanes(simulations, copies, async (proof, copy) => {
    said.set(proofText(proof), await tried(proof, copy.root));
  });
  for (const [text, it] of said) if (it.said !== "passed") console.error(`without a mutant, ${text}: ${it.said}`);
  return (proof) => said.get(proofText(proof)) ?? { said: "nothing", why: "it was not tried" };
};

/** Does something with each, one after the other in each copy, and keeps their order. */
const inLanes = async <A, B>(
  each: ReadonlyArray<A>,
  copies: ReadonlyArray<Copy>,
  use: (it: A, copy: Copy) => Promise<B>,
): Promise<ReadonlyArray<B>> => {
  const results: Array<B> = [];
  const left = [...each.entries()];
  await Promise.all(
    copies.map(async (copy) => {
      for (let next = left.shift(); next !== undefined; next = left.shift())
        results[next[0]] = await use(next[1], copy);
    }),
  );
  return results;
};

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}
