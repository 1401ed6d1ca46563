/**
 * Text after a call that its caller has not got when the response breaks. Nothing closes it, so a continuation without a seam would
 * repeat it.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Layer } from "effect";
import { heldBytesMax } from "../../../src/runtime/attempt/Reveal.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";
import { scriptedSeam } from "../ScriptedSeam.ts";
import { runs } from "./RuleBench.ts";

type Options = S.More;

const { done, reset, start, text } = S;
const layer = ToolGuard.layer.pipe(Layer.provideMerge(S.processor(["stop"])));
const again = [start, text("two"), text(" three"), done];

/** Plays a response that breaks, and its continuation; returns the shown text and the number of tool runs. */
const played = (first: ReadonlyArray<S.Step>, discardable: boolean, seam: boolean, more: Options = {}) =>
  Effect.gen(function* () {
    let ran = 0;
    const tool = (yield* ToolGuard).mutating("bash", () =>
      Effect.sync(() => {
        ran += 1;
        return "ran";
      }),
    );
    const provider = S.scripted(first, again);
    const { run } = yield* StreamProcessor;
    const options = S.options(provider, {
      ...{ runId: "held", canContinue: true, discardable, tools: [tool], ...more },
      ...(seam ? { seam: scriptedSeam(), continueText: "auto" as const } : {}),
    });
    const { lines } = yield* S.played(run(options), runs(tool));
    return { lines, ran, asked: provider.attempts.map(({ request, seam }) => seam?.quote ?? request) };
  }).pipe(Effect.provide(layer));

const goesOn = ["attempt 2 continue", "start", "two", " three", "done", "completed"];

describe("Text after a call that is held from a caller that cannot discard", () => {
  for (const seam of [true, false])
    for (const [what, call] of [
      ["begins", S.callStarts("bash")],
      ["is ready", S.callReady("bash")],
    ] as const)
      it.effect(
        `is not shown if the call ${what}${seam ? ", with a seam" : ""}, because the continuation repeats it`,
        () =>
          Effect.gen(function* () {
            const first = [start, text("one "), call, S.wait(1), text("two"), S.wait(1), reset];
            const it = yield* played(first, false, seam);
            const shown = ["attempt 1 first", "start", "one ", "retry continue text_closed_by_call"];
            assert.deepStrictEqual(it.lines, [...shown, ...goesOn]);
            assert.deepStrictEqual(it.asked, ["first", "continue"]);
            assert.strictEqual(it.ran, 0);
          }),
      );

  it.effect("is not shown either if it is between two calls", () =>
    Effect.gen(function* () {
      const calls = [S.callReady("bash"), text("two"), S.callStarts("bash", 1), text(" thr")];
      const it = yield* played([start, text("one "), S.wait(1), ...calls, S.wait(1), reset], false, true);
      assert.deepStrictEqual(it.lines.slice(2), ["one ", "retry continue text_closed_by_call", ...goesOn]);
    }),
  );

  it.effect("does not prevent earlier text of the same moment from being shown, which the call has closed", () =>
    Effect.gen(function* () {
      const moment = S.together(text("and "), S.callStarts("bash"), text("two"));
      const it = yield* played([start, text("one "), S.wait(1), moment, reset], false, true);
      assert.deepStrictEqual(it.lines.filter((line) => !/^(?:attempt|retry)/.test(line)).slice(0, 3), [
        "start",
        "one ",
        "and ",
      ]);
      assert.deepStrictEqual(it.lines.slice(-6), goesOn);
    }),
  );

  it.effect("is not shown after a call that exceeded the hold limit and has run", () =>
    Effect.gen(function* () {
      const moment = S.together(text("two"), S.errorEvent({ kind: "server_error", status: 500 }));
      const first = [start, text("one "), S.callReady("bash"), S.wait(1), moment];
      const sizeOf = ({ name }: S.ScriptedPart) => (name === "bash:ready" ? 2 * heldBytesMax : 1);
      const it = yield* played(first, false, true, { sizeOf });
      const shown = ["attempt 1 first", "start", "one ", "bash:ready", "retry continue tools_settled"];
      assert.deepStrictEqual(it.lines, [...shown, ...goesOn]);
      assert.strictEqual(it.ran, 1);
    }),
  );
});
