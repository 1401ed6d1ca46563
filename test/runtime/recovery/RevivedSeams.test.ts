/** Runs whose process died during a continuation: another process joins the text if it has it, and asks otherwise. */
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Fiber, Layer } from "effect";
import * as Observation from "../../../src/domain/Observation.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as Seam from "../../../src/stages/seam/Seam.ts";
import * as S from "../Scripted.ts";
import { scriptedSeam } from "../ScriptedSeam.ts";

const layer = StreamProcessor.layer.pipe(
  Layer.provideMerge(Layer.merge(S.recorderThat({ durable: true }), UserDecisions.layerHeadless())),
);

/** A seam that knows the text shown earlier from its caller's own transcript. */
const knowing = (shown: string) =>
  Seam.of(() => {
    const seam = scriptedSeam().make();
    seam.left({ name: shown, says: Observation.text(shown.length) }, Observation.text(shown.length));
    return seam;
  });

describe("A text that was being continued when its process died", () => {
  for (const [name, seam, end] of [
    [
      "is joined by a process that knows what was shown",
      knowing("one two"),
      ["continued 3 at 7 by anchor", " three", "done", "completed"],
    ],
    ["is asked about where what was shown is not known", scriptedSeam(), ["end stopped text_shown"]],
  ] as const) {
    it.live(name, () =>
      Effect.gen(function* () {
        const processor = yield* StreamProcessor;
        const inAnchor = yield* Deferred.make<void>();
        const provider = S.scripted(
          [S.start, S.text("one "), S.text("two"), S.reset],
          [S.start, S.text("one "), { run: Deferred.succeed(inAnchor, undefined) }, S.never],
          [S.start, S.text("one two"), S.text(" three"), S.done],
        );
        const options = S.options(provider, { transcript: "t", canContinue: true, continueText: "auto" });
        const first = processor.run({ ...options, runId: "r", seam: scriptedSeam() });
        const left = yield* Effect.forkChild(S.watch(first));
        yield* Deferred.await(inAnchor);
        yield* Fiber.interrupt(left);
        const again = yield* S.watch(processor.takeUp("r", { request: { ...options, seam }, transcript: "t" }));
        assert.deepStrictEqual(again.lines.slice(-end.length), [...end]);
        assert.isUndefined(again.lines.find((line) => line === "one "));
        const record = yield* S.recordOf("r");
        assert.deepStrictEqual(record.attempts[1]?.seam, { at: 7, proof: "anchor", proven: false });
      }).pipe(Effect.provide(layer)),
    );
  }
});
