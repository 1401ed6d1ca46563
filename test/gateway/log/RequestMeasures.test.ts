import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Metric } from "effect";
import * as Metrics from "../../../src/gateway/api/Metrics.ts";
import { type AccessRecord, outcomes } from "../../../src/gateway/log/AccessRecord.ts";
import { count, labelValuesMax, seriesMax } from "../../../src/gateway/log/RequestMeasures.ts";
import { secondsBoundaries } from "../../../src/runtime/run/Measures.ts";

const record = (change: Partial<AccessRecord>): AccessRecord => ({
  ...{ method: "POST", path: "/v1/chat/completions", outcome: "completed", bytes: 1, ms: 5, first_ms: 3 },
  ...change,
});

const counted = (records: ReadonlyArray<AccessRecord>) =>
  Effect.gen(function* () {
    const context: Context.Context<never> = Context.make(Metric.MetricRegistry, new Map());
    yield* Effect.provideContext(Effect.forEach(records, count, { discard: true }), context);
    const text = yield* Effect.provideContext(Metrics.text(), context);
    return text.split("\n").filter((line) => line.startsWith("stream_recovery_gateway_"));
  });

describe("the metrics of requests", () => {
  it.effect("say upstream, client, outcome and why", () =>
    Effect.gen(function* () {
      const lines = yield* counted([
        record({ upstream: "openai", client: "codex" }),
        record({ upstream: "openai", client: "codex" }),
        record({
          upstream: "openai",
          client: "codex",
          outcome: "given_up",
          rule: "budget_exhausted",
          refused: "upstream_failed",
        }),
        record({ client: "unknown", outcome: "refused", refused: "token", no_ops: 4 }),
      ]);
      const served = lines.filter((line) => line.startsWith("stream_recovery_gateway_served_total"));
      assert.lengthOf(served, 3);
      const only = (...words: ReadonlyArray<string>) =>
        served.filter((line) => words.every((word) => line.includes(word)));
      assert.match(only('outcome="completed"', 'upstream="openai"', 'client="codex"', 'reason="none"')[0] ?? "", / 2$/);
      assert.match(only('outcome="given_up"', 'reason="budget_exhausted"')[0] ?? "", / 1$/);
      assert.match(only('outcome="refused"', 'reason="token"', 'upstream="none"')[0] ?? "", / 1$/);
      assert.isTrue(lines.some((line) => /^stream_recovery_gateway_no_ops_total\{.*\} 4$/.test(line)));
    }),
  );

  it.effect("are bounded whatever clients, upstreams and rules are called, and lose no request", () =>
    Effect.gen(function* () {
      const many = 20_000;
      const lines = yield* counted(
        Array.from({ length: many }, (_, n) =>
          record({
            path: `/v1/${n}`,
            upstream: `u${n % 3_000}`,
            client: `agent/${n}`,
            rule: `rule${n}`,
            refused: `reason${n}`,
            outcome: outcomes[n % outcomes.length] ?? "failed",
            no_ops: 1,
          }),
        ),
      );
      const served = lines.filter((line) => line.startsWith("stream_recovery_gateway_served_total"));
      assert.isAtMost(served.length, seriesMax + outcomes.length);
      assert.strictEqual(
        served.reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0),
        many,
      );
      for (const label of ["upstream", "client", "reason"]) {
        const values = new Set(lines.map((line) => new RegExp(`[{,]${label}="([^"]*)"`).exec(line)?.[1]));
        assert.isAtMost(values.size, labelValuesMax + 2, label);
      }
      const perHistogram = secondsBoundaries.length + 4;
      assert.isAtMost(
        lines.length,
        seriesMax + outcomes.length + (labelValuesMax + 1) * (outcomes.length * perHistogram + 1),
      );
      assert.notInclude(lines.join("\n"), "/v1/");
    }),
  );
});
