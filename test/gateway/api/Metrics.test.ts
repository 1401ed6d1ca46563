/**
 * Parses the metrics strictly by the rules of Prometheus' text format, as a scraper would.
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Metric } from "effect";
import * as Metrics from "../../../src/gateway/api/Metrics.ts";
import * as Measures from "../../../src/runtime/run/Measures.ts";

interface Family {
  readonly type: string;
  readonly help: string;
  readonly samples: Array<{ readonly name: string; readonly labels: Record<string, string>; readonly value: number }>;
}

const sampleLine = /^([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)$/;
const labelPair = /^([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|$)/;
const unescaped: Readonly<Record<string, string>> = { "\\\\": "\\", '\\"': '"', "\\n": "\n" };

const labelsOf = (text: string): Record<string, string> => {
  const labels: Record<string, string> = {};
  for (let rest = text; rest !== ""; ) {
    const [whole, name, value] = labelPair.exec(rest) ?? [];
    if (whole === undefined || name === undefined) throw new Error(`no label: ${rest}`);
    if (name in labels) throw new Error(`the label ${name} stands twice`);
    labels[name] = (value ?? "").replace(/\\[\\"n]/g, (it) => unescaped[it] ?? it);
    rest = rest.slice(whole.length);
  }
  return labels;
};

/** Parses the text format, and throws on anything invalid. */
const parse = (text: string): ReadonlyMap<string, Family> => {
  if (!text.endsWith("\n")) throw new Error("the last line does not end");
  const families = new Map<string, Family>();
  const series = new Set<string>();
  let help: readonly [string, string] | undefined;
  let open: readonly [string, Family] | undefined;
  for (const line of text.slice(0, -1).split("\n")) {
    const [, kind, name, rest = ""] = /^# (HELP|TYPE) (\S+) (.*)$/.exec(line) ?? [];
    if (kind === "HELP" && name !== undefined) help = [name, rest];
    else if (kind === "TYPE" && name !== undefined) {
      if (families.has(name)) throw new Error(`the family ${name} stands twice`);
      open = [name, { type: rest, help: help?.[0] === name ? help[1] : "", samples: [] }];
      families.set(...open);
    } else {
      const [, sample, labels = "", value] = sampleLine.exec(line) ?? [];
      if (sample === undefined || open === undefined) throw new Error(`no sample: ${line}`);
      const [family, { samples, type }] = open;
      const endings = type === "histogram" ? ["_bucket", "_sum", "_count"] : [""];
      if (!endings.some((it) => sample === `${family}${it}`)) throw new Error(`${sample} is not of ${family}`);
      const key = `${sample}{${labels}}`;
      if (series.has(key)) throw new Error(`${key} stands twice`);
      series.add(key);
      const number = value === "+Inf" ? Number.POSITIVE_INFINITY : Number(value);
      if (Number.isNaN(number)) throw new Error(`no number: ${line}`);
      samples.push({ name: sample, labels: labelsOf(labels), value: number });
    }
  }
  return families;
};

const registry = (): Context.Context<never> => Context.make(Metric.MetricRegistry, new Map());

const scraped = (context: Context.Context<never>, status?: Parameters<typeof Metrics.text>[0]) =>
  Effect.map(Effect.provideContext(Metrics.text(status), context), parse);

describe("the metrics", () => {
  it.effect("are named as Prometheus requires, with unit and _total, and keep their help", () =>
    Effect.gen(function* () {
      const context = registry();
      Measures.measure(Measures.runs, 2, { "stream_recovery.end": "recovered" }, context);
      Measures.measure(Measures.discardedBytes, 4_096, {}, context);
      Measures.measure(Measures.recoveryTime, 0.3, { "gen_ai.provider.name": "openai" }, context);
      const families = yield* scraped(context);
      const runs = families.get("stream_recovery_runs_total");
      assert.deepStrictEqual([runs?.type, runs?.help], ["counter", "Ended runs"]);
      assert.deepStrictEqual(runs?.samples, [
        { name: "stream_recovery_runs_total", labels: { stream_recovery_end: "recovered" }, value: 2 },
      ]);
      assert.strictEqual(families.get("stream_recovery_discarded_bytes_total")?.samples[0]?.value, 4_096);
      assert.strictEqual(families.get("stream_recovery_recovery_time_seconds")?.type, "histogram");
      Measures.measure(Measures.genAi.usage.input, 7, {}, context);
      Measures.measure(Measures.genAi.tokenUsage, 7, {}, context);
      const conventional = [...(yield* scraped(context)).keys()].filter((name) => name.startsWith("gen_ai_"));
      assert.deepStrictEqual(conventional.sort(), [
        "gen_ai_client_inference_usage_input_tokens_total",
        "gen_ai_client_token_usage",
      ]);
    }),
  );

  it.effect("have histograms whose buckets add up to their count", () =>
    Effect.gen(function* () {
      const context = registry();
      for (const seconds of [0.005, 0.3, 0.31, 40, 5_000]) {
        Measures.measure(Measures.timeToFirstProgress, seconds, { "gen_ai.provider.name": "anthropic" }, context);
      }
      const family = (yield* scraped(context)).get("stream_recovery_time_to_first_progress_seconds");
      const samples = family?.samples ?? [];
      const buckets = samples.filter(({ name }) => name.endsWith("_bucket"));
      const bounds = buckets.map(({ labels }) => (labels.le === "+Inf" ? Number.POSITIVE_INFINITY : Number(labels.le)));
      assert.deepStrictEqual(bounds, [...Measures.secondsBoundaries, Number.POSITIVE_INFINITY]);
      assert.deepStrictEqual(
        buckets.map(({ value }) => value),
        buckets.map((_, index) => [0.005, 0.3, 0.31, 40, 5_000].filter((it) => it <= (bounds[index] ?? 0)).length),
      );
      assert.strictEqual(samples.find(({ name }) => name.endsWith("_count"))?.value, 5);
      assert.closeTo(samples.find(({ name }) => name.endsWith("_sum"))?.value ?? 0, 5_040.615, 0.001);
    }),
  );

  it.effect("return every label unchanged, with any characters", () =>
    Effect.gen(function* () {
      const context = registry();
      const labels = ['a"b', "back\\slash", "new\nline", 'a\\"b\n# TYPE x counter\nx 1', "}", "ü€😀", "", "\\n"];
      for (const model of labels) Measures.measure(Measures.runs, 1, { "gen_ai.request.model": model }, context);
      const family = (yield* scraped(context)).get("stream_recovery_runs_total");
      assert.deepStrictEqual(
        family?.samples.map(({ labels }) => labels.gen_ai_request_model),
        labels,
      );
    }),
  );

  it.effect("include the process and the gateway, and add none of that to the program's own registry", () =>
    Effect.gen(function* () {
      const context = registry();
      const status = {
        live: ["run_1", "run_2"],
        connections: 7,
        draining: false,
        since: 0,
        requests: { relayed: 5, passed_through: 3, refused: 1 },
        tokens: { ci: 4 },
      };
      const families = yield* scraped(context, status);
      const value = (name: string) => families.get(name)?.samples[0]?.value ?? Number.NaN;
      assert.isAbove(value("process_resident_memory_bytes"), 1_000_000);
      assert.isAbove(value("process_cpu_seconds_total"), 0);
      assert.isAbove(value("process_start_time_seconds"), 1_700_000_000);
      assert.deepStrictEqual(
        [value("stream_recovery_gateway_live_runs"), value("stream_recovery_gateway_connections")],
        [2, 7],
      );
      assert.deepStrictEqual(
        families
          .get("stream_recovery_gateway_requests_total")
          ?.samples.map(({ labels, value }) => [labels.outcome, value]),
        [
          ["relayed", 5],
          ["passed_through", 3],
          ["refused", 1],
        ],
      );
      const [byToken] = families.get("stream_recovery_gateway_token_requests_total")?.samples ?? [];
      assert.deepStrictEqual([byToken?.labels.token, byToken?.value], ["ci", 4]);
      assert.strictEqual(Context.get(context, Metric.MetricRegistry).size, 0);
    }),
  );
});
