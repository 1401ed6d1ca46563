/**
 * Plays one fault on three nodes. The first has a run in every state when the fault happens, and the others continue what it leaves. A
 * person answers the questions from then on.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Context, Data, Effect, Fiber, Layer, type Scope } from "effect";
import type { Choice } from "../../../src/domain/Decision.ts";
import { PostgresRunRecorder } from "../../../src/recorder/postgres/PostgresRunRecorder.ts";
import { openQuestion, type RunRecord } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import { FaultProvider, type RequestLog } from "../../../src/testing/index.ts";
import type { Cluster } from "../../postgres/Cluster.ts";
import * as SocketProxy from "../../postgres/SocketProxy.ts";
import { type Child, startChild } from "../ChildProcess.ts";
import * as Diary from "../Diary.ts";
import { type Fault, hasWrongClock, injectFault, type Outcome, repeatUntilMet, takesOver } from "../NodeFaults.ts";
import { Slowness } from "../Slowness.ts";
import { missed, type NodeRemains, problems } from "./NodeJudge.ts";
import { leaseMs, type NodeRun, runs, script, states } from "./NodePlan.ts";

/** The result of a fault. */
export interface NodesPlayed extends Outcome {
  readonly fault: Fault;
  readonly remains: ReadonlyArray<NodeRemains>;
}

/** Duration of a stop or a disconnection, in milliseconds. */
const awayMs = 2.5 * leaseMs;

/** Timeouts for reaching all states and for ending all runs, in milliseconds. They allow for a busy machine. */
const reachedMsMax = 60_000;
const endedMsMax = 90_000;
const lookEveryMs = 50;

/** Offsets of the nodes' wall clocks if the clock is the fault, in milliseconds. */
const aheadMs = [3_600_000, 7_200_000, -3_600_000] as const;

/**
 * The machine was too busy: the first node lost its runs before the fault, or one of them was over before all had reached their states.
 */
class NodeStarved extends Data.TaggedError("NodeStarved") {}

/** Maximum repetitions of a fault whose first node was starved. */
const againMax = 4;

/** Number of schemas created so far. */
let schemas = 0;

/** Plays a fault in a fresh schema. */
export const play = (fault: Fault, cluster: Cluster): Effect.Effect<NodesPlayed, unknown> =>
  repeatUntilMet(() =>
    Effect.retry(Effect.scoped(playOnce(fault, cluster)), {
      while: (error) => error instanceof NodeStarved,
      times: againMax,
    }),
  );

const playOnce = (fault: Fault, cluster: Cluster): Effect.Effect<NodesPlayed, unknown, Scope.Scope> =>
  Effect.gen(function* () {
    const folder = yield* Effect.acquireRelease(
      Effect.sync(() => mkdtempSync(join(tmpdir(), "nodes-"))),
      (path) => Effect.sync(() => rmSync(path, { recursive: true, force: true })),
    );
    schemas += 1;
    const schema = `n_${schemas}`;
    cluster.psql("postgres", `CREATE SCHEMA ${schema}`);
    const direct = `${cluster.address("postgres")}&schema=${schema}`;
    const proxy = yield* SocketProxy.make(cluster.socket);
    const slowness = new Slowness();
    yield* Effect.forkScoped(slowness.measured);
    const recorder = Context.get(
      yield* Layer.build(Layer.fresh(PostgresRunRecorder.layer({ address: direct, retention: false }))),
      RunRecorder,
    );
    // Delays the break until the call is settled. On a busy machine it could come before, and a new first request would be correct.
    const isSettled = Effect.map(
      Effect.orElseSucceed(recorder.run("continued"), () => undefined),
      (record) => record?.attempts.some(({ facts }) => facts.settled_through > 0) === true,
    );
    const settled = Effect.gen(function* () {
      while (!(yield* isSettled)) yield* Effect.sleep(lookEveryMs);
    });
    const provider = yield* FaultProvider.make({
      script,
      beforeBreak: (request) => (request.script === "continued" ? settled : Effect.void),
    });
    const node = (index: 0 | 1 | 2) => {
      const through = direct.replace(encodeURIComponent(cluster.socket), encodeURIComponent(proxy.socket));
      return startChild("scripts/kill/nodes/Node.ts", {
        node: `node-${index}`,
        url: provider.url,
        folder,
        diary: join(folder, String(index)),
        store: index === 0 ? through : direct,
        begins: index === 0,
        aheadMs: hasWrongClock(fault) ? aheadMs[index] : 0,
        runs,
      });
    };
    yield* Effect.all([node(1), node(2)], { concurrency: 2 });
    const first = yield* node(0);
    const bench = { cluster, first, folder, proxy, recorder };
    yield* waitUntilReached(bench);
    const seen = yield* strike(bench, fault);
    const rows = yield* provider.log;
    const remains = yield* Effect.forEach(runs, ({ run }) =>
      Effect.map(
        recorder.run(run),
        (record): NodeRemains => ({
          run,
          fault,
          record,
          diaries: [0, 1, 2].map((index) => Diary.diary(join(folder, String(index)), run)),
          marks: Diary.marks(folder, run),
          asked: [rows.filter((it) => it.script === run).length, rows.filter((it) => it.script === `${run}-on`).length],
          lateMs: latenessOf(fault, seen, run, lastOutputAt(rows, folder, run)),
          slowness: slowness.factor,
          wasIn: seen.wasIn.has(run),
          hasMet: seen.hasMet && (!hasWrongClock(fault) || isAhead(record, seen.at)),
        }),
      ),
    );
    return {
      fault,
      remains,
      problems: remains.flatMap(problems),
      missed: remains.flatMap((it) => missed(it) ?? []),
    };
  });

/** True if a node with a wrong clock started the run. Half the offset is far more than a play takes. */
const isAhead = (record: RunRecord | undefined, at: number): boolean =>
  record !== undefined && record.started_at - at > aheadMs[0] / 2;

interface Bench {
  readonly cluster: Cluster;
  readonly first: Child;
  readonly folder: string;
  readonly proxy: SocketProxy.SocketProxy;
  readonly recorder: RunRecorder["Service"];
}

const recordsOf = ({ recorder }: Bench) => Effect.forEach(runs, ({ run }) => recorder.run(run));

const isIn = ({ folder }: Bench, { run }: NodeRun, record: RunRecord | undefined): boolean =>
  record !== undefined && states[run].isIn({ record, marks: Diary.marks(folder, run) });

const waitUntilReached = Effect.fnUntraced(function* (bench: Bench) {
  const until = performance.now() + reachedMsMax;
  for (;;) {
    const records = yield* recordsOf(bench);
    const isLost = records.some((it) => it?.incidents.some(({ failure }) => failure.kind === "crashed") === true);
    if (isLost || records.some((it) => it?.state === "ended")) return yield* new NodeStarved();
    const missing = runs.filter((run, index) => !isIn(bench, run, records[index]));
    if (missing.length === 0) return;
    if (performance.now() > until) throw new Error(`not reached: ${missing.map(({ run }) => run).join()}`);
    yield* Effect.sleep(lookEveryMs);
  }
});

/** The time of the fault, and the times at which each run was first seen decided and ended, in milliseconds since the epoch. */
interface Struck {
  readonly at: number;
  /** Runs that were in their states at the fault. */
  readonly wasIn: ReadonlySet<NodeRun["run"]>;
  readonly hasMet: boolean;
  readonly decided: ReadonlyMap<NodeRun["run"], number>;
  readonly ended: ReadonlyMap<NodeRun["run"], number>;
}

/**
 * The delay of a run's decision, in milliseconds. It counts from the fault if the node died or fell silent. A node that keeps its run
 * must end it once the provider and the tool have finished, so its delay counts from their last output.
 */
const latenessOf = (
  fault: Fault,
  { at, decided, ended }: Struck,
  run: NodeRun["run"],
  lastWordAt: number,
): number | undefined => {
  const [seenAt, from] = takesOver.has(fault) ? [decided.get(run), at] : [ended.get(run), Math.max(at, lastWordAt)];
  return seenAt === undefined ? undefined : seenAt - from;
};

/** The time at which the provider finished its last response or the tool made its last mark, in milliseconds since the epoch. */
const lastOutputAt = (rows: ReadonlyArray<RequestLog>, folder: string, run: NodeRun["run"]): number =>
  Math.max(
    Diary.markedAt(folder, run),
    ...rows.filter((it) => it.script === run || it.script === `${run}-on`).map(({ ended_ms }) => ended_ms ?? 0),
  );

/** Injects the fault, and answers questions until every run has ended. */
const strike = Effect.fnUntraced(function* (bench: Bench, fault: Fault) {
  const before = yield* recordsOf(bench);
  const wasIn = new Set(runs.filter((it, index) => isIn(bench, it, before[index])).map(({ run }) => run));
  const at = Date.now();
  const happening = yield* Effect.forkScoped(injectFault({ ...bench, awayMs }, fault));
  const decided = new Map<NodeRun["run"], number>();
  const ended = new Map<NodeRun["run"], number>();
  while (Date.now() - at < endedMsMax) {
    // The server itself may be down.
    const records = yield* Effect.orElseSucceed(recordsOf(bench), () => []);
    for (const [index, record] of records.entries()) {
      const { run } = runs[index] ?? {};
      if (run === undefined || record === undefined) continue;
      if (!decided.has(run) && isDecided(before[index], record)) decided.set(run, Date.now());
      if (!ended.has(run) && record.state === "ended") ended.set(run, Date.now());
      yield* Effect.ignore(answerQuestion(bench, record));
    }
    if (records.length > 0 && records.every((it) => it?.state === "ended")) break;
    yield* Effect.sleep(lookEveryMs);
  }
  // Leaves a stopped node time to resume and write its entries.
  yield* Effect.sleep(takesOver.has(fault) ? Math.max(0, awayMs + 1_500 - (Date.now() - at)) : 500);
  return { at, wasIn, decided, ended, hasMet: yield* Fiber.join(happening) } satisfies Struck;
});

/** True if a run in progress was decided. A run that already had an open question counts as decided. */
const isDecided = (before: RunRecord | undefined, now: RunRecord): boolean =>
  before?.state === "asking" || now.state === "ended" || now.incidents.length > (before?.incidents.length ?? 0);

/** Answers as a careful person: checks the tool's marks, keeps the text on the screen, and repeats nothing. */
const answerQuestion = ({ folder, recorder }: Bench, record: RunRecord) => {
  const question = openQuestion(record);
  if (question === undefined || record.state !== "asking") return Effect.void;
  const happened = Diary.marks(folder, record.run_id).length > 0 ? "it_ran" : "it_did_not_run";
  const wanted: ReadonlyArray<Choice> = question.rule === "tool_outcome_unknown" ? [happened] : ["accept", "stop"];
  const choice = wanted.find((it) => question.choices.includes(it)) ?? "stop";
  return CrashRecovery.answer({ run_id: record.run_id, revision: question.revision, choice, by: "person" }).pipe(
    Effect.provideService(RunRecorder, recorder),
  );
};
