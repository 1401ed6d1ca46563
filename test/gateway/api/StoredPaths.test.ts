import { assert, describe, it } from "@effect/vitest";
import { Clock, Context, Effect, Fiber, Layer } from "effect";
import { TestClock } from "effect/testing";
import * as SharedPaths from "../../../src/gateway/api/SharedPaths.ts";
import { Paths } from "../../../src/paths/Paths.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as MemoryFacts from "../../recorder/shared/MemoryFacts.ts";

const scope = { path: "https://api.example", credential: "c".repeat(32), model: "m" };
const refusal = { kind: "rate_limited", waitMs: 5_000, onlyThis: false } as const;

/** Gateways on several machines, and the store between them. */
const nodes = Effect.gen(function* () {
  const clock = yield* Clock.Clock;
  const store = MemoryFacts.make(() => clock.currentTimeMillisUnsafe());
  const recorder = yield* Effect.provide(RunRecorder, RunRecorder.layerMemory());
  const node = Effect.suspend(() =>
    Effect.map(
      Layer.build(
        Layer.provide(
          Layer.fresh(SharedPaths.layer),
          Layer.succeed(RunRecorder, { ...recorder, shared: store.process() }),
        ),
      ),
      (context) => Context.get(context, Paths),
    ),
  );
  return { first: yield* node, second: yield* node, node, store };
});

/** Delivers the notifications. */
const told = TestClock.adjust(1);

const cooldownMs = (paths: Paths["Service"]): number => paths.standing(scope, 60_000).cooldownMs;

describe("delays that a provider announces to one of several gateways", () => {
  it.effect("hold at each of them, for the announced time, and at one that starts meanwhile", () =>
    Effect.gen(function* () {
      const { first, node, second } = yield* nodes;
      first.recordRefusal(scope, refusal);
      yield* told;
      for (const paths of [first, second]) assert.strictEqual(cooldownMs(paths), 4_999);
      assert.isTrue(second.isOpen({ ...scope, credential: "d".repeat(32) }));
      assert.isTrue(second.isOpen({ ...scope, model: "n" }));
      yield* TestClock.adjust(2_000);
      const third = yield* node;
      yield* told;
      assert.strictEqual(cooldownMs(third), 2_998);
      yield* TestClock.adjust(3_000);
      for (const paths of [first, second, third]) assert.isTrue(paths.isOpen(scope));
    }).pipe(Effect.scoped),
  );

  it.effect("are as old at a gateway that starts meanwhile as they really are", () =>
    Effect.gen(function* () {
      const { first, node } = yield* nodes;
      first.recordRefusal(scope, { ...refusal, waitMs: 100_000 });
      yield* TestClock.adjust(50_000);
      const third = yield* node;
      yield* told;
      assert.isAtMost(cooldownMs(third), 10_000);
      assert.isAbove(cooldownMs(third), 9_000);
    }).pipe(Effect.scoped),
  );

  it.effect("are found by the next look if their notification was lost", () =>
    Effect.gen(function* () {
      const { first, second, store } = yield* nodes;
      yield* told;
      store.isMute = true;
      first.recordRefusal(scope, refusal);
      yield* told;
      assert.isTrue(second.isOpen(scope));
      store.say({ _tag: "Look" });
      yield* told;
      assert.isFalse(second.isOpen(scope));
    }).pipe(Effect.scoped),
  );

  it.effect("are applied once: later knowledge of a gateway is kept", () =>
    Effect.gen(function* () {
      const { first, second, store } = yield* nodes;
      // A delay that another run got is kept for a limited time from then on.
      const keptMs = (paths: Paths["Service"]) => paths.standing(scope, 2_000).cooldownMs;
      first.recordRefusal(scope, refusal);
      yield* told;
      yield* TestClock.adjust(1_000);
      const before = [keptMs(first), keptMs(second)];
      store.say({ _tag: "Look" });
      yield* told;
      // A delay that a gateway has stored itself is not new to it either.
      assert.deepStrictEqual(
        [keptMs(first), keptMs(second)],
        before.map((ms) => ms - 1),
      );
      // One of its requests is sent before the delay is over, and is answered.
      const left: Array<() => void> = [];
      const asks = {
        scope,
        maxRetryAfterMs: 2_000,
        withinMs: 60_000,
        onWait: () => {},
        hold: (leave: () => void) => left.push(leave),
      };
      const trial = yield* Effect.forkChild(second.admit(asks));
      yield* TestClock.adjust(2_000);
      assert.strictEqual((yield* Fiber.join(trial))._tag, "admitted");
      second.recordResponse(scope);
      for (const leave of left) leave();
      assert.isTrue(second.isOpen(scope));
      store.say({ _tag: "Look" });
      yield* told;
      assert.isTrue(second.isOpen(scope));
    }).pipe(Effect.scoped),
  );

  it.effect("are reported once if every request of a storm gets the same delay", () =>
    Effect.gen(function* () {
      const { first, store } = yield* nodes;
      yield* told;
      const calls = store.seen.length;
      for (let n = 0; n < 100; n += 1) first.recordRefusal(scope, refusal);
      yield* told;
      assert.strictEqual(store.seen.length, calls + 2);
      first.recordRefusal(scope, { ...refusal, waitMs: 5_000 + SharedPaths.laterMs + 1 });
      yield* told;
      assert.strictEqual(store.seen.length, calls + 4);
    }).pipe(Effect.scoped),
  );

  it.effect("hold no other request if they are about one alone, and hold here while the store is away", () =>
    Effect.gen(function* () {
      const { first, second, store } = yield* nodes;
      first.recordRefusal(scope, { ...refusal, onlyThis: true });
      yield* told;
      assert.isTrue(second.isOpen(scope));
      store.isAway = true;
      first.recordRefusal(scope, refusal);
      yield* told;
      assert.isFalse(first.isOpen(scope));
      assert.isTrue(second.isOpen(scope));
    }).pipe(Effect.scoped),
  );

  it.effect("cause no defect if the store contains a value that no version of this program has written (L11)", () =>
    Effect.gen(function* () {
      const { second, store } = yield* nodes;
      const other = store.process();
      for (const value of ["", "null", "{}", JSON.stringify({ ...scope, kind: "later", waitMs: 5_000 })])
        yield* other.put("cooldown", value, value, 60_000);
      yield* told;
      assert.isTrue(second.isOpen(scope));
      const known = { ...scope, kind: "rate_limited", waitMs: 1, more: "of a later version" };
      yield* other.put("cooldown", "known", JSON.stringify(known), 5_000);
      yield* told;
      assert.isFalse(second.isOpen(scope));
    }).pipe(Effect.scoped),
  );
});
