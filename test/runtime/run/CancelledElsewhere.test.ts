/** A processor hears of cancels of the runs that it drives, and of no others. */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Fiber, Layer, Stream } from "effect";
import { TestClock } from "effect/testing";
import * as Orphan from "../../../src/recorder/Orphan.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import * as StoredCancels from "../../../src/runtime/run/StoredCancels.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as MemoryFacts from "../../recorder/shared/MemoryFacts.ts";
import { transcript } from "../crash/Crashes.ts";
import { lives, runId, written } from "../crash/Lives.ts";
import * as S from "../Scripted.ts";

describe("a processor over a store that processes share", () => {
  it.effect("cancels its run for who has the store, and not for a client that the run is not known to be of", () =>
    Effect.gen(function* () {
      const clock = yield* Clock.Clock;
      const store = MemoryFacts.make(() => clock.currentTimeMillisUnsafe());
      const other = store.process();
      const cancels = { ...store.process(), findOwner: () => Effect.undefined };
      const recorder = S.recorderThat({ cancels });
      yield* Effect.gen(function* () {
        const provider = S.scripted([S.start, S.text("begun"), S.never]);
        const processor = yield* StreamProcessor;
        const reading = yield* Effect.forkChild(S.watch(processor.run(S.options(provider, { runId: "r" }))));
        yield* TestClock.adjust(10);
        const asked = (cancel: StoredCancels.Cancel) =>
          Effect.gen(function* () {
            const fiber = yield* Effect.forkChild(StoredCancels.cancel(other, cancel));
            yield* TestClock.adjust(2 * StoredCancels.cancelMs);
            return yield* Fiber.join(fiber);
          });
        assert.isFalse(yield* asked({ run_id: "r", holder: "a digest of another client" }));
        assert.isFalse(yield* asked({ run_id: "another" }));
        assert.strictEqual((yield* S.recordOf("r")).state, "live");
        assert.isTrue(yield* asked({ run_id: "r" }));
        yield* Fiber.join(reading);
        assert.strictEqual((yield* S.recordOf("r")).end?.reason, "user_cancelled");
      }).pipe(
        Effect.provide(
          StreamProcessor.layer.pipe(Layer.provideMerge(Layer.merge(recorder, UserDecisions.layerHeadless()))),
        ),
      );
    }).pipe(Effect.scoped),
  );
});

describe("a run whose cancel stands", () => {
  for (const [name, life] of Object.entries(lives)) {
    it.effect(`is taken up as cancelled, and nothing is asked of its provider: ${name}`, () =>
      Effect.gen(function* () {
        yield* TestClock.setTime(1_000);
        const clock = yield* Clock.Clock;
        const store = MemoryFacts.make(() => clock.currentTimeMillisUnsafe());
        const cancels = { ...store.process(), findOwner: () => Effect.undefined };
        const digest = (content: string) => Effect.succeed(`the digest of ${content}`);
        yield* Effect.gen(function* () {
          const recorder = yield* RunRecorder;
          yield* written(recorder, life);
          yield* recorder.release(runId);
          const before = yield* S.recordOf(runId);
          if (before.state === "ended" || before.transcript === undefined) return;
          yield* cancels.put("cancel", runId, JSON.stringify({ run_id: runId }), StoredCancels.standsMs);
          const provider = S.scripted(S.hello, S.hello);
          const request = S.options(provider, { canContinue: true });
          const processor = yield* StreamProcessor;
          const taken = Stream.runDrain(processor.takeUp(runId, { request, transcript }));
          const reading = yield* Effect.forkChild(Effect.exit(taken), { startImmediately: true });
          yield* TestClock.adjust("10 minutes");
          yield* Fiber.join(reading);
          assert.strictEqual(provider.attempts.length, 0);
          const { end } = yield* S.recordOf(runId);
          if (before.attempts.length > 0 && !Orphan.isSpent(before)) assert.strictEqual(end?.reason, "user_cancelled");
          else return;
          yield* TestClock.adjust(10);
          assert.lengthOf(yield* cancels.all("cancel"), 0, "it is carried out");
        }).pipe(
          Effect.provide(
            StreamProcessor.layer.pipe(
              Layer.provideMerge(Layer.merge(S.recorderThat({ cancels, digest }), UserDecisions.layerHeadless())),
            ),
          ),
        );
      }).pipe(Effect.scoped),
    );
  }
});

describe("a run that is taken up", () => {
  const tried = (find: StoredCancels.CancelFacts["find"], life = lives["nothing was shown"]) =>
    Effect.gen(function* () {
      yield* TestClock.setTime(1_000);
      const clock = yield* Clock.Clock;
      const facts = MemoryFacts.make(() => clock.currentTimeMillisUnsafe()).process();
      const cancels = { ...facts, find, findOwner: () => Effect.undefined };
      const digest = (content: string) => Effect.succeed(`the digest of ${content}`);
      const recorder = S.recorderThat({ cancels, digest });
      return yield* Effect.gen(function* () {
        const store = yield* RunRecorder;
        yield* written(store, life ?? []);
        yield* store.release(runId);
        const provider = S.scripted(S.hello);
        const processor = yield* StreamProcessor;
        const taken = Stream.runDrain(processor.takeUp(runId, { request: S.options(provider), transcript }));
        const reading = yield* Effect.forkChild(Effect.exit(taken), { startImmediately: true });
        yield* TestClock.adjust("10 minutes");
        const error = S.errorOf(yield* Fiber.join(reading));
        return { error, asked: provider.attempts.length, record: yield* S.recordOf(runId) };
      }).pipe(
        Effect.provide(
          StreamProcessor.layer.pipe(Layer.provideMerge(Layer.merge(recorder, UserDecisions.layerHeadless()))),
        ),
      );
    }).pipe(Effect.scoped);

  it.effect("goes on where no cancel stands", () =>
    Effect.gen(function* () {
      const { asked, record } = yield* tried(() => Effect.undefined);
      assert.strictEqual(asked, 1);
      assert.strictEqual(record.end?.state, "completed");
    }),
  );

  for (const [why, find] of [
    ["does not say", () => Effect.fail({ message: "away" })],
    ["does not answer", () => Effect.never],
  ] as const)
    it.effect(`is given back where its store ${why} whether it was cancelled`, () =>
      Effect.gen(function* () {
        const { asked, error, record } = yield* tried(find);
        assert.strictEqual(asked, 0);
        assert.deepInclude(error, { reason: "refused" });
        assert.include(error?.message, "the store did not report whether the user cancelled the run");
        assert.strictEqual(record.state, "live");
        assert.strictEqual(record.resumes, 0);
      }),
    );

  it.effect(
    "goes on with no retry where its user had cancelled it, and its process died before the end was on record",
    () =>
      Effect.gen(function* () {
        const { asked, record } = yield* tried(() => Effect.undefined, lives["the user had cancelled"]);
        assert.strictEqual(asked, 0);
        assert.strictEqual(record.end?.reason, "user_cancelled");
      }),
  );
});
