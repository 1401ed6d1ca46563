/**
 * Stores runs of every appearance, always the same, for tests and photographs of the page.
 */
import { type AttemptFacts, fresh as freshFacts } from "../../../src/domain/AttemptFacts.ts";
import type { Failure } from "../../../src/domain/Failure.ts";
import { defaultBudget, fresh as freshRun, type Provider, type RunFacts } from "../../../src/domain/RunFacts.ts";
import type { Evidence, RunIncident } from "../../../src/domain/RunIncident.ts";
import type * as RunRecord from "../../../src/recorder/RunRecord.ts";
import * as E from "../../recorder/Entries.ts";

/** Wall clock of the photograph, in milliseconds since the epoch. */
export const now = Date.UTC(2026, 10, 22, 9, 30, 0);

export const claude: Provider = { id: "anthropic", model: "claude-sonnet-4-5", reasoning: true };
export const gpt: Provider = { id: "openai", model: "gpt-5.1-codex", reasoning: true };
export const gemini: Provider = { id: "google", model: "gemini-3-pro", reasoning: true };

const guarded: AttemptFacts["side_effects"] = {
  guarded: true,
  complete: true,
  reason: "all_classified",
  runtime: { read_only: 2, mutating: 2, unknown: 0 },
  provider: { read_only: 1, mutating: 0, unknown: 0 },
};

export const facts = (more: Partial<AttemptFacts> = {}): AttemptFacts => ({
  ...freshFacts,
  delivery: "accepted",
  progress: "output",
  side_effects: guarded,
  ...more,
});

export const call = (
  ordinal: number,
  tool: string,
  effect: AttemptFacts["tools"][number]["effect"],
  phase: AttemptFacts["tools"][number]["phase"],
): AttemptFacts["tools"][number] => E.call(phase, { call: `0.${ordinal}`, tool, effect });

export const begun = (run_id: string, provider: Provider, at: number): RunRecord.Entry => ({
  _tag: "RunStarted",
  run_id,
  provider,
  at,
  budget: defaultBudget,
  policy: "default",
  // A program has the request, and can take the run up again.
  transcript: "0".repeat(64),
});

export const attempted = (
  attempt: number,
  its: AttemptFacts,
  at_ms: number,
  mode: RunFacts["mode"] = attempt === 1 ? "first" : "replay",
): RunRecord.Entry => ({ _tag: "AttemptStarted", attempt, mode, at_ms, facts: its, request: "first", run: freshRun });

export const noted = (at_ms: number, attempt: number, event: Evidence["event"], detail?: string): RunRecord.Entry => ({
  _tag: "EvidenceNoted",
  evidence: { at_ms, attempt, event, ...(detail === undefined ? {} : { detail }) },
});

/** An incident as the policy would decide it. */
export const broken = (
  run_id: string,
  attempt: number,
  at: number,
  more: {
    readonly provider: Provider;
    readonly facts: AttemptFacts;
    readonly failure?: Failure;
    readonly run?: Partial<RunFacts>;
  },
): RunIncident =>
  E.decided(
    { id: `${run_id}.${attempt}`, run_id, attempt, at, provider: more.provider },
    {
      facts: more.facts,
      failure: more.failure ?? { kind: "transport", operation: "body", code: "ECONNRESET" },
      run: { ...freshRun, ...more.run },
      budget: defaultBudget,
      jitter: 0.5,
    },
  );

/** Two breaks, one of them a stall, then the whole answer. */
export const recovered = (run_id = "run_0600fi7k2m9q", at = now - 47_000): ReadonlyArray<RunRecord.Entry> => {
  const thinking = facts({
    progress: "reasoning",
    counters: { parts: 212, bytes: 48_120, characters: 0, input_tokens: 18_211 },
  });
  const first = broken(run_id, 1, at + 6_400, { provider: claude, facts: thinking });
  const called = facts({
    shown: "reasoning",
    call_through: 1,
    tools: [call(0, "bash", "mutating", "input_complete")],
    counters: { parts: 640, bytes: 121_377, characters: 88, input_tokens: 18_211, output_tokens: 402 },
  });
  const second = broken(run_id, 2, at + 19_300, {
    provider: claude,
    facts: called,
    failure: { kind: "stalled", clock: "silence" },
    run: { mode: "replay", auto_retries: 1 },
  });
  const whole = facts({
    shown: "text",
    text_through: 1,
    call_through: 3,
    settled_through: 4,
    terminal_seen: true,
    tools: [call(0, "read_file", "read_only", "settled"), call(1, "bash", "mutating", "settled")],
    counters: { parts: 903, bytes: 164_002, characters: 1_840, input_tokens: 18_211, output_tokens: 771 },
  });
  return [
    begun(run_id, claude, at),
    attempted(1, thinking, 0),
    noted(6_400, 1, "failure", "transport"),
    noted(6_402, 1, "decision", first.decision.rule),
    { _tag: "IncidentOpened", incident: first },
    { _tag: "IncidentMarked", incident: first.id, status: "acted_on" },
    attempted(2, called, 6_800),
    noted(9_100, 2, "shown", "reasoning"),
    noted(19_290, 2, "watchdog", "silence"),
    noted(19_300, 2, "failure", "stalled"),
    noted(19_301, 2, "decision", second.decision.rule),
    { _tag: "IncidentOpened", incident: second },
    { _tag: "IncidentMarked", incident: second.id, status: "acted_on" },
    attempted(3, whole, 20_100),
    noted(23_400, 3, "shown", "reasoning"),
    noted(27_900, 3, "shown", "text"),
    noted(32_600, 3, "terminal_candidate", "end_turn"),
    noted(32_610, 3, "source_ended"),
    noted(32_615, 3, "end", "end_turn"),
    { _tag: "CallHandedOver", attempt: 3, call: "0.0", id: "toolu_1", tool: "read_file" },
    { _tag: "CallHandedOver", attempt: 3, call: "0.1", id: "toolu_2", tool: "bash" },
    { _tag: "RunEnded", end: { state: "completed", reason: "end_turn", attempts: 3, at: at + 32_620 } },
  ];
};

/** A run whose tool has started and has an unknown outcome. It is parked without an owner. */
export const asking = (
  run_id = "run_0600fi7n1w4d",
  at = now - 190_000,
  provider = gpt,
  tool = "bash",
): ReadonlyArray<RunRecord.Entry> => {
  const its = facts({
    shown: "text",
    text_through: 1,
    call_through: 2,
    tools: [call(0, "read_file", "read_only", "settled"), call(1, tool, "mutating", "outcome_unknown")],
    counters: { parts: 311, bytes: 61_004, characters: 912 },
  });
  const incident = broken(run_id, 1, at + 8_200, { provider, facts: its, run: { can_continue: true } });
  return [
    begun(run_id, provider, at),
    attempted(1, its, 0),
    noted(2_100, 1, "shown", "text"),
    noted(8_200, 1, "failure", "transport"),
    noted(8_201, 1, "decision", incident.decision.rule),
    { _tag: "CallHandedOver", attempt: 1, call: "0.1", id: "call_1", tool },
    { _tag: "IncidentOpened", incident },
    E.questionOf(incident),
    E.parked("question"),
  ];
};

/** A break while the provider may have run its own tools, unseen in the stream. */
export const unprovable = (run_id: string, at = now - 190_000, provider = gpt): ReadonlyArray<RunRecord.Entry> => {
  const hosted = { ...guarded, reason: "provider_tools", provider: { read_only: 0, mutating: 0, unknown: 1 } } as const;
  const its = facts({ side_effects: hosted, progress: "started" });
  const incident = broken(run_id, 1, at + 8_200, { provider, facts: its });
  return [
    begun(run_id, provider, at),
    attempted(1, its, 0),
    { _tag: "IncidentOpened", incident },
    E.questionOf(incident),
    E.parked("question"),
  ];
};

/** A run in progress. */
export const running = (
  run_id = "run_0600fi7p8x2c",
  at = now - 9_400,
  provider = gemini,
): ReadonlyArray<RunRecord.Entry> => [
  begun(run_id, provider, at),
  attempted(1, facts({ shown: "reasoning", progress: "reasoning" }), 0),
  noted(2_300, 1, "shown", "reasoning"),
  { _tag: "FactsRaised", attempt: 1, facts: facts({ shown: "reasoning", progress: "reasoning" }) },
];

/** A run without a break. */
export const calm = (run_id: string, at: number, provider = claude, lasted = 6_200): ReadonlyArray<RunRecord.Entry> => [
  begun(run_id, provider, at),
  attempted(
    1,
    facts({
      shown: "text",
      text_through: 1,
      terminal_seen: true,
      counters: { parts: 88, bytes: 9_012, characters: 720 },
    }),
    0,
  ),
  noted(1_400, 1, "shown", "text"),
  noted(lasted - 20, 1, "terminal_candidate", "stop"),
  noted(lasted - 10, 1, "source_ended"),
  { _tag: "RunEnded", end: { state: "completed", reason: "stop", attempts: 1, at: at + lasted } },
];

/** A run whose request was refused for good. */
export const stopped = (run_id: string, at: number, provider = gpt): ReadonlyArray<RunRecord.Entry> => {
  const its = facts({ progress: "none" });
  const failure: Failure = { kind: "rejected", reason: "quota", status: 429, code: "insufficient_quota" };
  const incident = broken(run_id, 1, at + 420, { provider, facts: its, failure });
  return [
    begun(run_id, provider, at),
    attempted(1, its, 0),
    noted(420, 1, "failure", "rejected"),
    { _tag: "IncidentOpened", incident },
    {
      _tag: "RunEnded",
      end: { state: "stopped", reason: incident.decision.rule, attempts: 1, at: at + 425, incident: incident.id },
    },
  ];
};

/** The runs of the photograph, oldest first. */
export const album = (): ReadonlyArray<ReadonlyArray<RunRecord.Entry>> => [
  ...Array.from({ length: 9 }, (_, n) =>
    calm(`run_0600fh${n}a1b2c3`, now - 3_600_000 + n * 240_000, [claude, gpt, gemini][n % 3], 4_000 + n * 900),
  ),
  recovered("run_0600fi1c8d3e", now - 1_400_000),
  stopped("run_0600fi2m4n5p", now - 900_000),
  recovered("run_0600fi3q6r7s", now - 600_000),
  calm("run_0600fi4t8u9v", now - 420_000, gemini),
  asking(),
  recovered(),
  running(),
];
