/**
 * `npm run nodes -- --kind gateways --fault "kill -9"`: nodes over one PostgreSQL, and what happens to one of them. Left out, it plays
 * agents and gateways, and all faults, `--rounds` times. Exit code 1 where something was lost, shown twice, done twice or decided late.
 */
import { parseArgs } from "node:util";
import { Effect } from "effect";
import { gatewayFaults } from "./kill/gateways/GatewayPlan.ts";
import * as GatewayPlaying from "./kill/gateways/GatewayPlaying.ts";
import { faults } from "./kill/nodes/NodePlan.ts";
import * as NodePlaying from "./kill/nodes/NodePlaying.ts";
import * as Cluster from "./postgres/Cluster.ts";

const kinds = ["agents", "gateways"] as const;
const { values } = parseArgs({
  options: {
    kind: { type: "string" },
    fault: { type: "string" },
    rounds: { type: "string", default: "1" },
    help: { type: "boolean", short: "h", default: false },
  },
});
const { fault, kind } = values;
const rounds = Number(values.rounds);
const chosen = <A extends string>(all: ReadonlyArray<A>, word: string | undefined): ReadonlyArray<A> =>
  all.filter((it) => word === undefined || it === word);
const [ofAgents, ofGateways] = [chosen(faults, fault), chosen(gatewayFaults, fault)];
const played = chosen(kinds, kind);
const isNothing = played.length === 0 || (ofAgents.length === 0 && ofGateways.length === 0);
if (values.help || !(rounds > 0) || isNothing) {
  const all = [...new Set([...faults, ...gatewayFaults])].map((it) => JSON.stringify(it)).join("|");
  console.log(`npm run nodes -- [--kind ${kinds.join("|")}] [--fault ${all}] [--rounds 1]`);
  process.exit(values.help ? 0 : 2);
}
const programs = Cluster.programs();
if (programs === undefined) throw new Error("install PostgreSQL, or name its folder in $POSTGRES_BIN");
let [broken, streams] = [0, 0];
const count = (problems: ReadonlyArray<string>, all: ReadonlyArray<unknown>): void => {
  for (const problem of problems) console.log(`PROBLEM ${problem}`);
  broken += problems.length;
  streams += all.length;
};
const seconds = (ms: number | undefined): string => (ms === undefined ? "" : `, ${(ms / 1_000).toFixed(1)} s late`);
for (let round = 1; round <= rounds; round += 1) {
  const cluster = Cluster.make(programs);
  try {
    for (const it of played.includes("agents") ? ofAgents : []) {
      const { problems, remains } = await Effect.runPromise(NodePlaying.play(it, cluster));
      for (const { asked, lateMs, record, run } of remains) {
        const end = record?.end?.reason ?? record?.state;
        console.log(`agents, ${it}, ${run}: ${end}, asked ${asked.join(" + ")}${seconds(lateMs)}`);
      }
      count(problems, remains);
    }
    if (!played.includes("gateways") || ofGateways.length === 0) continue;
    const { problems, remains } = await Effect.runPromise(Effect.scoped(GatewayPlaying.play(ofGateways, cluster)));
    for (const { again, asked, fault: of, records, state, tries } of remains) {
      const ends = records.map(({ end, lateMs, state: now }) => `${end?.reason ?? now}${seconds(lateMs)}`);
      const outcomes = tries.map(({ isAttached, outcome }) => `${outcome}${isAttached ? " (attached)" : ""}`);
      const more = again === undefined ? "" : `, once more ${again.isAttached ? "attached" : again.outcome}`;
      console.log(`gateways, ${of}, ${state}: ${outcomes.join(", ")}${more}; asked ${asked}; ${ends.join(", ")}`);
    }
    count(problems, remains);
  } finally {
    cluster.remove();
  }
}
console.log(`${rounds} rounds, ${streams} runs; ${broken} problems`);
process.exit(broken === 0 ? 0 : 1);
