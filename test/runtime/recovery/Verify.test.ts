/**
 * A tool that can verify its calls is asked before a person, and its answer is recorded.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { RunEvent } from "../../../src/runtime/contract/RunEvent.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";

/** A tool whose handler dies in the middle, a stream that breaks after it, and then a whole response. */
const playWith = (
  verify: ToolGuard.Verify | undefined,
  canContinue: boolean,
  answers: ReadonlyArray<"stop"> = ["stop"],
) =>
  Effect.gen(function* () {
    const processor = yield* StreamProcessor;
    const guard = yield* ToolGuard;
    let starts = 0;
    const bash = guard.mutating(
      "bash",
      () =>
        Effect.andThen(
          Effect.sync(() => {
            starts += 1;
          }),
          Effect.die("in the middle"),
        ),
      verify === undefined ? {} : { verify },
    );
    const provider = S.scripted([S.start, S.callReady("bash"), S.wait(10), S.reset], [S.start, S.text("on"), S.done]);
    const onEvent = (event: RunEvent<S.ScriptedPart>) =>
      event._tag === "Part"
        ? Effect.forEach(event.calls ?? [], (call) => Effect.exit(bash.run(call, undefined)))
        : Effect.void;
    const run = processor.run(S.options(provider, { runId: "r", tools: [bash], canContinue }));
    const seen = yield* S.played(run, onEvent);
    return { lines: seen.lines, record: yield* S.recordOf("r"), attempts: provider.attempts, starts };
  }).pipe(Effect.provide(S.processor(answers)));

describe("A tool's own verification of a call of unknown outcome", () => {
  it.effect("settles it, so that the run continues without a question", () =>
    Effect.gen(function* () {
      const asked: Array<ToolGuard.UnknownCall> = [];
      const it = yield* playWith(
        (call) =>
          Effect.as(
            Effect.sync(() => asked.push(call)),
            "it_ran" as const,
          ),
        true,
      );
      assert.deepStrictEqual(it.lines.slice(2), [
        "bash:ready",
        "verified 1/0.0 it_ran",
        "retry continue tools_settled",
        "attempt 2 continue",
        "start",
        "on",
        "done",
        "completed",
      ]);
      assert.deepStrictEqual(asked, [{ run_id: "r", attempt: 1, call: "0.0", id: "id0", tool: "bash" }]);
      assert.deepStrictEqual(it.record.calls, [
        { attempt: 1, call: "0.0", id: "id0", tool: "bash", verdict: "it_ran", verdict_by: "verify" },
      ]);
      assert.deepStrictEqual(
        it.attempts[1]?.calls.map(({ outcome }) => outcome),
        ["it_ran"],
      );
      assert.strictEqual(it.starts, 1);
    }),
  );

  const asks = (title: string, verify: ToolGuard.Verify | undefined) =>
    it.effect(title, () =>
      Effect.gen(function* () {
        const it = yield* playWith(verify, true);
        assert.deepStrictEqual(it.lines.slice(3), [
          "ask tool_outcome_unknown",
          "answer stop",
          "end stopped tool_outcome_unknown",
        ]);
        assert.strictEqual(it.starts, 1);
      }),
    );

  asks("that it cannot give leaves the question", () => Effect.succeed("unknown"));
  asks("that fails leaves the question", () => Effect.fail("the host is down"));
  asks("that dies leaves the question", () => Effect.die("a bug"));
  asks("that never comes leaves the question", () => Effect.never);
  asks("that cannot be had leaves the question", undefined);
});
