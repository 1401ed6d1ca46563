/**
 * Describes a question to a person: its text, its default on expiry, and the conditions under which an answer counts.
 *
 * An answer counts once, for the newest open question, and only if nothing has happened since the question was asked.
 */
import type * as Duration from "effect/Duration";
import * as Schema from "effect/Schema";
import type { Choice, Decision, Rule } from "../domain/Decision.ts";
import { toMs } from "../domain/Durations.ts";
import type { RunIncident } from "../domain/RunIncident.ts";
import * as Choices from "../policy/Choices.ts";
import { isUnchangedSince, newestIncident } from "./Orphan.ts";
import { type AnsweredBy, openQuestion, type QuestionRecord, type RunRecord } from "./RunRecord.ts";

/** A question to a person: the broken run, a summary in one sentence and the possible answers. */
export interface Question {
  readonly run_id: string;
  /** Each question of a run has a higher revision than the previous one. An answer to an older revision is refused. */
  readonly revision: number;
  readonly incident: string;
  readonly rule: Rule;
  /** One sentence about the failure, whether a tool ran, and what is safe to do. */
  readonly message: string;
  /**
   * Effects that `retry` may repeat: keys of calls that ran or may have run, and descriptions of tools that the provider may have run
   * unseen. If the list is not empty, ask the person to confirm before you answer `retry`.
   */
  readonly may_repeat: ReadonlyArray<string>;
  /** Choices for the answer; at least two. */
  readonly choices: ReadonlyArray<Choice>;
  /** The answer that applies on expiry. */
  readonly default_choice: Choice;
  /** Wall clock, milliseconds since the epoch. */
  readonly asked_at: number;
  /** Time from which only the default is accepted. A question without it never expires. */
  readonly expires_at?: number;
  readonly decision: Decision;
}

/** Options that apply to every question of a `UserDecisions` layer. */
export interface QuestionTerms {
  /** Time until a question takes its default, as milliseconds or a duration. If omitted, questions never expire. */
  readonly expiryMs?: Duration.Input;
  /** Defaults by rule, in place of `stop`. If a question does not offer its default, `stop` applies. */
  readonly defaults?: Partial<Record<Rule, Choice>>;
}

/** The fields of a question that are not in its incident. */
export interface Put extends Required<Pick<QuestionRecord, "revision" | "attempt" | "choices" | "asked_at">> {
  readonly terms: QuestionTerms | undefined;
  /** The open question about the same incident that this question replaces. The new question keeps its deadline and default. */
  readonly replaced?: QuestionRecord | undefined;
}

/**
 * Builds the recorded question about an incident, both for live runs and for runs whose process died.
 *
 * The default is never a retry that may repeat an effect.
 */
export const make = (incident: RunIncident, its: Put): QuestionRecord => {
  const { asked_at, attempt, choices, replaced, revision } = its;
  const { rule } = incident.decision;
  const { default_choice, expires_at } = replaced ?? resolveTerms(incident, its);
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

/** Returns the deadline and default according to the asking process's options. */
const resolveTerms = (
  { decision: { default_choice, rule } }: RunIncident,
  { asked_at, terms }: Put,
): Pick<QuestionRecord, "default_choice" | "expires_at"> => {
  const wanted = terms?.defaults?.[rule] ?? default_choice;
  const expiryMs = normalizeExpiry(terms?.expiryMs);
  return {
    ...(wanted === undefined ? {} : { default_choice: wanted }),
    ...(expiryMs === undefined ? {} : { expires_at: asked_at + expiryMs }),
  };
};

/** Builds the question that a person sees from its record. */
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

/** Returns the open question of a run; undefined if there is none. */
export const open = (record: RunRecord): Question | undefined => {
  const question = openQuestion(record);
  // The incident of an open question is among the newest ones, which stay on record.
  const incident = record.incidents.findLast(({ id }) => id === question?.incident);
  return question === undefined || incident === undefined ? undefined : fromRecord(question, incident);
};

/**
 * Returns the expiry if it is valid. A question with no expiry, or a negative, excessive or NaN one, never expires.
 *
 * @param given time until expiry
 * @returns milliseconds
 */
export const normalizeExpiry = (given: Duration.Input | undefined): number | undefined => {
  const ms = given === undefined ? Number.NaN : toMs(given);
  return ms >= 0 && ms <= expiryMsMax ? ms : undefined;
};

/** Maximum expiry, in milliseconds: a thousand years. Added to the current date, it still fits into a record. */
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
  no_question: "the run has not asked a question",
  stale_revision: "a newer question has replaced this one",
  already_answered: "the question was already answered",
  not_offered: "the question does not offer this choice",
  facts_grown: "more has happened since the question was asked; it will be asked again",
  expired: "the question has expired, and its default applies",
  not_expired: "the question has not expired yet",
} as const;

/** The reason why an answer does not count. */
export type AnswerRefusal = keyof typeof sentences;

/** An answer was refused and nothing changed. `message` gives the reason. */
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
 * Checks an answer against the record.
 *
 * @param record current record of the run; undefined if unknown
 * @param now wall clock, in milliseconds since the epoch. After its expiry, a question accepts only its default
 * @returns the refusal; undefined if the answer counts
 */
export const checkAnswer = (record: RunRecord | undefined, answer: Answer, now: number): AnswerRefused | undefined => {
  const { choice, revision, run_id } = answer;
  if (record === undefined) return refuse("unknown_run", run_id, "");
  if (record.state === "ended") return refuse("run_ended", run_id, record.end?.reason ?? "");
  const question = record.questions.at(-1);
  if (question === undefined) return refuse("no_question", run_id, "");
  if (question.revision !== revision)
    return refuse("stale_revision", run_id, `the current revision is ${question.revision}`);
  if (question.answer !== undefined) return refuse("already_answered", run_id, question.answer);
  if (!question.choices.includes(choice)) return refuse("not_offered", run_id, question.choices.join(", "));
  if (isOutdated(record, question)) return refuse("facts_grown", run_id, "");
  const expired = question.expires_at !== undefined && question.expires_at <= now;
  if (answer.by === "expiry" && !expired) return refuse("not_expired", run_id, "");
  if (expired && (answer.by !== "expiry" || choice !== expiryChoice(question))) {
    return refuse("expired", run_id, expiryChoice(question));
  }
  return undefined;
};

/** Returns the answer that applies on expiry: the default, or `stop` if the question does not offer its default. */
export const expiryChoice = ({
  choices,
  default_choice = "stop",
}: Pick<QuestionRecord, "choices" | "default_choice">): Choice =>
  choices.includes(default_choice) ? default_choice : "stop";

/** True if the run continued without the answer, or the recorded facts have grown since the question was asked. */
const isOutdated = (record: RunRecord, question: QuestionRecord): boolean => {
  if (record.state === "live") return true;
  const newest = newestIncident(record);
  if (newest === undefined) return false;
  if (newest.id !== question.incident) return true;
  const attempt = record.attempts.find((it) => it.attempt === newest.attempt);
  return attempt !== undefined && !isUnchangedSince(attempt.facts, newest);
};

const refuse = (reason: AnswerRefusal, run_id: string, detail: string): AnswerRefused =>
  new AnswerRefused({
    reason,
    run_id,
    message: `${run_id}: ${sentences[reason]}${detail === "" ? "" : ` (${detail})`}`,
  });
