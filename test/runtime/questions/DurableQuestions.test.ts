import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Fiber, Layer } from "effect";
import { TestClock } from "effect/testing";
import type { Question } from "../../../src/recorder/Question.ts";
import { RecorderError } from "../../../src/recorder/RecorderError.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { Word } from "../../../src/recorder/shared/SharedFacts.ts";
import * as CrashRecovery from "../../../src/runtime/crash/CrashRecovery.ts";
import { parkAfterMsDefault, pollMsDefault } from "../../../src/runtime/questions/DurableQuestions.ts";
import { UserDecisions } from "../../../src/runtime/questions/UserDecisions.ts";
import { skewed } from "../attempt/SkewedClock.ts";
import * as L from "../crash/Lives.ts";

type Recorder = RunRecorder["Service"];

const incident = L.incident(1, L.facts(L.text));

/** A process asks: its question is on record, and it waits. */
const asking = (recorder: Recorder, options: UserDecisions.DurableOptions = {}, more: Partial<Question> = {}) =>
  Effect.gen(function* () {
    const question: Question = { ...L.textShown(incident), ...more };
    const { default_choice, expires_at } = question;
    const terms = { default_choice, ...(expires_at === undefined ? {} : { expires_at }) };
    yield* recorder.write(L.runId, [L.begun(), L.attempt(1), L.opened(incident), L.asked(incident, terms)]);
    return yield* waiting(recorder, question, options);
  });

const waiting = (recorder: Recorder, question: Question, options: UserDecisions.DurableOptions) =>
  Effect.gen(function* () {
    const layer = UserDecisions.layerDurable(options).pipe(Layer.provide(Layer.succeed(RunRecorder, recorder)));
    const decisions = Context.get(yield* Layer.build(layer), UserDecisions);
    const fiber = yield* Effect.forkChild(decisions.ask(question), { startImmediately: true });
    return {
      question,
      fiber,
      told: () => (fiber.pollUnsafe()?._tag === "Success" ? Fiber.join(fiber) : Effect.succeed("waits")),
    };
  });

const person = (choice: "retry" | "accept" | "stop") =>
  ({ run_id: L.runId, revision: 1, choice, by: "person" }) as const;

const inStore = <A, E>(use: (recorder: Recorder) => Effect.Effect<A, E, RunRecorder | import("effect").Scope.Scope>) =>
  Effect.flatMap(RunRecorder, use).pipe(Effect.scoped, Effect.provide(Layer.fresh(RunRecorder.layerMemory())));

describe("A durable question", () => {
  it.effect("receives an answer given in this process at once", () =>
    inStore((recorder) =>
      Effect.gen(function* () {
        const { told } = yield* asking(recorder);
        yield* CrashRecovery.answer(person("accept"));
        yield* TestClock.adjust(0);
        assert.strictEqual(yield* told(), "accept");
      }),
    ),
  );

  it.effect("reads its record once for a look at a store that answers in the same step, and waits on", () =>
    inStore((memory) =>
      Effect.gen(function* () {
        let reads = 0;
        const listeners: Array<(word: Word) => void> = [];
        const recorder: Recorder = {
          ...memory,
          run: (id) => {
            reads += 1;
            // Without an end a bell that rings for ever would hang this test.
            return reads < 100 ? memory.run(id) : Effect.never;
          },
          // The wait uses no other part of it.
          shared: {
            on: (listener: (word: Word) => void) => {
              listeners.push(listener);
              return () => undefined;
            },
            hasNotifications: () => true,
          } as never,
        };
        const { told } = yield* asking(recorder);
        yield* TestClock.adjust(1);
        const before = reads;
        for (const say of listeners) say({ _tag: "Look" });
        assert.strictEqual(reads, before + 1);
        assert.strictEqual(yield* told(), "waits");
      }),
    ),
  );

  it.effect("receives an answer given in another process at the next poll", () =>
    inStore((recorder) =>
      Effect.gen(function* () {
        const { told } = yield* asking(recorder);
        yield* TestClock.adjust(pollMsDefault + 10);
        yield* recorder.answer(person("retry"));
        yield* TestClock.adjust(pollMsDefault - 11);
        assert.strictEqual(yield* told(), "waits");
        yield* TestClock.adjust(1);
        assert.strictEqual(yield* told(), "retry");
      }),
    ),
  );

  it("acts on an answer of another process within the 250 ms of docs/policy.md", () => {
    assert.isAtMost(pollMsDefault, 250);
  });

  for (const hears of [true, false])
    it.effect(
      `is read ${hears ? "seldom" : "at every look"} where its store ${hears ? "tells" : "does not tell"} of answers`,
      () =>
        inStore((memory) =>
          Effect.gen(function* () {
            let reads = 0;
            const shared = { hasNotifications: () => hears, on: () => () => {} } as unknown as NonNullable<
              Recorder["shared"]
            >;
            const run: Recorder["run"] = (runId) =>
              Effect.suspend(() => {
                reads += 1;
                return memory.run(runId);
              });
            yield* asking({ ...memory, run, shared });
            yield* TestClock.adjust(0);
            const before = reads;
            yield* TestClock.adjust(10 * pollMsDefault);
            assert.strictEqual(reads > before, !hears);
          }),
        ),
    );

  it.effect("is not parked by a suspension, nor by a wall clock that is set forward: the wait is held time", () => {
    const { layer, skew } = skewed();
    return inStore((recorder) =>
      Effect.gen(function* () {
        const { told } = yield* asking(recorder);
        yield* TestClock.adjust(parkAfterMsDefault / 2);
        skew.monotonic += 3_600_000;
        skew.wall += 86_400_000;
        yield* TestClock.adjust(parkAfterMsDefault / 2 - 1_000);
        assert.strictEqual(yield* told(), "waits");
        yield* TestClock.adjust(1_500);
        assert.strictEqual(yield* told(), "parked");
      }),
    ).pipe(Effect.provide(layer));
  });

  it.effect("a wall clock that is set back does not lengthen the wait", () => {
    const { layer, skew } = skewed();
    return inStore((recorder) =>
      Effect.gen(function* () {
        const { told } = yield* asking(recorder);
        skew.wall -= 86_400_000;
        yield* TestClock.adjust(parkAfterMsDefault);
        assert.strictEqual(yield* told(), "parked");
      }),
    ).pipe(Effect.provide(layer));
  });

  it.effect("options that are no number are the defaults: nothing spins, and nothing waits for ever", () =>
    inStore((recorder) =>
      Effect.gen(function* () {
        const { told } = yield* asking(recorder, { parkAfterMs: Number.NaN, pollMs: Number.NaN, expiryMs: Infinity });
        yield* TestClock.adjust(parkAfterMsDefault - 1);
        assert.strictEqual(yield* told(), "waits");
        yield* TestClock.adjust(pollMsDefault);
        assert.strictEqual(yield* told(), "parked");
      }),
    ),
  );

  it.effect("receives an answer that was recorded before the wait began", () =>
    inStore((recorder) =>
      Effect.gen(function* () {
        const { question } = yield* asking(recorder);
        yield* recorder.answer(person("stop"));
        const { told } = yield* waiting(recorder, question, {});
        assert.strictEqual(yield* told(), "stop");
      }),
    ),
  );

  it.effect("wakes every fiber that waits for it in this process, and no other", () =>
    inStore((recorder) =>
      Effect.gen(function* () {
        const first = yield* asking(recorder);
        const second = yield* waiting(recorder, first.question, {});
        const other = yield* waiting(recorder, { ...first.question, run_id: "other" }, {});
        yield* CrashRecovery.answer(person("retry"));
        yield* TestClock.adjust(0);
        assert.deepStrictEqual(
          [yield* first.told(), yield* second.told(), yield* other.told()],
          ["retry", "retry", "waits"],
        );
      }),
    ),
  );

  it.effect("is parked after ten minutes by default, and stays open on record", () =>
    inStore((recorder) =>
      Effect.gen(function* () {
        const { told } = yield* asking(recorder);
        yield* TestClock.adjust(parkAfterMsDefault - 1);
        assert.strictEqual(yield* told(), "waits");
        yield* TestClock.adjust(1);
        assert.strictEqual(yield* told(), "parked");
        assert.strictEqual((yield* recorder.run(L.runId))?.state, "asking");
      }),
    ),
  );

  it.effect("is never parked when it may wait for ever", () =>
    inStore((recorder) =>
      Effect.gen(function* () {
        const options = { parkAfterMs: Number.POSITIVE_INFINITY, pollMs: 60_000 };
        const { told } = yield* asking(recorder, options);
        yield* TestClock.adjust("1 day");
        assert.strictEqual(yield* told(), "waits");
        yield* recorder.answer(person("accept"));
        yield* TestClock.adjust(60_000);
        assert.strictEqual(yield* told(), "accept");
      }),
    ),
  );

  it.effect("gets its default when it expires, recorded as an expiry", () =>
    inStore((recorder) =>
      Effect.gen(function* () {
        const { told } = yield* asking(recorder, {}, { expires_at: 1_001, default_choice: "accept" });
        yield* TestClock.adjust(1_000);
        assert.strictEqual(yield* told(), "waits");
        yield* TestClock.adjust(1);
        assert.strictEqual(yield* told(), "accept");
        const record = yield* recorder.run(L.runId);
        assert.deepInclude(record?.questions[0], { answer: "accept", answered_by: "expiry" });
      }),
    ),
  );

  it.effect("loses its expiry to an answer that came first", () =>
    inStore((recorder) =>
      Effect.gen(function* () {
        // The answer lands between the look and the expiry.
        let raced = false;
        const racing: Recorder = {
          ...recorder,
          answer: (given) =>
            given.by !== "expiry" || raced
              ? recorder.answer(given)
              : Effect.suspend(() => {
                  raced = true;
                  return recorder.write(L.runId, [L.answered("retry")]).pipe(Effect.andThen(recorder.answer(given)));
                }),
        };
        const { told } = yield* asking(racing, {}, { expires_at: 100 });
        yield* TestClock.adjust(100);
        assert.deepStrictEqual([raced, yield* told()], [true, "retry"]);
      }),
    ),
  );

  it.effect("expires before it is parked when both come at once", () =>
    inStore((recorder) =>
      Effect.gen(function* () {
        const { told } = yield* asking(recorder, { parkAfterMs: 100 }, { expires_at: 100 });
        yield* TestClock.adjust(100);
        assert.strictEqual(yield* told(), "stop");
      }),
    ),
  );

  it.effect("that another process has asked anew is that process's", () =>
    inStore((recorder) =>
      Effect.gen(function* () {
        const { told } = yield* asking(recorder);
        yield* recorder.write(L.runId, [L.asked(incident, { revision: 2 })]);
        yield* TestClock.adjust(pollMsDefault);
        assert.strictEqual(yield* told(), "parked");
      }),
    ),
  );

  it.effect("outlives a store that cannot be read for a while", () =>
    inStore((recorder) =>
      Effect.gen(function* () {
        let broken = 3;
        const locked = new RecorderError({ reason: "locked", run_id: L.runId, message: "locked" });
        const failing: Recorder = {
          ...recorder,
          run: (id) => Effect.suspend(() => (broken-- > 0 ? Effect.fail(locked) : recorder.run(id))),
        };
        const { told } = yield* asking(failing);
        yield* recorder.answer(person("accept"));
        yield* TestClock.adjust(2 * pollMsDefault);
        assert.strictEqual(yield* told(), "waits");
        yield* TestClock.adjust(pollMsDefault);
        assert.strictEqual(yield* told(), "accept");
      }),
    ),
  );

  it.effect("has the terms of its layer", () =>
    inStore((recorder) =>
      Effect.gen(function* () {
        const terms = { expiryMs: 5_000, defaults: { text_shown: "accept" } } as const;
        const layer = UserDecisions.layerDurable(terms).pipe(Layer.provide(Layer.succeed(RunRecorder, recorder)));
        assert.deepStrictEqual(Context.get(yield* Layer.build(layer), UserDecisions).terms, terms);
      }),
    ),
  );
});
