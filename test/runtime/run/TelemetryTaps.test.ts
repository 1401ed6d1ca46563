/** Parts of telemetry that are cached or skipped: no two series are confused, and an existing tracer gets its spans. */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Metric, Option, Stream, Tracer } from "effect";
import * as Measures from "../../../src/runtime/run/Measures.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";

type More = S.More;

let runs = 0;

/** Runs a whole response, and returns the parent span of its own stream. */
const whole = (more: More = {}) =>
  Effect.gen(function* () {
    const script = S.scripted(S.hello);
    const above: Array<string | undefined> = [];
    const looks = Stream.drain(
      Stream.fromEffect(
        Effect.map(Effect.serviceOption(Tracer.ParentSpan), (span) => {
          above.push(
            Option.match(span, { onNone: () => undefined, onSome: (it) => ("name" in it ? it.name : it._tag) }),
          );
        }),
      ),
    );
    const attempt: typeof script.attempt = (context) => Stream.concat(looks, script.attempt(context));
    runs += 1;
    yield* Stream.runDrain((yield* StreamProcessor).run(S.options({ attempt }, { runId: `r${runs}`, ...more })));
    return above;
  });

/** The counted ends of a program: the attributes of each series, without those of the end, and its count. */
const counted = Effect.map(Metric.snapshot, (all) =>
  all.flatMap((it) => {
    if (it.id !== "stream_recovery.runs" || it.type !== "Counter") return [];
    const { "stream_recovery.end": _, ...attributes } = it.attributes ?? {};
    return [[attributes, it.state.count]];
  }),
);

const registry = () => Context.make(Metric.MetricRegistry, new Map());

describe("A series that is cached", () => {
  it.effect("is of its own attributes, whatever they contain", () =>
    Effect.gen(function* () {
      const model = "gen_ai.request.model";
      const names = [
        { id: "a", model: "b" },
        { id: `a\n${model}=b` },
        { id: `a\n${model}=1:b` },
        { id: "a", model: "c" },
        { id: "a", model: "b" },
      ];
      for (const provider of names) yield* whole({ provider });
      assert.deepStrictEqual(yield* counted, [
        [{ "gen_ai.provider.name": "a", [model]: "b" }, 2],
        [{ "gen_ai.provider.name": `a\n${model}=b` }, 1],
        [{ "gen_ai.provider.name": `a\n${model}=1:b` }, 1],
        [{ "gen_ai.provider.name": "a", [model]: "c" }, 1],
      ]);
    }).pipe(Effect.provide(S.processor()), Effect.provideContext(registry())),
  );

  it.effect("is of its own measurement, whatever a rule's name contains", () =>
    Effect.gen(function* () {
      const context = yield* Effect.context<never>();
      const [action, rule] = ["stream_recovery.action", "stream_recovery.rule"];
      const all = [
        { [action]: "a", [rule]: "b" },
        { [action]: `a\n${rule}=b` },
        { [action]: `a\n${rule}=1:b` },
        { [action]: "a", [rule]: "b" },
        { [action]: "a" },
        { [rule]: "a" },
      ];
      for (const attributes of all) Measures.measure(Measures.decisions, 1, attributes, context);
      const series = (yield* Metric.snapshot).flatMap((it) =>
        it.id === Measures.decisions.id && it.type === "Counter" ? [[it.attributes, it.state.count]] : [],
      );
      assert.deepStrictEqual(series, [
        [all[0], 2],
        [all[1], 1],
        [all[2], 1],
        [all[4], 1],
        [all[5], 1],
      ]);
    }).pipe(Effect.provideContext(registry())),
  );

  it.effect("is of its own program", () =>
    Effect.gen(function* () {
      const one = Effect.gen(function* () {
        yield* whole();
        return yield* counted;
      }).pipe(Effect.provide(S.processor()));
      const expected = [[{ "gen_ai.provider.name": "scripted" }, 1]];
      assert.deepStrictEqual(yield* Effect.provideContext(one, registry()), expected);
      assert.deepStrictEqual(yield* Effect.provideContext(one, registry()), expected);
    }),
  );

  it.effect("has what the program adds to every measurement, from then on, after its own attributes", () =>
    Effect.gen(function* () {
      yield* whole();
      yield* Effect.provideService(whole(), Metric.CurrentMetricAttributes, {
        zone: "eu",
        "gen_ai.provider.name": "other",
      });
      assert.deepStrictEqual(yield* counted, [
        [{ "gen_ai.provider.name": "scripted" }, 1],
        [{ "gen_ai.provider.name": "scripted", zone: "eu" }, 1],
      ]);
    }).pipe(Effect.provide(S.processor()), Effect.provideContext(registry())),
  );
});

describe("A span", () => {
  it.effect("is made for no run without a reader, and for the next one after a tracer is added", () =>
    Effect.gen(function* () {
      assert.deepStrictEqual(yield* whole(), [undefined]);
      const tracer = Tracer.make({ span: (made) => new Tracer.NativeSpan(made) });
      assert.deepStrictEqual(yield* Effect.provideService(whole(), Tracer.Tracer, tracer), ["stream_recovery.attempt"]);
      assert.deepStrictEqual(yield* whole(), [undefined]);
    }).pipe(Effect.provide(S.processor())),
  );
});
