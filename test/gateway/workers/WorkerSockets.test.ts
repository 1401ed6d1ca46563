import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit, Fiber, References, Schema, Scope } from "effect";
import { TestClock } from "effect/testing";
import {
  type AskError,
  type Destination,
  hopHeader,
  query,
  requestTo,
} from "../../../src/gateway/workers/SignedWire.ts";
import * as WorkerSockets from "../../../src/gateway/workers/WorkerSockets.ts";
import { folder } from "../../cli/ServeProcess.ts";
import { eventually, turn } from "../../Polling.ts";
import { key, members, two, ways } from "./Members.ts";

const doubled = query("doubled", Schema.Int, Schema.Number);

const failure = <A>(asked: Effect.Effect<A, AskError>) => Effect.map(Effect.flip(asked), (it) => it.reason);

const quiet = Effect.provideService(References.MinimumLogLevel, "None");

/** The status of a request to a process. */
const statusOf = (to: Destination, headers: Record<string, string>) =>
  Effect.promise(
    () =>
      new Promise<number | undefined>((resolve) => {
        const request = requestTo(to, headers);
        request.on("response", (response) => resolve(response.resume().statusCode));
        request.on("error", () => resolve(undefined));
        request.end();
      }),
  );

describe("the sockets of workers", () => {
  it.live("give each reply to the worker that asked, and those of all others in their order", () =>
    Effect.gen(function* () {
      const all = yield* members(3);
      for (const { serveQuery: replies, self } of all)
        yield* replies(doubled, (value) => Effect.succeed(2 * value + self / 10));
      const [first] = all;
      if (first === undefined) return assert.fail();
      assert.deepStrictEqual(first.others, [2, 3]);
      assert.strictEqual(yield* first.ask(doubled, 21, 2), 42.2);
      const [one, other] = yield* first.askOthers(doubled, 1);
      assert.deepStrictEqual(
        [one, other],
        [
          { worker: 2, value: 2.2 },
          { worker: 3, value: 2.3 },
        ],
      );
    }).pipe(Effect.scoped),
  );

  it.live("carry numbers for which JSON has no word", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two;
      yield* second.serveQuery(doubled, () => Effect.succeed(Number.POSITIVE_INFINITY));
      assert.strictEqual(yield* first.ask(doubled, 1, 2), Number.POSITIVE_INFINITY);
    }).pipe(Effect.scoped),
  );

  it.live("say that a worker is gone, also one that has died and left its socket, or does not know the question", () =>
    Effect.gen(function* () {
      const dir = yield* folder;
      const place = { workers: 3, folder: dir };
      const first = yield* WorkerSockets.make({ ...place, self: 1 }, key);
      const scope = yield* Scope.make();
      const second = yield* Scope.provide(WorkerSockets.make({ ...place, self: 2 }, key), scope);
      assert.strictEqual(yield* failure(first.ask(doubled, 1, 3)), "gone");
      assert.strictEqual(yield* failure(first.ask(doubled, 1, 2)), "refused");
      yield* Effect.scoped(
        Effect.gen(function* () {
          yield* second.serveQuery(doubled, () => Effect.die("a defect"));
          assert.strictEqual(yield* failure(first.ask(doubled, 1, 2)), "refused");
        }),
      );
      yield* second.serveQuery(doubled, () => Effect.succeed(7));
      const other = query("doubled", Schema.String, Schema.Number);
      assert.strictEqual(yield* failure(first.ask(other, "x", 2)), "refused");
      const more = query("doubled", Schema.Int, Schema.String);
      assert.strictEqual(yield* failure(first.ask(more, 1, 2)), "refused", "the reply is another one");
      assert.deepStrictEqual(yield* first.askOthers(doubled, 1), [{ worker: 2, value: 7 }]);
      yield* Scope.close(scope, Exit.void);
      assert.strictEqual(yield* failure(first.ask(doubled, 1, 2)), "gone");
      assert.deepStrictEqual(yield* first.askOthers(doubled, 1), []);
      // Its replacement has its number.
      const third = yield* WorkerSockets.make({ ...place, self: 2 }, key);
      yield* third.serveQuery(doubled, () => Effect.succeed(8));
      assert.strictEqual(yield* first.ask(doubled, 1, 2), 8);
    }).pipe(Effect.scoped, quiet),
  );

  it.effect("wait for a worker that hangs as long as its question says, and no longer", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two;
      let asked = 0;
      yield* second.serveQuery(doubled, () =>
        Effect.andThen(
          Effect.sync(() => (asked += 1)),
          Effect.never,
        ),
      );
      const late = yield* Effect.forkChild(failure(first.ask(doubled, 1, 2)), { startImmediately: true });
      yield* eventually(() => (asked > 0 ? true : undefined));
      yield* TestClock.adjust(doubled.replyMs - 1);
      assert.isUndefined(late.pollUnsafe());
      yield* TestClock.adjust(1);
      assert.strictEqual(yield* Fiber.join(late), "late");
    }).pipe(Effect.scoped),
  );

  it.live(
    "drop what is no question, and what does not fit its own schema breaks nothing for the worker that asks",
    () =>
      Effect.gen(function* () {
        const { first, second } = yield* two;
        yield* second.serveQuery(doubled, (value) => Effect.succeed(value));
        assert.strictEqual(yield* failure(first.ask(doubled, 0.5, 2)), "refused");
        assert.deepStrictEqual(yield* first.askOthers(doubled, 0.5), []);
        const signed = first.hopTo(2);
        for (const word of [
          "",
          "%",
          "null",
          "{}",
          encodeURIComponent(JSON.stringify({ name: "doubled", body: "many" })),
        ]) {
          const { [hopHeader]: said = "", ...signature } = signed.headersOf(word);
          assert.include([400, 403], yield* statusOf(signed.to, { ...signature, "x-recovery-ask": said }), word);
        }
        assert.strictEqual(yield* first.ask(doubled, 3, 2), 3);
      }).pipe(Effect.scoped),
  );

  it.live("reach nobody without a folder or a secret, and serve alone where the socket cannot be", () =>
    Effect.gen(function* () {
      const dir = yield* folder;
      const place = { self: 1, workers: 2 };
      for (const alone of [
        yield* WorkerSockets.make({ ...place, folder: undefined }, key),
        yield* WorkerSockets.make({ ...place, folder: dir }, undefined),
      ]) {
        assert.deepStrictEqual(alone.others, []);
        assert.strictEqual(yield* failure(alone.ask(doubled, 1, 2)), "gone");
      }
      for (const wrong of ["/dev/null", `/tmp/${"long".repeat(50)}`])
        assert.deepStrictEqual((yield* WorkerSockets.make({ ...place, folder: wrong }, key)).others, [2]);
      yield* turn;
    }).pipe(Effect.scoped, quiet),
  );
});

for (const [way, reached] of Object.entries(ways))
  describe(`requests over ${way}`, () => {
    it.live("take no word without a signature, and none twice", () =>
      Effect.gen(function* () {
        const { serveHops, target } = yield* reached;
        const { headersOf, to } = target;
        assert.strictEqual(yield* statusOf(to, headersOf("word")), 404, "nothing serves");
        const words: Array<string> = [];
        yield* serveHops((_, response, word) => {
          words.push(word);
          response.writeHead(200).end();
        });
        const headers = headersOf("word");
        for (const wrong of [{}, { [hopHeader]: "word" }, { ...headers, [hopHeader]: "worD" }])
          assert.strictEqual(yield* statusOf(to, wrong), 403);
        assert.deepStrictEqual([yield* statusOf(to, headers), yield* statusOf(to, headers)], [200, 403]);
        assert.deepStrictEqual(words, ["word"]);
      }).pipe(Effect.scoped),
    );
  });
