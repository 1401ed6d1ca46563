/**
 * Judges what three nodes did with a run: first by the provider's log, the marks of its tool and what its readers saw, then by its
 * record.
 */
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import type { Line } from "../Diary.ts";
import { type Fault, takesOver } from "../NodeFaults.ts";
import { slownessMax } from "../Slowness.ts";
import { leaseMs, type NodeRun, states } from "./NodePlan.ts";

/** Maximum time until the runs of a dead node are decided, in milliseconds: its lease and 5 s. */
const decidedMsMax = leaseMs + 5_000;

/** The evidence of a run. */
export interface NodeRemains {
  readonly run: NodeRun["run"];
  readonly fault: Fault;
  readonly record: RunRecord | undefined;
  /** The diaries of the readers of each node. The first node is the one that the fault hit. */
  readonly diaries: ReadonlyArray<ReadonlyArray<Line>>;
  readonly marks: ReadonlyArray<string>;
  /** Number of provider requests in its own log: first requests, and continuations after a call. */
  readonly asked: readonly [first: number, on: number];
  /**
   * Delay of the decision, in milliseconds. It counts from the fault if the node died or fell silent, otherwise from the last output of
   * the provider and the tool. Undefined if there was no decision.
   */
  readonly lateMs: number | undefined;
  /** Slowdown of the machine relative to a quiet one. */
  readonly slowness: number;
  /** True if the run was in its state when the fault happened. */
  readonly wasIn: boolean;
  /** True if the fault hit its target. */
  readonly hasMet: boolean;
}

/** Explains why the fault proves nothing about the run; undefined if it hit the run in its state. */
export const missed = ({ fault, hasMet, record, run, wasIn }: NodeRemains): string | undefined => {
  const isCrashed = record?.incidents.some(isCrash) === true;
  // An open question is on record and can be answered there, so no other node has to take the run over.
  const isDriven = run !== "asking" && run !== "parked";
  const why = !wasIn
    ? "the run had left its state"
    : !hasMet
      ? "the fault hit nothing"
      : takesOver.has(fault) && isDriven && !isCrashed
        ? "no other node took over the run"
        : undefined;
  return why === undefined ? undefined : `${fault}, ${run}: missed: ${why}`;
};

/** Finds everything that is wrong with a run. */
export const problems = (it: NodeRemains): ReadonlyArray<string> => {
  const { asked, fault, lateMs, marks, record, run, slowness } = it;
  const { most } = states[run];
  const found = [
    ...(marks.filter((mark) => mark === "start").length > 1 ? ["the tool ran twice"] : []),
    ...(asked[0] > most[0] ? [`the provider received ${asked[0]} requests`] : []),
    ...(asked[1] > most[1] ? [`the provider received ${asked[1]} requests to continue`] : []),
    ...(record === undefined ? ["the run is lost"] : record.state === "ended" ? [] : [`no end: ${record.state}`]),
    ...(lateMs !== undefined && lateMs > decidedMsMax * slowness ? [`decided after ${Math.round(lateMs)} ms`] : []),
    ...shownTwice(it),
    ...stolen(it),
  ];
  return found.map((problem) => `${fault}, ${run}: ${problem}`);
};

/** At most one answer's text may be on the screen, and at most one completion may be reported. */
const shownTwice = ({ diaries, fault, record }: NodeRemains): ReadonlyArray<string> => {
  // A node without its store keeps streaming text to its own reader, unrecorded (L8), while another node may send the request again.
  const counted = fault === "cut off" ? diaries.slice(1) : diaries;
  const discarded = new Set(
    counted.flat().flatMap((line) => ("discard" in line && line.keep === 0 ? [line.discard] : [])),
  );
  const texts = new Set(counted.flat().flatMap((line) => ("saw" in line && line.saw === "text" ? [line.attempt] : [])));
  const firsts = record?.attempts.filter(
    ({ attempt, request }) => request !== "continue" && texts.has(attempt) && !discarded.has(attempt),
  );
  const ends = counted.flat().filter((line) => "end" in line && line.end === "Success");
  return [
    ...((firsts?.length ?? 0) > 1 ? [`the text of ${firsts?.length} answers is on the screen`] : []),
    ...(ends.length > 1 ? [`${ends.length} completions were reported`] : []),
  ];
};

/** No other node may take a live node's run, whatever their clocks say. A node too slow to renew its lease counts as dead. */
const stolen = ({ fault, record, slowness }: NodeRemains): ReadonlyArray<string> =>
  slowness < slownessMax && !takesOver.has(fault) && record?.incidents.some(isCrash) === true
    ? ["a live node lost it"]
    : [];

const isCrash = ({ failure }: RunRecord["incidents"][number]): boolean => failure.kind === "crashed";
