/** Law L8 for a consumer that pulls with a timeout: whatever becomes of a pull, nothing is handed over before it is on record. */
import { assert, describe, it } from "@effect/vitest";
import { Cause, Clock, Deferred, Effect, Exit, Fiber, Layer, Option, type Scope, Stream } from "effect";
import { TestClock } from "effect/testing";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import type { Entry } from "../../../src/recorder/RunRecord.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { RunEvent, RunInterrupted } from "../../../src/runtime/contract/RunEvent.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../Scripted.ts";

const headless = UserDecisions.layerHeadless();

const pay = { name: "pay", executor: "runtime", effect: "mutating" } as const;

/** A store that takes as long as the test says, and does then what the test says, with what a hand-over writes first; and until then again. */
const slow = (
  handOver: Effect.Effect<void, RecorderError>,
  { awayMs = 0, decisions = headless }: { awayMs?: number; decisions?: typeof headless } = {},
) => {
  const written: Array<Entry> = [];
  const tags = () => written.map(({ _tag }) => _tag);
  const isHandOver = (entries: ReadonlyArray<Entry>) =>
    entries.some(({ _tag }) => _tag === "CallHandedOver") ||
    entries.every(({ _tag }) => _tag === "FactsRaised" || _tag === "EvidenceNoted");
  let first = true;
  const recorder = Layer.effect(
    RunRecorder,
    Effect.map(RunRecorder, (it) => ({
      ...it,
      durable: true,
      write: (runId: string, entries: ReadonlyArray<Entry>) => {
        const write = Effect.tap(it.write(runId, entries), () => Effect.sync(() => written.push(...entries)));
        return Effect.flatMap(Clock.currentTimeMillis, (now) => {
          if (!(first || now < awayMs) || !isHandOver(entries)) return write;
          first = false;
          return Effect.andThen(handOver, write);
        });
      },
    })),
  ).pipe(Layer.provide(RunRecorder.layerMemory()));
  const layer = StreamProcessor.layer.pipe(Layer.provideMerge(Layer.merge(recorder, decisions)));
  return { layer, tags };
};

const away = Effect.fail(new RecorderError({ reason: "unavailable", run_id: "r", message: "away" }));

type Event = RunEvent<S.ScriptedPart>;
type Pull = Effect.Effect<ReadonlyArray<Event>, RunInterrupted | Cause.Done>;

const pulling = (
  script: ReadonlyArray<S.Step>,
  more: Parameters<typeof S.options>[1] = {},
): Effect.Effect<Pull, never, StreamProcessor | Scope.Scope> =>
  Effect.gen(function* () {
    const options = S.options(S.scripted(script), { runId: "r", tools: [pay], ...more });
    return yield* Stream.toPull((yield* StreamProcessor).run(options));
  });

/** Pulls until a call comes, each pull given up after so many milliseconds; the events, and how often it was given up. */
const untilCall = (pull: Pull, ms: number, onCall: () => void) =>
  Effect.gen(function* () {
    const events: Array<Event> = [];
    let timeouts = 0;
    while (timeouts < 100) {
      const taken = yield* Effect.timeoutOption(pull, ms);
      if (Option.isNone(taken)) timeouts += 1;
      else {
        events.push(...taken.value);
        if (taken.value.some((event) => event._tag === "Part" && event.calls !== undefined)) {
          onCall();
          return { events, timeouts };
        }
      }
    }
    return { events, timeouts };
  });

/** Runs an effect under the virtual clock. */
const timed = <A, E, R>(effect: Effect.Effect<A, E, R>) =>
  Effect.gen(function* () {
    const fiber = yield* Effect.forkChild(effect);
    yield* TestClock.adjust("1 hour");
    return yield* Fiber.await(fiber);
  });

describe("L8 a consumer that pulls with a timeout", () => {
  it.effect("is handed the call once its write has ended, and one write is enough", () => {
    const { layer, tags } = slow(Effect.sleep(900));
    let onRecord = false;
    return Effect.gen(function* () {
      const pull = yield* pulling([S.callReady("pay"), S.never]);
      const exit = yield* timed(untilCall(pull, 100, () => (onRecord = tags().includes("CallHandedOver"))));
      assert.isTrue(Exit.isSuccess(exit) && exit.value.timeouts >= 8);
      assert.isTrue(onRecord);
      assert.lengthOf(
        tags().filter((tag) => tag === "CallHandedOver"),
        1,
      );
    }).pipe(Effect.scoped, Effect.provide(layer));
  });

  it.effect("is handed at once what was written while it did not pull", () => {
    const { layer, tags } = slow(Effect.sleep(900));
    return Effect.gen(function* () {
      const pull = yield* pulling([S.callReady("pay"), S.never]);
      yield* Effect.forkChild(Effect.timeoutOption(Effect.andThen(pull, pull), 100));
      yield* TestClock.adjust("1 minute");
      assert.include(tags(), "CallHandedOver");
      const [event] = yield* pull;
      assert.strictEqual(event?._tag, "Part");
    }).pipe(Effect.scoped, Effect.provide(layer));
  });

  it.effect("has two pulls at once: both wait for the write, one gets the part", () => {
    const { layer, tags } = slow(Effect.sleep(900));
    return Effect.gen(function* () {
      const pull = yield* pulling([S.callReady("pay"), S.never]);
      yield* pull;
      const one = yield* Effect.forkChild(Effect.timeoutOption(pull, "1 second"));
      yield* TestClock.adjust(10);
      const other = yield* Effect.forkChild(Effect.timeoutOption(pull, "1 second"));
      yield* TestClock.adjust(500);
      assert.isUndefined(one.pollUnsafe());
      assert.isUndefined(other.pollUnsafe());
      yield* TestClock.adjust("1 minute");
      const taken = [yield* Fiber.join(one), yield* Fiber.join(other)];
      assert.lengthOf(taken.filter(Option.isSome), 1);
      assert.lengthOf(
        tags().filter((tag) => tag === "CallHandedOver"),
        1,
      );
    }).pipe(Effect.scoped, Effect.provide(layer));
  });

  it.effect("is never handed a call whose write fails after it gave up its pull", () => {
    const { layer, tags } = slow(Effect.andThen(Effect.sleep(900), away), { awayMs: 7_000 });
    let handed = false;
    return Effect.gen(function* () {
      const pull = yield* pulling([S.callReady("pay"), S.never]);
      const exit = yield* timed(untilCall(pull, 100, () => (handed = true)));
      assert.isFalse(handed);
      assert.isTrue(Exit.isFailure(exit));
      assert.strictEqual(S.errorOf(exit)?._tag, "RunInterrupted");
      assert.include(tags(), "IncidentOpened");
    }).pipe(Effect.scoped, Effect.provide(layer));
  });

  it.effect("is handed text all the same when the store is away", () => {
    const { layer } = slow(Effect.andThen(Effect.sleep(900), away));
    return Effect.gen(function* () {
      const pull = yield* pulling([S.text("hello"), S.done]);
      const events: Array<Event> = [];
      const exit = yield* timed(
        Effect.gen(function* () {
          for (let n = 0; n < 50; n += 1) {
            const taken = yield* Effect.timeoutOption(pull, 100);
            events.push(...Option.getOrElse(taken, () => []));
          }
        }),
      );
      assert.deepStrictEqual(events.map(S.line), ["attempt 1 first", "hello", "done", "completed"]);
      assert.isTrue(Exit.isFailure(exit) && Cause.hasFails(exit.cause));
    }).pipe(Effect.scoped, Effect.provide(layer));
  });
});

describe("L8 a run that is stopped while the hand-over of its call is written", () => {
  /** Pulls every 100 ms until the run has ended, and cancels it in the middle of the write. */
  const cancelled = (script: ReadonlyArray<S.Step>, tags: () => ReadonlyArray<string>) =>
    Effect.gen(function* () {
      const pull = yield* pulling(script);
      const events: Array<Event & { readonly behind?: boolean }> = [];
      const fiber = yield* Effect.forkChild(
        Effect.gen(function* () {
          for (let n = 0; n < 100; n += 1) {
            const taken = Option.getOrElse(yield* Effect.timeoutOption(pull, 100), () => []);
            events.push(...taken.map((event) => ({ ...event, behind: tags().includes("CallHandedOver") })));
          }
        }),
      );
      yield* TestClock.adjust(250);
      yield* (yield* StreamProcessor).cancel("r");
      yield* TestClock.adjust("1 minute");
      return { events, exit: yield* Fiber.await(fiber) };
    });

  it.effect("does not hand it over, and is decided behind the write", () => {
    const { layer, tags } = slow(Effect.sleep(900));
    return Effect.gen(function* () {
      const { events, exit } = yield* cancelled([S.callReady("pay"), S.never], tags);
      assert.deepStrictEqual(events.map(S.line), ["attempt 1 first"]);
      const error = S.errorOf(exit);
      assert.strictEqual(error?._tag === "RunInterrupted" ? error.rule : undefined, "user_cancelled");
      const order = tags().filter((tag) => tag === "CallHandedOver" || tag === "IncidentOpened" || tag === "RunEnded");
      assert.deepStrictEqual(order, ["CallHandedOver", "IncidentOpened", "RunEnded"]);
    }).pipe(Effect.scoped, Effect.provide(layer));
  });

  it.effect("hands it over behind the write where the response was whole", () => {
    const { layer, tags } = slow(Effect.sleep(900));
    return Effect.gen(function* () {
      const { events } = yield* cancelled([S.together(S.callReady("pay"), S.done), S.never], tags);
      assert.deepStrictEqual(events.map(S.line), ["attempt 1 first", "pay:ready", "done", "completed"]);
      assert.isTrue(events.find((event) => event._tag === "Part")?.behind);
    }).pipe(Effect.scoped, Effect.provide(layer));
  });

  it.effect("hands over behind its write what an error came with, where the response was whole", () => {
    const { layer, tags } = slow(Effect.sleep(900));
    let onRecord = false;
    return Effect.gen(function* () {
      const late = S.errorEvent({ kind: "server_error" });
      const pull = yield* pulling([S.together(S.callReady("pay"), S.done, late)]);
      const taken = yield* timed(untilCall(pull, 100, () => (onRecord = tags().includes("CallHandedOver"))));
      assert.isTrue(Exit.isSuccess(taken) && onRecord);
    }).pipe(Effect.scoped, Effect.provide(layer));
  });

  it.effect("of a consumer that leaves meanwhile ends behind the write", () => {
    const { layer, tags } = slow(Effect.sleep(900));
    return Effect.gen(function* () {
      const started = yield* Deferred.make<void>();
      const leaving = Effect.gen(function* () {
        const pull = yield* pulling([S.callReady("pay"), S.never]);
        yield* pull;
        yield* Deferred.succeed(started, undefined);
        yield* Effect.timeoutOption(pull, 100);
      });
      const fiber = yield* Effect.forkChild(Effect.scoped(leaving));
      yield* Deferred.await(started);
      yield* TestClock.adjust("1 minute");
      yield* Fiber.join(fiber);
      const order = tags().filter((tag) => tag === "CallHandedOver" || tag === "RunEnded");
      assert.deepStrictEqual(order, ["CallHandedOver", "RunEnded"]);
    }).pipe(Effect.provide(layer));
  });
});
