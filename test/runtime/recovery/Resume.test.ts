/**
 * Runs without an owner are continued: parked for an answer, left by their caller, or refused with the reason.
 */
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Fiber, Layer, Random } from "effect";
import { TestClock } from "effect/testing";
import type { Choice } from "../../../src/domain/Decision.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { TakeUpOptions } from "../../../src/runtime/contract/RunOptions.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import { attempt } from "../crash/Lives.ts";
import * as S from "../Scripted.ts";

const transcript = "what the user asked";
const digest = (content: string) => Effect.succeed(`digest of ${content}`);

/** The first question is not answered; each further question gets the next answer. */
const layer = (answers: ReadonlyArray<Choice | "parked">, methods: Partial<RunRecorder["Service"]> = {}) => {
  let asked = 0;
  const ask = () =>
    Effect.sync(() => {
      asked += 1;
      return answers[asked - 1] ?? "stop";
    });
  return StreamProcessor.layer.pipe(
    Layer.provideMerge(
      Layer.merge(S.recorderThat({ digest, durable: true, ...methods }), Layer.succeed(UserDecisions, { ask })),
    ),
    Layer.provideMerge(Layer.succeed(Random.Random, { nextDoubleUnsafe: () => 0.5, nextIntUnsafe: () => 0 })),
  );
};

const half = [S.start, S.text("half"), S.reset];
const whole = [S.start, S.text("whole"), S.done];

type Request = TakeUpOptions<S.ScriptedPart, S.ProviderBroke, never>;
const goOn = (more: Partial<Request> = {}) => {
  const request = more.request ?? S.options(S.scripted(whole, whole));
  return S.played(StreamProcessor.useSync((it) => it.takeUp("r", { transcript, ...more, request })).pipe(S.flat));
};
const begin = (scripts: ReadonlyArray<ReadonlyArray<S.Step>>, more = {}) =>
  Effect.flatMap(StreamProcessor, (it) =>
    S.played(it.run(S.options(S.scripted(...scripts), { runId: "r", transcript, ...more }))),
  );

describe("A parked run", () => {
  it.effect("ends its stream and stays open (L7), and continues with the answer given meanwhile", () =>
    Effect.gen(function* () {
      const first = yield* begin([half]);
      assert.strictEqual(first.lines.at(-1), "end parked text_shown");
      const parked = yield* S.recordOf("r");
      assert.deepInclude(parked, { state: "asking", parked: "question" });
      const recorder = yield* RunRecorder;
      const answered = yield* recorder.answer({ run_id: "r", revision: 1, choice: "retry", by: "person" });
      assert.deepInclude(answered, { state: "parked", parked: "answered" });
      const then = yield* goOn();
      assert.deepStrictEqual(then.lines, [
        "answer retry",
        "discard 1 after 0",
        "attempt 2 replay",
        "start",
        "whole",
        "done",
        "completed",
      ]);
      assert.deepInclude(yield* S.recordOf("r"), { state: "ended", resumes: 1 });
    }).pipe(Effect.provide(layer(["parked"]))),
  );

  it.effect("asks its open question again with the same revision, and accepts one answer", () =>
    Effect.gen(function* () {
      yield* begin([half]);
      const then = yield* goOn();
      assert.deepStrictEqual(then.lines, ["ask text_shown", "answer accept", "end accepted_partial text_shown"]);
      const { end, questions } = yield* S.recordOf("r");
      assert.deepStrictEqual(
        questions.map(({ answer, revision }) => [revision, answer]),
        [[1, "accept"]],
      );
      assert.strictEqual(end?.reason, "accepted_partial");
    }).pipe(Effect.provide(layer(["parked", "accept"]))),
  );

  it.effect("is decided again with a cursor that its caller has", () =>
    Effect.gen(function* () {
      yield* begin([half]);
      const then = yield* goOn({ cursor: "7" });
      assert.deepStrictEqual(then.lines.slice(0, 2), ["retry resume resume_cursor", "attempt 2 resume"]);
    }).pipe(Effect.provide(layer(["parked"]))),
  );
});

describe("A run that its caller interrupted without a signature", () => {
  it.effect("is kept by a durable recorder, and decided like a crash when it is taken up", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const provider = S.scripted([S.start, S.never]);
      const run = processor.run(S.options(provider, { runId: "r", transcript }));
      const fiber = yield* Effect.forkChild(S.watch(run));
      yield* TestClock.adjust(10);
      yield* Fiber.interrupt(fiber);
      assert.deepInclude(yield* S.recordOf("r"), { state: "parked", parked: "interrupted" });
      const then = yield* goOn();
      assert.deepStrictEqual(then.lines.slice(0, 3), [
        "retry replay nothing_shown",
        "discard 1 after 0",
        "attempt 2 replay",
      ]);
      const kinds = (yield* S.recordOf("r")).incidents.map(({ failure }) => failure.kind);
      assert.deepStrictEqual(kinds, ["cancelled", "crashed"]);
    }).pipe(Effect.provide(layer([]))),
  );

  it.effect("withdraws nothing from a caller that cannot discard if nothing was shown", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const run = S.options(S.scripted([S.never]), { runId: "r", transcript, discardable: false });
      const fiber = yield* Effect.forkChild(S.watch(processor.run(run)));
      yield* TestClock.adjust(10);
      yield* Fiber.interrupt(fiber);
      const request = S.options(S.scripted(whole), { discardable: false });
      const then = yield* S.played(processor.takeUp("r", { request, transcript }));
      assert.deepStrictEqual(
        then.lines.filter((line) => line.startsWith("discard")),
        [],
      );
      assert.strictEqual(then.lines.at(-1), "completed");
    }).pipe(Effect.provide(layer([]))),
  );

  it.effect("with an open question keeps the question", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const run = processor.run(S.options(S.scripted(half), { runId: "r", transcript }));
      const asked = Deferred.makeUnsafe<void>();
      const onEvent = (event: { readonly _tag: string }) =>
        event._tag === "QuestionAsked" ? Deferred.succeed(asked, undefined) : Effect.void;
      const fiber = yield* Effect.forkChild(S.watch(run, onEvent));
      yield* TestClock.adjust(10);
      yield* Deferred.await(asked);
      yield* Fiber.interrupt(fiber);
      assert.deepInclude(yield* S.recordOf("r"), { state: "asking", parked: "question" });
    }).pipe(
      Effect.provide(
        StreamProcessor.layer.pipe(
          Layer.provideMerge(
            Layer.merge(
              S.recorderThat({ digest, durable: true }),
              Layer.succeed(UserDecisions, { ask: () => Effect.never }),
            ),
          ),
        ),
      ),
    ),
  );
});

describe("A caller that leaves while its run is being taken over", () => {
  it.effect("loses nothing: the question stays open, and is asked when the run is taken up next", () =>
    Effect.gen(function* () {
      yield* begin([half]);
      const processor = yield* StreamProcessor;
      const request = S.options(S.scripted(whole));
      const fiber = yield* Effect.forkChild(S.watch(processor.takeUp("r", { request, transcript })));
      yield* TestClock.adjust("1 second");
      const interrupt = yield* Effect.forkChild(Fiber.interrupt(fiber));
      yield* TestClock.adjust("2 minutes");
      yield* Fiber.join(interrupt);
      assert.deepInclude(yield* S.recordOf("r"), { state: "asking", parked: "question" });
      const then = yield* goOn();
      assert.deepStrictEqual(then.lines, ["ask text_shown", "answer accept", "end accepted_partial text_shown"]);
    }).pipe(
      Effect.provide(
        layer(["parked", "parked", "accept"], {
          // The take-over takes three seconds.
          digest: (content) => Effect.andThen(Effect.sleep("3 seconds"), digest(content)),
        }),
      ),
    ),
  );
});

describe("takeUp is refused", () => {
  const refused = (title: string, more: Partial<Request>, expected: RegExp, before: ReadonlyArray<S.Step> = half) =>
    it.effect(title, () =>
      Effect.gen(function* () {
        yield* begin([before]);
        const then = yield* goOn(more);
        const error = S.errorOf(then.exit);
        assert.strictEqual(error?.reason, "refused");
        assert.match(error?.message ?? "", expected);
      }).pipe(Effect.provide(layer(["parked"]))),
    );

  refused(
    "for another transcript, and may be tried again",
    { transcript: "other" },
    /^transcript: expected the transcript/,
  );
  refused("for a run that has ended", {}, /has ended/, whole);

  it.effect("for a run that was started without a transcript", () =>
    Effect.gen(function* () {
      // An earlier release recorded such runs.
      const recorder = yield* RunRecorder;
      const started = { _tag: "RunStarted", run_id: "r", provider: { id: "scripted" }, at: 0 } as const;
      yield* recorder.write("r", [started, attempt(1), { _tag: "RunParked", reason: "interrupted" }]);
      assert.match(S.errorOf((yield* goOn()).exit)?.message ?? "", /started without one/);
    }).pipe(Effect.provide(layer(["parked"]))),
  );

  it.effect("for an unknown run", () =>
    Effect.gen(function* () {
      assert.match(S.errorOf((yield* goOn()).exit)?.message ?? "", /^r: the run was never started/);
    }).pipe(Effect.provide(layer([]))),
  );

  it.effect("after ten take-overs, until a person answers (L11)", () =>
    Effect.gen(function* () {
      yield* begin([half]);
      const recorder = yield* RunRecorder;
      for (let index = 0; index < 10; index++) {
        yield* recorder.claim("r");
        yield* recorder.write("r", [{ _tag: "RunResumed" }, { _tag: "RunParked", reason: "question" }]);
      }
      assert.match(S.errorOf((yield* goOn()).exit)?.message ?? "", /resumed 10 times/);
      yield* recorder.answer({ run_id: "r", revision: 1, choice: "retry", by: "person" });
      assert.strictEqual((yield* goOn()).lines.at(-1), "completed");
    }).pipe(Effect.provide(layer(["parked"]))),
  );
});

describe("A process whose run was taken over", () => {
  it.effect("hands over nothing more and starts no tool", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      const bash = (yield* ToolGuard).mutating("bash", () => Effect.die("it ran"));
      const script = [S.start, S.text("half"), S.callReady("bash"), S.done];
      const run = processor.run(S.options(S.scripted(script), { runId: "r", tools: [bash] }));
      const seen = yield* S.played(run);
      assert.deepStrictEqual(seen.lines, ["attempt 1 first", "start", "end taken_over lifecycle_closed"]);
    }).pipe(
      Effect.provide(
        layer([], {
          write: (run_id, entries) =>
            entries.some(({ _tag }) => _tag === "RunStarted")
              ? Effect.void
              : Effect.fail(new RecorderError({ reason: "fenced", run_id, message: "taken over" })),
        }),
      ),
    ),
  );
});
