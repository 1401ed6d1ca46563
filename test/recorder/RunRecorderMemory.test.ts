import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Layer } from "effect";
import { memoryRunsMax, RunRecorder } from "../../src/recorder/RunRecorder.ts";
import * as E from "./Entries.ts";
import * as Gates from "./suite/Gates.ts";
import { suite } from "./suite/Suite.ts";
import { sweptQuestions } from "./suite/SweptQuestions.ts";
import { type Meeting, zombies } from "./suite/Zombies.ts";

suite("RunRecorder.layerMemory", RunRecorder.layerMemory());

/** Memory has one process, so two callers in it are held before and after an operation. */
const two = Effect.gen(function* () {
  const quick = Context.get(yield* Layer.build(Layer.fresh(RunRecorder.layerMemory())), RunRecorder);
  const gates = Gates.make();
  const gated = <A, E>(made: Effect.Effect<A, E>) =>
    Effect.andThen(gates.at("before an operation"), Effect.tap(made, gates.at("behind an operation")));
  const slow: typeof quick = {
    ...quick,
    write: (id, entries) => gated(quick.write(id, entries)),
    claim: (id) => gated(quick.claim(id)),
    release: (id) => gated(quick.release(id)),
    answer: (given) => gated(quick.answer(given)),
  };
  return { slow, quick, hold: gates.hold };
});

const meeting: Meeting<never> = {
  two,
  points: { "before an operation": "before", "behind an operation": "after" },
  oneProcess: true,
};

zombies("Two callers over one memory", meeting);
sweptQuestions("Two callers over one memory", meeting);

describe("RunRecorder.layerMemory keeps at most runsMax runs (L11)", () => {
  const ids = Effect.flatMap(RunRecorder, (recorder) =>
    Effect.map(recorder.runs({ limit: 10_000 }), (runs) => runs.map((run) => run.run_id)),
  );
  const begin = (runId: string, ...more: Parameters<RunRecorder["Service"]["write"]>[1]) =>
    Effect.flatMap(RunRecorder, (recorder) => recorder.write(runId, [E.begun(runId), ...more]));

  it.effect("the oldest ended run is evicted first, and live ones stay at any age", () =>
    Effect.gen(function* () {
      yield* begin("live");
      yield* begin("ended-1", E.ended());
      yield* begin("ended-2", E.ended());
      yield* begin("new-1");
      assert.deepStrictEqual(yield* ids, ["new-1", "ended-2", "live"]);
      yield* begin("new-2");
      assert.deepStrictEqual(yield* ids, ["new-2", "new-1", "live"]);
    }).pipe(Effect.provide(RunRecorder.layerMemory({ runsMax: 3 }))),
  );

  it.effect("a new run is refused with `full` while every kept one is live or asks, and nothing is evicted", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      yield* begin("live");
      yield* begin("asking", E.asked("asking", 1));
      const error = yield* Effect.flip(begin("new"));
      assert.deepInclude(error, { _tag: "RecorderError", reason: "full", run_id: "new" });
      assert.deepStrictEqual(yield* ids, ["asking", "live"]);
      yield* recorder.write("live", [E.attempt(1), E.ended()]);
      yield* begin("new");
      assert.deepStrictEqual(yield* ids, ["new", "asking"]);
    }).pipe(Effect.provide(RunRecorder.layerMemory({ runsMax: 2 }))),
  );

  it.effect("a refused first write evicts no ended run", () =>
    Effect.gen(function* () {
      yield* begin("ended", E.ended());
      yield* Effect.flip(begin("new", E.begun("new")));
      assert.deepStrictEqual(yield* ids, ["ended"]);
    }).pipe(Effect.provide(RunRecorder.layerMemory({ runsMax: 1 }))),
  );

  it.effect("ten thousand runs are kept by default, and not one more", () =>
    Effect.gen(function* () {
      for (let index = 0; index <= memoryRunsMax; index += 1) yield* begin(`r${index}`, E.ended());
      const kept = yield* ids;
      assert.deepStrictEqual([memoryRunsMax, kept.length, kept[0], kept.at(-1)], [10_000, 10_000, "r10000", "r1"]);
    }).pipe(Effect.provide(RunRecorder.layerMemory())),
  );
});
