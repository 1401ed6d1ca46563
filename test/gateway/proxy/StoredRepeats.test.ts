import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect } from "effect";
import { TestClock } from "effect/testing";
import { type RelayRepeats, repeatMs } from "../../../src/adapters/relay/RelayRepeats.ts";
import * as SharedRepeats from "../../../src/gateway/proxy/SharedRepeats.ts";
import { RunRecorder } from "../../../src/recorder/RunRecorder.ts";
import * as MemoryFacts from "../../recorder/shared/MemoryFacts.ts";

const request = (body: string, headers: Record<string, string> = {}) => ({
  method: "POST",
  url: "https://api.example/v1/responses",
  headers: Object.entries({ authorization: "Bearer sk-one", ...headers }),
  body,
});
const failed = { run_id: "run_1", spent: 2, cancelled: false };
const told = { message: "gave up", code: undefined, headers: [["retry-after", "3"]] as const };
const again = { "x-stainless-retry-count": "1" };

/** The memories of gateways on several machines, and the store between them. */
const nodes = Effect.gen(function* () {
  const clock = yield* Clock.Clock;
  const store = MemoryFacts.make(() => clock.currentTimeMillisUnsafe());
  const recorder = yield* Effect.provide(RunRecorder, RunRecorder.layerMemory());
  const made = () => Effect.provideService(SharedRepeats.make, RunRecorder, { ...recorder, shared: store.process() });
  return { first: yield* made(), second: yield* made(), third: yield* made(), store };
});

/** The remembered failure that a run finds when its first attempt breaks. */
const found = (repeats: RelayRepeats, body: string, headers: Record<string, string> = {}) =>
  Effect.gen(function* () {
    const asked = yield* repeats.elsewhere(request(body, headers));
    return asked === undefined ? undefined : (yield* asked)?.spent;
  }).pipe(Effect.scoped);

describe("the memory of failed requests shared by several machines", () => {
  it.effect("gives what is left of a budget at any machine to which the repeat comes, once", () =>
    Effect.gen(function* () {
      const { first, second, third } = yield* nodes;
      yield* first.put(request("a"), failed);
      assert.isUndefined(yield* found(second, "b"));
      assert.strictEqual(yield* found(second, "a"), 2);
      assert.isUndefined(yield* found(third, "a"), "it was taken");
      yield* second.recordSpent(request("a"), { ...failed, spent: 1 }, failed);
      assert.strictEqual(yield* found(third, "a", again), 3);
    }),
  );

  it.effect(
    "is what is left of a budget at a process that knows an earlier failure itself, or nothing if it was taken",
    () =>
      Effect.gen(function* () {
        const { first, second } = yield* nodes;
        yield* first.put(request("a"), failed);
        assert.strictEqual(yield* found(second, "a", again), 2);
        yield* second.recordSpent(request("a"), { ...failed, spent: 1 }, failed);
        assert.strictEqual((yield* first.take(request("a")))?.spent, 3, "not the two that it remembers");
        assert.isUndefined(yield* second.take(request("a")), "it was taken");
      }),
  );

  it.effect("is taken by one of two repeats that come at the same moment", () =>
    Effect.gen(function* () {
      const { first, second, third } = yield* nodes;
      yield* first.put(request("a"), failed);
      const both = yield* Effect.all([found(second, "a", again), found(third, "a", again)], { concurrency: 2 });
      assert.lengthOf(
        both.filter((it) => it !== undefined),
        1,
      );
    }),
  );

  it.effect("keeps the gateway's own words in the store, and none of a provider's", () =>
    Effect.gen(function* () {
      const { first, second, store } = yield* nodes;
      const said = { message: "echo", code: "x", response: { status: 429, headers: [], body: "{}" } };
      yield* first.tell(request("a", again), { ...told, said });
      assert.deepStrictEqual((yield* first.recall(request("a", again)))?.told.said, said);
      assert.deepStrictEqual((yield* second.recall(request("a", again)))?.told, told);
      assert.notInclude(store.seen.join("\n"), "echo");
    }),
  );

  it.effect(
    "a run that does not break asks nothing, and one that says that it repeats another asks beside its attempt",
    () =>
      Effect.gen(function* () {
        const { first, second, store } = yield* nodes;
        yield* first.put(request("a"), failed);
        const calls = store.calls();
        const never = yield* second.elsewhere(request("a"));
        yield* Effect.yieldNow;
        assert.strictEqual(store.calls(), calls);
        assert.isDefined(never);
        yield* second.elsewhere(request("b", again));
        yield* Effect.yieldNow;
        assert.isAbove(store.calls(), calls);
      }).pipe(Effect.scoped),
  );

  it.effect("counts for a run that started after the failure, however late it breaks, and for no other", () =>
    Effect.gen(function* () {
      const { first, second, third } = yield* nodes;
      const beside = yield* second.elsewhere(request("a"));
      yield* TestClock.adjust(10);
      yield* first.put(request("a"), failed);
      assert.isUndefined(yield* beside ?? Effect.undefined, "it ran side by side");
      yield* TestClock.adjust(repeatMs);
      const behind = yield* second.elsewhere(request("a"));
      yield* TestClock.adjust(5);
      const late = yield* third.elsewhere(request("a"));
      yield* TestClock.adjust(repeatMs * 5);
      assert.isUndefined(yield* late ?? Effect.undefined, "it began too late");
      assert.strictEqual((yield* behind ?? Effect.undefined)?.spent, 2);
    }).pipe(Effect.scoped),
  );

  it.effect("a request that was cancelled counts only for one that says that it repeats it", () =>
    Effect.gen(function* () {
      const { first, second, third } = yield* nodes;
      yield* first.put(request("a"), { ...failed, cancelled: true });
      assert.isUndefined(yield* found(second, "a"));
      assert.strictEqual(yield* found(third, "a", again), 2);
    }),
  );

  it.effect("repeats a client's message to those only that say that they repeat it, until a run begins", () =>
    Effect.gen(function* () {
      const { first, second, store, third } = yield* nodes;
      yield* first.put(request("a"), failed);
      yield* first.tell(request("a"), told);
      const calls = store.calls();
      assert.isTrue(second.isNew(request("a")));
      assert.isUndefined(yield* second.recall(request("a")));
      assert.strictEqual(store.calls(), calls, "nobody waits for it");
      assert.isFalse(second.isNew(request("a", again)));
      assert.deepStrictEqual((yield* second.recall(request("a", again)))?.told, told);
      assert.strictEqual(yield* found(third, "a", again), 2);
      assert.isUndefined(yield* second.recall(request("a", again)));
    }),
  );

  it.effect("is the gateway's own while the store is away", () =>
    Effect.gen(function* () {
      const { first, second, store } = yield* nodes;
      store.isAway = true;
      yield* first.put(request("a"), failed);
      assert.strictEqual((yield* first.take(request("a")))?.spent, 2);
      assert.isUndefined(yield* found(second, "a", again));
      assert.isUndefined(yield* second.recall(request("a", again)));
    }),
  );

  it.effect("contains no prompt and no credential", () =>
    Effect.gen(function* () {
      const { first, store } = yield* nodes;
      yield* first.put(request("a prompt"), failed);
      yield* first.tell(request("a prompt", { "idempotency-key": "idem" }), told);
      // No run waits for the other machines' memory.
      while (store.seen.length < 2) yield* Effect.yieldNow;
      const all = store.seen.join("\n");
      assert.notMatch(all, /prompt|sk-one|idem/);
      assert.match(store.seen[0] ?? "", /^[0-9a-f]{64}$/);
    }),
  );
});
