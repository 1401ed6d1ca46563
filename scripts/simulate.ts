/**
 * Plays simulated runs with injected faults and judges them: `node scripts/simulate.ts --runs 20000 --seed 1`.
 */
import { parseArgs } from "node:util";
import { baseSeed, playSeed, report, Summary } from "../test/simulation/Campaign.ts";
import { lines } from "../test/simulation/Transcript.ts";
import { invariants } from "../test/simulation/Verdict.ts";

const usage = `Plays whole runs with injected faults under virtual time and judges the numbered invariants.

  node scripts/simulate.ts [--runs N] [--seed N] [--trace] [--keep-going]

  --runs N       how many seeds, one run each (default 2000)
  --seed N       the first seed (default ${baseSeed})
  --trace        print everything that happened in each run
  --keep-going   do not stop after ten seeds with violations
  --help         this text

Exit code 0: every invariant held. 1: at least one was broken. 2: bad arguments.

${Object.entries(invariants)
  .map(([number, text]) => `  ${number.padEnd(4)}${text}`)
  .join("\n")}
`;

/** Seeds with violations after which it stops. */
const brokenMax = 10;

/** Runs between two lines of progress. */
const progressEvery = 2_000;

const main = async (): Promise<number> => {
  const { runs, seed, trace, keepGoing } = options();
  const summary = new Summary();
  for (let played = 0; played < runs; played += 1) {
    const it = await playSeed(seed + played);
    summary.add(it);
    if (trace) console.log([JSON.stringify(it.trace.scenario), ...lines(it.trace)].join("\n"));
    if (it.violations.length > 0) console.log(await report(it));
    if (summary.broken.length >= brokenMax && !keepGoing) break;
    if (summary.runs % progressEvery === 0) console.log(`${summary.runs} runs, ${summary.broken.length} broken`);
  }
  console.log(told(seed, summary));
  return summary.broken.length === 0 ? 0 : 1;
};

const options = () => {
  const flag = { type: "boolean", default: false } as const;
  const { values } = parseArgs({
    options: {
      runs: { type: "string", default: "2000" },
      seed: { type: "string", default: String(baseSeed) },
      trace: flag,
      "keep-going": flag,
      help: flag,
    },
  });
  if (values.help) {
    console.log(usage);
    process.exit(0);
  }
  const runs = Number(values.runs);
  const seed = Number(values.seed);
  if (!Number.isSafeInteger(runs) || runs < 1)
    throw new Error(`--runs: expected a whole number from 1, got ${values.runs}`);
  if (!Number.isSafeInteger(seed)) throw new Error(`--seed: expected a whole number, got ${values.seed}`);
  return { runs, seed, trace: values.trace, keepGoing: values["keep-going"] };
};

const told = (seed: number, { attempts, broken, ends, rules, runs }: Summary): string => {
  const table = (counts: ReadonlyMap<string, number>) =>
    [...counts].sort(([, a], [, b]) => b - a).map(([name, count]) => `  ${String(count).padStart(8)} ${name}`);
  return [
    `seeds ${seed} to ${seed + runs - 1}: ${runs} runs, ${attempts} attempts, ${broken.length} with violations`,
    "decisions by rule:",
    ...table(rules),
    "ends:",
    ...table(ends),
    ...(broken.length === 0 ? [] : [`seeds with violations: ${broken.map((it) => it.seed).join(" ")}`]),
  ].join("\n");
};

try {
  process.exitCode = await main();
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exitCode = 2;
}
