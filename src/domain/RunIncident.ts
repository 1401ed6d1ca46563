/** Records one broken attempt with the complete input of its decision (law L9). The record is bounded and contains no content. */
import * as Schema from "effect/Schema";
import { AttemptFacts } from "./AttemptFacts.ts";
import { Choice, Decision } from "./Decision.ts";
import { Failure } from "./Failure.ts";
import { Label, Milliseconds } from "./Limits.ts";
import { AttemptMode, Budget, Provider, RunFacts } from "./RunFacts.ts";

/** Version of the incident's JSON. Raised if a reader of the old form would misread the new one. */
export const schemaVersion = 1;

/** One record of evidence. It describes a transition, never content. `at_ms` counts from the start of the run. */
export const Evidence = Schema.Struct({
  at_ms: Milliseconds,
  attempt: Schema.Natural,
  event: Schema.Literals([
    "attempt_started",
    "delivery",
    "progress",
    "shown",
    "call",
    "terminal_candidate",
    "watchdog",
    "suspended",
    "waiting",
    "seam",
    "seam_refused",
    "source_ended",
    "failure",
    "abandoned",
    "late_part_refused",
    "late_settle",
    "reader",
    "decision",
    "answer",
    "cancel",
    "close",
    "end",
  ]),
  /** Label of the transition, for example a phase, a clock, a rule or a finish reason. */
  detail: Schema.optionalKey(Label),
});
export type Evidence = typeof Evidence.Type;

/**
 * Outcome of an incident. `acted_on`: its decision was carried out. `recovered`: a later attempt completed the run, so this incident did
 * not end it. `superseded`: a newer decision replaced its decision before that was carried out. `late`: found after the run had continued,
 * so its decision is not carried out. `final`: its decision ended the run.
 */
export const IncidentStatus = Schema.Literals(["open", "acted_on", "recovered", "superseded", "late", "final"]);
export type IncidentStatus = typeof IncidentStatus.Type;

/** One broken attempt and its decision. `decide` gives `decision` again from facts, failure, run, budget and jitter. */
export const RunIncident = Schema.Struct({
  schema_version: Schema.Literal(schemaVersion),
  id: Label,
  run_id: Label,
  attempt: Schema.Natural,
  mode: AttemptMode,
  /** Wall-clock time, in milliseconds since the epoch. */
  at: Milliseconds,
  provider: Provider,
  facts: AttemptFacts,
  failure: Failure,
  run: RunFacts,
  budget: Budget,
  jitter: Schema.Finite,
  policy: Label,
  decision: Decision,
  /** One sentence for a person: what happened, whether a tool ran, and which step is safe. */
  message: Schema.String,
  status: IncidentStatus,
  answer: Schema.optionalKey(Choice),
});
export type RunIncident = typeof RunIncident.Type;

/** End of a run (law L7). */
export const RunEnd = Schema.Struct({
  state: Schema.Literals(["completed", "stopped"]),
  /** The rule that stopped the run, or `accepted_partial`. For a completed run the finish reason, if reported. */
  reason: Label,
  attempts: Schema.Natural,
  at: Milliseconds,
  /** The incident that ended the run; omitted if the last attempt did not break. */
  incident: Schema.optionalKey(Label),
  /**
   * True if another process wrote this end for a volatile run after its owner had died. If the owner's own record arrives later, it
   * replaces this end.
   */
  assumed: Schema.optionalKey(Schema.Boolean),
});
export type RunEnd = typeof RunEnd.Type;
