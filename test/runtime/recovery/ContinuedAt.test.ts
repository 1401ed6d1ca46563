/**
 * Continues the text of a run with an earlier tool call: `Continued.at` counts all the text that the caller has.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Layer } from "effect";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";
import { scriptedSeam } from "../ScriptedSeam.ts";
import { runs } from "./RuleBench.ts";

const { done, reset, start, text } = S;
const layer = ToolGuard.layer.pipe(Layer.provideMerge(S.processor(["stop"])));

/** The text that the caller has when each continuation is announced, and the announced count. */
const played = (attempts: ReadonlyArray<ReadonlyArray<S.Step>>) =>
  Effect.gen(function* () {
    const tool = (yield* ToolGuard).mutating("bash", () => Effect.succeed("ran"));
    const { run } = yield* StreamProcessor;
    const options = S.options(S.scripted(...attempts), {
      canContinue: true,
      tools: [tool],
      seam: scriptedSeam(),
      continueText: "auto",
    });
    const { events, lines } = yield* S.played(run(options), runs(tool));
    let shown: ReadonlyArray<{ readonly attempt: number; readonly ordinal: number; readonly text: string }> = [];
    const counted: Array<{ readonly at: number; readonly has: number }> = [];
    for (const event of events) {
      if (event._tag === "Part" && event.part.says.shows === "text")
        shown = [...shown, { attempt: event.attempt, ordinal: event.ordinal, text: event.part.name }];
      if (event._tag === "AttemptDiscarded")
        shown = shown.filter((it) => it.attempt !== event.attempt || it.ordinal <= event.keep_through);
      if (event._tag === "Continued")
        counted.push({ at: event.at, has: shown.reduce((sum, it) => sum + it.text.length, 0) });
    }
    return { counted, lines };
  }).pipe(Effect.provide(layer));

const called = [start, text("The tests first. "), S.callReady("bash"), S.wait(1), reset];
const broken = [start, text("one "), text("two"), S.wait(1), reset];
const rest = [start, text("one two"), text(" three"), done];

describe("Continued.at", () => {
  it.effect("counts the text of a single response", () =>
    Effect.map(played([broken, rest]), ({ counted, lines }) =>
      assert.deepStrictEqual(counted, [{ at: 7, has: 7 }], lines.join("\n")),
    ),
  );

  it.effect("also counts the text of an earlier response before a tool", () =>
    Effect.map(played([called, broken, rest]), ({ counted, lines }) =>
      assert.deepStrictEqual(counted, [{ at: 24, has: 24 }], lines.join("\n")),
    ),
  );
});
