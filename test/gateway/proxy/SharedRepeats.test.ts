import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { TestClock } from "effect/testing";
import {
  RelayRepeats,
  remainingBudget,
  repeatMs,
  repeatsMax,
  toldBodyCharactersMax,
  unmarkedRepeatsMax,
} from "../../../src/adapters/relay/RelayRepeats.ts";
import * as SharedRepeats from "../../../src/gateway/proxy/SharedRepeats.ts";
import type { BusEnvelope } from "../../../src/gateway/workers/BusEnvelope.ts";
import { BusRouter } from "../../../src/gateway/workers/BusRouter.ts";
import { WorkerBus } from "../../../src/gateway/workers/WorkerBus.ts";
import { members, newcomer } from "../workers/Members.ts";

const request = (body: string, headers: Record<string, string> = {}) => ({
  method: "POST",
  url: "https://api.example/v1/responses",
  headers: Object.entries({ authorization: "Bearer sk-one", ...headers }),
  body,
});
const failed = { run_id: "run_1", spent: 2, cancelled: false };
const told = { message: "gave up", code: undefined, headers: [["retry-after", "3"]] as const };
const again = { "x-stainless-retry-count": "1" };

/** The memories of two workers, the router between them, and what was sent. */
const two = Effect.gen(function* () {
  const { ends, router } = yield* members(2);
  const made = yield* Effect.forEach(ends, ({ bus }) => Effect.provideService(SharedRepeats.make, WorkerBus, bus));
  const [first, second] = made;
  if (first === undefined || second === undefined) return yield* Effect.die("too few");
  return { first, second, router };
});

const spentOf = (repeats: RelayRepeats, body: string) =>
  Effect.map(repeats.take(request(body)), (found) => remainingBudget({ max_auto_retries: 3 }, found).max_auto_retries);

describe("the memory of failed requests of several workers", () => {
  it.effect("gives what is left of a budget at whichever worker the repeat comes, once", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two;
      yield* first.put(request("a"), failed);
      assert.strictEqual(yield* spentOf(second, "b"), 3);
      assert.strictEqual(yield* spentOf(second, "a"), 1);
      assert.strictEqual(yield* spentOf(first, "a"), 3, "it was taken");
      yield* second.spent(request("a"), { ...failed, spent: 1 }, failed);
      assert.strictEqual(yield* spentOf(first, "a"), 0);
    }),
  );

  it.effect("tells what a client was told, until a run begins or has completed elsewhere", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two;
      yield* first.tell(request("a"), told);
      assert.deepStrictEqual((yield* second.recall(request("a", again)))?.told, told);
      yield* second.completed(request("a"));
      assert.isUndefined(yield* first.recall(request("a", again)));
      yield* first.tell(request("a", { "idempotency-key": "i" }), told);
      assert.isDefined(yield* second.recall(request("a", { "idempotency-key": "i" })));
      yield* second.take(request("a"));
      assert.isUndefined(yield* first.recall(request("a", again)));
    }),
  );

  it.effect("tells a provider's own refusal too, unless its body is too long to be remembered", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two;
      const response = { status: 429, headers: [["x-own", "1"]] as const, body: "{}" };
      const said = { message: "full", code: undefined, response };
      yield* first.tell(request("a"), { ...told, said });
      assert.deepStrictEqual((yield* second.recall(request("a", again)))?.told.said, said);
      const body = "x".repeat(toldBodyCharactersMax + 1);
      yield* first.tell(request("b"), { ...told, said: { ...said, response: { ...response, body } } });
      const long = yield* second.recall(request("b", again));
      assert.deepStrictEqual(long?.told.said, { ...said, response: undefined });
    }),
  );

  it.effect("counts unmarked repeats over all workers, and forgets in time at each of them", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two;
      yield* first.tell(request("a"), told);
      for (let n = 0; n < unmarkedRepeatsMax; n += 1)
        assert.isDefined(yield* (n % 2 === 0 ? first : second).recall(request("a")));
      for (const one of [first, second]) assert.isUndefined(yield* one.recall(request("a")));
      yield* first.put(request("b"), failed);
      yield* TestClock.adjust(repeatMs + 1);
      for (const one of [first, second]) assert.isUndefined(yield* one.take(request("b")));
    }),
  );

  it.effect("is that of a worker that takes the place of another one, too, for as long", () =>
    Effect.gen(function* () {
      const { first, router, second } = yield* two;
      yield* first.put(request("a"), failed);
      yield* second.tell(request("b"), told);
      yield* first.tell(request("c"), { ...told, message: "x".repeat(5_000) });
      yield* TestClock.adjust(repeatMs / 2);
      for (let n = 0; n < 300; n += 1) yield* first.put(request(`more ${n}`), failed);
      for (let n = 1; n < unmarkedRepeatsMax; n += 1) yield* second.recall(request("b", again));
      const come = yield* newcomer(2, router, 2);
      const third = yield* Effect.provideService(SharedRepeats.make, WorkerBus, come.bus);
      come.join();
      assert.deepStrictEqual((yield* third.recall(request("b", again)))?.ageMs, repeatMs / 2);
      assert.strictEqual(yield* spentOf(third, "a"), 1);
      assert.strictEqual(yield* spentOf(first, "a"), 3, "it was taken");
      assert.strictEqual(yield* spentOf(third, "more 299"), 1);
      yield* TestClock.adjust(repeatMs / 2 + 1);
      assert.isUndefined(yield* third.recall(request("b", again)));
      assert.strictEqual(yield* spentOf(third, "more 0"), 1);
    }),
  );

  it.effect("of a worker that comes counts the unmarked repeats of the others", () =>
    Effect.gen(function* () {
      const { first, router } = yield* two;
      yield* first.tell(request("b"), told);
      for (let n = 1; n < unmarkedRepeatsMax; n += 1) assert.isDefined(yield* first.recall(request("b")));
      const come = yield* newcomer(2, router, 2);
      const third = yield* Effect.provideService(SharedRepeats.make, WorkerBus, come.bus);
      come.join();
      assert.isDefined(yield* third.recall(request("b")));
      for (const one of [first, third]) assert.isUndefined(yield* one.recall(request("b")));
    }),
  );

  it.effect("of a worker that comes keeps what it has heard since it began", () =>
    Effect.gen(function* () {
      const [older, newer] = [new RelayRepeats(), new RelayRepeats()];
      yield* older.put(request("a"), failed);
      yield* older.put(request("b"), failed);
      yield* newer.put(request("a"), { ...failed, run_id: "run_2" });
      newer.learned(older.memories(0), 0);
      assert.strictEqual((yield* newer.take(request("a")))?.run_id, "run_2");
      assert.strictEqual((yield* newer.take(request("b")))?.run_id, "run_1");
    }),
  );

  it.effect("of a worker that comes brings nothing back that was taken meanwhile, and makes nothing young again", () =>
    Effect.gen(function* () {
      const { first, router } = yield* two;
      yield* first.put(request("a"), failed);
      yield* first.tell(request("b"), told);
      yield* TestClock.adjust(repeatMs / 2);
      yield* first.put(request("c"), failed);
      const come = yield* newcomer(2, router, 2);
      const third = yield* Effect.provideService(SharedRepeats.make, WorkerBus, come.bus);
      const late: Array<BusEnvelope> = [];
      const isMemory = (it: BusEnvelope) => it._tag === "Notice" && it.topic === "repeats_remembered";
      router.join(2, { send: (it) => (isMemory(it) ? late.push(structuredClone(it)) > 0 : come.port.send(it)) });
      assert.isAbove(late.length, 0);
      assert.strictEqual(yield* spentOf(first, "a"), 1);
      yield* first.completed(request("b"));
      for (const one of late) come.port.send(one);
      assert.strictEqual(yield* spentOf(third, "a"), 3, "it was taken");
      assert.isUndefined(yield* third.recall(request("b", again)), "another run of it has completed");
      assert.strictEqual(yield* spentOf(third, "c"), 1);
      for (const one of late) come.port.send(one);
      assert.strictEqual(yield* spentOf(third, "c"), 3, "it was taken, and another one remembered it too");
    }),
  );

  it.effect("of a worker that comes forgets the oldest first, whoever has met it", () =>
    Effect.gen(function* () {
      const [older, newer] = [new RelayRepeats(), new RelayRepeats()];
      yield* older.put(request("a"), failed);
      yield* TestClock.adjust(repeatMs / 2);
      yield* older.put(request("b"), failed);
      yield* TestClock.adjust(1);
      for (let n = 1; n < repeatsMax; n += 1) yield* newer.put(request(`own ${n}`), failed);
      newer.learned(older.memories(repeatMs / 2 + 1), repeatMs / 2 + 1);
      assert.strictEqual(yield* spentOf(newer, "own 1"), 1);
      assert.strictEqual(yield* spentOf(newer, "a"), 3, "there was no room for it");
      assert.strictEqual(yield* spentOf(newer, "b"), 1);
      const late = new RelayRepeats();
      yield* late.put(request("own"), failed);
      late.learned(older.memories(repeatMs / 2 + 1), repeatMs / 2 + 1);
      yield* late.take(request("own"));
      yield* TestClock.adjust(repeatMs / 2);
      yield* late.take(request("b"));
      assert.isTrue(late.isEmpty, "and nothing that is over is kept behind what is not");
    }),
  );

  it.effect("of a worker that comes is told by another one where the one that was there for longest hangs", () =>
    Effect.gen(function* () {
      const router = new BusRouter();
      const hung = yield* newcomer(1, router, 3);
      router.join(1, { send: () => true });
      yield* Effect.provideService(SharedRepeats.make, WorkerBus, hung.bus);
      const [second, third] = yield* Effect.forEach([2, 3], (self) =>
        Effect.gen(function* () {
          const end = yield* newcomer(self, router, 3);
          const made = yield* Effect.provideService(SharedRepeats.make, WorkerBus, end.bus);
          if (self === 2) yield* made.put(request("a"), failed);
          end.join();
          return made;
        }),
      );
      if (second === undefined || third === undefined) return assert.fail();
      assert.strictEqual(yield* spentOf(third, "a"), 1);
      assert.strictEqual(yield* spentOf(second, "a"), 3, "it was taken");
    }),
  );

  it.effect("takes no word that is none, and keeps to itself what is too long for one (L11)", () =>
    Effect.gen(function* () {
      const { first, router, second } = yield* two;
      const key = "a".repeat(64);
      const tell = (body: unknown): BusEnvelope => ({ _tag: "Notice", topic: "repeats_changed", from: 1, to: 2, body });
      for (const body of [
        null,
        {},
        { _tag: "Later", key },
        { _tag: "Failed", key: "sk-one", failed },
        { _tag: "Failed", key, failed: { ...failed, spent: -1 } },
        { _tag: "Failed", key },
        { _tag: "Told", key, told: { ...told, headers: "many" }, idempotencyKey: undefined },
        { _tag: "Recalled", key },
      ])
        router.route(1, tell(body));
      yield* first.put(request("a"), failed);
      assert.strictEqual(yield* spentOf(second, "a"), 1);
      const long = { ...told, message: "x".repeat(5_000) };
      yield* first.tell(request("b"), long);
      assert.isUndefined(yield* second.recall(request("b", again)));
      assert.deepStrictEqual((yield* first.recall(request("b", again)))?.told, long);
    }),
  );
});
