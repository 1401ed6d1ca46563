import { assert, describe, it } from "@effect/vitest";
import { Effect, Option } from "effect";
import { type Consequence, consequencesOf } from "../../src/cli/backtest/Redecision.ts";
import { backtest } from "../../src/cli/backtest.ts";
import { plainScreen } from "../../src/cli/terminal/Screen.ts";
import * as Json from "../../src/domain/Json.ts";
import { fresh as freshRun } from "../../src/domain/RunFacts.ts";
import type { RunIncident } from "../../src/domain/RunIncident.ts";
import type { DecisionInput } from "../../src/policy/DecisionInput.ts";
import * as RecoveryPolicy from "../../src/policy/RecoveryPolicy.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import { failure, printed } from "./Printed.ts";
import * as S from "./Stored.ts";

const screen = plainScreen(S.startedAt + 3_600_000);
const byDefault = {
  policy: RecoveryPolicy.default,
  budget: [],
  since: Option.none(),
  rule: Option.none(),
  json: true,
} as const;

const having = (incidents: ReadonlyArray<RunIncident>) =>
  Effect.flatMap(RunRecorder, (recorder) =>
    Effect.forEach(incidents, (incident) =>
      recorder.write(incident.run_id, [S.begun(incident.run_id), { _tag: "IncidentOpened", incident }]),
    ),
  );

const fenced: Partial<DecisionInput> = {
  facts: S.factsOf({
    call_through: 1,
    tools: [{ call: "0.0", tool: "bash", executor: "runtime", effect: "mutating", phase: "handed_over" }],
  }),
};
const textShown: Partial<DecisionInput> = { facts: S.factsOf({ shown: "text", text_through: 1 }) };

const totals = (text: string) => Json.record(Json.parse(text)?.json) ?? {};
const layer = RunRecorder.layerMemory();

describe("stream-recovery backtest", () => {
  it.effect("repeats every stored decision with its own policy, whichever policy decides again", () =>
    Effect.gen(function* () {
      yield* having([
        S.incidentOf("a", 1, fenced),
        S.incidentOf("b", 1, textShown),
        S.incidentOf("c", 1, fenced, S.startedAt, RecoveryPolicy.strict),
      ]);
      const { exit, stdout } = yield* printed(backtest({ ...byDefault, policy: RecoveryPolicy.strict }, screen));
      assert.strictEqual(exit._tag, "Success");
      const { changed, consequences, groups, incidents, same, unchanged, violations } = totals(stdout);
      assert.deepStrictEqual([incidents, same, violations, changed, unchanged], [3, 3, 0, 1, 2]);
      assert.deepStrictEqual(consequences, {
        tool_may_repeat: 0,
        text_twice: 0,
        question_saved: 0,
        question_added: 1,
        recovery_added: 0,
        recovery_lost: 1,
      });
      const [group] = Json.list(groups).map((it) => Json.record(it) ?? {});
      assert.deepStrictEqual(group?.before, { action: "auto_retry_once", rule: "tool_calls_fenced", mode: "replay" });
      assert.deepStrictEqual(group?.now, { action: "ask_user", rule: "tool_call_handed_over" });
      assert.deepStrictEqual(group?.examples, ["a"]);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("names a stored decision that its own facts do not give, and exits with code 1", () =>
    Effect.gen(function* () {
      const honest = S.incidentOf("a", 1, textShown);
      const forged = { ...honest, decision: S.incidentOf("a", 1, fenced).decision };
      yield* having([forged, S.incidentOf("b", 1, fenced)]);
      const said = yield* printed(backtest({ ...byDefault, json: false }, screen));
      assert.deepStrictEqual(failure(said), [
        "negative",
        "backtest: a stored incident no longer gives its stored decision (law L9)",
      ]);
      assert.include(said.stdout, "The record does not hold: 1 stored decision cannot be reproduced");
      assert.include(
        said.stdout,
        "a.1: stored auto_retry_once (replay) by tool_calls_fenced, again ask_user by text_shown (policy default, version 3)",
      );
    }).pipe(Effect.provide(layer)),
  );

  it.effect("reports a difference between rule versions separately, because it is no violation", () =>
    Effect.gen(function* () {
      const { decision, ...rest } = S.incidentOf("a", 1, textShown);
      yield* having([
        { ...rest, decision: { ...S.incidentOf("a", 1, fenced).decision, policy_version: "0" } },
        { ...S.incidentOf("b", 1, textShown), decision: { ...decision, policy_version: "0" } },
        { ...S.incidentOf("c", 1, textShown), policy: "mine" },
      ]);
      const { exit, stdout } = yield* printed(backtest(byDefault, screen));
      assert.strictEqual(exit._tag, "Success");
      const { other_version, same, unknown_policy, versions, violations } = totals(stdout);
      assert.deepStrictEqual([same, other_version, versions, unknown_policy, violations], [1, 1, ["0"], 1, 0]);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("decides with another budget, for incidents since a time or of one rule", () =>
    Effect.gen(function* () {
      yield* having([S.incidentOf("a", 1, fenced), S.incidentOf("b", 1, textShown, S.startedAt - 10 * 86_400_000)]);
      const spent = yield* printed(backtest({ ...byDefault, budget: ["max_auto_retries=0"] }, screen));
      assert.strictEqual(totals(spent.stdout).changed, 1);
      const asJson = yield* printed(backtest({ ...byDefault, budget: ['{"max_auto_retries":0}'] }, screen));
      assert.strictEqual(asJson.stdout, spent.stdout);
      const recent = yield* printed(backtest({ ...byDefault, since: Option.some("7d") }, screen));
      assert.strictEqual(totals(recent.stdout).incidents, 1);
      const ruled = yield* printed(backtest({ ...byDefault, rule: Option.some("text_shown") }, screen));
      assert.strictEqual(totals(ruled.stdout).incidents, 1);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("reads every page", () =>
    Effect.gen(function* () {
      yield* having(
        Array.from({ length: 450 }, (_, n) => S.incidentOf(`run-${n}`, 1, n % 2 === 0 ? fenced : textShown)),
      );
      const { stdout } = yield* printed(backtest(byDefault, screen));
      assert.deepStrictEqual([totals(stdout).runs, totals(stdout).same], [450, 450]);
    }).pipe(Effect.provide(layer)),
  );

  it.effect("refuses invalid limits, times and rules in one line, and reports an empty result", () =>
    Effect.gen(function* () {
      const refused = function* (more: Partial<Parameters<typeof backtest>[0]>) {
        return failure(yield* printed(backtest({ ...byDefault, ...more }, screen)));
      };
      for (const budget of ["retries=1", "max_auto_retries=-1", "max_auto_retries", '{"max_auto_retries":1.5}', "[]"]) {
        const [reason, line] = yield* refused({ budget: [budget] });
        assert.strictEqual(reason, "refused", budget);
        assert.match(line, /^backtest: --budget: [^\n]+$/);
      }
      assert.strictEqual((yield* refused({ since: Option.some("yesterday") }))[0], "refused");
      assert.strictEqual((yield* refused({ rule: Option.some("nothing") }))[0], "refused");
      assert.strictEqual((yield* refused({}))[0], "negative");
    }).pipe(Effect.provide(layer)),
  );
});

describe("the consequences of another decision", () => {
  const asked = S.incidentOf("a", 1, {
    facts: S.factsOf({
      shown: "text",
      text_through: 1,
      call_through: 2,
      tools: [{ call: "0.0", tool: "bash", executor: "runtime", effect: "mutating", phase: "dispatched" }],
    }),
  });
  const retried = S.incidentOf("b", 1, fenced);
  const replay = retried.decision;
  const stop = S.incidentOf("c", 1, { run: { ...freshRun, user_cancelled: true } }).decision;
  const cases: ReadonlyArray<readonly [string, RunIncident, RunIncident["decision"], ReadonlyArray<Consequence>]> = [
    [
      "a replay of a call that may have run, where a question stood",
      asked,
      replay,
      ["tool_may_repeat", "text_twice", "question_saved", "recovery_added"],
    ],
    ["a question where a retry stood", retried, asked.decision, ["question_added", "recovery_lost"]],
    ["an end where a question stood", asked, stop, ["question_saved"]],
    ["the same", retried, { ...replay, delay_ms: 9 }, []],
    ["a continuation repeats nothing", asked, { ...replay, mode: "continue" }, ["question_saved", "recovery_added"]],
  ];
  for (const [name, incident, now, expected] of cases) {
    it(name, () => assert.deepStrictEqual(consequencesOf(incident, now), expected));
  }

  it("include that a read-only call may run twice", () => {
    const tools = asked.facts.tools.map((row) => ({ ...row, effect: "read_only" as const }));
    const reading = { ...asked, facts: { ...asked.facts, tools } };
    assert.notInclude(consequencesOf(reading, replay), "tool_may_repeat");
  });
});
