/**
 * Makes and marks incidents: the same for a living run and for one whose process is gone.
 */
import type { Choice } from "../domain/Decision.ts";
import { type RunIncident, schemaVersion } from "../domain/RunIncident.ts";
import type { DecisionInput } from "../policy/DecisionInput.ts";
import { explain } from "../policy/Explanation.ts";
import type { RecoveryPolicy } from "../policy/RecoveryPolicy.ts";
import type { Entry } from "./RunRecord.ts";

/** What an incident says besides what its decision takes. */
export interface Circumstances extends Pick<RunIncident, "run_id" | "attempt" | "at" | "provider" | "status"> {
  /** Counts the incidents of the run, from 1. */
  readonly number: number;
}

/** Decides, and makes the incident that holds the decision with everything that it was taken on (law L9). */
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

/** What became of an incident, and the answer that it was given. */
export const marked = ({ id }: RunIncident, status: RunIncident["status"], answer?: Choice): Entry => ({
  _tag: "IncidentMarked",
  incident: id,
  status,
  ...(answer === undefined ? {} : { answer }),
});
