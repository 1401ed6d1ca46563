/** The dashboard and the alert rules of docs/ read only metrics that a gateway serves, by labels that those metrics have. */
import { readFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Metric } from "effect";
import * as Metrics from "../../../src/gateway/api/Metrics.ts";
import * as SqlFailure from "../../../src/recorder/sql/SqlFailure.ts";
import * as WriteQueue from "../../../src/recorder/WriteQueue.ts";
import * as Measures from "../../../src/runtime/run/Measures.ts";

const docs = new URL("../../../docs/", import.meta.url);
const read = (file: string): string => readFileSync(new URL(file, docs), "utf8");

/** Labels that Prometheus and the rules themselves add. */
const added = ["job", "instance", "le"];

/** The names of metrics in an expression, with the labels by which each is selected. */
const selectorsIn = (expression: string): ReadonlyArray<readonly [name: string, labels: ReadonlyArray<string>]> =>
  [
    ...expression.matchAll(
      /\b((?:stream_recovery|gen_ai|process|nodejs)_[a-z_]+?)(?:_bucket)?(?:\{([^}]*)\}|\[|\)| |$)/g,
    ),
  ]
    .filter(([, name = ""]) => !grouped(expression).includes(name))
    .map(([, name = "", labels = ""]) => [name, [...labels.matchAll(/(\w+)(?:!?=~?)/g)].map(([, it = ""]) => it)]);

const grouped = (expression: string): ReadonlyArray<string> =>
  [...expression.matchAll(/\b(?:by|on) \(([^)]*)\)/g)].flatMap(([, names = ""]) => names.split(/, */));

const expressions = [
  ...[...read("grafana.json").matchAll(/"expr": ("(?:[^"\\]|\\.)*")/g)].map(([, it = ""]) => String(JSON.parse(it))),
  ...[...read("alerts.yml").matchAll(/ expr: (?:\|\n((?: {10,}.*\n)+)|(.*))/g)].map(
    ([, block, line]) => block ?? line ?? "",
  ),
];

/** Names and labels that docs/observability.md lists for the gateway's own metrics. */
const documented = new Map(
  read("observability.md")
    .split("\n")
    .filter((line) => line.startsWith("| `stream_recovery_gateway_"))
    .flatMap((line) => {
      const [, names = "", labels = ""] = line.split("|");
      const [first = "", ...more] = [...names.matchAll(/`(\w+)`/g)].map(([, it = ""]) => it);
      const all = [first, ...more.map((it) => (it.startsWith("_") ? `stream_recovery_gateway${it}` : it))];
      return all.map((name) => [name, [...labels.matchAll(/`(\w+)`/g)].map(([, it = ""]) => it)] as const);
    }),
);

describe("the dashboard and the alert rules", () => {
  it.effect("read metrics that exist", () =>
    Effect.gen(function* () {
      const context = Context.make(Metric.MetricRegistry, new Map());
      const labels = Measures.providerLabels({ id: "openai", model: "gpt" }, context, true);
      const attributes = {
        ...{ "stream_recovery.end": "stopped", "stream_recovery.rule": "text_shown", "stream_recovery.clock": "idle" },
        ...{ "stream_recovery.outcome": "used", "gen_ai.token.type": "input", "error.type": "transport" },
      };
      const { genAi, ...own } = Measures;
      const { usage, ...conventional } = genAi;
      const all = [own, conventional, usage].flatMap((it) => Object.values(it)).filter(Metric.isMetric);
      // Every exported metric of runs counts numbers.
      for (const metric of all) Measures.measure(metric as typeof own.runs, 1, attributes, context, labels);
      for (const metric of [WriteQueue.lostEntries, SqlFailure.commits, SqlFailure.failures])
        Metric.withAttributes(metric, { "stream_recovery.reason": "overflow" }).updateUnsafe(1, context);
      const served = yield* Effect.provideContext(Metrics.text(undefined), context);
      const known = new Map<string, Set<string>>();
      for (const [, name = "", pairs = ""] of served.matchAll(/^(\w+?)(?:_bucket|_sum|_count)?(?:\{(.*)\})? \S+$/gm)) {
        const names = known.get(name) ?? new Set();
        for (const [, label = ""] of pairs.matchAll(/(\w+)="/g)) names.add(label);
        known.set(name, names);
      }
      for (const [name, labels] of documented) known.set(name, new Set(labels));
      for (const name of ["process_cpu_seconds_total", "process_resident_memory_bytes", "process_open_fds"])
        known.set(name, new Set());
      known.set("process_max_fds", new Set());

      assert.isAtLeast(expressions.length, 30);
      let selected = 0;
      for (const expression of expressions) {
        const selectors = selectorsIn(expression);
        assert.isNotEmpty(selectors, expression);
        for (const [name, labels] of selectors) {
          const has = known.get(name);
          if (has === undefined) return assert.fail(`no metric ${name}: ${expression}`);
          for (const label of [...labels, ...grouped(expression)])
            assert.isTrue(added.includes(label) || has.has(label), `${name} has no label ${label}: ${expression}`);
          selected += 1;
        }
      }
      assert.isAtLeast(selected, 30);
    }),
  );
});
