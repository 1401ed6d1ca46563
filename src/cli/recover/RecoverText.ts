/**
 * Prints what a recovery found, and what to do next with each run.
 */
import type { Outcome, Report, Row } from "../../runtime/crash/CrashRecovery.ts";
import type { Tone } from "../terminal/Ink.ts";
import { quoted, type Screen } from "../terminal/Screen.ts";
import { type Cell, table } from "../terminal/Table.ts";

/** Most runs that are listed one by one; `runs list` has them all. */
const listedMax = 30;

/** Most questions whose command is spelt out. */
const spelledMax = 5;

/** Ids are never cut shorter, in characters. */
const idCharactersMin = 20;

/**
 * The report in words.
 *
 * @param left runs whose process is silent and may still live
 */
export const recoverText = (report: Report, screen: Screen, left = 0): string => {
  if (report.runs.length === 0)
    return left === 0
      ? "Nothing to recover: every run has ended, waits, or is driven by a living process."
      : "Nothing to recover yet: a process that drove a run is silent, and its lease is not over.";
  const ordered = report.runs.toSorted((a, b) => outcomes[a.outcome].order - outcomes[b.outcome].order);
  const listed = ordered.slice(0, listedMax);
  const rest = ordered.length - listed.length;
  const columns = [
    { head: "RUN", shrinksTo: idCharactersMin },
    { head: "NOW" },
    { head: "RULE", shrinksTo: 12 },
    { head: "NEXT", shrinksTo: 16 },
  ] as const;
  return [
    table(columns, listed.map(cells), screen.ink, screen.fits ? screen.columns : undefined),
    ...(rest > 0 ? [screen.ink("quiet", `and ${rest} more`)] : []),
    "",
    summary(report),
    ...questions(ordered, screen),
    ...(report.more ? [`There are more: ${screen.ink("strong", screen.type("recover"))}`] : []),
  ].join("\n");
};

interface Words {
  readonly order: number;
  readonly now: string;
  readonly next: string;
  readonly tone: Tone;
}

const outcomes: Readonly<Record<Outcome, Words>> = {
  asked: { order: 0, now: "? asks you", next: "answer its question", tone: "careful" },
  waiting: { order: 1, now: "? still asks", next: "answer its question", tone: "careful" },
  offered: { order: 2, now: "‖ safe to retry", next: "StreamProcessor.takeUp", tone: "good" },
  answered: { order: 3, now: "‖ answered", next: "StreamProcessor.takeUp", tone: "good" },
  completed: { order: 4, now: "✓ completed", next: "nothing", tone: "good" },
  stopped: { order: 5, now: "■ stopped", next: "nothing", tone: "quiet" },
  skipped: { order: 6, now: "▸ held elsewhere", next: "nothing: another process has it", tone: "quiet" },
};

const cells = ({ outcome, rule, run_id }: Row): ReadonlyArray<Cell> => {
  const { next, now, tone } = outcomes[outcome];
  return [{ text: run_id, tone: "strong" }, { text: now, tone }, { text: rule ?? "-" }, { text: next }];
};

const summary = ({ counts, runs }: Report): string => {
  const told = [
    [counts.offered + counts.answered, "can be resumed by your program"],
    [
      counts.asked + counts.waiting,
      counts.asked + counts.waiting === 1 ? "waits for your answer" : "wait for your answer",
    ],
    [counts.completed, "completed"],
    [counts.stopped, "stopped"],
    [counts.skipped, "held by another process"],
  ] as const;
  const parts = told.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  return `${runs.length === 1 ? "One run" : `${runs.length} runs`}: ${parts.join(", ")}.`;
};

const questions = (rows: ReadonlyArray<Row>, { ink, type }: Screen): ReadonlyArray<string> => {
  const asking = rows.filter(({ outcome }) => outcome === "asked" || outcome === "waiting");
  if (asking.length === 0) return [];
  const spelled = asking
    .slice(0, spelledMax)
    .map(({ run_id }) => `  ${ink("strong", type(`runs answer ${quoted(run_id)}`))}`);
  const rest =
    asking.length > spelledMax ? [`  ${ink("strong", type("runs list --state asking"))}  for all of them`] : [];
  return ["", "The question, and what may be answered:", ...spelled, ...rest];
};
