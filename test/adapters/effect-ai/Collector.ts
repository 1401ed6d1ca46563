/**
 * A collector on this machine: it takes what an OTLP exporter posts and keeps it as it came.
 */
import { createServer, type IncomingHttpHeaders } from "node:http";
import { Effect, Schema } from "effect";

/** One export as it came over the socket. */
export interface Posted {
  readonly path: string;
  readonly headers: IncomingHttpHeaders;
  readonly body: Buffer;
}

/** Listens on a free port of the loopback until its scope closes. */
export const listen = Effect.acquireRelease(
  Effect.callback<{ readonly url: string; readonly posted: ReadonlyArray<Posted>; readonly close: () => void }>(
    (resume) => {
      const posted: Array<Posted> = [];
      const server = createServer((request, response) => {
        const chunks: Array<Buffer> = [];
        request.on("data", (chunk: Buffer) => chunks.push(chunk));
        request.on("end", () => {
          posted.push({ path: request.url ?? "", headers: request.headers, body: Buffer.concat(chunks) });
          response.end();
        });
      });
      const close = () => {
        server.closeAllConnections();
        server.close();
      };
      server.listen(0, "127.0.0.1", () => {
        const address = server.address();
        const port = typeof address === "object" ? address?.port : undefined;
        resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, posted, close }));
      });
    },
  ),
  (collector) => Effect.sync(collector.close),
);

const attribute = Schema.Struct({ key: Schema.String, value: Schema.Record(Schema.String, Schema.Unknown) });
const Resource = Schema.Struct({ attributes: Schema.Array(attribute) });

const Traces = Schema.Struct({
  resourceSpans: Schema.Array(
    Schema.Struct({
      resource: Resource,
      scopeSpans: Schema.Array(
        Schema.Struct({
          spans: Schema.Array(
            Schema.Struct({
              traceId: Schema.String,
              spanId: Schema.String,
              parentSpanId: Schema.optionalKey(Schema.String),
              name: Schema.String,
              status: Schema.Struct({ code: Schema.Finite }),
              attributes: Schema.Array(attribute),
            }),
          ),
        }),
      ),
    }),
  ),
});

const Metrics = Schema.Struct({
  resourceMetrics: Schema.Array(
    Schema.Struct({
      resource: Resource,
      scopeMetrics: Schema.Array(
        Schema.Struct({
          metrics: Schema.Array(Schema.Struct({ name: Schema.String, unit: Schema.String })),
        }),
      ),
    }),
  ),
});

const Logs = Schema.Struct({
  resourceLogs: Schema.Array(
    Schema.Struct({
      resource: Resource,
      scopeLogs: Schema.Array(
        Schema.Struct({
          logRecords: Schema.Array(
            Schema.Struct({
              severityText: Schema.String,
              body: Schema.Struct({ stringValue: Schema.String }),
              traceId: Schema.optionalKey(Schema.String),
            }),
          ),
        }),
      ),
    }),
  ),
});

const at = <S extends Schema.Codec<unknown, unknown>>(schema: S, path: string, posted: ReadonlyArray<Posted>) =>
  posted
    .filter((it) => it.path === path)
    .map((it) => Schema.decodeSync(Schema.fromJsonString(schema))(it.body.toString()));

/** The spans that were posted as JSON. */
export const spansOf = (posted: ReadonlyArray<Posted>) =>
  at(Traces, "/v1/traces", posted).flatMap((it) =>
    it.resourceSpans.flatMap((one) => one.scopeSpans.flatMap((scope) => scope.spans)),
  );

/** The metrics that were posted as JSON. */
export const metricsOf = (posted: ReadonlyArray<Posted>) =>
  at(Metrics, "/v1/metrics", posted).flatMap((it) =>
    it.resourceMetrics.flatMap((one) => one.scopeMetrics.flatMap((scope) => scope.metrics)),
  );

/** The log records that were posted as JSON. */
export const logsOf = (posted: ReadonlyArray<Posted>) =>
  at(Logs, "/v1/logs", posted).flatMap((it) =>
    it.resourceLogs.flatMap((one) => one.scopeLogs.flatMap((scope) => scope.logRecords)),
  );

/** The resource attributes of the spans that were posted as JSON. */
export const resourcesOf = (posted: ReadonlyArray<Posted>) =>
  at(Traces, "/v1/traces", posted).flatMap((it) =>
    it.resourceSpans.map((one) =>
      Object.fromEntries(one.resource.attributes.map(({ key, value }) => [key, Object.values(value)[0]])),
    ),
  );
