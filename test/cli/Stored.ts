/**
 * Stores runs of every kind, for tests of the commands that read the record.
 */
import { Effect } from "effect";
import { type AttemptFacts, fresh as freshFacts } from "../../src/domain/AttemptFacts.ts";
import { defaultBudget, fresh as freshRun } from "../../src/domain/RunFacts.ts";
import type { RunIncident } from "../../src/domain/RunIncident.ts";
import type { DecisionInput } from "../../src/policy/DecisionInput.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import type * as RunRecord from "../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import { call, decided, parked, questionOf } from "../recorder/Entries.ts";

/** Wall clock of the first run, in milliseconds since the epoch. */
export const startedAt = 1_790_000_000_000;

const provider = { id: "anthropic", model: "claude-sonnet-4-5", reasoning: true } as const;

const guarded: AttemptFacts["side_effects"] = {
  guarded: true,
  complete: true,
  reason: "all_classified",
  runtime: { read_only: 1, mutating: 1, unknown: 0 },
  provider: { read_only: 0, mutating: 0, unknown: 0 },
};

export const factsOf = (more: Partial<AttemptFacts>): AttemptFacts => ({
  ...freshFacts,
  delivery: "accepted",
  progress: "output",
  side_effects: guarded,
  ...more,
});

/** An incident as a policy would decide it. */
export const incidentOf = (
  run_id: string,
  n: number,
  more: Partial<DecisionInput>,
  at = startedAt + 1_200,
  policy: RecoveryPolicy.RecoveryPolicy = RecoveryPolicy.default,
): RunIncident =>
  decided(
    { id: `${run_id}.${n}`, run_id, attempt: n, at, provider },
    {
      facts: factsOf({}),
      failure: { kind: "transport", code: "ECONNRESET" },
      run: freshRun,
      budget: defaultBudget,
      jitter: 0.5,
      ...more,
    },
    policy,
  );

export const begun = (run_id: string, at = startedAt): RunRecord.Entry => ({
  _tag: "RunStarted",
  transcript: "the digest of what the user asked",
  run_id,
  provider,
  at,
  budget: defaultBudget,
  policy: "default",
});

export const attempted = (attempt: number, facts: AttemptFacts, at_ms = 0): RunRecord.Entry => ({
  _tag: "AttemptStarted",
  attempt,
  mode: attempt === 1 ? "first" : "replay",
  at_ms,
  facts,
  request: "first",
  run: freshRun,
});

/** A run that broke while a call was fenced, was replayed and completed. */
export const recovered = (runId: string, at = startedAt): ReadonlyArray<RunRecord.Entry> => {
  const facts = factsOf({ call_through: 1, tools: [call("handed_over")] });
  const incident = incidentOf(runId, 1, { facts }, at + 1_200);
  return [
    begun(runId, at),
    attempted(1, facts),
    { _tag: "CallHandedOver", attempt: 1, call: "0.0", id: "toolu_1", tool: "bash" },
    { _tag: "IncidentOpened", incident },
    { _tag: "IncidentMarked", incident: incident.id, status: "acted_on" },
    attempted(2, factsOf({ shown: "text", text_through: 1, terminal_seen: true }), 1_600),
    { _tag: "RunEnded", end: { state: "completed", reason: "end_turn", attempts: 2, at: at + 4_200 } },
  ];
};

/** A run that asks about a call; `bash` was started and its outcome is unknown. */
export const asking = (runId: string, at = startedAt): ReadonlyArray<RunRecord.Entry> => {
  const facts = factsOf({ shown: "text", text_through: 1, call_through: 2, tools: [call("outcome_unknown")] });
  const incident = incidentOf(runId, 1, { facts, run: { ...freshRun, can_continue: true } }, at + 1_200);
  return [
    begun(runId, at),
    attempted(1, facts),
    { _tag: "CallHandedOver", attempt: 1, call: "0.0", id: "toolu_1", tool: "bash" },
    { _tag: "IncidentOpened", incident },
    questionOf(incident, { expires_at: at + 10 * 365 * 24 * 3_600_000 }),
    parked("question"),
  ];
};

/** A run that broke while the provider may have run hosted tools unseen. */
export const unprovable = (runId: string, at = startedAt): ReadonlyArray<RunRecord.Entry> => {
  const provider = { read_only: 0, mutating: 0, unknown: 1 };
  const facts = factsOf({ progress: "started", side_effects: guarded === null ? null : { ...guarded, provider } });
  const incident = incidentOf(runId, 1, { facts }, at + 1_200);
  return [
    begun(runId, at),
    attempted(1, facts),
    { _tag: "IncidentOpened", incident },
    questionOf(incident),
    parked("question"),
  ];
};

/** A run in the middle of a tool, which is orphaned without its process. */
export const halfway = (runId: string, at = startedAt): ReadonlyArray<RunRecord.Entry> => [
  begun(runId, at),
  attempted(1, factsOf({ shown: "text", text_through: 1, call_through: 2, tools: [call("dispatched")] })),
  { _tag: "CallHandedOver", attempt: 1, call: "0.0", id: "toolu_1", tool: "bash" },
];

/** A run that was stopped because its text could not be withdrawn. */
export const stopped = (runId: string, at = startedAt): ReadonlyArray<RunRecord.Entry> => {
  const facts = factsOf({ shown: "text", text_through: 1 });
  const incident = incidentOf(runId, 1, { facts }, at + 1_200);
  return [
    begun(runId, at),
    attempted(1, facts),
    { _tag: "IncidentOpened", incident },
    {
      _tag: "QuestionAsked",
      question: { revision: 1, incident: incident.id, rule: "text_shown", choices: ["retry", "accept", "stop"] },
    },
    { _tag: "QuestionAnswered", revision: 1, answer: "stop", by: "program" },
    { _tag: "IncidentMarked", incident: incident.id, status: "acted_on", answer: "stop" },
    {
      _tag: "RunEnded",
      end: { state: "stopped", reason: "text_shown", attempts: 1, at: at + 1_300, incident: incident.id },
    },
  ];
};

/** A run whose replay was decided after a crash and that waits for a program to take it up. */
export const offered = (runId: string, at = startedAt): ReadonlyArray<RunRecord.Entry> => {
  const facts = factsOf({ call_through: 1, tools: [call("handed_over")] });
  const incident = incidentOf(runId, 1, { facts }, at + 1_200);
  return [begun(runId, at), attempted(1, facts), { _tag: "IncidentOpened", incident }, parked("recovered")];
};

/** A run that its program interrupted in the middle, on record, like a shutdown. */
export const interrupted = (runId: string, at = startedAt): ReadonlyArray<RunRecord.Entry> => {
  const facts = factsOf({ call_through: 1, tools: [call("handed_over")] });
  return [begun(runId, at), attempted(1, facts), parked("interrupted")];
};

/** Writes runs, the oldest first. */
export const writing = (runs: Readonly<Record<string, ReadonlyArray<RunRecord.Entry>>>) =>
  Effect.flatMap(RunRecorder, (recorder) =>
    Effect.forEach(Object.entries(runs), ([id, entries]) => recorder.write(id, entries)),
  );
