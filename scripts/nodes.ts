/**
 * `npm run nodes -- --kind gateways --fault "kill -9"`: several nodes over one PostgreSQL, and a fault that hits one of them. By default it
 * plays agents and gateways with all faults, `--rounds` times. A fault that misses something is repeated. Exit code 1 if something was
 * lost, shown twice, done twice or decided late, or if the last repetition still missed.
 */
import { parseArgs } from "node:util";
import { Effect } from "effect";
import * as GatewayPlaying from "./kill/gateways/GatewayPlaying.ts";
import { faults, type Outcome } from "./kill/NodeFaults.ts";
import * as NodePlaying from "./kill/nodes/NodePlaying.ts";
import { missing } from "./kill/Proof.ts";
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
const filterChosen = <A extends string>(all: ReadonlyArray<A>, word: string | undefined): ReadonlyArray<A> =>
  all.filter((it) => word === undefined || it === word);
const happening = filterChosen(faults, fault);
const played = filterChosen(kinds, kind);
if (values.help || !(rounds > 0) || played.length === 0 || happening.length === 0) {
  const all = faults.map((it) => JSON.stringify(it)).join("|");
  console.log(`npm run nodes -- [--kind ${kinds.join("|")}] [--fault ${all}] [--rounds 1]`);
  process.exit(values.help ? 0 : 2);
}
const programs = Cluster.programs();
if (programs === undefined) throw new Error("install PostgreSQL, or set $POSTGRES_BIN to the folder of its programs");
let [broken, streams, hit, again] = [0, 0, 0, 0];
const count = ({ missed, problems }: Outcome, all: ReadonlyArray<{ readonly hasMet: boolean }>): void => {
  for (const one of missed) console.log(one);
  for (const problem of problems) console.log(`PROBLEM ${problem}`);
  again += missed.length;
  broken += problems.length;
  streams += all.length;
  hit += all.filter(({ hasMet }) => hasMet).length;
};
const seconds = (ms: number | undefined): string => (ms === undefined ? "" : `, ${(ms / 1_000).toFixed(1)} s late`);
for (let round = 1; round <= rounds; round += 1) {
  const cluster = Cluster.make(programs);
  try {
    for (const it of played.includes("agents") ? happening : []) {
      const outcome = await Effect.runPromise(NodePlaying.play(it, cluster));
      const { remains } = outcome;
      for (const { asked, lateMs, record, run } of remains) {
        const end = record?.end?.reason ?? record?.state;
        console.log(`agents, ${it}, ${run}: ${end}, asked ${asked.join(" + ")}${seconds(lateMs)}`);
      }
      count(outcome, remains);
    }
    if (!played.includes("gateways")) continue;
    const outcome = await Effect.runPromise(Effect.scoped(GatewayPlaying.play(happening, cluster)));
    const { remains } = outcome;
    for (const { again: repeat, asked, fault: of, records, state, tries } of remains) {
      const ends = records.map(({ end, lateMs, state: now }) => `${end?.reason ?? now}${seconds(lateMs)}`);
      const outcomes = tries.map(({ isAttached, outcome }) => `${outcome}${isAttached ? " (attached)" : ""}`);
      const more = repeat === undefined ? "" : `, once more ${repeat.isAttached ? "attached" : repeat.outcome}`;
      console.log(`gateways, ${of}, ${state}: ${outcomes.join(", ")}${more}; asked ${asked}; ${ends.join(", ")}`);
    }
    count(outcome, remains);
  } finally {
    cluster.remove();
  }
}
for (const problem of missing({ runs: streams, hit })) {
  console.log(`PROBLEM ${problem}`);
  broken += 1;
}
console.log(`${rounds} rounds, ${streams} runs; ${again} missed, ${broken} problems`);
process.exit(broken === 0 ? 0 : 1);
