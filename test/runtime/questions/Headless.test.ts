/** No person is there: a choice for every question alike repeats no side effect; a choice for a rule by its name may. */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Layer } from "effect";
import type { Choice } from "../../../src/domain/Decision.ts";
import type { Question } from "../../../src/recorder/Question.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as L from "../crash/Lives.ts";
import * as S from "../Scripted.ts";

const { decision, id, message } = L.incident(1, L.facts(L.text));

const question = (may_repeat: ReadonlyArray<string>, choices: ReadonlyArray<Choice>, revision = 1): Question => ({
  run_id: "r",
  revision,
  incident: id,
  rule: "tool_outcome_unknown",
  message,
  may_repeat,
  choices,
  default_choice: "stop",
  asked_at: 0,
  decision,
});

const told = (options: UserDecisions.HeadlessOptions, may_repeat: ReadonlyArray<string> = ["0.0"]) =>
  Effect.gen(function* () {
    const layer = yield* Layer.build(UserDecisions.layerHeadless(options));
    const choices = ["retry", "continue", "it_ran", "it_did_not_run", "stop"] as const;
    return yield* Context.get(layer, UserDecisions).ask(question(may_repeat, choices));
  });

describe("A blanket answer", () => {
  for (const [otherwise, may_repeat, expected] of [
    ["retry", ["0.0"], "stop"],
    ["retry", [], "retry"],
    ["it_did_not_run", ["0.0"], "stop"],
    ["it_ran", ["0.0"], "it_ran"],
    ["continue", ["0.0"], "continue"],
    ["accept", [], "stop"],
  ] as const) {
    it.effect(`${otherwise}, where ${may_repeat.length} calls may run again, is ${expected}`, () =>
      Effect.gen(function* () {
        assert.strictEqual(yield* told({ otherwise }, may_repeat), expected);
      }),
    );
  }
});

describe("An answer by rule", () => {
  for (const choice of ["retry", "it_did_not_run"] as const) {
    it.effect(`is taken at its word: ${choice}`, () =>
      Effect.gen(function* () {
        const options = { otherwise: "stop", rules: { tool_outcome_unknown: choice } } as const;
        assert.strictEqual(yield* told(options), choice);
      }),
    );
  }
});

describe("A program that answers", () => {
  for (const options of [{ otherwise: "retry" }, { rules: { tool_outcome_unknown: "continue" } }] as const)
    it.effect(`stops a run at its sixth question, whatever it answers: ${JSON.stringify(options)}`, () =>
      Effect.gen(function* () {
        const layer = yield* Layer.build(UserDecisions.layerHeadless(options));
        const asked = (revision: number) =>
          Context.get(layer, UserDecisions).ask(question([], ["retry", "continue", "stop"], revision));
        assert.notStrictEqual(yield* asked(5), "stop");
        assert.strictEqual(yield* asked(6), "stop");
      }),
    );

  it.effect("does not pay without an end for a failure that stays", () =>
    Effect.gen(function* () {
      const unknown = S.fail({ kind: "unknown" });
      const provider = S.scripted(...Array.from({ length: 20 }, () => [S.text("half"), unknown]));
      const seen = yield* S.watch((yield* StreamProcessor).run(S.options(provider)));
      assert.strictEqual(S.errorOf(seen.exit)?.reason, "stopped");
      assert.isAtMost(provider.attempts.length, 6);
    }).pipe(
      Effect.provide(
        StreamProcessor.layer.pipe(
          Layer.provideMerge(
            Layer.merge(RunRecorder.layerMemory(), UserDecisions.layerHeadless({ otherwise: "retry" })),
          ),
        ),
      ),
    ),
  );
});
