/**
 * Tells a run in plain words, in the order in which it happened: attempts, what broke, what was decided and why, questions,
 * calls and the end. It has facts and labels only, as the record has.
 */
import type { RunIncident } from "../../domain/RunIncident.ts";
import { type AttemptRecord, openQuestion, type QuestionRecord, type RunRecord } from "../../recorder/RunRecord.ts";
import { known, modes } from "../terminal/FactWords.ts";
import { paragraph } from "../terminal/Prose.ts";
import { quoted, type Screen } from "../terminal/Screen.ts";
import { lasting, moment, relative, rough } from "../terminal/When.ts";
import { callsTable } from "./CallsTable.ts";
import { questionText } from "./QuestionText.ts";
import { marks, type Standing, standingOf, summaryOf } from "./RunSummary.ts";

const margin = 12;

/** Columns of the time in front of everything that happened. */
const timeColumns = 10;

/** One thing that happened. */
interface Scene {
  /** Milliseconds since the run started. */
  readonly at: number;
  /** Of two at the same time the lower one is told first. */
  readonly order: number;
  readonly text: string;
}

/**
 * The story of a run.
 *
 * @param orphans ids of runs that nobody drives and nobody has decided
 */
export const runStory = (record: RunRecord, orphans: ReadonlySet<string>, screen: Screen): string => {
  const scenes = [
    ...record.attempts.map((attempt) => attemptScene(attempt, screen)),
    ...record.incidents.map((incident) => incidentScene(incident, record, screen)),
    ...record.questions.flatMap((question) => answeredScene(question, record, screen)),
  ].sort((a, b) => a.at - b.at || a.order - b.order);
  const open = openQuestion(record);
  const standing = standingOf(record, orphans);
  return [
    ...head(record, standing, orphans, screen),
    ...omitted(record, screen),
    ...scenes.flatMap(({ text }) => ["", text]),
    ...(record.calls.length === 0
      ? []
      : ["", section("Calls that were handed over", screen), callsTable(record, screen)]),
    "",
    section(endTitles[standing], screen),
    ...(open === undefined
      ? endLines(record, standing, screen)
      : [questionText(record.run_id, open, incidentOf(record, open), screen)]),
  ].join("\n");
};

const section = (title: string, { ink }: Screen): string => ink("strong", title);

const endTitles: Readonly<Record<Standing, string>> = {
  asking: "It waits for your answer",
  orphan: "No process drives it",
  parked: "It waits to be resumed",
  live: "It is running",
  completed: "The end",
  stopped: "The end",
};

const head = (
  record: RunRecord,
  standing: Standing,
  orphans: ReadonlySet<string>,
  screen: Screen,
): ReadonlyArray<string> => {
  const { attempts, model, provider } = summaryOf(record, orphans);
  const { mark, tone, word } = marks[standing];
  const times = [
    `started ${moment(record.started_at)}, ${relative(record.started_at, screen.now)}`,
    ...(record.end === undefined ? [] : [`took ${lasting(Math.max(0, record.end.at - record.started_at))}`]),
    attempts === 1 ? "one attempt" : `${attempts} attempts`,
    ...(record.resumes === 0 ? [] : [`taken over ${record.resumes === 1 ? "once" : `${record.resumes} times`}`]),
    ...(record.policy === undefined ? [] : [`policy ${record.policy}`]),
  ];
  return [
    `${screen.ink("strong", record.run_id)}  ${model === undefined ? provider : `${provider}/${model}`}  ${screen.ink(tone, `${mark} ${word}`)}`,
    paragraph("", capital(times.join("; ")), { columns: screen.columns, indent: 0, margin: 0 }, screen.ink),
    ...(record.retry_of === undefined
      ? []
      : [`It repeats the request of ${record.retry_of}, which its client tried again.`]),
  ];
};

const omitted = ({ attempts_omitted, incidents_omitted }: RunRecord, { ink }: Screen): ReadonlyArray<string> => {
  const left = [
    ...(attempts_omitted === 0 ? [] : [`${attempts_omitted} earlier attempts`]),
    ...(incidents_omitted === 0 ? [] : [`${incidents_omitted} earlier incidents`]),
  ];
  return left.length === 0 ? [] : ["", ink("quiet", `(${left.join(" and ")} are not kept)`)];
};

const timed = (at: number): string => {
  const time = at < 60_000 ? `${(at / 1_000).toFixed(1)} s` : rough(at);
  return `+${time}`.padStart(timeColumns - 2).padEnd(timeColumns);
};

const body = (title: string, text: string, { columns, ink }: Screen): string =>
  paragraph(title, text, { columns, indent: timeColumns, margin }, ink);

const attemptScene = ({ attempt, facts, mode, request, started_ms }: AttemptRecord, screen: Screen): Scene => {
  const repeated = mode === "replay" && request === "continue" ? "the same continuation once more" : modes[mode];
  const title = `${screen.ink("strong", `Attempt ${attempt}`)}: ${repeated}.`;
  const marker = facts.terminal_seen ? " The provider's end marker came." : "";
  return {
    at: started_ms,
    order: attempt * 10,
    text: [
      `${screen.ink("quiet", timed(started_ms))}${title}`,
      body("Facts", `${known(facts).join(" ")}${marker}`, screen),
    ].join("\n"),
  };
};

const incidentScene = (incident: RunIncident, record: RunRecord, screen: Screen): Scene => {
  const { attempt, decision, message, policy, status } = incident;
  const at = Math.max(0, incident.at - record.started_at);
  const anew = record.incidents.some((it) => it.attempt === attempt && it !== incident && it.at <= incident.at);
  const [broke = "", ...rest] = message.split("; ");
  const mode =
    decision.action === "auto_retry_once" && decision.mode !== undefined
      ? `, ${modes[decision.mode]} after ${lasting(decision.delay_ms)}`
      : "";
  const own = policy === record.policy || record.policy === undefined ? "" : ` (policy ${policy})`;
  const tone = decision.action === "auto_retry_once" ? "good" : decision.action === "ask_user" ? "careful" : "bad";
  return {
    at,
    order: attempt * 10 + 5,
    text: [
      `${screen.ink("quiet", timed(at))}${screen.ink(tone, anew ? "Decided anew" : "It broke")}: ${broke}.`,
      body("Decision", `${decision.action} by rule ${decision.rule}${mode}${own}.`, screen),
      body("Why", capital(rest.join("; ")), screen),
      body("Because", decision.because.join(", "), screen),
      body(
        "Then",
        `${statuses[status]}${incident.answer === undefined ? "" : ` The answer was ${incident.answer}.`}`,
        screen,
      ),
    ].join("\n"),
  };
};

const statuses = {
  open: "The decision has not been carried out yet.",
  acted_on: "It was carried out.",
  recovered: "It was carried out, and a later attempt completed the run.",
  superseded: "A newer decision came before it was carried out.",
  late: "It was found out after the run had gone on; nothing follows from it.",
  final: "It ended the run.",
} as const;

const answeredScene = (question: QuestionRecord, record: RunRecord, screen: Screen): ReadonlyArray<Scene> => {
  if (question.answer === undefined) return [];
  const incident = incidentOf(record, question);
  const asked = question.asked_at ?? incident?.at ?? record.started_at;
  const at = Math.max(0, asked - record.started_at);
  const who = { person: "A person", expiry: "Its expiry", program: "The program" }[question.answered_by ?? "program"];
  const title = `${screen.ink("careful", `Question ${question.revision}`)}: ${question.choices.join(" · ")}?`;
  return [
    {
      at,
      order: (incident?.attempt ?? 0) * 10 + 7,
      text: [
        `${screen.ink("quiet", timed(at))}${title}`,
        body("Answer", `${who} said ${question.answer}.`, screen),
      ].join("\n"),
    },
  ];
};

const incidentOf = (record: RunRecord, question: QuestionRecord): RunIncident | undefined =>
  record.incidents.find(({ id }) => id === question.incident);

const endLines = (record: RunRecord, standing: Standing, screen: Screen): ReadonlyArray<string> => {
  const { end } = record;
  const layout = { columns: screen.columns, indent: 2, margin: 0 };
  const say = (text: string) => [paragraph("", text, layout, screen.ink)];
  if (end !== undefined) {
    const attempts = end.attempts === 1 ? "one attempt" : `${end.attempts} attempts`;
    const what = end.state === "completed" ? `Completed (${end.reason})` : `Stopped by ${end.reason}`;
    return say(`${what} after ${attempts} and ${lasting(Math.max(0, end.at - record.started_at))}.`);
  }
  if (standing === "orphan") {
    return [
      ...say("Its process is gone, and what that means is not decided yet. To decide it:"),
      toType("recover", screen),
    ];
  }
  if (standing === "parked") {
    const answer = record.parked === "answered" ? "It is answered. " : "";
    return say(`${answer}Your program takes it up with StreamProcessor.takeUp(${JSON.stringify(record.run_id)}, …).`);
  }
  return [...say("A process drives it. To follow:"), toType(`runs watch ${quoted(record.run_id)}`, screen)];
};

const toType = (command: string, { ink, type }: Screen): string => `    ${ink("strong", type(command))}`;

const capital = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
