import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { GuardedTool } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";
import { type Bench, bash, type OnEvent, plain, playedOut, type RuleCase, runId, runs, starts } from "./RuleBench.ts";

const { done, reset, start } = S;

/** Two guarded calls: the handler of the first dies, and the second never starts. */
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

describe("The choice to continue, through run", () => {
  it.effect("builds on settled calls and closes the others as not run or unknown", () =>
    Effect.gen(function* () {
      const it = yield* playedOut({
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

  it.effect("does not wait for a handler that outlives the drain limit", () =>
    Effect.gen(function* () {
      const it = yield* playedOut({
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
  );

  it.effect("reports an unguarded call as unknown", () =>
    Effect.gen(function* () {
      const it = yield* playedOut({
        attempts: [[S.callReady("bash"), S.wait(1), reset], [done]],
        answers: ["continue"],
        play: () => ({ options: { tools: [plain], canContinue: true } }),
      });
      assert.deepStrictEqual(it.lines.slice(1, 4), ["bash:ready", "ask tool_call_handed_over", "answer continue"]);
      assert.deepStrictEqual(
        it.provider.attempts[1]?.calls.map(({ outcome }) => outcome),
        ["unknown"],
      );
    }),
  );
});

describe("A close does not wait for a handler", () => {
  const closes = (its: Bench) => Effect.forkDetach(Effect.delay(its.processor.close("shutdown"), "1 minute"));

  it.effect("for which a decision waits", () =>
    Effect.gen(function* () {
      const attempts = [[S.callReady("bash"), S.wait(1), reset]];
      const play = (its: Bench) => {
        const tool = bash(its, Effect.never);
        const onEvent: OnEvent = (event) => Effect.andThen(starts(tool)(event), closes(its));
        return { options: { tools: [tool] }, onEvent };
      };
      const it = yield* playedOut({ attempts, play }, {}, Number.POSITIVE_INFINITY);
      assert.deepStrictEqual(it.lines, ["attempt 1 first", "bash:ready", "end do_not_retry lifecycle_closed"]);
    }),
  );

  it.effect("which a continuation started and waits for", () =>
    Effect.gen(function* () {
      let first = true;
      const once = Effect.suspend(() => {
        if (!first) return Effect.never;
        first = false;
        return Effect.succeed("ran");
      });
      const attempts = [twoCalls];
      const play = (its: Bench) => {
        const tool = bash(its, once);
        const second = Effect.suspend(() => tool.run({ run_id: runId, attempt: 1, call: "0.1" }, ""));
        const onEvent: OnEvent = (event) =>
          event._tag === "RetryScheduled"
            ? Effect.andThen(Effect.forkDetach(second), closes(its))
            : onlyFirst(tool)(event);
        return { options: { tools: [tool], canContinue: true }, onEvent };
      };
      const it = yield* playedOut({ attempts, play }, {}, Number.POSITIVE_INFINITY);
      assert.deepStrictEqual(it.lines.slice(0, 4), [
        "attempt 1 first",
        "bash:ready",
        "bash:ready",
        "retry continue tools_settled",
      ]);
      assert.strictEqual(it.lines.at(-1), "end do_not_retry lifecycle_closed");
      assert.strictEqual(it.provider.attempts.length, 1);
    }),
  );
});

describe("The choices it_ran and it_did_not_run, through run", () => {
  it.effect(
    "are not offered for a running handler; continue does not wait for it, and reports its call as unknown",
    () =>
      Effect.gen(function* () {
        const it = yield* playedOut({
          attempts: [[S.callReady("bash"), S.wait(1), reset], [done]],
          answers: ["continue"],
          play: (its) => {
            const tool = bash(its, Effect.never);
            return { options: { tools: [tool], canContinue: true }, onEvent: starts(tool) };
          },
        });
        assert.deepStrictEqual(it.record.questions[0]?.choices, ["retry", "continue", "stop"]);
        assert.strictEqual(it.lines.at(-1), "completed");
        assert.deepStrictEqual(
          it.provider.attempts[1]?.calls.map(({ outcome }) => outcome),
          ["unknown"],
        );
      }),
  );

  for (const choice of ["it_ran", "it_did_not_run"] as const) {
    it.effect(`${choice} settles the call on the person's word and continues`, () =>
      Effect.gen(function* () {
        const it = yield* playedOut({
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

    it.effect(`${choice} also settles the call of an undeclared tool`, () =>
      Effect.gen(function* () {
        const it = yield* playedOut({
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

    it.effect(`${choice} leads to another decision if nothing can continue`, () =>
      Effect.gen(function* () {
        const it = yield* playedOut({
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
