/**
 * The queue of volatile runs: order, groups, limits, and its remaining entries when a process ends (L8, L11).
 */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Context, Deferred, Effect, Exit, Fiber, Layer, Metric, References, Scope } from "effect";
import { TestClock } from "effect/testing";
import { RecorderError } from "../../src/recorder/RecorderError.ts";
import type { Entry } from "../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../src/recorder/RunRecorder.ts";
import * as Queue from "../../src/recorder/WriteQueue.ts";
import * as FreezingClock from "../simulation/world/FreezingClock.ts";
import * as E from "./Entries.ts";

type Recorder = RunRecorder["Service"];
type Written = { readonly runId: string; readonly tags: ReadonlyArray<string> };

const failure = (reason: RecorderError["reason"], entry?: number) =>
  new RecorderError({ reason, run_id: "r", message: reason, ...(entry === undefined ? {} : { entry }) });

/** A durable store whose writes the test answers, behind a queue. Its reads arrive `readMs` after the store made them. */
const queued = (
  answer: (written: Written, nth: number) => Effect.Effect<void, RecorderError> = () => Effect.void,
  spill?: Queue.Spill,
  readMs = 0,
) =>
  Effect.gen(function* () {
    const memory = Context.get(
      yield* Layer.build(Layer.fresh(RunRecorder.layerMemory({ runsMax: 100_000 }))),
      RunRecorder,
    );
    const writes: Array<Written> = [];
    const recorder: Recorder = {
      ...memory,
      durable: true,
      run: (runId) => Effect.tap(memory.run(runId), Effect.sleep(readMs)),
      runs: (query) => Effect.tap(memory.runs(query), Effect.sleep(readMs)),
      write: (runId, entries) => {
        const written = { runId, tags: entries.map(({ _tag }) => _tag) };
        writes.push(written);
        return Effect.andThen(answer(written, writes.length), memory.write(runId, entries));
      },
    };
    const scope = Scope.makeUnsafe();
    const layer = Queue.WriteQueue.wrap(Layer.succeed(RunRecorder, recorder), spill).pipe(
      Layer.provideMerge(Layer.succeed(References.MinimumLogLevel, "None")),
    );
    const services = yield* Layer.buildWithScope(layer, scope);
    const queue = Context.get(services, Queue.WriteQueue);
    return { memory, writes, queue, seen: Context.get(services, RunRecorder), close: Scope.close(scope, Exit.void) };
  });

const happy = (id: string): ReadonlyArray<Entry> => [
  E.begun(id),
  E.attempt(1),
  E.raised(1, { shown: "text" }),
  E.ended(),
];

describe("The write queue", () => {
  it.effect("writes a short run once, in the order of its events, and reads see it earlier", () =>
    Effect.gen(function* () {
      const { memory, queue, seen, writes } = yield* queued();
      for (const entry of happy("r")) queue.add("r", [entry]);
      assert.lengthOf(writes, 0);
      assert.strictEqual((yield* seen.run("r"))?.end?.reason, "stop");
      assert.deepStrictEqual(
        (yield* seen.runs()).map(({ run_id }) => run_id),
        ["r"],
      );
      assert.isUndefined(yield* memory.run("r"));
      yield* TestClock.adjust(2 * Queue.behindMs);
      assert.deepStrictEqual(writes, [
        { runId: "r", tags: ["RunStarted", "AttemptStarted", "FactsRaised", "RunEnded"] },
      ]);
      assert.deepStrictEqual(yield* memory.run("r"), E.folded(happy("r")));
      assert.deepStrictEqual([queue.size, queue.bytes], [0, 0]);
    }),
  );

  it.effect("shows a run to a read that the store made before the write, and that arrives after it", () =>
    Effect.gen(function* () {
      const { memory, queue, seen } = yield* queued(undefined, undefined, 2 * Queue.behindMs);
      queue.add("older", happy("older").slice(0, 2));
      yield* TestClock.adjust(2 * Queue.behindMs);
      queue.add("older", happy("older").slice(2));
      queue.add("newer", happy("newer"));
      const asked = [seen.run("older"), seen.run("newer"), seen.runs(), seen.runs({ limit: 1 })] as const;
      const reads = yield* Effect.forkChild(Effect.all(asked, { concurrency: "unbounded" }), {
        startImmediately: true,
      });
      assert.isUndefined(yield* memory.run("newer"));
      yield* TestClock.adjust(2 * Queue.behindMs);
      assert.strictEqual(queue.size, 0, "the queue has written all of it");
      const [older, newer] = [E.folded(happy("older")), E.folded(happy("newer"))];
      assert.deepStrictEqual(yield* Fiber.join(reads), [older, newer, [newer, older], [newer]]);
    }),
  );

  it.effect("lists a page of the newest runs, also while the store has just written older ones", () =>
    Effect.gen(function* () {
      const { memory, queue, seen } = yield* queued(undefined, undefined, 1);
      const runs = ["first", "second", "third"].map(
        (id, at) => [id, [E.begun(id, at), ...happy(id).slice(1)]] as const,
      );
      for (const [id, entries] of runs) queue.add(id, entries);
      // The store has committed the runs; the queue does not know it yet.
      for (const [id, entries] of runs) yield* memory.write(id, entries);
      const read = yield* Effect.forkChild(seen.runs({ limit: 2 }), { startImmediately: true });
      yield* TestClock.adjust(1);
      const page = yield* Fiber.join(read);
      assert.deepStrictEqual(
        page.map(({ run_id }) => run_id),
        ["third", "second"],
      );
    }),
  );

  for (const reason of ["locked", "disk_full"] as const)
    it.effect(`records the runs of an outage in the order in which they began, if the store is ${reason}`, () =>
      Effect.gen(function* () {
        let isAway = true;
        const { memory, queue } = yield* queued(() => (isAway ? Effect.fail(failure(reason)) : Effect.void));
        const ids = ["first", "second", "third"];
        for (const [at, id] of ids.entries()) {
          queue.add(id, [E.begun(id, at), ...happy(id).slice(1)]);
          yield* TestClock.adjust(700);
        }
        isAway = false;
        yield* TestClock.adjust("10 seconds");
        assert.deepStrictEqual(
          (yield* memory.runs()).map(({ run_id }) => run_id),
          ids.toReversed(),
        );
      }),
    );

  it.effect("writes a longer run twice, and only the newest of facts that grow", () =>
    Effect.gen(function* () {
      const { queue, writes } = yield* queued();
      queue.add("r", [E.begun("r"), E.attempt(1)]);
      for (const parts of [1, 2, 3]) queue.add("r", [E.raised(1, { text_through: parts })]);
      yield* TestClock.adjust("10 seconds");
      queue.add("r", [E.raised(1, { text_through: 4 }), E.ended()]);
      yield* TestClock.adjust("10 seconds");
      assert.deepStrictEqual(
        writes.map(({ tags }) => tags),
        [
          ["RunStarted", "AttemptStarted", "FactsRaised"],
          ["FactsRaised", "RunEnded"],
        ],
      );
    }),
  );

  it.effect("keeps the order of a run over writes that hang, fail and return", () =>
    Effect.gen(function* () {
      const gate = Deferred.makeUnsafe<void>();
      const { memory, queue } = yield* queued((_, nth) =>
        nth === 1 ? Deferred.await(gate) : nth === 2 ? Effect.fail(failure("locked")) : Effect.void,
      );
      const [started, ...rest] = E.life("r");
      queue.add("r", started === undefined ? [] : [started]);
      yield* TestClock.adjust(2 * Queue.behindMs);
      for (const entry of rest) queue.add("r", [entry]);
      assert.isUndefined(yield* memory.run("r"));
      yield* Deferred.succeed(gate, undefined);
      yield* TestClock.adjust("1 minute");
      assert.deepStrictEqual(yield* memory.run("r"), E.folded(E.life("r")));
    }),
  );

  it.effect("reports to a waiter at once when the whole run is on record, and false if it is refused or late", () =>
    Effect.gen(function* () {
      const reasons: Array<RecorderError["reason"]> = [];
      const { queue } = yield* queued(({ runId }) => {
        const reason = runId === "refused" ? "fenced" : runId === "away" ? "unavailable" : undefined;
        if (reason !== undefined) reasons.push(reason);
        return reason === undefined ? Effect.void : Effect.fail(failure(reason));
      });
      const waited = (id: string) => {
        queue.add(id, [E.begun(id)]);
        return Effect.forkChild(queue.awaitRecorded(id, 5_000), { startImmediately: true });
      };
      const good = yield* waited("r");
      yield* TestClock.adjust(0);
      assert.deepStrictEqual(good.pollUnsafe(), Exit.succeed(true));
      const refused = yield* waited("refused");
      yield* TestClock.adjust(0);
      assert.deepStrictEqual(refused.pollUnsafe(), Exit.succeed(false));
      assert.isFalse(yield* queue.awaitRecorded("refused", 1), "also afterwards");
      const late = yield* waited("away");
      yield* TestClock.adjust(4_999);
      assert.isUndefined(late.pollUnsafe());
      yield* TestClock.adjust(1);
      assert.deepStrictEqual(late.pollUnsafe(), Exit.succeed(false));
      assert.isTrue(yield* queue.awaitRecorded("never heard of", 1));
    }),
  );

  it.effect("drops an entry that can never be read back, and writes the others", () =>
    Effect.gen(function* () {
      const { memory, queue } = yield* queued(({ tags }) =>
        tags.includes("RunWaited") ? Effect.fail(failure("invalid", tags.indexOf("RunWaited"))) : Effect.void,
      );
      queue.add("r", [E.begun("r"), { _tag: "RunWaited", waited_ms: 1 }, E.attempt(1)]);
      yield* TestClock.adjust("1 second");
      assert.lengthOf((yield* memory.run("r"))?.attempts ?? [], 1);
      assert.deepStrictEqual([queue.size, queue.bytes], [0, 0]);
    }),
  );

  it.effect("continues if the store throws, and writes nothing more of a run that it refuses", () =>
    Effect.gen(function* () {
      const { memory, queue, writes } = yield* queued(({ runId }, nth) => {
        if (nth === 1) throw new Error("a recorder of another author");
        return runId === "refused" ? Effect.fail(failure("run_exists")) : Effect.void;
      });
      queue.add("r", happy("r"));
      queue.add("refused", [E.begun("refused")]);
      yield* TestClock.adjust("10 seconds");
      assert.isDefined(yield* memory.run("r"));
      const before = writes.length;
      queue.add("refused", [E.attempt(1), E.ended()]);
      yield* TestClock.adjust("10 seconds");
      assert.deepStrictEqual([writes.length, queue.size, queue.bytes], [before, 0, 0]);
    }),
  );

  it.effect("considers a store away after ten seconds in which none of the due writes succeeded", () =>
    Effect.gen(function* () {
      let isAway = true;
      const { memory, queue } = yield* queued(() => (isAway ? Effect.fail(failure("unavailable")) : Effect.void));
      yield* TestClock.adjust("1 hour");
      assert.isFalse(queue.isAway, "nothing is due");
      queue.add("r", happy("r"));
      yield* TestClock.adjust(Queue.awayMs);
      assert.isFalse(queue.isAway);
      yield* TestClock.adjust(2 * Queue.behindMs);
      assert.isTrue(queue.isAway);
      isAway = false;
      yield* TestClock.adjust("10 seconds");
      assert.isFalse(queue.isAway);
      assert.isDefined(yield* memory.run("r"));
    }),
  );

  it.effect("tries a failing store with one run at a time, and less and less often", () =>
    Effect.gen(function* () {
      const { queue, writes } = yield* queued(() => Effect.fail(failure("unavailable")));
      for (let n = 0; n < 100; n += 1) queue.add(`r${n}`, [E.begun(`r${n}`)]);
      yield* TestClock.adjust("1 second");
      const first = writes.length;
      yield* TestClock.adjust("1 minute");
      assert.isAtMost(writes.length - first, 40);
      assert.isAtLeast(new Set(writes.slice(first).map(({ runId }) => runId)).size, 5, "not one run alone");
    }),
  );

  it.effect("does not count time in which the process stood still as waiting", () =>
    Effect.gen(function* () {
      const clock = FreezingClock.make(yield* Clock.Clock);
      const eightHours = 8 * 3_600_000;
      // The first write fails, and so do those in an outage of a minute in which the process sleeps.
      const { memory, queue } = yield* queued((_written, nth) =>
        nth === 1 || (nth > 2 && nth < 6) ? Effect.fail(failure("unavailable")) : Effect.void,
      ).pipe(Effect.provideService(Clock.Clock, clock));
      queue.add("first", happy("first"));
      yield* TestClock.adjust(1);
      clock.jump(eightHours, eightHours);
      yield* TestClock.adjust("2 seconds");
      assert.isDefined(yield* memory.run("first"));
      queue.add("second", happy("second"));
      yield* TestClock.adjust("1 second");
      assert.isUndefined(yield* memory.run("second"));
      clock.jump(eightHours, eightHours);
      queue.add("third", happy("third"));
      yield* TestClock.adjust("5 seconds");
      assert.isDefined(yield* memory.run("second"));
      assert.isDefined(yield* memory.run("third"));
    }),
  );

  it.effect("abandons entries that waited for ten minutes, and writes younger ones", () =>
    Effect.gen(function* () {
      let isAway = true;
      const { memory, queue } = yield* queued(() => (isAway ? Effect.fail(failure("unavailable")) : Effect.void));
      queue.add("old", happy("old"));
      yield* TestClock.adjust("9 minutes");
      queue.add("young", happy("young"));
      yield* TestClock.adjust("2 minutes");
      isAway = false;
      yield* TestClock.adjust("1 minute");
      assert.deepStrictEqual(
        (yield* memory.runs()).map(({ run_id }) => run_id),
        ["young"],
      );
      assert.deepStrictEqual([queue.size, queue.bytes], [0, 0]);
    }),
  );

  it.effect("keeps 10,000 runs through almost ten minutes without a store, and records all of them", () =>
    Effect.gen(function* () {
      let isAway = true;
      const { memory, queue } = yield* queued(() => (isAway ? Effect.fail(failure("unavailable")) : Effect.void));
      const notes = Array.from({ length: 6 }, () => E.noted(1));
      for (let n = 0; n < 10_000; n += 1) {
        const [begins, ...rest] = happy(`r${n}`);
        queue.add(`r${n}`, [...(begins === undefined ? [] : [begins]), ...notes, ...rest]);
        if (n % 100 === 99) yield* TestClock.adjust("5900 millis");
      }
      assert.isBelow(queue.bytes, Queue.queueBytesMax);
      isAway = false;
      while (queue.size > 0) yield* TestClock.adjust("1 second");
      const kept = yield* memory.runs({ limit: 20_000 });
      assert.lengthOf(kept, 10_000);
      assert.isTrue(kept.every(({ end }) => end?.state === "completed"));
    }),
  );

  it.effect(
    "stays below its size: evidence is dropped first, then runs that ended here, and the ends of others last (L11)",
    () =>
      Effect.gen(function* () {
        let isAway = false;
        const { memory, queue } = yield* queued(() => (isAway ? Effect.fail(failure("unavailable")) : Effect.void));
        queue.add("known", [E.begun("known"), E.attempt(1)]);
        yield* TestClock.adjust("1 second");
        isAway = true;
        queue.add("known", [E.noted(1), E.ended()]);
        const lost = Metric.withAttributes(Queue.lostEntries, { "stream_recovery.reason": "overflow" });
        const before = (yield* Metric.value(lost)).count;
        let highest = 0;
        for (let n = 0; n < 40_000; n += 1) {
          queue.add(`r${n}`, [E.begun(`r${n}`), E.attempt(1), E.noted(1), ...(n % 2 === 0 ? [E.ended()] : [])]);
          highest = Math.max(highest, queue.bytes);
        }
        assert.isAtMost(highest, Queue.queueBytesMax + 16_384);
        isAway = false;
        while (queue.size > 0) yield* TestClock.adjust("1 second");
        const kept = yield* memory.runs({ limit: 100_000 });
        const { end, evidence } = kept.find(({ run_id }) => run_id === "known") ?? {};
        assert.deepStrictEqual([end?.state, evidence?.first], ["completed", []]);
        assert.isAbove((yield* Metric.value(lost)).count, before);
        assert.isNotEmpty(
          kept.filter(({ state }) => state === "live"),
          "what has not ended stays longer than what has",
        );
        assert.strictEqual(queue.bytes, 0);
      }),
  );

  it.live("writes what is left when it closes, and spills what the store refuses", () =>
    Effect.gen(function* () {
      const taken = yield* queued();
      taken.queue.add("r", happy("r"));
      yield* taken.close;
      assert.isDefined(yield* taken.memory.run("r"));
      const spilled: Array<Queue.Unwritten> = [];
      const kept = yield* queued(
        () => Effect.fail(failure("unavailable")),
        (unwritten) =>
          Effect.sync(() => {
            spilled.push(...unwritten);
            return 0;
          }),
      );
      kept.queue.add("r", happy("r"));
      yield* kept.close;
      assert.deepStrictEqual(spilled, [{ runId: "r", entries: happy("r") }]);
    }),
  );
});
