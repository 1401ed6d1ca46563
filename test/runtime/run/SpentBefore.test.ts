/** A run that repeats an earlier one learns the id of that run and the rest of its budget. */
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Layer } from "effect";
import type { SpentBefore } from "../../../src/runtime/contract/RunOptions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";

const breaks = [S.start, S.reset];

/** Plays one run that repeats another, and returns its record and the number of provider requests. */
const repeating = (
  scripts: ReadonlyArray<ReadonlyArray<S.Step>>,
  beside: boolean,
  asked: Effect.Effect<SpentBefore>,
  more: Parameters<typeof S.options>[1] = {},
) =>
  Effect.gen(function* () {
    const provider = S.scripted(...scripts);
    const processor = yield* StreamProcessor;
    const spentBefore = { asked, beside };
    const seen = yield* S.played(processor.run(S.options(provider, { runId: "r", spentBefore, ...more })));
    return { seen, record: yield* S.recordOf("r") };
  }).pipe(Effect.provide(Layer.fresh(S.processor())));

const known = (retries: number): Effect.Effect<SpentBefore> => Effect.succeed({ retries, retryOf: "run_0" });

describe("a run that repeats a run of another process", () => {
  it.effect("names it on record, and has the rest of its budget", () =>
    Effect.gen(function* () {
      const budget = { max_auto_retries: 2 };
      for (const beside of [true, false]) {
        const { record } = yield* repeating([breaks, breaks, breaks, breaks], beside, known(1), { budget });
        assert.strictEqual(record.retry_of, "run_0");
        assert.lengthOf(record.attempts, 2);
        assert.strictEqual(record.incidents[0]?.budget.max_auto_retries, 1);
      }
    }),
  );

  it.effect(
    "names it even if nothing was spent, and if it does not break and the query was asked for beside its attempt",
    () =>
      Effect.gen(function* () {
        const broke = yield* repeating([breaks, S.hello], false, known(0));
        assert.strictEqual(broke.record.retry_of, "run_0");
        assert.strictEqual(broke.record.end?.state, "completed");
        const calm = yield* repeating([S.hello], true, known(0));
        assert.strictEqual(calm.record.retry_of, "run_0");
        assert.lengthOf(calm.record.attempts, 1);
      }),
  );

  it.effect("causes no query if it does not break and does not name the repeated run", () =>
    Effect.gen(function* () {
      let asked = 0;
      const counted = Effect.suspend(() => {
        asked += 1;
        return known(1);
      });
      const calm = yield* repeating([S.hello], false, counted);
      assert.isUndefined(calm.record.retry_of);
      assert.strictEqual(asked, 0);
      yield* repeating([breaks, breaks, breaks, S.hello], true, counted);
      assert.strictEqual(asked, 1, "however often it breaks");
    }),
  );

  it.effect("decides without it if it is not known in time, or cannot be", () =>
    Effect.gen(function* () {
      const never = Deferred.makeUnsafe<SpentBefore>();
      for (const asked of [Deferred.await(never), Effect.die("the store is gone")])
        for (const beside of [true, false]) {
          const { record } = yield* repeating([breaks, S.hello], beside, asked);
          assert.isUndefined(record.retry_of);
          assert.strictEqual(record.end?.state, "completed");
        }
    }),
  );
});
