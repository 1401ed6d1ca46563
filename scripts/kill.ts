/**
 * `npm run kill -- --runs 1000 --seed 7`: kills processes in the middle of real runs, recovers them, and checks that nothing was lost,
 * repeated or damaged. With `--workers` it kills processes of gateways with workers, and checks the behaviour that clients, their
 * provider and a person see. Exit code 1 if a check failed.
 */
import { parseArgs } from "node:util";
import { Effect } from "effect";
import { play } from "./kill/Killing.ts";
import { draw } from "./kill/Plan.ts";
import { missing } from "./kill/Proof.ts";
import { toldOf } from "./kill/streams/StreamLaws.ts";
import * as WorkersPlan from "./kill/workers/WorkersPlan.ts";
import * as WorkersPlaying from "./kill/workers/WorkersPlaying.ts";

/** Number of runs that share a process. A kill hits them all, each at a different point. */
const batchRuns = 10;

/** Default number of faults that a gateway with workers suffers, one after another. */
const roundsDefault = 3;

const usage = `npm run kill -- [--runs 100] [--seed N]
  Kills processes that run the library, in batches of 10 runs.

npm run kill -- --workers [--runs 10] [--seed N] [--rounds ${roundsDefault}] [--fault NAME] [--verbose]
  Each run starts a gateway (serve --workers, one SQLite file) and injects --rounds faults, one after another, while clients have
  streams in every state. The seed increases by one with each run, so a failed run can be repeated with --runs 1 --seed N.
  --fault    the fault of every round: ${WorkersPlan.workersFaults.map((it) => JSON.stringify(it)).join(", ")}
  --verbose  prints a line for each stream

The seed is printed. Exit code 0: no problems. 1: problems, one per line. 2: invalid arguments.
`;

const { values } = parseArgs({
  options: {
    workers: { type: "boolean", default: false },
    runs: { type: "string" },
    seed: { type: "string", default: String(1 + (process.pid % 1_000_000)) },
    rounds: { type: "string", default: String(roundsDefault) },
    fault: { type: "string" },
    verbose: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  },
});
const runs = Number(values.runs ?? (values.workers ? 10 : 100));
const [seed, rounds] = [Number(values.seed), Number(values.rounds)];
const fault = WorkersPlan.workersFaults.find((it) => it === values.fault);
const isWrong = values.fault !== undefined && (fault === undefined || !values.workers);
if (values.help || !(runs > 0) || !(rounds > 0) || !Number.isSafeInteger(seed) || isWrong) {
  console.log(usage);
  process.exit(values.help ? 0 : 2);
}

const library = async (): Promise<ReadonlyArray<string>> => {
  const batches = Array.from({ length: Math.ceil(runs / batchRuns) }, (_, index) =>
    draw(seed + index, Math.min(batchRuns, runs - index * batchRuns)),
  );
  let [hit, kills, asked] = [0, 0, 0];
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
  problems.push(...missing({ runs, hit }));
  for (const problem of problems) console.log(problem);
  console.log(
    `seed ${seed}: ${runs} runs, ${kills} processes killed, ${hit} runs hit, ${asked} with questions; ${problems.length} problems`,
  );
  return problems;
};

const workers = async (): Promise<ReadonlyArray<string>> => {
  const problems: Array<string> = [];
  let [streams, struck, broken, questions] = [0, 0, 0, 0];
  for (let index = 0; index < runs; index += 1) {
    const plan = WorkersPlan.draw({ seed: seed + index, rounds, faults: fault === undefined ? [] : [fault] });
    const { end, problems: found, remains } = await Effect.runPromise(WorkersPlaying.play(plan));
    streams += remains.length;
    struck += remains.filter(({ isStruck }) => isStruck).length;
    broken += remains.filter(({ tries }) =>
      tries.some(({ isTaken, outcome }) => isTaken && outcome === "broken"),
    ).length;
    questions += new Set(remains.flatMap(({ answers }) => answers.map(({ run }) => run))).size;
    problems.push(...found.map((problem) => `seed ${plan.seed}: ${problem}`));
    const happened = plan.rounds
      .map(({ awayMs, fault: of }) => (awayMs > 0 ? `${of}, store unavailable` : of))
      .join("; ");
    console.log(
      `seed ${plan.seed}: ${plan.workers} workers: ${happened}; ${remains.length} streams, ${found.length} problems, slowdown ${end.slowness.toFixed(1)}`,
    );
    for (const { asked, records, stream, tries } of values.verbose ? remains : []) {
      const ends = records.map(
        ({ end: it, lateMs, state }) => `${it?.reason ?? state} (${Math.round(lateMs ?? 0)} ms)`,
      );
      console.log(`  ${stream.name}: ${tries.map(toldOf).join("; ")}; asked ${asked}; ${ends.join(", ")}`);
    }
  }
  problems.push(...missing({ runs: streams, hit: struck }));
  for (const problem of problems) console.log(`PROBLEM ${problem}`);
  console.log(
    `seed ${seed}: ${runs} gateways, ${runs * rounds} faults, ${streams} streams, ${broken} broken, ${questions} questions; ${problems.length} problems`,
  );
  return problems;
};

const problems = await (values.workers ? workers() : library());
process.exit(problems.length === 0 ? 0 : 1);
