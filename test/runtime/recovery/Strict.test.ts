/**
 * The strict preset, row by row, through `run`: one retry after a fixed second, and
 * only of an attempt that provably did nothing.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as RecoveryPolicy from "../../../src/policy/RecoveryPolicy.ts";
import { rows as strictRows } from "../../../src/policy/StrictPolicy.ts";
import * as S from "../Scripted.ts";
import { playedOut, type Scenario } from "./RuleBench.ts";
import { rows, vetoes } from "./StrictCases.ts";

const { done, fail, reset } = S;

const played = (scenario: Scenario) => playedOut(scenario, { policy: RecoveryPolicy.strict });

describe("The strict policy through run, row by row (L9)", () => {
  for (const strict of [...rows, ...vetoes]) {
    it.effect(`${strict.rule}: ${strict.when}`, () =>
      Effect.gen(function* () {
        const its = yield* played(strict);
        assert.deepStrictEqual(its.lines, strict.lines);
        assert.strictEqual(its.provider.attempts.length, strict.attempts.length);
        const { incidents } = its.record;
        assert.include(
          incidents.map((incident) => incident.decision.rule),
          strict.rule,
        );
        for (const incident of incidents) {
          assert.strictEqual(incident.policy, "strict");
          assert.deepStrictEqual(RecoveryPolicy.strict.decide(incident), incident.decision);
          assert.notInclude(["continue", "resume"], incident.decision.mode);
        }
      }),
    );
  }

  it("has a case for every row of the strict table", () =>
    assert.deepStrictEqual(
      strictRows.filter((row) =>
        row.rules.some((rule) => !rows.some((it) => it.row === row.number && it.rule === rule)),
      ),
      [],
    ));
});

describe("The strict policy's one retry", () => {
  const waits: ReadonlyArray<readonly [string, S.Step, number]> = [
    ["comes after a fixed second", reset, 1_000],
    ["comes after a fixed second of a refused request too", fail({ kind: "overloaded" }), 1_000],
    ["waits for a longer Retry-After", fail({ kind: "rate_limited", retry_after_ms: 7_000 }), 7_000],
    ["does not come sooner for a shorter Retry-After", fail({ kind: "rate_limited", retry_after_ms: 10 }), 1_000],
  ];
  for (const [when, broken, at_ms] of waits) {
    it.effect(when, () =>
      Effect.gen(function* () {
        const { record } = yield* played({ attempts: [[broken], [done]] });
        assert.deepStrictEqual(
          record.attempts.map((attempt) => attempt.started_ms),
          [0, at_ms],
        );
      }),
    );
  }

  it.effect("is available again after a person's retry", () =>
    Effect.gen(function* () {
      const its = yield* played({ attempts: [[reset], [reset], [reset], [done]], answers: ["retry"] });
      assert.deepStrictEqual(its.lines, [
        "attempt 1 first",
        "retry replay nothing_shown",
        "attempt 2 replay",
        "ask budget_exhausted",
        "answer retry",
        "attempt 3 replay",
        "retry replay nothing_shown",
        "attempt 4 replay",
        "done",
        "completed",
      ]);
    }),
  );
});
