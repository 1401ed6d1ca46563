/** Costs are shown in money if an operator has configured prices: in the totals, on the page and in metrics. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Layer, Metric } from "effect";
import * as Totals from "../../../src/gateway/api/Totals.ts";
import { pricesIn, readConfig } from "../../../src/gateway/config/ConfigFile.ts";
import { runView } from "../../../src/gateway/page/RunPicture.ts";
import { totalsTiles } from "../../../src/gateway/page/TotalsBoard.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { TokenPrices } from "../../../src/runtime/contract/TokenPrices.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../../runtime/Scripted.ts";

const text = JSON.stringify({ prices: { "gpt-5*": { input: 1_000, output: 10_000 } } });
const sources = { text, shared: false, env: () => undefined, file: () => undefined };

describe("Prices of a configuration", () => {
  it("are read by serve, and by a command that has none of its secrets", () => {
    const prices = { "gpt-5*": { input: 1_000, output: 10_000 } };
    assert.deepStrictEqual(readConfig(sources), { options: { prices } });
    const secrets = { ...JSON.parse(text), tokens: { a: { token: { env: "NOT_SET" } } } };
    assert.deepStrictEqual(pricesIn({ text: JSON.stringify(secrets) }), prices);
    assert.deepStrictEqual(pricesIn({ text: "{}" }), {});
    assert.include(pricesIn({ text: '{"prices":{"m":{"input":-1,"output":1}}}' }), "$.prices.m.input");
    assert.isString(pricesIn({ text: "{" }));
  });

  it.effect("give the cost of runs in money: in the totals, on the page, in metrics", () =>
    Effect.gen(function* () {
      const prices = pricesIn(sources);
      if (typeof prices === "string") return assert.fail(prices);
      const provider = { id: "p", model: "gpt-5-mini", reasoning: false };
      const script = S.scripted([S.start, S.usage(500, 20), S.reset], [S.start, S.text("x"), S.usage(500, 2), S.done]);
      yield* S.played((yield* StreamProcessor).run(S.options(script, { runId: "r", provider })));
      const totals = yield* yield* Totals.make(yield* RunRecorder, prices);
      assert.deepStrictEqual(totals.tokens, {
        ...{ used: 502, wasted: 520, estimated: false },
        cost_usd: { used: 0.52, wasted: 0.7 },
      });
      assert.include(totalsTiles(totals).markup, "$0.70 of $1.22");
      assert.include(runView(yield* S.recordOf("r"), 0, prices).markup, "520 of them wasted, $1.22");
      assert.notInclude(runView(yield* S.recordOf("r"), 0).markup, "$");
      const cost = (yield* Metric.snapshot).filter(({ id }) => id === "stream_recovery.cost");
      assert.deepStrictEqual(
        cost.map((it) => [it.attributes?.["stream_recovery.outcome"], it.type === "Counter" && it.state.count]),
        [
          ["wasted", 0.7],
          ["used", 0.52],
        ],
      );
    }).pipe(
      Effect.provide(
        S.processor().pipe(
          Layer.provideMerge(Layer.succeed(TokenPrices, { "gpt-5*": { input: 1_000, output: 10_000 } })),
        ),
      ),
    ),
  );
});
