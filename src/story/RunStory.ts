/**
 * Describes a run as data: its attempts and their facts, its breaks and their decisions, its questions, its calls and its end.
 *
 * Like the record, it contains facts, lengths and labels. It adds the words for a person, so that a renderer only adds layout.
 */
import type { Evidence, RunEnd, RunIncident } from "../domain/RunIncident.ts";
import {
  type AttemptRecord,
  type CallRecord,
  openQuestion,
  type QuestionRecord,
  type RunRecord,
} from "../recorder/RunRecord.ts";
import { amounts, factSentences } from "./FactWords.ts";
import { failureWord, stopWords, unjoined } from "./FailureWords.ts";
import { incidentOf } from "./Question.ts";
import { incidentStatus, isCancelled, type RunStatus, statusOf } from "./RunStatus.ts";
import { attemptsOf } from "./RunSummary.ts";
import { tokensOf, tokenWords } from "./RunTokens.ts";
import {
  evidenceOf,
  type RefusalStory,
  refusalOf,
  type SeamStory,
  seamOf,
  type TextPiece,
  textsAcrossSeams,
} from "./SeamWords.ts";
import { formatCount, formatLasting, formatTimes } from "./Times.ts";
import { unknownWords } from "./UnknownOutcomes.ts";
import {
  actions,
  answerers,
  callWords,
  capitalize,
  choices,
  continuationRequest,
  effects,
  failureName,
  incidentStatuses,
  modes,
  phases,
  requestOf,
  type Tone,
  witnesses,
} from "./Words.ts";

/** A run as a story. Times of events are in milliseconds since its start. */
export interface RunStory {
  readonly status: RunStatus;
  /** Duration so far, in milliseconds. */
  readonly lasted: number;
  /** Short phrases for the heading, for example the numbers of attempts and takeovers. */
  readonly head: ReadonlyArray<string>;
  /** Descriptions of the parts that the record has dropped. */
  readonly omitted: ReadonlyArray<string>;
  readonly attempts: ReadonlyArray<AttemptStory>;
  /** Texts that continue at a seam, each as a list of its pieces. */
  readonly texts: ReadonlyArray<ReadonlyArray<TextPiece>>;
  readonly incidents: ReadonlyArray<IncidentStory>;
  /** Questions that are no longer open. */
  readonly answers: ReadonlyArray<AnswerStory>;
  readonly calls: ReadonlyArray<CallStory>;
  /** The end, in a sentence; undefined if the run has not ended. */
  readonly end: string | undefined;
  /** Reason why the run stopped, in lower case; undefined if the end needs no reason. */
  readonly why: string | undefined;
  /** Tools with an unknown outcome, in lower case; undefined if there are none. `end` or `head` mentions them too. */
  readonly unknown: string | undefined;
}

/** End of an attempt, as the record shows it. */
export type AttemptEnd = "broke" | "completed" | "running" | "unknown";

/** Words for each end of an attempt. */
export const attemptEnds: Readonly<Record<AttemptEnd, { readonly word: string; readonly tone: Tone }>> = {
  broke: { word: "broke", tone: "bad" },
  completed: { word: "completed", tone: "good" },
  running: { word: "running", tone: "run" },
  unknown: { word: "no end on record", tone: "quiet" },
};

/** One attempt, with the words that describe it. */
export interface AttemptStory {
  readonly record: AttemptRecord;
  /** Description of its request. */
  readonly sent: string;
  readonly from: number;
  readonly to: number;
  readonly end: AttemptEnd;
  /** Word for its end, chosen to fit its failure. */
  readonly said: { readonly word: string; readonly tone: Tone };
  /** Seam at which its text joins the shown text; undefined if there is none. */
  readonly seam: SeamStory | undefined;
  /** Its facts, in sentences. */
  readonly known: ReadonlyArray<string>;
  readonly amounts: ReadonlyArray<string>;
  /** Its evidence on record, in order. */
  readonly evidence: ReadonlyArray<Evidence>;
  /** Its incidents, oldest first. The first one is the break, and later ones are further decisions about that break. */
  readonly incidents: ReadonlyArray<IncidentStory>;
  readonly answers: ReadonlyArray<AnswerStory>;
  /** True if the run's open question is about this attempt. */
  readonly asks: boolean;
}

/** One break and its decision. */
export interface IncidentStory {
  readonly incident: RunIncident;
  readonly at: number;
  /** Words for the failure, for example `It broke`, or words for a further decision about it. */
  readonly title: string;
  readonly failure: string;
  /** Description of the break, without a full stop. */
  readonly broke: string;
  readonly why: string;
  readonly action: { readonly word: string; readonly tone: Tone };
  /** Reason that the shown text does not continue automatically, if a question is about it. */
  readonly refusal: RefusalStory | undefined;
  /** Request and delay of an automatic retry. */
  readonly next: string | undefined;
  /** The policy that decided, if it is not the policy of the run. */
  readonly policy: string | undefined;
  /** Outcome of the decision. */
  readonly became: string;
}

/** A question that is no longer open. */
export interface AnswerStory {
  readonly at: number;
  readonly attempt: number;
  readonly question: QuestionRecord;
  /** Source of its answer, for example `A person`; undefined if it was not answered. */
  readonly by: string | undefined;
}

/** A complete call that was handed over. */
export interface CallStory {
  readonly record: CallRecord;
  readonly effect: string;
  readonly phase: string;
  readonly tone: Tone;
  /** Verdict on its unknown outcome, for example `it ran`, by `a person`. */
  readonly word: { readonly said: string; readonly by: string } | undefined;
}

/**
 * Builds the story of a run.
 *
 * @param now wall-clock time, in milliseconds since the epoch; used as the end of anything that is still in progress
 * @param orphans ids of undecided runs without an owner, if they were looked up
 */
export const runStory = (record: RunRecord, now: number, orphans?: ReadonlySet<string>): RunStory => {
  const lasted = Math.max(0, (record.end?.at ?? now) - record.started_at);
  const spent = tokenWords(tokensOf(record));
  const unknown = unknownWords(record);
  const incidents = record.incidents.map((incident) => incidentStory(incident, record));
  const answers = record.questions.filter((it) => it !== openQuestion(record)).map((it) => answerStory(it, record));
  return {
    status: statusOf(record, orphans),
    lasted,
    head: [
      formatCount(attemptsOf(record), "attempt"),
      ...(spent === undefined ? [] : [spent]),
      ...(record.resumes === 0 ? [] : [`taken over ${formatTimes(record.resumes)}`]),
      ...(record.policy === undefined ? [] : [`policy ${record.policy}`]),
      ...(unknown === undefined || record.end !== undefined ? [] : [unknown]),
    ],
    omitted: [
      ...(record.attempts_omitted === 0 ? [] : [formatCount(record.attempts_omitted, "earlier attempt")]),
      ...(record.incidents_omitted === 0 ? [] : [formatCount(record.incidents_omitted, "earlier incident")]),
      ...(record.evidence.omitted === 0 ? [] : [`${formatCount(record.evidence.omitted, "record")} of evidence`]),
    ],
    attempts: record.attempts.map((attempt, index) =>
      attemptStory(attempt, record.attempts[index + 1], record, {
        lasted,
        evidence: evidenceOf(record, attempt.attempt),
        incidents: incidents.filter(({ incident }) => incident.attempt === attempt.attempt),
        answers: answers.filter((it) => it.attempt === attempt.attempt),
      }),
    ),
    texts: textsAcrossSeams(record),
    incidents,
    answers,
    calls: record.calls.map((call) => callStory(call, record)),
    end: endSentence(record, lasted),
    why: record.end === undefined ? undefined : whyOf(record, record.end),
    unknown,
  };
};

const attemptStory = (
  attempt: AttemptRecord,
  next: AttemptRecord | undefined,
  record: RunRecord,
  own: Pick<AttemptStory, "evidence" | "incidents" | "answers"> & Pick<RunStory, "lasted">,
): AttemptStory => {
  const { lasted, ...parts } = own;
  const from = attempt.started_ms;
  const over = parts.evidence.find(({ event }) => event === "failure" || event === "source_ended")?.at_ms;
  const [first] = parts.incidents;
  const broke = first?.at;
  const seam = seamOf(attempt, parts.evidence);
  // A continuation that was not joined has no incident, because it is decided as part of the response that it continues.
  const notJoined = first === undefined && seam?.fault !== undefined;
  const isRunning = next === undefined && record.state === "live" && broke === undefined && over === undefined;
  const to = over ?? broke ?? next?.started_ms ?? (isRunning || record.end !== undefined ? lasted : from);
  const open = openQuestion(record);
  const end = endOf(record, broke !== undefined || notJoined, isRunning, next);
  return {
    ...parts,
    record: attempt,
    sent: requestOf(attempt),
    from,
    to: Math.max(from, to),
    end,
    said: notJoined ? unjoined : first === undefined ? attemptEnds[end] : failureWord(first.incident),
    seam,
    known: factSentences(attempt.facts),
    amounts: amounts(attempt.facts),
    asks: open !== undefined && parts.incidents.some(({ incident }) => incident.id === open.incident),
  };
};

const endOf = ({ end }: RunRecord, broke: boolean, isRunning: boolean, next: AttemptRecord | undefined): AttemptEnd => {
  if (broke) return "broke";
  if (isRunning) return "running";
  return end?.state === "completed" && next === undefined ? "completed" : "unknown";
};

/** Splits the message of an incident into the description of the break and the reason for the decision. */
export const incidentWords = ({ message }: RunIncident): Pick<IncidentStory, "broke" | "why"> => {
  const [broke = "", ...why] = message.split("; ");
  return { broke, why: capitalize(why.length === 0 ? broke : why.join("; ")) };
};

/** Describes the request, route and delay of an automatic retry; undefined for any other decision. */
export const retryWords = ({ decision }: RunIncident): string | undefined => {
  const { action, delay_ms, mode, route, rule } = decision;
  if (action !== "auto_retry_once" || mode === undefined) return undefined;
  const sent = rule === "continue_text" ? continuationRequest : modes[mode];
  if (route === "next") return `${sent} by the next route`;
  return delay_ms > 0 ? `${sent} after ${formatLasting(delay_ms)}` : sent;
};

const incidentStory = (incident: RunIncident, record: RunRecord): IncidentStory => {
  const { answer, attempt, decision, failure, id, policy } = incident;
  const isAnew = record.incidents.some((it) => it.attempt === attempt && it !== incident && it.at <= incident.at);
  const waits = openQuestion(record)?.incident === id;
  const answered = answer === undefined ? "" : ` The answer was “${choices[answer].title}”.`;
  return {
    incident,
    at: Math.max(0, incident.at - record.started_at),
    title: isAnew ? "Decided again" : failureWord(incident).title,
    failure: failureName(failure),
    ...incidentWords(incident),
    action: actions[decision.action],
    refusal: decision.action === "ask_user" ? refusalOf(evidenceOf(record, attempt)) : undefined,
    next: retryWords(incident),
    policy: record.policy === undefined || policy === record.policy ? undefined : policy,
    became: waits ? "It waits for an answer." : `${incidentStatuses[incidentStatus(incident, record.end)]}${answered}`,
  };
};

const answerStory = (question: QuestionRecord, record: RunRecord): AnswerStory => {
  const incident = incidentOf(record, question);
  const at = question.asked_at ?? incident?.at ?? record.started_at;
  return {
    at: Math.max(0, at - record.started_at),
    attempt: incident?.attempt ?? 0,
    question,
    by: question.answer === undefined ? undefined : capitalize(answerers[question.answered_by ?? "program"]),
  };
};

const callStory = (call: CallRecord, record: RunRecord): CallStory => {
  const attempt = record.attempts.find((it) => it.attempt === call.attempt);
  const row = attempt?.facts.tools.find((it) => it.call === call.call);
  return {
    record: call,
    effect: row === undefined ? "-" : effects[row.effect],
    phase: row === undefined ? "-" : phases[row.phase].now,
    tone: row === undefined ? "quiet" : phases[row.phase].tone,
    word:
      call.verdict === undefined
        ? undefined
        : { said: callWords[call.verdict], by: witnesses[call.verdict_by ?? "person"] },
  };
};

const whyOf = (record: RunRecord, end: RunEnd): string | undefined =>
  isCancelled(record)
    ? `the response was complete (${end.reason}), and the user cancelled while a tool was running`
    : stopWords(record, end);

const endSentence = (record: RunRecord, lasted: number): string | undefined => {
  const { end } = record;
  if (end === undefined) return undefined;
  const why = whyOf(record, end);
  const how = end.state === "completed" ? `Completed (${end.reason})` : `Stopped by ${end.reason}`;
  const what = isCancelled(record) ? "Cancelled" : how;
  const stopped = `${what} after ${formatCount(end.attempts, "attempt")} and ${formatLasting(lasted)}${why === undefined ? "" : `: ${why}`}.`;
  const unknown = unknownWords(record);
  return unknown === undefined ? stopped : `${stopped} ${capitalize(unknown)}.`;
};
