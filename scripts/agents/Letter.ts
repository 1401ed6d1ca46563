/**
 * Judges one turn of an agent with a letter.
 */
import { FaultJudge, type RequestLog } from "../../src/testing/index.ts";
import { findTextError } from "./Continued.ts";
import type { Fault } from "./Faults.ts";

/**
 * The verdict on a turn. `R` recovered, or no fault · `N` recovered by a second request that does not stream · `D` the user sees text
 * twice · `T` silent truncation or a lost call, exit 0 · `E` an error that the user sees · `Q` the turn failed and the screen does not say
 * why, if the fault never stopped · `M` the broken call did not run and the model was informed · `X` a command ran twice · `XT` a
 * truncated command ran · `H` the turn exceeded its time limit.
 */
export type Letter = "R" | "N" | "D" | "T" | "E" | "Q" | "M" | "X" | "XT" | "H";

/** The verdict on one turn. */
export interface Cell {
  readonly letter: Letter;
  /** Number of requests that the provider received. */
  readonly requests: number;
  /** The agent's own error message, in one line. */
  readonly note: string;
  /** The gateway's handling of a break in shown text, if it continues text: the proof, or the reason why there was none. */
  readonly cause?: string;
}

/** The letters from the worst to the best. */
const worstFirst: ReadonlyArray<Letter> = ["XT", "X", "T", "D", "H", "Q", "E", "M", "N", "R"];

/** True if a cell's letter is worse than another's. */
export const isWorse = (cell: Cell, than: Cell): boolean =>
  worstFirst.indexOf(cell.letter) < worstFirst.indexOf(than.letter);

/** The worst of several plays of one turn; among equals the one with the most requests. */
export const findWorst = (cells: readonly [Cell, ...Array<Cell>]): Cell =>
  cells.reduce((bad, cell) =>
    isWorse(cell, bad) || (cell.letter === bad.letter && cell.requests > bad.requests) ? cell : bad,
  );

/** The observations of a turn. */
export interface Seen {
  readonly text: string;
  readonly error: string | undefined;
  /** Undefined if the time limit ended the turn. */
  readonly code: number | undefined;
  /** The complete output. */
  readonly stdout: string;
  readonly stderr: string;
  /** True if a gateway was in front of the provider, which can name a reason. */
  readonly gateway: boolean;
  /** The lines that commands wrote: `begin 1`, `end 1`, … with the number of their answer. */
  readonly marks: ReadonlyArray<string>;
  readonly log: ReadonlyArray<RequestLog>;
  /** The same as in `Cell`. */
  readonly cause?: string | undefined;
}

/** Maximum length of a note, in UTF-16 code units. */
const noteMax = 200;

/**
 * Maximum difference of two request bodies that ask the same, in bytes. Agents put an id or a time into each request. A request that
 * contains the result of a call, or the reason why it did not run, is longer by at least the call's arguments.
 */
const sameBytes = 150;

/** Judges a turn. The worst problem counts: effects on the world, then wrong output, then errors. */
export const judge = (fault: Fault, seen: Seen): Cell => {
  const { code, error, log, marks, stderr } = seen;
  const hung = code === undefined;
  const failed = !hung && (code !== 0 || error !== undefined);
  return {
    letter: letterOf(fault, seen, hung, failed),
    requests: log.length,
    note: failed || hung ? (error ?? lastLine(stderr)).replace(/\s+/g, " ").slice(0, noteMax) : marks.join(", "),
    ...(seen.cause === undefined ? {} : { cause: seen.cause }),
  };
};

const letterOf = (fault: Fault, seen: Seen, hung: boolean, failed: boolean): Letter => {
  const { log, marks, text } = seen;
  const count = (word: string) => marks.filter((mark) => mark.startsWith(word)).length;
  if (count("begin") > count("end")) return "XT";
  if (hasRunTwice(seen)) return "X";
  const verdict = FaultJudge.judge({ transcript: text, completed: !failed, log });
  // All answers to a fault in text answer one question, so the user must see only one of them.
  if (verdict.duplicates.length > 0 || (!fault.calls && answersShown(text) > 1)) return "D";
  const shown = fault.measure === "continue" ? findTextError(text) : undefined;
  if (shown === "twice") return "D";
  if (hung) return "H";
  if (failed) return fault.measure === "always" && !isReasonShown(seen) ? "Q" : "E";
  // After a call some agents print only their last message, so nothing can be said about the text before the call.
  const unprinted = fault.measure === "continue" && fault.calls && !text.includes("r1.");
  const short = !unprinted && (verdict.lost.length > 0 || shown === "short");
  if (verdict.false_success || short || !log.some((row) => row.terminal)) return "T";
  if (!fault.calls) return "R";
  const [first, second] = log;
  const told = first !== undefined && second !== undefined && !isRepeat(first, second);
  if (told && !marks.includes("end 1") && first.calls.length === 0) return "M";
  return marks.length === 0 ? "T" : "R";
};

/** Matches the gateway's own message, or the provider's, which is forwarded if nothing was retried. */
const reasons = /stream-recovery gateway|overloaded|rate limit|status (?:429|500)|\b(?:429|500)\b/i;

/** True if the screen says why a turn failed. A provider that only breaks connections sends no message, so any output counts without a gateway. */
const isReasonShown = ({ error, gateway, stderr, stdout }: Seen): boolean => {
  const screen = [error ?? "", stdout, stderr].join("\n");
  return gateway ? reasons.test(screen) : screen.trim() !== "";
};

/** True if a call ran more than once, or if calls of two answers to the same request ran. The marks contain the answers' numbers. */
const hasRunTwice = ({ log, marks }: Seen): boolean => {
  const ends = marks.filter((mark) => mark.startsWith("end"));
  if (new Set(ends).size < ends.length) return true;
  const asked = ends.map((end) => log[Number(end.slice("end ".length)) - 1]);
  return asked.some((one, at) =>
    asked.slice(at + 1).some((other) => one !== undefined && other !== undefined && isRepeat(one, other)),
  );
};

const isRepeat = (first: RequestLog, second: RequestLog): boolean =>
  first.body_hash === second.body_hash || Math.abs(first.body_bytes - second.body_bytes) < sameBytes;

const answersShown = (text: string): number => new Set([...text.matchAll(/r(\d+)\.\d+·/g)].map(([, n]) => n)).size;

const lastLine = (text: string): string => text.trim().split("\n").at(-1) ?? "";
