/** Judges one turn of a conformance run: compares the user's text, and the tools that ran, with the provider's log. */
import type { ProtocolId } from "../../provider/Protocols.ts";
import { type Findings, judge } from "../faults/FaultJudge.ts";
import type { RequestLog } from "../faults/FaultLog.ts";
import type { ConformanceFault } from "./ConformanceFault.ts";
import type { ConformanceCell, ConformanceLetter } from "./ConformanceScoreboard.ts";

/** A played turn, as the kit saw it. */
export interface PlayedTurn {
  readonly text: string;
  /** Inputs of the tools that ran, in order. */
  readonly tools: ReadonlyArray<unknown>;
  readonly ended: ConformanceCell["ended"];
  readonly error?: string;
  readonly milliseconds: number;
  readonly log: ReadonlyArray<RequestLog>;
}

/** Maximum length of a cell's error, in UTF-16 code units. */
const errorCharactersMax = 300;

/** Judges a turn: compares the shown text and the tool runs with the log of the fault server. */
export const judgeTurn = (fault: ConformanceFault, protocol: ProtocolId, turn: PlayedTurn): ConformanceCell => {
  const { ended, error, log, milliseconds, text, tools } = turn;
  const findings = judge({ transcript: text, tools, completed: ended === "ok", log });
  // If no response was complete, a turn that reports success is wrong.
  const silent = ended === "ok" && (isCut(findings) || !log.some((row) => row.terminal));
  const failed = ended !== "ok";
  return {
    fault: fault.id,
    protocol,
    letter: letterOf(fault, turn, findings, silent),
    requests: log.length,
    ended,
    duplicated_text: findings.duplicates.length,
    duplicated_tool_runs: findings.repeated_tools.length,
    truncated_tool_runs: findings.truncated_tool_inputs.length,
    silent_truncation: silent,
    false_abort: fault.healthy && (failed || silent || hasRepeatedRequest(log)),
    lost_work: failed && log.some((row) => row.text.length > 0 || row.calls.length > 0),
    milliseconds: Math.max(0, Math.round(milliseconds)),
    ...(error === undefined ? {} : { error: error.replace(/\s+/g, " ").slice(0, errorCharactersMax) }),
  };
};

/** Picks the worst finding. A repeated or truncated tool run is worst, then wrong text on the screen, then an error that the user sees. */
const letterOf = (
  fault: ConformanceFault,
  turn: PlayedTurn,
  findings: Findings,
  silent: boolean,
): ConformanceLetter => {
  if (findings.truncated_tool_inputs.length > 0) return "XT";
  if (findings.repeated_tools.length > 0) return "X";
  if (findings.duplicates.length > 0) return "D";
  if (turn.ended === "hung") return "H";
  if (turn.ended === "error") return "E";
  if (silent) return "T";
  return fault.calls && !fault.healthy && isBrokenCallShownToModel(turn.log) ? "M" : "R";
};

/** Out-of-order or invented text also counts as an incomplete response. */
const isCut = (findings: Findings): boolean =>
  findings.false_success ||
  findings.lost.length > 0 ||
  findings.lost_tools.length > 0 ||
  findings.invented.length > 0 ||
  findings.out_of_order.length > 0;

const hasRepeatedRequest = (log: ReadonlyArray<RequestLog>): boolean =>
  new Set(log.map((row) => row.body_hash)).size < log.length;

/** Returns true if an incomplete call is followed by a different request. The model then received the broken call. */
const isBrokenCallShownToModel = ([first, second]: ReadonlyArray<RequestLog>): boolean =>
  first !== undefined && second !== undefined && first.calls.length === 0 && first.body_hash !== second.body_hash;
