import { assert, describe, it } from "@effect/vitest";
import { Cause, Context, Effect, Exit, Layer, Logger, Metric, Option, References, Stream, Tracer } from "effect";
import * as Observation from "../../../src/domain/Observation.ts";
import { RecorderError, RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { AttemptContext } from "../../../src/runtime/contract/RunOptions.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import * as Measures from "../../../src/runtime/run/Measures.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import {
  done,
  fail,
  never,
  options,
  played,
  processor,
  reasoning,
  recorderThat,
  reset,
  type ScriptedPart,
  scripted,
  start,
  text,
  wait,
} from "../Scripted.ts";

const provider = { id: "anthropic", model: "claude-sonnet-4-5", reasoning: false };

describe("spans", () => {
  it.effect("a run that recovers is one span with a span for each attempt, the failed one among them", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const script = scripted([start, reasoning("hm"), reset], [start, text("whole"), done]);
      yield* told.of(StreamProcessor.use((it) => played(it.run(options(script, { provider, runId: "r1" })))));

      const [run, first, second] = told.spans;
      assert.deepStrictEqual(
        told.spans.map((span) => [span.name, span.kind]),
        [
          ["chat claude-sonnet-4-5", "client"],
          ["stream_recovery.attempt", "internal"],
          ["stream_recovery.attempt", "internal"],
        ],
      );
      assert.deepStrictEqual(Object.fromEntries(run?.attributes ?? []), {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-4-5",
        "stream_recovery.run_id": "r1",
        "stream_recovery.attempts": 2,
        "stream_recovery.end": "recovered",
        "stream_recovery.rule": "only_reasoning_shown",
        "gen_ai.request.stream": true,
        "gen_ai.response.finish_reasons": ["stop"],
        "gen_ai.response.time_to_first_chunk": 0,
      });
      assert.deepStrictEqual(Object.fromEntries(first?.attributes ?? []), {
        "gen_ai.provider.name": "anthropic",
        "gen_ai.request.model": "claude-sonnet-4-5",
        "stream_recovery.run_id": "r1",
        "stream_recovery.attempt": 1,
        "stream_recovery.mode": "first",
        "stream_recovery.delivery": "accepted",
        "stream_recovery.progress": "reasoning",
        "stream_recovery.shown": "reasoning",
        "error.type": "transport",
        "stream_recovery.code": "ECONNRESET",
      });
      assert.strictEqual(second?.attributes.get("stream_recovery.mode"), "replay");
      assert.isFalse(second?.attributes.has("error.type"));
      assert.deepStrictEqual([first, second].map(parentOf), [run?.spanId, run?.spanId]);
      assert.deepStrictEqual([run, first, second].map(statusOf), ["ok", "error transport", "ok"]);
    }),
  );

  it.effect("spans of an attempt's own stream are below the attempt's span", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const asks = Stream.fromEffect(
        Effect.as(Effect.withSpan(Effect.void, "http"), { name: "end", says: Observation.terminal("stop") }),
      );
      const script = { attempt: (_: AttemptContext): Stream.Stream<ScriptedPart> => asks };
      yield* told.of(StreamProcessor.use((it) => played(it.run(options(script)))));
      const http = told.spans.find((span) => span.name === "http");
      const attempt = told.spans.find((span) => span.name === "stream_recovery.attempt");
      assert.isDefined(attempt);
      assert.strictEqual(parentOf(http), attempt?.spanId);
    }),
  );

  it.effect("spans of a recovery are below the run's span", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const asked = UserDecisions.layerAsk(() => Effect.withSpan(Effect.succeed("stop" as const), "ask"));
      const layer = StreamProcessor.layer.pipe(Layer.provide(Layer.merge(RunRecorder.layerMemory(), asked)));
      const script = scripted([start, text("half"), reset]);
      yield* told.of(
        StreamProcessor.use((it) => played(it.run(options(script)))),
        layer,
      );
      const ask = told.spans.find((span) => span.name === "ask");
      assert.isDefined(ask);
      assert.strictEqual(parentOf(ask), told.spans.find((span) => span.name === "chat")?.spanId);
    }),
  );

  it.effect("the run's span is a child of the caller's, to which nothing is written", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const script = scripted([start, text("half"), reset]);
      const run = StreamProcessor.use((it) => played(it.run(options(script))));
      yield* told.of(Effect.withSpan(run, "caller", { attributes: { own: 1 } }));
      const caller = told.spans.find((span) => span.name === "caller");
      const ours = told.spans.find((span) => span.name === "chat");
      assert.strictEqual(parentOf(ours), caller?.spanId);
      assert.deepStrictEqual([...(caller?.attributes ?? [])], [["own", 1]]);
      assert.deepStrictEqual(caller?.events, []);
      assert.strictEqual(statusOf(ours), "error text_shown");
    }),
  );

  it.effect("a watchdog that fires is an event of its attempt, a decision one of the run", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const script = scripted([start, never], [start, text("whole"), done]);
      yield* told.of(
        StreamProcessor.use((it) => played(it.run(options(script, { clocks: { first_progress: 1_000 } })))),
      );
      const [run, first] = told.spans;
      assert.deepStrictEqual(first?.events, [
        ["stream_recovery.watchdog_fired", 1_000_000_000n, { "stream_recovery.clock": "first_progress" }],
      ]);
      const decision = run?.events.find(([name]) => name === "stream_recovery.decision");
      assert.deepInclude(decision?.[2], {
        "stream_recovery.rule": "nothing_shown",
        "stream_recovery.action": "auto_retry_once",
        "stream_recovery.mode": "replay",
        "stream_recovery.attempt": 1,
        "error.type": "stalled",
      });
    }),
  );

  it.effect("a requested stop is an interrupt and no error", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const script = scripted([start, text("half"), wait(1_000), text("never")]);
      const cancels = StreamProcessor.use((it) =>
        played(it.run(options(script, { runId: "r" })), (event) =>
          event._tag === "Part" && event.part.name === "half" ? it.cancel("r") : Effect.void,
        ),
      );
      yield* told.of(cancels);
      assert.deepStrictEqual(told.spans.map(statusOf), ["interrupted", "interrupted"]);
      assert.deepStrictEqual(told.lines, [
        "Debug The user cancelled the answer; the run stays stopped because the user cancelled it. r 1 user_cancelled",
      ]);
    }),
  );

  it.effect("a consumer that stops early ends its run without an error", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const script = scripted([start, text("enough"), wait(1_000), done]);
      yield* told.of(StreamProcessor.use((it) => played(Stream.take(it.run(options(script)), 3))));
      assert.strictEqual(statusOf(told.spans[0]), "ok");
      assert.strictEqual(told.spans[0]?.attributes.get("stream_recovery.rule"), "consumer_finished");
      assert.deepStrictEqual(told.lines, []);
    }),
  );

  it.effect("every span of a run has ended when the caller sees the end", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const script = scripted([start, text("half"), reset], [start, text("whole"), done]);
      const seen: Array<ReadonlyArray<string>> = [];
      const look = Effect.sync(() => void seen.push(told.spans.map((span) => span.status._tag)));
      const run = StreamProcessor.use((it) =>
        played(it.run(options(script)), (event) => (event._tag === "RunCompleted" ? look : Effect.void)),
      );
      yield* told.of(run, processor(["retry"]));
      assert.deepStrictEqual(seen, [["Ended", "Ended", "Ended"]]);
    }),
  );
});

describe("metrics", () => {
  it.effect("count attempts, decisions, ends and discarded content, and time the way to progress", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const script = scripted(
        [wait(2_000), reasoning("lost"), reset],
        [wait(500), start, wait(250), text("whole"), wait(4_000), text("more"), done],
      );
      const seen = yield* told.of(StreamProcessor.use((it) => played(it.run(options(script, { provider })))));
      const series = yield* told.series;
      const always = "gen_ai.provider.name=anthropic gen_ai.request.model=claude-sonnet-4-5";
      const other = "gen_ai.provider.name=anthropic gen_ai.request.model=other";
      const provided = "gen_ai.provider.name=anthropic";
      const retryDelay =
        seen.events.reduce((sum, it) => sum + (it._tag === "RetryScheduled" ? it.delay_ms : 0), 0) / 1_000;
      assert.isAbove(retryDelay, 0);
      assert.deepStrictEqual(series, {
        [`stream_recovery.attempts error.type=transport ${other} stream_recovery.mode=first`]: 1,
        [`stream_recovery.attempts ${always} stream_recovery.mode=replay`]: 1,
        [`stream_recovery.decisions error.type=transport ${other} stream_recovery.action=auto_retry_once stream_recovery.rule=only_reasoning_shown`]: 1,
        [`stream_recovery.discarded_characters ${other} stream_recovery.mode=first`]: 4,
        [`stream_recovery.runs ${always} stream_recovery.end=recovered`]: 1,
        [`stream_recovery.tokens ${other} gen_ai.token.type=output stream_recovery.estimated=true stream_recovery.outcome=wasted`]: 1,
        [`stream_recovery.tokens ${always} gen_ai.token.type=output stream_recovery.estimated=true stream_recovery.outcome=used`]: 3,
        [`stream_recovery.time_to_first_progress ${provided} stream_recovery.mode=first unit=seconds`]: [1, 2],
        [`stream_recovery.time_to_first_progress ${provided} stream_recovery.mode=replay unit=seconds`]: [1, 0.75],
        [`stream_recovery.recovery_time error.type=transport ${provided} stream_recovery.mode=replay unit=seconds`]: [
          1,
          0.75 + retryDelay,
        ],
      });
    }),
  );

  it.effect("report a run as one inference by OpenTelemetry's names, with the tokens of all its attempts", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const used = (input_tokens: number, output_tokens: number) => ({
        part: { name: "usage", says: { ...Observation.none, usage: { input_tokens, output_tokens } } },
      });
      const script = scripted(
        [wait(2_000), start, used(90, 5), reset],
        [wait(500), text("whole"), wait(4_000), used(100, 40), done],
      );
      const seen = yield* told.of(StreamProcessor.use((it) => played(it.run(options(script, { provider })))));
      const delay = seen.events.reduce((sum, it) => sum + (it._tag === "RetryScheduled" ? it.delay_ms : 0), 0) / 1_000;
      const of = (model: string) =>
        `gen_ai.operation.name=chat gen_ai.provider.name=anthropic gen_ai.request.model=${model}`;
      const [other, ours] = [of("other"), of("claude-sonnet-4-5")];
      assert.deepStrictEqual(yield* told.conventional, {
        [`gen_ai.client.inference.duration ${ours} unit=seconds`]: [1, 6.5 + delay],
        [`gen_ai.client.operation.duration ${ours} unit=seconds`]: [1, 6.5 + delay],
        [`gen_ai.client.inference.time_to_first_chunk ${ours} unit=seconds`]: [1, 2.5 + delay],
        [`gen_ai.client.inference.usage.input_tokens ${other} unit={token}`]: 90,
        [`gen_ai.client.inference.usage.input_tokens ${ours} unit={token}`]: 100,
        [`gen_ai.client.inference.usage.output_tokens ${other} unit={token}`]: 5,
        [`gen_ai.client.inference.usage.output_tokens ${ours} unit={token}`]: 40,
        [`gen_ai.client.token.usage ${other} gen_ai.token.type=input unit={token}`]: [1, 90],
        [`gen_ai.client.token.usage ${other} gen_ai.token.type=output unit={token}`]: [1, 5],
        [`gen_ai.client.token.usage ${ours} gen_ai.token.type=input unit={token}`]: [1, 100],
        [`gen_ai.client.token.usage ${ours} gen_ai.token.type=output unit={token}`]: [1, 40],
      });
      const [run] = told.spans;
      assert.strictEqual(run?.name, "chat claude-sonnet-4-5");
      assert.deepInclude(Object.fromEntries(run?.attributes ?? []), {
        "gen_ai.usage.input_tokens": 190,
        "gen_ai.usage.output_tokens": 45,
        "gen_ai.response.time_to_first_chunk": 2.5 + delay,
      });
    }),
  );

  it.effect("mark the duration of a failed run with its error, and not that of a requested stop", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      yield* told.of(StreamProcessor.use((it) => played(it.run(options(scripted([start, text("half"), reset]))))));
      const stopped = scripted([start, text("enough"), wait(1_000), done]);
      yield* told.of(StreamProcessor.use((it) => played(Stream.take(it.run(options(stopped)), 3))));
      const series = yield* told.conventional;
      const counts = Object.entries(series).flatMap(([key, value]) =>
        key.startsWith("gen_ai.client.inference.duration") && Array.isArray(value) ? [[key, value[0]]] : [],
      );
      const key = "gen_ai.operation.name=chat gen_ai.provider.name=scripted unit=seconds";
      assert.deepStrictEqual(Object.fromEntries(counts), {
        [`gen_ai.client.inference.duration error.type=transport ${key}`]: 1,
        [`gen_ai.client.inference.duration ${key}`]: 1,
      });
    }),
  );

  it.effect("drop the histograms of an evicted model, and keep its counts", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const used = { part: { name: "usage", says: { ...Observation.none, usage: { input_tokens: 1 } } } };
      for (let model = 0; model <= Measures.modelLabelsMax; model++) {
        const named = { ...provider, model: `model ${model}` };
        const script = scripted([start, used, text("whole"), done]);
        yield* told.of(StreamProcessor.use((it) => played(it.run(options(script, { provider: named })))));
      }
      const series = Object.entries(yield* told.conventional);
      const of = (name: string) => series.filter(([key]) => key.startsWith(`gen_ai.client.${name} `));
      assert.lengthOf(of("inference.duration"), Measures.modelLabelsMax);
      const tokens = of("inference.usage.input_tokens").map(([, count]) => Number(count));
      assert.strictEqual(
        tokens.reduce((sum, it) => sum + it, 0),
        Measures.modelLabelsMax + 1,
      );
    }),
  );

  it.effect("time a recovery from its first failure, over any number of attempts", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const script = scripted([start, reset], [wait(30_000), reset], [start, text("whole"), done]);
      yield* told.of(StreamProcessor.use((it) => played(it.run(options(script)))));
      const series = yield* told.series;
      const key = "error.type=transport gen_ai.provider.name=scripted stream_recovery.mode=replay unit=seconds";
      const recovery = series[`stream_recovery.recovery_time ${key}`];
      assert.isTrue(Array.isArray(recovery) && recovery[0] === 1 && Number(recovery[1]) > 30, JSON.stringify(recovery));
    }),
  );

  it.effect("count watchdogs by name and attempts that do not close", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const stuck = Stream.drain(Stream.fromEffect(Effect.never)).pipe(Stream.ensuring(Effect.never));
      const script = { attempt: (_: AttemptContext): Stream.Stream<ScriptedPart> => stuck };
      const run = options(script, { clocks: { first_progress: 1_000 }, budget: { max_auto_retries: 0 } });
      yield* told.of(StreamProcessor.use((it) => played(it.run(run))));
      const series = yield* told.series;
      const always = "gen_ai.provider.name=scripted";
      assert.strictEqual(series[`stream_recovery.watchdog_fires ${always} stream_recovery.clock=first_progress`], 1);
      assert.strictEqual(series[`stream_recovery.abandoned_attempts ${always} stream_recovery.mode=first`], 1);
      assert.strictEqual(
        series[`stream_recovery.runs ${always} stream_recovery.end=stopped stream_recovery.rule=budget_exhausted`],
        1,
      );
    }),
  );

  it.effect("count no attempt as abandoned if it closes in time", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const closing = Stream.drain(Stream.fromEffect(Effect.never)).pipe(Stream.ensuring(Effect.sleep(10)));
      const whole = scripted([start, text("whole"), done]);
      const attempt = (context: AttemptContext): Stream.Stream<ScriptedPart> =>
        context.attempt === 1 ? closing : Stream.orDie(whole.attempt({ ...context, attempt: 1 }));
      const run = options({ attempt }, { clocks: { first_progress: 1_000 } });
      yield* told.of(StreamProcessor.use((it) => played(it.run(run))));
      const series = Object.keys(yield* told.series);
      assert.isTrue(series.some((name) => name.startsWith("stream_recovery.watchdog_fires")));
      assert.deepStrictEqual(
        series.filter((name) => name.startsWith("stream_recovery.abandoned_attempts")),
        [],
      );
    }),
  );

  it.effect("count bytes and tokens of a replaced attempt if they were reported", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const usage = { name: "usage", says: { ...Observation.none, usage: { output_tokens: 7 } } };
      const broken = scripted([{ part: usage }, reset], [start, text("whole"), done]);
      const attempt = (context: AttemptContext) => {
        context.bytes(100);
        return broken.attempt(context);
      };
      yield* told.of(StreamProcessor.use((it) => played(it.run(options({ attempt })))));
      const series = yield* told.series;
      const first = "gen_ai.provider.name=scripted stream_recovery.mode=first";
      assert.strictEqual(series[`stream_recovery.discarded_bytes ${first} unit=bytes`], 100);
      assert.strictEqual(series[`stream_recovery.discarded_tokens ${first}`], 7);
    }),
  );
});

describe("log lines", () => {
  it.effect("a healthy run logs nothing", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      yield* told.of(StreamProcessor.use((it) => played(it.run(options(scripted([start, text("whole"), done]))))));
      assert.deepStrictEqual(told.lines, []);
    }),
  );

  it.effect("a recovered run logs its retry and its completion", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const script = scripted([start, reset], [start, text("whole"), done]);
      yield* told.of(StreamProcessor.use((it) => played(it.run(options(script, { runId: "r" })))));
      assert.deepStrictEqual(told.lines, [
        "Debug The connection to the model provider was lost; nothing had been shown and no tool was called, so a retry is safe. r 1 nothing_shown",
        "Debug The response is complete. An earlier attempt failed and was recovered. r 1 nothing_shown",
      ]);
    }),
  );

  it.effect("a question and the stop after it are warnings", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const script = scripted([start, text("half"), reset]);
      yield* told.of(StreamProcessor.use((it) => played(it.run(options(script, { runId: "r" })))));
      const sentence =
        "The connection to the model provider was lost; part of the answer had been shown. No tool was called. Repeating gives a new answer in its place.";
      assert.deepStrictEqual(told.lines, [
        `Warn ${sentence} r 1 text_shown`,
        `Warn ${sentence} The run stops here. r 1 text_shown`,
      ]);
    }),
  );

  it.effect("a refused request is one warning", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const script = scripted([fail({ kind: "rejected", reason: "invalid_request", status: 400 })]);
      yield* told.of(StreamProcessor.use((it) => played(it.run(options(script, { runId: "r" })))));
      assert.deepStrictEqual(told.lines, [
        "Warn The model provider rejected the request: it is not valid (status 400); the same request would fail again. r 1 not_retryable",
      ]);
    }),
  );

  it.effect("an incident that cannot be recorded is logged with its stop", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const broken = new RecorderError({ reason: "unavailable", run_id: "r", message: "off" });
      const recorder = recorderThat({
        write: (_runId, entries) =>
          entries.some((entry) => entry._tag === "IncidentOpened") ? Effect.fail(broken) : Effect.void,
      });
      const layer = StreamProcessor.layer.pipe(Layer.provide(Layer.merge(recorder, UserDecisions.layerHeadless())));
      yield* told.of(
        StreamProcessor.use((it) => played(it.run(options(scripted([start, reset]), { runId: "r" })))),
        layer,
      );
      const stops = told.lines.filter((line) => line.includes("the run stops"));
      assert.lengthOf(stops, 1);
      assert.match(stops[0] ?? "", /^Warn .* We could not record this, so nothing is repeated and the run stops\. r 1/);
    }),
  );
});

describe("telemetry never affects a run", () => {
  const canary = "sk-canary-5f1c";

  it.effect("no text of an error, a part or a finish reason leaves the run", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const script = scripted(
        [start, reasoning(canary), fail({ kind: "transport", code: canary, fingerprint: { name: canary, depth: 0 } })],
        [start, text(canary), { part: { name: canary, says: Observation.terminal(canary) } }],
      );
      yield* told.of(StreamProcessor.use((it) => played(it.run(options(script)))));
      const spans = told.spans.map((span) => [...span.attributes, ...span.events, statusOf(span)]);
      const all = JSON.stringify([spans, told.lines, yield* told.series], (_key, value) =>
        typeof value === "bigint" ? String(value) : value,
      );
      assert.include(all, "_OTHER");
      assert.notInclude(all, canary);
    }),
  );

  it.effect("a tracer that throws ends the telemetry of the run with one log line, and not the run", () =>
    Effect.gen(function* () {
      const told = yield* telling();
      const broken = Tracer.make({
        span: () => {
          throw new Error(canary);
        },
      });
      const script = scripted([start, reset], [start, text("whole"), done]);
      const run = StreamProcessor.use((it) => played(it.run(options(script, { runId: "r" }))));
      const seen = yield* told.of(Effect.provideService(run, Tracer.Tracer, broken));
      assert.isTrue(Exit.isSuccess(seen.exit));
      assert.deepStrictEqual(
        told.lines.filter((line) => line.startsWith("Error")),
        ["Error The telemetry of a run failed and is off. The run continues. r"],
      );
    }),
  );

  it.effect("a logger that throws does not end the run", () =>
    Effect.gen(function* () {
      const thrower = Logger.make(() => {
        throw new Error("full disk");
      });
      const script = scripted([start, reset], [start, text("whole"), done]);
      const seen = yield* StreamProcessor.use((it) => played(it.run(options(script)))).pipe(
        Effect.provide(processor()),
        Effect.provideService(Logger.CurrentLoggers, new Set([thrower])),
        Effect.provideService(References.MinimumLogLevel, "Debug"),
      );
      assert.strictEqual(seen.lines.at(-1), "completed");
    }),
  );
});

/** Collects a program's telemetry: its spans in the order of their starts, its log lines, and its metrics in a separate registry. */
const telling = () =>
  Effect.sync(() => {
    const spans: Array<Tracer.NativeSpan> = [];
    const lines: Array<string> = [];
    const tracer = Tracer.make({
      span: (made) => {
        const span = new Tracer.NativeSpan(made);
        spans.push(span);
        return span;
      },
    });
    const logger = Logger.make(({ fiber, logLevel, message }) => {
      const { run_id, attempt, rule } = fiber.getRef(References.CurrentLogAnnotations);
      lines.push([logLevel, message, run_id, attempt, rule].filter((it) => it !== undefined).join(" "));
    });
    const registry: Metric.MetricRegistry = new Map();
    const services = Context.make(Tracer.Tracer, tracer).pipe(
      Context.add(Logger.CurrentLoggers, new Set([logger])),
      Context.add(Metric.MetricRegistry, registry),
      Context.add(References.MinimumLogLevel, "Debug"),
    );
    /** A counter's count, or a histogram's count and sum, by name and sorted attributes. */
    const seriesOf = (prefix: string) =>
      Effect.map(Effect.provideContext(Metric.snapshot, services), (all) =>
        Object.fromEntries(
          all
            .filter(({ id }) => id.startsWith(prefix))
            .map((it) => {
              const attributes = Object.entries(it.attributes ?? {}).map(([name, value]) => `${name}=${value}`);
              const key = [it.id, ...attributes.sort()].join(" ");
              if (it.type === "Counter") return [key, it.state.count];
              return [key, it.type === "Histogram" ? [it.state.count, it.state.sum] : it.type];
            }),
        ),
      );
    return {
      spans,
      lines,
      of: <A, E>(program: Effect.Effect<A, E, StreamProcessor>, layer: Layer.Layer<StreamProcessor> = processor()) =>
        program.pipe(Effect.provide(layer), Effect.provideContext(services)),
      series: seriesOf("stream_recovery."),
      conventional: seriesOf("gen_ai."),
    };
  });

const parentOf = (span: Tracer.Span | undefined): string | undefined =>
  span === undefined ? undefined : Option.getOrUndefined(span.parent)?.spanId;

const statusOf = (span: Tracer.Span | undefined): string => {
  if (span?.status._tag !== "Ended") return "open";
  const { exit } = span.status;
  if (Exit.isSuccess(exit)) return "ok";
  if (Cause.hasInterruptsOnly(exit.cause)) return "interrupted";
  return `error ${Cause.prettyErrors(exit.cause)[0]?.message}`;
};
