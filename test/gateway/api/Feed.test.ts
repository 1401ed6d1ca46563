/**
 * Listens to the feed: the runs that it names, those that it does not, and its cleanup.
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Layer, Option, Queue, Stream } from "effect";
import { TestClock } from "effect/testing";
import * as Feed from "../../../src/gateway/api/Feed.ts";
import { type RunChange, Traffic } from "../../../src/gateway/api/Traffic.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as Runs from "../page/PageRuns.ts";
import { put } from "../page/Server.ts";

const memory = Layer.fresh(RunRecorder.layerMemory());

const none = Option.none<Traffic["Service"]>();

/** Reads the feed text by text. */
const listening = (traffic: Option.Option<Traffic["Service"]> = none, shown: ReadonlyArray<string> = []) =>
  Effect.gen(function* () {
    const context = yield* Effect.context<never>();
    const body = Feed.make(yield* RunRecorder, traffic, context, { shown });
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    yield* Effect.addFinalizer(() => Effect.promise(() => reader.cancel()));
    /** The next text, while the virtual clock advances. */
    const next = (ms: number) =>
      Effect.gen(function* () {
        const read = reader.read();
        yield* Effect.promise(() => new Promise((resolve) => setImmediate(resolve)));
        yield* TestClock.adjust(ms);
        return (yield* Effect.promise(() => read)).value;
      });
    /** The texts of the next polls. */
    const looks = Effect.forEach([1, 2, 3], () => next(Feed.lookMs));
    return { reader, next, looks };
  });

const nothing = 'data: {"runs":[]}\n\n';

/** Runs newer than those on record, which become a poll's newest. */
const newer = Effect.suspend(() =>
  put(Array.from({ length: Feed.lookRunsMax }, (_, n) => Runs.calm(`newer_${n}`, Runs.now))),
);

describe("the feed", () => {
  it.effect("opens at once, names new or changed runs, and does not mention the others", () =>
    Effect.gen(function* () {
      yield* put([Runs.calm("old", Runs.now), Runs.running("live")]);
      const { looks, next } = yield* listening();
      assert.strictEqual(yield* next(0), "retry: 2000\n\n");
      assert.deepStrictEqual(yield* looks, [nothing, nothing, nothing], "a client that has just come knows all of it");
      yield* put([Runs.calm("new", Runs.now)]);
      yield* (yield* RunRecorder).write("live", [Runs.noted(9, 1, "watchdog", "idle")]);
      const named = (yield* looks).filter((it) => it !== nothing);
      assert.deepStrictEqual(named, ['data: {"runs":["new","live"]}\n\n'], "once");
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("reports that a run which waits for an answer has changed, and that it waits no more, at any age", () =>
    Effect.gen(function* () {
      yield* put([Runs.asking("asks"), Runs.asking("answered")]);
      yield* newer;
      const { looks, next } = yield* listening();
      yield* next(0);
      assert.deepStrictEqual(yield* looks, [nothing, nothing, nothing]);
      const recorder = yield* RunRecorder;
      yield* recorder.write("asks", [Runs.noted(9, 1, "watchdog", "idle")]);
      yield* recorder.answer({ run_id: "answered", revision: 1, choice: "stop", by: "person" });
      const named = (yield* looks).filter((it) => it !== nothing);
      assert.deepStrictEqual(named, ['data: {"runs":["asks","answered"]}\n\n'], "once");
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("reports that a run which its reader shows has changed, at any age, for a bounded number of runs", () =>
    Effect.gen(function* () {
      const shown = Array.from({ length: Feed.lookShownMax + 1 }, (_, n) => `shown_${n}`);
      yield* put([...shown, "hidden"].map((runId) => Runs.running(runId)));
      yield* newer;
      const { looks, next } = yield* listening(none, ["unknown", "unknown", ...shown]);
      yield* next(0);
      assert.deepStrictEqual(yield* looks, [nothing, nothing, nothing]);
      const recorder = yield* RunRecorder;
      for (const runId of [...shown, "hidden"]) {
        yield* recorder.write(runId, [Runs.noted(9, 1, "watchdog", "idle")]);
      }
      const named = (yield* looks).filter((it) => it !== nothing);
      const runs = shown.slice(0, Feed.lookShownMax - 1);
      assert.deepStrictEqual(named, [`data: ${JSON.stringify({ runs })}\n\n`]);
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("names the first run of an empty record", () =>
    Effect.gen(function* () {
      const { looks, next } = yield* listening();
      yield* next(0);
      yield* looks;
      yield* put([Runs.running("first")]);
      assert.include(yield* looks, 'data: {"runs":["first"]}\n\n');
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("reports changes of its own process together, each run once, without waiting for a poll", () =>
    Effect.gen(function* () {
      const changes = yield* Queue.unbounded<RunChange>();
      const traffic = Option.some(
        Context.get(Context.make(Traffic, { status: Effect.never, changes: Stream.fromQueue(changes) }), Traffic),
      );
      const { next } = yield* listening(traffic);
      yield* next(0);
      yield* next(Feed.gatherMs);
      for (const run_id of ["a", "b", "a"]) yield* Queue.offer(changes, { run_id, what: "AttemptStarted" });
      assert.strictEqual(yield* next(Feed.gatherMs), 'data: {"runs":["a","b"]}\n\n');
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );

  it.effect("stops polling when its reader has left", () =>
    Effect.gen(function* () {
      const recorder = yield* RunRecorder;
      let looks = 0;
      const counted: RunRecorder["Service"] = {
        ...recorder,
        runs: (query) => {
          looks += 1;
          return recorder.runs(query);
        },
      };
      const { next, reader } = yield* Effect.provideService(listening(), RunRecorder, counted);
      yield* next(0);
      yield* next(Feed.lookMs);
      yield* Effect.promise(() => reader.cancel());
      const before = looks;
      yield* TestClock.adjust(Feed.lookMs * 10);
      assert.isAbove(before, 0);
      assert.strictEqual(looks, before);
    }).pipe(Effect.scoped, Effect.provide(memory)),
  );
});
