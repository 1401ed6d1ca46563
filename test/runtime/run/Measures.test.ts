/** Holds the names, bounds and labels of all metrics, and the limits on labels that clients choose. */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Metric } from "effect";
import * as Measures from "../../../src/runtime/run/Measures.ts";

const registry = () => Context.make(Metric.MetricRegistry, new Map() as Metric.MetricRegistry);
const snapshotOf = (context: Context.Context<never>) => Effect.runSync(Effect.provideContext(Metric.snapshot, context));

const seconds = [
  ...[0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12],
  ...[10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36],
];
const times = JSON.stringify(seconds);
const powers = [1, 4, 16, 64, 256, 1_024, 4_096, 16_384, 65_536, 262_144, 1_048_576, 4_194_304, 16_777_216, 67_108_864];

describe("the metrics of runs", () => {
  it("have their documented names, units and bounds", () => {
    const { genAi, ...own } = Measures;
    const { usage, ...conventional } = genAi;
    const all = Object.values({ ...own, ...conventional, ...usage }).filter(Metric.isMetric);
    const context = registry();
    // Each metric takes numbers.
    for (const metric of all) (metric as Metric.Metric<number, unknown>).updateUnsafe(1, context);
    const rows = snapshotOf(context).map(({ attributes, id, state, type }) => {
      const bounds = "buckets" in state ? state.buckets.map(([bound]: readonly [number, number]) => bound) : undefined;
      const kind = bounds === undefined ? type : JSON.stringify(bounds.filter(Number.isFinite));
      return [id, Reflect.get(attributes ?? {}, "unit"), kind];
    });
    const counters = [
      ...["runs", "attempts", "decisions", "watchdog_fires", "abandoned_attempts", "discarded_characters"],
      ...["discarded_tokens", "tokens", "unrecorded", "lost_entries", "seams", "waits", "waiting_runs"],
    ];
    assert.sameDeepMembers<unknown>(rows, [
      ["gen_ai.client.token.usage", "{token}", JSON.stringify(powers)],
      ...counters.map((name) => [`stream_recovery.${name}`, undefined, "Counter"]),
      ["stream_recovery.discarded_bytes", "bytes", "Counter"],
      ["stream_recovery.cost", "usd", "Counter"],
      ...["wait_time", "time_to_first_progress", "recovery_time"].map((name) => [
        ...[`stream_recovery.${name}`, "seconds", times],
      ]),
      ...["inference.duration", "operation.duration", "inference.time_to_first_chunk"].map((name) => [
        ...[`gen_ai.client.${name}`, "seconds", times],
      ]),
      ...["input", "output"].map((type) => [`gen_ai.client.inference.usage.${type}_tokens`, "{token}", "Counter"]),
    ]);
  });
});

const label = (provider: string, model?: string) => ({
  "gen_ai.provider.name": provider,
  "gen_ai.request.model": model,
});

describe("the labels of a run", () => {
  it("name the first 32 providers", () => {
    const context = registry();
    for (let each = 0; each < 32; each += 1)
      assert.deepStrictEqual(Measures.modelless({ id: `p${each}` }, context), label(`p${each}`));
    assert.deepStrictEqual(Measures.modelless({ id: "p32" }, context), label("other"));
    assert.deepStrictEqual(Measures.providerLabels({ id: "p33", model: "m" }, context, true), label("other", "m"));
    assert.deepStrictEqual(Measures.providerLabels({ id: "p31", model: "m" }, context, true), label("p31", "m"));
    assert.deepStrictEqual(Measures.providerLabels({ id: "p31" }, context, true), label("p31"));
  });

  it("name a model once it is admitted, and keep the 128 that were used last", () => {
    const context = registry();
    const of = (model: string, admits = false) =>
      Measures.providerLabels({ id: "p", model }, context, admits)["gen_ai.request.model"];
    assert.strictEqual(of("m0"), "other");
    const first = Measures.providerLabels({ id: "p", model: "m0" }, context, true);
    Measures.measure(Measures.tokens, 3, { type: "input" }, context, first);
    for (let each = 1; each < 128; each += 1) assert.strictEqual(of(`m${each}`, true), `m${each}`);
    assert.strictEqual(of("m0"), "m0", "it is known, and now the last used one");
    assert.strictEqual(Measures.providerLabels({ id: "p", model: "m0" }, context), first);
    assert.strictEqual(of("m128", true), "m128");
    assert.strictEqual(of("m1"), "other", "it was used least recently");
    assert.strictEqual(of("m2"), "m2");
    assert.deepStrictEqual([Measures.modelLabelsMax, Measures.otherModel], [128, "other"]);
  });

  it("of an evicted model give its counts to the other models", () => {
    const context = registry();
    const labels = (model: string) => Measures.providerLabels({ id: "p", model }, context, true);
    Measures.measure(Measures.tokens, 3, { type: "input" }, context, labels("m0"));
    Measures.measure(Measures.tokens, 4, { type: "input" }, context, labels("m1"));
    for (let each = 2; each < 130; each += 1) labels(`m${each}`);
    assert.deepStrictEqual(
      snapshotOf(context).map(({ attributes, state }) => [attributes, "count" in state ? state.count : undefined]),
      [[{ type: "input", "gen_ai.provider.name": "p", "gen_ai.request.model": "other" }, 7]],
    );
  });
});
