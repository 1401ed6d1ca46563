/**
 * Builds entries, incidents and questions as runs record them, for tests of the recorder and for the made-up runs that other
 * tests show and recover.
 */
import { type AttemptFacts, fresh as freshFacts, type ToolRow } from "../../src/domain/AttemptFacts.ts";
import type { Choice } from "../../src/domain/Decision.ts";
import { defaultBudget, fresh as freshRun } from "../../src/domain/RunFacts.ts";
import { type Evidence, type RunEnd, type RunIncident, schemaVersion } from "../../src/domain/RunIncident.ts";
import type { SeamProof } from "../../src/domain/SeamWords.ts";
import type { DecisionInput } from "../../src/policy/DecisionInput.ts";
import { explain } from "../../src/policy/Explanation.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import * as RunRecord from "../../src/recorder/RunRecord.ts";

/** A provider whose names would break a store that concatenates its statements. */
export const provider = { id: "scripted'; -- ünï 漢", model: 'model "x"\\', reasoning: true } as const;

export const begun = (run_id: string, at = 1_000): RunRecord.Entry => ({ _tag: "RunStarted", run_id, provider, at });

export const facts = (more: Partial<AttemptFacts> = {}): AttemptFacts => ({
  ...freshFacts,
  delivery: "accepted",
  ...more,
});

/** A row of a ledger, by default a call of `bash`. */
export const call = (phase: ToolRow["phase"], more: Partial<ToolRow> = {}): ToolRow => ({
  call: "0.0",
  tool: "bash",
  executor: "runtime",
  effect: "mutating",
  phase,
  ...more,
});

export const attempt = (number: number, mode: RunRecord.AttemptRecord["mode"] = "first"): RunRecord.Entry => ({
  _tag: "AttemptStarted",
  attempt: number,
  mode,
  at_ms: number * 10,
  facts: freshFacts,
});

export const raised = (number: number, more: Partial<AttemptFacts> = {}): RunRecord.Entry => ({
  _tag: "FactsRaised",
  attempt: number,
  facts: facts(more),
});

export const noted = (at_ms: number, event: Evidence["event"] = "progress", detail?: string): RunRecord.Entry => ({
  _tag: "EvidenceNoted",
  evidence: { at_ms, attempt: 1, event, ...(detail === undefined ? {} : { detail }) },
});

/** Records that an attempt's text was joined to shown text. */
export const joined = (number: number, at: number, proof: SeamProof = "anchor"): RunRecord.Entry => ({
  _tag: "RunContinued",
  attempt: number,
  at,
  proof,
});

/** An incident as a policy would decide it. */
export const decided = (
  its: Pick<RunIncident, "id" | "run_id" | "attempt" | "at" | "provider">,
  input: DecisionInput,
  policy: RecoveryPolicy.RecoveryPolicy = RecoveryPolicy.default,
): RunIncident => {
  const decision = policy.decide(input);
  return {
    schema_version: schemaVersion,
    ...its,
    mode: input.run.mode,
    ...input,
    policy: policy.name,
    decision,
    message: explain(decision, input.failure, input.facts),
    status: "open",
  };
};

/** Incident number `n` of a run with shown text, so that its decision is a question. */
export const incident = (run_id: string, n: number, more: Partial<RunIncident> = {}): RunIncident => ({
  ...decided(
    { id: incidentId(run_id, n), run_id, attempt: n, at: 1_000 + n, provider },
    {
      facts: facts({ progress: "output", shown: "text", text_through: 1 }),
      failure: { kind: "transport", code: "ECONNRESET" },
      run: freshRun,
      budget: defaultBudget,
      jitter: 0.25,
    },
  ),
  ...more,
});

export const incidentId = (run_id: string, n: number): string => `${run_id}.${n}`;

export const opened = (run_id: string, n: number, more: Partial<RunIncident> = {}): RunRecord.Entry => ({
  _tag: "IncidentOpened",
  incident: incident(run_id, n, more),
});

export const marked = (run_id: string, n: number, status: RunIncident["status"], answer?: Choice): RunRecord.Entry => ({
  _tag: "IncidentMarked",
  incident: incidentId(run_id, n),
  status,
  ...(answer === undefined ? {} : { answer }),
});

/** The question of an incident. */
export const questionOf = (it: RunIncident, more: Partial<RunRecord.QuestionRecord> = {}): RunRecord.Entry => ({
  _tag: "QuestionAsked",
  question: {
    revision: 1,
    incident: it.id,
    attempt: it.attempt,
    rule: it.decision.rule,
    choices: it.decision.choices ?? [],
    default_choice: "stop",
    asked_at: it.at,
    ...more,
  },
});

export const asked = (run_id: string, revision: number): RunRecord.Entry => ({
  _tag: "QuestionAsked",
  question: {
    revision,
    incident: incidentId(run_id, revision),
    rule: "text_shown",
    choices: ["retry", "accept", "stop"],
  },
});

export const answered = (revision: number, answer: Choice): RunRecord.Entry => ({
  _tag: "QuestionAnswered",
  revision,
  answer,
});

/** Makes the rest of a write depend on an open question. */
export const stillOpen = (revision: number): RunRecord.Entry => ({ _tag: "QuestionStillOpen", revision });

export const parked = (
  reason: Extract<RunRecord.Entry, { readonly _tag: "RunParked" }>["reason"],
): RunRecord.Entry => ({
  _tag: "RunParked",
  reason,
});

export const ended = (more: Partial<RunEnd> = {}): RunRecord.Entry => ({
  _tag: "RunEnded",
  end: { state: "completed", reason: "stop", attempts: 1, at: 9_000, ...more },
});

/** Folds entries into a record; throws if one does not fit. */
export const folded = (entries: ReadonlyArray<RunRecord.Entry>): RunRecord.RunRecord => {
  let record: RunRecord.RunRecord | undefined;
  for (const entry of entries) {
    const next = RunRecord.apply(record, entry);
    if (typeof next === "string") throw new Error(`${entry._tag}: ${next}`);
    record = next;
  }
  if (record === undefined) throw new Error("no entries");
  return record;
};

/** A whole life of a run: two attempts, a question, its answer, an end, and a late settle. */
export const life = (run_id: string): ReadonlyArray<RunRecord.Entry> => [
  begun(run_id),
  attempt(1),
  noted(0, "attempt_started", "first"),
  raised(1, { progress: "output", shown: "text", text_through: 1, call_through: 2, tools: [call("handed_over")] }),
  noted(20, "failure", "transport"),
  opened(run_id, 1),
  asked(run_id, 1),
  answered(1, "retry"),
  marked(run_id, 1, "acted_on", "retry"),
  attempt(2, "replay"),
  raised(2, {
    progress: "output",
    terminal_seen: true,
    counters: { parts: 3, bytes: 40, characters: 12, output_tokens: 5 },
  }),
  noted(40, "terminal_candidate", "stop"),
  ended({ attempts: 2 }),
  raised(1, { tools: [call("settled")], settled_through: 3 }),
  noted(50, "late_settle"),
  opened(run_id, 2, { status: "late" }),
];

/** An entry in a word. */
export const nameOf = (entry: RunRecord.Entry): string =>
  entry._tag === "EvidenceNoted"
    ? `noted ${entry.evidence.detail}`
    : entry._tag === "RunParked"
      ? entry.reason
      : entry._tag;
