/**
 * Says that the response of a run which another process has ended went on to its end where it had begun.
 */
import type { Evidence } from "../domain/RunIncident.ts";
import { isFlowedOn, type RunRecord } from "../recorder/RunRecord.ts";

/** The sentence, without a capital and a full stop. */
export const flowedOnWords = "its response went on to its end all the same, in the process that had begun it";

/** The step that says so; undefined where there is none. */
export const flowedOnOf = ({ evidence }: RunRecord): Evidence | undefined =>
  evidence.last.find(isFlowedOn) ?? evidence.first.find(isFlowedOn);
