/** Collects the spans, log lines and metrics of a simulated run as texts. */
import { Cause, Context, Effect, Exit, Logger, Metric, Option, References, Tracer } from "effect";

const statusOf = ({ status }: Tracer.Span): string => {
  if (status._tag !== "Ended") return "open";
  if (Exit.isSuccess(status.exit)) return `${status.endTime} ok`;
  const { cause } = status.exit;
  return `${status.endTime} ${Cause.hasInterruptsOnly(cause) ? "interrupted" : Cause.prettyErrors(cause)[0]?.message}`;
};

/** The telemetry of one run. Nothing of it leaves the run. */
export class Telemetry {
  readonly #spans: Array<Tracer.NativeSpan & { readonly events?: unknown }> = [];
  readonly #logs: Array<string> = [];
  readonly services: Context.Context<never>;

  constructor() {
    const tracer = Tracer.make({
      span: (made) => {
        const span = new Tracer.NativeSpan(made);
        this.#spans.push(span);
        return span;
      },
    });
    const logger = Logger.make(({ fiber, logLevel, message }) => {
      this.#logs.push(json(["log", logLevel, message, fiber.getRef(References.CurrentLogAnnotations)]));
    });
    const registry: Metric.MetricRegistry = new Map();
    this.services = Context.make(Tracer.Tracer, tracer).pipe(
      Context.add(Logger.CurrentLoggers, new Set([logger])),
      Context.add(Metric.MetricRegistry, registry),
      Context.add(References.MinimumLogLevel, "Debug" as const),
    );
  }

  /** All telemetry so far, in a stable order. */
  get lines(): Effect.Effect<ReadonlyArray<string>> {
    return Effect.map(Effect.provideContext(Metric.snapshot, this.services), (metrics) => [
      ...this.#spans.map((span) => this.#spell(span)),
      ...this.#logs,
      ...metrics
        .map(({ attributes, id, state }) => json([id, Object.entries(attributes ?? {}).toSorted(), state]))
        .toSorted(),
    ]);
  }

  #spell(span: Tracer.NativeSpan): string {
    const parent = this.#spans.findIndex(({ spanId }) => spanId === Option.getOrUndefined(span.parent)?.spanId);
    return json([
      ...["span", span.name, span.kind, parent, span.status.startTime, statusOf(span)],
      ...[[...span.attributes], span.events],
    ]);
  }
}

const json = (value: unknown): string =>
  JSON.stringify(value, (_, it: unknown) => (typeof it === "bigint" ? `${it}` : it));
