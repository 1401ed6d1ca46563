/**
 * Plays simulated runs with injected faults and judges them: `npm run simulate -- --runs 20000 --seed 1`.
 */
import { parseArgs } from "node:util";
import { baseSeed } from "../test/simulation/Campaign.ts";
import { laws } from "../test/simulation/gateway/Judge.ts";
import { invariants } from "../test/simulation/judge/Invariants.ts";
import { crash, gateway, type Kind, runs } from "./simulate/Kinds.ts";

const usage = `Plays whole runs with injected faults under virtual time and judges the numbered invariants.

  npm run simulate -- [--crash | --liveness | --gateway] [--runs N | --hours N] [--seed N] [--trace] [--keep-going] [--first]

  --crash        runs across several processes, which die at a write, are left or are recovered
  --liveness     nothing fails after a random moment: every run must end or ask within a bound
  --gateway      a whole gateway between scripted clients and a scripted provider, with faults of the network, the provider, the
                 clients and the machine, judged from outside
  --runs N       number of seeds, one run or world each (default 2000)
  --hours N      with --gateway: plays seeds until so many hours were simulated
  --seed N       the first seed (default ${baseSeed})
  --trace        prints everything that happened in each run
  --keep-going   does not stop after ten seeds with violations
  --first        stops at the first seed with violations and prints it as one line of JSON
  --help         prints this text

Without --crash each run lives in one process, in a world with repeated ids, stores that fail and hang, extreme values, and pauses of
the process. Exit code 0: every invariant held. 1: at least one was violated. 2: invalid arguments. The same seed always plays the
same run: --seed with --runs 1 --trace shows it.

${Object.entries({ ...invariants, ...laws })
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
  readonly hours: number;
}

const main = async (): Promise<number> => {
  const given = options();
  if (given === undefined) return 0;
  const { first, keepGoing, kind, seed, trace } = given;
  const broken: Array<number> = [];
  let played = 0;
  for (; played < given.runs && (kind.hours?.() ?? 0) < given.hours; played += 1) {
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
  console.log(`seeds ${seed} to ${seed + Math.max(0, played - 1)}: ${played} runs, ${broken.length} with violations`);
  console.log(kind.summary());
  if (broken.length > 0) console.log(`seeds with violations: ${broken.join(" ")}`);
  return broken.length === 0 ? 0 : 1;
};

const options = (): Options | undefined => {
  const flag = { type: "boolean", default: false } as const;
  const { values } = parseArgs({
    options: {
      runs: { type: "string" },
      hours: { type: "string" },
      seed: { type: "string", default: String(baseSeed) },
      crash: flag,
      liveness: flag,
      gateway: flag,
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
  const count = values.runs === undefined && values.hours !== undefined ? Infinity : Number(values.runs ?? 2_000);
  const hours = Number(values.hours ?? Infinity);
  const seed = Number(values.seed);
  if (!(hours > 0)) throw new Error(`--hours: expected a number above 0, got ${values.hours}`);
  if (values.hours !== undefined && !values.gateway) throw new Error("--hours: expected with --gateway");
  if (count !== Infinity && (!Number.isSafeInteger(count) || count < 1))
    throw new Error(`--runs: expected an integer of at least 1, got ${values.runs}`);
  if (!Number.isSafeInteger(seed)) throw new Error(`--seed: expected an integer, got ${values.seed}`);
  if ([values.crash, values.liveness, values.gateway].filter(Boolean).length > 1)
    throw new Error("expected one of --crash, --liveness and --gateway, got several");
  const kind = values.gateway ? gateway() : values.crash ? crash() : runs(values.liveness ? "liveness" : "runs");
  const { first, trace } = values;
  return { kind, runs: count, hours, seed, trace, keepGoing: values["keep-going"], first };
};

// Pending writes and hung handlers may still exist, and the program does not wait for them.
try {
  process.exit(await main());
} catch (error) {
  console.error(error instanceof Error ? error.message : error);
  process.exit(2);
}
