/**
 * Describes the JSON of an export, which a person may attach to a bug report and a service may collect.
 *
 * It uses the domain's names, so the five input values of an exported incident lead to the same decision again (law L9):
 * `RecoveryPolicy.decide(incident)`. Run ids and all text from outside are deliberately omitted.
 */
import * as Schema from "effect/Schema";
import { AttemptFacts } from "../../domain/AttemptFacts.ts";
import { Choice, Decision, Rule } from "../../domain/Decision.ts";
import { Failure } from "../../domain/Failure.ts";
import { Milliseconds } from "../../domain/Limits.ts";
import { AttemptMode, Budget, Provider, RunFacts } from "../../domain/RunFacts.ts";
import { Evidence, IncidentStatus, RunEnd } from "../../domain/RunIncident.ts";
import { SeamProof } from "../../domain/SeamWords.ts";
import { AnsweredBy, AttemptRequest, CallVerdict, Parked, VerdictBy } from "../RunRecord.ts";
import { nameCharactersMax } from "./ExportLabel.ts";

/**
 * Version of the export's JSON, raised if a reader of the previous version would misread the new one. Version 2 adds parked runs and the
 * data kept across processes: calls with verdicts, resumes, budget, policy, and the expiry and default of a question.
 */
export const exportVersion = 2;

/** Versions that the schemas accept. The fields added in version 2 are optional. */
const Version = Schema.Literals([1, exportVersion]);

/** Maximum length of an incident's message, in UTF-16 code units. Every message of the fixed set is shorter. */
const messageCharactersMax = 512;

const Name = Schema.String.check(Schema.isMaxLength(nameCharactersMax));

/** Schema of a broken attempt and its decision. `status` shows whether it was recovered or ended the run. */
export const ExportedIncident = Schema.Struct({
  /** `incident_1`, `incident_2`, …, in the order of the record. */
  id: Name,
  attempt: Schema.Natural,
  mode: AttemptMode,
  at: Milliseconds,
  status: IncidentStatus,
  /** True if a later attempt completed the run. */
  recovered: Schema.Boolean,
  message: Schema.String.check(Schema.isMaxLength(messageCharactersMax)),
  provider: Provider,
  policy: Name,
  decision: Decision,
  answer: Schema.optionalKey(Choice),
  facts: AttemptFacts,
  failure: Failure,
  run: RunFacts,
  budget: Budget,
  jitter: Schema.Finite,
});
export type ExportedIncident = typeof ExportedIncident.Type;

/** Schema of a single incident. */
export const IncidentExport = Schema.Struct({
  export: Schema.Literal("incident"),
  export_version: Version,
  incident: ExportedIncident,
});
export type IncidentExport = typeof IncidentExport.Type;

/** Schema of a whole run. */
export const RunExport = Schema.Struct({
  export: Schema.Literal("run"),
  export_version: Version,
  provider: Provider,
  started_at: Milliseconds,
  state: Schema.Literals(["live", "asking", "parked", "ended"]),
  /** The reason why no process owns the run, although it has not ended. */
  parked: Schema.optionalKey(Parked),
  /** Number of times that a process took the run over. */
  resumes: Schema.optionalKey(Schema.Natural),
  budget: Schema.optionalKey(Budget),
  policy: Schema.optionalKey(Name),
  end: Schema.optionalKey(
    Schema.Struct({ state: RunEnd.fields.state, reason: Name, attempts: Schema.Natural, at: Milliseconds }),
  ),
  /** The incident that ended the run; absent if the last attempt did not break. */
  final_incident: Schema.optionalKey(Name),
  /** Incidents, oldest first. */
  incidents: Schema.Array(ExportedIncident),
  /** Number of incidents that are missing here, because the record had evicted them or the export would have been too large. */
  incidents_omitted: Schema.Natural,
  questions: Schema.Array(
    Schema.Struct({
      revision: Schema.Natural,
      incident: Name,
      rule: Rule,
      choices: Schema.Array(Choice),
      attempt: Schema.optionalKey(Schema.Natural),
      default_choice: Schema.optionalKey(Choice),
      asked_at: Schema.optionalKey(Milliseconds),
      expires_at: Schema.optionalKey(Milliseconds),
      answer: Schema.optionalKey(Choice),
      answered_by: Schema.optionalKey(AnsweredBy),
    }),
  ),
  attempts: Schema.Array(
    Schema.Struct({
      attempt: Schema.Natural,
      mode: AttemptMode,
      started_ms: Milliseconds,
      facts: AttemptFacts,
      request: Schema.optionalKey(AttemptRequest),
      run: Schema.optionalKey(RunFacts),
      /**
       * The place at which this attempt continues the shown text (its seam, in UTF-16 code units), the kind of proof, and true if it was
       * proven.
       */
      seam: Schema.optionalKey(Schema.Struct({ at: Schema.Natural, proof: SeamProof, proven: Schema.Boolean })),
    }),
  ),
  attempts_omitted: Schema.Natural,
  /**
   * Tool calls that the caller got with all of their arguments, each with the verdict on its outcome, if there is one. `id` comes from the
   * provider, as a label.
   */
  calls: Schema.optionalKey(
    Schema.Array(
      Schema.Struct({
        attempt: Schema.Natural,
        call: Name,
        id: Name,
        tool: Name,
        verdict: Schema.optionalKey(CallVerdict),
        verdict_by: Schema.optionalKey(VerdictBy),
      }),
    ),
  ),
  /** The first and the last evidence. `omitted` counts the evidence between the two. */
  evidence: Schema.Struct({
    first: Schema.Array(Evidence),
    last: Schema.Array(Evidence),
    omitted: Schema.Natural,
  }),
});
export type RunExport = typeof RunExport.Type;
