/**
 * `stream-recovery recover`: decides the next step of each run whose process is dead, and prints these steps.
 */
import { Console, Effect } from "effect";
import { Command, Flag } from "effect/cli";
import { RunRecorder } from "../recorder/RunRecorder.ts";
import * as CrashRecovery from "../runtime/crash/CrashRecovery.ts";
import { type RunStatus, runStatuses } from "../story/RunStatus.ts";
import { formatCount } from "../story/Times.ts";
import { capitalize } from "../story/Words.ts";
import { exitCodesHelp } from "./command/CommandFailed.ts";
import { dbFlag, jsonFlag, withStore, withWaitNotice } from "./command/Store.ts";
import type { Tone } from "./terminal/Ink.ts";
import { quoteForShell, type Screen } from "./terminal/Screen.ts";
import { type Cell, formatTable } from "./terminal/Table.ts";

/** Recovers the runs of dead processes. First waits until each silent owner has renewed its lease or its lease has expired. It contacts no provider. */
export const recoverCommand = Command.make(
  "recover",
  {
    db: dbFlag,
    restored: Flag.Boolean("restored").pipe(
      Flag.withDescription(
        "Use it after restoring the store from a backup: ask about every run that would continue, regardless of earlier decisions and answers",
      ),
      Flag.withDefault(false),
    ),
    json: jsonFlag,
  },
  ({ db, json, restored }) => withStore("recover", db, (screen) => recover(json, screen, restored)),
).pipe(
  Command.withDescription(
    `Decide the runs whose process is gone, by the policy and from their recorded facts. A safe run is offered for a retry, any other becomes a question. Contacts no provider. A second call finds nothing left to decide. A process that is only silent is watched for the length of its lease before its runs are taken over.${exitCodesHelp}`,
  ),
  Command.withShortDescription("Decide the runs whose process is gone"),
  Command.withExamples([
    { command: "stream-recovery recover", description: "Run it after a crash, and at every boot" },
    { command: "stream-recovery runs list --state asking", description: "List the questions that it left to you" },
    {
      command: "stream-recovery recover --restored",
      description: "Run it after restoring a backup, before any program starts",
    },
  ]),
);

/** Minimum number of runs for which progress is printed on stderr; fewer runs finish too quickly. */
const progressFromRuns = 200;

/**
 * Recovers the runs of dead processes and prints a report.
 *
 * @param restored true if the store was restored from a backup
 */
export const recover = Effect.fn("cli.recover")(function* (json: boolean, screen: Screen, restored = false) {
  const inPlace = process.stderr.isTTY === true;
  const recorder = yield* RunRecorder;
  // Watch the silent owners first, so that the recovery itself does not wait for them. This includes processes that may have died a moment
  // ago: after a crash a person wants to recover the runs, not to read that the process still counts as alive.
  yield* withWaitNotice("recover", recorder.orphans(1, { waits: "all" }), lately);
  const report = yield* CrashRecovery.recover({
    restored,
    onProgress: (runs) =>
      runs < progressFromRuns
        ? Effect.void
        : Effect.sync(() => void process.stderr.write(inPlace ? `\r\u001b[2K${runs} runs` : `${runs} runs\n`)),
  });
  if (inPlace && report.runs.length >= progressFromRuns) {
    yield* Effect.sync(() => void process.stderr.write("\r\u001b[2K"));
  }
  const silent = yield* recorder.orphans(silentMax, { waits: false });
  const known = new Set(report.runs.map(({ run_id }) => run_id));
  const left = silent.filter(({ run_id }) => !known.has(run_id)).length;
  if (left > 0) yield* Console.error(`recover: ${remainingText(left)}`);
  if (restored && report.counts.asked > 0) yield* Console.error(`recover: ${lessText}`);
  yield* Console.log(json ? JSON.stringify(report, null, 2) : recoverText(report, screen, left));
});

/** Printed while waiting for a process that was active a moment ago. */
const lately = "another process owns runs; waiting for its next heartbeat, or until its lease expires";

/** Printed with questions that are based on an older, restored record. */
const lessText = "these records are incomplete: before you answer retry, check what their tools did";

/** Maximum runs of silent processes that are counted. */
const silentMax = 1_000;

const remainingText = (runs: number): string =>
  `${runs === silentMax ? `${runs} runs or more` : formatCount(runs, "run")} not recovered: the owning process is silent, and its lease is longer than this command waits. Run it again later`;

/** Maximum runs listed; `runs list` shows them all. */
const listedMax = 30;

/** Maximum questions whose command is printed. */
const spelledMax = 5;

/** Minimum width of the id column, in characters. */
const idCharactersMin = 20;

/**
 * Formats the report as text.
 *
 * @param left number of runs whose process is silent and may be alive
 */
const recoverText = (report: CrashRecovery.Report, screen: Screen, left = 0): string => {
  if (report.runs.length === 0)
    return left === 0
      ? "Nothing to recover: every run has ended, waits, or has a live owner."
      : "Nothing to recover yet: the process that owns a run is silent, and its lease has not expired.";
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
    formatTable(columns, listed.map(cells), screen.ink, screen.fits ? screen.columns : undefined),
    ...(rest > 0 ? [screen.ink("quiet", `and ${rest} more`)] : []),
    "",
    summary(report),
    ...formatQuestions(ordered, screen),
    ...(report.more ? [`There are more. Run again: ${screen.ink("strong", screen.type("recover"))}`] : []),
  ].join("\n");
};

interface OutcomeWords {
  readonly order: number;
  readonly now: string;
  readonly next: string;
  readonly tone: Tone;
}

const statusWord = (status: RunStatus): Pick<OutcomeWords, "now" | "tone"> => {
  const { mark, tone, word } = runStatuses[status];
  return { now: `${mark} ${word}`, tone };
};

const outcomes: Readonly<Record<CrashRecovery.Outcome, OutcomeWords>> = {
  asked: { order: 0, ...statusWord("asking"), next: "answer its question" },
  waiting: { order: 1, now: "? still asks", next: "answer its question", tone: "careful" },
  offered: { order: 2, now: "‖ safe to retry", next: "StreamProcessor.takeUp", tone: "good" },
  answered: { order: 3, now: "‖ answered", next: "StreamProcessor.takeUp", tone: "good" },
  completed: { order: 4, ...statusWord("completed"), next: "nothing" },
  stopped: { order: 5, ...statusWord("stopped"), next: "nothing" },
  skipped: { order: 6, now: "▸ owned elsewhere", next: "nothing: another process owns it", tone: "quiet" },
};

const cells = ({ outcome, rule, run_id }: CrashRecovery.Row): ReadonlyArray<Cell> => {
  const { next, now, tone } = outcomes[outcome];
  return [{ text: run_id, tone: "strong" }, { text: now, tone }, { text: rule ?? "-" }, { text: next }];
};

const summary = ({ counts, runs }: CrashRecovery.Report): string => {
  const groups = [
    [counts.offered + counts.answered, "can be taken up by your program"],
    [
      counts.asked + counts.waiting,
      counts.asked + counts.waiting === 1 ? "waits for your answer" : "wait for your answer",
    ],
    [counts.completed, "completed"],
    [counts.stopped, "stopped"],
    [counts.skipped, "owned by another process"],
  ] as const;
  const parts = groups.filter(([count]) => count > 0).map(([count, what]) => `${count} ${what}`);
  return `${capitalize(formatCount(runs.length, "run"))}: ${parts.join(", ")}.`;
};

const formatQuestions = (rows: ReadonlyArray<CrashRecovery.Row>, { ink, type }: Screen): ReadonlyArray<string> => {
  const asking = rows.filter(({ outcome }) => outcome === "asked" || outcome === "waiting");
  if (asking.length === 0) return [];
  const spelled = asking
    .slice(0, spelledMax)
    .map(({ run_id }) => `  ${ink("strong", type(`runs answer ${quoteForShell(run_id)}`))}`);
  const rest =
    asking.length > spelledMax ? [`  ${ink("strong", type("runs list --state asking"))}  for all of them`] : [];
  return ["", "To see the question and its answers:", ...spelled, ...rest];
};
