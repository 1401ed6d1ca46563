/**
 * Reports a run through Effect's tracer, metrics and logger: a span for the run and one per attempt, counters, and log lines for events
 * that an operator would ask about. The run is one inference of OpenTelemetry's conventions for generative AI.
 *
 * It sees transitions, never parts, and decides nothing. If a tracer or a registry throws, only the telemetry of that run ends. No content,
 * prompt, header or address is reported, and the caller's spans are not modified.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Tracer from "effect/Tracer";
import type { AttemptFacts } from "../../domain/AttemptFacts.ts";
import type { Failure } from "../../domain/Failure.ts";
import * as Prices from "../../domain/Prices.ts";
import type { AttemptMode, Provider } from "../../domain/RunFacts.ts";
import type { RunEnd, RunIncident } from "../../domain/RunIncident.ts";
import * as Tokens from "../../facts/Tokens.ts";
import { isPublic } from "../../recorder/export/ExportLabel.ts";
import type { AttemptEnd } from "../attempt/AttemptEnd.ts";
import * as Measures from "./Measures.ts";

/** The parts of an attempt that telemetry reads. */
export interface SeenAttempt {
  readonly number: number;
  readonly setup: { readonly mode: AttemptMode; readonly route: string | undefined };
  readonly facts: { readonly snapshot: () => AttemptFacts };
  readonly watch: { readonly firstProgressAt: number | undefined } | undefined;
  readonly finish: string | undefined;
}

/** The parts of a run that telemetry reads. */
export interface SeenRun {
  readonly runId: string;
  readonly provider: Provider;
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** The attempts of its current response. */
  readonly chain: { readonly links: ReadonlyArray<Pick<SeenAttempt, "facts">> } | undefined;
  readonly options: { readonly requestTokens?: number };
  readonly shared: { readonly prices: Prices.Prices };
}

/** The telemetry of one run. `R` is the environment of the caller's stream. */
export class RunTelemetry<R> {
  /** The services of the run's own fibers: the caller's, below the run's span. */
  readonly services: Context.Context<R>;
  readonly #run: SeenRun;
  readonly #clock: Clock.Clock;
  #span: Tracer.Span | undefined;
  #attempt: Tracer.Span | undefined;
  /** Start of the live attempt, in monotonic milliseconds. */
  #startedAt = 0;
  /** Start of the run's first attempt, in monotonic milliseconds. */
  #begunAt: number | undefined;
  /** Time from the run's start to its first progress, in seconds. */
  #firstChunk: number | undefined;
  /** Tokens that the providers of all attempts have reported. */
  readonly #reported: { input?: number; output?: number } = {};
  #broke: { readonly at: number; readonly kind: Failure["kind"] } | undefined;
  #last: RunIncident | undefined;
  #finish: string | undefined;
  #off = false;

  /** @param services the services of the fiber that runs the stream; its span becomes the parent of the run's span */
  constructor(services: Context.Context<R>, run: SeenRun) {
    this.services = services;
    this.#run = run;
    this.#clock = Context.get(services, Clock.Clock);
    if (!isTraced(services)) return;
    this.#span = this.#safely(() => {
      const { model } = run.provider;
      const span = this.#makeSpan(model === undefined ? operation : `${operation} ${model}`, "client");
      // A sampler may decide by these attributes when the span starts.
      setAll(span, { [operationName]: operation, ...Measures.providerAttributes(run.provider) });
      return span;
    });
    if (this.#span !== undefined) this.services = Context.add(services, Tracer.ParentSpan, this.#span);
  }

  /** Starts the attempt's span. Returns the services for the attempt's stream, which contain that span. */
  reportAttemptStart(): Context.Context<R> {
    this.#startedAt = this.#run.now();
    this.#begunAt ??= this.#startedAt;
    if (this.#span === undefined) return this.services;
    const started = this.#safely(() => {
      const span = this.#makeSpan("stream_recovery.attempt", "internal");
      this.#attempt = span;
      return Context.add(this.services, Tracer.ParentSpan, span);
    });
    return started ?? this.services;
  }

  reportAttemptEnd(attempt: SeenAttempt, outcome: AttemptEnd): void {
    this.#safely(() => {
      const live = this.#attempt;
      this.#attempt = undefined;
      const failure = outcome._tag === "failed" ? outcome.failure : undefined;
      const { mode } = attempt.setup;
      // From its first completed request on, a model gets its own series.
      if (failure === undefined) Measures.providerLabels(this.#run.provider, this.services, true);
      this.#measure(Measures.attempts, 1, { "stream_recovery.mode": mode, "error.type": failure?.kind });
      this.#measureProgress(attempt);
      this.#measureUsage(attempt);
      if (failure?.kind === "stalled") {
        this.#measure(Measures.watchdogFires, 1, { "stream_recovery.clock": failure.clock });
        this.#event(live, "stream_recovery.watchdog_fired", { "stream_recovery.clock": failure.clock });
      }
      if (failure !== undefined) this.#broke ??= { at: this.#run.now(), kind: failure.kind };
      this.#finish = attempt.finish;
      if (live === undefined) return;
      setAll(live, { ...this.#identityAttributes(), ...attemptAttributes(attempt), ...failureAttributes(failure) });
      live.end(this.#clock.currentTimeNanosUnsafe(), exitOf(failure));
    });
  }

  /** Reports an attempt that did not close within its grace period. */
  reportAbandoned(attempt: SeenAttempt): void {
    this.#safely(() => {
      this.#measure(Measures.abandonedAttempts, 1, { "stream_recovery.mode": attempt.setup.mode });
      this.#event(this.#span, "stream_recovery.attempt_abandoned", { "stream_recovery.attempt": attempt.number });
    });
  }

  reportDecision(incident: RunIncident): void {
    this.#safely(() => {
      const { attempt, decision, failure } = incident;
      this.#last = incident;
      const told = {
        "stream_recovery.rule": decision.rule,
        "stream_recovery.action": decision.action,
        "error.type": failure.kind,
      };
      this.#measure(Measures.decisions, 1, told);
      this.#event(this.#span, "stream_recovery.decision", {
        ...told,
        "stream_recovery.attempt": attempt,
        "stream_recovery.mode": decision.mode,
        "stream_recovery.delay_ms": decision.delay_ms,
        "stream_recovery.late": incident.status === "late" ? true : undefined,
      });
    });
  }

  /** Reports a write that the store did not accept. The run continues unrecorded until the store is available again. */
  reportUnrecorded(reason: string): void {
    this.#safely(() => this.#measure(Measures.unrecorded, 1, { "error.type": reason }));
  }

  /**
   * Reports the result after shown text broke: `joined`, `unproven` if the seam could not be proven, or `refused` if there was no
   * continuation.
   */
  reportSeam(outcome: "joined" | "unproven" | "refused", reason: string): void {
    this.#safely(() => {
      const attributes = { "stream_recovery.outcome": outcome, "stream_recovery.reason": reason };
      this.#measure(Measures.seams, 1, attributes);
      this.#event(this.#span, "stream_recovery.seam", attributes);
    });
  }

  /** Reports a scheduled retry at debug level, because the run recovers by itself. */
  reportRetry(incident: RunIncident): void {
    this.#log("debug", incident.message, logAnnotations(incident));
  }

  /** Reports that the run begins to wait before a request. */
  reportWaitStart(it: "path" | "cooldown"): void {
    this.#safely(() => {
      const attributes = { "stream_recovery.for": it };
      this.#measure(Measures.waits, 1, attributes);
      this.#measureModelless(Measures.waitingRuns, 1, attributes);
      this.#event(this.#span, "stream_recovery.waiting", attributes);
    });
  }

  /** Reports the end of a wait before a request and its duration, in milliseconds. */
  reportWaitEnd(it: "path" | "cooldown", ms: number): void {
    this.#safely(() => {
      const attributes = { "stream_recovery.for": it };
      this.#measureModelless(Measures.waitingRuns, -1, attributes);
      this.#measureModelless(Measures.waitTime, ms / 1_000, attributes);
    });
  }

  reportQuestion(incident: RunIncident): void {
    this.#log("warning", incident.message, logAnnotations(incident));
  }

  /** Counts the output of attempts that a replay has replaced. */
  reportDiscarded(attempts: ReadonlyArray<SeenAttempt>): void {
    this.#safely(() => {
      for (const attempt of attempts) {
        const { bytes, characters, output_tokens } = attempt.facts.snapshot().counters;
        const attributes = { "stream_recovery.mode": attempt.setup.mode };
        if (bytes > 0) this.#measure(Measures.discardedBytes, bytes, attributes);
        if (characters > 0) this.#measure(Measures.discardedCharacters, characters, attributes);
        if (output_tokens !== undefined) this.#measure(Measures.discardedTokens, output_tokens, attributes);
      }
    });
  }

  /** Counts the tokens and the cost of a response that was used or wasted. */
  reportCost(outcome: "used" | "wasted", tokens: Tokens.TokenCost): void {
    this.#safely(() => {
      const attributes = {
        "stream_recovery.outcome": outcome,
        "stream_recovery.estimated": tokens.estimated ? "true" : undefined,
      };
      for (const type of ["input", "output"] as const) {
        if (tokens[type] > 0)
          this.#measure(Measures.tokens, tokens[type], { ...attributes, "gen_ai.token.type": type });
      }
      const price = Prices.priceOf(this.#run.shared.prices, this.#run.provider.model);
      const cost = price === undefined ? 0 : Prices.costOf(price, tokens);
      if (cost > 0) this.#measure(Measures.cost, cost, attributes);
    });
  }

  /** Counts the cost of the run's last response when the run has ended. A parked run has not ended. */
  #reportLastCost({ reason, state }: StreamEnd): void {
    const { chain, options } = this.#run;
    if (chain === undefined || state === "parked") return;
    const isUsed = state === "completed" || reason === "accepted_partial" || reason === "consumer_finished";
    const facts = chain.links.map((link) => link.facts.snapshot());
    this.reportCost(
      isUsed ? "used" : "wasted",
      Tokens.estimateResponse(facts, isUsed ? undefined : this.#last?.failure, options.requestTokens),
    );
  }

  reportRunEnd(end: StreamEnd, attempts: number): void {
    this.#reportLastCost(end);
    this.#safely(() => {
      const completed = end.state === "completed";
      const how = !completed ? end.state : attempts > 1 ? "recovered" : "completed";
      const rule = completed ? undefined : end.reason;
      this.#logEnd(how, end);
      this.#measure(Measures.runs, 1, { "stream_recovery.end": how, "stream_recovery.rule": rule });
      const exit = exitOfRun(end, this.#last?.failure);
      this.#measureDuration(Exit.isFailure(exit) && end.incident !== undefined ? this.#last?.failure.kind : undefined);
      if (this.#span === undefined) return;
      setAll(this.#span, {
        "stream_recovery.run_id": this.#run.runId,
        "gen_ai.request.stream": true,
        "gen_ai.response.time_to_first_chunk": this.#firstChunk,
        "gen_ai.usage.input_tokens": this.#reported.input,
        "gen_ai.usage.output_tokens": this.#reported.output,
        "stream_recovery.attempts": attempts,
        "stream_recovery.end": how,
        "stream_recovery.rule": rule ?? this.#last?.decision.rule,
        "gen_ai.response.finish_reasons":
          completed && this.#finish !== undefined ? [publicName(this.#finish)] : undefined,
        "error.type": end.incident === undefined ? undefined : this.#last?.failure.kind,
      });
      this.#span.end(this.#clock.currentTimeNanosUnsafe(), exit);
    });
  }

  /** Measures the time to an attempt's first progress, and the time since the failure that it recovers from. */
  #measureProgress(attempt: SeenAttempt): void {
    const at = attempt.watch?.firstProgressAt;
    if (at === undefined) return;
    const attributes = { "stream_recovery.mode": attempt.setup.mode };
    this.#measureModelless(Measures.timeToFirstProgress, Math.max(0, at - this.#startedAt) / 1_000, attributes);
    if (this.#firstChunk === undefined) {
      this.#firstChunk = Math.max(0, at - (this.#begunAt ?? at)) / 1_000;
      this.#measure(Measures.genAi.timeToFirstChunk, this.#firstChunk, inference);
    }
    const broke = this.#broke;
    if (broke === undefined) return;
    this.#broke = undefined;
    const seconds = Math.max(0, at - broke.at) / 1_000;
    this.#measureModelless(Measures.recoveryTime, seconds, { ...attributes, "error.type": broke.kind });
  }

  /** Counts the tokens that the attempt's provider has reported. */
  #measureUsage(attempt: SeenAttempt): void {
    const { input_tokens: input, output_tokens: output } = attempt.facts.snapshot().counters;
    for (const [type, tokens] of [["input", input] as const, ["output", output] as const]) {
      if (tokens === undefined) continue;
      this.#reported[type] = Tokens.sum(this.#reported[type] ?? 0, tokens);
      this.#measure(Measures.genAi.usage[type], tokens, inference);
      this.#measure(Measures.genAi.tokenUsage, tokens, tokenTypes[type]);
    }
  }

  /** Measures the run as one inference. A run whose first request never started has no duration. */
  #measureDuration(failure: Failure["kind"] | undefined): void {
    if (this.#begunAt === undefined) return;
    const seconds = Math.max(0, this.#run.now() - this.#begunAt) / 1_000;
    const attributes = failure === undefined ? inference : { ...inference, "error.type": failure };
    this.#measure(Measures.genAi.duration, seconds, attributes);
    this.#measure(Measures.genAi.operationDuration, seconds, attributes);
  }

  #logEnd(how: "completed" | "recovered" | "stopped" | "parked", end: StreamEnd): void {
    const last = this.#last;
    const about = last === undefined ? { run_id: this.#run.runId } : logAnnotations(last);
    if (how === "recovered") {
      this.#log("debug", "The response is complete. An earlier attempt failed and was recovered.", about);
    } else if (how === "completed") {
      if (last !== undefined) this.#log("debug", last.message, about);
    } else if (how === "parked") {
      this.#log("info", "This stream ends here. The run is kept and continues when it is resumed.", about);
    } else if (end.reason === "defect") {
      this.#log("error", "The recovery of a run failed, so the run was stopped.", about);
    } else if (last !== undefined && end.reason !== "consumer_finished") {
      const level = wanted.has(end.reason) ? "debug" : "warning";
      this.#log(level, sentenceOfStop(last, end.reason), about);
    }
  }

  /** Logs from a separate fiber, so that an error of a logger cannot affect the run. The line belongs to the run's span. */
  #log(level: keyof typeof levels, message: string, annotations: Readonly<Record<string, unknown>>): void {
    Effect.runForkWith(this.services)(Effect.annotateLogs(levels[level](message), annotations));
  }

  #measure<State>(
    metric: Parameters<typeof Measures.measure<State>>[0],
    value: number,
    attributes: Measures.MeasureAttributes,
  ): void {
    const { provider } = this.#run;
    const labels = Measures.providerLabels(provider, this.services, this.#isConfigured(provider));
    Measures.measure(metric, value, attributes, this.services, labels);
  }

  /** Measures without the model label. Times and gauges omit the label, because the series of a model may be evicted between two values. */
  #measureModelless<State>(
    metric: Parameters<typeof Measures.measure<State>>[0],
    value: number,
    attributes: Measures.MeasureAttributes,
  ): void {
    const labels = Measures.modelless(this.#run.provider, this.services);
    Measures.measure(metric, value, attributes, this.services, labels);
  }

  #isConfigured({ model }: Provider): boolean {
    return Prices.priceOf(this.#run.shared.prices, model) !== undefined;
  }

  #event(span: Tracer.Span | undefined, name: string, attributes: Attributes): void {
    span?.event(name, this.#clock.currentTimeNanosUnsafe(), withoutUndefined(attributes));
  }

  /**
   * Returns the attributes that identify every span of the run. They are set at the end of a span, so that waiting runs do not hold them.
   */
  #identityAttributes(): Attributes {
    return { ...Measures.providerAttributes(this.#run.provider), "stream_recovery.run_id": this.#run.runId };
  }

  #makeSpan(name: string, kind: Tracer.SpanKind): Tracer.Span {
    return Effect.runSyncWith(this.services)(Effect.makeSpan(name, { kind }));
  }

  /** Runs a report. The first error turns off the telemetry of this run and is logged. */
  #safely<A>(report: () => A): A | undefined {
    if (this.#off) return undefined;
    try {
      return report();
    } catch {
      this.#off = true;
      this.#log("error", "The telemetry of a run failed and is off. The run continues.", {
        run_id: this.#run.runId,
      });
      return undefined;
    }
  }
}

/** Returns true if a tracer is installed. Effect's default tracer would only keep spans that nothing reads. */
const isTraced = (services: Context.Context<never>): boolean =>
  Context.get(services, Tracer.Tracer) !== Tracer.nativeTracer;

/** The operation of every run, in OpenTelemetry's words. */
const operation = "chat";

const operationName = "gen_ai.operation.name";

const inference: Measures.MeasureAttributes = { [operationName]: operation };

const tokenTypes = {
  input: { ...inference, "gen_ai.token.type": "input" },
  output: { ...inference, "gen_ai.token.type": "output" },
} as const;

type Attributes = Readonly<Record<string, string | number | boolean | ReadonlyArray<string> | undefined>>;

const levels = {
  debug: Effect.logDebug,
  info: Effect.logInfo,
  warning: Effect.logWarning,
  error: Effect.logError,
} as const;

/** The end of a run's stream. A parked stream ends before its run does (L7). */
export interface StreamEnd {
  readonly state: RunEnd["state"] | "parked";
  readonly reason: string;
  readonly incident?: string;
}

/** Ends that the caller has requested. They are not logged as warnings. */
const wanted: ReadonlySet<string> = new Set(["user_cancelled", "lifecycle_closed"]);

const withoutUndefined = (attributes: Attributes): Record<string, unknown> =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));

const setAll = (span: Tracer.Span, attributes: Attributes): void => {
  for (const [name, value] of Object.entries(attributes)) if (value !== undefined) span.attribute(name, value);
};

/** Returns the annotations of a log line about an incident. A failure's code has passed the classifier's allow-list. */
const logAnnotations = ({ attempt, decision, failure, run_id }: RunIncident) => ({
  run_id,
  attempt,
  rule: decision.rule,
  failure: failure.kind,
  ...(failure.code === undefined ? {} : { code: publicName(failure.code) }),
  ...(failure.status === undefined ? {} : { status: failure.status }),
});

/** Returns the incident's message, followed by the action taken if the message does not already state it. */
const sentenceOfStop = ({ decision, message }: RunIncident, reason: string): string => {
  if (reason === "accepted_partial") return `${message} The part that had been shown is kept as the response.`;
  if (reason === "record_failed")
    return `${message} We could not record this, so nothing is repeated and the run stops.`;
  return decision.action === "ask_user" ? `${message} The run stops here.` : message;
};

/** Returns a name from outside if it may be published, else OpenTelemetry's value for an unknown name. */
const publicName = (text: string): string => (isPublic(text) ? text : "_OTHER");

const attemptAttributes = (attempt: SeenAttempt): Attributes => {
  const { counters, delivery, progress, shown } = attempt.facts.snapshot();
  return {
    "stream_recovery.attempt": attempt.number,
    "stream_recovery.mode": attempt.setup.mode,
    "stream_recovery.route": attempt.setup.route,
    "stream_recovery.delivery": delivery,
    "stream_recovery.progress": progress,
    "stream_recovery.shown": shown,
    "gen_ai.response.finish_reasons": attempt.finish === undefined ? undefined : [publicName(attempt.finish)],
    "gen_ai.usage.input_tokens": counters.input_tokens,
    "gen_ai.usage.output_tokens": counters.output_tokens,
  };
};

const failureAttributes = (failure: Failure | undefined): Attributes =>
  failure === undefined
    ? {}
    : {
        "error.type": failure.kind,
        "http.response.status_code": failure.status,
        "stream_recovery.code": failure.code === undefined ? undefined : publicName(failure.code),
        "stream_recovery.clock": failure.kind === "stalled" ? failure.clock : undefined,
      };

/** Returns the exit of a span: the kind of the failure, without the error itself. A stop from outside is not an error. */
const exitOf = (failure: Failure | undefined): Exit.Exit<void, { readonly name: string; readonly message: string }> => {
  if (failure === undefined) return Exit.void;
  if (failure.kind === "cancelled" && failure.by !== "provider") return Exit.interrupt();
  return Exit.fail({ name: failure.kind, message: failure.kind });
};

const exitOfRun = ({ reason, state }: StreamEnd, failure: Failure | undefined) => {
  if (state === "completed" || state === "parked" || reason === "consumer_finished" || reason === "accepted_partial")
    return Exit.void;
  if (wanted.has(reason) || reason === "caller_interrupted") return Exit.interrupt();
  return Exit.fail({ name: failure?.kind ?? reason, message: reason });
};
