/**
 * Names what is counted and measured of runs, as Effect metrics.
 *
 * Attributes are of few values only: the provider and model as the caller names them, at most `modelLabelsMax` of them, and
 * words of this package. Nothing that a provider sent becomes one. A model has series if it is configured or has completed a
 * request; histograms, which are many series each, have no model.
 */
import * as Context from "effect/Context";
import * as Metric from "effect/Metric";
import * as Predicate from "effect/Predicate";
import type { Provider } from "../../domain/RunFacts.ts";

/** Attributes of one measurement; those that are undefined are left out. */
export type MeasureAttributes = Readonly<Record<string, string | undefined>>;

/** Makes a metric again with attributes of its own: an update of it computes nothing. */
type Maker = (attributes: Readonly<Record<string, string>>) => Metric.Metric<number, unknown>;

const makers = new WeakMap<object, Maker>();

/**
 * Makes a metric that `measure` knows how to make again: each of its series is made once, and not with every measurement.
 *
 * @param make gives the metric with attributes of its own beside those that it always has
 */
export const known = <State>(
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
  known((attributes) =>
    Metric.counter(`stream_recovery.${name}`, {
      description,
      incremental: true,
      attributes: unit === undefined ? attributes : { unit, ...attributes },
    }),
  );

/**
 * Upper bounds of the time histograms, in seconds: those that OpenTelemetry gives for `gen_ai.client.operation.duration`,
 * doubled on until they pass the longest first_progress clock.
 */
export const secondsBoundaries: ReadonlyArray<number> = [
  0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92, 163.84, 327.68, 655.36,
];

const seconds = (name: string, description: string): Metric.Metric<number, Metric.HistogramState> =>
  known((attributes) =>
    Metric.histogram(`stream_recovery.${name}`, {
      description,
      attributes: { unit: "seconds", ...attributes },
      boundaries: secondsBoundaries,
    }),
  );

/** Runs that have ended, by `stream_recovery.end` (completed, recovered, stopped) and, where stopped, the rule. */
export const runs = counter("runs", "Runs that have ended");

/** Attempts that have ended, by mode and, where they failed, the kind of failure (`error.type`). */
export const attempts = counter("attempts", "Attempts that have ended");

/** Decisions, by rule, action and the kind of failure. */
export const decisions = counter("decisions", "Decisions of the policy about failed attempts");

/** Attempts that a clock has ended, by clock. */
export const watchdogFires = counter("watchdog_fires", "Attempts that a clock has ended");

/** Attempts that did not close within their grace. */
export const abandonedAttempts = counter("abandoned_attempts", "Attempts that did not close in time and were left");

/** Bytes of attempts that a replay has replaced, where the transport reports bytes. */
export const discardedBytes = counter("discarded_bytes", "Bytes of attempts that were thrown away", "bytes");

/** Visible characters of attempts that a replay has replaced. */
export const discardedCharacters = counter("discarded_characters", "Characters of attempts that were thrown away");

/** Output tokens of attempts that a replay has replaced, where the provider had told them. */
export const discardedTokens = counter("discarded_tokens", "Output tokens of attempts that were thrown away");

/**
 * Tokens of responses, by `stream_recovery.outcome` (`used` of one that stands, `wasted` of one that broke) and `gen_ai.token.type`
 * (input, output). What the provider did not tell is estimated, and says so (`stream_recovery.estimated`).
 */
export const tokens = counter("tokens", "Tokens of responses, used or wasted");

/** What they cost where the model has a price, by `stream_recovery.outcome`. */
export const cost = counter("cost", "What responses cost, used or wasted", "usd");

/** Writes that the store did not take when they were due, by reason (`error.type`): from there a run goes on unrecorded. */
export const unrecorded = counter("unrecorded", "Writes of runs that the store did not take when they were due");

/** Entries of runs that will never be on record, by `stream_recovery.reason` (overflow, shutdown). */
export const lostEntries = counter("lost_entries", "Entries of runs that could not be recorded and were given up");

/**
 * Text that was shown and broke, by what became of it (`stream_recovery.outcome`: joined, unproven, refused) and how or why
 * (`stream_recovery.reason`: a proof, a fault, a refusal).
 */
export const seams = counter("seams", "Texts that were shown and broke, by what became of them");

/** Waits of runs before a request, by what they wait for (`stream_recovery.for`: path, cooldown). */
export const waits = counter("waits", "Waits of runs for a path or for the end of a cooldown");

/** Runs that wait now, by the same. */
export const waitingRuns = known((attributes) =>
  Metric.counter("stream_recovery.waiting_runs", {
    description: "Runs that wait for a path or for the end of a cooldown",
    attributes,
  }),
);

/** How long such a wait took, in seconds. */
export const waitTime = seconds("wait_time", "From the begin of a wait to its end");

/** From the start of an attempt to its first progress, in seconds. */
export const timeToFirstProgress = seconds("time_to_first_progress", "From an attempt's start to its first progress");

/** From a failure to the next progress of the run, over as many attempts as it took, waits and questions included. */
export const recoveryTime = seconds("recovery_time", "From a failure to the next progress of its run");

/**
 * Most pairs of provider and model that have series of their own in one registry; beyond, the one that was used longest ago gives its
 * place up. A gateway's clients name their models themselves (L11).
 */
export const modelLabelsMax = 128;

/** The label of every model without series of its own. */
export const otherModel = "other";

/** Most names of providers among them. */
const providerLabelsMax = 32;

/** One metric with one set of attributes beside the labels. */
interface Series {
  readonly metric: Metric.Metric<number, unknown>;
  readonly make: Maker;
  readonly attributes: MeasureAttributes;
}

/** What is known of the series of one registry. */
interface Registered {
  readonly providers: Set<string>;
  /** The labels of models with series of their own, the one that was used longest ago first. */
  readonly models: Map<string, MeasureAttributes>;
  /** The labels without a model of their own, by provider and model: none or `other`. */
  readonly others: Map<string, MeasureAttributes>;
  /** The metrics that were updated, by the labels beside them: as many as the registry has series of them. */
  readonly series: WeakMap<MeasureAttributes, Map<string, Series>>;
}

/** Each program has a registry of its own. */
const registered = new WeakMap<object, Registered>();

const registeredIn = (context: Context.Context<never>): Registered => {
  const registry = Context.get(context, Metric.MetricRegistry);
  const found = registered.get(registry);
  if (found !== undefined) return found;
  const made: Registered = { providers: new Set(), models: new Map(), others: new Map(), series: new WeakMap() };
  registered.set(registry, made);
  return made;
};

/** The names of a run's provider and model, as its spans have them. */
export const providerAttributes = (provider: Provider): MeasureAttributes => ({
  "gen_ai.provider.name": provider.id,
  "gen_ai.request.model": provider.model,
});

/**
 * The attributes that every measurement of a run has: its provider, and its model if that has series of its own.
 *
 * @param context holds the registry of the program that runs
 * @param admits the model is configured or has completed a request: it gets series
 */
export const providerLabels = (
  { id, model }: Provider,
  context: Context.Context<never>,
  admits = false,
): MeasureAttributes => {
  const names = registeredIn(context);
  const named = taken(names.providers, id, providerLabelsMax) ? id : otherModel;
  const key = JSON.stringify([named, model]);
  const found = model === undefined ? undefined : names.models.get(key);
  if (found === undefined && (model === undefined || !admits))
    return otherLabels(named, model === undefined ? undefined : otherModel, names);
  const labels = found ?? labelsOf(named, model);
  // The last one is the one that was used last.
  names.models.delete(key);
  const [oldest] = names.models;
  if (found === undefined && oldest !== undefined && names.models.size >= modelLabelsMax) {
    names.models.delete(oldest[0]);
    evict(oldest[1], names, context);
  }
  names.models.set(key, labels);
  return labels;
};

/** The attributes of measurements that have no model: those of histograms. */
export const modelless = ({ id }: Provider, context: Context.Context<never>): MeasureAttributes => {
  const names = registeredIn(context);
  return otherLabels(taken(names.providers, id, providerLabelsMax) ? id : otherModel, undefined, names);
};

const labelsOf = (provider: string, model: string | undefined): MeasureAttributes => ({
  "gen_ai.provider.name": provider,
  "gen_ai.request.model": model,
});

const otherLabels = (provider: string, model: string | undefined, { others }: Registered): MeasureAttributes => {
  const key = JSON.stringify([provider, model]);
  const labels = others.get(key) ?? labelsOf(provider, model);
  others.set(key, labels);
  return labels;
};

/** Takes the series of a model out of the registry; what they counted goes on as another model's, so that sums do not fall. */
const evict = (labels: MeasureAttributes, names: Registered, context: Context.Context<never>): void => {
  const of = names.series.get(labels);
  names.series.delete(labels);
  const rest = otherLabels(labels["gen_ai.provider.name"] ?? otherModel, otherModel, names);
  for (const { attributes, make, metric } of of?.values() ?? []) {
    const state = metric.valueUnsafe(context);
    if (!Predicate.hasProperty(state, "count")) continue;
    seriesOf(metric.id, make, attributes, rest, names).metric.updateUnsafe(Number(state.count), context);
  }
  const registry = Context.get(context, Metric.MetricRegistry);
  for (const [key, { attributes }] of registry) {
    const isOf = ([name, value]: readonly [string, string | undefined]) => attributes?.[name] === value;
    if (Object.entries(labels).every(isOf)) registry.delete(key);
  }
};

/** Whether a name has a place among the first `max`. */
const taken = (names: Set<string>, name: string, max: number): boolean => {
  if (names.has(name)) return true;
  if (names.size >= max) return false;
  names.add(name);
  return true;
};

/**
 * Adds one measurement.
 *
 * @param context holds the registry of the program that runs
 * @param labels stand beside the attributes of the measurement
 */
export const measure = <State>(
  metric: Metric.Metric<number, State>,
  value: number,
  attributes: MeasureAttributes,
  context: Context.Context<never>,
  labels: MeasureAttributes = noLabels,
): void => {
  const make = makers.get(metric);
  // What the program itself adds to every measurement gives way to these attributes.
  if (make === undefined || Object.keys(Context.get(context, Metric.CurrentMetricAttributes)).length > 0) {
    Metric.withAttributes(metric, defined(labels, attributes)).updateUnsafe(value, context);
    return;
  }
  seriesOf(metric.id, make, attributes, labels, registeredIn(context)).metric.updateUnsafe(value, context);
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
  const name = id + keyOf(attributes);
  let one = ofLabels.get(name);
  if (one === undefined) {
    one = { metric: make(defined(labels, attributes)), make, attributes };
    ofLabels.set(name, one);
  }
  return one;
};

const noLabels: MeasureAttributes = {};

/** Tells attributes apart, whatever stands in them. */
const keyOf = (attributes: MeasureAttributes): string => {
  let key = "";
  for (const name in attributes) {
    const it = attributes[name];
    if (it !== undefined) key += `\n${name}=${it.length}:${it}`;
  }
  return key;
};

const defined = (...all: ReadonlyArray<MeasureAttributes>): Record<string, string> =>
  Object.fromEntries(
    all.flatMap((attributes) =>
      Object.entries(attributes).flatMap(
        ([name, it]): ReadonlyArray<[string, string]> => (it === undefined ? [] : [[name, it]]),
      ),
    ),
  );
