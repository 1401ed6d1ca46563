/** Copies the parts of a run's record other than its incidents: attempts, calls and questions, field by field. */
import { incidentsMax, toolRowsMax } from "../../domain/Limits.ts";
import type { AttemptRecord, CallRecord, QuestionRecord, RunRecord } from "../RunRecord.ts";
import type { RunExport } from "./ExportDocument.ts";
import type { ExportIds, ExportLabels } from "./ExportLabel.ts";
import * as Values from "./ExportValues.ts";

/** Copies the state of a run. Leaves out the digest of its transcript, because equal digests would reveal equal prompts. */
export const copyStanding = ({ budget, parked, policy, resumes, state }: RunRecord, labels: ExportLabels) => ({
  state,
  ...(parked === undefined ? {} : { parked }),
  resumes,
  ...(budget === undefined ? {} : { budget: Values.copyBudget(budget) }),
  ...(policy === undefined ? {} : { policy: labels.of(policy) }),
});

/** Copies an attempt, with names in its facts replaced. */
export const copyAttempt = (it: AttemptRecord, labels: ExportLabels): RunExport["attempts"][number] => {
  const { request, run, seam } = it;
  return {
    attempt: it.attempt,
    mode: it.mode,
    started_ms: it.started_ms,
    facts: Values.copyFacts(it.facts, labels),
    ...(request === undefined ? {} : { request }),
    ...(run === undefined ? {} : { run: Values.copyRun(run) }),
    ...(seam === undefined ? {} : { seam: { at: seam.at, proof: seam.proof, proven: seam.proven } }),
  };
};

/** Copies the newest questions, at most `incidentsMax`, with the ids of their incidents numbered. */
export const copyQuestions = (
  list: ReadonlyArray<QuestionRecord>,
  labels: ExportIds,
): ReadonlyArray<RunExport["questions"][number]> =>
  list.slice(-incidentsMax).map((it) => {
    const { answer, answered_by, asked_at, attempt: after, default_choice, expires_at } = it;
    return {
      revision: it.revision,
      incident: labels.of(it.incident),
      rule: it.rule,
      choices: Values.copyChoices(it.choices),
      ...(after === undefined ? {} : { attempt: after }),
      ...(default_choice === undefined ? {} : { default_choice }),
      ...(asked_at === undefined ? {} : { asked_at }),
      ...(expires_at === undefined ? {} : { expires_at }),
      ...(answer === undefined ? {} : { answer }),
      ...(answered_by === undefined ? {} : { answered_by }),
    };
  });

/** Copies the newest calls, at most `toolRowsMax`, with names replaced. */
export const copyCalls = (list: ReadonlyArray<CallRecord>, labels: ExportLabels): NonNullable<RunExport["calls"]> =>
  list.slice(-toolRowsMax).map((it) => {
    const { verdict, verdict_by } = it;
    return {
      attempt: it.attempt,
      call: labels.of(it.call),
      id: labels.of(it.id),
      tool: labels.of(it.tool),
      ...(verdict === undefined ? {} : { verdict }),
      ...(verdict_by === undefined ? {} : { verdict_by }),
    };
  });
