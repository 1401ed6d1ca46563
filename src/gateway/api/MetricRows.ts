/**
 * Adds up the metrics of several workers, so that a scraper reads the same totals from any of them.
 *
 * Counters and histograms of a dead worker still count, because a scraper takes a falling total for a restart and counts the remainder
 * twice. Gauges describe the present, so only live workers supply them. Series about a single process carry the worker's number as a label.
 */
import { type Context, Metric, Schema } from "effect";

const Finite = Schema.Finite;

const described = {
  id: Schema.String.check(Schema.isMaxLength(256)),
  description: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(1_024))),
  attributes: Schema.Record(Schema.String, Schema.String),
};

/** One series of a metric: a counter, a gauge or a histogram. */
export const MetricRow = Schema.Union([
  Schema.TaggedStruct("Counter", { ...described, count: Finite }),
  Schema.TaggedStruct("Gauge", { ...described, value: Finite }),
  Schema.TaggedStruct("Histogram", {
    ...described,
    /** Pairs of an upper bound and the number of values up to it. */
    buckets: Schema.Array(Schema.Tuple([Schema.Number, Finite])),
    count: Finite,
    sum: Finite,
  }),
]);
export type MetricRow = typeof MetricRow.Type;

/** Maximum number of series per worker: enough for 64 metrics with 512 series each. */
const rowsMax = 32_768;

/** Schema of the series of one worker. */
export const MetricRows = Schema.Array(MetricRow).check(Schema.isMaxLength(rowsMax));
export type MetricRows = typeof MetricRows.Type;

/** Reads the series of a registry. Frequencies and summaries are skipped, because the gateway uses neither. */
export const rowsOf = (context: Context.Context<never>): MetricRows =>
  Metric.snapshotUnsafe(context).flatMap((it): MetricRows => {
    const { attributes = {}, description, id } = it;
    const shared = { id, attributes: { ...attributes }, ...(description === undefined ? {} : { description }) };
    if (it.type === "Counter") return [{ _tag: "Counter", ...shared, count: Number(it.state.count) }];
    if (it.type === "Gauge") return [{ _tag: "Gauge", ...shared, value: Number(it.state.value) }];
    if (it.type !== "Histogram") return [];
    const { buckets, count, sum } = it.state;
    return [{ _tag: "Histogram", ...shared, buckets: buckets.map(([bound, n]) => [bound, n] as const), count, sum }];
  });

/** Builds a registry from series, because the formatter reads a registry. */
export const registryOf = (rows: MetricRows): Map<string, Metric.Metric.Metadata<unknown, unknown>> =>
  new Map(
    rows.map((row) => [
      keyOf(row),
      {
        ...{ id: row.id, type: row._tag, description: row.description, attributes: row.attributes },
        hooks: { get: () => stateOf(row), update: () => undefined, modify: () => undefined },
      },
    ]),
  );

const stateOf = (row: MetricRow): unknown => {
  if (row._tag === "Counter") return { count: row.count, incremental: true };
  if (row._tag === "Gauge") return { value: row.value };
  return { buckets: row.buckets, count: row.count, sum: row.sum, min: 0, max: 0 };
};

const keyOf = ({ _tag, attributes, id }: MetricRow): string =>
  JSON.stringify([_tag, id, Object.entries(attributes).toSorted(([a], [b]) => (a < b ? -1 : 1))]);

const isOfProcess = ({ id }: MetricRow): boolean =>
  /^(?:process|nodejs)_|^stream_recovery_gateway_config_generation$/.test(id);

/** True for gauges that describe state common to all workers. Their total is the maximum over the workers, not the sum. */
const isSharedGauge = ({ id }: MetricRow): boolean =>
  /^stream_recovery_gateway_(?:paths|path_down|draining|store_failing)$/.test(id);

const addRows = (a: MetricRow, b: MetricRow): MetricRow => {
  if (a._tag === "Counter" && b._tag === "Counter") return { ...a, count: a.count + b.count };
  if (a._tag === "Gauge" && b._tag === "Gauge")
    return { ...a, value: isSharedGauge(a) ? Math.max(a.value, b.value) : a.value + b.value };
  if (a._tag !== "Histogram" || b._tag !== "Histogram") return a;
  const counts = new Map(b.buckets);
  const buckets = a.buckets.map(([bound, n]) => [bound, n + (counts.get(bound) ?? 0)] as const);
  return { ...a, buckets, count: a.count + b.count, sum: a.sum + b.sum };
};

/** Adds up the series of several workers. */
export const sum = (all: ReadonlyArray<MetricRows>): MetricRows => {
  const rows = new Map<string, MetricRow>();
  for (const row of all.flat()) {
    const key = keyOf(row);
    const before = rows.get(key);
    rows.set(key, before === undefined ? row : addRows(before, row));
  }
  return [...rows.values()];
};

/** Selects the series that count even after their worker has died. */
export const lastingRows = (rows: MetricRows): MetricRows =>
  rows.filter((row) => row._tag !== "Gauge" && !isOfProcess(row));

/** Adds the worker's number to the series about a single process. */
export const addWorkerNumber = (worker: number, rows: MetricRows): MetricRows =>
  rows.map((row) => (isOfProcess(row) ? { ...row, attributes: { ...row.attributes, worker: String(worker) } } : row));
