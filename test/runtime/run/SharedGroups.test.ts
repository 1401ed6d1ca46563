import { assert, describe, it } from "@effect/vitest";
import { Clock, Context, Effect, Fiber, Layer } from "effect";
import { TestClock } from "effect/testing";
import { defaultBudget } from "../../../src/domain/RunFacts.ts";
import { probeMs, toBounded } from "../../../src/recorder/BoundedRecorder.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import type { SharedPacing } from "../../../src/recorder/shared/SharedFacts.ts";
import { Groups } from "../../../src/runtime/pacing/Groups.ts";
import { SharedGroups } from "../../../src/runtime/pacing/SharedGroups.ts";
import * as MemoryFacts from "../../recorder/shared/MemoryFacts.ts";

const limit = 3;
/** Maximum wait for the store, in milliseconds. */
const waitMs = 4_000;
const budget = { ...defaultBudget, max_group_retries: limit };
const now = () => 0;
const stopped = Effect.never;
let runs = 0;

const nodes = Effect.gen(function* () {
  const clock = yield* Clock.Clock;
  const store = MemoryFacts.make(() => clock.currentTimeMillisUnsafe());
  const made = () => {
    const groups = new Groups();
    return { groups, shared: new SharedGroups(groups, store.process()) };
  };
  return { first: made(), second: made(), store };
});

type Node = Effect.Success<typeof nodes>["first"];

const member = () => {
  runs += 1;
  return { runId: `run ${runs}`, group: "g" };
};

/** Lets a run of the group break and decide, and returns true if it takes a retry. */
const decides = ({ groups, shared }: Node, it = member(), tokens = 0) =>
  Effect.gen(function* () {
    yield* shared.countBreak({ member: it, budget, now, stopped }, tokens);
    groups.countBreak(it, tokens, 0);
    const takes = groups.facts(it, 0).group_retries < limit;
    if (takes) groups.take(it, 0);
    yield* shared.returnUnusedRetry(it);
    return takes;
  });

describe("a group with runs on several machines", () => {
  it.effect("takes no more retries than on one, even if its runs break at the same moment", () =>
    Effect.gen(function* () {
      const { first, second } = yield* nodes;
      const all = Array.from({ length: 12 }, (_, n) => decides(n % 2 === 0 ? first : second));
      const taken = yield* Effect.all(all, { concurrency: "unbounded" });
      assert.lengthOf(
        taken.filter((it) => it),
        limit,
      );
    }),
  );

  it.effect("counts a retry once, even if its run decides again before it is sent", () =>
    Effect.gen(function* () {
      const { first, second } = yield* nodes;
      const one = member();
      for (let n = 0; n < 5; n += 1) assert.isTrue(yield* decides(first, one));
      first.groups.markStarted(one, false, 0);
      first.shared.markStarted(one);
      assert.isTrue(yield* decides(second));
      assert.isTrue(yield* decides(second));
      assert.isFalse(yield* decides(second));
    }),
  );

  it.effect("has a retry again that its run has not used, or not sent when it ended", () =>
    Effect.gen(function* () {
      const { first, second, store } = yield* nodes;
      const gone = member();
      yield* decides(first, gone);
      first.groups.leave(gone);
      yield* first.shared.leave(gone);
      yield* Effect.yieldNow;
      yield* Effect.yieldNow;
      for (let n = 0; n < limit; n += 1) assert.isTrue(yield* decides(second));
      for (let n = 0; n < 2; n += 1) assert.isFalse(yield* decides(first));
      yield* Effect.yieldNow;
      yield* Effect.yieldNow;
      // A refused retry is counted nowhere.
      const spent = yield* store.process().spend("g", { retries: 0, tokens: 0 }, 1);
      assert.strictEqual(spent.retries, limit);
    }),
  );

  it.effect("knows the cost of responses everywhere, each once", () =>
    Effect.gen(function* () {
      const { first, second } = yield* nodes;
      const one = member();
      yield* decides(first, one, 100);
      yield* decides(first, one, 150);
      const other = member();
      yield* decides(second, other, 10);
      assert.strictEqual(second.groups.facts(other, 0).group_wasted_tokens, 160);
    }),
  );

  it.effect("uses the knowledge of its own process if the store is away, or if nothing is limited", () =>
    Effect.gen(function* () {
      const { first, second, store } = yield* nodes;
      store.isAway = true;
      for (let n = 0; n < limit; n += 1) assert.isTrue(yield* decides(first));
      assert.isFalse(yield* decides(first));
      assert.isTrue(yield* decides(second));
      const calls = store.calls();
      yield* first.shared.countBreak({ member: member(), budget: defaultBudget, now, stopped }, 0);
      assert.strictEqual(store.calls(), calls);
    }),
  );

  it.effect("waits for a hanging store as long as the record of its retry would", () =>
    Effect.gen(function* () {
      const groups = new Groups();
      const hangs = { draw: () => Effect.never, spend: () => Effect.never };
      const memory = yield* Effect.map(Layer.build(RunRecorder.layerMemory()), Context.get(RunRecorder));
      const shared = new SharedGroups(groups, toBounded({ ...memory, pacing: hangs, waitMs }).pacing);
      const decided = yield* Effect.forkChild(decides({ groups, shared }));
      yield* TestClock.adjust(waitMs - 1);
      assert.isUndefined(decided.pollUnsafe());
      yield* TestClock.adjust(1);
      assert.isTrue(yield* Fiber.join(decided));
      // The whole wait is spent once.
      const next = yield* Effect.forkChild(decides({ groups, shared }));
      yield* TestClock.adjust(probeMs);
      assert.isTrue(yield* Fiber.join(next));
    }).pipe(Effect.scoped),
  );

  it.effect(
    "uses the knowledge of its own process if a recorder of another author dies, throws or returns invalid values",
    () =>
      Effect.gen(function* () {
        const memory = yield* Effect.map(Layer.build(RunRecorder.layerMemory()), Context.get(RunRecorder));
        const spends: ReadonlyArray<() => unknown> = [
          () => Effect.die("lost"),
          () => Effect.succeed(undefined),
          () => Effect.succeed({ retries: Number.NaN, tokens: 0 }),
          () => {
            throw new Error("no store");
          },
        ];
        for (const spend of spends) {
          const groups = new Groups();
          // A service in plain JavaScript may return this.
          const pacing = { draw: () => Effect.never, spend: spend as SharedPacing["spend"] };
          const shared = new SharedGroups(groups, toBounded({ ...memory, pacing }).pacing);
          for (let n = 0; n < limit; n += 1) assert.isTrue(yield* decides({ groups, shared }));
          assert.isFalse(yield* decides({ groups, shared }));
        }
      }).pipe(Effect.scoped),
  );

  it.effect("has a retry again that was counted for a run which was stopped meanwhile", () =>
    Effect.gen(function* () {
      const { store } = yield* nodes;
      const pacing = store.process();
      const spend: SharedPacing["spend"] = (...of) => Effect.delay(pacing.spend(...of), 1_000);
      const groups = new Groups();
      const shared = new SharedGroups(groups, { ...pacing, spend });
      const one = member();
      const breaks = shared.countBreak({ member: one, budget, now, stopped: Effect.sleep(100) }, 7);
      const broken = yield* Effect.forkChild(breaks);
      yield* TestClock.adjust(100);
      yield* Fiber.join(broken);
      yield* TestClock.adjust(900);
      for (let turn = 0; turn < 3; turn += 1) yield* Effect.yieldNow;
      const spent = () => pacing.spend("g", { retries: 0, tokens: 0 }, 60_000);
      assert.deepStrictEqual(yield* spent(), { retries: 1, tokens: 7 });
      yield* TestClock.adjust(1_000);
      assert.deepStrictEqual(yield* spent(), { retries: 0, tokens: 7 });
      assert.deepStrictEqual(groups.facts(one, 0), { group_retries: 0, group_wasted_tokens: 0 });
    }),
  );
});
