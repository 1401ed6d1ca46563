/**
 * The states of the runs of three nodes at the moment of a fault, and the provider's script for each.
 */
import { Schema } from "effect";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import type { FaultScriptInput } from "../../../src/testing/script/FaultScript.ts";

/** Lease of a node, in milliseconds. */
export const leaseMs = 2_000;

/** One run, named after its state. */
export const NodeRun = Schema.Struct({
  run: Schema.Literals(["held", "shown", "asking", "parked", "dispatched", "continued"]),
  reveal: Schema.Literals(["live", "on_complete"]),
  /** True if its stream waits for the answer to a question; false if it ends and leaves the question open. */
  waits: Schema.Boolean,
  toolMs: Schema.Natural,
});
export type NodeRun = typeof NodeRun.Type;

/** A response that takes longer than a takeover. */
const slow = { content: [{ text: 45 }], delay_ms: 100 };
const quick = { content: [{ text: 3 }] };
const broken = { content: [{ text: 5 }], break: { kind: "rst" as const, at: "event" as const, n: 4 } };
const call = { tool: "append", input: { line: "x" } };

/** The observable state of a run in progress. */
interface Seen {
  readonly record: RunRecord;
  readonly marks: ReadonlyArray<string>;
}

/** A state: the provider's answers, the test for being in it, and the maximum number of requests. */
interface State extends Omit<NodeRun, "run"> {
  readonly answers: NonNullable<FaultScriptInput["answers"]>;
  readonly continues?: NonNullable<FaultScriptInput["answers"]>;
  /** True while the run is in the state. A fault that hits a run outside its state proves nothing about the state. */
  readonly isIn: (seen: Seen) => boolean;
  /** Maximum first requests, and maximum continuations after a call. */
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
    // The second answer is slow too, so that the new node is still streaming when a stopped one resumes.
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

/** The provider's script. */
export const script: FaultScriptInput = {
  answers: [quick],
  scripts: Object.fromEntries(
    Object.entries(states).flatMap(([run, { answers, continues = [quick] }]) => [
      [run, answers],
      [`${run}-on`, continues],
    ]),
  ),
};
