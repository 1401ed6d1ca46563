/**
 * Summarises a run in a few words, for one line in a list of runs.
 */
import type { Choice, Rule } from "../domain/Decision.ts";
import type { Prices } from "../domain/Prices.ts";
import type { SeamProof } from "../domain/SeamWords.ts";
import type { RunRecord } from "../recorder/RunRecord.ts";
import { openQuestionOf } from "./Question.ts";
import { incidentStatus, isCancelled, type RunStatus, statusOf } from "./RunStatus.ts";
import { type RunTokens, tokensOf } from "./RunTokens.ts";
import { unknownOutcomes } from "./UnknownOutcomes.ts";

/** Summary of one run, as `runs list --json` prints it. */
export interface RunSummary {
  readonly run_id: string;
  /** Wall-clock time, in milliseconds since the epoch. */
  readonly started_at: number;
  readonly provider: string;
  readonly model?: string;
  readonly standing: Exclude<RunStatus, "recovered" | "interrupted" | "cancelled">;
  readonly attempts: number;
  readonly incidents: number;
  /** Number of times that a process took the run over. */
  readonly resumes: number;
  /** Outcome in a word or two, from the run's end or its last rule. */
  readonly outcome: string;
  readonly tokens: RunTokens;
  /** Seams at which its text continued, oldest first; omitted if there are none. */
  readonly seams?: ReadonlyArray<{ readonly attempt: number; readonly at: number; readonly proof: SeamProof }>;
  /** Tools that may have changed something and have an unknown outcome; omitted if there are none. */
  readonly unknown_outcomes?: ReadonlyArray<string>;
  readonly question?: {
    readonly revision: number;
    readonly rule: Rule;
    readonly choices: ReadonlyArray<Choice>;
    readonly default_choice: Choice;
    readonly expires_at?: number;
  };
}

/**
 * Summarises a run.
 *
 * @param orphans ids of undecided runs without an owner
 * @param prices prices of models, if any
 */
export const summaryOf = (record: RunRecord, orphans: ReadonlySet<string>, prices?: Prices): RunSummary => {
  const { model } = record.provider;
  const status = statusOf(record, orphans);
  return {
    run_id: record.run_id,
    started_at: record.started_at,
    provider: record.provider.id,
    ...(model === undefined ? {} : { model }),
    standing: standingOf(status),
    attempts: attemptsOf(record),
    incidents: record.incidents.length + record.incidents_omitted,
    resumes: record.resumes,
    outcome: outcomeOf(record, orphans),
    tokens: tokensOf(record, prices),
    ...seamsOf(record),
    ...unknownOf(record),
    ...questionOf(record),
  };
};

const standingOf = (status: RunStatus): RunSummary["standing"] => {
  if (status === "recovered") return "completed";
  if (status === "cancelled") return "stopped";
  return status === "interrupted" ? "parked" : status;
};

const unknownOf = (record: RunRecord): Pick<RunSummary, "unknown_outcomes"> => {
  const tools = unknownOutcomes(record);
  return tools.length === 0 ? {} : { unknown_outcomes: tools };
};

const seamsOf = ({ attempts }: RunRecord): Pick<RunSummary, "seams"> => {
  const seams = attempts.flatMap(({ attempt, seam }) =>
    seam?.proven === true ? [{ attempt, at: seam.at, proof: seam.proof }] : [],
  );
  return seams.length === 0 ? {} : { seams };
};

const questionOf = (record: RunRecord): Pick<RunSummary, "question"> => {
  const open = openQuestionOf(record);
  if (open === undefined) return {};
  const { choices, expires_at, revision, rule } = open.question;
  return {
    question: {
      revision,
      rule,
      choices,
      default_choice: open.unattended,
      ...(expires_at === undefined ? {} : { expires_at }),
    },
  };
};

/** Returns the number of attempts of a run, including those that are no longer on record. */
export const attemptsOf = ({ attempts, attempts_omitted }: RunRecord): number => attempts.length + attempts_omitted;

/** Returns the rule of a run's newest decision, excluding late ones. */
export const lastRuleOf = ({ incidents }: RunRecord): Rule | undefined =>
  incidents.findLast(({ status }) => status !== "late")?.decision.rule;

const outcomeOf = (record: RunRecord, orphans: ReadonlySet<string>): string => {
  const { end, incidents, parked, questions } = record;
  const rule = lastRuleOf(record);
  if (end?.state === "stopped") return end.reason;
  if (isCancelled(record)) return "user_cancelled";
  if (end?.state === "completed") {
    const recovered = incidents.findLast((incident) => incidentStatus(incident, end) === "recovered");
    return recovered?.decision.rule ?? rule ?? "-";
  }
  if (record.state === "asking") return questions.at(-1)?.rule ?? rule ?? "-";
  if (parked === "answered") return `answered ${questions.at(-1)?.answer ?? ""}, to resume`;
  if (parked === "recovered") return `${rule ?? "decided"}, to resume`;
  return orphans.has(record.run_id) ? "its process is gone" : (rule ?? "-");
};
