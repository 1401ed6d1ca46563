/**
 * Says records as the API does: a run in a list, an open question.
 */
import * as Repeats from "../../policy/Repeats.ts";
import { openQuestion, type RunRecord } from "../../recorder/RunRecord.ts";
import type { OpenQuestion, RunSummary } from "./Api.ts";

/** A run in a list. */
export const summaryOf = (record: RunRecord): RunSummary => {
  const { attempts, end, incidents, parked, provider, retry_of, run_id, started_at, state } = record;
  const rule = incidents.findLast(({ status }) => status !== "late")?.decision.rule;
  return {
    run_id,
    provider,
    started_at,
    state,
    ...(parked === undefined ? {} : { parked }),
    attempts: attempts.length + record.attempts_omitted,
    incidents: incidents.length + record.incidents_omitted,
    recovered: end?.state === "completed" && incidents.some(({ status }) => status === "recovered"),
    ...(rule === undefined ? {} : { rule }),
    ...(retry_of === undefined ? {} : { retry_of }),
    ...(end === undefined ? {} : { end }),
  };
};

/** The open question of a run; undefined where there is none. */
export const questionOf = (record: RunRecord): OpenQuestion | undefined => {
  const open = openQuestion(record);
  if (open === undefined) return undefined;
  const incident = record.incidents.find(({ id }) => id === open.incident);
  const { asked_at, choices, default_choice = "stop", expires_at, revision, rule } = open;
  return {
    run_id: record.run_id,
    provider: record.provider,
    revision,
    rule,
    message: incident?.message ?? "",
    choices,
    default_choice,
    ...(asked_at === undefined ? {} : { asked_at }),
    ...(expires_at === undefined ? {} : { expires_at }),
    may_repeat: incident === undefined ? [] : Repeats.of(incident),
    calls: incident?.decision.calls ?? [],
  };
};
