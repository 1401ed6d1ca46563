/** Names that clients choose: what they may add to a process for ever is bounded (L11). */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Metric } from "effect";
import * as Metrics from "../../../src/gateway/api/Metrics.ts";
import { providersMax } from "../../../src/runtime/pacing/Throttle.ts";
import * as Measures from "../../../src/runtime/run/Measures.ts";
import { Reached } from "../../../src/runtime/run/Shared.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";

const running = (
  provider: (at: number) => { readonly id: string; readonly model?: string },
  from: number,
  to: number,
) =>
  Effect.gen(function* () {
    for (let at = from; at < to; at += 1) {
      const script = S.scripted([S.text("a"), S.done]);
      yield* S.played((yield* StreamProcessor).run(S.options(script, { provider: provider(at) })));
    }
    return (yield* Metric.snapshot).length;
  });

const ownRegistry = Effect.provideService(Metric.MetricRegistry, new Map());

describe("Labels that clients choose", () => {
  it.effect("models beyond the limit share one series, and those that came first keep theirs (L11)", () =>
    Effect.gen(function* () {
      const named = (at: number) => ({ id: "p", model: `model-${at}` });
      const full = yield* running(named, 0, Measures.modelLabelsMax + 1);
      // A histogram of another part may begin meanwhile; a model's own are four.
      assert.isAtMost(yield* running(named, Measures.modelLabelsMax + 1, 400), full + 2);
      assert.isAtMost(yield* running(named, 0, 1), full + 2);
      const scraped = yield* Metrics.text();
      const models = new Set(scraped.match(/gen_ai_request_model="[^"]*"|gen_ai\.request\.model="[^"]*"/g));
      assert.strictEqual(models.size, Measures.modelLabelsMax + 1);
      assert.isTrue([...models].some((it) => it.includes(`"${Measures.otherModel}"`)));
      assert.isTrue([...models].some((it) => it.includes('"model-0"')));
    }).pipe(Effect.provide(S.processor()), ownRegistry),
  );

  it.effect("providers are bounded too, with and without a model (L11)", () =>
    Effect.gen(function* () {
      const named = (at: number) => ({ id: `provider-${at}`, ...(at % 2 === 0 ? { model: "m" } : {}) });
      const full = yield* running(named, 0, 100);
      assert.isAtMost(yield* running(named, 100, 300), full + 2);
    }).pipe(Effect.provide(S.processor()), ownRegistry),
  );

  it.effect("each registry has room of its own", () =>
    Effect.gen(function* () {
      const labels = (model: string) =>
        Effect.map(Effect.context<never>(), (it) => Measures.providerLabels({ id: "p", model }, it));
      for (let at = 0; at < 300; at += 1) yield* ownRegistry(labels(`m${at}`));
      const fresh = yield* Effect.provideService(labels("m299"), Metric.MetricRegistry, new Map());
      assert.strictEqual(fresh["gen_ai.request.model"], "m299");
      assert.strictEqual((yield* ownRegistry(labels("m299")))["gen_ai.request.model"], Measures.otherModel);
    }),
  );

  it("the providers that were reached are the latest ones (L11)", () => {
    const reached = new Reached();
    for (let at = 0; at < 1_000; at += 1) reached.add(`p${at}`);
    assert.strictEqual(reached.size, providersMax);
    assert.isTrue(reached.has("p999"));
    assert.isFalse(reached.has("p0"));
  });
});
