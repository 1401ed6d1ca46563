/**
 * Describes what a recorder remembers of a run, and the entries that build it.
 *
 * A recorder is a fold over entries: `RunRecord.apply` is that fold. It is pure, and every layer builds its records with it.
 * Entries are transitions, never deltas, and hold facts, lengths and labels, never content.
 */
import * as Schema from "effect/Schema";
import { AttemptFacts } from "../domain/AttemptFacts.ts";
import { Choice, Rule } from "../domain/Decision.ts";
import { callsMax, evidenceFirstMax, evidenceLastMax, incidentsMax, Label, Milliseconds } from "../domain/Limits.ts";
import { AttemptMode, Budget, Provider, RunFacts } from "../domain/RunFacts.ts";
import { Evidence, IncidentStatus, RunEnd, RunIncident } from "../domain/RunIncident.ts";
import { SeamProof } from "../domain/SeamWords.ts";
import { AttemptRecord, AttemptRequest, addAttempt, joinedAt, raise } from "./AttemptLog.ts";
import { mark, openIncident, settle, settledBy } from "./IncidentLog.ts";

export { AttemptRecord, AttemptRequest, attemptsMax } from "./AttemptLog.ts";

/** Whose word settled a call of unknown outcome: a person's, or that of the tool's own `verify`. */
export const VerdictBy = Schema.Literals(["person", "verify"]);
export type VerdictBy = typeof VerdictBy.Type;

/** What a call of unknown outcome turned out to have done. */
export const CallVerdict = Schema.Literals(["it_ran", "it_did_not_run"]);
export type CallVerdict = typeof CallVerdict.Type;

/** A runtime call that was handed over whole. Its phase stands in its attempt's facts; `id` is the provider's, a label. */
export const CallRecord = Schema.Struct({
  attempt: Schema.Natural,
  call: Label,
  id: Label,
  tool: Label,
  verdict: Schema.optionalKey(CallVerdict),
  verdict_by: Schema.optionalKey(VerdictBy),
});
export type CallRecord = typeof CallRecord.Type;

/** What answered a question: a person, its expiry (with the default), or a program's configuration. */
export const AnsweredBy = Schema.Literals(["person", "expiry", "program"]);
export type AnsweredBy = typeof AnsweredBy.Type;

/** A question that was put to a person, and its answer. Times are wall clock, in milliseconds since the epoch. */
export const QuestionRecord = Schema.Struct({
  revision: Schema.Natural,
  incident: Label,
  /** The last attempt that had started when it was asked: a later one shows that the answer was acted on. */
  attempt: Schema.optionalKey(Schema.Natural),
  rule: Rule,
  choices: Schema.Array(Choice),
  /** What an unattended question takes when it expires; `stop` when left out. */
  default_choice: Schema.optionalKey(Choice),
  asked_at: Schema.optionalKey(Milliseconds),
  /** From then on only the default is taken; never when left out. */
  expires_at: Schema.optionalKey(Milliseconds),
  answer: Schema.optionalKey(Choice),
  answered_by: Schema.optionalKey(AnsweredBy),
});
export type QuestionRecord = typeof QuestionRecord.Type;

/**
 * Why no process drives a run that has not ended. `question`: it waits for an answer. `interrupted`: its caller went away
 * unsigned; `recover` decides it. `recovered`: its process died and it was decided. `answered`: it was answered meanwhile.
 * The last two wait for `StreamProcessor.takeUp`.
 */
export const Parked = Schema.Literals(["question", "interrupted", "recovered", "answered"]);
export type Parked = typeof Parked.Type;

/** Bounded evidence: the first records, the last ones, every terminal candidate among them, and how many lie between. */
export const EvidenceLog = Schema.Struct({
  first: Schema.Array(Evidence),
  last: Schema.Array(Evidence),
  omitted: Schema.Natural,
});
export type EvidenceLog = typeof EvidenceLog.Type;

/** What a run waits for now. */
export const RunWait = Schema.Struct({
  for: Schema.Literals(["path", "cooldown"]),
  /** Wall clock, milliseconds since the epoch. */
  since: Milliseconds,
  until: Schema.optionalKey(Milliseconds),
});
export type RunWait = typeof RunWait.Type;

/** Everything that is remembered of one run. */
export const RunRecord = Schema.Struct({
  run_id: Label,
  provider: Provider,
  /** Wall clock, milliseconds since the epoch. */
  started_at: Milliseconds,
  /** `asking` and `parked` runs outlive their process; `parked` says why no process drives one. */
  state: Schema.Literals(["live", "asking", "parked", "ended"]),
  parked: Schema.optionalKey(Parked),
  /** How often a process took the run over. */
  resumes: Schema.Natural,
  /** How often it had been taken over when a person last answered a question of it: the limit counts from there. */
  resumes_at_answer: Schema.optionalKey(Schema.Natural),
  budget: Schema.optionalKey(Budget),
  /** The name of the policy that decides. */
  policy: Schema.optionalKey(Label),
  /** Keyed digest of what the first request was built from: a resume must bring the same. */
  transcript: Schema.optionalKey(Label),
  /** The failed run whose request this one repeats, by a client's own retry. */
  retry_of: Schema.optionalKey(Label),
  /** Tells two starts under one id apart: a random text of the process that started the run. */
  started_by: Schema.optionalKey(Label),
  attempts: Schema.Array(AttemptRecord),
  attempts_omitted: Schema.Natural,
  calls: Schema.Array(CallRecord),
  evidence: EvidenceLog,
  incidents: Schema.Array(RunIncident),
  incidents_omitted: Schema.Natural,
  questions: Schema.Array(QuestionRecord),
  /** What the run has waited for paths and cooldowns, its open wait not counted, in milliseconds. */
  waited_ms: Schema.optionalKey(Milliseconds),
  waiting: Schema.optionalKey(RunWait),
  /** The group whose budget the run shares. */
  group: Schema.optionalKey(Label),
  end: Schema.optionalKey(RunEnd),
});
export type RunRecord = typeof RunRecord.Type;

/** One thing that happened. All entries of one `RunRecorder.write` are committed together. */
export const Entry = Schema.TaggedUnion({
  RunStarted: {
    run_id: Label,
    provider: Provider,
    at: Milliseconds,
    budget: Schema.optionalKey(Budget),
    policy: Schema.optionalKey(Label),
    transcript: Schema.optionalKey(Label),
    retry_of: Schema.optionalKey(Label),
    started_by: Schema.optionalKey(Label),
    group: Schema.optionalKey(Label),
  },
  AttemptStarted: {
    attempt: Schema.Natural,
    mode: AttemptMode,
    at_ms: Milliseconds,
    facts: AttemptFacts,
    request: Schema.optionalKey(AttemptRequest),
    run: Schema.optionalKey(RunFacts),
    route: Schema.optionalKey(Label),
    /** Where its text has to join what was shown: `at` counts UTF-16 code units of that. */
    seam: Schema.optionalKey(Schema.Struct({ at: Schema.Natural, proof: SeamProof })),
  },
  /** The run begins or ends a wait: `waited_ms` is what it has waited before, `wait` the one that is open. */
  RunWaited: { waited_ms: Milliseconds, wait: Schema.optionalKey(RunWait) },
  /** The run repeats the request of a failed one, as another process knew: what `RunStarted` says where this process knows it. */
  RunRepeats: { retry_of: Label },
  /** The text of an attempt was joined to what was shown before. */
  RunContinued: { attempt: Schema.Natural, at: Schema.Natural, proof: SeamProof },
  FactsRaised: { attempt: Schema.Natural, facts: AttemptFacts },
  /** A runtime call is handed over whole; its facts come in the same write. */
  CallHandedOver: { attempt: Schema.Natural, call: Label, id: Label, tool: Label },
  /** Settles a call of unknown outcome; its facts come in the same write. */
  CallJudged: { attempt: Schema.Natural, call: Label, tool: Label, verdict: CallVerdict, by: VerdictBy },
  /** `omitted` counts records before this one that were never written. */
  EvidenceNoted: { evidence: Evidence, omitted: Schema.optionalKey(Schema.Natural) },
  IncidentOpened: { incident: RunIncident },
  IncidentMarked: { incident: Label, status: IncidentStatus, answer: Schema.optionalKey(Choice) },
  QuestionAsked: { question: QuestionRecord },
  QuestionAnswered: { revision: Schema.Natural, answer: Choice, by: Schema.optionalKey(AnsweredBy) },
  /** What follows in the write was planned on this open question. Where it was answered meanwhile, nothing of the write is taken. */
  QuestionStillOpen: { revision: Schema.Natural },
  /** No process drives the run any more, and it has not ended. */
  RunParked: { reason: Parked },
  /** A process drives the run again. */
  RunResumed: {},
  RunEnded: { end: RunEnd },
});
export type Entry = typeof Entry.Type;

/** Why an entry does not fit the record that it is written to. */
export type Misfit = "unknown_run" | "run_exists" | "run_ended" | "answered";

/**
 * Folds one entry into a run's record.
 *
 * An entry that is on record changes nothing: a write whose outcome its caller does not know (a connection that was cut
 * behind the commit) is made again.
 *
 * @param record the record so far; undefined before `RunStarted`
 * @param entry what happened
 * @returns the new record, or why the entry does not fit. A run has one terminal state (law L7): after `RunEnded` only
 *   late facts (tools run after their stream completed), late seams, late incidents, their evidence and marks are taken.
 */
export const apply = (record: RunRecord | undefined, entry: Entry): RunRecord | Misfit => {
  if (record === undefined) return entry._tag === "RunStarted" ? started(entry) : "unknown_run";
  if (isOnRecord(record, entry)) return record;
  switch (entry._tag) {
    case "RunStarted":
      return "run_exists";
    case "EvidenceNoted":
      return { ...record, evidence: note(passedOver(record.evidence, entry.omitted), entry.evidence) };
    case "IncidentOpened":
      return { ...record, ...openIncident(record, entry.incident) };
    case "IncidentMarked":
      return {
        ...record,
        incidents: settledBy(
          record.end,
          record.incidents.map((incident) => mark(incident, entry)),
        ),
      };
    case "FactsRaised":
      return { ...record, attempts: record.attempts.map((it) => raise(it, entry)) };
    case "RunContinued":
      return { ...record, attempts: record.attempts.map((it) => joinedAt(it, entry)) };
    case "RunRepeats":
      // The first word stays: a run repeats one.
      return record.retry_of === undefined ? { ...record, retry_of: entry.retry_of } : record;
    case "QuestionStillOpen":
      return isAnswered(record, entry.revision) ? "answered" : record;
    case "CallHandedOver":
    case "CallJudged":
      return { ...record, calls: callsWith(record.calls, entry) };
    default:
      return record.state === "ended" ? "run_ended" : applyLive(record, entry);
  }
};

/**
 * Folds the entries of one write into a run's record, all of them or none.
 *
 * @param isGivenBack the process that writes has given the run back
 * @returns the new record, or why the write is refused; `fenced`: a write that comes late would drive the run on. Undefined
 *   where there is no record, and nothing that would begin one
 */
export const applyAll = (
  record: RunRecord | undefined,
  entries: ReadonlyArray<Entry>,
  isGivenBack = false,
): RunRecord | undefined | Misfit | "fenced" => {
  let folded = record;
  for (const entry of entries) {
    const next = apply(folded, entry);
    if (typeof next === "string") return next;
    if (isGivenBack && next !== folded && drives(entry)) return "fenced";
    folded = next;
  }
  return folded;
};

/** The detail of the evidence that the response of a run went on to its end in a process that has lost the run. */
export const flowedOn = "flowed_on";

/** Whether a write says nothing but that, of a run that has ended: a process that has lost the run may say so. */
export const isLastWord = (record: RunRecord | undefined, entries: ReadonlyArray<Entry>): boolean =>
  record?.state === "ended" &&
  entries.every((entry) => entry._tag === "EvidenceNoted" && isFlowedOn(entry.evidence)) &&
  entries.length > 0;

/** Whether a step says that. */
export const isFlowedOn = ({ detail, event }: Evidence): boolean => event === "end" && detail === flowedOn;

/** Whether an entry was folded before. Facts, seams, calls and incidents are joined to the record whenever they come. */
const isOnRecord = (record: RunRecord, entry: Entry): boolean => {
  switch (entry._tag) {
    case "RunStarted":
      return entry.started_by !== undefined && entry.started_by === record.started_by;
    case "AttemptStarted":
      return record.attempts.some(({ attempt }) => attempt === entry.attempt);
    case "IncidentOpened":
      return record.incidents.some(({ id }) => id === entry.incident.id);
    case "QuestionAsked":
      return record.questions.some(({ revision }) => revision === entry.question.revision);
    case "QuestionAnswered":
      return record.questions.some(({ answer, revision }) => revision === entry.revision && answer === entry.answer);
    case "RunEnded":
      return record.end !== undefined && isSameEnd(record.end, entry.end);
    default:
      return false;
  }
};

const isAnswered = ({ questions }: RunRecord, asked: number): boolean =>
  questions.some(({ answer, revision }) => revision === asked && answer !== undefined);

const isSameEnd = (one: RunEnd, other: RunEnd): boolean =>
  one.at === other.at &&
  one.state === other.state &&
  one.reason === other.reason &&
  one.attempts === other.attempts &&
  one.incident === other.incident;

type LiveEntry = Extract<
  Entry,
  {
    readonly _tag:
      | "AttemptStarted"
      | "RunWaited"
      | "QuestionAsked"
      | "QuestionAnswered"
      | "RunParked"
      | "RunResumed"
      | "RunEnded";
  }
>;

const applyLive = (record: RunRecord, entry: LiveEntry): RunRecord => {
  switch (entry._tag) {
    case "AttemptStarted":
      return { ...driven(still(record)), state: "live", ...addAttempt(record, entry) };
    case "RunWaited":
      return {
        ...still(record),
        // Of two writes the later one may come first: what was waited only grows.
        waited_ms: Math.max(record.waited_ms ?? 0, entry.waited_ms),
        ...(entry.wait === undefined ? {} : { waiting: entry.wait }),
      };
    case "QuestionAsked":
      return { ...record, state: "asking", questions: [...record.questions.slice(1 - incidentsMax), entry.question] };
    case "QuestionAnswered":
      return answered(record, entry);
    case "RunParked":
      return parked(still(record), entry.reason);
    case "RunResumed":
      return {
        ...driven(still(record)),
        state: record.state === "asking" ? "asking" : "live",
        resumes: record.resumes + 1,
      };
    case "RunEnded":
      return {
        ...driven(still(record)),
        state: "ended",
        end: entry.end,
        incidents: settle(record.incidents, entry.end),
      };
  }
};

/** Whether an entry says that the run goes on: only a process that began or claimed the run may write that. */
export const drives = ({ _tag }: Entry): boolean => _tag === "RunResumed" || _tag === "AttemptStarted";

/** Whether a process that writes this entry drives the run no more. */
export const givesBack = ({ _tag }: Entry): boolean => _tag === "RunParked" || _tag === "RunEnded";

/** The record without an open wait. */
const still = (record: RunRecord): RunRecord => {
  // Almost every record has none, and needs no copy.
  if (record.waiting === undefined) return record;
  const { waiting: _, ...rest } = record;
  return rest;
};

/** The record without the word that no process drives the run. */
const driven = (record: RunRecord): RunRecord => {
  if (record.parked === undefined) return record;
  const { parked: _, ...rest } = record;
  return rest;
};

/** The newest question of a run, while it is open. */
export const openQuestion = (record: RunRecord): QuestionRecord | undefined => {
  const newest = record.questions.at(-1);
  return record.state === "ended" || newest?.answer !== undefined ? undefined : newest;
};

/** A run that waits for an answer that came in the same moment waits for a resume. */
const parked = (record: RunRecord, reason: Parked): RunRecord => {
  if (reason !== "question") return { ...record, state: "parked", parked: reason };
  return openQuestion(record) === undefined
    ? { ...record, state: "parked", parked: "answered" }
    : { ...record, state: "asking", parked: "question" };
};

const isEnd = (answer: Choice): boolean => answer === "stop" || answer === "accept";

/** An answer counts for an open question of its revision and for no other; only the newest question keeps a run asking. */
const answered = (record: RunRecord, entry: Extract<Entry, { readonly _tag: "QuestionAnswered" }>): RunRecord => {
  const questions = record.questions.map((it) =>
    it.revision === entry.revision && it.answer === undefined
      ? { ...it, answer: entry.answer, ...(entry.by === undefined ? {} : { answered_by: entry.by }) }
      : it,
  );
  const word = {
    ...(entry.by === "person" && record.resumes > 0 ? { resumes_at_answer: record.resumes } : {}),
    // Who lets the run go on lets it wait anew.
    ...(record.waited_ms === undefined || isEnd(entry.answer) ? {} : { waited_ms: 0 }),
  };
  const open = questions.at(-1);
  if (open !== undefined && open.answer === undefined) return { ...record, ...word, questions };
  return record.parked === undefined
    ? { ...record, ...word, questions, state: "live" }
    : { ...record, ...word, questions, state: "parked", parked: "answered" };
};

const started = (entry: Extract<Entry, { readonly _tag: "RunStarted" }>): RunRecord => ({
  run_id: entry.run_id,
  provider: entry.provider,
  started_at: entry.at,
  state: "live",
  resumes: 0,
  ...(entry.budget === undefined ? {} : { budget: entry.budget }),
  ...(entry.policy === undefined ? {} : { policy: entry.policy }),
  ...(entry.transcript === undefined ? {} : { transcript: entry.transcript }),
  ...(entry.retry_of === undefined ? {} : { retry_of: entry.retry_of }),
  ...(entry.started_by === undefined ? {} : { started_by: entry.started_by }),
  ...(entry.group === undefined ? {} : { group: entry.group }),
  attempts: [],
  attempts_omitted: 0,
  calls: [],
  evidence: { first: [], last: [], omitted: 0 },
  incidents: [],
  incidents_omitted: 0,
  questions: [],
});

type CallEntry = Extract<Entry, { readonly _tag: "CallHandedOver" | "CallJudged" }>;

/** A call stands once, and its first verdict stays. */
const callsWith = (calls: ReadonlyArray<CallRecord>, entry: CallEntry): ReadonlyArray<CallRecord> => {
  const { attempt, call, tool } = entry;
  const verdict = entry._tag === "CallJudged" ? { verdict: entry.verdict, verdict_by: entry.by } : {};
  const known = calls.find((it) => it.attempt === attempt && it.call === call);
  if (known === undefined) {
    const id = entry._tag === "CallHandedOver" ? entry.id : "";
    const ofAttempt = calls.reduce((count, it) => (it.attempt === attempt ? count + 1 : count), 0);
    return ofAttempt < callsMax ? [...calls, { attempt, call, id, tool, ...verdict }] : calls;
  }
  return known.verdict !== undefined ? calls : calls.map((it) => (it === known ? { ...it, ...verdict } : it));
};

const passedOver = (log: EvidenceLog, omitted = 0): EvidenceLog =>
  omitted === 0 ? log : { ...log, omitted: log.omitted + omitted };

/** Adds evidence between its two anchors: the first records stay, the last ones roll. */
const note = (log: EvidenceLog, evidence: Evidence): EvidenceLog => {
  // `concat` makes a list of just that length. A spread leaves room for more, which a waiting run would hold.
  if (log.first.length < evidenceFirstMax) return { ...log, first: log.first.concat([evidence]) };
  if (log.last.length < evidenceLastMax) return { ...log, last: [...log.last, evidence] };
  // A disputed ending is judged by its terminal candidate: that goes last.
  const victim = log.last.findIndex((it) => it.event !== "terminal_candidate");
  const last = log.last.toSpliced(Math.max(victim, 0), 1);
  return { first: log.first, last: [...last, evidence], omitted: log.omitted + 1 };
};
