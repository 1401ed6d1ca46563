/** The cost of runs, read from the records of played runs, so that they are as a recorder writes them. */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { Prices } from "../../src/domain/Prices.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import { type RunTokens, tokensOf, tokenWords } from "../../src/story/RunTokens.ts";
import * as S from "../runtime/Scripted.ts";

const spentBy = (
  scripts: ReadonlyArray<ReadonlyArray<S.Step>>,
  more: Parameters<typeof S.options>[1] = {},
  prices?: Prices,
) =>
  Effect.gen(function* () {
    yield* S.played((yield* StreamProcessor).run(S.options(S.scripted(...scripts), { runId: "r", ...more })));
    return tokensOf(yield* S.recordOf("r"), prices);
  }).pipe(Effect.provide(S.processor()));

/** The words with plain spaces between the digits. */
const words = (tokens: RunTokens) => tokenWords(tokens)?.replaceAll("\u202f", " ");

const broken = [S.start, S.usage(500, 20), S.reset];
const whole = [S.start, S.text("hello"), S.usage(500, 2), S.done];

describe("The tokens of a run", () => {
  it.effect("are used if its response is kept, and wasted if it broke", () =>
    Effect.gen(function* () {
      const tokens = yield* spentBy([broken, broken, whole]);
      assert.deepStrictEqual(tokens, { used: 502, wasted: 1_040, estimated: false });
      assert.strictEqual(words(tokens), "1 542 tokens, 1 040 of them wasted");
    }),
  );

  it.effect("are all wasted if the run stops", () =>
    Effect.gen(function* () {
      const stopped = yield* spentBy([[S.start, S.usage(500, 20), S.text("x"), S.reset]]);
      assert.deepStrictEqual(stopped, { used: 0, wasted: 520, estimated: false });
      assert.strictEqual(words(stopped), "520 tokens, all wasted");
    }),
  );

  it.effect("are estimates without the provider's own figure, and say so", () =>
    Effect.gen(function* () {
      const tokens = yield* spentBy([[S.start, S.reset], S.hello], { requestTokens: 90 });
      assert.deepStrictEqual(tokens, { used: 92, wasted: 90, estimated: true });
      assert.strictEqual(words(tokens), "about 182 tokens, 90 of them wasted");
    }),
  );

  it.effect("are absent, and have no words, if nothing was spent", () =>
    Effect.gen(function* () {
      const tokens = yield* spentBy([[S.fail({ kind: "rejected", reason: "quota" })]], { requestTokens: 90 });
      assert.deepStrictEqual(tokens, { used: 0, wasted: 0, estimated: false });
      assert.isUndefined(tokenWords(tokens));
    }),
  );

  it.effect("cost money if their model has a price", () =>
    Effect.gen(function* () {
      const provider = { id: "p", model: "gpt-5-mini", reasoning: false };
      const prices = { "gpt-5*": { input: 1_000, output: 10_000 } };
      const tokens = yield* spentBy([broken, whole], { provider }, prices);
      assert.deepStrictEqual(tokens.cost_usd, { used: 0.52, wasted: 0.7 });
      assert.strictEqual(words(tokens), "1 022 tokens, 520 of them wasted, $1.22");
      assert.notProperty(yield* spentBy([broken, whole], {}, prices), "cost_usd");
    }),
  );
});
