import { readdirSync, writeFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Exit, Metric, Scope } from "effect";
import {
  addWorkerNumber,
  lastingRows,
  type MetricRow,
  type MetricRows,
  rowsOf,
  sum,
} from "../../../src/gateway/api/MetricRows.ts";
import * as Metrics from "../../../src/gateway/api/Metrics.ts";
import * as SharedMetrics from "../../../src/gateway/api/SharedMetrics.ts";
import * as WorkerSockets from "../../../src/gateway/workers/WorkerSockets.ts";
import * as Measures from "../../../src/runtime/run/Measures.ts";
import { folder } from "../../cli/ServeProcess.ts";
import { key } from "../workers/Members.ts";

const counter = (count: number, attributes: Record<string, string> = {}): MetricRow => ({
  ...{ _tag: "Counter", id: "stream_recovery.runs", attributes, count },
});

const countOf = (rows: MetricRows, id = "stream_recovery.runs"): ReadonlyArray<number> =>
  rows.flatMap((row) => (row._tag === "Counter" && row.id === id ? [row.count] : []));

const registry = (seconds: number) => {
  const context = Context.make(Metric.MetricRegistry, new Map());
  Measures.measure(Measures.recoveryTime, seconds, { "gen_ai.provider.name": "openai" }, context);
  return rowsOf(context);
};

const gauge = (value: number): MetricRow => ({
  ...{ _tag: "Gauge", id: "stream_recovery_gateway_live_runs", attributes: {}, value },
});

/** Two workers, each in a separate scope. */
const workers = Effect.gen(function* () {
  const dir = yield* folder;
  const start = Effect.fnUntraced(function* (self: number, own: () => MetricRows) {
    const scope = yield* Scope.make();
    const scrape = yield* Scope.provide(
      Effect.flatMap(WorkerSockets.make({ self, workers: 2, folder: dir }, key), (sockets) =>
        SharedMetrics.share(sockets, Effect.sync(own)),
      ),
      scope,
    );
    return { scrape, ends: Scope.close(scope, Exit.void) };
  });
  return { dir, start };
});

describe("the totals of several workers", () => {
  it("keep series apart by their labels, add histograms, and name the worker for data of one process", () => {
    const memory: MetricRow = { _tag: "Gauge", id: "process_resident_memory_bytes", attributes: {}, value: 9 };
    const down: MetricRow = { _tag: "Gauge", id: "stream_recovery_gateway_path_down", attributes: {}, value: 1 };
    const taken: MetricRow = { ...down, id: "stream_recovery_gateway_config_generation", value: 2 };
    const rows = sum([
      addWorkerNumber(1, [...registry(0.3), counter(1, { a: "x", b: "y" }), memory, down, taken]),
      addWorkerNumber(2, [
        ...registry(40),
        counter(1, { b: "y", a: "x" }),
        counter(1, { a: "z" }),
        memory,
        down,
        taken,
      ]),
    ]);
    assert.deepStrictEqual(countOf(rows), [2, 1]);
    const histogram = rows.find((row) => row._tag === "Histogram");
    assert.deepStrictEqual([histogram?.count, histogram?.sum], [2, 40.3]);
    const text = Metrics.textOf(rows);
    assert.include(text, 'stream_recovery_recovery_time_seconds_count{gen_ai_provider_name="openai"} 2');
    assert.include(text, 'process_resident_memory_bytes{worker="1"} 9\nprocess_resident_memory_bytes{worker="2"} 9');
    assert.include(text, 'stream_recovery_gateway_config_generation{worker="2"} 2\n');
    assert.include(text, "stream_recovery_gateway_path_down 1\n");
  });

  it("include counters and histograms of a dead worker, and no data of its process", () => {
    const cpu: MetricRow = { _tag: "Counter", id: "process_cpu_seconds_total", attributes: {}, count: 9 };
    assert.deepStrictEqual(lastingRows([counter(5), gauge(3), cpu, ...registry(1)]), [counter(5), ...registry(1)]);
  });

  it.live("are the same at every worker, and do not fall when one dies, is replaced and dies again", () =>
    Effect.gen(function* () {
      const { start } = yield* workers;
      let [one, other] = [3, 4];
      const first = yield* start(1, () => [counter(one), gauge(1)]);
      const second = yield* start(2, () => [counter(other), gauge(2), ...registry(7)]);
      for (const { scrape } of [first, second]) {
        const rows = yield* scrape;
        assert.deepStrictEqual(countOf(rows), [7]);
        assert.deepInclude(rows, gauge(3));
      }
      one = 5;
      other = 6;
      assert.deepStrictEqual(countOf(yield* first.scrape), [11]);
      yield* second.ends;
      const rows = yield* first.scrape;
      assert.deepStrictEqual(countOf(rows), [11]);
      assert.deepInclude(rows, gauge(1));
      const bucket = 'stream_recovery_recovery_time_seconds_bucket{gen_ai_provider_name="openai",le="+Inf"} 1';
      assert.include(Metrics.textOf(rows), bucket);
      const third = yield* start(2, () => [counter(2)]);
      for (const { scrape } of [first, third]) assert.deepStrictEqual(countOf(yield* scrape), [13]);
      yield* third.ends;
      assert.deepStrictEqual(countOf(yield* first.scrape), [13]);
      assert.deepStrictEqual(countOf(yield* (yield* start(2, () => [counter(1)])).scrape), [14]);
    }).pipe(Effect.scoped),
  );

  it.live("are those of the readable workers if another one's file is damaged (L11)", () =>
    Effect.gen(function* () {
      const { dir, start } = yield* workers;
      const first = yield* start(1, () => [counter(3)]);
      for (const text of ["", "{", "[1]", JSON.stringify([{ _tag: "Counter" }])]) {
        writeFileSync(SharedMetrics.fileOf(dir, 2), text);
        assert.deepStrictEqual(countOf(yield* first.scrape), [3], text);
      }
      assert.deepStrictEqual(readdirSync(dir).toSorted(), ["1.metrics", "1.sock", "2.metrics"]);
    }).pipe(Effect.scoped),
  );
});
