/** Names the failure of an attempt in a word or two, and explains the end of a run in a sentence, for each kind of failure and each end. */
import type { Choice } from "../domain/Decision.ts";
import type { Failure } from "../domain/Failure.ts";
import type { RunEnd, RunIncident } from "../domain/RunIncident.ts";
import type { QuestionRecord, RunRecord } from "../recorder/RunRecord.ts";
import { answerers, choices, type Tone } from "./Words.ts";

/** Words for the failure of an attempt. `word` is shown on a small label, `title` before the sentence of the incident. */
export interface FailureWord {
  readonly word: string;
  readonly title: string;
  readonly tone: Tone;
}

const makeWord = (word: string, title: string, tone: Tone = "bad"): FailureWord => ({ word, title, tone });

const broke = makeWord("broke", "It broke");
const refused = makeWord("refused", "It was refused");
const turnedAway = makeWord("turned away", "It was turned away");
const notUsable = makeWord("not usable", "The response is not usable");

/** The new text could not be joined to the shown text. */
export const unjoined = makeWord("not joined", "Its text could not be joined");

/** A connection that was never established did not break, because no part of the request was sent. */
const notReached = makeWord("not reached", "It did not reach the provider");

const cancels: Readonly<Record<Extract<Failure, { readonly kind: "cancelled" }>["by"], FailureWord>> = {
  user: makeWord("cancelled", "It was cancelled", "quiet"),
  lifecycle: makeWord("closed", "Its session was closed", "quiet"),
  caller: makeWord("interrupted", "It was interrupted", "quiet"),
  provider: makeWord("cancelled", "The provider cancelled it"),
};

/** Words for a gateway's client that left, which is not necessarily a cancel. */
const clientLeft = makeWord("client left", "Its client left", "quiet");

/** Prefix of a gateway's run ids. */
const ofGateway = /^gw_/;

/**
 * Returns the words for the failure of an attempt.
 *
 * @param incident the attempt's incident
 */
export const failureWord = ({
  facts,
  failure,
  run_id,
}: Pick<RunIncident, "facts" | "failure" | "run_id">): FailureWord => {
  switch (failure.kind) {
    case "transport":
      return isUnsent(failure, facts) ? notReached : broke;
    case "stalled":
      return failure.clock === "connect" ? notReached : makeWord("stalled", "It stalled");
    case "rate_limited":
    case "overloaded":
      return turnedAway;
    case "rejected":
      return refused;
    case "server_error":
      return facts.progress === "none" ? refused : broke;
    case "truncated":
      return facts.progress === "none"
        ? makeWord("no response", "No response came")
        : makeWord("ended early", "It ended early");
    case "protocol":
      return failure.reason === "seam_unproven" ? unjoined : makeWord("damaged", "The response is damaged");
    case "invalid_tool_input":
    case "empty":
    case "refused":
    case "model_length":
      return notUsable;
    case "cancelled":
      return failure.by === "user" && ofGateway.test(run_id) ? clientLeft : cancels[failure.by];
    case "caller_failed":
      return makeWord("reader failed", "Its reader failed");
    case "crashed":
      return makeWord("process ended", "Its process ended");
    case "unknown":
      return broke;
  }
};

const isUnsent = (failure: Failure, { delivery }: RunIncident["facts"]): boolean =>
  failure.kind === "transport" && (failure.operation === "connect" || delivery === "not_sent");

/** Reasons why a run ended, for ends that no rule of the policy caused. */
const ends: Readonly<Record<string, string>> = {
  accepted_partial: "the partial response was accepted",
  record_failed: "the store did not accept an entry that had to be recorded before the run could continue",
  consumer_finished: "its reader had everything that it wanted",
  not_started: "its process ended before anything was sent",
  not_resumable: "no program could continue it",
  client_gone: "its client had left",
  process_lost: "its process was lost; its record may be incomplete, so nothing was decided",
  taken_over: "another process took it over",
  defect: "a defect in the program ended it",
};

/**
 * Explains why a run stopped, as a clause in lower case; undefined for a completed run.
 *
 * @param end the run's end
 */
export const stopWords = (record: RunRecord, end: RunEnd): string | undefined => {
  const { incidents, questions } = record;
  if (end.state === "completed") return undefined;
  const own = ends[end.reason];
  if (own !== undefined) return own;
  const incident = incidents.find(({ id }) => id === end.incident);
  const question = questions.findLast((it) => it.incident === end.incident);
  if (question?.answer !== undefined) return describeAnswer(question.answer, question);
  if (incident === undefined) return undefined;
  if (incident.decision.action === "ask_user")
    return isSettledUnasked(record, incident) ? noChoice : "it needed an answer, and there was no one to ask";
  return incident.decision.action === "do_not_retry" ? lowerFirst(reasonOf(incident)) : undefined;
};

const noChoice = "no answer could have changed what its client received, so we asked no question";

/** True if the run did not ask, because no answer could have changed anything for its client. */
const isSettledUnasked = ({ evidence }: RunRecord, { attempt }: RunIncident): boolean =>
  [...evidence.first, ...evidence.last].some(
    (it) => it.attempt === attempt && it.event === "answer" && it.detail === "no_choice_matters",
  );

const describeAnswer = (answer: Choice, { answered_by }: QuestionRecord): string =>
  answered_by === "expiry"
    ? `its question expired unanswered, and its default “${choices[answer].title}” applied`
    : `${answerers[answered_by ?? "program"]} answered “${choices[answer].title}”`;

/** Returns the part of an incident's sentence after the description of the failure. */
const reasonOf = ({ message }: RunIncident): string => {
  const [first = "", ...why] = message.split("; ");
  return why.length === 0 ? first : why.join("; ");
};

const lowerFirst = (text: string): string =>
  text.replace(/\.$/, "").replace(/^[A-Z]/, (letter) => letter.toLowerCase());

/**
 * Describes what a choice does for this incident. A retry withdraws nothing if nothing was shown, and a continuation follows the text if
 * text was shown last.
 *
 * @param incident the incident in question; undefined if the record has dropped it
 */
export const describeChoice = (choice: Choice, incident: RunIncident | undefined): string => {
  const { does } = choices[choice];
  if (incident === undefined) return does;
  if (choice === "retry" && incident.facts.shown === "nothing") return "ask again from the start";
  return choice === "continue" && isTextLast(incident) ? describeContinuation(incident) : does;
};

const isTextLast = ({ facts }: RunIncident): boolean =>
  facts.shown === "text" && facts.tools.length === 0 && facts.text_through >= facts.settled_through;

/** Describes a continuation. If shown text may be continued automatically, the seam must be proven. */
const describeContinuation = ({ run }: RunIncident): string =>
  run.continue_text === "auto"
    ? "continue after the shown text, and show only what is proven to come next"
    : "continue after the shown text, in the model's new words";
