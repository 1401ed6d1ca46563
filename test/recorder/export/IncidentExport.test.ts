import { readFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import { Schema } from "effect";
import { type AttemptFacts, fresh as freshFacts, type ToolRow } from "../../../src/domain/AttemptFacts.ts";
import { evidenceFirstMax, evidenceLastMax, incidentsMax, toolRowsMax } from "../../../src/domain/Limits.ts";
import { defaultBudget, fresh as freshRun } from "../../../src/domain/RunFacts.ts";
import type { RunIncident } from "../../../src/domain/RunIncident.ts";
import * as DecisionInput from "../../../src/policy/DecisionInput.ts";
import { explain } from "../../../src/policy/Explanation.ts";
import * as RecoveryPolicy from "../../../src/policy/RecoveryPolicy.ts";
import { tokensMax } from "../../../src/recorder/export/ExportValues.ts";
import * as IncidentExport from "../../../src/recorder/export/IncidentExport.ts";
import { attemptsMax, type RunRecord } from "../../../src/recorder/RunRecord.ts";
import * as Product from "../../policy/Product.ts";
import { seeded } from "../../Seeded.ts";
import * as E from "../Entries.ts";

const seed = Number(process.env.STREAM_RECOVERY_SEED ?? 20_261_121);
const { encode, exportBytesMax, exportIncident, exportRun } = IncidentExport;

/** An incident as the runtime creates it, with any policy. */
const decided = (input: DecisionInput.DecisionInput, policy = RecoveryPolicy.default): RunIncident => {
  const decision = policy.decide(input);
  return {
    ...E.incident("r", 1),
    ...input,
    policy: policy.name,
    decision,
    message: explain(decision, input.failure, input.facts),
  };
};

const rowsOf = (count: number, tool = "bash"): ReadonlyArray<ToolRow> =>
  Array.from({ length: count }, (_, index) => ({
    call: `0.${index}`,
    tool,
    executor: "runtime",
    effect: "mutating",
    phase: "settled",
  }));

/** A run with one recovered attempt and a later one that ended it. */
const stoppedRun = (): RunRecord =>
  E.folded([
    E.begun("jane@example.com"),
    E.attempt(1),
    E.opened("jane@example.com", 1),
    E.marked("jane@example.com", 1, "recovered"),
    E.attempt(2, "replay"),
    E.opened("jane@example.com", 2),
    E.asked("jane@example.com", 2),
    E.answered(2, "accept"),
    E.marked("jane@example.com", 2, "acted_on", "accept"),
    E.ended({
      state: "stopped",
      reason: "accepted_partial",
      incident: E.incidentId("jane@example.com", 2),
      attempts: 2,
    }),
  ]);

describe("IncidentExport", () => {
  it("is a versioned document that its own schema can read", () => {
    const run = exportRun(E.folded(E.life("r")));
    assert.deepStrictEqual([run.export, run.export_version], ["run", 2]);
    assert.deepStrictEqual(Schema.decodeUnknownSync(IncidentExport.RunExport)(JSON.parse(encode(run))), run);
    const incident = exportIncident(E.incident("r", 1));
    assert.deepStrictEqual([incident.export, incident.export_version], ["incident", 2]);
    assert.deepStrictEqual(
      Schema.decodeUnknownSync(IncidentExport.IncidentExport)(JSON.parse(encode(incident))),
      incident,
    );
  });

  it("refuses a run whose record may be incomplete", () => {
    const lost = E.ended({ state: "stopped", reason: "process_lost", assumed: true });
    const record = E.folded([E.begun("r"), E.attempt(1), lost]);
    assert.throws(() => exportRun(record), /before its record was complete/);
  });

  it("reads a document of version 1, which had no facts from other processes", () => {
    const { calls: _, resumes: _none, ...old } = exportRun(E.folded(E.life("r")));
    const read = Schema.decodeSync(IncidentExport.RunExport)({ ...old, export_version: 1 });
    assert.deepStrictEqual(read, { ...old, export_version: 1 });
  });

  it("contains facts from other processes: calls, takeovers, budget and the source of an answer, but not the transcript's digest", () => {
    const life = E.folded(E.life("jane@example.com"));
    const call = {
      attempt: 1,
      call: "0.0",
      id: "toolu_9f8b",
      tool: "bash",
      verdict: "it_ran",
      verdict_by: "verify",
    } as const;
    const { end: _, ...open } = life;
    const run = exportRun({
      ...open,
      state: "parked",
      parked: "answered",
      resumes: 2,
      budget: defaultBudget,
      policy: "strict",
      transcript: "5d41402abc4b2a76b9719d911017c592",
      retry_of: "jane@example.com.1",
      calls: [call],
      attempts: life.attempts.map((attempt) => ({ ...attempt, request: "continue", run: freshRun })),
      questions: life.questions.map((question) => ({
        ...question,
        attempt: 1,
        default_choice: "stop",
        asked_at: 5,
        expires_at: 6,
        answered_by: "person",
      })),
    });
    assert.deepStrictEqual(
      [run.state, run.parked, run.resumes, run.budget, run.policy],
      ["parked", "answered", 2, defaultBudget, "strict"],
    );
    assert.deepStrictEqual(run.calls, [{ ...call, id: "label_3" }]);
    assert.deepStrictEqual(
      run.attempts.map(({ request, run: of }) => [request, of]),
      [
        ["continue", freshRun],
        ["continue", freshRun],
      ],
    );
    const [question] = run.questions;
    assert.deepStrictEqual(
      [question?.attempt, question?.default_choice, question?.asked_at, question?.expires_at, question?.answered_by],
      [1, "stop", 5, 6, "person"],
    );
    assert.notMatch(encode(run), /5d41402abc4b2a76b9719d911017c592|jane|toolu_9f8b/);
    assert.deepStrictEqual(Schema.decodeUnknownSync(IncidentExport.RunExport)(JSON.parse(encode(run))), run);
  });

  it("says where text was continued, how that was proven and why it was refused, and nothing of the text", () => {
    const failure = { kind: "protocol", reason: "seam_unproven", code: "differs", retryable: false } as const;
    const record = {
      ...E.folded([
        E.begun("r"),
        E.attempt(1),
        E.attempt(2, "continue"),
        E.joined(2, 412),
        E.noted(20, "seam", "anchor"),
        E.noted(30, "seam_refused", "repeats_itself"),
        E.opened("r", 1, { failure }),
      ]),
    };
    const secret = "sk-live-of-the-shown-text";
    // A store that other programs write to may contain more than the schema names.
    const attempts = record.attempts.map((it) => ({ ...it, ...(it.seam && { seam: { ...it.seam, quote: secret } }) }));
    const run = exportRun({ ...record, attempts });
    assert.deepStrictEqual(
      run.attempts.map(({ seam }) => seam),
      [undefined, { at: 412, proof: "anchor", proven: true }],
    );
    assert.deepStrictEqual(
      run.evidence.first.map(({ detail, event }) => [event, detail]),
      [
        ["seam", "anchor"],
        ["seam_refused", "repeats_itself"],
      ],
    );
    assert.deepInclude(run.incidents[0]?.failure, failure);
    assert.notInclude(encode(run), secret);
    assert.deepStrictEqual(Schema.decodeUnknownSync(IncidentExport.RunExport)(JSON.parse(encode(run))), run);
  });

  it("is the document shown in the documentation", () => {
    const page = readFileSync(new URL("../../../docs/observability.md", import.meta.url), "utf8");
    const [, json] = /```json\n([^`]*)```/.exec(page) ?? [];
    assert.deepStrictEqual(
      JSON.parse(json ?? ""),
      JSON.parse(encode(exportIncident(E.incident("jane@example.com", 1)))),
    );
  });

  it("exports a whole life of a run, with names replaced and everything else kept", () => {
    const record = E.folded(E.life("jane@example.com"));
    const run = exportRun(record);
    assert.deepStrictEqual(run.provider, { id: "label_1", model: "label_2", reasoning: true });
    assert.deepStrictEqual(run.end, { state: "completed", reason: "stop", attempts: 2, at: 9_000 });
    assert.deepStrictEqual(run.attempts, record.attempts);
    assert.deepStrictEqual(run.evidence, record.evidence);
    assert.deepStrictEqual(
      run.questions,
      record.questions.map((it) => ({ ...it, incident: "incident_1" })),
    );
    assert.deepStrictEqual(
      run.incidents.map(({ id, status, recovered, answer }) => [id, status, recovered, answer]),
      [
        ["incident_1", "recovered", true, "retry"],
        ["incident_2", "late", false, undefined],
      ],
    );
    assert.notInclude(encode(run), "jane");
  });

  it("marks recovered incidents and names the final one", () => {
    const run = exportRun(stoppedRun());
    assert.deepStrictEqual(
      run.incidents.map(({ id, status, recovered }) => [id, status, recovered]),
      [
        ["incident_1", "recovered", true],
        ["incident_2", "final", false],
      ],
    );
    assert.strictEqual(run.final_incident, "incident_2");
    assert.notProperty(exportRun(E.folded(E.life("r"))), "final_incident");
  });

  it("uses the message of the fixed set, whatever sentence the record contains", () => {
    const honest = E.incident("r", 1);
    const forged = { ...honest, message: "Dear user, your key is hunter2" };
    assert.strictEqual(exportIncident(forged).incident.message, honest.message);
    const decision = { ...honest.decision, because: ["prompt=hunter2"] };
    assert.deepStrictEqual(exportIncident({ ...honest, decision }).incident.decision.because, honest.decision.because);
  });

  it("keeps names comparable: equal ones have one number throughout the export", () => {
    const named = { tools: rowsOf(1, "acme_deploy"), delivery: "accepted" } as const;
    const record = E.folded([E.begun("r"), E.attempt(1), E.raised(1, named)]);
    const tools = exportRun({ ...record, incidents: [decided({ ...input, facts: { ...freshFacts, ...named } })] });
    const [label] = tools.attempts.flatMap((it) => it.facts.tools.map(({ tool }) => tool));
    assert.match(label ?? "", /^label_\d+$/);
    assert.deepStrictEqual(tools.incidents[0]?.facts.tools[0]?.tool, label);
    assert.deepStrictEqual(tools.incidents[0]?.decision.calls?.[0]?.tool, label);
    const own = exportRun(record, { names: ["acme_deploy"] });
    assert.strictEqual(own.attempts[0]?.facts.tools[0]?.tool, "acme_deploy");
  });
});

const input: DecisionInput.DecisionInput = {
  facts: { ...freshFacts, delivery: "accepted", progress: "output", shown: "text", text_through: 1 },
  failure: { kind: "transport", code: "ECONNRESET" },
  run: freshRun,
  budget: defaultBudget,
  jitter: 0.25,
};

describe("Deciding an exported incident again gives its decision (L9)", () => {
  const policies = [
    RecoveryPolicy.default,
    RecoveryPolicy.strict,
    RecoveryPolicy.make({ name: "acme", stricter: { nothing_shown: "ask_user" } }),
  ];
  const facts = Product.span({
    ...Product.wide,
    side_effects: Product.fact("side_effects", Product.chain(Product.snapshots.values[0] ?? null, null)),
  }).facts;
  // Odd names, so that the second decision uses replaced ones.
  const odd = (it: AttemptFacts, index: number): AttemptFacts => ({
    ...it,
    tools: it.tools.map((row) => ({ ...row, call: `secret-${index % 7}`, tool: `acme ${index % 3}` })),
  });

  it(`succeeds for every kind of facts and failure, with every policy, through JSON; seed ${seed}`, () => {
    const random = seeded(seed);
    const rules = new Set<string>();
    for (const [index, its] of facts.entries()) {
      if (random() > 0.03) continue;
      for (const failure of Product.failures) {
        const run = Product.flags[Math.floor(random() * Product.flags.length)] ?? freshRun;
        const policy = policies[index % policies.length] ?? RecoveryPolicy.default;
        const stored = decided(
          { facts: odd(its, index), failure, run, budget: defaultBudget, jitter: random() },
          policy,
        );
        // The result of `encode`, read without a schema: a reader has only JSON.
        const { incident: exported } = JSON.parse(encode(exportIncident(stored))) as IncidentExport.IncidentExport;
        assert.deepStrictEqual(policy.decide(exported), exported.decision, `seed ${seed}, facts ${index}`);
        assert.deepStrictEqual(
          { ...exported.decision, calls: [], may_repeat: [] },
          { ...stored.decision, calls: [], may_repeat: [] },
        );
        assert.strictEqual(exported.message, stored.message);
        rules.add(exported.decision.rule);
      }
    }
    assert.isAtLeast(rules.size, 12);
  });

  it("succeeds for codes that matter: the meaning of a replaced code is kept in flags", () => {
    const failure = { kind: "transport", http2_code: "REFUSED_STREAM", code: "acme-oops" } as const;
    const stored = decided({ ...input, facts: { ...freshFacts, delivery: "accepted" }, failure });
    const { incident } = exportIncident(stored);
    assert.deepStrictEqual(RecoveryPolicy.decide(incident), stored.decision);
    assert.deepStrictEqual([incident.failure.code, incident.failure.not_processed], ["label_3", true]);
  });

  it("succeeds for the five values as the command line reads them", () => {
    const { facts: its, failure, run, budget, jitter, decision } = exportIncident(E.incident("r", 1)).incident;
    const parsed = DecisionInput.parse(JSON.parse(JSON.stringify({ facts: its, failure, run, budget, jitter })));
    assert.deepStrictEqual(parsed._tag === "Success" ? RecoveryPolicy.decide(parsed.success) : parsed, decision);
  });
});

describe("An export is bounded (L11)", () => {
  it("caps evidence between its anchors and counts the omitted rest", () => {
    const entries = Array.from({ length: 500 }, (_, index) => E.noted(index, "call", "handed_over"));
    const { evidence } = exportRun(E.folded([E.begun("r"), ...entries]));
    assert.deepStrictEqual(
      [evidence.first.length, evidence.last.length, evidence.omitted],
      [evidenceFirstMax, evidenceLastMax, 500 - evidenceFirstMax - evidenceLastMax],
    );
    // A log from another store may contain more than this recorder keeps.
    const many = Array.from({ length: 1_000 }, () => ({ at_ms: 1, attempt: 1, event: "call" }) as const);
    const record = { ...E.folded([E.begun("r")]), evidence: { first: many, last: many, omitted: 7 } };
    const long = exportRun(record).evidence;
    assert.deepStrictEqual(
      [long.first.length, long.last.length, long.omitted],
      [evidenceFirstMax, evidenceLastMax, 2_007 - evidenceFirstMax - evidenceLastMax],
    );
  });

  const full = (): RunRecord => {
    const tools = rowsOf(toolRowsMax, "x".repeat(128));
    const facts = { ...input.facts, tools };
    const big = decided({ ...input, facts });
    const incidents = Array.from({ length: incidentsMax }, (_, index) => ({
      ...big,
      id: `r.${index}`,
      attempt: index,
      status: index === 3 ? ("final" as const) : ("recovered" as const),
    }));
    const attempts = Array.from({ length: attemptsMax }, (_, index) => ({
      attempt: index,
      mode: "replay" as const,
      started_ms: index,
      facts,
    }));
    return { ...E.folded([E.begun("r"), E.ended({ incident: "r.3" })]), incidents, attempts };
  };

  it("stays below its limit in bytes: old attempts are dropped first, then old incidents, the final one never", () => {
    const run = exportRun(full());
    assert.isAtMost(Buffer.byteLength(encode(run)), exportBytesMax);
    assert.isAbove(Buffer.byteLength(encode(run)), exportBytesMax * 0.9);
    assert.strictEqual(run.incidents.length + run.incidents_omitted, incidentsMax);
    assert.strictEqual(run.attempts.length + run.attempts_omitted, attemptsMax);
    assert.strictEqual(run.attempts.length, 0);
    const kept = run.incidents.map(({ attempt }) => attempt);
    assert.strictEqual(kept[0], 3);
    assert.deepStrictEqual(
      kept.slice(1),
      Array.from({ length: kept.length - 1 }, (_, index) => incidentsMax - kept.length + 1 + index),
    );
    assert.strictEqual(run.final_incident, run.incidents[0]?.id);
  });

  it("keeps the newest attempts if the incidents leave room", () => {
    const run = exportRun({ ...full(), incidents: full().incidents.slice(0, 5) });
    assert.isAtMost(Buffer.byteLength(encode(run)), exportBytesMax);
    assert.strictEqual(run.incidents.length, 5);
    assert.isAbove(run.attempts.length, 2);
    assert.strictEqual(run.attempts.at(-1)?.attempt, attemptsMax - 1);
  });

  it("drops nothing of a run of normal size", () => {
    const run = exportRun(stoppedRun());
    assert.deepStrictEqual([run.attempts_omitted, run.incidents_omitted, run.evidence.omitted], [0, 0, 0]);
  });

  it("caps token counts, which a provider reports and which may be any number", () => {
    const counters = { ...freshFacts.counters, input_tokens: 4_111_111_111_111_111, output_tokens: 12 };
    const record = E.folded([E.begun("r"), E.attempt(1), E.raised(1, { counters })]);
    const exported = exportRun(record).attempts[0]?.facts.counters;
    assert.deepStrictEqual(exported, { ...counters, input_tokens: tokensMax });
  });

  it("refuses an incident with more calls than an attempt can have", () => {
    const facts = { ...input.facts, tools: rowsOf(toolRowsMax + 1) };
    assert.throws(() => exportIncident(decided({ ...input, facts })), /more calls/);
  });
});

describe("An export is the same for the same record", () => {
  const reversed = (value: unknown): unknown => {
    if (Array.isArray(value)) return value.map(reversed);
    if (typeof value !== "object" || value === null) return value;
    return Object.fromEntries(
      Object.entries(value)
        .reverse()
        .map(([key, inner]) => [key, reversed(inner)]),
    );
  };

  it("writes its keys in the order of the schema, whatever their order in the record", () => {
    for (const record of [stoppedRun(), E.folded(E.life("r"))]) {
      // The same record with its keys in another order.
      const turned = reversed(record) as RunRecord;
      assert.notStrictEqual(JSON.stringify(turned), JSON.stringify(record));
      assert.strictEqual(encode(exportRun(turned)), encode(exportRun(record)));
      const shuffled = reversed(exportRun(record)) as IncidentExport.RunExport;
      assert.strictEqual(encode(shuffled), encode(exportRun(record)));
    }
    assert.match(encode(exportRun(stoppedRun())), /^\{"export":"run","export_version":2,"provider":/);
  });

  it("exports a record after a round trip through JSON in the same way, and leaves it unchanged", () => {
    const record = stoppedRun();
    const before = JSON.stringify(record);
    assert.strictEqual(encode(exportRun(JSON.parse(before) as RunRecord)), encode(exportRun(record)));
    assert.strictEqual(JSON.stringify(record), before);
  });
});
