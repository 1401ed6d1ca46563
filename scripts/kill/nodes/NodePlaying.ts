/**
 * Plays one fault on three nodes: the first one has a run in each state when it happens, and the others go on with what it leaves. A
 * person answers what is asked from then on.
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
import { type Child, started } from "../ChildProcess.ts";
import * as Diary from "../Diary.ts";
import { type Fault, happens, hasWrongClock, type Outcome, takesOver, untilMet } from "../NodeFaults.ts";
import { Slowness } from "../Slowness.ts";
import { missed, type NodeRemains, problems } from "./NodeJudge.ts";
import { leaseMs, type NodeRun, runs, script, states } from "./NodePlan.ts";

/** What came of a fault. */
export interface NodesPlayed extends Outcome {
  readonly fault: Fault;
  readonly remains: ReadonlyArray<NodeRemains>;
}

/** How long a node is stopped or cut off, in milliseconds. */
const awayMs = 2.5 * leaseMs;

/** Longest that all states may take to be reached, and all runs to end, in milliseconds: a busy machine is slow. */
const reachedMsMax = 60_000;
const endedMsMax = 90_000;
const lookEveryMs = 50;

/** Wall clocks of the nodes are so much ahead where that is the fault, in milliseconds. */
const aheadMs = [3_600_000, 7_200_000, -3_600_000] as const;

/**
 * The first node had lost its runs before anything happened to it, or one of them was over before all were in their states: the machine
 * was too busy.
 */
class NodeStarved extends Data.TaggedError("NodeStarved") {}

/** How often a fault is played again whose first node was starved. */
const againMax = 4;

/** Schemas that were made so far. */
let schemas = 0;

/** Plays a fault in a schema of its own. */
export const play = (fault: Fault, cluster: Cluster): Effect.Effect<NodesPlayed, unknown> =>
  untilMet(() =>
    Effect.retry(Effect.scoped(playedOnce(fault, cluster)), {
      while: (error) => error instanceof NodeStarved,
      times: againMax,
    }),
  );

const playedOnce = (fault: Fault, cluster: Cluster): Effect.Effect<NodesPlayed, unknown, Scope.Scope> =>
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
    // On a busy machine the break would come before the call was handed over, and a first request would be right.
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
      return started(join(import.meta.dirname, "Node.ts"), {
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
    yield* reached(bench);
    const seen = yield* struck(bench, fault);
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
          lateMs: latenessOf(fault, seen, run, lastWordAt(rows, folder, run)),
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

/** Whether a run was begun by a node whose clock is as wrong as it was to be: half of it is not the play's own time. */
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

/** Whether a run is in its state. */
const isIn = ({ folder }: Bench, { run }: NodeRun, record: RunRecord | undefined): boolean =>
  record !== undefined && states[run].isIn({ record, marks: Diary.marks(folder, run) });

/** Waits until all runs are in their states. */
const reached = Effect.fnUntraced(function* (bench: Bench) {
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

/** When the fault happened, and when each run was first seen to be decided and to have ended, in milliseconds since the epoch. */
interface Struck {
  readonly at: number;
  /** The runs that were in their states then. */
  readonly wasIn: ReadonlySet<NodeRun["run"]>;
  readonly hasMet: boolean;
  readonly decided: ReadonlyMap<NodeRun["run"], number>;
  readonly ended: ReadonlyMap<NodeRun["run"], number>;
}

/**
 * How late a run was decided, in milliseconds: from the fault on where its node died or was silent. A node that keeps its run has to end
 * it, which is due when its provider and its tool have said their last word.
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

/** When the provider had said its last word of a run, or its tool had made its last mark, in milliseconds since the epoch. */
const lastWordAt = (rows: ReadonlyArray<RequestLog>, folder: string, run: NodeRun["run"]): number =>
  Math.max(
    Diary.markedAt(folder, run),
    ...rows.filter((it) => it.script === run || it.script === `${run}-on`).map(({ ended_ms }) => ended_ms ?? 0),
  );

/** Lets the fault happen, and answers what is asked until every run has ended. */
const struck = Effect.fnUntraced(function* (bench: Bench, fault: Fault) {
  const before = yield* recordsOf(bench);
  const wasIn = new Set(runs.filter((it, index) => isIn(bench, it, before[index])).map(({ run }) => run));
  const at = Date.now();
  const happening = yield* Effect.forkScoped(happens({ ...bench, awayMs }, fault));
  const decided = new Map<NodeRun["run"], number>();
  const ended = new Map<NodeRun["run"], number>();
  while (Date.now() - at < endedMsMax) {
    // The server itself may be away.
    const records = yield* Effect.orElseSucceed(recordsOf(bench), () => []);
    for (const [index, record] of records.entries()) {
      const { run } = runs[index] ?? {};
      if (run === undefined || record === undefined) continue;
      if (!decided.has(run) && isDecided(before[index], record)) decided.set(run, Date.now());
      if (!ended.has(run) && record.state === "ended") ended.set(run, Date.now());
      yield* Effect.ignore(answered(bench, record));
    }
    if (records.length > 0 && records.every((it) => it?.state === "ended")) break;
    yield* Effect.sleep(lookEveryMs);
  }
  // One that was stopped says what it has to say.
  yield* Effect.sleep(takesOver.has(fault) ? Math.max(0, awayMs + 1_500 - (Date.now() - at)) : 500);
  return { at, wasIn, decided, ended, hasMet: yield* Fiber.join(happening) } satisfies Struck;
});

/** Something was decided of a run that was under way; one that asks stands decided. */
const isDecided = (before: RunRecord | undefined, now: RunRecord): boolean =>
  before?.state === "asking" || now.state === "ended" || now.incidents.length > (before?.incidents.length ?? 0);

/** A careful person: looks whether the tool made its mark, keeps what stands on the screen, and repeats nothing. */
const answered = ({ folder, recorder }: Bench, record: RunRecord) => {
  const question = openQuestion(record);
  if (question === undefined || record.state !== "asking") return Effect.void;
  const happened = Diary.marks(folder, record.run_id).length > 0 ? "it_ran" : "it_did_not_run";
  const wanted: ReadonlyArray<Choice> = question.rule === "tool_outcome_unknown" ? [happened] : ["accept", "stop"];
  const choice = wanted.find((it) => question.choices.includes(it)) ?? "stop";
  return CrashRecovery.answer({ run_id: record.run_id, revision: question.revision, choice, by: "person" }).pipe(
    Effect.provideService(RunRecorder, recorder),
  );
};
