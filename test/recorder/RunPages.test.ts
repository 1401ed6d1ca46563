/** Long lists of runs are read page by page, each run once, and no page before it is needed. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Layer, Stream } from "effect";
import { streamRuns, waitingRuns } from "../../src/recorder/RunPages.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import * as E from "./Entries.ts";

/** A recorder that contains runs and collects the queries it gets. */
const holding = (...ids: ReadonlyArray<string>) =>
  Effect.gen(function* () {
    const memory = yield* RunRecorder;
    for (const id of ids) yield* memory.write(id, [E.begun(id)]);
    const asked: Array<string | undefined> = [];
    const recorder: RunRecorder["Service"] = {
      ...memory,
      runs: (query) =>
        Effect.suspend(() => {
          asked.push(query?.before);
          return memory.runs(query);
        }),
    };
    return { recorder, asked };
  });

const idsOf = <E>(runs: Stream.Stream<{ readonly run_id: string }, E>) =>
  Stream.runCollect(Stream.map(runs, ({ run_id }) => run_id));

describe("The runs of a query", () => {
  for (const count of [0, 1, 2, 3, 4]) {
    it.effect(`are returned once, the newest first: ${count} in pages of two`, () =>
      Effect.gen(function* () {
        const ids = Array.from({ length: count }, (_, index) => `r${index}`);
        const { recorder } = yield* holding(...ids);
        assert.deepStrictEqual(yield* idsOf(streamRuns(recorder, {}, 2)), ids.toReversed());
      }).pipe(Effect.provide(Layer.fresh(RunRecorder.layerMemory()))),
    );
  }

  it.effect("are read only as far as they are consumed (L11)", () =>
    Effect.gen(function* () {
      const { asked, recorder } = yield* holding("a", "b", "c", "d", "e");
      yield* idsOf(Stream.take(streamRuns(recorder, {}, 2), 2));
      assert.deepStrictEqual(asked, [undefined]);
    }).pipe(Effect.provide(Layer.fresh(RunRecorder.layerMemory()))),
  );
});

describe("The parked runs of a recorder", () => {
  it.effect("include every parked run, and none with a live owner", () =>
    Effect.gen(function* () {
      const { recorder } = yield* holding("live", "left");
      yield* recorder.write("left", [{ _tag: "RunParked", reason: "interrupted" }]);
      assert.deepStrictEqual(yield* idsOf(waitingRuns(recorder)), ["left"]);
    }).pipe(Effect.provide(Layer.fresh(RunRecorder.layerMemory()))),
  );
});
