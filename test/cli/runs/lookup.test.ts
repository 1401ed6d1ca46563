import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { TestClock } from "effect/testing";
import { findRun } from "../../../src/cli/runs/RunLookup.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { lateRecordMs } from "../../../src/recorder/WriteQueue.ts";
import * as S from "../Stored.ts";

describe("A run that is looked up by id", () => {
  it.effect("is found even if its gateway records it only a moment later, and is unknown after a second", () =>
    Effect.gen(function* () {
      const memory = yield* RunRecorder;
      const find = (id: string) =>
        findRun("runs show", id).pipe(Effect.provideService(RunRecorder, { ...memory, durable: true }), Effect.exit);
      const late = yield* Effect.forkChild(find("late"), { startImmediately: true });
      const unknown = yield* Effect.forkChild(find("unknown"), { startImmediately: true });
      yield* TestClock.adjust(lateRecordMs - 1);
      assert.isUndefined(late.pollUnsafe());
      yield* memory.write("late", S.recovered("late"));
      yield* TestClock.adjust(1);
      assert.strictEqual((yield* Fiber.join(late))._tag, "Success");
      assert.strictEqual((yield* Fiber.join(unknown))._tag, "Failure");
    }).pipe(Effect.provide(RunRecorder.layerMemory())),
  );
});
