/**
 * Sends the traces, metrics and logs of the program to an OpenTelemetry collector, as configured by the standard variables.
 *
 * It sends everything that the program, including this package, gives to Effect's tracer, metrics and logger. Without an
 * endpoint in the environment the layer does nothing.
 */
import { Duration, Effect, Layer } from "effect";
import { FetchHttpClient } from "effect/http";
import { OtlpExporter, OtlpLogger, OtlpMetrics, OtlpSerialization, OtlpTracer } from "effect/observability";
import { type OtlpConfigError, type OtlpSettings, read, type SignalSettings } from "./Settings.ts";

export { OtlpConfigError } from "./Settings.ts";

/** The program's identity if the environment does not name it. */
export interface OtlpOptions {
  /** Used if neither `OTEL_SERVICE_NAME` nor `OTEL_RESOURCE_ATTRIBUTES` names the service. */
  readonly serviceName?: string;
  readonly serviceVersion?: string;
  /** Resource attributes. They override attributes of the same name in `OTEL_RESOURCE_ATTRIBUTES`. */
  readonly attributes?: Readonly<Record<string, string>>;
}

/** The name that the specification gives to an unnamed service. */
export const serviceNameDefault = "unknown_service:node";

/**
 * Exports telemetry as configured by the standard variables.
 *
 * `OTEL_EXPORTER_OTLP_ENDPOINT`, `_HEADERS`, `_PROTOCOL` (`http/protobuf`, the default, or `http/json`), `_COMPRESSION` and
 * `_TIMEOUT`, each also for one signal (`OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`); `OTEL_TRACES_EXPORTER=none` and its like;
 * `OTEL_SERVICE_NAME`, `OTEL_RESOURCE_ATTRIBUTES`, `OTEL_SDK_DISABLED`; the intervals `OTEL_BSP_SCHEDULE_DELAY`,
 * `OTEL_METRIC_EXPORT_INTERVAL` and `OTEL_BLRP_SCHEDULE_DELAY`. Buffered telemetry is sent when the layer closes. A collector
 * that does not respond delays only that, by at most `_TIMEOUT` (default 3 s).
 *
 * @returns the exporters, and the `Flusher` that sends buffered telemetry; it fails with `OtlpConfigError` on a variable that
 * cannot be read
 */
export const layer = (options: OtlpOptions = {}): Layer.Layer<OtlpExporter.Flusher, OtlpConfigError> =>
  Layer.unwrap(Effect.map(read, (settings) => exporting(settings, options)));

const exporting = (settings: OtlpSettings, options: OtlpOptions): Layer.Layer<OtlpExporter.Flusher> => {
  const { LOGS, METRICS, TRACES, temporality } = settings;
  const resource = {
    ...options,
    attributes: { ...options.attributes },
    serviceName: settings.serviceName ?? options.serviceName ?? serviceNameDefault,
  };
  return Layer.mergeAll(
    OtlpExporter.layerFlusher,
    sending(TRACES, (to) => OtlpTracer.layer({ ...to, resource })),
    sending(METRICS, (to) => OtlpMetrics.layer({ ...to, resource, temporality })),
    sending(LOGS, (to) => OtlpLogger.layer({ ...to, resource })),
  ).pipe(Layer.provide(FetchHttpClient.layer));
};

/** Creates the exporter of one signal, with its own protocol. A disabled signal gets only the flusher that all share. */
const sending = <R>(
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
