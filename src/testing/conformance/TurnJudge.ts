/**
 * Judges one turn of a conformance run: what the user saw and which tools ran, held against the provider's own log.
 */
import type { ProtocolId } from "../../provider/Protocols.ts";
import { judge, type Verdict } from "../faults/FaultJudge.ts";
import type { RequestLog } from "../faults/FaultLog.ts";
import type { ConformanceFault } from "./ConformanceFault.ts";
import type { ConformanceCell, ConformanceLetter } from "./ConformanceScoreboard.ts";

/** What was seen of a turn. */
export interface ConformanceTurn {
  readonly text: string;
  /** Inputs with which tools ran, in order. */
  readonly tools: ReadonlyArray<unknown>;
  readonly ended: ConformanceCell["ended"];
  readonly error?: string;
  readonly milliseconds: number;
  readonly log: ReadonlyArray<RequestLog>;
}

/** Longest error of a cell, in UTF-16 code units. */
const errorCharactersMax = 300;

/**
 * Judges a turn.
 *
 * @param fault what the provider did
 * @param protocol over which protocol
 * @param turn what came of it
 */
export const judgeTurn = (fault: ConformanceFault, protocol: ProtocolId, turn: ConformanceTurn): ConformanceCell => {
  const { ended, error, log, milliseconds, text, tools } = turn;
  const verdict = judge({ transcript: text, tools, completed: ended === "ok", log });
  // A turn that got no whole answer from anybody has none to show.
  const silent = ended === "ok" && (isCut(verdict) || !log.some((row) => row.terminal));
  const failed = ended !== "ok";
  return {
    fault: fault.id,
    protocol,
    letter: letterOf(fault, turn, verdict, silent),
    requests: log.length,
    ended,
    duplicated_text: verdict.duplicates.length,
    duplicated_tool_runs: verdict.repeated_tools.length,
    truncated_tool_runs: verdict.truncated_tool_inputs.length,
    silent_truncation: silent,
    false_abort: fault.healthy && (failed || silent || asksAgain(log)),
    lost_work: failed && log.some((row) => row.text.length > 0 || row.calls.length > 0),
    milliseconds: Math.max(0, Math.round(milliseconds)),
    ...(error === undefined ? {} : { error: error.replace(/\s+/g, " ").slice(0, errorCharactersMax) }),
  };
};

/** The worst thing first: an effect on the world, then what the user sees wrong, then what the user is told. */
const letterOf = (
  fault: ConformanceFault,
  turn: ConformanceTurn,
  verdict: Verdict,
  silent: boolean,
): ConformanceLetter => {
  if (verdict.truncated_tool_inputs.length > 0) return "XT";
  if (verdict.repeated_tools.length > 0) return "X";
  if (verdict.duplicates.length > 0) return "D";
  if (turn.ended === "hung") return "H";
  if (turn.ended === "error") return "E";
  if (silent) return "T";
  return fault.calls && !fault.healthy && toldTheModel(turn.log) ? "M" : "R";
};

/** Text in the wrong order or from nowhere is no whole answer either. */
const isCut = (verdict: Verdict): boolean =>
  verdict.false_success ||
  verdict.lost.length > 0 ||
  verdict.lost_tools.length > 0 ||
  verdict.invented.length > 0 ||
  verdict.out_of_order.length > 0;

/** The same request twice. */
const asksAgain = (log: ReadonlyArray<RequestLog>): boolean =>
  new Set(log.map((row) => row.body_hash)).size < log.length;

/** Behind a call that never came whole stands another request, not the same one again: the model was told of it. */
const toldTheModel = ([first, second]: ReadonlyArray<RequestLog>): boolean =>
  first !== undefined && second !== undefined && first.calls.length === 0 && first.body_hash !== second.body_hash;
