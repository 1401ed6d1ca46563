/**
 * Plays simulated runs with injected faults and judges them: `npm run simulate -- --runs 20000 --seed 1`.
 */
import { parseArgs } from "node:util";
import { baseSeed } from "../test/simulation/Campaign.ts";
import { invariants } from "../test/simulation/judge/Invariants.ts";
import { crash, type Kind, runs } from "./simulate/Kinds.ts";

const usage = `Plays whole runs with injected faults under virtual time and judges the numbered invariants.

  npm run simulate -- [--crash | --liveness] [--runs N] [--seed N] [--trace] [--keep-going] [--first]

  --crash        runs across several processes, which die at a write, are left or are recovered
  --liveness     nothing fails after a random moment: every run must end or ask within a bound
  --runs N       number of seeds, one run each (default 2000)
  --seed N       the first seed (default ${baseSeed})
  --trace        prints everything that happened in each run
  --keep-going   does not stop after ten seeds with violations
  --first        stops at the first seed with violations and prints it as one line of JSON
  --help         prints this text

Without --crash each run lives in one process, in a world with repeated ids, stores that fail and hang, extreme values, and pauses of
the process. Exit code 0: every invariant held. 1: at least one was violated. 2: invalid arguments. The same seed always plays the
same run: --seed with --runs 1 --trace shows it.

${Object.entries(invariants)
  .map(([number, text]) => `  ${number.padEnd(4)}${text}`)
  .join("\n")}
`;

/** Number of seeds with violations after which it stops. */
const brokenMax = 10;

/** Number of runs between two lines of progress. */
const progressEvery = 2_000;

interface Options {
  readonly kind: Kind;
  readonly runs: number;
  readonly seed: number;
  readonly trace: boolean;
  readonly keepGoing: boolean;
  readonly first: boolean;
}

const main = async (): Promise<number> => {
  const given = options();
  if (given === undefined) return 0;
  const { first, keepGoing, kind, seed, trace } = given;
  const broken: Array<number> = [];
  let played = 0;
  for (; played < given.runs; played += 1) {
    const it = await kind.play(seed + played);
    if (trace) console.log(it.story());
    if (it.broken.length > 0) {
      broken.push(seed + played);
      if (first) {
        console.log(JSON.stringify({ seed: seed + played, runs: played + 1, broken: it.broken }));
        return 1;
      }
      console.log(await it.report());
    }
    if (broken.length >= brokenMax && !keepGoing) break;
    if ((played + 1) % progressEvery === 0) console.log(`${played + 1} runs, ${broken.length} broken`);
  }
  console.log(`seeds ${seed} to ${seed + given.runs - 1}: ${played} runs, ${broken.length} with violations`);
  console.log(kind.summary());
  if (broken.length > 0) console.log(`seeds with violations: ${broken.join(" ")}`);
  return broken.length === 0 ? 0 : 1;
};

const options = (): Options | undefined => {
  const flag = { type: "boolean", default: false } as const;
  const { values } = parseArgs({
    options: {
      runs: { type: "string", default: "2000" },
      seed: { type: "string", default: String(baseSeed) },
      crash: flag,
      liveness: flag,
      trace: flag,
      "keep-going": flag,
      first: flag,
      help: { ...flag, short: "h" },
    },
  });
  if (values.help) {
    console.log(usage);
    return undefined;
  }
  const count = Number(values.runs);
  const seed = Number(values.seed);
  if (!Number.isSafeInteger(count) || count < 1)
    throw new Error(`--runs: expected an integer of at least 1, got ${values.runs}`);
  if (!Number.isSafeInteger(seed)) throw new Error(`--seed: expected an integer, got ${values.seed}`);
  if (values.crash && values.liveness) throw new Error("expected --crash or --liveness, got both");
  const kind = values.crash ? crash() : runs(values.liveness ? "liveness" : "runs");
  const { first, trace } = values;
  return { kind, runs: count, seed, trace, keepGoing: values["keep-going"], first };
};

// Pending writes and hung handlers may still exist, and the program does not wait for them.
try {
  process.exit(await main());
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(2);
}
