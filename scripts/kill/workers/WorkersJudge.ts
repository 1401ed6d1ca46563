/**
 * Judges what a gateway with workers did of a stream, and what it left behind: by the provider's own log, by the bytes that its client
 * has, by what its person was told, and last by its records.
 */

import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import { slownessMax } from "../Slowness.ts";
import type { Tried } from "../streams/StreamClient.ts";
import * as Laws from "../streams/StreamLaws.ts";
import { deltasIn, deltasOf } from "../streams/StreamStates.ts";
import type { PlannedStream, WorkersFault } from "./WorkersPlan.ts";

/** What a person was told who answered a question. */
export interface Answered {
  readonly run: string;
  readonly revision: number;
  readonly choice: string;
  /** The status of the response; 0 where the connection broke. */
  readonly status: number;
  /** It was on its way before the last thing happened. */
  readonly isEarly: boolean;
}

/** What a record says of a run, as far as it is judged here. */
export interface WorkersDecided extends Laws.Decided, Pick<RunRecord, "questions"> {
  /** Attempts on record. */
  readonly attempts: number;
}

/** What is left of a stream. */
export interface WorkersRemains extends Laws.StreamRemains {
  readonly fault: WorkersFault;
  readonly stream: PlannedStream;
  /** Its worker is one that something happened to, or it is not known which worker it had. */
  readonly isStruck: boolean;
  /** The store was away. */
  readonly isAway: boolean;
  readonly records: ReadonlyArray<WorkersDecided>;
  /** Another request under the same idempotency key, when all is over. */
  readonly other: Tried | undefined;
  readonly answers: ReadonlyArray<Answered>;
}

/** What is left of a plan's processes. */
export interface WorkersEnd {
  /** Processes that live when the gateway has ended. */
  readonly leftBehind: ReadonlyArray<number>;
  /** How the last supervisor ended. */
  readonly exit: string;
  /** How long each `serve` took that has followed another one to listen at the port, in milliseconds. */
  readonly succeededMs: ReadonlyArray<number>;
  /** What is left in the temporary directory. */
  readonly files: ReadonlyArray<string>;
  /** What SQLite says of the file. */
  readonly integrity: string;
  readonly slowness: number;
}

/** A successor listens within so long, in milliseconds: its own start takes the most of it. */
const succeededMsMax = 20_000;

/** What is wrong with a stream; empty where nothing is. */
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

/** What is wrong with what is left of the processes. */
export const problemsOfEnd = (it: WorkersEnd): ReadonlyArray<string> => [
  ...it.leftBehind.map((pid) => `process ${pid} lives when its gateway has ended`),
  ...(it.exit === "0" ? [] : [`the gateway ended with ${it.exit}`]),
  ...it.succeededMs
    .filter((ms) => ms > succeededMsMax * it.slowness)
    .map((ms) => `a successor listened behind ${ms} ms`),
  ...it.files.map((name) => `${name} is left in the temporary directory`),
  ...(it.integrity === "ok" ? [] : [`the file: ${it.integrity}`]),
];

/**
 * Whether a machine that is slower than everything allows for explains what a stream's client has noticed: a worker had no time to beat
 * within its lease, its client heard nothing for a while, its store was away for longer, or a shutdown was over before there was a
 * successor that took an answer.
 */
const isStarved = ({ isAway, records, slowness, state, stream }: WorkersRemains): boolean =>
  slowness >= slownessMax &&
  (stream.client === "impatient" ||
    (isAway && state === "asking") ||
    records.some((record) => Laws.isTaken(record) || record.end?.reason === "lifecycle_closed"));

/** A client of a worker to which nothing happens has the whole response by its one request; or its person's word that it has to stop. */
const touched = (it: WorkersRemains): ReadonlyArray<string> => {
  const { state, stream, tries } = it;
  const [first] = tries;
  if (first === undefined || isStarved(it)) return [];
  const due = state === "asking" && stream.choice === "stop" ? "told" : "whole";
  const isAll = due === "told" || deltasIn(first.text).length === deltasOf[state];
  return tries.length === 1 && first.outcome === due && isAll
    ? []
    : [`its client has noticed: ${tries.map(Laws.toldOf).join("; ")}`];
};

/**
 * A request of the provider is a client's, continues a text, or is what a person has ordered: of a run that another process has
 * decided only where the order came before.
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
  return asked > most ? [`the provider was asked ${asked} times, of which ${most} have a reason`] : [];
};

/** Each request of the provider is an attempt on record, while there is a store. */
const unrecorded = ({ asked, isAway, records }: WorkersRemains): ReadonlyArray<string> => {
  const attempts = records.reduce((sum, it) => sum + it.attempts, 0);
  return !isAway && records.length > 0 && asked > attempts
    ? [`the provider was asked ${asked} times, of which ${attempts} are on record`]
    : [];
};

/** A key that is used again for something else is no repeat. */
const mistaken = ({ other }: WorkersRemains): ReadonlyArray<string> =>
  other === undefined || (other.outcome === "whole" && !other.isAttached)
    ? []
    : [`another request under its key had ${other.isAttached ? "its response" : "no response"}: ${Laws.toldOf(other)}`];

/** A question takes one answer. */
const takenTwice = ({ answers }: WorkersRemains): ReadonlyArray<string> =>
  [...Map.groupBy(answers, ({ revision, run }) => `${run}, question ${revision}`)].flatMap(([question, all]) => {
    const taken = all.filter(({ status }) => status === 200).length;
    return taken > 1 ? [`${question}: ${taken} answers were taken`] : [];
  });

/** An answer that a person was told is taken stands on its question, whatever became of the run. */
const forgotten = ({ answers, records }: WorkersRemains): ReadonlyArray<string> =>
  answers
    .filter(({ status }) => status === 200)
    .flatMap(({ choice, revision, run }) => {
      const record = records.find(({ run_id }) => run_id === run);
      const question = record?.questions.find((it) => it.revision === revision);
      return question?.answer === choice && question.answered_by === "person"
        ? []
        : [`${run}, question ${revision}: ${choice} was taken, and its record says ${wordsOf(question)}`];
    });

const wordsOf = (question: RunRecord["questions"][number] | undefined): string =>
  question?.answer === undefined
    ? "nothing"
    : `${question.answer}${question.answered_by === "person" ? "" : ` by ${question.answered_by}`}`;
