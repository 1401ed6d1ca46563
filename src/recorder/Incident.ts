/** Builds incidents and the entries that change their status, both for live runs and for runs whose process died. */
import type { Choice } from "../domain/Decision.ts";
import { type RunIncident, schemaVersion } from "../domain/RunIncident.ts";
import type { DecisionInput } from "../policy/DecisionInput.ts";
import { explain } from "../policy/Explanation.ts";
import type { RecoveryPolicy } from "../policy/RecoveryPolicy.ts";
import type { Entry } from "./RunRecord.ts";

/** The fields of an incident that are not part of the decision. */
export interface Circumstances extends Pick<RunIncident, "run_id" | "attempt" | "at" | "provider" | "status"> {
  /** Number of the incident in its run, from 1. */
  readonly number: number;
}

/** Decides, and returns the incident with the decision and all of its input (law L9). */
export const make = (
  policy: Pick<RecoveryPolicy, "name" | "decide">,
  input: DecisionInput,
  { at, attempt, number, provider, run_id, status }: Circumstances,
): RunIncident => {
  const decision = policy.decide(input);
  return {
    schema_version: schemaVersion,
    id: `${run_id}.${number}`,
    run_id,
    attempt,
    mode: input.run.mode,
    at,
    provider,
    ...input,
    policy: policy.name,
    decision,
    message: explain(decision, input.failure, input.facts),
    status,
  };
};

/** Builds the entry that marks an incident with its new status and, if there is one, the answer. */
export const markEntry = ({ id }: RunIncident, status: RunIncident["status"], answer?: Choice): Entry => ({
  _tag: "IncidentMarked",
  incident: id,
  status,
  ...(answer === undefined ? {} : { answer }),
});
