/** `decide` with values outside its types: it permits no more than for the worst value of the type. */
import { assert, describe, it } from "@effect/vitest";
import { Schema } from "effect";
import {
  AttemptFacts,
  Delivery,
  fresh as freshFacts,
  isAtMost,
  Progress,
  pickHigher,
  Shown,
  ToolPhase,
} from "../../src/domain/AttemptFacts.ts";
import { type Action, Decision } from "../../src/domain/Decision.ts";
import { Failure, resolve } from "../../src/domain/Failure.ts";
import * as FailureReading from "../../src/domain/FailureReading.ts";
import { Budget, defaultBudget, fresh as freshRun, RunFacts } from "../../src/domain/RunFacts.ts";
import type { RunIncident } from "../../src/domain/RunIncident.ts";
import { Executor, ToolEffect } from "../../src/domain/SideEffects.ts";
import * as Facts from "../../src/facts/Facts.ts";
import { type DecisionInput, ofIncident } from "../../src/policy/DecisionInput.ts";
import { explain } from "../../src/policy/Explanation.ts";
import * as InputReading from "../../src/policy/InputReading.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";

const rank: Record<Action, number> = { auto_retry_once: 0, ask_user: 1, do_not_retry: 2 };

/** Values that are valid in no field of a decision's input. */
const foreign: ReadonlyArray<unknown> = [
  undefined,
  Number.NaN,
  Number.POSITIVE_INFINITY,
  -1,
  "running",
  "",
  "constructor",
  "__proto__",
  {},
  [],
  () => 0,
  Symbol("word"),
  10n,
];

const row = { call: "0.0", tool: "pay", executor: "runtime", effect: "mutating", phase: "handed_over" } as const;
const guarded = { ...freshFacts.side_effects, guarded: true, complete: true, reason: "all_classified" as const };
const counts = { read_only: 0, mutating: 0, unknown: 0 };

const inputs: ReadonlyArray<DecisionInput> = [
  { ...freshFacts, delivery: "accepted" as const },
  { ...freshFacts, delivery: "accepted" as const, shown: "reasoning" as const },
  {
    ...freshFacts,
    delivery: "accepted" as const,
    progress: "output" as const,
    call_through: 1,
    tools: [row],
    side_effects: { ...guarded, runtime: { ...counts, mutating: 1 }, provider: counts },
  },
  {
    ...freshFacts,
    delivery: "accepted" as const,
    progress: "output" as const,
    settled_through: 2,
    call_through: 1,
    tools: [{ ...row, phase: "settled" as const }],
    side_effects: { ...guarded, runtime: { ...counts, mutating: 1 }, provider: counts },
  },
].flatMap(
  (facts): ReadonlyArray<DecisionInput> =>
    [freshRun, { ...freshRun, can_continue: true }, { ...freshRun, resumable: true }].map((run) => ({
      facts,
      failure: { kind: "transport" },
      run,
      budget: defaultBudget,
      jitter: 0.5,
    })),
);

type Json = { readonly [key: string]: unknown };
type Path = ReadonlyArray<string>;

/** The paths of every field of a value, at any depth. */
const pathsOf = (value: unknown, path: Path = []): ReadonlyArray<Path> =>
  typeof value === "object" && value !== null
    ? Object.entries(value).flatMap(([key, held]) => [[...path, key], ...pathsOf(held, [...path, key])])
    : [];

const replaced = (value: unknown, [key, ...rest]: Path, by: unknown): unknown => {
  if (key === undefined) return by;
  if (Array.isArray(value)) return value.map((held, at) => (String(at) === key ? replaced(held, rest, by) : held));
  // Callers only pass paths that the value has.
  const held = value as Json;
  return { ...held, [key]: replaced(held[key], rest, by) };
};

const at = (value: unknown, path: Path): unknown =>
  // Callers only pass paths that the value has.
  path.reduce<unknown>((held, key) => (held as Json)[key], value);

/** Returns true if a decision reads the field. Counters and names are only for reports. */
const decides = (path: Path): boolean =>
  !["counters", "call", "tool", "reason", "complete", "read_only"].some((name) => path.includes(name));

const known = Schema.is(Decision);

describe("decide with values that it does not know", () => {
  it("is total: with any value in any field, the decision fits its schema and has a sentence", () => {
    for (const policy of [RecoveryPolicy.default, RecoveryPolicy.strict]) {
      for (const input of inputs) {
        for (const path of pathsOf(input)) {
          for (const value of foreign) {
            // An untyped caller may pass this.
            const given = replaced(input, path, value) as DecisionInput;
            const decision = policy.decide(given);
            assert.isTrue(known(decision), `${path.join(".")} = ${String(value)}: ${JSON.stringify(decision)}`);
            assert.match(explain(decision, given.failure, freshFacts), /^[A-Z].*\.$/);
          }
        }
      }
    }
  });

  it("L2 fails closed: it permits no more than for any valid value of the field", () => {
    const chains: ReadonlyArray<readonly [Path, ReadonlyArray<unknown>]> = [
      [["facts", "delivery"], Delivery.literals],
      [["facts", "progress"], Progress.literals],
      [["facts", "shown"], Shown.literals],
      [
        ["facts", "text_through"],
        [0, 1, 2, 3],
      ],
      [["facts", "call_through"], [0]],
      [["facts", "settled_through"], [0]],
      [["facts", "tools", "0", "executor"], Executor.literals],
      [["facts", "tools", "0", "effect"], ToolEffect.literals],
      [["facts", "tools", "0", "phase"], ToolPhase.literals],
      [["facts", "side_effects"], [null]],
      ...(["user_cancelled", "lifecycle_closed", "can_continue", "resumable", "discardable"] as const).map(
        (flag) =>
          [
            ["run", flag],
            [true, false],
          ] as const,
      ),
      ...(["auto_retries", "elapsed_ms", "throttle_wait_ms"] as const).map(
        (counter) =>
          [
            ["run", counter],
            [0, 1, 400_000],
          ] as const,
      ),
      ...Object.keys(defaultBudget).map(
        (limit) =>
          [
            ["budget", limit],
            [0, 5],
          ] as const,
      ),
    ];
    for (const input of inputs) {
      for (const [path, values] of chains) {
        if (path[2] === "0" && input.facts.tools.length === 0) continue;
        // An untyped caller may pass these.
        const decide = (value: unknown) => RecoveryPolicy.decide(replaced(input, path, value) as DecisionInput);
        const most = Math.max(...values.map((value) => rank[decide(value).action]));
        for (const value of foreign) {
          if (typeof value === "number" && value >= 0 && value < Infinity) continue;
          const { action } = decide(value);
          assert.isAtLeast(rank[action], most, `${path.join(".")} = ${String(value)} over ${JSON.stringify(input)}`);
        }
      }
    }
  });

  it("L2 fails closed over path, wait, route, tokens and group, too, in any state of the run", () => {
    const amounts = [0, 1, 9_000, 400_000];
    const fields: ReadonlyArray<readonly [Path, ReadonlyArray<unknown>]> = [
      [
        ["run", "path"],
        ["up", "down"],
      ],
      [
        ["run", "next_route"],
        ["none", "up"],
      ],
      [
        ["run", "own_route"],
        [true, false],
      ],
      ...(["waited_ms", "cooldown_ms", "moves", "wasted_tokens", "next_tokens"] as const).map(
        (name) => [["run", name], amounts] as const,
      ),
      ...(["group_retries", "group_wasted_tokens"] as const).map((name) => [["run", name], amounts] as const),
      [
        ["budget", "max_outage_ms"],
        [0, 5, "forever"],
      ],
      [
        ["budget", "max_moves"],
        [0, 5],
      ],
      ...(["max_wasted_tokens", "max_group_retries", "max_group_wasted_tokens"] as const).map(
        (name) =>
          [
            ["budget", name],
            [0, 5],
          ] as const,
      ),
    ];
    const places: ReadonlyArray<Partial<RunFacts>> = [
      {},
      { path: "down" },
      { path: "down", auto_retries: 3, not_processed_retries: 5 },
      { cooldown_ms: 9_000, throttle_wait_ms: 70_000 },
      { next_route: "up", auto_retries: 3 },
      { next_route: "up", path: "down", wasted_tokens: 3, group_retries: 3 },
    ];
    const budget = { ...defaultBudget, max_wasted_tokens: 10, max_group_retries: 10, max_group_wasted_tokens: 10 };
    const failures: ReadonlyArray<Failure> = [{ kind: "transport" }, { kind: "rejected", reason: "quota" }];
    for (const place of places) {
      for (const failure of failures) {
        for (const delivery of ["not_sent", "accepted"] as const) {
          const facts = { ...freshFacts, delivery };
          const input: DecisionInput = { facts, failure, run: { ...freshRun, ...place }, budget, jitter: 0.5 };
          for (const [path, values] of fields) {
            // An untyped caller may pass these.
            const decide = (value: unknown) => RecoveryPolicy.decide(replaced(input, path, value) as DecisionInput);
            const most = Math.max(...values.map((value) => rank[decide(value).action]));
            for (const value of foreign) {
              if (typeof value === "number" && value >= 0 && value < Infinity) continue;
              // An omitted limit limits nothing.
              if (value === undefined && path[0] === "budget" && !(path[1] !== undefined && path[1] in defaultBudget))
                continue;
              const { action } = decide(value);
              assert.isAtLeast(
                rank[action],
                most,
                `${path.join(".")} = ${String(value)} over ${JSON.stringify(input)}`,
              );
            }
          }
        }
      }
    }
  });

  it("no invalid value in a field that it reads turns a question into a replay", () => {
    for (const input of inputs) {
      const before = RecoveryPolicy.decide(input);
      if (before.action === "auto_retry_once") continue;
      for (const path of pathsOf(input).filter(decides)) {
        for (const value of foreign) {
          if (Array.isArray(value) && path.at(-1) === "tools") continue;
          // An untyped caller may pass this.
          const { mode } = RecoveryPolicy.decide(replaced(input, path, value) as DecisionInput);
          assert.notStrictEqual(mode, "replay", `${path.join(".")} = ${String(value)}, was ${String(at(input, path))}`);
        }
      }
    }
  });

  it("no field of facts, run or budget is trusted unchecked: an invalid value is replaced, except in counters", () => {
    const fields = { facts: AttemptFacts.fields, run: RunFacts.fields, budget: Budget.fields };
    for (const input of inputs) {
      for (const [part, of] of Object.entries(fields)) {
        for (const field of Object.keys(of).filter((name) => name !== "counters")) {
          for (const value of foreign) {
            // A ledger without rows is valid.
            if (Array.isArray(value) || (typeof value === "number" && value >= 0 && value < Infinity)) continue;
            // An optional limit may be undefined.
            if (value === undefined && part === "budget" && !(field in defaultBudget)) continue;
            // An untyped caller may pass this.
            const believed = InputReading.read(replaced(input, [part, field], value) as DecisionInput);
            assert.notStrictEqual(at(believed, [part, field]), value, `${part}.${field} = ${String(value)}`);
            assert.strictEqual(InputReading.read({ ...believed, failure: input.failure }).facts, believed.facts);
          }
        }
      }
    }
  });

  it("a call in a phase of a newer version raises a question and is not repeated", () => {
    for (const phase of ["running", "", "toString"]) {
      const facts = { ...freshFacts, delivery: "accepted", tools: [{ ...row, phase }] };
      // A record of a newer version may contain this.
      const input = { ...inputs[0], facts } as unknown as DecisionInput;
      assert.strictEqual(RecoveryPolicy.decide(input).rule, "tool_outcome_unknown");
    }
  });

  it("a budget that is no number allows nothing", () => {
    for (const limit of [Number.NaN, Number.POSITIVE_INFINITY, -1]) {
      const [input] = inputs;
      assert.isDefined(input);
      const budget = { ...defaultBudget, max_elapsed_ms: limit };
      assert.strictEqual(RecoveryPolicy.decide({ ...input, budget }).rule, "budget_exhausted");
    }
  });

  it("a wait that is no number exceeds any budget, and an invalid jitter waits longest", () => {
    const [input] = inputs;
    assert.isDefined(input);
    for (const retry_after_ms of [Number.NaN, Number.POSITIVE_INFINITY]) {
      const decision = RecoveryPolicy.decide({ ...input, failure: { kind: "rate_limited", retry_after_ms } });
      assert.strictEqual(decision.rule, "retry_after_too_long");
    }
    assert.strictEqual(RecoveryPolicy.decide({ ...input, jitter: Number.NaN }).delay_ms, 500);
  });
});

describe("L9 replayable", () => {
  const [first] = inputs;
  const { facts, run } = first ?? assert.fail("no input");
  const incident = (failure: Failure, more: Partial<typeof freshRun>, decision: Partial<Decision>): RunIncident => ({
    schema_version: 1,
    id: "r.1",
    run_id: "r",
    attempt: 1,
    mode: "first",
    at: 0,
    provider: { id: "p" },
    facts,
    failure,
    run: { ...run, ...more },
    budget: defaultBudget,
    jitter: 0.5,
    policy: "default",
    decision: { action: "ask_user", rule: "text_shown", delay_ms: 0, policy_version: "1", because: [], ...decision },
    message: "",
    status: "open",
  });

  it("an incident of version 1 is decided as it was, whatever later versions know about codes and credentials", () => {
    const old: ReadonlyArray<readonly [RunIncident, Decision["rule"]]> = [
      [incident({ kind: "transport", code: "CERT_HAS_EXPIRED" }, {}, {}), "nothing_shown"],
      [incident({ kind: "transport", http2_code: "PROTOCOL_ERROR" }, {}, {}), "nothing_shown"],
      [incident({ kind: "transport", code: "ERR_HTTP2_GOAWAY_SESSION" }, {}, {}), "nothing_shown"],
      [incident({ kind: "server_error", status: 511 }, {}, {}), "nothing_shown"],
      [incident({ kind: "server_error", status: 501 }, {}, {}), "not_retryable"],
      [
        incident({ kind: "rejected", reason: "auth" }, { mode: "continue", can_refresh_credentials: true }, {}),
        "recovery_refused",
      ],
    ];
    for (const [it, rule] of old) {
      assert.strictEqual(RecoveryPolicy.decide(ofIncident(it)).rule, rule);
      const now = { ...it, decision: { ...it.decision, policy_version: RecoveryPolicy.version } };
      const { budget, failure, jitter } = now;
      assert.deepStrictEqual(ofIncident(now), { facts, failure, run: now.run, budget, jitter });
    }
  });
});

describe("the chains", () => {
  it("a value that a chain does not have is above all others and is lost in no join", () => {
    // An untyped caller may pass this.
    const word = "running" as "settled";
    for (const phase of ToolPhase.literals) {
      assert.isFalse(isAtMost(ToolPhase, word, phase));
      assert.isTrue(isAtMost(ToolPhase, phase, word));
      assert.strictEqual(pickHigher(ToolPhase, word, phase), word);
      assert.strictEqual(pickHigher(ToolPhase, phase, word), word);
    }
  });

  it("L1 the fold keeps it: no later part revises an unknown value", () => {
    const fold = Facts.make({ sideEffects: null, discardable: true, boundaries: [], guarded: false });
    const part = { quiet: false, keep_alive: false, characters: 1, calls: [], terminal: false } as const;
    // An untyped caller may pass this.
    const word = "image" as "text";
    fold.passed([{ ...part, progress: "output", shows: word }]);
    fold.passed([{ ...part, progress: "output", shows: "text" }]);
    const facts: AttemptFacts = fold.snapshot();
    assert.strictEqual(facts.shown, word);
  });
});

describe("A failure of unknown origin", () => {
  const isFailure = Schema.is(Failure);

  it("is read as a failure that fits its schema, and a valid failure is returned unchanged", () => {
    const values = [...foreign, null, 5, { kind: "oops" }, { kind: 5 }, { kind: "toString" }];
    for (const value of values) assert.deepStrictEqual(FailureReading.read(value), { kind: "unknown" });
    const failure: Failure = { kind: "rate_limited", status: 429, retry_after_ms: 5, code: "x" };
    assert.strictEqual(FailureReading.read(failure), failure);
    const kinds = ["transport", "stalled", "rejected", "protocol", "cancelled", "server_error", "crashed"];
    const fields = ["retryable", "not_processed", "in_band", "retry_after_ms", "status", "code", "fingerprint"];
    const own = ["operation", "http2_code", "reached_host_before", "clock", "reason", "by"];
    for (const kind of kinds) {
      for (const field of [...fields, ...own]) {
        for (const value of [...foreign, null, 1.5, 1_000, "x".repeat(300), true]) {
          const read = FailureReading.read({ kind, [field]: value });
          assert.isTrue(isFailure(read), `${kind}.${field} = ${String(value)}: ${JSON.stringify(read)}`);
          const sent = Schema.decodeUnknownSync(Failure)(JSON.parse(JSON.stringify(read)));
          assert.deepStrictEqual({ ...resolve(sent) }, { ...resolve(read) });
        }
      }
    }
  });

  it("permits least: a flag that is no boolean is false, and an unknown reason is not retried", () => {
    const retryable = (value: unknown) => resolve(FailureReading.read(value)).retryable;
    assert.isFalse(retryable({ kind: "transport", retryable: "yes" }));
    assert.isFalse(retryable({ kind: "stalled", clock: "lunar" }));
    assert.isFalse(retryable({ kind: "protocol", reason: "new" }));
    assert.isFalse(retryable({ kind: "cancelled", by: "newcomer" }));
    assert.isFalse(retryable({ kind: "rejected" }));
    assert.isTrue(retryable({ kind: "transport" }));
  });
});

describe("the reading of an input", () => {
  const max = Number.MAX_SAFE_INTEGER;
  const amounts = { valid: [0, 1, 2.5, max], invalid: [-1, Number.NaN, Number.POSITIVE_INFINITY, "1", null] };
  const flags = { valid: [true, false], invalid: [0, "true", null] };
  const words = (...valid: ReadonlyArray<string>) => ({ valid, invalid: ["else", 5, null] });
  type Field = { readonly valid: ReadonlyArray<unknown>; readonly invalid: ReadonlyArray<unknown> };
  /** Each field of the run with the value that permits least. */
  const run: Readonly<Record<keyof RunFacts, readonly [Field, unknown]>> = {
    mode: [words("first", "replay", "continue", "resume"), "first"],
    continue_text: [words("ask", "auto"), "ask"],
    path: [words("up", "down"), "down"],
    next_route: [words("none", "up"), "none"],
    user_cancelled: [flags, true],
    lifecycle_closed: [flags, true],
    can_continue: [flags, false],
    resumable: [flags, false],
    discardable: [flags, false],
    can_refresh_credentials: [flags, false],
    waited_for_path: [flags, false],
    own_route: [flags, false],
    tokens_estimated: [flags, true],
    same_partial: [flags, true],
    credential_refreshes: [amounts, max],
    throttle_wait_ms: [amounts, max],
    auto_retries: [amounts, max],
    not_processed_retries: [amounts, max],
    retries_after_shown: [amounts, max],
    retries_after_stall: [amounts, max],
    retries_after_empty: [amounts, max],
    elapsed_ms: [amounts, max],
    waited_ms: [amounts, max],
    cooldown_ms: [amounts, max],
    route_failures: [amounts, 0],
    moves: [amounts, max],
    wasted_tokens: [amounts, max],
    next_tokens: [amounts, max],
    group_retries: [amounts, max],
    group_wasted_tokens: [amounts, max],
  };
  const limits = Object.keys({
    ...defaultBudget,
    max_wasted_tokens: 0,
    max_group_retries: 0,
    max_group_wasted_tokens: 0,
  });
  const budget = Object.fromEntries(
    limits.map((name): [string, readonly [Field, unknown]] => [
      name,
      [name === "max_outage_ms" ? { ...amounts, valid: [...amounts.valid, "forever"] } : amounts, 0],
    ]),
  );
  const base: DecisionInput = {
    facts: freshFacts,
    failure: { kind: "truncated" },
    run: freshRun,
    budget: { ...defaultBudget, max_wasted_tokens: 1, max_group_retries: 2, max_group_wasted_tokens: 3 },
    jitter: 0.5,
  };

  for (const [part, fields] of Object.entries({ run, budget }))
    for (const [name, [{ invalid, valid }, worst]] of Object.entries(fields))
      it(`keeps a valid ${part}.${name}, and replaces an invalid one alone by what permits least`, () => {
        const own = part === "run" ? base.run : base.budget;
        const given = (value: unknown) => ({ ...base, [part]: { ...own, [name]: value } }) as DecisionInput;
        for (const value of valid) {
          const input = given(value);
          assert.strictEqual(InputReading.read(input), input, String(value));
        }
        // The time of a run whose path is a guess counts as spent.
        const repaired = given(worst);
        const expected = name === "path" ? { ...repaired, run: { ...repaired.run, elapsed_ms: max } } : repaired;
        for (const value of invalid) assert.deepStrictEqual(InputReading.read(given(value)), expected, String(value));
      });

  it("is the worst input for one that is none", () => {
    for (const none of [undefined, null, 1, "x", []]) {
      // Plain JavaScript passes this.
      const given = { facts: none, failure: none, run: none, budget: none, jitter: none } as unknown as DecisionInput;
      const { budget: worstBudget, facts, ...others } = InputReading.read(given);
      assert.deepStrictEqual<unknown>(others, {
        failure: { kind: "unknown" },
        run: Object.fromEntries(Object.entries(run).map(([name, [, worst]]) => [name, worst])),
        jitter: 1,
      });
      assert.deepInclude<object>(facts, {
        ...{ delivery: "accepted", progress: "output", shown: "text", terminal_seen: false, side_effects: null },
        ...{ text_through: max, call_through: 0, settled_through: 0 },
        tools: [{ call: "", tool: "", executor: "runtime", effect: "unknown", phase: "outcome_unknown" }],
      });
      // A limit that may be omitted limits nothing here, because no retry is left.
      for (const name of Object.keys(defaultBudget)) assert.strictEqual(Reflect.get(worstBudget, name), 0, name);
    }
  });

  it("has a jitter from 0 to 1", () => {
    for (const jitter of [0, 0.5, 1]) assert.strictEqual(InputReading.read({ ...base, jitter }).jitter, jitter);
    for (const jitter of [-0.1, 1.1, Number.NaN]) assert.strictEqual(InputReading.read({ ...base, jitter }).jitter, 1);
  });
});
