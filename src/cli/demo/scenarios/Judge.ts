/**
 * Compares a run's outcome with its hand-written expectation, the server's log and the policy.
 */
import { isDeepStrictEqual } from "node:util";
import type { ExchangeRecord } from "../../../client/index.ts";
import type { RunIncident } from "../../../domain/RunIncident.ts";
import { decide } from "../../../policy/index.ts";
import { Answers, FaultJudge, type RequestLog } from "../../../testing/index.ts";
import type { PlayedRun } from "./Player.ts";
import type { ConnectionUse, Expectation, Saw, Scenario } from "./Scenario.ts";

/** A judged run: one row of the table. */
export interface JudgedRun {
  readonly name: string;
  readonly fault: string;
  readonly protocol: Scenario["protocol"];
  readonly saw: Saw;
  readonly attempts: number;
  /** Number of requests that the server counted. */
  readonly requests: number;
  readonly decisions: ReadonlyArray<string>;
  readonly tool_runs: number;
  /** Number of deltas that were shown twice, plus the number of calls that ran twice. */
  readonly duplicates: number;
  /** Number of deltas and calls of the complete response that the caller never received. */
  readonly lost: number;
  /** Number of tools that ran with arguments other than those that the server sent. */
  readonly cut_inputs: number;
  readonly recovery_ms: number | null;
  /** Reasons for which the run waited before it sent a request. */
  readonly waits: ReadonlyArray<"path" | "cooldown">;
  /** The route that answered; null if it is the first route of the run. */
  readonly route: string | null;
  /** The proof of each place at which a continuation joined shown text (a seam), or the reason why shown text was not continued. */
  readonly seams: ReadonlyArray<string>;
  readonly expected: Expectation;
  /** Problems in words; empty if the run matches its expectation. */
  readonly problems: ReadonlyArray<string>;
  /** The exchanges that the client reported, beginning with those of the warm-up. */
  readonly exchanges: ReadonlyArray<ExchangeRecord>;
  /** Idle time after which the client closes a connection, in milliseconds. */
  readonly kept_ms: number;
}

/**
 * Judges a run of the demo: compares its outcome with the scenario's expectation and with the log of the fault server.
 *
 * @returns its row; `problems` is empty only if everything is as expected
 */
export const judge = (scenario: Scenario, outcome: PlayedRun): JudgedRun => {
  const { completed, incidents, log, reasoning, text, toolInputs } = outcome;
  const verdict = FaultJudge.judge({
    transcript: text,
    reasoning,
    tools: toolInputs,
    completed,
    log: log.map(treatAsComplete),
  });
  const row = {
    name: scenario.name,
    fault: scenario.fault,
    protocol: scenario.protocol,
    saw: describeSeen(outcome),
    attempts: outcome.attempts,
    requests: log.length,
    decisions: incidents.map(({ decision }) => `${decision.action} ${decision.rule}`),
    tool_runs: toolInputs.length,
    duplicates: verdict.duplicates.length + verdict.repeated_tools.length,
    lost: verdict.lost.length + verdict.lost_tools.length,
    cut_inputs: verdict.truncated_tool_inputs.length,
    recovery_ms: outcome.recoveryMs ?? null,
    waits: outcome.waits,
    route: outcome.route ?? null,
    seams: outcome.seams,
    expected: scenario.expect,
    exchanges: outcome.exchanges,
    kept_ms: outcome.keptMs,
  };
  return {
    ...row,
    problems: [
      ...differences(row),
      ...connectionProblem(scenario, outcome),
      ...(scenario.leavesAfter !== undefined && !outcome.attached ? ["the caller did not attach again"] : []),
      ...formatFindings(verdict),
      ...log.filter((it) => it.outcome === "open").map((it) => `request ${it.number} was never closed`),
      ...incidents.filter((it) => !isReproducible(it)).map((it) => `decide gives a different decision for ${it.id}`),
    ],
  };
};

/**
 * Returns a log row in which the response is complete if its terminal event was sent, even if its connection broke later. A Gemini response
 * also needs a clean end.
 */
const treatAsComplete = (row: RequestLog): RequestLog =>
  row.terminal && row.outcome === "broken" && !Answers.needsCleanEnd(row.protocol)
    ? { ...row, outcome: "complete" }
    : row;

/** Describes the outcome as a person sees it. */
const describeSeen = ({ completed, continued, incidents, text, withdrawn }: PlayedRun): Saw => {
  if (completed && continued) return "whole, continued";
  if (completed) return withdrawn ? "draft, then whole" : "whole answer";
  const last = incidents.at(-1)?.decision.action;
  if (last === "ask_user") return text === "" ? "no text, asked" : "partial, asked";
  return text === "" ? "provider's error" : "partial, stopped";
};

/** True if the stored incident contains every input of its decision, so that the decision can be repeated (law L9). */
export const isReproducible = ({ budget, decision, facts, failure, jitter, run }: RunIncident): boolean =>
  isDeepStrictEqual(decide({ facts, failure, run, budget, jitter }), decision);

const differences = (row: Omit<JudgedRun, "problems">): ReadonlyArray<string> => {
  const { expected } = row;
  const compared: ReadonlyArray<readonly [string, unknown, unknown]> = [
    ["the caller saw", expected.saw, row.saw],
    ["decisions", expected.decisions.join(", ") || "none", row.decisions.join(", ") || "none"],
    ["attempts", expected.attempts, row.attempts],
    ["requests at the server", expected.requests, row.requests],
    ["tool runs", expected.toolRuns, row.tool_runs],
    ["waits", (expected.waits ?? []).join(", ") || "none", row.waits.join(", ") || "none"],
    ["route", expected.route ?? null, row.route],
    ["seams", (expected.seams ?? []).join(", ") || "none", row.seams.join(", ") || "none"],
  ];
  return compared
    .filter(([, wanted, got]) => wanted !== got)
    .map(([what, wanted, got]) => `${what}: expected ${wanted}, got ${got}`);
};

const connectionProblem = (scenario: Scenario, { exchanges }: PlayedRun): ReadonlyArray<string> => {
  const { connections } = scenario.expect;
  if (connections === undefined) return [];
  const uses = exchanges.slice(scenario.warmUp === undefined ? 0 : 1).map(classifyUse);
  const [wanted, got] = [connections.join(", "), uses.join(", ")];
  return wanted === got ? [] : [`connections: expected ${wanted}, got ${got || "none"}`];
};

const classifyUse = ({ recycled, reused }: ExchangeRecord): ConnectionUse =>
  reused ? "kept" : recycled > 0 ? "recycled" : "fresh";

const formatFindings = (verdict: FaultJudge.Findings): ReadonlyArray<string> =>
  Object.entries(verdict).flatMap(([fault, found]) => {
    const words = fault.replaceAll("_", " ");
    if (!Array.isArray(found)) return found === true ? [words] : [];
    return found.length === 0 ? [] : [`${words}: ${found.join(" ")}`];
  });
