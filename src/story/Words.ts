/**
 * Translates the stored words of a record for a person: modes, actions, choices, phases, effects and evidence.
 *
 * A stored word never changes, and its translation is defined only here. The command line and the page only add layout.
 */
import type { ToolPhase } from "../domain/AttemptFacts.ts";
import type { Action, Choice } from "../domain/Decision.ts";
import type { Failure } from "../domain/Failure.ts";
import type { AttemptMode, Provider } from "../domain/RunFacts.ts";
import type { Evidence, IncidentStatus } from "../domain/RunIncident.ts";
import type { ToolEffect } from "../domain/SideEffects.ts";
import type { AnsweredBy, AttemptRecord, CallVerdict, Parked, VerdictBy } from "../recorder/RunRecord.ts";

/** State of an entry, which determines its colour. `ask`: a person must act; `run`: it is in progress. */
export type Tone = "quiet" | "run" | "good" | "ask" | "bad";

/** Request of an attempt, by mode. */
export const modes: Readonly<Record<AttemptMode, string>> = {
  first: "the first request",
  replay: "the same request again",
  continue: "a request that continues from what is settled",
  resume: "the same response from where it broke",
};

/** Request of an attempt that continues shown text. */
export const continuationRequest = "a request that continues the text where it was cut";

/** Describes the request of an attempt, and its route if it is not the run's first one. */
export const requestOf = ({
  mode,
  request,
  route,
  seam,
}: Pick<AttemptRecord, "mode" | "request" | "route" | "seam">): string => {
  const again = mode === "replay" && request === "continue";
  const sent = again ? "the same continuation again" : seam === undefined ? modes[mode] : continuationRequest;
  return route === undefined ? sent : `${sent}, by the route ${route}`;
};

/** Words for each action. */
export const actions: Readonly<Record<Action, { readonly word: string; readonly tone: Tone }>> = {
  auto_retry_once: { word: "retry automatically", tone: "good" },
  ask_user: { word: "ask a person", tone: "ask" },
  do_not_retry: { word: "do not retry", tone: "bad" },
};

/** Title and effect of each choice. */
export const choices: Readonly<Record<Choice, { readonly title: string; readonly does: string }>> = {
  retry: { title: "Retry", does: "ask again from the start; shown output is withdrawn" },
  continue: { title: "Continue", does: "continue from what is settled; open calls count as not run or unknown" },
  it_ran: { title: "It ran", does: "the tool did its work: continue from there" },
  it_did_not_run: { title: "It did not run", does: "the tool did nothing: continue without it" },
  accept: { title: "Accept", does: "keep the partial response, and end the run" },
  stop: { title: "Stop", does: "end the run" },
};

/** Words for the source of an answer. */
export const answerers: Readonly<Record<AnsweredBy, string>> = {
  person: "a person",
  expiry: "its expiry",
  program: "the program",
};

/** Words for the verdict on a call of unknown outcome. */
export const callWords: Readonly<Record<CallVerdict, string>> = { it_ran: "it ran", it_did_not_run: "it did not run" };

/** Words for the source of a verdict. */
export const witnesses: Readonly<Record<VerdictBy, string>> = { person: "a person", verify: "the tool itself" };

/** Words for the outcome of a decision. */
export const incidentStatuses: Readonly<Record<IncidentStatus, string>> = {
  open: "The decision has not been carried out yet.",
  acted_on: "It was carried out.",
  recovered: "It was carried out, and a later attempt completed the run.",
  superseded: "A newer decision came before it was carried out.",
  late: "It was found after the run had continued, so nothing follows from it.",
  final: "It ended the run.",
};

/** Reasons why a run waits without a process. */
export const parkings: Readonly<Record<Parked, string>> = {
  question: "parked until its question is answered",
  interrupted: "its caller left; `recover` decides it",
  recovered: "decided after a crash; it waits for StreamProcessor.takeUp",
  answered: "answered; it waits for StreamProcessor.takeUp",
};

/** Words for the phase of a call: its current phase, and its phase at the moment when its attempt broke. */
export const phases: Readonly<Record<ToolPhase, { readonly now: string; readonly had: string; readonly tone: Tone }>> =
  {
    input_started: { now: "being written", had: "was being written", tone: "quiet" },
    input_complete: { now: "written", had: "was written", tone: "quiet" },
    handed_over: { now: "handed over", had: "was handed over and had not been started", tone: "quiet" },
    dispatched: { now: "started", had: "had been started", tone: "ask" },
    outcome_unknown: { now: "outcome unknown", had: "had been started, with an unknown outcome", tone: "bad" },
    settled: { now: "has run", had: "had run", tone: "good" },
  };

/** Words for the effect of a tool. */
export const effects: Readonly<Record<ToolEffect, string>> = {
  read_only: "only reads",
  mutating: "changes something",
  unknown: "has unknown effects",
};

/** Words for each kind of evidence, without its detail. */
export const events: Readonly<Record<Evidence["event"], string>> = {
  attempt_started: "attempt started",
  delivery: "request",
  progress: "response",
  shown: "shown",
  call: "call",
  terminal_candidate: "end marker",
  watchdog: "clock expired",
  suspended: "machine slept",
  waiting: "waits to send",
  seam: "seam",
  seam_refused: "text not continued",
  source_ended: "stream ended",
  failure: "broke",
  abandoned: "abandoned",
  late_part_refused: "late part refused",
  late_settle: "tool settled late",
  reader: "reader",
  decision: "decision",
  answer: "answered",
  cancel: "cancelled",
  close: "session closed",
  end: "run ended",
};

/** Names a failure by its kind, and its clock, reason, code or status. Everything except the kind comes from outside. */
export const failureName = (failure: Failure): string =>
  [
    failure.kind,
    "clock" in failure ? failure.clock : undefined,
    "reason" in failure ? failure.reason : undefined,
    "by" in failure ? `by ${failure.by}` : undefined,
    "operation" in failure ? failure.operation : undefined,
    failure.code,
    failure.status,
  ]
    .filter((word) => word !== undefined)
    .join(" · ");

/** Names the provider and model of a run: `provider/model`. */
export const modelName = ({ id, model }: Provider): string => (model === undefined ? id : `${id}/${model}`);

/** Explains how a program can take up a run that waits for it. */
export const takeUpHint = (runId: string): string =>
  `Your program takes it up with StreamProcessor.takeUp(${JSON.stringify(runId)}, …).`;

/** Returns the string with a capital first letter. */
export const capitalize = (text: string): string => `${text.slice(0, 1).toUpperCase()}${text.slice(1)}`;
