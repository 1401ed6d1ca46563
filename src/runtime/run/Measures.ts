/**
 * Names what is counted and measured of runs, as Effect metrics.
 *
 * Attributes are of few values only: the provider and model as the caller names them, at most `modelLabelsMax` of them, and
 * words of this package. Nothing that a provider sent becomes one.
 */
import * as Context from "effect/Context";
import * as Metric from "effect/Metric";
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
 * Most pairs of provider and model that have series of their own in one registry; further ones share one. A series lives as
 * long as its process, and a gateway's clients name their models themselves (L11).
 */
export const modelLabelsMax = 128;

/** What stands for every provider's further models. */
export const otherModel = "other";

/** Most names of providers among them. */
const providerLabelsMax = 32;

/** What is known of the series of one registry. */
interface Registered {
  readonly providers: Set<string>;
  readonly pairs: Set<string>;
  /** What every measurement of a run has, by provider and model: those with a place only. */
  readonly labels: Map<string, Map<string | undefined, MeasureAttributes>>;
  /**
   * The metrics that were updated, each with its attributes, by the labels beside them: as many as the registry has series of them. The
   * labels of a name without a place are a run's own, and go with it.
   */
  readonly series: WeakMap<MeasureAttributes, Map<string, Metric.Metric<number, unknown>>>;
}

/** Each program has a registry of its own. */
const registered = new WeakMap<object, Registered>();

const registeredIn = (context: Context.Context<never>): Registered => {
  const registry = Context.get(context, Metric.MetricRegistry);
  const found = registered.get(registry);
  if (found !== undefined) return found;
  const made: Registered = { providers: new Set(), pairs: new Set(), labels: new Map(), series: new WeakMap() };
  registered.set(registry, made);
  return made;
};

/** The names of a run's provider and model, as its spans have them. */
export const providerAttributes = (provider: Provider): MeasureAttributes => ({
  "gen_ai.provider.name": provider.id,
  "gen_ai.request.model": provider.model,
});

/**
 * The attributes that every measurement of a run has: its names, as long as there is room for their series.
 *
 * @param context holds the registry of the program that runs
 */
export const providerLabels = ({ id, model }: Provider, context: Context.Context<never>): MeasureAttributes => {
  const names = registeredIn(context);
  const found = names.labels.get(id)?.get(model);
  if (found !== undefined) return found;
  const named = taken(names.providers, id, providerLabelsMax) ? id : otherModel;
  const own = model === undefined || taken(names.pairs, JSON.stringify([named, model]), modelLabelsMax);
  const labels = { "gen_ai.provider.name": named, "gen_ai.request.model": own ? model : otherModel };
  if (named === id && own) {
    const models = names.labels.get(id) ?? new Map<string | undefined, MeasureAttributes>();
    names.labels.set(id, models.set(model, labels));
  }
  return labels;
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
  const { series } = registeredIn(context);
  let ofLabels = series.get(labels);
  if (ofLabels === undefined) {
    ofLabels = new Map();
    series.set(labels, ofLabels);
  }
  const name = metric.id + keyOf(attributes);
  let one = ofLabels.get(name);
  if (one === undefined) {
    one = make(defined(labels, attributes));
    ofLabels.set(name, one);
  }
  one.updateUnsafe(value, context);
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
