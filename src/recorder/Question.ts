/**
 * Describes a question to a person: how it is put, what it takes when it expires, and whether an answer to it counts.
 *
 * An answer counts for the newest open question, once, and only while nothing has happened since the question was put.
 */
import * as Schema from "effect/Schema";
import type { Choice, Decision, Rule } from "../domain/Decision.ts";
import type { RunIncident } from "../domain/RunIncident.ts";
import * as Choices from "../policy/Choices.ts";
import { newestIncident, stands } from "./Orphan.ts";
import type { AnsweredBy, QuestionRecord, RunRecord } from "./RunRecord.ts";

/** A question: which run broke how, in one sentence, and what may be answered. */
export interface Question {
  readonly run_id: string;
  /** Grows with every question of a run; an answer to an older one is refused. */
  readonly revision: number;
  readonly incident: string;
  readonly rule: Rule;
  /** What happened, whether a tool ran, what is safe to do. */
  readonly message: string;
  /**
   * What `retry` may repeat: keys of calls that ran or may have run, and words for tools that the provider may have run unseen.
   * Where it is not empty, ask a person twice before you answer `retry`.
   */
  readonly may_repeat: ReadonlyArray<string>;
  /** At least two. */
  readonly choices: ReadonlyArray<Choice>;
  /** What an unattended question takes. */
  readonly default_choice: Choice;
  /** Wall clock, milliseconds since the epoch. */
  readonly asked_at: number;
  /** From then on only the default is taken; never when left out. */
  readonly expires_at?: number;
  readonly decision: Decision;
}

/** What is true of every question that a layer of UserDecisions is asked. */
export interface QuestionTerms {
  /** A question expires after so many milliseconds and takes its default; it never does when left out. */
  readonly expiryMs?: number;
  /** Defaults by rule, instead of `stop`. A default that a question does not offer is never taken: `stop` is. */
  readonly defaults?: Partial<Record<Rule, Choice>>;
}

/** What a question says besides its incident. */
export interface Put extends Required<Pick<QuestionRecord, "revision" | "attempt" | "choices" | "asked_at">> {
  readonly terms: QuestionTerms | undefined;
  /** The open question in whose place it is put, about the same incident: it keeps that one's deadline and default. */
  readonly replaced?: QuestionRecord | undefined;
}

/**
 * Puts the question of an incident, as it stands on record: the same for a living run and for one whose process is gone.
 *
 * The default is never a retry that may repeat something.
 */
export const put = (incident: RunIncident, its: Put): QuestionRecord => {
  const { asked_at, attempt, choices, replaced, revision } = its;
  const { rule } = incident.decision;
  const { default_choice, expires_at } = replaced ?? termsOf(incident, its);
  return {
    revision,
    incident: incident.id,
    attempt,
    rule,
    choices,
    default_choice: Choices.defaultOf(choices, Choices.mayRepeat(incident), default_choice),
    asked_at,
    ...(expires_at === undefined ? {} : { expires_at }),
  };
};

/** What the process that asks says of the question's deadline and default. */
const termsOf = (
  { decision: { default_choice, rule } }: RunIncident,
  { asked_at, terms }: Put,
): Pick<QuestionRecord, "default_choice" | "expires_at"> => {
  const wanted = terms?.defaults?.[rule] ?? default_choice;
  const expiryMs = expiryOf(terms?.expiryMs);
  return {
    ...(wanted === undefined ? {} : { default_choice: wanted }),
    ...(expiryMs === undefined ? {} : { expires_at: asked_at + expiryMs }),
  };
};

/** The question as a person is asked it, from its record. */
export const fromRecord = (
  { asked_at, choices, default_choice, expires_at, revision, rule }: QuestionRecord,
  incident: RunIncident,
): Question => ({
  run_id: incident.run_id,
  revision,
  incident: incident.id,
  rule,
  message: incident.message,
  may_repeat: Choices.mayRepeat(incident),
  choices,
  default_choice: default_choice ?? "stop",
  asked_at: asked_at ?? incident.at,
  ...(expires_at === undefined ? {} : { expires_at }),
  decision: incident.decision,
});

/**
 * How long a question is open, as far as a record can hold it: without an end, and with one that is no number, it never
 * expires.
 *
 * @param given milliseconds
 */
export const expiryOf = (given: number | undefined): number | undefined =>
  given !== undefined && given >= 0 && given <= expiryMsMax ? given : undefined;

/** Longest expiry in milliseconds, a thousand years: with today's date it is a number that every record holds. */
const expiryMsMax = 1_000 * 365 * 86_400_000;

/** An answer to the newest question of a run. */
export interface Answer {
  readonly run_id: string;
  readonly revision: number;
  readonly choice: Choice;
  readonly by: AnsweredBy;
}

const sentences = {
  unknown_run: "no such run is on record",
  run_ended: "the run has ended",
  no_question: "the run has not asked anything",
  stale_revision: "that question was replaced by a newer one",
  already_answered: "the question was answered before",
  not_offered: "the question does not offer this choice",
  facts_grown: "more has happened since the question was asked; it will be asked again",
  expired: "the question has expired, and its default counts",
  not_expired: "the question has not expired yet",
} as const;

/** Why an answer does not count. */
export type AnswerRefusal = keyof typeof sentences;

/** An answer was refused, and nothing was done. `message` says what holds instead. */
export class AnswerRefused extends Schema.TaggedError<AnswerRefused>()("AnswerRefused", {
  reason: Schema.Literals([
    "unknown_run",
    "run_ended",
    "no_question",
    "stale_revision",
    "already_answered",
    "not_offered",
    "facts_grown",
    "expired",
    "not_expired",
  ]),
  run_id: Schema.String,
  message: Schema.String,
}) {}

/**
 * Judges an answer.
 *
 * @param record the run as it stands; undefined when it is not known
 * @param now wall clock, milliseconds since the epoch; an expired question takes nothing but its default, by its expiry
 * @returns why the answer is refused; undefined when it counts
 */
export const refusal = (record: RunRecord | undefined, answer: Answer, now: number): AnswerRefused | undefined => {
  const { choice, revision, run_id } = answer;
  if (record === undefined) return refused("unknown_run", run_id, "");
  if (record.state === "ended") return refused("run_ended", run_id, record.end?.reason ?? "");
  const question = record.questions.at(-1);
  if (question === undefined) return refused("no_question", run_id, "");
  if (question.revision !== revision)
    return refused("stale_revision", run_id, `it is revision ${question.revision} now`);
  if (question.answer !== undefined) return refused("already_answered", run_id, question.answer);
  if (!question.choices.includes(choice)) return refused("not_offered", run_id, question.choices.join(", "));
  if (grown(record, question)) return refused("facts_grown", run_id, "");
  const expired = question.expires_at !== undefined && question.expires_at <= now;
  if (answer.by === "expiry" && !expired) return refused("not_expired", run_id, "");
  if (expired && (answer.by !== "expiry" || choice !== expiryChoice(question))) {
    return refused("expired", run_id, expiryChoice(question));
  }
  return undefined;
};

/** What a question takes when it expires. A default that it does not offer is never taken: `stop` is. */
export const expiryChoice = ({
  choices,
  default_choice = "stop",
}: Pick<QuestionRecord, "choices" | "default_choice">): Choice =>
  choices.includes(default_choice) ? default_choice : "stop";

/** Whether the run went on without the answer, or its facts on record say more than those that were decided on. */
const grown = (record: RunRecord, question: QuestionRecord): boolean => {
  if (record.state === "live") return true;
  const newest = newestIncident(record);
  if (newest === undefined) return false;
  if (newest.id !== question.incident) return true;
  const attempt = record.attempts.find((it) => it.attempt === newest.attempt);
  return attempt !== undefined && !stands(attempt.facts, newest);
};

const refused = (reason: AnswerRefusal, run_id: string, detail: string): AnswerRefused =>
  new AnswerRefused({
    reason,
    run_id,
    message: `${run_id}: ${sentences[reason]}${detail === "" ? "" : ` (${detail})`}`,
  });
