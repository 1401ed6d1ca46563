/**
 * Defines the metrics of runs as Effect metrics.
 *
 * Attributes have few values: the provider and model as the caller names them (at most `modelLabelsMax` pairs), and fixed words of this
 * package. Data that a provider sends never becomes an attribute. A model has its own series if it is configured or has completed a
 * request. Our histograms have no model, because each histogram is many series. Those of OpenTelemetry's conventions have one, as the
 * conventions demand.
 */
import * as Context from "effect/Context";
import * as Metric from "effect/Metric";
import * as Predicate from "effect/Predicate";
import type { Provider } from "../../domain/RunFacts.ts";

/** Attributes of one measurement. Undefined ones are omitted. */
export type MeasureAttributes = Readonly<Record<string, string | undefined>>;

/** Makes a variant of a metric with fixed attributes, so that they are not merged for every update. */
type Maker = (attributes: Readonly<Record<string, string>>) => Metric.Metric<number, unknown>;

const makers = new WeakMap<object, Maker>();

/**
 * Makes a metric that `measure` creates once per series instead of once per measurement.
 *
 * @param make returns the metric with these attributes added to its fixed ones
 */
export const makeMetric = <State>(
  make: (attributes: Readonly<Record<string, string>>) => Metric.Metric<number, State>,
): Metric.Metric<number, State> => {
  const metric = make({});
  makers.set(metric, make);
  return metric;
};

const counter = (
  name: string,
  description: string,
  unit?: string,
): Metric.Metric<number, Metric.CounterState<number>> =>
  makeMetric((attributes) =>
    Metric.counter(`stream_recovery.${name}`, {
      description,
      incremental: true,
      attributes: unit === undefined ? attributes : { unit, ...attributes },
    }),
  );

function tokenCounter(name: string, description: string): Metric.Metric<number, Metric.CounterState<number>> {
  return makeMetric((attributes) =>
    Metric.counter(name, { description, incremental: true, attributes: { unit: "{token}", ...attributes } }),
  );
}

/**
 * Upper bounds of the time histograms, in seconds: OpenTelemetry's bounds for `gen_ai.client.inference.duration`, doubled further
 * until they exceed the longest first_progress clock.
 */
export const secondsBoundaries: ReadonlyArray<number> = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36,
];

const histogram = (
  name: string,
  description: string,
  unit: string,
  boundaries: ReadonlyArray<number>,
): Metric.Metric<number, Metric.HistogramState> =>
  makeMetric((attributes) => Metric.histogram(name, { description, attributes: { unit, ...attributes }, boundaries }));

const seconds = (name: string, description: string): Metric.Metric<number, Metric.HistogramState> =>
  histogram(`stream_recovery.${name}`, description, "seconds", secondsBoundaries);

/** Ended streams of runs, by `stream_recovery.end` (completed, recovered, stopped, parked) and, unless completed, the rule. */
export const runs = counter("runs", "Ended runs");

/** Ended attempts, by mode and, if they failed, the kind of failure (`error.type`). */
export const attempts = counter("attempts", "Ended attempts");

/** Decisions, by rule, action and kind of failure. */
export const decisions = counter("decisions", "Policy decisions about failed attempts");

/** Attempts that a clock ended, by clock. */
export const watchdogFires = counter("watchdog_fires", "Attempts that a clock ended");

/** Attempts that did not close within their grace period. */
export const abandonedAttempts = counter(
  "abandoned_attempts",
  "Attempts that did not close in time and were abandoned",
);

/** Bytes of attempts that a replay has replaced, if the transport reports bytes. */
export const discardedBytes = counter("discarded_bytes", "Bytes of discarded attempts", "bytes");

/** Visible characters of attempts that a replay has replaced. */
export const discardedCharacters = counter("discarded_characters", "Characters of discarded attempts");

/** Output tokens of attempts that a replay has replaced, if the provider reported them. */
export const discardedTokens = counter("discarded_tokens", "Output tokens of discarded attempts");

/**
 * Tokens of responses, by `stream_recovery.outcome` (`used` if the response was kept, `wasted` if it broke) and `gen_ai.token.type` (input,
 * output). Tokens that the provider does not report are estimated and marked with `stream_recovery.estimated`.
 */
export const tokens = counter("tokens", "Tokens of responses, used or wasted");

/** Cost of the tokens of responses if the model has a price, by `stream_recovery.outcome`. */
export const cost = counter("cost", "Cost of responses, used or wasted", "usd");

/** Writes that the store did not accept when they were due, by reason (`error.type`). From then on the run continues unrecorded. */
export const unrecorded = counter("unrecorded", "Run writes that the store did not accept in time");

/** Entries of runs that will never be on record, by `stream_recovery.reason` (overflow, shutdown). */
export const lostEntries = counter("lost_entries", "Run entries that could not be recorded and were lost");

/**
 * Shown texts that broke, by `stream_recovery.outcome` (joined, unproven, refused) and `stream_recovery.reason` (the proof, fault or
 * refusal).
 */
export const seams = counter("seams", "Shown texts that broke, by outcome");

/** Waits of runs before a request, by their cause (`stream_recovery.for`: path, cooldown). */
export const waits = counter("waits", "Waits for a path or for the end of a cooldown");

/** Runs that are waiting now, by the cause of the wait (`stream_recovery.for`). */
export const waitingRuns = makeMetric((attributes) =>
  Metric.counter("stream_recovery.waiting_runs", {
    description: "Runs waiting for a path or for the end of a cooldown",
    attributes,
  }),
);

/** Duration of a wait for a path or a cooldown, in seconds. */
export const waitTime = seconds("wait_time", "Time from the start of a wait to its end");

/** Time from the start of an attempt to its first progress, in seconds. */
export const timeToFirstProgress = seconds(
  "time_to_first_progress",
  "Time from an attempt's start to its first progress",
);

/** Time from a failure to the next progress of the run, in seconds. It spans all attempts, waits and questions between them. */
export const recoveryTime = seconds("recovery_time", "Time from a failure to the next progress of its run");

/**
 * Metrics of OpenTelemetry's conventions for generative AI (opentelemetry/semantic-conventions-genai, `gen_ai.client.inference`). One run
 * is one inference. `operationDuration` and `tokenUsage` are the names of the conventions up to 1.41, which most tools still read.
 */
export const genAi = {
  duration: histogram(
    "gen_ai.client.inference.duration",
    "Time from the first request of a run to its end",
    "seconds",
    secondsBoundaries,
  ),
  operationDuration: histogram(
    "gen_ai.client.operation.duration",
    "Time from the first request of a run to its end",
    "seconds",
    secondsBoundaries,
  ),
  timeToFirstChunk: histogram(
    "gen_ai.client.inference.time_to_first_chunk",
    "Time from the first request of a run to its first progress",
    "seconds",
    secondsBoundaries,
  ),
  usage: {
    input: tokenCounter("gen_ai.client.inference.usage.input_tokens", "Input tokens that providers have reported"),
    output: tokenCounter("gen_ai.client.inference.usage.output_tokens", "Output tokens that providers have reported"),
  },
  tokenUsage: histogram(
    "gen_ai.client.token.usage",
    "Tokens of a response that its provider has reported, by type",
    "{token}",
    Array.from({ length: 14 }, (_, power) => 4 ** power),
  ),
};

/**
 * Maximum pairs of provider and model with their own series in one registry. Beyond it the least recently used pair is evicted,
 * because the clients of a gateway choose the names of their models (L11).
 */
export const modelLabelsMax = 128;

/** The label of every model without its own series. */
export const otherModel = "other";

/** Maximum provider names in the labels of one registry. */
const providerLabelsMax = 32;

/** A metric with one set of attributes in addition to the labels. */
interface Series {
  readonly metric: Metric.Metric<number, unknown>;
  readonly make: Maker;
  readonly attributes: MeasureAttributes;
}

/** A tree of series, with the name of an attribute and then its value at each level. Walking it is cheaper than building a key. */
interface SeriesNode {
  series: Series | undefined;
  readonly next: Map<string, SeriesNode>;
}

/** The series of one registry. */
interface Registered {
  readonly providers: Set<string>;
  /** Labels of models with their own series, the least recently used one first. */
  readonly models: Map<string, MeasureAttributes>;
  /** The model that was used last, with its labels. A run measures several times in a row. */
  newest: { readonly id: string; readonly model: string | undefined; readonly labels: MeasureAttributes } | undefined;
  /** Labels of measurements without a model, by provider. */
  readonly modelless: Map<string, MeasureAttributes>;
  /** Labels of models without their own series, by provider. */
  readonly others: Map<string, MeasureAttributes>;
  /** Updated metrics by their labels: one per series in the registry. */
  readonly series: WeakMap<MeasureAttributes, Map<string, SeriesNode>>;
}

/** Registered names and series by metric registry, because each program has its own registry. */
const registered = new WeakMap<object, Registered>();

const namesOf = (context: Context.Context<never>): Registered => {
  const registry = Context.get(context, Metric.MetricRegistry);
  const found = registered.get(registry);
  if (found !== undefined) return found;
  const made: Registered = {
    ...{ providers: new Set(), models: new Map(), newest: undefined },
    ...{ modelless: new Map(), others: new Map(), series: new WeakMap() },
  };
  registered.set(registry, made);
  return made;
};

/** Returns the names of a run's provider and model, as its spans have them. */
export const providerAttributes = (provider: Provider): MeasureAttributes => ({
  "gen_ai.provider.name": provider.id,
  "gen_ai.request.model": provider.model,
});

/**
 * Returns the attributes that all measurements of a run share: its provider, and its model if the model has its own series.
 *
 * @param context holds the registry of the running program
 * @param admits true if the model is configured or has completed a request, so that it gets its own series
 */
export const providerLabels = (
  { id, model }: Provider,
  context: Context.Context<never>,
  admits = false,
): MeasureAttributes => {
  const names = namesOf(context);
  const { newest } = names;
  if (newest?.id === id && newest.model === model) return newest.labels;
  const named = admitName(names.providers, id, providerLabelsMax) ? id : otherModel;
  const key = JSON.stringify([named, model]);
  const found = model === undefined ? undefined : names.models.get(key);
  if (found === undefined && (model === undefined || !admits))
    return otherLabels(named, model === undefined ? undefined : otherModel, names);
  const labels = found ?? labelsOf(named, model);
  // Reinserting the entry keeps the map in order of last use.
  names.models.delete(key);
  const [oldest] = names.models;
  if (found === undefined && oldest !== undefined && names.models.size >= modelLabelsMax) {
    names.models.delete(oldest[0]);
    evict(oldest[1], names, context);
  }
  names.models.set(key, labels);
  names.newest = { id, model, labels };
  return labels;
};

/** Returns the attributes of measurements without a model, for example histograms. */
export const modelless = ({ id }: Provider, context: Context.Context<never>): MeasureAttributes => {
  const names = namesOf(context);
  return otherLabels(admitName(names.providers, id, providerLabelsMax) ? id : otherModel, undefined, names);
};

const labelsOf = (provider: string, model: string | undefined): MeasureAttributes => ({
  "gen_ai.provider.name": provider,
  "gen_ai.request.model": model,
});

const otherLabels = (
  provider: string,
  model: typeof otherModel | undefined,
  { modelless, others }: Registered,
): MeasureAttributes => {
  const known = model === undefined ? modelless : others;
  const labels = known.get(provider) ?? labelsOf(provider, model);
  known.set(provider, labels);
  return labels;
};

/** Removes the series of a model from the registry. Their counts are added to the model `other`, so that totals do not decrease. */
const evict = (labels: MeasureAttributes, names: Registered, context: Context.Context<never>): void => {
  const of = names.series.get(labels);
  names.series.delete(labels);
  const rest = otherLabels(labels["gen_ai.provider.name"] ?? otherModel, otherModel, names);
  for (const { attributes, make, metric } of seriesIn(of?.values() ?? [])) {
    const state = metric.valueUnsafe(context);
    // A histogram cannot be added to another. Readers treat its removal as a restart.
    if (!Predicate.hasProperty(state, "count") || Predicate.hasProperty(state, "buckets")) continue;
    seriesOf(metric.id, make, attributes, rest, names).metric.updateUnsafe(Number(state.count), context);
  }
  const registry = Context.get(context, Metric.MetricRegistry);
  for (const [key, { attributes }] of registry) {
    const isOf = ([name, value]: readonly [string, string | undefined]) => attributes?.[name] === value;
    if (Object.entries(labels).every(isOf)) registry.delete(key);
  }
};

/** Returns true if the name is one of the first `max` names, and adds it while there is room. */
const admitName = (names: Set<string>, name: string, max: number): boolean => {
  if (names.has(name)) return true;
  if (names.size >= max) return false;
  names.add(name);
  return true;
};

/**
 * Adds one measurement.
 *
 * @param context holds the registry of the running program
 * @param labels attributes in addition to those of the measurement
 */
export const measure = <State>(
  metric: Metric.Metric<number, State>,
  value: number,
  attributes: MeasureAttributes,
  context: Context.Context<never>,
  labels: MeasureAttributes = noLabels,
): void => {
  const make = makers.get(metric);
  // If the program adds attributes to every measurement, the attributes given here take precedence.
  if (make === undefined || Object.keys(Context.get(context, Metric.CurrentMetricAttributes)).length > 0) {
    Metric.withAttributes(metric, withoutUndefined(labels, attributes)).updateUnsafe(value, context);
    return;
  }
  seriesOf(metric.id, make, attributes, labels, namesOf(context)).metric.updateUnsafe(value, context);
};

const seriesOf = (
  id: string,
  make: Maker,
  attributes: MeasureAttributes,
  labels: MeasureAttributes,
  { series }: Registered,
): Series => {
  let ofLabels = series.get(labels);
  if (ofLabels === undefined) {
    ofLabels = new Map();
    series.set(labels, ofLabels);
  }
  let node = nodeAt(ofLabels, id);
  for (const name in attributes) {
    const it = attributes[name];
    if (it !== undefined) node = nodeAt(nodeAt(node.next, name).next, it);
  }
  node.series ??= { metric: make(withoutUndefined(labels, attributes)), make, attributes };
  return node.series;
};

const nodeAt = (nodes: Map<string, SeriesNode>, key: string): SeriesNode => {
  const known = nodes.get(key);
  if (known !== undefined) return known;
  const made: SeriesNode = { series: undefined, next: new Map() };
  nodes.set(key, made);
  return made;
};

function* seriesIn(nodes: Iterable<SeriesNode>): Generator<Series> {
  for (const { next, series } of nodes) {
    if (series !== undefined) yield series;
    yield* seriesIn(next.values());
  }
}

const noLabels: MeasureAttributes = {};

const withoutUndefined = (...all: ReadonlyArray<MeasureAttributes>): Record<string, string> =>
  Object.fromEntries(
    all.flatMap((attributes) =>
      Object.entries(attributes).flatMap(
        ([name, it]): ReadonlyArray<[string, string]> => (it === undefined ? [] : [[name, it]]),
      ),
    ),
  );
