import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect } from "effect";
import { TestClock } from "effect/testing";
import { HeldElsewhere, heldMs } from "../../../src/gateway/attach/HeldElsewhere.ts";
import * as MemoryFacts from "../../recorder/shared/MemoryFacts.ts";

const owners = (held: HeldElsewhere, of: string) => [...held.ownersOf(of)].toSorted();

const key = (n: number): string => n.toString(16).padStart(64, "0");

/** Lets what was told come through: it is put, heard and read. */
const told = Effect.repeat(TestClock.adjust(1), { times: 3 });

/** Three workers of a gateway, what each knows of the others, and their store. */
const workers = Effect.gen(function* () {
  const clock = yield* Clock.Clock;
  const store = MemoryFacts.make(() => clock.currentTimeMillisUnsafe());
  const start = (self: number, folder = "mine") => HeldElsewhere.make({ self, folder }, store.process());
  const [first, second, third] = [yield* start(1), yield* start(2), yield* start(3)];
  return { first, second, third, start, store };
});

describe("what a worker knows of runs that others hold", () => {
  it.effect("is told of a run that its reader has left, also where it starts later, until the run is over", () =>
    Effect.gen(function* () {
      const { first, second, start, third } = yield* workers;
      yield* told;
      assert.isTrue(second.isEmpty);
      first.add(key(1));
      yield* told;
      assert.deepStrictEqual([owners(second, key(1)), owners(third, key(1))], [[1], [1]]);
      assert.deepStrictEqual(owners(first, key(1)), [], "its own runs it knows without");
      const later = yield* start(2);
      yield* told;
      assert.deepStrictEqual(owners(later, key(1)), [1]);
      first.recordOver(key(1));
      first.add(key(2));
      yield* told;
      assert.deepStrictEqual([owners(second, key(1)), owners(second, key(2))], [[], [1]]);
    }).pipe(Effect.scoped),
  );

  it.effect("holds a key until the last run of it is over, at each of its workers", () =>
    Effect.gen(function* () {
      const { first, second, third } = yield* workers;
      first.add(key(1));
      first.add(key(1));
      third.add(key(1));
      yield* told;
      assert.deepStrictEqual(owners(second, key(1)), [1, 3]);
      const known = Effect.fnUntraced(function* () {
        // A row that is gone rings no bell: what comes next does.
        third.add(key(2));
        yield* told;
        return owners(second, key(1));
      });
      first.recordOver(key(1));
      assert.deepStrictEqual(yield* known(), [1, 3]);
      first.recordOver(key(1));
      yield* told;
      third.recordOver(key(2));
      assert.deepStrictEqual(yield* known(), [3]);
    }).pipe(Effect.scoped),
  );

  it.effect("is nothing of another gateway over the same store, and nothing for ever of a worker that has died", () =>
    Effect.gen(function* () {
      const { first, second, start, store } = yield* workers;
      const stranger = yield* start(1, "another");
      stranger.add(key(1));
      first.add(key(2));
      yield* told;
      assert.deepStrictEqual([owners(second, key(1)), owners(stranger, key(2))], [[], []]);
      yield* TestClock.adjust(heldMs);
      store.say({ _tag: "Look" });
      yield* told;
      assert.isTrue(second.isEmpty);
    }).pipe(Effect.scoped),
  );

  it.effect("makes no defect of what no version of this program has put there, nor of a store that is away", () =>
    Effect.gen(function* () {
      const { first, second, store } = yield* workers;
      const other = store.process();
      const held = { folder: "mine", worker: 1, key: key(1) };
      for (const value of ["", "null", "{}", JSON.stringify({ ...held, key: "sk-one" })])
        yield* other.put("held", value, value, 60_000);
      yield* told;
      assert.isTrue(second.isEmpty);
      yield* other.put("held", "later", JSON.stringify({ ...held, later: "a version that says more" }), 60_000);
      yield* told;
      assert.deepStrictEqual(owners(second, key(1)), [1]);
      store.isAway = true;
      first.add(key(2));
      first.recordOver(key(2));
      yield* told;
      assert.deepStrictEqual(owners(second, key(2)), []);
    }).pipe(Effect.scoped),
  );

  it.effect("is told by gateways with an address, to gateways that have one", () =>
    Effect.gen(function* () {
      const { first, store } = yield* workers;
      const place = (origin: string, self = 0, folder?: string) => ({ self, folder, origin });
      const [a, b] = ["https://a.test", "https://b.test:8787"];
      const start = (at: ReturnType<typeof place>) => HeldElsewhere.make(at, store.process());
      const [one, same, other] = [yield* start(place(a)), yield* start(place(a)), yield* start(place(b))];
      const [near, far] = [yield* start(place(b, 1, "theirs")), yield* start(place(b, 2, "theirs"))];
      one.add(key(1));
      near.add(key(2));
      other.add(key(2));
      yield* told;
      assert.deepStrictEqual(owners(other, key(1)), [a]);
      assert.deepStrictEqual(owners(far, key(1)), [a]);
      assert.deepStrictEqual(owners(same, key(1)), [], "its own address leads to itself");
      assert.deepStrictEqual(owners(first, key(1)), [], "it reaches no address");
      assert.deepStrictEqual(owners(one, key(2)), [b]);
      assert.deepStrictEqual(owners(far, key(2)), [1], "a worker of its own gateway has a socket");
      other.recordOver(key(2));
      near.recordOver(key(2));
      one.add(key(3));
      yield* told;
      assert.deepStrictEqual(owners(one, key(2)), []);
    }).pipe(Effect.scoped),
  );
});
