/**
 * Sends the traces, metrics and logs of the program to an OpenTelemetry collector, which the standard environment variables configure.
 *
 * It exports everything that the program and this package report to Effect's tracer, metrics and logger. Without an endpoint in the
 * environment, the layer does nothing.
 */
import { Duration, Effect, Layer } from "effect";
import { FetchHttpClient } from "effect/http";
import { OtlpExporter, OtlpLogger, OtlpMetrics, OtlpSerialization, OtlpTracer } from "effect/observability";
import { type OtlpConfigError, type OtlpSettings, read, type SignalSettings } from "./Settings.ts";

export { OtlpConfigError } from "./Settings.ts";

/** Identity of the program, if the environment does not define it. */
export interface OtlpOptions {
  /** Name of the service if neither `OTEL_SERVICE_NAME` nor `OTEL_RESOURCE_ATTRIBUTES` defines one. */
  readonly serviceName?: string;
  readonly serviceVersion?: string;
  /** Resource attributes. They override attributes of the same name in `OTEL_RESOURCE_ATTRIBUTES`. */
  readonly attributes?: Readonly<Record<string, string>>;
}

/** Name of a service without a name, according to the specification. */
export const serviceNameDefault = "unknown_service:node";

/**
 * Exports telemetry according to the standard environment variables.
 *
 * These are `OTEL_EXPORTER_OTLP_ENDPOINT`, `_HEADERS`, `_PROTOCOL` (`http/protobuf`, the default, or `http/json`), `_COMPRESSION` and
 * `_TIMEOUT`, each also for a single signal (for example `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`); `OTEL_TRACES_EXPORTER=none` and the same
 * for other signals; `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_SDK_DISABLED`; and the intervals `OTEL_BSP_SCHEDULE_DELAY`,
 * `OTEL_METRIC_EXPORT_INTERVAL` and `OTEL_BLRP_SCHEDULE_DELAY`. Buffered telemetry is sent when the layer closes. A collector that does not
 * respond delays only the close, by at most `_TIMEOUT` (default 3 s).
 *
 * @returns the exporters, and the `Flusher` that sends buffered telemetry; fails with `OtlpConfigError` if a variable is invalid
 */
export const layer = (options: OtlpOptions = {}): Layer.Layer<OtlpExporter.Flusher, OtlpConfigError> =>
  Layer.unwrap(Effect.map(read, (settings) => exportersLayer(settings, options)));

const exportersLayer = (settings: OtlpSettings, options: OtlpOptions): Layer.Layer<OtlpExporter.Flusher> => {
  const { LOGS, METRICS, TRACES, temporality } = settings;
  const resource = {
    ...options,
    attributes: { ...options.attributes },
    serviceName: settings.serviceName ?? options.serviceName ?? serviceNameDefault,
  };
  return Layer.mergeAll(
    OtlpExporter.layerFlusher,
    exporterLayer(TRACES, (to) => OtlpTracer.layer({ ...to, resource })),
    exporterLayer(METRICS, (to) => OtlpMetrics.layer({ ...to, resource, temporality })),
    exporterLayer(LOGS, (to) => OtlpLogger.layer({ ...to, resource })),
  ).pipe(Layer.provide(FetchHttpClient.layer));
};

/** Creates the exporter of one signal, with the signal's own protocol. If the signal is disabled, only the common flusher is provided. */
const exporterLayer = <R>(
  signal: SignalSettings | undefined,
  make: (to: Destination) => Layer.Layer<OtlpExporter.Flusher, never, R | OtlpSerialization.OtlpSerialization>,
) => {
  if (signal === undefined) return OtlpExporter.layerFlusher;
  const { compression, headers, intervalMs, protocol, timeoutMs, url } = signal;
  const to = {
    url,
    headers,
    compression,
    exportInterval: intervalMs === undefined ? undefined : Duration.millis(intervalMs),
    shutdownTimeout: timeoutMs === undefined ? undefined : Duration.millis(timeoutMs),
  };
  return make(to).pipe(
    Layer.provide(protocol === "http/json" ? OtlpSerialization.layerJson : OtlpSerialization.layerProtobuf),
  );
};

interface Destination {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly compression: "gzip" | "none";
  readonly exportInterval: Duration.Duration | undefined;
  readonly shutdownTimeout: Duration.Duration | undefined;
}
