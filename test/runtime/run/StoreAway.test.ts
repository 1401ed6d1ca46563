/**
 * A run while its store is away, and its record once the store is back (L7, L8): text continues, acts wait, and nothing is lost.
 * Also a run whose store reports that it belongs to another process.
 */
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Exit, Layer, Metric, Scope, Stream } from "effect";
import { TestClock } from "effect/testing";
import * as Observation from "../../../src/domain/Observation.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { Backlog, backlogRunsMax, type Written } from "../../../src/runtime/run/Backlog.ts";
import { storeWaitMs } from "../../../src/runtime/run/RunWriter.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";
import type { Fault } from "./FaultyStore.ts";
import { away, bench, between, failing, has } from "./StoreBench.ts";

describe("While the store is away", () => {
  const text = [S.start, S.text("a"), S.wait(1_000), S.text("c"), S.done];

  it.effect("text continues and the run completes; its end comes on record by time alone, marked as unrecorded", () =>
    Effect.gen(function* () {
      const it = yield* bench({ script: text, fault: between(500, 20_000) });
      yield* TestClock.adjust("10 seconds");
      assert.deepStrictEqual(it.lines, ["attempt 1 first", "start", "a", "c", "done", "completed"]);
      assert.strictEqual((yield* it.record)?.state, "live");
      yield* TestClock.adjust("30 seconds");
      const record = yield* it.record;
      assert.deepInclude(record?.end, { state: "completed", attempts: 1 });
      const noted = (record?.evidence.first ?? []).map(({ detail, event }) => `${event} ${detail}`);
      assert.include(noted, "shown unrecorded");
    }).pipe(Effect.scoped),
  );

  it.effect("the end is written when the processor closes", () =>
    Effect.gen(function* () {
      let gone = false;
      const it = yield* bench({ script: text, fault: (_write, now) => (now >= 500 && !gone ? away : undefined) });
      yield* TestClock.adjust(1_001);
      assert.strictEqual(it.lines.at(-1), "completed");
      gone = true;
      const closing = yield* it.close;
      yield* TestClock.adjust(1);
      assert.isDefined(closing.pollUnsafe());
      assert.strictEqual((yield* it.record)?.end?.state, "completed");
    }).pipe(Effect.scoped),
  );

  it.effect("a closing processor gives up after its limit", () =>
    Effect.gen(function* () {
      const it = yield* bench({ script: text, fault: between(500, Number.POSITIVE_INFINITY) });
      yield* TestClock.adjust(1_001);
      const closing = yield* it.close;
      yield* TestClock.adjust("4 seconds");
      assert.isDefined(closing.pollUnsafe());
    }).pipe(Effect.scoped),
  );

  it.effect(
    "a question that it does not accept in time is not asked, and its default is recorded when it is back",
    () =>
      Effect.gen(function* () {
        const script = [S.start, S.text("a"), S.wait(1_000), S.reset];
        const it = yield* bench({ script, fault: between(500, 20_000) });
        yield* TestClock.adjust("10 seconds");
        assert.strictEqual(it.lines.at(-1), "end stopped");
        yield* TestClock.adjust("1 minute");
        const { end, questions, state } = (yield* it.record) ?? {};
        assert.deepStrictEqual([state, end?.state], ["ended", "stopped"]);
        assert.deepInclude(questions?.[0], { answer: "stop", answered_by: "expiry" });
      }).pipe(Effect.scoped),
  );

  const call = [S.start, S.text("a"), S.wait(1_000), S.callReady("bash"), S.wait(60_000), S.done];

  it.effect("a tool waits for it and starts when it is back, but not after its limit", () =>
    Effect.gen(function* () {
      const back = yield* bench({ script: call, fault: between(500, 3_000) });
      yield* TestClock.adjust(2_900);
      assert.deepStrictEqual(back.ran, []);
      yield* TestClock.adjust(1_000);
      assert.deepStrictEqual(back.ran, ["bash"]);
      const gone = yield* bench({ script: call, fault: between(500, 500 + 3 * storeWaitMs) });
      yield* TestClock.adjust(2 * storeWaitMs);
      assert.deepStrictEqual(gone.ran, ["refused"]);
    }).pipe(Effect.scoped),
  );

  it.effect("an unguarded call is handed over when it is back, but not after its limit", () =>
    Effect.gen(function* () {
      const back = yield* bench({ script: call, guarded: false, fault: between(500, 3_000) });
      yield* TestClock.adjust(2_900);
      assert.notInclude(back.lines, "bash:ready");
      yield* TestClock.adjust(1_000);
      assert.include(back.lines, "bash:ready");
      assert.isTrue(has(back.store.taken, "CallHandedOver"));
      const gone = yield* bench({ script: call, guarded: false, fault: between(500, 60_000) });
      yield* TestClock.adjust("2 minutes");
      assert.notInclude(gone.lines, "bash:ready");
    }).pipe(Effect.scoped),
  );

  it.effect("the last call of a whole response is not handed over either", () =>
    Effect.gen(function* () {
      const whole = [S.start, S.text("a"), S.wait(1_000), S.together(S.callReady("bash"), S.done)];
      const it = yield* bench({ script: whole, guarded: false, fault: between(500, 60_000) });
      yield* TestClock.adjust("5 minutes");
      assert.notInclude(it.lines, "bash:ready");
      assert.strictEqual(it.lines.at(-1), "end record_failed");
      assert.deepInclude((yield* it.record)?.end, { state: "stopped", reason: "record_failed" });
    }).pipe(Effect.scoped),
  );

  it.effect("a retry waits for it, and is made when it is back", () =>
    Effect.gen(function* () {
      const it = yield* bench({ script: [S.start, S.wait(1_000), S.reset], fault: between(500, 3_000) });
      yield* TestClock.adjust(2_900);
      assert.lengthOf(it.attempts, 1);
      yield* TestClock.adjust("10 seconds");
      assert.strictEqual(it.lines.at(-1), "completed");
      assert.deepInclude((yield* it.record)?.end, { state: "completed", attempts: 2 });
    }).pipe(Effect.scoped),
  );
});

describe("A run that another process has taken over", () => {
  it.effect("is not said to be complete if only its end reveals that", () =>
    Effect.gen(function* () {
      const fault = (_write: number, _now: number, entries: ReadonlyArray<Entry>) =>
        has(entries, "RunEnded") ? failing("fenced") : undefined;
      const it = yield* bench({ script: [S.start, S.text("a"), S.done], fault });
      yield* TestClock.adjust("1 minute");
      assert.deepStrictEqual(it.lines, ["attempt 1 first", "start", "a", "done", "end taken_over"]);
      assert.isFalse(has(it.store.taken, "RunEnded"));
    }).pipe(Effect.scoped),
  );

  it.effect("starts nothing more: no attempt, no tool, no call, and shows no more text", () =>
    Effect.gen(function* () {
      const fenced = between(500, Number.POSITIVE_INFINITY, failing("fenced"));
      const retried = yield* bench({ script: [S.start, S.wait(1_000), S.reset], fault: fenced });
      const called = yield* bench({
        script: [S.start, S.wait(1_000), S.callReady("bash"), S.text("c"), S.done],
        fault: fenced,
      });
      yield* TestClock.adjust("1 minute");
      assert.lengthOf(retried.attempts, 1);
      assert.strictEqual(retried.lines.at(-1), "end taken_over");
      assert.deepStrictEqual(called.lines, ["attempt 1 first", "start", "end taken_over"]);
      assert.deepStrictEqual(called.ran, []);
    }).pipe(Effect.scoped),
  );
});

describe("An end that a slow reader has not read yet", () => {
  const script = [S.start, S.text("a"), S.callReady("bash"), S.done];
  const busyMs = (line: string) => ({ done: 20_000, bash: 9_000 })[line] ?? 0;
  const fenced = between(5_000, Number.POSITIVE_INFINITY, failing("fenced"));

  it.effect("is withdrawn if the store was away for it and another process has the run by then", () =>
    Effect.gen(function* () {
      const fault = (write: number, now: number, entries: ReadonlyArray<Entry>) =>
        has(entries, "RunEnded") && !Number.isNaN(now) ? (fenced(write, now) ?? away) : undefined;
      const it = yield* bench({ script, fault, busyMs });
      yield* TestClock.adjust("1 minute");
      assert.strictEqual(it.lines.at(-1), "end taken_over");
      assert.notInclude(it.lines, "completed");
    }).pipe(Effect.scoped),
  );

  it.effect("is kept if it was on record before", () =>
    Effect.gen(function* () {
      const it = yield* bench({ script, fault: fenced, busyMs });
      yield* TestClock.adjust("1 minute");
      // The refused write was that of the call's outcome.
      assert.deepStrictEqual([it.ran, it.lines.at(-1)], [["bash"], "completed"]);
    }).pipe(Effect.scoped),
  );
});

describe("The backlog", () => {
  it.effect("is bounded: the oldest run is abandoned and counted", () =>
    Effect.gen(function* () {
      const backlog = yield* Backlog.make;
      const given: Array<number> = [];
      for (let run = 0; run <= backlogRunsMax; run += 1) {
        const flush: Effect.Effect<Written> = Effect.succeed("away");
        yield* backlog.add({ runId: `r${run}`, flush, giveUp: () => given.push(run) });
      }
      assert.deepStrictEqual(given, [0]);
      assert.strictEqual(backlog.size, backlogRunsMax);
      const lost = (yield* Metric.snapshot).filter(({ id }) => id === "stream_recovery.lost_entries");
      assert.isAbove(lost.length, 0);
    }).pipe(Effect.scoped),
  );
});

describe("An entry that could never be read back", () => {
  const invalid = (entry: number): Fault => {
    const message = "r: a value of the write cannot be read back";
    return () => Effect.fail(new RecorderError({ reason: "invalid", run_id: "r", message, entry }));
  };
  /** Refuses a write that contains such an entry, and names the first one. */
  const refusing =
    (refuses: (entry: Entry) => boolean) =>
    (_write: number, _now: number, entries: ReadonlyArray<Entry>): Fault | undefined => {
      const at = entries.findIndex(refuses);
      return at === -1 ? undefined : invalid(at);
    };
  const text = [S.start, S.text("a"), S.wait(1_000), S.done];

  it.effect("of evidence is left out alone: the rest of its write is recorded, and the run continues", () =>
    Effect.gen(function* () {
      const refuses = (it: Entry) => it._tag === "EvidenceNoted" && ["shown", "end"].includes(it.evidence.event);
      const it = yield* bench({ script: text, fault: refusing(refuses) });
      yield* TestClock.adjust("10 seconds");
      const record = yield* it.record;
      assert.strictEqual(it.lines.at(-1), "completed");
      assert.deepInclude(record?.end, { state: "completed", attempts: 1 });
      assert.strictEqual(record?.attempts[0]?.facts.shown, "text");
      const noted = (record?.evidence.first ?? []).map(({ event }) => event);
      assert.notIncludeMembers(noted, ["shown", "end"]);
    }).pipe(Effect.scoped),
  );

  it.effect("of an incident is left out alone: the end beside it is recorded, and nothing is retried", () =>
    Effect.gen(function* () {
      const it = yield* bench({
        script: [S.start, S.reset],
        fault: refusing(({ _tag }) => _tag === "IncidentOpened"),
      });
      yield* TestClock.adjust("1 minute");
      assert.strictEqual(it.attempts.length, 1);
      const record = yield* it.record;
      assert.strictEqual(record?.state, "ended");
      assert.deepStrictEqual(record?.incidents, []);
    }).pipe(Effect.scoped),
  );

  it.effect("of an announced act takes all of that with it: an attempt that did not start is not on record", () =>
    Effect.gen(function* () {
      const marks = (it: Entry) => it._tag === "IncidentMarked" && it.status === "acted_on";
      let marked = 0;
      const it = yield* bench({
        script: [S.start, S.reset],
        fault: refusing((entry) => {
          if (marks(entry)) marked += 1;
          return marks(entry);
        }),
      });
      yield* TestClock.adjust("1 minute");
      assert.isAbove(marked, 0);
      assert.strictEqual(it.attempts.length, 1);
      assert.strictEqual((yield* it.record)?.attempts.length, 1);
    }).pipe(Effect.scoped),
  );
});

describe("A run that its recorder reports as taken over", () => {
  it.effect("stops then, and not at its next write: nothing more is shown, and it is not said to be complete", () =>
    Effect.gen(function* () {
      const memory = Context.get(yield* Layer.build(Layer.fresh(RunRecorder.layerMemory())), RunRecorder);
      const listeners = new Set<(runId: string) => boolean>();
      const writes: Array<string> = [];
      const recorder: RunRecorder["Service"] = {
        ...memory,
        durable: true,
        write: (runId, entries) => {
          writes.push(...entries.map(({ _tag }) => _tag));
          return memory.write(runId, entries);
        },
        onLost: (listener) => {
          listeners.add(listener);
          return () => void listeners.delete(listener);
        },
      };
      const scope = Scope.makeUnsafe();
      const services = yield* Layer.buildWithScope(
        StreamProcessor.layer.pipe(
          Layer.provide(Layer.succeed(RunRecorder, recorder)),
          Layer.provide(Layer.succeed(UserDecisions, { ask: () => Effect.succeed("parked" as const) })),
        ),
        scope,
      );
      const lines: Array<string> = [];
      const provider = S.scripted([S.start, S.text("a"), S.wait(1_000), S.text("b"), S.wait(1_000), S.done]);
      const options = S.options(provider, { runId: "r", transcript: "t" });
      const consumed = Stream.runForEach(Context.get(services, StreamProcessor).run(options), (event) =>
        Effect.sync(() => void lines.push(S.line(event))),
      );
      const fiber = yield* Effect.forkDetach(Effect.exit(consumed), { startImmediately: true });
      while (!lines.includes("a")) yield* TestClock.adjust(1);
      const before = writes.length;
      assert.deepStrictEqual(
        [...listeners].map((tell) => [tell("another"), tell("r")]),
        [[false, true]],
      );
      yield* TestClock.adjust("10 seconds");
      const exit = fiber.pollUnsafe();
      assert.isDefined(exit, "the stream has ended");
      assert.deepStrictEqual(lines, ["attempt 1 first", "start", "a"]);
      assert.strictEqual(writes.length, before, "what another process drives is not written");
      yield* Scope.close(scope, Exit.void);
      assert.strictEqual(listeners.size, 0);
    }),
  );

  // The marker's protocol has one more event, so the end of the run hands over the whole response, not its attempt.
  const last: S.Step = { part: { name: "done", says: { ...Observation.terminal("stop"), closes: "later" } } };
  const responses = { "a text": [S.text("a"), last], "a call": [S.text("a"), S.callReady("pay"), last] };
  for (const [name, response] of Object.entries(responses)) {
    it.effect(`shows nothing of ${name} whose facts the store accepted before that`, () =>
      Effect.gen(function* () {
        const memory = Context.get(yield* Layer.build(Layer.fresh(RunRecorder.layerMemory())), RunRecorder);
        const listeners: Array<(runId: string) => boolean> = [];
        const tell = Effect.sync(() => listeners.splice(0).map((listener) => listener("r")));
        const isShown = (entry: Entry) => entry._tag === "FactsRaised" && entry.facts.shown !== "nothing";
        const recorder: RunRecorder["Service"] = {
          ...memory,
          durable: true,
          write: (runId, entries) =>
            Effect.andThen(memory.write(runId, entries), entries.some(isShown) ? tell : Effect.void),
          onLost: (listener) => {
            listeners.push(listener);
            return () => undefined;
          },
        };
        const services = yield* S.servicesOver(recorder);
        const options = S.options(S.scripted([S.start, ...response]), {
          runId: "r",
          reveal: "on_complete",
          tools: [{ name: "pay", executor: "runtime", effect: "mutating" }],
        });
        const seen = yield* S.played(Context.get(services, StreamProcessor).run(options));
        assert.strictEqual(listeners.length, 0, "the run was told");
        assert.deepStrictEqual(seen.lines, ["attempt 1 first", "end taken_over lifecycle_closed"]);
      }).pipe(Effect.scoped),
    );
  }
});

describe("A run that is stopped in the step of one of its writes", () => {
  for (const isAway of [false, true]) {
    it.effect(
      `writes its end after that write${isAway ? ", even if its start had waited for the store" : ""} (L7)`,
      () =>
        Effect.gen(function* () {
          for (let at = 1; at <= 3; at += 1) {
            const signal = new AbortController();
            const fault = (write: number, now: number): Fault | undefined => {
              // The store's own code runs in this step, before the write waits for anything.
              if (write === at && Number.isNaN(now)) signal.abort();
              return isAway && write === 1 && !Number.isNaN(now) ? away : undefined;
            };
            const script = [S.wait(600), S.start, S.text("a"), S.wait(1_000), S.done];
            const it = yield* bench({ script, fault, more: { signal: signal.signal } });
            yield* TestClock.adjust("1 minute");
            const where = `write ${at}: ${it.lines}`;
            assert.isTrue(signal.signal.aborted, where);
            const record = yield* it.record;
            assert.strictEqual(record?.state, "ended", where);
            assert.strictEqual(it.store.taken[0]?._tag, "RunStarted", where);
            assert.strictEqual(
              it.store.taken.findLast(({ _tag }) => _tag !== "EvidenceNoted")?._tag,
              "RunEnded",
              where,
            );
          }
        }).pipe(Effect.scoped),
    );
  }
});
