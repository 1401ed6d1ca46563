/**
 * Tells an open question: what happened, what may be answered, what each answer does, and what comes when it is not answered.
 */
import type { Choice } from "../domain/Decision.ts";
import type { RunIncident } from "../domain/RunIncident.ts";
import * as Choices from "../policy/Choices.ts";
import { openQuestion, type QuestionRecord, type RunRecord } from "../recorder/RunRecord.ts";
import { evidenceOf, type RefusalStory, refusalOf } from "./SeamWords.ts";
import { relative } from "./Times.ts";

/** Most calls that are named one by one. */
const namedMax = 6;

/** What a `retry` could run again. */
export interface RepeatableCalls {
  readonly named: ReadonlyArray<{ readonly call: string; readonly tool: string | undefined }>;
  /** How many more there are. */
  readonly more: number;
}

/** An open question. */
export interface OpenQuestion {
  readonly question: QuestionRecord;
  /** What it is about; undefined where the record has dropped it. */
  readonly incident: RunIncident | undefined;
  /** What happened, in a sentence. */
  readonly message: string;
  /** Why the text that was shown does not go on by itself; undefined where that was not refused. */
  readonly refusal: RefusalStory | undefined;
  /** What is taken when it expires. */
  readonly unattended: Choice;
  /** The same as `repeats`, as the keys and words that programs read; all of them. */
  readonly mayRepeat: ReadonlyArray<string>;
  /** What a `retry` could run again; undefined where that is nothing. */
  readonly repeats: RepeatableCalls | undefined;
}

/** The open question of a run; undefined where there is none. */
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
    repeats: repeatsOf(mayRepeat, incident),
  };
};

/** The incident that a question is about; undefined where the record has dropped it. */
export const incidentOf = (record: RunRecord, question: QuestionRecord): RunIncident | undefined =>
  record.incidents.find(({ id }) => id === question.incident);

/** What a record does not tell any more is taken at its worst: its retry has to be confirmed too. */
const mayRepeatOf = ({ choices }: QuestionRecord, incident: RunIncident | undefined): ReadonlyArray<string> => {
  if (!choices.includes("retry")) return [];
  return incident === undefined ? [Choices.unknownTools] : Choices.mayRepeat(incident);
};

const repeatsOf = (all: ReadonlyArray<string>, incident: RunIncident | undefined): RepeatableCalls | undefined => {
  if (all.length === 0) return undefined;
  const named = all.slice(0, namedMax).map((call) => ({
    call,
    tool: incident?.decision.calls?.find((it) => it.call === call)?.tool,
  }));
  return { named, more: all.length - named.length };
};

/** What a `retry` could run again, in words: `bash (0.1), tools that the provider runs and 2 more`. */
export const repeatsText = ({ more, named }: RepeatableCalls): string => {
  const names = named.map(({ call, tool }) => (tool === undefined ? call : `${tool} (${call})`));
  return `${names.join(", ")}${more > 0 ? ` and ${more} more` : ""}`;
};

/**
 * What becomes of a question without an answer, in a sentence.
 *
 * @param now wall clock, milliseconds since the epoch
 * @param choice what its default is called here: by its title on a button, by its stored word where it is typed
 */
export const expiryOf = (
  { question, unattended }: OpenQuestion,
  now: number,
  choice: (of: Choice) => string,
): string =>
  question.expires_at === undefined
    ? "It stays open until a person answers."
    : `Without an answer it takes ${choice(unattended)} ${relative(question.expires_at, now)}.`;
