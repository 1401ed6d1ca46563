/**
 * Law L3: each attempt is judged on its own facts, and neither excuses nor blocks another one.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { ToolBoundary } from "../../src/domain/SideEffects.ts";
import { StreamProcessor } from "../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../src/runtime/tools/ToolGuard.ts";
import * as S from "../runtime/Scripted.ts";

const bash: ToolBoundary = { name: "bash", executor: "runtime", effect: "mutating" };

describe("L3 own facts", () => {
  it.effect("of a second attempt: text shown in it raises a question, however clean the first one was", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.reset], [S.start, S.text("half"), S.reset], S.hello);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { runId: "r" })));
      assert.deepStrictEqual(seen.lines, [
        "attempt 1 first",
        "start",
        "retry replay nothing_shown",
        "discard 1 after 0",
        "attempt 2 replay",
        "start",
        "half",
        "ask text_shown",
        "answer stop",
        "end stopped text_shown",
      ]);
      assert.strictEqual(provider.attempts.length, 2);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("of a second attempt: an unguarded call in it raises a question, however clean the first one was", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.reset], [S.start, S.callStarts("bash"), S.callReady("bash"), S.reset]);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [bash] })));
      assert.deepStrictEqual(seen.lines.slice(-3), [
        "ask tool_call_handed_over",
        "answer stop",
        "end stopped tool_call_handed_over",
      ]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect(
    "of a second attempt: a tool that ran in it raises a question, however clean the first one was, and the tool ran once",
    () =>
      Effect.gen(function* () {
        let ran = 0;
        const guard = yield* ToolGuard;
        const bash = guard.mutating("bash", () =>
          Effect.sync(() => {
            ran += 1;
          }),
        );
        const provider = S.scripted([S.start, S.reset], [S.start, S.callReady("bash"), S.wait(10), S.reset], S.hello);
        const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider, { tools: [bash] })), (event) =>
          event._tag === "Part" && event.calls !== undefined
            ? Effect.forEach(event.calls, (call) => Effect.orDie(bash.run(call, undefined)))
            : Effect.void,
        );
        assert.deepStrictEqual(seen.lines.slice(-3), ["ask tool_ran", "answer stop", "end stopped tool_ran"]);
        assert.strictEqual(ran, 1);
      }).pipe(Effect.provide(S.processor())),
  );

  it.effect("of a clean attempt: an earlier dirty one does not block its replay", () =>
    Effect.gen(function* () {
      const provider = S.scripted([S.start, S.reasoning("hm"), S.reset], [S.start, S.reset], S.hello);
      const seen = yield* S.played((yield* StreamProcessor).run(S.options(provider)));
      assert.deepStrictEqual(seen.lines, [
        "attempt 1 first",
        "start",
        "(hm)",
        "retry replay only_reasoning_shown",
        "discard 1 after 0",
        "attempt 2 replay",
        "start",
        "retry replay nothing_shown",
        "discard 2 after 0",
        "attempt 3 replay",
        "start",
        "hello",
        "done",
        "completed",
      ]);
    }).pipe(Effect.provide(S.processor())),
  );
});
