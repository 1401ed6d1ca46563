/**
 * Formats Effect's metrics and those of the process as Prometheus text, version 0.0.4
 * (prometheus.io/docs/instrumenting/exposition_formats). Names follow Prometheus conventions: base units and `_total`.
 */
import { Context, Effect, Metric } from "effect";
import { PrometheusMetrics } from "effect/observability";
import type { PathStatus } from "../../paths/Paths.ts";
import { pathStanding, pathStandings } from "../../story/PathWords.ts";
import { countOpenDescriptors, maxDescriptors } from "../limits/Descriptors.ts";
import { type MetricRows, registryOf, rowsOf } from "./MetricRows.ts";
import { sortPaths } from "./PathList.ts";
import type { StoreState } from "./StoreHealth.ts";
import type { TrafficStatus } from "./Traffic.ts";

/** Content type of the Prometheus text. */
export const contentType = "text/plain; version=0.0.4; charset=utf-8";

/**
 * Formats all metrics.
 *
 * @param status current traffic; without it the traffic metrics are omitted
 * @param store state of the store's writes; without it the store metrics are omitted
 * @param paths paths known to the process; without them the path metrics are omitted
 */
export const text = (
  status?: TrafficStatus,
  store?: StoreState,
  paths?: ReadonlyArray<PathStatus>,
): Effect.Effect<string> =>
  Effect.map(
    Effect.context<never>(),
    (context) => `${format(context)}${PrometheusMetrics.formatUnsafe(processMetrics(status, store, paths))}`,
  );

/**
 * Reads the series of this process, to be added up over several processes.
 *
 * @param status current traffic of this process
 */
export const listRows = (
  status?: TrafficStatus,
  store?: StoreState,
  paths?: ReadonlyArray<PathStatus>,
): Effect.Effect<MetricRows> =>
  Effect.map(Effect.context<never>(), (context) => [
    ...rowsOf(context),
    ...rowsOf(processMetrics(status, store, paths)),
  ]);

/** Formats the added-up series of several processes. */
export const textOf = (totals: MetricRows): string => format(Context.make(Metric.MetricRegistry, registryOf(totals)));

const format = (context: Context.Context<never>): string => {
  const names = new Map(Metric.snapshotUnsafe(context).map((it) => [it.id, prometheusName(it)]));
  return PrometheusMetrics.formatUnsafe(context, { metricNameMapper: (name) => names.get(name) ?? name });
};

/**
 * Renames a metric: `stream_recovery.runs` becomes `stream_recovery_runs_total`, and `stream_recovery.recovery_time` gets its
 * unit as a suffix. A unit in braces, for example `{token}`, only counts and is no suffix.
 */
const prometheusName = ({ attributes, id, type }: Metric.Metric.Snapshot): string => {
  const unit = attributes?.unit;
  const isSuffix = unit !== undefined && !unit.startsWith("{") && !id.includes(`_${unit}`);
  const inUnit = isSuffix ? `${id}_${unit}` : id;
  const ending = type === "Counter" && !inUnit.endsWith("_total") ? "_total" : "";
  return `${inUnit}${ending}`;
};

/**
 * Writes the values of the process, its traffic, its store and its paths into a separate registry. So they are not kept, and the other
 * exporters of the program do not report them again.
 */
const processMetrics = (
  status: TrafficStatus | undefined,
  store: StoreState | undefined,
  paths: ReadonlyArray<PathStatus> | undefined,
): Context.Context<never> => {
  const context = Context.make(Metric.MetricRegistry, new Map());
  const memory = process.memoryUsage();
  const { system, user } = process.cpuUsage();
  const startedAt = performance.timeOrigin / 1_000;
  for (const [name, description, value] of [
    ["process_resident_memory_bytes", "Resident memory of the process", memory.rss],
    ["process_start_time_seconds", "Start time of the process since the epoch", startedAt],
    ["nodejs_heap_size_used_bytes", "Heap in use", memory.heapUsed],
    ["nodejs_heap_size_total_bytes", "Heap in all", memory.heapTotal],
    ["nodejs_external_memory_bytes", "Memory of buffers outside the heap", memory.external],
    ...descriptorRows(),
    ...(status === undefined ? [] : trafficRows(status)),
    ...(store === undefined ? [] : storeRows(store)),
  ] as const) {
    Metric.gauge(name, { description }).updateUnsafe(value, context);
  }
  counter("process_cpu_seconds_total", "Processor time of the process", {}, (system + user) / 1_000_000, context);
  for (const [outcome, count] of Object.entries(status?.requests ?? {})) {
    counter("stream_recovery_gateway_requests_total", "Requests by outcome", { outcome }, count, context);
  }
  for (const [token, count] of Object.entries(status?.tokens ?? {})) {
    counter("stream_recovery_gateway_token_requests_total", "Requests by token name", { token }, count, context);
  }
  if (paths !== undefined) addPaths(paths, context);
  return context;
};

/** Maximum number of paths with their own gauge. Each label of a request metric has the same limit. Paths that are down come first. */
const pathGaugesMax = 64;

const addPaths = (paths: ReadonlyArray<PathStatus>, context: Context.Context<never>): void => {
  const gauge = (name: string, description: string, attributes: Readonly<Record<string, string>>, value: number) =>
    Metric.gauge(name, { description, attributes }).updateUnsafe(value, context);
  const standings = Object.keys(pathStandings);
  for (const state of standings) {
    const count = paths.filter((path) => pathStanding(path) === state).length;
    gauge("stream_recovery_gateway_paths", "Paths to upstreams by state", { state }, count);
  }
  for (const path of sortPaths(paths).slice(0, pathGaugesMax)) {
    const isDown = path.state === "down" ? 1 : 0;
    gauge("stream_recovery_gateway_path_down", "1 if no connection can be opened", { path: path.path }, isDown);
  }
  const waiting = paths.reduce((sum, path) => sum + path.waiting, 0);
  gauge("stream_recovery_gateway_waiting_runs", "Runs that wait for a path or a cooldown", {}, waiting);
};

const descriptorRows = () => {
  const [open, max] = [countOpenDescriptors(), maxDescriptors()];
  return [
    ...(open === undefined ? [] : [["process_open_fds", "Open file descriptors", open] as const]),
    ...(max === undefined ? [] : [["process_max_fds", "Maximum open file descriptors", max] as const]),
  ];
};

const storeRows = ({ writes }: StoreState) =>
  [
    ["stream_recovery_gateway_store_failing", "1 if the store does not accept writes", writes === "failing" ? 1 : 0],
  ] as const;

const trafficRows = (status: TrafficStatus) =>
  [
    ["stream_recovery_gateway_live_runs", "Requests being relayed", status.live.length],
    [
      "stream_recovery_gateway_lingering_runs",
      "Runs that continue without their client, which may return",
      status.absent?.length ?? 0,
    ],
    ["stream_recovery_gateway_connections", "Open sockets", status.connections],
    ["stream_recovery_gateway_draining", "1 if a shutdown has begun", status.draining ? 1 : 0],
  ] as const;

const counter = (
  name: string,
  description: string,
  attributes: Readonly<Record<string, string>>,
  value: number,
  context: Context.Context<never>,
): void => Metric.counter(name, { description, attributes }).updateUnsafe(value, context);
