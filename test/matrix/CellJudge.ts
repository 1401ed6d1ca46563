/**
 * Compares the outcome of a cell with its hand-written expectation, the server's log and its own record.
 */
import { isDeepStrictEqual } from "node:util";
import { Exit } from "effect";
import type { RunIncident } from "../../src/domain/RunIncident.ts";
import { decide } from "../../src/policy/index.ts";
import { FaultJudge, type RequestLog } from "../../src/testing/index.ts";
import type { Cell, Expected } from "./Cell.ts";
import type { Outcome } from "./Play.ts";

/** One judged cell. If it is correct, the counts are zero and `problems` is empty. */
export interface Judged {
  readonly cell: Cell;
  /** Deltas shown twice and calls that ran twice. */
  readonly duplicates: number;
  /** Completions reported without a marker or with parts of the answer missing. */
  readonly false_successes: number;
  /** A whole, legal answer that was broken off or asked for again. */
  readonly false_aborts: number;
  /** Breaks, attempts and ends that the recorder does not know. */
  readonly lost_records: number;
  readonly problems: ReadonlyArray<string>;
}

export const judge = (cell: Cell, outcome: Outcome): Judged => {
  const log = outcome.log.map((row) => (cell.rawMarker === true ? { ...row, terminal: true } : row));
  const got = actual(outcome, log);
  const verdict = FaultJudge.judge({
    transcript: outcome.text,
    reasoning: outcome.reasoning,
    tools: toolRuns(cell, outcome.inputs, log),
    completed: got.end === "completed",
    log,
  });
  const records = recordProblems(outcome, got);
  const lost = verdict.lost.length + verdict.lost_tools.length;
  const duplicates = verdict.duplicates.length + verdict.repeated_tools.length;
  const legal = cell.expect.requests === 1 && cell.expect.end === "completed";
  return {
    cell,
    duplicates,
    false_successes: (verdict.false_success ? 1 : 0) + (got.end === "completed" && lost > 0 ? 1 : 0),
    false_aborts: legal && (got.end !== "completed" || got.requests !== 1) ? 1 : 0,
    lost_records: records.length,
    problems: [
      ...differences(cell.expect, got),
      ...waits(cell.expect, log),
      ...faults(verdict),
      ...records,
      ...rest(outcome, log),
    ],
  };
};

/** The outcome of a run, in the terms of `Expected`. */
interface Actual extends Pick<Expected, "rules" | "requests" | "keeps"> {
  readonly end: string;
}

const actual = ({ exit, incidents, reasoning, text }: Outcome, log: ReadonlyArray<RequestLog>): Actual => ({
  end: endOf(exit),
  rules: incidents.map((it) => it.decision.rule),
  requests: log.length,
  keeps: [...new Set([...`${reasoning}${text}`.matchAll(/r(\d+)\.\d+·/g)].map((it) => Number(it[1])))].sort(
    (a, b) => a - b,
  ),
});

const endOf = (exit: Outcome["exit"]): string => {
  if (Exit.isSuccess(exit)) return "completed";
  const fail = exit.cause.reasons.find((reason) => reason._tag === "Fail")?.error;
  if (fail === undefined)
    return `died: ${exit.cause.reasons.map((it) => (it._tag === "Die" ? String(it.defect) : it._tag)).join(", ")}`;
  if (typeof fail === "string") return fail;
  return fail.reason === "do_not_retry" ? "stopped" : fail.reason === "stopped" ? "asked" : fail.reason;
};

/** A read-only call may run again with the answer that replaces it, so only the runs of the last answer are judged. */
const toolRuns = (cell: Cell, inputs: ReadonlyArray<string>, log: ReadonlyArray<RequestLog>): ReadonlyArray<string> => {
  if (cell.tools.runtime?.effect !== "read_only") return inputs;
  const last = log.at(-1)?.number;
  return inputs.filter((input) => input.includes(`"r${last}.t`));
};

const differences = (expect: Expected, got: Actual): ReadonlyArray<string> =>
  (["end", "rules", "requests", "keeps"] as const)
    .filter((what) => !isDeepStrictEqual(expect[what], got[what]))
    .map((what) => `${what}: expected ${JSON.stringify(expect[what])}, got ${JSON.stringify(got[what])}`);

const waits = ({ waitMs }: Expected, [first, second]: ReadonlyArray<RequestLog>): ReadonlyArray<string> => {
  if (waitMs === undefined || first?.ended_ms === undefined || second === undefined) return [];
  const waited = second.started_ms - first.ended_ms;
  const [least, most] = waitMs;
  return waited >= least && waited <= most ? [] : [`waited ${waited} ms, expected ${least} to ${most}`];
};

const faults = (verdict: FaultJudge.Findings): ReadonlyArray<string> =>
  Object.entries(verdict).flatMap(([fault, found]) => {
    const words = fault.replaceAll("_", " ");
    if (!Array.isArray(found)) return found === true ? [words] : [];
    return found.length === 0 ? [] : [`${words}: ${found.join(" ")}`];
  });

/** Finds attempts, decisions (with all of their inputs) and ends that the record lacks. */
const recordProblems = ({ incidents, record }: Outcome, got: Actual): ReadonlyArray<string> => {
  const problems: Array<string> = [];
  if (record === undefined) return ["the run is not on record"];
  if (record.attempts.length !== got.requests) problems.push(`${record.attempts.length} attempts on record`);
  if (record.state !== "ended") problems.push(`on record the run is ${record.state}`);
  const completed = record.end?.state === "completed";
  if (completed !== (got.end === "completed"))
    problems.push(`on record the run is ${record.end?.state ?? "without an end"}`);
  for (const incident of incidents.filter((it) => !decidesAgain(it)))
    problems.push(`decide gives a different decision for ${incident.id}`);
  return problems;
};

const decidesAgain = ({ budget, decision, facts, failure, jitter, run }: RunIncident): boolean =>
  isDeepStrictEqual(decide({ facts, failure, run, budget, jitter }), decision);

const rest = (outcome: Outcome, log: ReadonlyArray<RequestLog>): ReadonlyArray<string> => [
  ...(outcome.gateMissed ? ["the caller never saw what was sent before the break"] : []),
  ...log.filter((row) => row.outcome === "open").map((row) => `request ${row.number} was never closed`),
  ...log
    .filter((row) => row.outcome === "unscripted" || row.outcome === "refused")
    .map((row) => `request ${row.number} was ${row.outcome}`),
];
