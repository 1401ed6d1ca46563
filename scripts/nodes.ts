/**
 * `npm run nodes -- --fault "kill -9"`: three nodes over one PostgreSQL, and what happens to one of them. Without a fault it plays
 * all of them, `--rounds` times. Exit code 1 where something was lost, shown twice, done twice or decided late.
 */
import { parseArgs } from "node:util";
import { Effect } from "effect";
import { type Fault, faults } from "./kill/nodes/NodePlan.ts";
import { play } from "./kill/nodes/NodePlaying.ts";
import * as Cluster from "./postgres/Cluster.ts";

const { values } = parseArgs({
  options: {
    fault: { type: "string" },
    rounds: { type: "string", default: "1" },
    help: { type: "boolean", short: "h", default: false },
  },
});
const isFault = (it: string | undefined): it is Fault => faults.some((fault) => fault === it);
const rounds = Number(values.rounds);
if (values.help || !(rounds > 0) || (values.fault !== undefined && !isFault(values.fault))) {
  console.log(`npm run nodes -- [--fault ${faults.map((it) => JSON.stringify(it)).join("|")}] [--rounds 1]`);
  process.exit(values.help ? 0 : 2);
}
const programs = Cluster.programs();
if (programs === undefined) throw new Error("install PostgreSQL, or name its folder in $POSTGRES_BIN");
const chosen = isFault(values.fault) ? [values.fault] : faults;
let broken = 0;
for (let round = 1; round <= rounds; round += 1) {
  const cluster = Cluster.make(programs);
  try {
    for (const fault of chosen) {
      const { problems, remains } = await Effect.runPromise(Effect.scoped(play(fault, cluster)));
      for (const { asked, decidedMs, record, run } of remains) {
        const decided = decidedMs === undefined ? "" : `, decided behind ${Math.round(decidedMs)} ms`;
        console.log(`${fault}, ${run}: ${record?.end?.reason ?? record?.state}, asked ${asked.join(" + ")}${decided}`);
      }
      for (const problem of problems) console.log(`PROBLEM ${problem}`);
      broken += problems.length;
    }
  } finally {
    cluster.remove();
  }
}
console.log(`${rounds} rounds of ${chosen.length} faults on ${rounds * chosen.length * 6} runs; ${broken} problems`);
process.exit(broken === 0 ? 0 : 1);
