/**
 * Counts ended requests as Effect metrics, by upstream, client and outcome. Each label is bounded, so that neither values from
 * clients nor a long configuration create series without end (L11).
 */
import { Context, Effect, Metric } from "effect";
import type { RelayWait } from "../../adapters/relay/RelayWaits.ts";
import { makeMetric, measure, secondsBoundaries } from "../../runtime/run/Measures.ts";
import type { AccessRecord } from "./AccessRecord.ts";

/** Ended requests. `reason` is the rule of a run that failed for good or that a person cancelled, or the reason of a refusal. */
const served = makeMetric((attributes) =>
  Metric.counter("stream_recovery.gateway.served", {
    description: "Finished client requests",
    incremental: true,
    attributes,
  }),
);

/** Ended requests of upstreams with fallback routes, by the route of the last attempt. */
const routed = makeMetric((attributes) =>
  Metric.counter("stream_recovery.gateway.routed", {
    description: "Requests to upstreams with several routes, by the last route used",
    incremental: true,
    attributes,
  }),
);

/** Time from a request to the first bytes of its response's body, including the time for which the gateway withheld these bytes. */
const firstBytes = makeMetric((attributes) =>
  Metric.histogram("stream_recovery.gateway.time_to_first_bytes", {
    description: "Time from a request to the first bytes of its response",
    attributes: { ...attributes, unit: "seconds" },
    boundaries: secondsBoundaries,
  }),
);

/** Requests that were not runs although their responses streamed, by the reason in `x-recovery-passed`. */
const passed = makeMetric((attributes) =>
  Metric.counter("stream_recovery.gateway.passed_streams", {
    description: "Responses that streamed through the gateway without recovery",
    incremental: true,
    attributes,
  }),
);

/** Events and comments that the gateway itself sent, so that clients do not time out. */
const noOps = makeMetric((attributes) =>
  Metric.counter("stream_recovery.gateway.no_ops", {
    description: "Events and comments sent to keep a client waiting",
    incremental: true,
    attributes,
  }),
);

/** Time that runs waited before they sent a request, by `for`: `path` or `cooldown`. */
export const waits = makeMetric((attributes) =>
  Metric.histogram("stream_recovery.gateway.wait_time", {
    description: "Waits of runs for the path to a provider and for announced cooldowns",
    attributes: { unit: "seconds", ...attributes },
    boundaries: secondsBoundaries,
  }),
);

/** Adds the duration of an ended wait to `waits`. */
export const countWait = ({ for: what, ms }: RelayWait, context: Context.Context<never>): void =>
  measure(waits, ms / 1_000, { for: what }, context);

/** Requests that received the response of an existing run, by `how`: `repeat` or `stream` (by run id). */
export const attached = makeMetric((attributes) =>
  Metric.counter("stream_recovery.gateway.attached", {
    description: "Requests that attached to a run instead of starting one",
    incremental: true,
    attributes,
  }),
);

/** Responses evicted before a client could return for them, by `why`: `run_bytes`, `process_bytes` or `runs`. */
export const evictions = makeMetric((attributes) =>
  Metric.counter("stream_recovery.gateway.evicted", {
    description: "Responses kept for returning clients that exceeded the limit",
    incremental: true,
    attributes,
  }),
);

/** Counts a request that has attached to a run, by the way in which it found the run. */
export const countAttached = (how: "repeat" | "stream", context: Context.Context<never>): void =>
  measure(attached, 1, { how }, context);

/** Counts an evicted response, by the limit that was exceeded. */
export const countEvicted = (why: "run_bytes" | "process_bytes" | "runs", context: Context.Context<never>): void =>
  measure(evictions, 1, { why }, context);

/** Maximum values of one label. Further values are replaced by `other`. There are about 20 clients, 40 rules and a dozen refusals. */
export const labelValuesMax = 64;

/** Maximum series of `served`. A request that would need another series is counted with `other` in each label except the outcome. */
export const seriesMax = 512;

const other = "other";

type Attributes = Readonly<Record<string, string>>;

/** The label values and the series that one metric registry contains. Each program has its own registry. */
class Labels {
  readonly #values = new Map<string, Set<string>>();
  readonly #series = new Set<string>();

  /** Returns the value, `none` if there is no value, or `other` if the label already has `labelValuesMax` values. */
  of(label: string, value: string | undefined): string {
    if (value === undefined) return "none";
    let known = this.#values.get(label);
    if (known === undefined) {
      known = new Set();
      this.#values.set(label, known);
    }
    return tryAdd(known, value, labelValuesMax) ? value : other;
  }

  /** True if the combination may have its own series. */
  has(labels: Attributes): boolean {
    return tryAdd(this.#series, seriesOf(labels), seriesMax);
  }
}

const tryAdd = (known: Set<string>, value: string, max: number): boolean => {
  if (known.has(value)) return true;
  if (known.size >= max) return false;
  known.add(value);
  return true;
};

/** Joins labels by NUL, which no label contains. */
const seriesOf = (labels: Attributes): string => {
  let series = "";
  for (const name in labels) series += `${labels[name]}\u0000`;
  return series;
};

const registries = new WeakMap<object, Labels>();

/** Counts an ended request in every metric of this module that applies to it. */
export const count = (record: AccessRecord): Effect.Effect<void> =>
  Effect.withFiber(({ context }) => {
    const registry = Context.get(context, Metric.MetricRegistry);
    let labels = registries.get(registry);
    if (labels === undefined) {
      labels = new Labels();
      registries.set(registry, labels);
    }
    const { outcome } = record;
    const own = {
      upstream: labels.of("upstream", record.upstream),
      client: labels.of("client", record.client),
      outcome,
      reason: labels.of("reason", outcome === "given_up" || outcome === "run_cancelled" ? record.rule : record.refused),
    };
    const attributes = labels.has(own) ? own : { upstream: other, client: other, outcome, reason: other };
    measure(served, 1, attributes, context);
    const { upstream } = attributes;
    if (record.route !== undefined) {
      const by = { upstream, route: labels.of("route", record.route), outcome };
      measure(routed, 1, labels.has(by) ? by : { upstream: other, route: other, outcome }, context);
    }
    if (record.first_ms !== undefined) measure(firstBytes, record.first_ms / 1_000, { upstream, outcome }, context);
    if (record.passed !== undefined) measure(passed, 1, { upstream, reason: record.passed }, context);
    if (record.no_ops !== undefined) measure(noOps, record.no_ops, { upstream }, context);
    return Effect.void;
  });
