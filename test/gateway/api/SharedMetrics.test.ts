import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Metric } from "effect";
import { MetricLedger, type MetricRow, type MetricRows, rowsOf } from "../../../src/gateway/api/MetricRows.ts";
import * as Metrics from "../../../src/gateway/api/Metrics.ts";
import * as SharedMetrics from "../../../src/gateway/api/SharedMetrics.ts";
import { WorkerBus } from "../../../src/gateway/workers/WorkerBus.ts";
import * as Measures from "../../../src/runtime/run/Measures.ts";
import { members } from "../workers/Members.ts";

const counter = (count: number, attributes: Record<string, string> = {}): MetricRow => ({
  ...{ _tag: "Counter", id: "stream_recovery.runs", attributes, count },
});

const countOf = (rows: MetricRows, id = "stream_recovery.runs"): ReadonlyArray<number> =>
  rows.flatMap((row) => (row._tag === "Counter" && row.id === id ? [row.count] : []));

describe("the totals of several workers", () => {
  it("never fall: what a worker has counted that died stays counted, and its gauges go", () => {
    const ledger = new MetricLedger();
    const gauge: MetricRow = { _tag: "Gauge", id: "stream_recovery_gateway_live_runs", attributes: {}, value: 3 };
    ledger.told(1, [counter(5), gauge]);
    ledger.told(2, [counter(7), { ...gauge, value: 4 }]);
    assert.deepStrictEqual(ledger.rows, [counter(12), { ...gauge, value: 7 }]);
    ledger.left(2);
    assert.deepStrictEqual(ledger.rows, [counter(12), gauge]);
    ledger.told(2, [counter(1)]);
    ledger.left(1);
    ledger.left(2);
    assert.deepStrictEqual(countOf(ledger.rows), [13]);
  });

  it("keep series apart by their labels, add histograms, and name the worker where it is about one process", () => {
    const ledger = new MetricLedger();
    const registry = (seconds: number) => {
      const context = Context.make(Metric.MetricRegistry, new Map());
      Measures.measure(Measures.recoveryTime, seconds, { "gen_ai.provider.name": "openai" }, context);
      return rowsOf(context);
    };
    const memory: MetricRow = { _tag: "Gauge", id: "process_resident_memory_bytes", attributes: {}, value: 9 };
    const down: MetricRow = { _tag: "Gauge", id: "stream_recovery_gateway_path_down", attributes: {}, value: 1 };
    ledger.told(1, [...registry(0.3), counter(1, { a: "x", b: "y" }), memory, down]);
    ledger.told(2, [...registry(40), counter(1, { b: "y", a: "x" }), counter(1, { a: "z" }), memory, down]);
    const { rows } = ledger;
    assert.deepStrictEqual(countOf(rows), [2, 1]);
    const histogram = rows.find((row) => row._tag === "Histogram");
    assert.deepStrictEqual([histogram?.count, histogram?.sum], [2, 40.3]);
    const text = Metrics.textOf(rows);
    assert.include(text, 'stream_recovery_recovery_time_seconds_count{gen_ai_provider_name="openai"} 2');
    assert.include(text, 'process_resident_memory_bytes{worker="1"} 9\nprocess_resident_memory_bytes{worker="2"} 9');
    assert.include(text, "stream_recovery_gateway_path_down 1\n");
    ledger.left(1);
    assert.notInclude(Metrics.textOf(ledger.rows), 'worker="1"');
  });

  it.effect("are the same whichever worker is scraped, and before and after one has died", () =>
    Effect.gen(function* () {
      const { ends, router, supervisor } = yield* members(2);
      const [first, second] = ends;
      if (first === undefined || second === undefined) return assert.fail();
      const own = [counter(3), counter(4)];
      yield* Effect.provideService(SharedMetrics.keeping, WorkerBus, supervisor.bus);
      const scrape1 = yield* SharedMetrics.joined(
        first.bus,
        Effect.sync(() => [own[0] ?? counter(0)]),
      );
      const scrape2 = yield* SharedMetrics.joined(
        second.bus,
        Effect.sync(() => [own[1] ?? counter(0)]),
      );
      assert.deepStrictEqual(countOf(yield* scrape1), [7]);
      own[0] = counter(5);
      assert.deepStrictEqual(countOf(yield* scrape2), [9]);
      router.leave(2);
      assert.deepStrictEqual(countOf(yield* scrape1), [9]);
    }),
  );
});
