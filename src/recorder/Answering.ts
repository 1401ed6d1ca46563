/**
 * Says whether an answer counts: for the newest open question, once, and only while nothing has happened since it was asked.
 */
import * as Schema from "effect/Schema";
import type { Choice } from "../domain/Decision.ts";
import { newestIncident, stands } from "./Orphan.ts";
import type { QuestionRecord, RunRecord } from "./RunRecord.ts";

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
export const refusal = (
  record: RunRecord | undefined,
  answer: {
    readonly run_id: string;
    readonly revision: number;
    readonly choice: Choice;
    readonly by: "person" | "expiry" | "program";
  },
  now: number,
): AnswerRefused | undefined => {
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
export const expiryChoice = ({ choices, default_choice = "stop" }: QuestionRecord): Choice =>
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
