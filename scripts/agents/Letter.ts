/**
 * Judges one turn of an agent by one letter.
 */
import { FaultJudge, type RequestLog } from "../../src/testing/index.ts";
import { shownWrongly } from "./Continued.ts";
import type { Fault } from "./Faults.ts";

/**
 * What became of a turn. `R` recovered, or nothing was wrong · `N` recovered by a second request that does not stream · `D`
 * the user sees text twice · `T` silent truncation or a lost call, exit 0 · `E` an error that the user is told · `Q` the turn failed,
 * and nothing on the screen says why, where the fault never stopped · `M` the broken call was not run and the model was told ·
 * `X` a command ran twice · `XT` a command ran that was cut · `H` nothing until the limit.
 */
export type Letter = "R" | "N" | "D" | "T" | "E" | "Q" | "M" | "X" | "XT" | "H";

/** One turn, judged. */
export interface Cell {
  readonly letter: Letter;
  /** Requests that the provider saw. */
  readonly requests: number;
  /** What the agent said of its failure, in one line. */
  readonly note: string;
  /** How the gateway took a break in shown text, where it goes on with it: proven how, or not and why. */
  readonly cause?: string;
}

/** The letters from the worst to the best. */
const worstFirst: ReadonlyArray<Letter> = ["XT", "X", "T", "D", "H", "Q", "E", "M", "N", "R"];

/** Whether a cell's letter is worse than another's. */
export const isWorse = (cell: Cell, than: Cell): boolean =>
  worstFirst.indexOf(cell.letter) < worstFirst.indexOf(than.letter);

/** The worst of the plays of one turn, and of these the one with most requests: what can happen, does. */
export const worst = (cells: readonly [Cell, ...Array<Cell>]): Cell =>
  cells.reduce((bad, cell) =>
    isWorse(cell, bad) || (cell.letter === bad.letter && cell.requests > bad.requests) ? cell : bad,
  );

/** What was seen of a turn. */
export interface Seen {
  readonly text: string;
  readonly error: string | undefined;
  /** Undefined: the limit ended it. */
  readonly code: number | undefined;
  /** Everything that it printed. */
  readonly stdout: string;
  readonly stderr: string;
  /** What stood between it and the provider had a reason to tell. */
  readonly gateway: boolean;
  /** The lines that commands wrote: `begin 1`, `end 1`, … with the number of the answer that they came from. */
  readonly marks: ReadonlyArray<string>;
  readonly log: ReadonlyArray<RequestLog>;
  /** As in a cell. */
  readonly cause?: string | undefined;
}

/** Longest note, in UTF-16 code units. */
const noteMax = 200;

/**
 * Two requests whose bodies differ by less than this ask the same, in bytes: an agent puts an id or a time into each. With the
 * result of a call, or with a word on why it did not run, a request is longer by its arguments at least.
 */
const sameBytes = 150;

/** Judges a turn, the worst thing first: effects on the world, what the user sees wrong, what the user is told. */
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
  if (ranTwice(seen)) return "X";
  const verdict = FaultJudge.judge({ transcript: text, completed: !failed, log });
  // The answers of a text fault answer one question: of two that stand there, one is too many.
  if (verdict.duplicates.length > 0 || (!fault.calls && answersShown(text) > 1)) return "D";
  const shown = fault.measure === "continue" ? shownWrongly(text) : undefined;
  if (shown === "twice") return "D";
  if (hung) return "H";
  if (failed) return fault.measure === "always" && !saysWhy(seen) ? "Q" : "E";
  // Behind a call some print their last message alone: of the text in front of it nothing can be said then.
  const unprinted = fault.measure === "continue" && fault.calls && !text.includes("r1.");
  const short = !unprinted && (verdict.lost.length > 0 || shown === "short");
  if (verdict.false_success || short || !log.some((row) => row.terminal)) return "T";
  if (!fault.calls) return "R";
  const [first, second] = log;
  const told = first !== undefined && second !== undefined && !isRepeat(first, second);
  if (told && !marks.includes("end 1") && first.calls.length === 0) return "M";
  return marks.length === 0 ? "T" : "R";
};

/** The gateway's own words, or the provider's, which pass where nothing was retried. */
const reasons = /stream-recovery gateway|overloaded|rate limit|status (?:429|500)|\b(?:429|500)\b/i;

/** The screen says why a turn failed. A provider that only breaks connections has no words: any will do where it is asked directly. */
const saysWhy = ({ error, gateway, stderr, stdout }: Seen): boolean => {
  const screen = [error ?? "", stdout, stderr].join("\n");
  return gateway ? reasons.test(screen) : screen.trim() !== "";
};

/** A call ran more than once, or the calls of two answers to the same request ran: the marks have the answers' numbers. */
const ranTwice = ({ log, marks }: Seen): boolean => {
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
