/**
 * Says in which states three nodes have their runs when something happens to one of them.
 */
import { Schema } from "effect";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";

/** How long a silent node keeps its runs, in milliseconds. */
export const leaseMs = 2_000;

/** One run: what it is in the middle of. Its name is its id. */
export const NodeRun = Schema.Struct({
  run: Schema.Literals(["held", "shown", "asking", "parked", "dispatched", "continued"]),
  reveal: Schema.Literals(["live", "on_complete"]),
  /** Whether its stream waits for the answer of a question, or ends and leaves it open. */
  waits: Schema.Boolean,
  toolMs: Schema.Natural,
});
export type NodeRun = typeof NodeRun.Type;

/** A response that lasts longer than it takes to take a run over. */
const slow = { content: [{ text: 45 }], delay_ms: 100 };
const quick = { content: [{ text: 3 }] };
const broken = { content: [{ text: 5 }], break: { kind: "rst" as const, at: "event" as const, n: 4 } };
const call = { tool: "append", input: { line: "x" } };

/** What is known of a run in the middle of things. */
interface Seen {
  readonly record: RunRecord;
  readonly marks: ReadonlyArray<string>;
}

/** A state: what the provider says in it, when a run is in it, and how often the provider may be asked in all. */
interface State extends Omit<NodeRun, "run"> {
  readonly answers: NonNullable<FaultScriptInput["answers"]>;
  readonly continues?: NonNullable<FaultScriptInput["answers"]>;
  /** What happens to a run that is in no such state any more says nothing of that state. */
  readonly isIn: (seen: Seen) => boolean;
  /** Most first requests, and most requests that go on behind a call. */
  readonly most: readonly [first: number, on: number];
}

const isLive = ({ state }: RunRecord): boolean => state === "live";

const shows = ({ attempts }: RunRecord, request: "first" | "continue"): boolean =>
  attempts.some((it) => it.facts.shown === "text" && (it.attempt === 1) === (request === "first"));

export const states: Readonly<Record<NodeRun["run"], State>> = {
  held: {
    reveal: "on_complete",
    waits: true,
    toolMs: 0,
    // The next node is still at it when one that stood still goes on.
    answers: [slow, slow],
    isIn: ({ record }) => isLive(record) && record.attempts.length > 0,
    most: [2, 0],
  },
  shown: {
    reveal: "live",
    waits: true,
    toolMs: 0,
    answers: [slow, quick],
    isIn: ({ record }) => isLive(record) && shows(record, "first"),
    most: [1, 0],
  },
  asking: {
    reveal: "live",
    waits: true,
    toolMs: 0,
    answers: [broken, quick],
    isIn: ({ record }) => record.state === "asking" && record.parked === undefined,
    most: [1, 0],
  },
  parked: {
    reveal: "live",
    waits: false,
    toolMs: 0,
    answers: [broken, quick],
    isIn: ({ record }) => record.parked === "question",
    most: [1, 0],
  },
  dispatched: {
    reveal: "live",
    waits: true,
    toolMs: 3_500,
    answers: [{ content: [call, { ping: 45 }], delay_ms: 100 }],
    continues: [slow],
    isIn: ({ marks, record }) => isLive(record) && marks.length === 1,
    most: [1, 1],
  },
  continued: {
    reveal: "live",
    waits: true,
    toolMs: 10,
    answers: [{ content: [call, { ping: 10 }], delay_ms: 80, break: { kind: "rst", at: "terminal" } }],
    continues: [slow, quick],
    isIn: ({ record }) => isLive(record) && shows(record, "continue"),
    most: [1, 1],
  },
};

/** The runs of a node. */
export const runs: ReadonlyArray<NodeRun> = Object.entries(states).map(([run, { reveal, toolMs, waits }]) =>
  Schema.decodeUnknownSync(NodeRun)({ run, reveal, toolMs, waits }),
);

/** What the provider says. */
export const script: FaultScriptInput = {
  answers: [quick],
  scripts: Object.fromEntries(
    Object.entries(states).flatMap(([run, { answers, continues = [quick] }]) => [
      [run, answers],
      [`${run}-on`, continues],
    ]),
  ),
};
