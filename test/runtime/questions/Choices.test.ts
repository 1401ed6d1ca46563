import { assert, describe, it } from "@effect/vitest";
import { Effect, Layer } from "effect";
import * as Observation from "../../../src/domain/Observation.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { ProcessorConfig, StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { type Bench, bash, bench, plain, playedOut, runId, starts } from "../recovery/RuleBench.ts";
import * as S from "../Scripted.ts";

const { done, fail, reset, start, text } = S;

describe("The author of an answer on record", () => {
  for (const [title, options, by, durable] of [
    ["is the program by default", undefined, "program", false],
    ["is a person if layerAsk passes its questions to one", { by: "person" }, "person", false],
    ["is a person in a durable store too", { by: "person" }, "person", true],
  ] as const) {
    it.effect(title, () =>
      Effect.gen(function* () {
        const processor = yield* StreamProcessor;
        yield* S.played(processor.run(S.options(S.scripted([text("hi"), reset]), { runId })));
        const record = yield* (yield* RunRecorder).run(runId);
        assert.deepInclude(record?.questions[0], { answer: "stop", answered_by: by });
      }).pipe(
        Effect.provide(
          StreamProcessor.layer.pipe(
            Layer.provideMerge(S.recorderThat({ durable })),
            Layer.provide(UserDecisions.layerAsk(() => Effect.succeed("stop"), options)),
          ),
        ),
      ),
    );
  }
});

describe("The choice retry, through run", () => {
  it.effect("starts over and withdraws what was shown", () =>
    Effect.gen(function* () {
      const it = yield* playedOut({
        attempts: [
          [text("hi"), S.wait(1), reset],
          [start, done],
        ],
        answers: ["retry"],
      });
      assert.deepStrictEqual(it.lines, [
        "attempt 1 first",
        "hi",
        "ask text_shown",
        "answer retry",
        "discard 1 after 0",
        "attempt 2 replay",
        "start",
        "done",
        "completed",
      ]);
      assert.deepStrictEqual(
        it.record.questions.map(({ revision, answer }) => [revision, answer]),
        [[1, "retry"]],
      );
      assert.deepStrictEqual(
        it.record.incidents.map(({ status, answer }) => [status, answer]),
        [["recovered", "retry"]],
      );
    }),
  );

  it.effect("has a fresh budget", () =>
    Effect.gen(function* () {
      const it = yield* playedOut({
        attempts: [[reset], [reset], [reset], [done]],
        answers: ["retry"],
        play: () => ({ options: { budget: { max_auto_retries: 1 } } }),
      });
      assert.deepStrictEqual(it.lines, [
        "attempt 1 first",
        "retry replay nothing_shown",
        "attempt 2 replay",
        "ask budget_exhausted",
        "answer retry",
        "attempt 3 replay",
        "retry replay nothing_shown",
        "attempt 4 replay",
        "done",
        "completed",
      ]);
    }),
  );

  it.effect("does not start before the provider's Retry-After", () =>
    Effect.gen(function* () {
      const it = yield* playedOut({
        attempts: [[fail({ kind: "rate_limited", retry_after_ms: 90_000 })], [done]],
        answers: ["retry"],
      });
      assert.deepStrictEqual(it.lines.slice(1, 4), ["ask retry_after_too_long", "answer retry", "attempt 2 replay"]);
      assert.deepStrictEqual(
        it.record.attempts.map((attempt) => attempt.started_ms),
        [0, 90_000],
      );
    }),
  );

  it.effect("can be cancelled while it waits for the Retry-After", () =>
    Effect.gen(function* () {
      const it = yield* playedOut({
        attempts: [[fail({ kind: "rate_limited", retry_after_ms: 90_000 })]],
        answers: ["retry"],
        play: ({ processor }) => ({
          onEvent: (event) => (event._tag === "QuestionAnswered" ? processor.cancel(runId) : Effect.void),
        }),
      });
      assert.deepStrictEqual(it.lines.slice(2), ["answer retry", "end do_not_retry user_cancelled"]);
      assert.strictEqual(it.provider.attempts.length, 1);
    }),
  );

  it.effect("keeps the fence closed: calls of the withdrawn attempt never start", () =>
    Effect.gen(function* () {
      let refusal: unknown;
      const it = yield* playedOut({
        attempts: [[text("hi"), S.callReady("bash"), S.wait(1), reset], [done]],
        answers: ["retry"],
        play: (its) => {
          const tool = bash(its);
          const late = Effect.gen(function* () {
            refusal = (yield* Effect.flip(tool.run({ run_id: runId, attempt: 1, call: "0.0" }, ""))).reason;
          });
          return {
            options: { tools: [tool] },
            onEvent: (event) => (event._tag === "RunCompleted" ? Effect.exit(late) : Effect.void),
          };
        },
      });
      assert.strictEqual(it.lines.at(-1), "completed");
      assert.strictEqual(refusal, "superseded");
    }),
  );
});

describe("A question that is not answered", () => {
  const open = StreamProcessor.layer.pipe(
    Layer.provideMerge(
      Layer.merge(RunRecorder.layerMemory(), Layer.succeed(UserDecisions, { ask: () => Effect.never })),
    ),
  );
  const stops = [
    ["the user's cancel", "user_cancelled", (its: Bench) => its.processor.cancel(runId)],
    ["the processor's close", "lifecycle_closed", (its: Bench) => its.processor.close("shutdown")],
  ] as const;

  for (const [who, rule, stop] of stops) {
    it.effect(`is ended by ${who}, and stays unanswered on record`, () =>
      Effect.gen(function* () {
        const its = yield* bench;
        const provider = S.scripted([text("hi"), S.wait(1), reset]);
        const seen = yield* S.played(its.processor.run(S.options(provider, { runId })), (event) =>
          event._tag === "QuestionAsked" ? Effect.forkDetach(Effect.delay(stop(its), "1 minute")) : Effect.void,
        );
        assert.deepStrictEqual(seen.lines, ["attempt 1 first", "hi", "ask text_shown", `end do_not_retry ${rule}`]);
        const { end, questions } = yield* S.recordOf(runId);
        assert.deepStrictEqual([end?.state, end?.reason, questions[0]?.answer], ["stopped", rule, undefined]);
      }).pipe(Effect.provide(open)),
    );
  }
});

describe("A question whose facts grow while it is open", () => {
  const asksAgain = Layer.succeed(UserDecisions, {
    ask: (question) => (question.revision === 1 ? Effect.never : Effect.succeed("stop" as const)),
  });

  it.effect("is put anew, on what is known now; the older one stays unanswered (L1)", () =>
    Effect.gen(function* () {
      const its = yield* bench;
      const tool = bash(its, Effect.as(Effect.sleep("1 hour"), "ran"));
      const provider = S.scripted([S.callReady("bash"), S.wait(1), reset]);
      const seen = yield* S.played(its.processor.run(S.options(provider, { runId, tools: [tool] })), starts(tool));
      assert.deepStrictEqual(seen.lines, [
        "attempt 1 first",
        "bash:ready",
        "ask tool_outcome_unknown",
        "ask tool_ran",
        "answer stop",
        "end stopped tool_ran",
      ]);
      const { incidents, questions } = yield* S.recordOf(runId);
      assert.deepStrictEqual(
        questions.map(({ revision, answer }) => [revision, answer]),
        [
          [1, undefined],
          [2, "stop"],
        ],
      );
      assert.deepStrictEqual(
        incidents.map(({ decision, facts, status }) => [decision.rule, facts.tools[0]?.phase, status]),
        [
          ["tool_outcome_unknown", "dispatched", "superseded"],
          ["tool_ran", "settled", "final"],
        ],
      );
    }).pipe(
      Effect.provide(
        StreamProcessor.layer.pipe(
          Layer.provideMerge(Layer.merge(RunRecorder.layerMemory(), asksAgain)),
          Layer.provide(Layer.succeed(ProcessorConfig, { drainMs: 1_000 })),
        ),
      ),
    ),
  );

  const slowToAsk = Layer.effect(
    RunRecorder,
    Effect.map(RunRecorder, (memory) => ({
      ...memory,
      write: (id: string, entries: Parameters<typeof memory.write>[1]) =>
        entries.some((entry) => entry._tag === "QuestionAsked")
          ? Effect.delay(memory.write(id, entries), "3 seconds")
          : memory.write(id, entries),
    })),
  ).pipe(Layer.provide(RunRecorder.layerMemory()));

  it.effect("is put anew also when they grew while it was being recorded", () =>
    Effect.gen(function* () {
      const its = yield* bench;
      const tool = bash(its, Effect.as(Effect.sleep("2 seconds"), "ran"));
      const provider = S.scripted([S.callReady("bash"), S.wait(1), reset]);
      const seen = yield* S.played(its.processor.run(S.options(provider, { runId, tools: [tool] })), starts(tool));
      assert.deepStrictEqual(seen.lines.slice(-3), ["ask tool_ran", "answer stop", "end stopped tool_ran"]);
    }).pipe(
      Effect.provide(
        StreamProcessor.layer.pipe(
          Layer.provideMerge(
            Layer.merge(slowToAsk, Layer.succeed(UserDecisions, { ask: () => Effect.succeed("stop" as const) })),
          ),
          Layer.provide(Layer.succeed(ProcessorConfig, { drainMs: 1_000 })),
        ),
      ),
    ),
  );
});

describe("The choices that end a run, through run", () => {
  const textAndCall: S.Step = {
    part: {
      name: "x+bash",
      says: {
        ...Observation.text(1),
        calls: [{ choice: 0, ordinal: 1, tool: "bash", executor: "runtime", phase: "ready" }],
      },
    },
  };

  /** Text, whole calls and more text that had arrived and were not handed over when the error event came. */
  const frozen: ReadonlyArray<S.Step> = [
    text("a"),
    S.wait(1),
    S.together(text("b"), S.callReady("bash"), textAndCall, text("c"), S.errorEvent({ kind: "server_error" })),
  ];

  it.effect("accept hands over the text that was frozen, never its calls, and stops", () =>
    Effect.gen(function* () {
      const it = yield* playedOut({
        attempts: [frozen],
        answers: ["accept"],
        play: (its) => ({ options: { tools: [bash(its)] } }),
      });
      assert.deepStrictEqual(it.lines, [
        "attempt 1 first",
        "a",
        "ask text_shown",
        "answer accept",
        "b",
        "c",
        "end accepted_partial text_shown",
      ]);
      assert.strictEqual(it.record.end?.state, "stopped");
      assert.strictEqual(it.record.end?.reason, "accepted_partial");
      assert.strictEqual(it.record.end?.incident, it.record.incidents[0]?.id);
      assert.strictEqual(it.record.incidents[0]?.status, "final");
      assert.deepStrictEqual(it.record.attempts[0]?.facts.tools, []);
    }),
  );

  it.effect("stop discards what was frozen, and the caller gets the original error (L12)", () =>
    Effect.gen(function* () {
      const it = yield* playedOut({
        attempts: [[text("a"), S.callReady("bash"), S.wait(1), reset]],
        answers: ["stop"],
        play: () => ({ options: { tools: [plain] } }),
      });
      assert.deepStrictEqual(it.lines.slice(-3), [
        "ask tool_call_handed_over",
        "answer stop",
        "end stopped tool_call_handed_over",
      ]);
      const error = S.errorOf(it.exit);
      assert.instanceOf(error?.cause, S.ProviderBroke);
      assert.strictEqual(it.record.end?.reason, "tool_call_handed_over");
    }),
  );

  it.effect("stop hands over nothing that was frozen", () =>
    Effect.gen(function* () {
      const it = yield* playedOut({
        attempts: [frozen],
        answers: ["stop"],
        play: () => ({ options: { tools: [plain] } }),
      });
      assert.deepStrictEqual(it.lines, [
        "attempt 1 first",
        "a",
        "ask text_shown",
        "answer stop",
        "end stopped text_shown",
      ]);
    }),
  );

  it.effect("a choice that the question does not offer is taken as stop", () =>
    Effect.gen(function* () {
      const it = yield* playedOut({ attempts: [[text("hi"), S.wait(1), reset]], answers: ["continue"] });
      assert.deepStrictEqual(it.lines.slice(-2), ["answer stop", "end stopped text_shown"]);
    }),
  );
});
