/**
 * Judges what a gateway with workers did with a stream, and what its processes left: first by the provider's log, the bytes of the
 * client and the responses to the person's answers, then by the records.
 */

import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { slownessMax } from "../Slowness.ts";
import type { Tried } from "../streams/StreamClient.ts";
import * as Laws from "../streams/StreamLaws.ts";
import { deltasIn, deltasOf } from "../streams/StreamStates.ts";
import type { PlannedStream, WorkersFault } from "./WorkersPlan.ts";

/** An answer of the person, and the response to it. */
export interface Answered {
  readonly run: string;
  readonly revision: number;
  readonly choice: string;
  /** The status of the response; 0 if the connection broke. */
  readonly status: number;
  /** True if it was sent before the last fault. */
  readonly isEarly: boolean;
}

/** The part of a run's record that is judged here. */
export interface WorkersDecided extends Laws.Decided, Pick<RunRecord, "questions"> {
  /** Number of attempts on record. */
  readonly attempts: number;
}

/** The evidence of a stream. */
export interface WorkersRemains extends Laws.StreamRemains {
  readonly fault: WorkersFault;
  readonly stream: PlannedStream;
  /** True if a fault hit its worker, or if its worker is unknown. */
  readonly isStruck: boolean;
  /** True if the store was unavailable during the round. */
  readonly isAway: boolean;
  readonly records: ReadonlyArray<WorkersDecided>;
  /** A different request under the same idempotency key, sent after the stream was over. */
  readonly other: Tried | undefined;
  readonly answers: ReadonlyArray<Answered>;
}

/** The evidence of a plan's processes. */
export interface WorkersEnd {
  /** Processes that are still alive after the gateway has ended. */
  readonly leftBehind: ReadonlyArray<number>;
  /** The exit code of the last supervisor, or the signal that ended it. */
  readonly exit: string;
  /** Time that each successive `serve` took to listen at the port, in milliseconds. */
  readonly succeededMs: ReadonlyArray<number>;
  readonly files: ReadonlyArray<string>;
  /** SQLite's verdict on the file; `ok` if it is intact. */
  readonly integrity: string;
  readonly slowness: number;
}

/** Maximum time until a successor listens, in milliseconds. Its own start takes most of it. */
const succeededMsMax = 20_000;

/** Finds everything that is wrong with a stream. */
export const problems = (it: WorkersRemains): ReadonlyArray<string> =>
  [
    ...(it.stream.client === "never" && (it.isStruck || isStarved(it)) ? [] : Laws.lost(it)),
    ...(it.isStruck ? [] : [...touched(it), ...Laws.stolen(it)]),
    ...Laws.twice(it),
    ...askedTooOften(it),
    ...unrecorded(it),
    ...Laws.repeated(it),
    ...mistaken(it),
    ...Laws.undecided(it),
    ...takenTwice(it),
    ...forgotten(it),
  ].map((problem) => `${it.fault}, ${it.stream.name}, ${it.stream.client}: ${problem}`);

/** Finds everything that is wrong with the processes. */
export const problemsOfEnd = (it: WorkersEnd): ReadonlyArray<string> => [
  ...it.leftBehind.map((pid) => `process ${pid} is alive after its gateway ended`),
  ...(it.exit === "0" ? [] : [`the gateway ended with ${it.exit}`]),
  ...it.succeededMs
    .filter((ms) => ms > succeededMsMax * it.slowness)
    .map((ms) => `a successor listened after ${ms} ms`),
  ...it.files.map((name) => `${name} is left in the temporary directory`),
  ...(it.integrity === "ok" ? [] : [`the file: ${it.integrity}`]),
];

/**
 * True if a slow machine explains what a stream's client noticed: a worker could not renew its lease, the client's response was silent
 * for too long, the store was away for longer than planned, or a shutdown ended before a successor could take the answer.
 */
const isStarved = ({ isAway, records, slowness, state, stream }: WorkersRemains): boolean =>
  slowness >= slownessMax &&
  (stream.client === "impatient" ||
    (isAway && state === "asking") ||
    records.some((record) => Laws.isTaken(record) || record.end?.reason === "lifecycle_closed"));

/** A client of an untouched worker must get the whole response with one request, or the person's decision to stop. */
const touched = (it: WorkersRemains): ReadonlyArray<string> => {
  const { state, stream, tries } = it;
  const [first] = tries;
  if (first === undefined || isStarved(it)) return [];
  const due = state === "asking" && stream.choice === "stop" ? "told" : "whole";
  const isAll = due === "told" || deltasIn(first.text).length === deltasOf[state];
  return tries.length === 1 && first.outcome === due && isAll
    ? []
    : [`its client noticed: ${tries.map(Laws.toldOf).join("; ")}`];
};

/**
 * Each provider request must belong to a client's request, a continuation or a person's retry. A retry of a run that another process
 * decided counts only if it was sent before the fault.
 */
const askedTooOften = ({ answers, asked, records, state, tries }: WorkersRemains): ReadonlyArray<string> => {
  const repeats = tries.slice(1).filter(({ isAttached, isTaken }) => isTaken && !isAttached).length;
  const ordered = records.filter((record) =>
    answers.some(
      ({ choice, isEarly, run, status }) =>
        run === record.run_id &&
        choice === "retry" &&
        (status === 200 || status === 0) &&
        (isEarly || !Laws.isTaken(record)),
    ),
  ).length;
  const most = 1 + (state === "continued" ? 1 : 0) + repeats + ordered;
  return asked > most ? [`the provider received ${asked} requests, of which ${most} have a reason`] : [];
};

/**
 * Each provider request must be an attempt on record, if the store was available. A killed worker may lose its last entries: one
 * attempt for each try that broke with it.
 */
const unrecorded = ({ asked, isAway, records, tries }: WorkersRemains): ReadonlyArray<string> => {
  const attempts = records.reduce((sum, it) => sum + it.attempts, 0);
  const lost = tries.filter(({ outcome }) => outcome === "broken").length;
  return !isAway && records.length > 0 && asked > attempts + lost
    ? [`the provider received ${asked} requests, of which ${attempts} are on record`]
    : [];
};

/** A key that is reused for a different request is not a repeat. */
const mistaken = ({ other }: WorkersRemains): ReadonlyArray<string> =>
  other === undefined || (other.outcome === "whole" && !other.isAttached)
    ? []
    : [`another request under its key had ${other.isAttached ? "its response" : "no response"}: ${Laws.toldOf(other)}`];

/** A question accepts one answer. */
const takenTwice = ({ answers }: WorkersRemains): ReadonlyArray<string> =>
  [...Map.groupBy(answers, ({ revision, run }) => `${run}, question ${revision}`)].flatMap(([question, all]) => {
    const taken = all.filter(({ status }) => status === 200).length;
    return taken > 1 ? [`${question}: ${taken} answers were accepted`] : [];
  });

/** An accepted answer must be on record at its question, whatever became of the run. */
const forgotten = ({ answers, records }: WorkersRemains): ReadonlyArray<string> =>
  answers
    .filter(({ status }) => status === 200)
    .flatMap(({ choice, revision, run }) => {
      const record = records.find(({ run_id }) => run_id === run);
      const question = record?.questions.find((it) => it.revision === revision);
      return question?.answer === choice && question.answered_by === "person"
        ? []
        : [`${run}, question ${revision}: ${choice} was accepted, but its record says ${wordsOf(question)}`];
    });

const wordsOf = (question: RunRecord["questions"][number] | undefined): string =>
  question?.answer === undefined
    ? "nothing"
    : `${question.answer}${question.answered_by === "person" ? "" : ` by ${question.answered_by}`}`;
