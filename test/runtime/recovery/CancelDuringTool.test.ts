/**
 * Cancels a run while a tool of its whole response runs, with a store in a file, and checks the record and its words for people.
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Fiber, Layer } from "effect";
import * as RunStore from "../../../src/recorder/store/RunStore.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import { statusOf } from "../../../src/story/RunStatus.ts";
import { runStory } from "../../../src/story/RunStory.ts";
import { summaryOf } from "../../../src/story/RunSummary.ts";
import * as S from "../Scripted.ts";
import { runs } from "./RuleBench.ts";

const layerOf = (file: string) =>
  ToolGuard.layer.pipe(
    Layer.provideMerge(StreamProcessor.layer),
    Layer.provideMerge(Layer.merge(UserDecisions.layerHeadless(), RunStore.layer({ file, retention: false }))),
  );

/** Cancels while the handler runs, and returns the record once the run has its end. */
const cancelled = (last: ReadonlyArray<S.Step>) =>
  Effect.gen(function* () {
    const processor = yield* StreamProcessor;
    const started = yield* Deferred.make<void>();
    const tool = (yield* ToolGuard).mutating("bash", () =>
      Effect.andThen(Deferred.succeed(started, undefined), Effect.never),
    );
    const script = [S.start, S.together(S.callReady("bash"), S.done), ...last];
    const options = S.options(S.scripted(script), { runId: "r", tools: [tool] });
    const fiber = yield* Effect.forkChild(S.watch(processor.run(options), runs(tool)));
    yield* Deferred.await(started);
    yield* processor.cancel("r");
    yield* Fiber.join(fiber);
    return yield* S.recordOf("r");
  });

describe("A cancel while a tool of a whole response runs", () => {
  const scripts = { "is still open": [S.never], "has ended": [] } satisfies Record<string, ReadonlyArray<S.Step>>;
  for (const [stream, last] of Object.entries(scripts))
    it.live(`is reported as one whose tool has an unknown outcome, if the stream ${stream}`, () => {
      const folder = mkdtempSync(join(tmpdir(), "cancelled-"));
      return cancelled(last).pipe(
        Effect.tap((record) =>
          Effect.sync(() => {
            const { calls, end, incidents, unknown } = runStory(record, record.started_at);
            assert.strictEqual(statusOf(record), "cancelled");
            assert.match(end ?? "", /^Cancelled after one attempt .*The outcome of bash is not known\.$/);
            assert.strictEqual(unknown, "the outcome of bash is not known");
            assert.deepStrictEqual(
              calls.map(({ phase }) => phase),
              ["outcome unknown"],
            );
            const { outcome, standing, unknown_outcomes } = summaryOf(record, new Set());
            assert.deepStrictEqual([standing, outcome, unknown_outcomes], ["stopped", "user_cancelled", ["bash"]]);
            for (const { became } of incidents) assert.notInclude(became, "later attempt");
          }),
        ),
        Effect.provide(layerOf(join(folder, "runs.db"))),
        Effect.ensuring(Effect.sync(() => rmSync(folder, { recursive: true, force: true }))),
      );
    });
});
