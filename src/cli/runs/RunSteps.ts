/**
 * Lists what has happened to a run as steps with a key each, so that two looks at it tell what is new.
 */
import type { AttemptRecord, QuestionRecord, RunRecord } from "../../recorder/RunRecord.ts";
import { modes } from "../terminal/FactWords.ts";
import type { Tone } from "../terminal/Ink.ts";
import { lasting } from "../terminal/When.ts";

/** One step. */
export interface RunStep {
  /** Unique within its run, and the same at every look. */
  readonly key: string;
  /** Wall clock, milliseconds since the epoch; undefined where the record does not say. */
  readonly at?: number;
  readonly text: string;
  readonly tone?: Tone;
}

/** Every step of a run that is on record, oldest first; steps without a time stand where they are found. */
export const runSteps = (record: RunRecord): ReadonlyArray<RunStep> => {
  const { end, parked, provider, resumes, started_at } = record;
  const name = provider.model === undefined ? provider.id : `${provider.id}/${provider.model}`;
  return [
    { key: "started", at: started_at, text: `started at ${name}` },
    ...record.attempts.flatMap((attempt) => attemptSteps(attempt, record)),
    ...(resumes === 0
      ? []
      : [
          {
            key: `resumed ${resumes}`,
            text: `a process took it over (${resumes === 1 ? "once" : `${resumes} times`} so far)`,
          },
        ]),
    ...record.calls.flatMap(
      ({ attempt, call, tool, verdict, verdict_by }): ReadonlyArray<RunStep> =>
        verdict === undefined
          ? []
          : [
              {
                key: `verdict ${attempt} ${call}`,
                text: `${tool} (${call}): ${verdict}, says ${verdict_by === "verify" ? "the tool itself" : "a person"}`,
              },
            ],
    ),
    ...(parked === undefined
      ? []
      : [
          {
            key: `parked ${parked} ${resumes} ${record.questions.length}`,
            text: parkings[parked],
            tone: "careful" as const,
          },
        ]),
    ...(end === undefined
      ? []
      : [
          {
            key: "end",
            at: end.at,
            text: `${end.state} (${end.reason}) after ${lasting(Math.max(0, end.at - started_at))}`,
            tone: end.state === "completed" ? ("good" as const) : ("bad" as const),
          },
        ]),
  ];
};

const attemptSteps = (attempt: AttemptRecord, record: RunRecord): ReadonlyArray<RunStep> => [
  {
    key: `attempt ${attempt.attempt}`,
    at: record.started_at + attempt.started_ms,
    text: `attempt ${attempt.attempt}: ${modes[attempt.mode]}`,
  },
  ...attempt.facts.tools
    .filter(({ executor, phase }) => executor === "runtime" && told.has(phase))
    .map(({ call, phase, tool }) => ({
      key: `call ${attempt.attempt} ${call} ${phase}`,
      text: `${tool} (${call}): ${phase}`,
    })),
  ...record.incidents
    .filter((incident) => incident.attempt === attempt.attempt)
    .flatMap(({ at, decision, id }): ReadonlyArray<RunStep> => {
      const asked = record.questions.filter((question) => question.incident === id);
      const step = `broke: ${decision.action} by ${decision.rule}${decision.delay_ms > 0 ? `, in ${lasting(decision.delay_ms)}` : ""}`;
      return [{ key: `incident ${id}`, at, text: step, tone: "careful" }, ...asked.flatMap(questionSteps)];
    }),
];

const told: ReadonlySet<string> = new Set(["handed_over", "dispatched", "outcome_unknown", "settled"]);

const questionSteps = (question: QuestionRecord): ReadonlyArray<RunStep> => [
  {
    key: `question ${question.revision}`,
    ...(question.asked_at === undefined ? {} : { at: question.asked_at }),
    text: `asks: ${question.choices.join(" · ")}`,
    tone: "careful",
  },
  ...(question.answer === undefined
    ? []
    : [
        {
          key: `answer ${question.revision}`,
          text: `answered ${question.answer} by ${{ person: "a person", expiry: "its expiry", program: "the program" }[question.answered_by ?? "program"]}`,
        },
      ]),
];

const parkings = {
  question: "parked until its question is answered",
  interrupted: "left by its caller; `recover` decides it",
  recovered: "decided after a crash; it waits for StreamProcessor.takeUp",
  answered: "answered; it waits for StreamProcessor.takeUp",
} as const;
