/**
 * Judges what three nodes did of a run: by the provider's own log, by the marks of its tool, by what its readers saw, and last by its
 * record.
 */
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import type { Line } from "../Diary.ts";
import { type Fault, takesOver } from "../NodeFaults.ts";
import { slownessMax } from "../Slowness.ts";
import { leaseMs, type NodeRun, states } from "./NodePlan.ts";

/** A node is believed to be dead behind its lease, and its runs are decided soon after. */
const decidedMsMax = leaseMs + 5_000;

/** What is left of a run. */
export interface NodeRemains {
  readonly run: NodeRun["run"];
  readonly fault: Fault;
  readonly record: RunRecord | undefined;
  /** What the readers of each node saw; the first node is the one that something happened to. */
  readonly diaries: ReadonlyArray<ReadonlyArray<Line>>;
  readonly marks: ReadonlyArray<string>;
  /** How often the provider was asked, by its own log: for the first time, and to go on behind a call. */
  readonly asked: readonly [first: number, on: number];
  /**
   * How late it was decided, in milliseconds: from the fault on where its node died or was silent; else from when its provider and its
   * tool had said their last word. Undefined where it never was.
   */
  readonly lateMs: number | undefined;
  /** How much slower the machine was than a quiet one. */
  readonly slowness: number;
  /** The run was in its state when the fault happened. */
  readonly wasIn: boolean;
  /** The fault met what it was for. */
  readonly hasMet: boolean;
}

/** Why nothing can be said of a run under its fault: the fault did not meet the run in its state. Undefined where it did. */
export const missed = ({ fault, hasMet, record, run, wasIn }: NodeRemains): string | undefined => {
  const isCrashed = record?.incidents.some(isCrash) === true;
  // A question stands on record, and is answered there whoever has asked it.
  const isDriven = run !== "asking" && run !== "parked";
  const why = !wasIn
    ? "the run was in its state no more"
    : !hasMet
      ? "the fault met nothing"
      : takesOver.has(fault) && isDriven && !isCrashed
        ? "no other node took the run over"
        : undefined;
  return why === undefined ? undefined : `${fault}, ${run}: missed: ${why}`;
};

/** What is wrong; empty where nothing is. */
export const problems = (it: NodeRemains): ReadonlyArray<string> => {
  const { asked, fault, lateMs, marks, record, run, slowness } = it;
  const { most } = states[run];
  const found = [
    ...(marks.filter((mark) => mark === "start").length > 1 ? ["the tool ran twice"] : []),
    ...(asked[0] > most[0] ? [`the provider was asked ${asked[0]} times`] : []),
    ...(asked[1] > most[1] ? [`the provider was asked ${asked[1]} times to go on`] : []),
    ...(record === undefined ? ["the run is lost"] : record.state === "ended" ? [] : [`no end: ${record.state}`]),
    ...(lateMs !== undefined && lateMs > decidedMsMax * slowness ? [`decided behind ${Math.round(lateMs)} ms`] : []),
    ...shownTwice(it),
    ...stolen(it),
  ];
  return found.map((problem) => `${fault}, ${run}: ${problem}`);
};

/** The text of one answer stands on the screen, and one completion is told. */
const shownTwice = ({ diaries, fault, record }: NodeRemains): ReadonlyArray<string> => {
  // A node without its store goes on with text for its own reader, unrecorded (L8); the others may have asked again by then.
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
    ...((firsts?.length ?? 0) > 1 ? [`the text of ${firsts?.length} answers stands on the screen`] : []),
    ...(ends.length > 1 ? [`${ends.length} completions were told`] : []),
  ];
};

/** What a living node goes on with no other one takes, whatever their clocks say. One that has no time to beat counts as dead. */
const stolen = ({ fault, record, slowness }: NodeRemains): ReadonlyArray<string> =>
  slowness < slownessMax && !takesOver.has(fault) && record?.incidents.some(isCrash) === true
    ? ["a living node has lost it"]
    : [];

const isCrash = ({ failure }: RunRecord["incidents"][number]): boolean => failure.kind === "crashed";
