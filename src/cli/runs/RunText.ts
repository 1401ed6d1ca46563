/**
 * Prints a run's story in chronological order, its calls, and its end or its question.
 */
import type { RunRecord } from "../../recorder/RunRecord.ts";
import { openQuestionOf } from "../../story/Question.ts";
import { runStatuses } from "../../story/RunStatus.ts";
import {
  type AnswerStory,
  type AttemptStory,
  type CallStory,
  type IncidentStory,
  type RunStory,
  runStory,
} from "../../story/RunStory.ts";
import { formatLasting, formatLocal, formatRelative, formatRough } from "../../story/Times.ts";
import { modelName, takeUpHint } from "../../story/Words.ts";
import { paragraph } from "../terminal/Prose.ts";
import { quoteForShell, type Screen } from "../terminal/Screen.ts";
import { type Cell, formatTable } from "../terminal/Table.ts";
import { questionText } from "./QuestionText.ts";

const margin = 12;

const timeColumns = 10;

/** Maximum calls listed; the rest are counted. */
const callsMax = 40;

interface Scene {
  /** Milliseconds since the run started. */
  readonly at: number;
  /** Sort order of events with the same time, lowest first. */
  readonly order: number;
  readonly text: string;
}

/**
 * Formats a run's record: its steps in chronological order, its calls, and its end or its question.
 *
 * @param orphans ids of runs that no process owns and whose next step is undecided
 */
export const runText = (record: RunRecord, orphans: ReadonlySet<string>, screen: Screen): string => {
  const story = runStory(record, screen.now, orphans);
  const scenes = [
    ...story.attempts.map((attempt) => attemptScene(attempt, screen)),
    ...story.incidents.map((incident) => incidentScene(incident, screen)),
    ...story.answers.map((answer) => answerScene(answer, screen)),
  ].sort((a, b) => a.at - b.at || a.order - b.order);
  const open = openQuestionOf(record);
  const formatSection = (title: string): string => screen.ink("strong", title);
  return [
    ...head(record, story, screen),
    ...(story.omitted.length === 0 ? [] : ["", screen.ink("quiet", `Not kept: ${story.omitted.join(", ")}.`)]),
    ...scenes.flatMap(({ text }) => ["", text]),
    ...(story.calls.length === 0 ? [] : ["", formatSection("Delivered calls"), callsText(story.calls, screen)]),
    "",
    formatSection(runStatuses[story.status].title),
    ...(open === undefined ? endLines(record, story, screen) : [questionText(record.run_id, open, screen)]),
  ].join("\n");
};

const head = (record: RunRecord, { head, lasted, status }: RunStory, screen: Screen): ReadonlyArray<string> => {
  const { mark, tone, word } = runStatuses[status];
  const phrases = [
    `Started ${formatLocal(record.started_at)}, ${formatRelative(record.started_at, screen.now)}`,
    ...(record.end === undefined ? [] : [`took ${formatLasting(lasted)}`]),
    ...head,
  ];
  return [
    `${screen.ink("strong", record.run_id)}  ${modelName(record.provider)}  ${screen.ink(tone, `${mark} ${word}`)}`,
    paragraph("", phrases.join("; "), { columns: screen.columns, indent: 0, margin: 0 }, screen.ink),
    ...(record.retry_of === undefined
      ? []
      : [`It repeats the request of ${record.retry_of}, which its client retried.`]),
  ];
};

const timeLabel = (at: number, { ink }: Screen): string => {
  const time = at < 60_000 ? `${(at / 1_000).toFixed(1)} s` : formatRough(at);
  return ink("quiet", `+${time}`.padStart(timeColumns - 2).padEnd(timeColumns));
};

const formatBody = (title: string, text: string, { columns, ink }: Screen): string =>
  paragraph(title, text, { columns, indent: timeColumns, margin }, ink);

const attemptScene = ({ from, known, record: { attempt }, seam, sent }: AttemptStory, screen: Screen): Scene => ({
  at: from,
  order: attempt * 10,
  text: [
    `${timeLabel(from, screen)}${screen.ink("strong", `Attempt ${attempt}`)}: ${sent}.`,
    ...(seam === undefined ? [] : [formatBody("Seam", seam.said, screen)]),
    formatBody("Facts", known.join(" "), screen),
  ].join("\n"),
});

const incidentScene = (story: IncidentStory, screen: Screen): Scene => {
  const { action, at, became, broke, failure, incident, next, policy, refusal, title, why } = story;
  const { decision } = incident;
  const retry = next === undefined ? "" : `, ${next}`;
  const own = policy === undefined ? "" : ` (policy ${policy})`;
  return {
    at,
    order: incident.attempt * 10 + 5,
    text: [
      `${timeLabel(at, screen)}${screen.ink(action.tone, title)}: ${broke}.`,
      // The failure is the error name of the provider or the system, so that an operator can look it up.
      formatBody("Failure", `${failure}.`, screen),
      formatBody("Decision", `${decision.action} by rule ${decision.rule}${retry}${own}.`, screen),
      formatBody("Why", why, screen),
      ...(refusal === undefined ? [] : [formatBody("Not joined", `${refusal.why} ${refusal.remedy}`, screen)]),
      formatBody("Because", decision.because.join(", "), screen),
      formatBody("Then", became, screen),
    ].join("\n"),
  };
};

const answerScene = ({ at, attempt, by, question }: AnswerStory, screen: Screen): Scene => ({
  at,
  order: attempt * 10 + 7,
  text: [
    `${timeLabel(at, screen)}${screen.ink("ask", `Question ${question.revision}`)}: ${question.choices.join(" · ")}?`,
    formatBody(
      "Answer",
      question.answer === undefined ? "It was not answered." : `${by} said ${question.answer}.`,
      screen,
    ),
  ].join("\n"),
});

const callsText = (calls: ReadonlyArray<CallStory>, screen: Screen): string => {
  const columns = [
    { head: "  TRY", align: "right" },
    { head: "CALL" },
    { head: "TOOL", shrinksTo: 8 },
    { head: "EFFECT", shrinksTo: 10 },
    { head: "PHASE" },
    { head: "VERDICT", shrinksTo: 10 },
  ] as const;
  const rows = calls
    .slice(0, callsMax)
    .map(
      ({ effect, phase, record, tone, word }): ReadonlyArray<Cell> => [
        { text: String(record.attempt) },
        { text: record.call },
        { text: record.tool },
        { text: effect },
        { text: phase, ...(tone === "quiet" ? {} : { tone }) },
        { text: word === undefined ? "" : `${word.said}, according to ${word.by}` },
      ],
    );
  return [
    formatTable(columns, rows, screen.ink, screen.fits ? screen.columns : undefined),
    ...(calls.length > callsMax ? [screen.ink("quiet", `  and ${calls.length - callsMax} more`)] : []),
  ].join("\n");
};

const endLines = (record: RunRecord, { end, status }: RunStory, screen: Screen): ReadonlyArray<string> => {
  const formatText = (text: string) =>
    paragraph("", text, { columns: screen.columns, indent: 2, margin: 0 }, screen.ink);
  const toType = (command: string) => `    ${screen.ink("strong", screen.type(command))}`;
  if (end !== undefined) return [formatText(end)];
  if (status === "orphan")
    return [formatText("Its process is gone, and no decision has been made yet. To recover it:"), toType("recover")];
  if (status === "live")
    return [formatText("A process owns it. To follow it:"), toType(`runs watch ${quoteForShell(record.run_id)}`)];
  return [formatText(`${record.parked === "answered" ? "It is answered. " : ""}${takeUpHint(record.run_id)}`)];
};
