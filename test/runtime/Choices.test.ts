import { assert, describe, it } from "@effect/vitest";
import { Effect, Layer } from "effect";
import { ProcessorConfig } from "../../src/runtime/StreamProcessor.ts";
import type { GuardedTool } from "../../src/runtime/ToolGuard.ts";
import {
  type Bench,
  bash,
  bench,
  type OnEvent,
  optionsOf,
  plain,
  type RuleCase,
  runId,
  runs,
  starts,
} from "./RuleCases.ts";
import * as S from "./Scripted.ts";

const { done, fail, reset, start, text } = S;

/** A handler that runs longer than this is asked about: a test may leave one running for ever. */
const drainSoon = Layer.succeed(ProcessorConfig, { drainMs: 1_000 });

const played = (scenario: Pick<RuleCase, "attempts" | "play" | "answers">) =>
  Effect.gen(function* () {
    const its = yield* bench;
    const { options, onEvent, provider } = optionsOf(scenario, its);
    const seen = yield* S.played(its.processor.run(options), onEvent);
    return { ...seen, provider, record: yield* S.recordOf(runId), its };
  }).pipe(Effect.provide(S.processor(scenario.answers).pipe(Layer.provide(drainSoon))));

/** Two guarded calls: the handler of the first dies, the second is never started. */
const twoCalls: ReadonlyArray<S.Step> = [S.callReady("bash", 0), S.callReady("bash", 1), S.wait(1), reset];
const firstDies =
  (more: { readonly canContinue: boolean }) =>
  (its: Bench): ReturnType<NonNullable<RuleCase["play"]>> => {
    const tool = bash(its, Effect.die(new Error("half done")));
    return { options: { tools: [tool], ...more }, onEvent: onlyFirst(tool) };
  };
const onlyFirst =
  (tool: GuardedTool<unknown, string, never, never>): OnEvent =>
  (event) =>
    event._tag === "Part" && event.calls?.[0]?.call === "0.0" ? runs(tool)(event) : Effect.void;

describe("The choice retry, through run", () => {
  it.effect("starts over and withdraws what was shown", () =>
    Effect.gen(function* () {
      const it = yield* played({
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
      const it = yield* played({
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
      const it = yield* played({
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
      const it = yield* played({
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

  it.effect("keeps the fence closed: what the withdrawn attempt called never starts", () =>
    Effect.gen(function* () {
      let refusal: unknown;
      const it = yield* played({
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

describe("The choice continue, through run", () => {
  it.effect("builds on what is settled and closes the other calls as not run or unknown", () =>
    Effect.gen(function* () {
      const it = yield* played({
        attempts: [twoCalls, [start, done]],
        answers: ["continue"],
        play: firstDies({ canContinue: true }),
      });
      assert.deepStrictEqual(it.lines, [
        "attempt 1 first",
        "bash:ready",
        "bash:ready",
        "ask tool_outcome_unknown",
        "answer continue",
        "discard 1 after 0",
        "attempt 2 continue",
        "start",
        "done",
        "completed",
      ]);
      const second = it.provider.attempts[1];
      assert.deepStrictEqual([second?.mode, second?.request], ["continue", "continue"]);
      assert.deepStrictEqual(
        second?.calls.map(({ call, outcome }) => [call, outcome]),
        [
          ["0.0", "unknown"],
          ["0.1", "not_run"],
        ],
      );
    }),
  );

  it.effect(
    "does not wait for a handler that outlives the drain limit",
    () =>
      Effect.gen(function* () {
        const it = yield* played({
          attempts: [[S.callReady("bash"), S.wait(1), reset], [done]],
          answers: ["continue"],
          play: (its) => {
            const tool = bash(its, Effect.never);
            return { options: { tools: [tool], canContinue: true }, onEvent: starts(tool) };
          },
        });
        assert.strictEqual(it.lines.at(-1), "completed");
        assert.deepStrictEqual(
          it.provider.attempts[1]?.calls.map(({ outcome }) => outcome),
          ["unknown"],
        );
      }),
    { timeout: 5_000 },
  );
});

describe("The choices it_ran and it_did_not_run, through run", () => {
  for (const choice of ["it_ran", "it_did_not_run"] as const) {
    it.effect(`${choice} settles the call by the person's word and continues`, () =>
      Effect.gen(function* () {
        const it = yield* played({
          attempts: [twoCalls, [start, done]],
          answers: [choice],
          play: firstDies({ canContinue: true }),
        });
        assert.deepStrictEqual(it.lines, [
          "attempt 1 first",
          "bash:ready",
          "bash:ready",
          "ask tool_outcome_unknown",
          `answer ${choice}`,
          "discard 1 after 1",
          "attempt 2 continue",
          "start",
          "done",
          "completed",
        ]);
        assert.deepStrictEqual(
          it.provider.attempts[1]?.calls.map(({ call, outcome }) => [call, outcome]),
          [
            ["0.0", choice],
            ["0.1", "not_run"],
          ],
        );
        assert.deepStrictEqual(
          it.record.attempts[0]?.facts.tools.map(({ call, phase }) => [call, phase]),
          [
            ["0.0", "settled"],
            ["0.1", "handed_over"],
          ],
        );
      }),
    );

    it.effect(
      `${choice} does not wait for the very handler that it speaks of`,
      () =>
        Effect.gen(function* () {
          const it = yield* played({
            attempts: [[S.callReady("bash"), S.wait(1), reset], [done]],
            answers: [choice],
            play: (its) => {
              const tool = bash(its, Effect.never);
              return { options: { tools: [tool], canContinue: true }, onEvent: starts(tool) };
            },
          });
          assert.strictEqual(it.lines.at(-1), "completed");
          assert.deepStrictEqual(
            it.provider.attempts[1]?.calls.map(({ outcome }) => outcome),
            [choice],
          );
        }),
      { timeout: 5_000 },
    );

    it.effect(`${choice} settles also the call of a tool that nobody declared`, () =>
      Effect.gen(function* () {
        const it = yield* played({
          attempts: [[S.callReady("mystery"), S.wait(1), reset], [done]],
          answers: [choice, "stop"],
          play: (its) => ({ options: { tools: [bash(its)], canContinue: true } }),
        });
        assert.deepStrictEqual(
          it.lines.filter((line) => line.startsWith("ask")),
          ["ask tool_outcome_unknown"],
        );
        assert.deepStrictEqual(
          it.provider.attempts[1]?.calls.map(({ outcome }) => outcome),
          [choice],
        );
      }),
    );

    it.effect(`${choice} is decided anew where nothing can continue`, () =>
      Effect.gen(function* () {
        const it = yield* played({
          attempts: [[S.callReady("bash"), S.wait(1), reset]],
          answers: [choice, "stop"],
          play: firstDies({ canContinue: false }),
        });
        assert.deepStrictEqual(it.lines, [
          "attempt 1 first",
          "bash:ready",
          "ask tool_outcome_unknown",
          `answer ${choice}`,
          "ask tool_ran",
          "answer stop",
          "end stopped tool_ran",
        ]);
        assert.deepStrictEqual(
          it.record.questions.map(({ revision, rule, answer }) => [revision, rule, answer]),
          [
            [1, "tool_outcome_unknown", choice],
            [2, "tool_ran", "stop"],
          ],
        );
      }),
    );
  }
});

describe("The choices that end a run, through run", () => {
  /** Text, a whole call and more text that had arrived and were not handed over when the error event came. */
  const frozen: ReadonlyArray<S.Step> = [
    text("a"),
    S.wait(1),
    S.together(text("b"), S.callReady("bash"), text("c"), S.errorEvent({ kind: "server_error" })),
  ];

  it.effect("accept hands over the text that was frozen, never its calls, and stops", () =>
    Effect.gen(function* () {
      const it = yield* played({
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
      const it = yield* played({
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
      const it = yield* played({
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
      const it = yield* played({ attempts: [[text("hi"), S.wait(1), reset]], answers: ["continue"] });
      assert.deepStrictEqual(it.lines.slice(-2), ["answer stop", "end stopped text_shown"]);
    }),
  );
});
