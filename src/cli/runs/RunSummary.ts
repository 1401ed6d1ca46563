/**
 * Says in a few words how a run stands: what `runs list` shows a line of.
 */

import type { Choice, Rule } from "../../domain/Decision.ts";
import { openQuestion, type RunRecord } from "../../recorder/RunRecord.ts";
import type { Tone } from "../terminal/Ink.ts";

/** How a run stands. `orphan`: its process is gone and nobody has decided what that means. */
export type Standing = "asking" | "orphan" | "parked" | "live" | "completed" | "stopped";

/** One run in a few words. */
export interface RunSummary {
  readonly run_id: string;
  /** Wall clock, milliseconds since the epoch. */
  readonly started_at: number;
  readonly provider: string;
  readonly model?: string;
  readonly standing: Standing;
  readonly attempts: number;
  readonly incidents: number;
  /** How often a process took the run over. */
  readonly resumes: number;
  /** What its last rule or its end says. */
  readonly outcome: string;
  readonly question?: {
    readonly revision: number;
    readonly rule: Rule;
    readonly choices: ReadonlyArray<Choice>;
    readonly default_choice: Choice;
    readonly expires_at?: number;
  };
}

/**
 * The summary of a run.
 *
 * @param orphans ids of runs that nobody drives and nobody has decided
 */
export const summaryOf = (record: RunRecord, orphans: ReadonlySet<string>): RunSummary => {
  const question = openQuestion(record);
  const { model } = record.provider;
  return {
    run_id: record.run_id,
    started_at: record.started_at,
    provider: record.provider.id,
    ...(model === undefined ? {} : { model }),
    standing: standingOf(record, orphans),
    attempts: record.attempts.length + record.attempts_omitted,
    incidents: record.incidents.length + record.incidents_omitted,
    resumes: record.resumes,
    outcome: outcomeOf(record, orphans),
    ...(question === undefined
      ? {}
      : {
          question: {
            revision: question.revision,
            rule: question.rule,
            choices: question.choices,
            default_choice: question.default_choice ?? "stop",
            ...(question.expires_at === undefined ? {} : { expires_at: question.expires_at }),
          },
        }),
  };
};

/** How a run stands in one word. */
export const standingOf = (record: RunRecord, orphans: ReadonlySet<string>): Standing => {
  if (record.end !== undefined) return record.end.state;
  if (record.state === "asking") return "asking";
  if (orphans.has(record.run_id)) return "orphan";
  return record.state === "parked" ? "parked" : "live";
};

const outcomeOf = (record: RunRecord, orphans: ReadonlySet<string>): string => {
  const { end, incidents, parked, questions } = record;
  const rule = incidents.findLast(({ status }) => status !== "late")?.decision.rule;
  if (end?.state === "stopped") return end.reason;
  if (end?.state === "completed") {
    return incidents.findLast(({ status }) => status === "recovered")?.decision.rule ?? rule ?? "-";
  }
  if (record.state === "asking") return questions.at(-1)?.rule ?? rule ?? "-";
  if (parked === "answered") return `answered ${questions.at(-1)?.answer ?? ""}, to resume`;
  if (parked === "recovered") return `${rule ?? "decided"}, to resume`;
  return orphans.has(record.run_id) ? "lost its process" : (rule ?? "-");
};

/** The mark before a standing and its colour. */
export const marks: Readonly<Record<Standing, { readonly mark: string; readonly tone: Tone; readonly word: string }>> =
  {
    asking: { mark: "?", tone: "careful", word: "asks you" },
    orphan: { mark: "!", tone: "bad", word: "orphan" },
    parked: { mark: "‖", tone: "careful", word: "parked" },
    live: { mark: "▸", tone: "strong", word: "live" },
    completed: { mark: "✓", tone: "good", word: "completed" },
    stopped: { mark: "■", tone: "quiet", word: "stopped" },
  };
