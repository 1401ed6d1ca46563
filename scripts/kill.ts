/**
 * `npm run kill -- --runs 1000 --seed 7`: kills processes in the middle of real runs, recovers them, and looks whether
 * anything was lost, repeated or damaged. Exit code 1 when something was.
 */
import { parseArgs } from "node:util";
import { Effect } from "effect";
import { play } from "./kill/Killing.ts";
import { draw } from "./kill/Plan.ts";

/** Runs that share a process: a kill hits them all, each somewhere else. */
const batchRuns = 10;

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "100" },
    seed: { type: "string", default: String(1 + (process.pid % 1_000_000)) },
    help: { type: "boolean", short: "h", default: false },
  },
});
const runs = Number(values.runs);
const seed = Number(values.seed);
if (values.help || !(runs > 0) || !Number.isSafeInteger(seed)) {
  console.log("npm run kill -- [--runs 100] [--seed N]   runs are killed in batches of 10; the seed is printed");
  process.exit(values.help ? 0 : 2);
}

const batches = Array.from({ length: Math.ceil(runs / batchRuns) }, (_, index) =>
  draw(seed + index, Math.min(batchRuns, runs - index * batchRuns)),
);
let hit = 0;
let kills = 0;
let asked = 0;
const problems: Array<string> = [];
for (const [index, batch] of batches.entries()) {
  const outcome = await Effect.runPromise(Effect.scoped(play(batch)));
  hit += outcome.hit;
  kills += outcome.kills;
  asked += outcome.asked;
  problems.push(...outcome.problems.map((problem) => `seed ${batch.seed}: ${problem}`));
  process.stderr.write(`\r${index + 1}/${batches.length} batches, ${hit} runs hit, ${problems.length} problems `);
}
process.stderr.write("\n");
for (const problem of problems) console.log(problem);
console.log(
  `seed ${seed}: ${runs} runs, ${kills} processes killed, ${hit} runs hit in the middle, ${asked} asked; ${problems.length} problems`,
);
process.exit(problems.length === 0 ? 0 : 1);
