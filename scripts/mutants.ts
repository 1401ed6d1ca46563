/**
 * Introduces old and wrong behaviours into copies of the sources and checks which proof notices each: `npm run mutants`.
 */
import { parseArgs } from "node:util";
import type { Mutant, Proof } from "./mutants/Mutant.ts";
import { areas, catalogue, type Listed } from "./mutants/runner/Catalogue.ts";
import { Copy } from "./mutants/runner/Copy.ts";
import { inLanes } from "./mutants/runner/Lanes.ts";
import { type MutantResult, resultOf, table } from "./mutants/runner/MutantResult.ts";
import { sources } from "./mutants/runner/Site.ts";
import { proofText, runTestsTogether, type Said, tryProof } from "./mutants/runner/Trial.ts";
import { killedShareMin, playSample } from "./mutants/sample/Sample.ts";
import { rooms } from "./mutants/sample/Survivors.ts";

const usage = `Tries every mutant of scripts/mutants/ against its proofs, two at a time, each in a copy of the sources.

  npm run mutants -- [--area NAME] [--only TEXT] [--json] [--lanes N]

  --area NAME   only the mutants of an area: ${areas().join(", ")}
  --only TEXT   only the mutants whose name contains TEXT
  --sample N    instead of the lists: N mutations drawn at random from the syntax trees of src/{${rooms.join(",")}}
  --seed N      seed of the sample (default: a new one, which is printed)
  --results F   appends each outcome of the sample to the file F, and skips mutations that the file already contains
  --json        prints the results as JSON instead of a table
  --lanes N     number of mutants that are tried in parallel (default 2)
  --help        prints this text

A proof that fails without the mutant proves nothing, so each proof is tried without it first.
Exit code 0: every mutant was killed, or ${killedShareMin} % of a sample with each survivor explained in sample/survivors.jsonl. 1: a
mutant survived or could not be tried. 2: invalid arguments.
`;

const root = new URL("..", import.meta.url).pathname;

const options = () => {
  const flag = { type: "boolean", default: false } as const;
  const { values } = parseArgs({
    options: {
      area: { type: "string" },
      only: { type: "string" },
      lanes: { type: "string", default: "2" },
      results: { type: "string" },
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
    throw new Error(`--${name}: expected an integer of at least 1, got ${given}`);
  return value;
};

const main = async (): Promise<number> => {
  const { area, help, json, lanes, only, results, sample, seed } = options();
  if (help) {
    console.log(usage);
    return 0;
  }
  if (sample !== undefined) return playSample({ count: sample, json, lanes, results, seed }, root);
  const listed = catalogue().filter(
    (it) => (area === undefined || it.area === area) && (only === undefined || it.mutant.name.includes(only)),
  );
  if (listed.length === 0) throw new Error("no mutant matches");
  const copies = Array.from({ length: Math.min(lanes, listed.length) }, () => new Copy(root));
  try {
    const results = await play(listed, copies);
    console.log(json ? JSON.stringify(results, null, 2) : table(results));
    return results.every(({ state }) => state === "killed") ? 0 : 1;
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

/** Tries each distinct proof on the unchanged sources. */
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
    for (const [text, it] of await runTestsTogether(chunk, copy.root)) said.set(text, it);
  });
  await inLanes(simulations, copies, async (proof, copy) => {
    said.set(proofText(proof), await tryProof(proof, copy.root));
  });
  for (const [text, it] of said) if (it.said !== "passed") console.error(`without a mutant, ${text}: ${it.said}`);
  return (proof) => said.get(proofText(proof)) ?? { said: "nothing", why: "it was not tried" };
};

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}
