import { assert, describe, it } from "@effect/vitest";
import { ConfigProvider, Effect, Layer, Logger, Metric, References, Stream, Tracer } from "effect";
import { OtlpExporter } from "effect/observability";
import * as Otlp from "../../../src/adapters/otlp/Otlp.ts";
import * as Observation from "../../../src/domain/Observation.ts";
import type { AttemptContext } from "../../../src/runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { listen, logsOf, metricsOf, type Posted, resourcesOf, spansOf } from "../effect-ai/Collector.ts";

const canary = "sk-canary-77aa41";

/** What a provider's library may fail with: its secrets stand everywhere. */
class SocketError extends Error {
  readonly code = "ECONNRESET";
  readonly url = `https://host/${canary}`;
  readonly headers = { authorization: canary };
}

/** A run that breaks after its reasoning and recovers, with canaries in its parts, its error and its finish. */
const recovered = StreamProcessor.use((processor) =>
  Stream.runDrain(
    processor.run({
      provider: { id: "anthropic", model: "claude-sonnet-4-5" },
      tools: [],
      observe: (part: { readonly text: string; readonly says: Observation.Observation }) => part.says,
      attempt: ({ attempt }: AttemptContext) =>
        attempt === 1
          ? Stream.concat(
              Stream.make({ text: canary, says: Observation.reasoning(3) }),
              Stream.fail(new SocketError(canary, { cause: new Error(canary) })),
            )
          : Stream.make(
              { text: canary, says: Observation.text(3) },
              { text: canary, says: Observation.terminal(canary) },
            ),
    }),
  ),
);

/** Runs a program below the layer with these variables and no others, in a registry of metrics of its own. */
const under = <A, E>(
  env: Record<string, string>,
  program: Effect.Effect<A, E, StreamProcessor | OtlpExporter.Flusher>,
  options?: Otlp.OtlpOptions,
) =>
  program.pipe(
    Effect.provide(Layer.provideMerge(StreamProcessor.layerDefault, Otlp.layer(options))),
    Effect.provideService(Metric.MetricRegistry, new Map()),
    Effect.provideService(Logger.CurrentLoggers, new Set<Logger.Logger<unknown, void>>()),
    // A recovered run speaks at this level.
    Effect.provideService(References.MinimumLogLevel, "Debug"),
    Effect.provide(ConfigProvider.layer(ConfigProvider.fromEnv({ env }))),
  );

const pathsOf = (posted: ReadonlyArray<Posted>): ReadonlyArray<string> =>
  [...new Set(posted.map((it) => it.path))].sort();

const allPaths = ["/v1/logs", "/v1/metrics", "/v1/traces"];

describe("the layer for a collector", () => {
  it.live("sends traces, metrics and logs of a recovered run, and nothing of its content", () =>
    Effect.gen(function* () {
      const collector = yield* listen;
      const env = {
        OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=a%20b",
        OTEL_SERVICE_NAME: "agent",
        OTEL_RESOURCE_ATTRIBUTES: "deployment.environment.name=test,team=core%2Fone",
      };
      yield* under(env, recovered);

      const { posted } = collector;
      assert.deepStrictEqual(pathsOf(posted), allPaths);
      for (const it of posted) {
        assert.strictEqual(it.headers["x-tenant"], "a b");
        assert.strictEqual(it.headers["content-type"], "application/json");
        assert.notInclude(it.body.toString(), canary);
      }
      const spans = spansOf(posted);
      const run = spans.find((span) => span.name.startsWith("chat"));
      const attempts = spans.filter((span) => span.name === "stream_recovery.attempt");
      assert.deepStrictEqual(
        attempts.map((span) => [span.parentSpanId, span.status.code]),
        [
          [run?.spanId, 2],
          [run?.spanId, 1],
        ],
      );
      assert.strictEqual(run?.status.code, 1);
      const [resource] = resourcesOf(posted);
      assert.deepInclude(resource, {
        "service.name": "agent",
        "deployment.environment.name": "test",
        team: "core/one",
      });
      const metrics = new Map(metricsOf(posted).map((it) => [it.name, it.unit]));
      assert.strictEqual(metrics.get("stream_recovery.time_to_first_progress"), "s");
      assert.strictEqual(metrics.get("gen_ai.client.inference.duration"), "s");
      assert.strictEqual(metrics.get("gen_ai.client.inference.time_to_first_chunk"), "s");
      assert.isTrue(metrics.has("stream_recovery.attempts"));
      const logs = logsOf(posted);
      assert.deepStrictEqual(
        logs.map((it) => it.severityText),
        ["Debug", "Debug"],
      );
      assert.match(logs[0]?.body.stringValue ?? "", /^The connection to the model provider was lost; only reasoning/);
      assert.isTrue(logs.every((it) => it.traceId === run?.traceId));
    }),
  );

  it.live("sends protobuf where no protocol is named", () =>
    Effect.gen(function* () {
      const collector = yield* listen;
      yield* under({ OTEL_EXPORTER_OTLP_ENDPOINT: `${collector.url}/below/` }, recovered);
      assert.deepStrictEqual(
        pathsOf(collector.posted),
        allPaths.map((path) => `/below${path}`),
      );
      for (const it of collector.posted) {
        assert.strictEqual(it.headers["content-type"], "application/x-protobuf");
        assert.notInclude(it.body.toString("latin1"), canary);
      }
      assert.isTrue(collector.posted.some((it) => it.body.includes("unknown_service:node")));
    }),
  );

  it.live("sends a signal where its own variables say, and leaves one out that has no exporter", () =>
    Effect.gen(function* () {
      const [all, traces] = [yield* listen, yield* listen];
      const env = {
        OTEL_EXPORTER_OTLP_ENDPOINT: all.url,
        OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
        OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: `${traces.url}/own`,
        OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: "http/protobuf",
        OTEL_LOGS_EXPORTER: "none",
      };
      yield* under(env, recovered, { serviceName: "named-in-code" });
      assert.deepStrictEqual(pathsOf(all.posted), ["/v1/metrics"]);
      assert.deepStrictEqual(pathsOf(traces.posted), ["/own"]);
      assert.strictEqual(traces.posted[0]?.headers["content-type"], "application/x-protobuf");
      assert.isTrue(traces.posted[0]?.body.includes("named-in-code"));
    }),
  );

  it.live("sends what is buffered when it is told to", () =>
    Effect.gen(function* () {
      const collector = yield* listen;
      const seen = yield* under(
        { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url },
        Effect.gen(function* () {
          yield* recovered;
          yield* (yield* OtlpExporter.Flusher).flush;
          return pathsOf(collector.posted);
        }),
      );
      assert.deepStrictEqual(seen, allPaths);
    }),
  );

  for (const [name, more] of [
    ["without an endpoint", {}],
    ["when it is switched off", { OTEL_SDK_DISABLED: "TRUE", OTEL_EXPORTER_OTLP_PROTOCOL: "nonsense" }],
    ["with an empty endpoint", { OTEL_EXPORTER_OTLP_ENDPOINT: "" }],
  ] satisfies ReadonlyArray<readonly [string, Record<string, string>]>) {
    it.live(`does nothing ${name}`, () =>
      Effect.gen(function* () {
        const collector = yield* listen;
        const endpoint = "OTEL_SDK_DISABLED" in more ? { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url } : {};
        const look = Effect.gen(function* () {
          yield* recovered;
          return [yield* Tracer.Tracer, (yield* Logger.CurrentLoggers).size];
        });
        const before = yield* Tracer.Tracer;
        assert.deepStrictEqual(yield* under({ ...endpoint, ...more }, look), [before, 0]);
        assert.deepStrictEqual(collector.posted, []);
      }),
    );
  }
});

describe("a variable that cannot be read is an error that names it and never its value", () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" };
  const bad: ReadonlyArray<readonly [string, string]> = [
    ["OTEL_EXPORTER_OTLP_ENDPOINT", `${canary}:4318`],
    ["OTEL_EXPORTER_OTLP_ENDPOINT", `grpc://${canary}`],
    ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", `http://user:${canary}@host`],
    ["OTEL_EXPORTER_OTLP_PROTOCOL", `grpc ${canary}`],
    ["OTEL_EXPORTER_OTLP_LOGS_PROTOCOL", "grpc"],
    ["OTEL_EXPORTER_OTLP_HEADERS", `authorization ${canary}`],
    ["OTEL_EXPORTER_OTLP_HEADERS", `authorization=%0a${canary}`],
    ["OTEL_EXPORTER_OTLP_METRICS_HEADERS", `a b=${canary}`],
    ["OTEL_EXPORTER_OTLP_TIMEOUT", `-1${canary}`],
    ["OTEL_EXPORTER_OTLP_COMPRESSION", `br${canary}`],
    ["OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE", "lowmemory"],
    ["OTEL_RESOURCE_ATTRIBUTES", `team=%zz${canary}`],
    ["OTEL_RESOURCE_ATTRIBUTES", `team=a,${canary}`],
    ["OTEL_TRACES_EXPORTER", `oltp${canary}`],
    ["OTEL_SDK_DISABLED", `yes${canary}`],
    ["OTEL_BSP_SCHEDULE_DELAY", `1.5${canary}`],
    ["OTEL_METRIC_EXPORT_INTERVAL", "0"],
    ["OTEL_BLRP_SCHEDULE_DELAY", "1s"],
  ];
  for (const [variable, value] of bad) {
    it.live(`${variable}=${value.replace(canary, "…")}`, () =>
      Effect.gen(function* () {
        const error = yield* Effect.flip(under({ ...endpoint, [variable]: value }, Effect.void));
        assert.instanceOf(error, Otlp.OtlpConfigError);
        assert.strictEqual(error.variable, variable);
        assert.match(error.message, new RegExp(`^${variable}: expected `));
        assert.notInclude(JSON.stringify([error, String(error), error.stack]), canary);
      }),
    );
  }
});
