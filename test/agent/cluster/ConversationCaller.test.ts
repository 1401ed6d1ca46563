/**
 * A caller of conversations, over a carrier that is played: time is virtual.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Fiber } from "effect";
import { TestClock } from "effect/testing";
import * as Caller from "../../../src/agent/cluster/ConversationCaller.ts";
import { ConversationError } from "../../../src/agent/cluster/ConversationError.ts";
import type { Order, Report } from "../../../src/agent/cluster/Protocol.ts";

const report: Report = { turns: 1, how: "done", message: "", text: "hello", node: "a:1" };

const failing = (reason: ConversationError["reason"]) =>
  Effect.fail(new ConversationError({ reason, message: `it is ${reason}` }));

/** Plays what becomes of each call for a turn, the last for all that follow. */
const played = (...tries: ReadonlyArray<Effect.Effect<Report, unknown>>) => {
  const orders: Array<Order> = [];
  const carrier: Caller.Carrier = {
    look: () => Effect.succeed(report),
    turn: (_, order) =>
      Effect.suspend(() => {
        orders.push(order);
        return tries[Math.min(orders.length, tries.length) - 1] ?? Effect.never;
      }),
    cancel: () => Effect.succeed(report),
    nodes: Effect.succeed(["a:1", "b:2"]),
  };
  return { orders, caller: Caller.make("c", carrier) };
};

/** Lets so much virtual time go by, and gives what has come of it by then. */
const polled = <A, E>(fiber: Fiber.Fiber<A, E>, ms: number) =>
  Effect.map(TestClock.adjust(ms), () => fiber.pollUnsafe());

describe("A caller of conversations", () => {
  it.effect("says the same turn again until an owner answers", () =>
    Effect.gen(function* () {
      const { caller, orders } = played(failing("moved"), Effect.interrupt, Effect.die("gone"), Effect.succeed(report));
      const saying = yield* Effect.forkChild(caller.say(1, "Hello"));
      yield* TestClock.adjust(2_000);
      assert.deepStrictEqual(yield* Fiber.join(saying), report);
      assert.lengthOf(orders, 4);
      for (const order of orders) assert.deepStrictEqual(order, { turn: 1, text: "Hello" });
    }),
  );

  it.effect("leaves a node alone that takes a call and never answers", () =>
    Effect.gen(function* () {
      const { caller, orders } = played(Effect.never, Effect.succeed(report));
      const saying = yield* Effect.forkChild(caller.say(1, "Hello"));
      assert.isUndefined(yield* polled(saying, 2_999));
      assert.lengthOf(orders, 1);
      yield* TestClock.adjust(1);
      assert.deepStrictEqual(yield* Fiber.join(saying), report);
    }),
  );

  for (const [name, tries] of [
    ["none answers", Effect.never],
    ["every one gives it away", failing("moved")],
  ] as const) {
    it.effect(`says behind 10 s what it has waited for, where ${name}`, () =>
      Effect.gen(function* () {
        const { caller } = played(tries);
        const saying = yield* Effect.forkChild(Effect.flip(caller.say(1, "Hello")));
        assert.isUndefined(yield* polled(saying, 9_999));
        yield* TestClock.adjust(1);
        const { message, reason } = yield* Fiber.join(saying);
        assert.strictEqual(reason, "no_owner");
        assert.match(message, /^conversation c: waited 10 s for a live owner; .*; registered: a:1, b:2$/);
      }),
    );
  }

  it.effect("waits as long as a turn takes, while its owner answers", () =>
    Effect.gen(function* () {
      const slow = Effect.delay(Effect.succeed({ ...report, how: "running" as const }), 1_000);
      const { caller, orders } = played(...Array.from({ length: 60 }, () => slow), Effect.succeed(report));
      const saying = yield* Effect.forkChild(caller.say(1, "Hello"));
      yield* TestClock.adjust(60_000);
      assert.deepStrictEqual(yield* Fiber.join(saying), report);
      assert.lengthOf(orders, 61);
    }),
  );

  it.effect(
    "asks by its number alone for a turn that stands in the journal: where it is forgotten it does not begin again",
    () =>
      Effect.gen(function* () {
        const running = { ...report, how: "running" as const };
        const tries = [running, { ...running, written: true as const }, { ...report, how: "open" as const }];
        const { caller, orders } = played(...tries.map((it) => Effect.succeed(it)), failing("out_of_turn"));
        assert.strictEqual((yield* Effect.flip(caller.say(1, "Hello"))).reason, "out_of_turn");
        const said = { turn: 1, text: "Hello" };
        assert.deepStrictEqual(orders, [said, said, { turn: 1 }, { turn: 1 }]);
      }),
  );

  it.effect("takes what an owner refuses for its answer", () =>
    Effect.gen(function* () {
      for (const reason of ["taken", "out_of_turn", "open", "forbidden", "refused"] as const) {
        const { caller, orders } = played(failing(reason));
        assert.strictEqual((yield* Effect.flip(caller.say(1, "Hello"))).reason, reason);
        assert.lengthOf(orders, 1);
      }
    }),
  );

  it.effect("waits for a store that is away, and says so where it stays away", () =>
    Effect.gen(function* () {
      const { caller } = played(failing("store"), failing("store"), Effect.succeed(report));
      const saying = yield* Effect.forkChild(caller.say(1, "Hello"));
      yield* TestClock.adjust(1_000);
      assert.deepStrictEqual(yield* Fiber.join(saying), report);
      const away = yield* Effect.forkChild(Effect.flip(played(failing("store")).caller.say(1, "Hello")));
      yield* TestClock.adjust(10_000);
      assert.deepInclude(yield* Fiber.join(away), { reason: "store", message: "it is store" });
    }),
  );

  it.effect("names the rest that it goes on from, and what a person said of a call", () =>
    Effect.gen(function* () {
      const { caller, orders } = played(Effect.succeed(report));
      const verdict = { attempt: 1, call: "x", tool: "shell", verdict: "it_ran" } as const;
      yield* caller.goOn({ ...report, how: "parked", rest: "7.1" }, verdict);
      yield* caller.goOn({ ...report, how: "open" });
      assert.deepStrictEqual(orders, [{ turn: 1, go_on: "7.1", verdict }, { turn: 1 }]);
    }),
  );

  it.effect("sends nothing that is longer than a call may be", () =>
    Effect.gen(function* () {
      const { caller, orders } = played(Effect.succeed(report));
      const exit = yield* Effect.exit(caller.say(1, "x".repeat(1_000_001)));
      assert.isTrue(Exit.isFailure(exit));
      assert.lengthOf(orders, 0);
    }),
  );
});
