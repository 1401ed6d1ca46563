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
  it.effect("models beyond the limit take the series of those that were used longest ago (L11)", () =>
    Effect.gen(function* () {
      const named = (at: number) => ({ id: "p", model: `model-${at}` });
      const full = yield* running(named, 0, Measures.modelLabelsMax + 1);
      // A histogram of another part may begin meanwhile; a model's own are four.
      assert.isAtMost(yield* running(named, Measures.modelLabelsMax + 1, 400), full + 2);
      const scraped = yield* Metrics.text();
      const models = new Set(scraped.match(/gen_ai_request_model="[^"]*"/g));
      assert.isAtMost(models.size, Measures.modelLabelsMax + 1);
      assert.isTrue(models.has(`gen_ai_request_model="${Measures.otherModel}"`));
      assert.isTrue(models.has('gen_ai_request_model="model-399"'));
      assert.isFalse(models.has('gen_ai_request_model="model-0"'));
      // No run is lost with a series.
      const runs = [...scraped.matchAll(/^stream_recovery_runs_total\{.*end="completed"\} (\d+)/gm)].map(([, count]) =>
        Number(count),
      );
      assert.strictEqual(
        runs.reduce((sum, count) => sum + count, 0),
        400,
      );
    }).pipe(Effect.provide(S.processor()), ownRegistry),
  );

  it.effect("providers that came first keep their names after others found no place (L11)", () =>
    Effect.gen(function* () {
      const context = yield* Effect.context<never>();
      const label = (id: string) => Measures.modelless({ id }, context)["gen_ai.provider.name"];
      const ids = Array.from({ length: 200 }, (_, at) => `provider-${at}`);
      const first = ids.map(label);
      assert.include(first, Measures.otherModel);
      assert.strictEqual(first[0], "provider-0");
      assert.deepStrictEqual(ids.map(label), first);
    }).pipe(ownRegistry),
  );

  it.effect("models that are used once are bounded, and a use counts as the newest (L11)", () =>
    Effect.gen(function* () {
      const context = yield* Effect.context<never>();
      const label = (at: number, admits: boolean) =>
        Measures.providerLabels({ id: "p", model: `model-${at}` }, context, admits)["gen_ai.request.model"];
      const { modelLabelsMax } = Measures;
      for (let at = 0; at < modelLabelsMax; at += 1) label(at, true);
      label(0, false);
      label(modelLabelsMax, true);
      label(modelLabelsMax + 1, true);
      const places = Array.from({ length: modelLabelsMax + 2 }, (_, at) => label(at, false));
      assert.deepStrictEqual(
        places.flatMap((name, at) => (name === Measures.otherModel ? [at] : [])),
        [1, 2],
      );
    }).pipe(ownRegistry),
  );

  it.effect("a model that has completed nothing has no series, and no histogram of ours has a model", () =>
    Effect.gen(function* () {
      const script = S.scripted([S.text("a"), S.reset]);
      const options = S.options(script, {
        provider: { id: "p", model: "made-up" },
        budget: { max_auto_retries: 0 },
      });
      yield* S.played((yield* StreamProcessor).run(options));
      yield* running(() => ({ id: "p", model: "real" }), 0, 1);
      const scraped = yield* Metrics.text();
      assert.notInclude(scraped, "made-up");
      assert.include(scraped, 'gen_ai_request_model="real"');
      assert.isEmpty(
        scraped
          .split("\n")
          .filter((line) => /^stream_recovery_\w+_bucket\{/.test(line) && line.includes("gen_ai_request_model")),
      );
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
      const labels = (model: string, admits = true) =>
        Effect.map(Effect.context<never>(), (it) => Measures.providerLabels({ id: "p", model }, it, admits));
      for (let at = 0; at < 300; at += 1) yield* ownRegistry(labels(`m${at}`));
      const fresh = yield* Effect.provideService(labels("m299", false), Metric.MetricRegistry, new Map());
      assert.strictEqual(fresh["gen_ai.request.model"], Measures.otherModel);
      assert.strictEqual((yield* ownRegistry(labels("m299", false)))["gen_ai.request.model"], "m299");
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
