/**
 * Adds up the metrics of several workers, so that a scraper which meets any of them reads the totals of all.
 *
 * Counters and histograms of a worker that has died go on being counted: a total that fell would be read as a restart, and everything
 * that is left of it as new. Gauges say what is now, and only living workers have them. What is about one process alone has the
 * worker's number as a label.
 */
import { type Context, Metric, Schema } from "effect";

const Finite = Schema.Finite;

const described = {
  id: Schema.String.check(Schema.isMaxLength(256)),
  description: Schema.optionalKey(Schema.String.check(Schema.isMaxLength(1_024))),
  attributes: Schema.Record(Schema.String, Schema.String),
};

/** One series. */
export const MetricRow = Schema.Union([
  Schema.TaggedStruct("Counter", { ...described, count: Finite }),
  Schema.TaggedStruct("Gauge", { ...described, value: Finite }),
  Schema.TaggedStruct("Histogram", {
    ...described,
    /** Upper bound, and how many are not above it. */
    buckets: Schema.Array(Schema.Tuple([Schema.Number, Finite])),
    count: Finite,
    sum: Finite,
  }),
]);
export type MetricRow = typeof MetricRow.Type;

/** Most series of one worker: 512 of a metric, and a few dozen metrics. */
const rowsMax = 32_768;

/** The series of one worker. */
export const MetricRows = Schema.Array(MetricRow).check(Schema.isMaxLength(rowsMax));
export type MetricRows = typeof MetricRows.Type;

/** The series of a registry. Frequencies and summaries are none: the gateway has none of them. */
export const rowsOf = (context: Context.Context<never>): MetricRows =>
  Metric.snapshotUnsafe(context).flatMap((it): MetricRows => {
    const { attributes = {}, description, id } = it;
    const told = { id, attributes: { ...attributes }, ...(description === undefined ? {} : { description }) };
    if (it.type === "Counter") return [{ _tag: "Counter", ...told, count: Number(it.state.count) }];
    if (it.type === "Gauge") return [{ _tag: "Gauge", ...told, value: Number(it.state.value) }];
    if (it.type !== "Histogram") return [];
    const { buckets, count, sum } = it.state;
    return [{ _tag: "Histogram", ...told, buckets: buckets.map(([bound, n]) => [bound, n] as const), count, sum }];
  });

/** A registry that holds what the rows say, for who formats one. */
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

/** What one process is about. */
const isOfProcess = ({ id }: MetricRow): boolean => /^(?:process|nodejs)_/.test(id);

/** What each worker knows of the same thing. */
const isOfAll = ({ id }: MetricRow): boolean =>
  /^stream_recovery_gateway_(?:paths|path_down|draining|store_failing)$/.test(id);

const added = (a: MetricRow, b: MetricRow): MetricRow => {
  if (a._tag === "Counter" && b._tag === "Counter") return { ...a, count: a.count + b.count };
  if (a._tag === "Gauge" && b._tag === "Gauge")
    return { ...a, value: isOfAll(a) ? Math.max(a.value, b.value) : a.value + b.value };
  if (a._tag !== "Histogram" || b._tag !== "Histogram") return a;
  const counts = new Map(b.buckets);
  const buckets = a.buckets.map(([bound, n]) => [bound, n + (counts.get(bound) ?? 0)] as const);
  return { ...a, buckets, count: a.count + b.count, sum: a.sum + b.sum };
};

const sum = (all: ReadonlyArray<MetricRows>): MetricRows => {
  const rows = new Map<string, MetricRow>();
  for (const row of all.flat()) {
    const key = keyOf(row);
    const before = rows.get(key);
    rows.set(key, before === undefined ? row : added(before, row));
  }
  return [...rows.values()];
};

/** What each worker has told last, and what those have counted that have died. The supervisor keeps it. */
export class MetricLedger {
  readonly #told = new Map<number, MetricRows>();
  #retired: MetricRows = [];

  /** A worker says what it has counted so far. */
  told(worker: number, rows: MetricRows): void {
    this.#told.set(worker, rows);
  }

  /** A worker has died; its replacement counts from the beginning. */
  left(worker: number): void {
    const rows = this.#told.get(worker);
    if (rows === undefined) return;
    this.#told.delete(worker);
    this.#retired = sum([this.#retired, rows.filter((row) => row._tag !== "Gauge" && !isOfProcess(row))]);
  }

  /** The totals. */
  get rows(): MetricRows {
    const numbered = [...this.#told].map(([worker, rows]) =>
      rows.map((row) =>
        isOfProcess(row) ? { ...row, attributes: { ...row.attributes, worker: String(worker) } } : row,
      ),
    );
    return sum([...numbered, this.#retired]);
  }
}
