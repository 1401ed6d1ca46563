/**
 * `node scripts/agent-kill.ts --runs 200 --seed 7`: kills agents in the middle of their work, lets the next process go on, and
 * looks whether a tool did anything twice or a history is damaged. Exit code 1 when one is.
 */
import { parseArgs } from "node:util";
import { Effect } from "effect";
import { draw } from "../test/agent/kill/Plan.ts";
import { play } from "../test/agent/kill/Play.ts";

/** Chats that share a process, and its lives: a kill hits them all, each somewhere else. */
const batchChats = 8;
const lives = 4;

const { values } = parseArgs({
  options: {
    runs: { type: "string", default: "40" },
    seed: { type: "string", default: String(1 + (process.pid % 1_000_000)) },
    help: { type: "boolean", short: "h", default: false },
  },
});
const runs = Number(values.runs);
const seed = Number(values.seed);
if (values.help || !(runs > 0) || !Number.isSafeInteger(seed)) {
  console.log(
    "node scripts/agent-kill.ts [--runs 40] [--seed N]   chats are killed in batches of 8; the seed is printed",
  );
  process.exit(values.help ? 0 : 2);
}

const total = { hit: 0, kills: 0, judged: 0, effects: 0 };
const problems: Array<string> = [];
const batches = Math.ceil(runs / batchChats);
for (let index = 0; index < batches; index += 1) {
  const batch = draw(seed + index, Math.min(batchChats, runs - index * batchChats), lives);
  const outcome = await Effect.runPromise(Effect.scoped(play(batch)));
  total.hit += outcome.hit;
  total.kills += outcome.kills;
  total.judged += outcome.judged;
  total.effects += outcome.effects;
  problems.push(...outcome.problems.map((problem) => `seed ${batch.seed}: ${problem}`));
  process.stderr.write(`\r${index + 1}/${batches} batches, ${total.hit} chats hit, ${problems.length} problems `);
}
process.stderr.write("\n");
for (const problem of problems) console.log(problem);
console.log(
  `seed ${seed}: ${runs} chats, ${total.kills} processes killed, ${total.hit} chats hit in the middle, ${total.effects} effects of a tool, ${total.judged} calls looked at or asked for; ${problems.length} problems`,
);
process.exit(problems.length === 0 ? 0 : 1);
