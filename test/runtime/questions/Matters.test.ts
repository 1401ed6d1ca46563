/** A caller may be asked only where an answer makes a difference to it. */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";

const pay = { name: "pay", executor: "provider", effect: "mutating" } as const;
const wise = { asks: "if_it_matters", discardable: false, runId: "r" } as const;

describe("asks: if_it_matters", () => {
  it.effect("asks nothing if no choice changes anything for the caller, and records the reason", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.text("a"), S.reset]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, wise)));
      assert.deepStrictEqual(seen.lines, ["attempt 1 first", "start", "a", "end stopped text_shown"]);
      const record = yield* S.recordOf("r");
      assert.lengthOf(record.questions, 0);
      assert.strictEqual(record.incidents[0]?.decision.action, "ask_user");
      assert.include(JSON.stringify(record.evidence), "no_choice_matters");
    }).pipe(Effect.provide(S.processor(["accept"]))),
  );

  it.effect("asks if the response can be requested again or continued", () =>
    Effect.gen(function* () {
      const unshown = S.scripted([S.start, S.providerCall("pay"), S.reset], S.hello);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(unshown, { ...wise, tools: [pay] })));
      assert.include(seen.lines, "answer retry");
      assert.strictEqual(seen.lines.at(-1), "completed");
      for (const more of [{ discardable: true }, { canContinue: true }]) {
        const shown = S.scripted([S.start, S.text("a"), S.reset], S.hello);
        const again = yield* S.played((yield* StreamProcessor).run(S.options(shown, { asks: wise.asks, ...more })));
        assert.include(again.lines, "ask text_shown");
      }
    }).pipe(Effect.provide(S.processor(["retry"]))),
  );

  it.effect("asks every question of a run without `asks: if_it_matters`", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.text("a"), S.reset]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { discardable: false })));
      assert.include(seen.lines, "ask text_shown");
    }).pipe(Effect.provide(S.processor())),
  );
});
