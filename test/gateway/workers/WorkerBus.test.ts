import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, References, Schema } from "effect";
import { TestClock } from "effect/testing";
import type { BusEnvelope } from "../../../src/gateway/workers/BusEnvelope.ts";
import { ProcessChannel, portTo, unsentMax } from "../../../src/gateway/workers/ProcessChannel.ts";
import * as WorkerBus from "../../../src/gateway/workers/WorkerBus.ts";
import type { SupervisorMessage } from "../../../src/gateway/workers/WorkerControl.ts";
import { notice, query, replyMsDefault } from "../../../src/gateway/workers/WorkerMessage.ts";
import { members } from "./Members.ts";

const said = notice("said", Schema.String.check(Schema.isMaxLength(8)));
const doubled = query("doubled", Schema.Int, Schema.Int);

const failure = <A>(asked: Effect.Effect<A, WorkerBus.BusError>) => Effect.map(Effect.flip(asked), (it) => it.reason);

describe("the bus between workers", () => {
  it.effect("carries a notice to all others, or to one, and to a listener only while its scope lives", () =>
    Effect.gen(function* () {
      const { ends } = yield* members(3);
      const heard: Array<string> = [];
      for (const { bus } of ends) yield* bus.on(said, (value, from) => heard.push(`${from}>${bus.self} ${value}`));
      ends[0]?.bus.tell(said, "hello");
      ends[1]?.bus.tell(said, "you", 1);
      assert.deepStrictEqual(heard, ["1>2 hello", "1>3 hello", "2>1 you"]);
      const more: Array<string> = [];
      yield* Effect.scoped(ends[2]?.bus.on(said, (value) => more.push(value)) ?? Effect.void);
      ends[0]?.bus.tell(said, "late");
      assert.deepStrictEqual(more, []);
      assert.deepStrictEqual(ends[1]?.bus.others(), [1, 3]);
    }),
  );

  it.effect("gives each reply to who asked, and what all others replied in their order", () =>
    Effect.gen(function* () {
      const { ends, router } = yield* members(3);
      for (const { bus } of ends) yield* bus.replies(doubled, (value, from) => Effect.succeed(2 * value + from * 100));
      const [first, , third] = ends;
      if (first === undefined || third === undefined) return assert.fail();
      assert.strictEqual(yield* first.bus.ask(doubled, 21, 2), 142);
      const asked = first.bus.askOthers(doubled, 1);
      router.leave(3);
      assert.deepStrictEqual(yield* asked, [{ worker: 2, value: 102 }]);
      router.join(3, third.port);
      assert.deepStrictEqual(yield* first.bus.askOthers(doubled, 1), [
        { worker: 2, value: 102 },
        { worker: 3, value: 102 },
      ]);
    }),
  );

  it.effect("has a worker that comes told by the two that have been there for longest", () =>
    Effect.gen(function* () {
      const { ends, router } = yield* members(4);
      const told: Array<string> = [];
      for (const { bus } of ends) yield* bus.onToBeTold((worker) => told.push(`${bus.self}>${worker}`));
      const [first, second] = ends;
      first?.join();
      second?.join();
      assert.deepStrictEqual(told.splice(0), ["2>1", "3>1", "3>2", "4>2"]);
      for (const gone of [3, 4]) router.leave(gone);
      second?.join();
      assert.deepStrictEqual(told, ["1>2"]);
    }),
  );

  it.effect("has another one tell it in the place of one that is gone", () =>
    Effect.gen(function* () {
      const { router } = yield* members(0);
      const said: Array<string> = [];
      const port = (worker: number, isThere: boolean) => ({
        send: (it: BusEnvelope) => {
          if (it._tag === "Joined" && it.isToBeTold === true) said.push(`${worker}>${it.from}`);
          return isThere;
        },
      });
      for (const worker of [1, 2, 3, 4]) router.join(worker, port(worker, worker > 1));
      assert.deepStrictEqual(said, ["1>2", "1>3", "2>3", "1>4", "2>4", "3>4"]);
    }),
  );

  it("says who has come and who is gone to a worker that takes nothing else, too", () => {
    const arrived: Array<unknown> = [];
    const channel = new ProcessChannel<SupervisorMessage>({
      connected: true,
      send: (message) => arrived.push(message) > 0,
    });
    const port = portTo(channel);
    const notice = { _tag: "Notice", topic: "said", from: 1, to: 2, body: "" } as const;
    for (let n = 0; n < unsentMax; n += 1) assert.isTrue(port.send(notice));
    assert.isFalse(port.send(notice));
    for (const _tag of ["Joined", "Left"] as const) assert.isTrue(port.send({ _tag, from: 3 }));
    assert.lengthOf(arrived, unsentMax + 2);
  });

  it.effect(
    "tells who asks a worker that is not there, dies, does not listen, fails, is late or says something else",
    () =>
      Effect.gen(function* () {
        const { ends, router } = yield* members(2);
        const [first, second] = ends;
        if (first === undefined || second === undefined) return assert.fail();
        assert.strictEqual(yield* failure(first.bus.ask(doubled, 1, 9)), "gone");
        assert.strictEqual(yield* failure(first.bus.ask(doubled, 1, 2)), "unknown");
        yield* Effect.scoped(
          Effect.gen(function* () {
            yield* second.bus.replies(doubled, () => Effect.die("a defect"));
            assert.strictEqual(yield* failure(first.bus.ask(doubled, 1, 2)), "failed");
          }),
        ).pipe(Effect.provideService(References.MinimumLogLevel, "None"));
        yield* second.bus.replies(doubled, () => Effect.never);
        const late = yield* Effect.forkChild(failure(first.bus.ask(doubled, 1, 2)), { startImmediately: true });
        yield* TestClock.adjust(replyMsDefault);
        assert.strictEqual(yield* Fiber.join(late), "late");
        const left: Array<number> = [];
        yield* first.bus.onLeft((worker) => left.push(worker));
        const gone = yield* Effect.forkChild(failure(first.bus.ask(doubled, 1, 2)), { startImmediately: true });
        router.leave(2);
        assert.strictEqual(yield* Fiber.join(gone), "gone");
        assert.deepStrictEqual([left, first.bus.others()], [[2], []]);
        const other = query("doubled", Schema.String, Schema.Int);
        router.join(2, second.port);
        assert.strictEqual(yield* failure(first.bus.ask(other, "x", 2)), "bad_message");
      }),
  );

  it.effect("drops what does not fit its schema, and what is sent in another's name", () =>
    Effect.gen(function* () {
      const { ends, router } = yield* members(2);
      const heard: Array<string> = [];
      yield* ends[1]?.bus.on(said, (value) => heard.push(value)) ?? Effect.void;
      const sent = (body: unknown, from = 1): BusEnvelope => ({ _tag: "Notice", topic: "said", from, to: 2, body });
      for (const message of [sent(7), sent("far too long"), sent("hi", 3), { _tag: "Left", from: 1 }, "junk", null])
        router.route(1, message);
      assert.deepStrictEqual([heard, ends[1]?.bus.others()], [[], [1]]);
      router.route(1, sent("hi"));
      assert.deepStrictEqual(heard, ["hi"]);
    }),
  );

  it.effect("says of what does not fit its own schema that it is not sent, and breaks nothing for who says it", () =>
    Effect.gen(function* () {
      const { ends, supervisor } = yield* members(2);
      const heard: Array<string> = [];
      for (const { bus } of ends) yield* bus.on(said, (value) => heard.push(value));
      for (const { bus } of ends) yield* bus.replies(doubled, (value) => Effect.succeed(value));
      assert.isFalse(supervisor.bus.tell(said, "far too long"));
      assert.strictEqual(yield* failure(supervisor.bus.ask(doubled, 0.5, 1)), "bad_message");
      assert.deepStrictEqual(yield* supervisor.bus.askOthers(doubled, 0.5), []);
      assert.isTrue(supervisor.bus.tell(said, "short"));
      assert.deepStrictEqual(heard, ["short", "short"]);
    }),
  );

  it.effect("holds no more than so many queries, and forgets those that nobody waits for (L11)", () =>
    Effect.gen(function* () {
      const { ends } = yield* members(2);
      const [first, second] = ends;
      if (first === undefined || second === undefined) return assert.fail();
      yield* second.bus.replies(doubled, () => Effect.never);
      const asking = yield* Effect.forEach(Array.from({ length: WorkerBus.queriesMax }), () =>
        Effect.forkChild(first.bus.ask(doubled, 1, 2), { startImmediately: true }),
      );
      assert.strictEqual(yield* failure(first.bus.ask(doubled, 1, 2)), "busy");
      yield* Fiber.interruptAll(asking);
      const again = yield* Effect.forkChild(failure(first.bus.ask(doubled, 1, 2)), { startImmediately: true });
      yield* TestClock.adjust(replyMsDefault);
      assert.strictEqual(yield* Fiber.join(again), "late");
    }),
  );
});
