/**
 * Describes the JSON of an export, which a person may attach to a bug report and a service may collect.
 *
 * The words are those of the domain, so that the five values of an exported incident decide again to its decision (law L9):
 * `RecoveryPolicy.decide(incident)`. Run ids are left out on purpose, and so is every text that came from outside.
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
 * Version of the export's JSON. Raised when a reader of the old form would misread the new one. 2 knows parked runs and says
 * what is kept across processes: calls with verdicts, resumes, budget, policy, expiry and default of a question.
 */
export const exportVersion = 2;

/** Versions that the schemas read: what 2 added may be left out. */
const Version = Schema.Literals([1, exportVersion]);

/** Longest sentence of an incident, in UTF-16 code units; the longest of the fixed set stays below. */
const messageCharactersMax = 512;

const Name = Schema.String.check(Schema.isMaxLength(nameCharactersMax));

/** A broken attempt with its decision. `status` says whether it was recovered, or ended the run. */
export const ExportedIncident = Schema.Struct({
  /** `incident_1`, `incident_2`, …, in the order of the record. */
  id: Name,
  attempt: Schema.Natural,
  mode: AttemptMode,
  at: Milliseconds,
  status: IncidentStatus,
  /** A later attempt completed the run. */
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

/** One incident on its own. */
export const IncidentExport = Schema.Struct({
  export: Schema.Literal("incident"),
  export_version: Version,
  incident: ExportedIncident,
});
export type IncidentExport = typeof IncidentExport.Type;

/** A whole run. */
export const RunExport = Schema.Struct({
  export: Schema.Literal("run"),
  export_version: Version,
  provider: Provider,
  started_at: Milliseconds,
  state: Schema.Literals(["live", "asking", "parked", "ended"]),
  /** Why no process drives it. */
  parked: Schema.optionalKey(Parked),
  /** How often a process took it over. */
  resumes: Schema.optionalKey(Schema.Natural),
  budget: Schema.optionalKey(Budget),
  policy: Schema.optionalKey(Name),
  end: Schema.optionalKey(
    Schema.Struct({ state: RunEnd.fields.state, reason: Name, attempts: Schema.Natural, at: Milliseconds }),
  ),
  /** The incident that ended the run; left out where nothing broke at the end. */
  final_incident: Schema.optionalKey(Name),
  /** Oldest first. */
  incidents: Schema.Array(ExportedIncident),
  /** Incidents that are not among them: dropped by the record, or for the size of the export. */
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
      /** After how many UTF-16 code units of shown text this attempt's text was to join it, how, and whether that was proven. */
      seam: Schema.optionalKey(Schema.Struct({ at: Schema.Natural, proof: SeamProof, proven: Schema.Boolean })),
    }),
  ),
  attempts_omitted: Schema.Natural,
  /** Calls that were handed over whole, with the word that settled them; `id` is the provider's. */
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
  /** The first and the last records; `omitted` lie between them. */
  evidence: Schema.Struct({
    first: Schema.Array(Evidence),
    last: Schema.Array(Evidence),
    omitted: Schema.Natural,
  }),
});
export type RunExport = typeof RunExport.Type;
