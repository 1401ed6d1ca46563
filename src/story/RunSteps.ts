/**
 * Describes a run as steps, each with a unique key, so that a second read shows which steps are new. The JSON of `runs watch --json`
 * contains these texts, so calls, phases and rules appear with their stored names.
 */
import type { AttemptRecord, CallRecord, QuestionRecord, RunRecord } from "../recorder/RunRecord.ts";
import { endWord, isCancelled } from "./RunStatus.ts";
import { evidenceOf, formatCharacters } from "./SeamWords.ts";
import { formatLasting, formatTimes } from "./Times.ts";
import { unknownWords } from "./UnknownOutcomes.ts";
import { answerers, modelName, modes, parkings, type Tone, witnesses } from "./Words.ts";

/** One step of a run. */
export interface RunStep {
  /** Unique within its run, and the same each time the run is read. */
  readonly key: string;
  /** Wall-clock time, in milliseconds since the epoch; undefined if it is not on record. */
  readonly at?: number;
  readonly text: string;
  readonly tone?: Tone;
}

/** Lists the recorded steps of a run, oldest first. A step without a time keeps its place in the record. */
export const runSteps = (record: RunRecord): ReadonlyArray<RunStep> => [
  { key: "started", at: record.started_at, text: `started with ${modelName(record.provider)}` },
  ...record.attempts.flatMap((attempt) => attemptSteps(attempt, record)),
  ...takeoverSteps(record),
  ...record.calls.flatMap(callWordSteps),
  ...parkingSteps(record),
  ...endSteps(record),
];

const attemptSteps = (attempt: AttemptRecord, record: RunRecord): ReadonlyArray<RunStep> => [
  {
    key: `attempt ${attempt.attempt}`,
    at: record.started_at + attempt.started_ms,
    text: `attempt ${attempt.attempt}: ${modes[attempt.mode]}`,
  },
  ...seamSteps(attempt, record),
  ...attempt.facts.tools
    .filter(({ executor, phase }) => executor === "runtime" && listedPhases.has(phase))
    .map(({ call, phase, tool }) => ({
      key: `call ${attempt.attempt} ${call} ${phase}`,
      text: `${tool} (${call}): ${phase}`,
    })),
  ...record.incidents
    .filter((incident) => incident.attempt === attempt.attempt)
    .flatMap(({ at, decision, id }): ReadonlyArray<RunStep> => {
      const wait = decision.delay_ms > 0 ? `, in ${formatLasting(decision.delay_ms)}` : "";
      const text = `broke: ${decision.action} by ${decision.rule}${wait}`;
      const asked = record.questions.filter((question) => question.incident === id);
      return [{ key: `incident ${id}`, at, text, tone: "ask" }, ...asked.flatMap(questionSteps)];
    }),
];

/** Describes the seam of the attempt, and why its text was not continued after it broke. */
const seamSteps = ({ attempt, seam }: AttemptRecord, record: RunRecord): ReadonlyArray<RunStep> => {
  const own = evidenceOf(record, attempt);
  const moment = own.find(({ detail, event }) => event === "seam" && detail === seam?.proof)?.at_ms;
  const at = moment === undefined ? {} : { at: record.started_at + moment };
  const joined = seam?.proven !== true ? [] : [`continues after ${formatCharacters(seam.at)}, proven by ${seam.proof}`];
  const fault = own.find(({ detail, event }) => event === "seam" && detail !== seam?.proof);
  return [
    ...joined.map((text): RunStep => ({ key: `seam ${attempt}`, ...at, text, tone: "good" })),
    ...(fault === undefined
      ? []
      : [
          {
            key: `seam_unproven ${attempt}`,
            at: record.started_at + fault.at_ms,
            text: `does not join the shown text: ${fault.detail}`,
            tone: "ask",
          } as const,
        ]),
    ...own
      .filter(({ event }) => event === "seam_refused")
      .map(
        ({ at_ms, detail }): RunStep => ({
          key: `seam_refused ${attempt} ${at_ms}`,
          at: record.started_at + at_ms,
          text: `its text is not continued: ${detail ?? "no reason on record"}`,
          tone: "ask",
        }),
      ),
  ];
};

const listedPhases: ReadonlySet<string> = new Set(["handed_over", "dispatched", "outcome_unknown", "settled"]);

const questionSteps = ({
  answer,
  answered_by,
  asked_at,
  choices,
  revision,
}: QuestionRecord): ReadonlyArray<RunStep> => [
  {
    key: `question ${revision}`,
    ...(asked_at === undefined ? {} : { at: asked_at }),
    text: `asks: ${choices.join(" · ")}`,
    tone: "ask",
  },
  ...(answer === undefined
    ? []
    : [{ key: `answer ${revision}`, text: `answered ${answer} by ${answerers[answered_by ?? "program"]}` }]),
];

const takeoverSteps = ({ resumes }: RunRecord): ReadonlyArray<RunStep> =>
  resumes === 0 ? [] : [{ key: `resumed ${resumes}`, text: `a process took it over (${formatTimes(resumes)} so far)` }];

const callWordSteps = ({ attempt, call, tool, verdict, verdict_by }: CallRecord): ReadonlyArray<RunStep> =>
  verdict === undefined
    ? []
    : [
        {
          key: `verdict ${attempt} ${call}`,
          text: `${tool} (${call}): ${verdict}, according to ${witnesses[verdict_by ?? "person"]}`,
        },
      ];

const parkingSteps = ({ parked, questions, resumes }: RunRecord): ReadonlyArray<RunStep> =>
  parked === undefined
    ? []
    : [{ key: `parked ${parked} ${resumes} ${questions.length}`, text: parkings[parked], tone: "ask" }];

const endSteps = (record: RunRecord): ReadonlyArray<RunStep> => {
  const { end, started_at } = record;
  if (end === undefined) return [];
  const unknown = unknownWords(record);
  const after = `${endWord(record, end)} after ${formatLasting(Math.max(0, end.at - started_at))}`;
  const tone = end.state === "completed" && !isCancelled(record) ? "good" : "bad";
  return [{ key: "end", at: end.at, text: unknown === undefined ? after : `${after}; ${unknown}`, tone }];
};
