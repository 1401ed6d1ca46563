/** Describes an open question: the failure, the possible answers, the effect of each answer, and the result if no one answers. */
import type { Choice } from "../domain/Decision.ts";
import type { RunIncident } from "../domain/RunIncident.ts";
import * as Choices from "../policy/Choices.ts";
import { openQuestion, type QuestionRecord, type RunRecord } from "../recorder/RunRecord.ts";
import { evidenceOf, type RefusalStory, refusalOf } from "./SeamWords.ts";
import { formatRelative } from "./Times.ts";

/** Maximum calls that are named one by one. */
const namedMax = 6;

/** Calls that a `retry` could run again. */
export interface RepeatableCalls {
  readonly named: ReadonlyArray<{ readonly call: string; readonly tool: string | undefined }>;
  /** Number of further calls. */
  readonly more: number;
}

/** An open question, with everything that a person needs for an answer. */
export interface OpenQuestion {
  readonly question: QuestionRecord;
  /** The incident in question; undefined if it is no longer on record. */
  readonly incident: RunIncident | undefined;
  /** Description of what happened, in a sentence. */
  readonly message: string;
  /** Reason that the shown text does not continue automatically; undefined if that was not refused. */
  readonly refusal: RefusalStory | undefined;
  /** Choice that is taken when the question expires. */
  readonly unattended: Choice;
  /** Everything that a `retry` could repeat, for programs: call keys and fixed phrases. Unlike `named` in `repeats`, it is complete. */
  readonly mayRepeat: ReadonlyArray<string>;
  /** Calls that a `retry` could run again; undefined if there are none. */
  readonly repeats: RepeatableCalls | undefined;
}

/** Returns the open question of a run; undefined if there is none. */
export const openQuestionOf = (record: RunRecord): OpenQuestion | undefined => {
  const question = openQuestion(record);
  if (question === undefined) return undefined;
  const incident = incidentOf(record, question);
  const mayRepeat = mayRepeatOf(question, incident);
  return {
    question,
    incident,
    message: incident?.message ?? `The rule ${question.rule} asks.`,
    refusal: incident === undefined ? undefined : refusalOf(evidenceOf(record, incident.attempt)),
    unattended: question.default_choice ?? "stop",
    mayRepeat,
    repeats: findRepeats(mayRepeat, incident),
  };
};

/** Returns the incident that a question is about; undefined if it is no longer on record. */
export const incidentOf = (record: RunRecord, question: QuestionRecord): RunIncident | undefined =>
  record.incidents.find(({ id }) => id === question.incident);

/** Lists what a retry may repeat. If the incident is no longer on record, the worst is assumed, so that the retry needs a confirmation. */
const mayRepeatOf = ({ choices }: QuestionRecord, incident: RunIncident | undefined): ReadonlyArray<string> => {
  if (!choices.includes("retry")) return [];
  return incident === undefined ? [Choices.unknownTools] : Choices.mayRepeat(incident);
};

const findRepeats = (all: ReadonlyArray<string>, incident: RunIncident | undefined): RepeatableCalls | undefined => {
  if (all.length === 0) return undefined;
  const named = all.slice(0, namedMax).map((call) => ({
    call,
    tool: incident?.decision.calls?.find((it) => it.call === call)?.tool,
  }));
  return { named, more: all.length - named.length };
};

/** Lists what a `retry` could run again, for example `bash (0.1), tools that the provider runs and 2 more`. */
export const describeRepeats = ({ more, named }: RepeatableCalls): string => {
  const names = named.map(({ call, tool }) => (tool === undefined ? call : `${tool} (${call})`));
  return `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
};

/**
 * Describes in a sentence the result if no one answers.
 *
 * @param now wall-clock time, in milliseconds since the epoch
 * @param choice returns the name of a choice: its title for a button, or its stored word for a command
 */
export const expiryOf = (
  { question, unattended }: OpenQuestion,
  now: number,
  choice: (of: Choice) => string,
): string =>
  question.expires_at === undefined
    ? "It stays open until a person answers."
    : `Without an answer, ${choice(unattended)} applies ${formatRelative(question.expires_at, now)}.`;
