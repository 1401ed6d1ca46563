import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Layer, Stream } from "effect";
import type { RunEvent } from "../../src/runtime/contract/RunEvent.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import {
  checkGrammar,
  difference,
  ProviderBroke,
  remaining,
  ScriptedProvider,
  Step,
  transcript,
} from "../../src/testing/index.ts";

describe("ScriptedProvider", () => {
  it.effect("breaks where its script says and answers the second attempt, without waiting in real time", () =>
    Effect.gen(function* () {
      const provider = ScriptedProvider.make(
        [Step.start, Step.reasoning("hm"), Step.reset],
        [Step.start, Step.wait("2 minutes"), Step.text("hello"), Step.done],
      );
      const processor = yield* StreamProcessor;
      const seen = yield* ScriptedProvider.play(processor.run(provider.options()));
      assert.isUndefined(
        difference(seen.lines, [
          "attempt 1 first",
          "start",
          "(hm)",
          "retry replay only_reasoning_shown",
          "discard 1 after 0",
          "attempt 2 replay",
          "start",
          "hello",
          "done",
          "completed",
        ]),
      );
      assert.deepStrictEqual(checkGrammar(seen.events, seen.exit), []);
      assert.deepStrictEqual(
        remaining(seen.events).map(({ name }) => name),
        ["start", "hello", "done"],
      );
      assert.deepStrictEqual(
        provider.attempts.map(({ attempt, mode }) => [attempt, mode]),
        [
          [1, "first"],
          [2, "replay"],
        ],
      );
    }).pipe(Effect.provide(StreamProcessor.layerDefault)),
  );

  it.effect("stalls until a clock ends it, and ends a run with its own error", () =>
    Effect.gen(function* () {
      const provider = ScriptedProvider.make([Step.text("a"), Step.stall]);
      const processor = yield* StreamProcessor;
      const seen = yield* ScriptedProvider.play(processor.run(provider.options()));
      assert.deepStrictEqual(seen.lines, [
        "attempt 1 first",
        "a",
        "ask text_shown",
        "answer stop",
        "end stopped text_shown",
      ]);
      const broken = ScriptedProvider.make([Step.text("a"), Step.fail({ kind: "rejected", reason: "quota" })]);
      const ended = yield* ScriptedProvider.play(processor.run(broken.options()));
      const [reason] = Exit.isFailure(ended.exit) ? ended.exit.cause.reasons : [];
      assert.isTrue(reason?._tag === "Fail" && reason.error.cause instanceof ProviderBroke);
    }).pipe(Effect.provide(StreamProcessor.layerDefault)),
  );

  it.effect("plays calls, parts that come at once, keep-alives, effects and defects", () =>
    Effect.gen(function* () {
      let ran = 0;
      const provider = ScriptedProvider.make([
        Step.ping,
        Step.together(Step.text("a"), Step.text("b")),
        Step.run(Effect.sync(() => (ran += 1))),
        Step.callStarts("bash"),
        Step.callComplete("bash"),
        Step.callReady("bash"),
        Step.done,
      ]);
      const processor = yield* StreamProcessor;
      const seen = yield* ScriptedProvider.play(processor.run(provider.options()));
      assert.strictEqual(ran, 1);
      assert.include(seen.lines.join(" "), "ping a b bash:input_started bash:input_complete bash:ready done completed");
      const ready = seen.events.flatMap((event) => (event._tag === "Part" ? (event.calls ?? []) : []));
      assert.deepStrictEqual(
        ready.map(({ call, tool }) => [call, tool]),
        [["0.0", "bash"]],
      );
      const dying = ScriptedProvider.make([Step.die("a defect of a provider")]);
      const died = yield* ScriptedProvider.play(processor.run(dying.options()));
      assert.include(died.lines.join(" "), "unknown_failure");
    }).pipe(Effect.provide(StreamProcessor.layerDefault)),
  );

  it.effect("reports an attempt without a script", () =>
    Effect.gen(function* () {
      const provider = ScriptedProvider.make([Step.reset]);
      const processor = yield* StreamProcessor;
      const seen = yield* ScriptedProvider.play(processor.run(provider.options()));
      assert.strictEqual(provider.attempts.length, 2);
      const [reason] = Exit.isFailure(seen.exit) ? seen.exit.cause.reasons : [];
      assert.include(String(reason?._tag === "Fail" && reason.error.cause), "attempt 2 is not in the script");
    }).pipe(Effect.provide(StreamProcessor.layerDefault)),
  );

  it.effect("is a layer for programs that take it from their context, a provider for each build", () =>
    Effect.gen(function* () {
      const provider = yield* ScriptedProvider;
      const processor = yield* StreamProcessor;
      const parts = yield* Stream.runCollect(processor.parts(provider.options()));
      assert.deepStrictEqual(
        parts.map(({ name }) => name),
        ["hi", "done"],
      );
    }).pipe(
      Effect.provide(Layer.merge(StreamProcessor.layerDefault, ScriptedProvider.layer([Step.text("hi"), Step.done]))),
    ),
  );
});

type Event = RunEvent<string>;

const started = (attempt: number, mode: "first" | "replay" = "first"): Event => ({
  _tag: "AttemptStarted",
  run_id: "r",
  attempt,
  mode,
});
const part = (attempt: number, ordinal: number): Event => ({
  _tag: "Part",
  attempt,
  ordinal,
  part: `${attempt}.${ordinal}`,
});
const retry: Event = {
  _tag: "RetryScheduled",
  attempt: 1,
  mode: "replay",
  rule: "nothing_shown",
  delay_ms: 0,
  message: "",
};
const discarded = (keep_through: number): Event => ({ _tag: "AttemptDiscarded", attempt: 1, keep_through });
const completed = (attempts: number): Event => ({
  _tag: "RunCompleted",
  run_id: "r",
  attempts,
  finish: "stop",
  late_failure: undefined,
});
const done = Exit.void;
const failed = Exit.fail("ended");

const broken: ReadonlyArray<
  readonly [problem: string, events: ReadonlyArray<Event>, exit: Exit.Exit<void, string> | undefined, RegExp]
> = [
  ["a part before any attempt", [part(1, 1)], undefined, /event 1, Part: comes before the first AttemptStarted/],
  ["a gap in the ordinals", [started(1), part(1, 1), part(1, 3)], undefined, /event 3, Part: has ordinal 3 after 1/],
  ["a part of another attempt", [started(1), part(2, 1)], undefined, /belongs to attempt 2, during attempt 1/],
  ["an attempt that was not announced", [started(1), started(2, "replay")], undefined, /not announced by a retry/],
  ["a mode that was not announced", [started(1), retry, started(2)], undefined, /mode first, but replay was announced/],
  ["a number that was left out", [started(1), retry, started(3, "replay")], undefined, /has number 3 after 1/],
  [
    "a discard of nothing",
    [started(1), part(1, 1), retry, discarded(1)],
    undefined,
    /withdraws the parts after 1 of 1/,
  ],
  ["a discard without a break", [started(1), part(1, 1), discarded(0)], undefined, /without a retry or an answer/],
  [
    "something behind a discard",
    [started(1), part(1, 1), retry, discarded(0), part(1, 2)],
    undefined,
    /comes between an AttemptDiscarded and its AttemptStarted/,
  ],
  ["something after the end", [started(1), completed(1), part(1, 1)], undefined, /comes after RunCompleted/],
  ["a wrong count of attempts", [started(1), completed(2)], undefined, /counts 2 attempts of 1/],
  [
    "an answer to no question",
    [started(1), { _tag: "QuestionAnswered", revision: 1, choice: "stop" }],
    undefined,
    /answers no open question/,
  ],
  ["a clean end without RunCompleted", [started(1)], done, /the stream ended without RunCompleted/],
  ["a failure after RunCompleted", [started(1), completed(1)], failed, /the stream failed after RunCompleted/],
  [
    "a discard at the end",
    [started(1), part(1, 1), retry, discarded(0)],
    failed,
    /no attempt follows an AttemptDiscarded/,
  ],
];

describe("checkGrammar", () => {
  for (const [problem, events, exit, expected] of broken)
    it(`tells ${problem}`, () => assert.match(checkGrammar(events, exit).join("\n"), expected));

  it("finds nothing in a run that was broken, withdrawn and completed", () => {
    const events = [started(1), part(1, 1), retry, discarded(0), started(2, "replay"), part(2, 1), completed(2)];
    assert.deepStrictEqual(checkGrammar(events, done), []);
    assert.deepStrictEqual(checkGrammar([], failed), [], "a run that was refused has no events");
    assert.deepStrictEqual(remaining(events), ["2.1"]);
  });
});

describe("transcript and difference", () => {
  it("prints one line per event, and the end", () => {
    assert.deepStrictEqual(transcript([started(1), part(1, 1)], String, failed).slice(0, 2), [
      "attempt 1 first",
      "1.1",
    ]);
    assert.deepStrictEqual(transcript([], String, Exit.die("x")), ["defect x"]);
    assert.deepStrictEqual(transcript([], String, Exit.interrupt()), ["interrupted"]);
  });

  it("shows the first difference with what stands around it, and nothing where there is none", () => {
    const lines = ["a", "b", "c", "d", "e"];
    assert.isUndefined(difference(lines, [...lines]));
    assert.strictEqual(
      difference(["a", "b", "c", "d", "x"], lines),
      ["line 5 differs (- expected, + actual)", "  b", "  c", "  d", "- e", "+ x"].join("\n"),
    );
    assert.strictEqual(
      difference(["a"], ["a", "b"]),
      ["line 2 differs (- expected, + actual)", "  a", "- b"].join("\n"),
    );
  });
});
