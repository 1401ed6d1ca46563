/**
 * The processor takes up every result of a recovery: crash, recover, answer, take up, end.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Layer, Stream } from "effect";
import { TestClock } from "effect/testing";
import * as Orphan from "../../../src/recorder/Orphan.ts";
import { openQuestion } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import { ToolGuard } from "../../../src/runtime/tools/ToolGuard.ts";
import * as S from "../Scripted.ts";
import { transcript } from "./Crashes.ts";
import { type Life, recorded, runId, written } from "./Lives.ts";

/** The real digest is a promise, which no virtual clock waits for. */
const store = Layer.effect(
  RunRecorder,
  Effect.map(RunRecorder, (recorder) => ({
    ...recorder,
    digest: (content: string) => Effect.succeed(`digest of ${content}`),
  })),
).pipe(Layer.provide(RunRecorder.layerMemory()));

const process = Layer.fresh(
  StreamProcessor.layer.pipe(
    Layer.provideMerge(UserDecisions.layerDurable({ parkAfterMs: 60_000 })),
    Layer.provideMerge(store),
  ),
);

const record = Effect.filterOrElse(
  Effect.flatMap(RunRecorder, (recorder) => recorder.run(runId)),
  (found) => found !== undefined,
  () => Effect.die(new Error("the run is lost")),
);

const resume = Effect.gen(function* () {
  const [processor, guard] = [yield* StreamProcessor, yield* ToolGuard];
  const whole = S.scripted(...Array.from({ length: 4 }, () => [S.start, S.text("b"), S.done]));
  const request = S.options(whole, {
    canContinue: true,
    tools: [guard.mutating("bash", () => Effect.succeed("done"))],
  });
  const events = yield* Effect.forkChild(
    Effect.exit(Stream.runDrain(processor.takeUp(runId, { request, transcript }))),
    { startImmediately: true },
  );
  yield* TestClock.adjust("10 minutes");
  return yield* Fiber.join(events);
});

const livedOn = (life: Life, writes: number, choice: "retry" | "stop", where: string) =>
  Effect.gen(function* () {
    const recorder = yield* RunRecorder;
    yield* written(recorder, life, writes);
    yield* recorder.release(runId);
    for (let round = 0; (yield* record).state !== "ended"; round += 1) {
      assert.isBelow(
        round,
        5,
        `${where}: it never ends: ${JSON.stringify((yield* record).incidents.at(-1)?.decision)}`,
      );
      yield* CrashRecovery.recover();
      const question = openQuestion(yield* record);
      if (question !== undefined) {
        const own = question.choices.includes("it_ran") ? "it_ran" : choice;
        yield* CrashRecovery.answer({ run_id: runId, revision: question.revision, choice: own, by: "person" });
      }
      const due = Orphan.findDueStep(yield* record)?._tag;
      if (due === "offered" || due === "answered") yield* resume;
    }
    const { end, incidents } = yield* record;
    assert.isFalse(
      incidents.some(({ status }) => status === "open"),
      where,
    );
    if (choice === "retry") assert.strictEqual(end?.state, "completed", where);
  }).pipe(Effect.provide(process));

describe("A recovered run is taken up and ends", () => {
  for (const choice of ["retry", "stop"] as const) {
    it.effect(`after a crash at every write of the runtime, with every question answered "${choice}"`, () =>
      Effect.gen(function* () {
        for (const [name, life] of Object.entries(yield* recorded)) {
          for (let writes = 1; writes <= life.length; writes += 1) {
            if (
              life
                .slice(0, writes)
                .flat()
                .some(({ _tag }) => _tag === "RunEnded")
            )
              continue;
            // An answer of its own process counts: a person is not asked again.
            const own = life
              .slice(0, writes)
              .flat()
              .some(({ _tag }) => _tag === "QuestionAnswered");
            yield* livedOn(life, writes, own ? "stop" : choice, `${name}, after write ${writes}`);
          }
        }
      }),
    );
  }
});
