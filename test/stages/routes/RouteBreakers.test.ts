/**
 * Breakers of routes: runs that start on another route, and the run that tries a route again.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { TestClock } from "effect/testing";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as S from "../../runtime/Scripted.ts";
import { type More, quota, rejected, routed, routeOfEach, soon } from "./RouteBench.ts";

/** Opens the breaker of the first route with a refusal that is the route's own fault. */
const opened = Effect.gen(function* () {
  const run = routed([[rejected(401, "auth")]], { b: [S.hello] }, { ownRoute: true });
  yield* Fiber.join(yield* soon(run));
});

describe("A breaker", () => {
  it.effect(
    "that is half open lets one run through, and the others start on the next route until that one has answered",
    () =>
      Effect.gen(function* () {
        yield* opened;
        yield* TestClock.adjust("10 seconds");
        const trial = routed([[S.start, S.wait(5_000), S.done]], { b: [] }, { ownRoute: true });
        const other = routed([], { b: [S.hello] }, { ownRoute: true });
        const trying = yield* soon(trial);
        const beside = yield* soon(other);
        assert.deepStrictEqual(routeOfEach(yield* Fiber.join(beside)), ["b"]);
        yield* TestClock.adjust("5 seconds");
        assert.deepStrictEqual(routeOfEach(yield* Fiber.join(trying)), ["first"]);
        const next = routed([S.hello], { b: [] }, { ownRoute: true });
        assert.deepStrictEqual(routeOfEach(yield* Fiber.join(yield* soon(next))), ["first"]);
      }).pipe(Effect.provide(S.processor())),
  );

  it.effect("opens for twice as long if the run that tries fails, and that run is answered elsewhere", () =>
    Effect.gen(function* () {
      yield* opened;
      yield* TestClock.adjust("10 seconds");
      yield* opened;
      yield* TestClock.adjust("19 seconds");
      const early = routed([], { b: [S.hello] }, { ownRoute: true });
      assert.deepStrictEqual(routeOfEach(yield* Fiber.join(yield* soon(early))), ["b"]);
      yield* TestClock.adjust("1 second");
      const late = routed([S.hello], { b: [] }, { ownRoute: true });
      assert.deepStrictEqual(routeOfEach(yield* Fiber.join(yield* soon(late))), ["first"]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("gives the trial to the next run if the trial run was cancelled", () =>
    Effect.gen(function* () {
      yield* opened;
      yield* TestClock.adjust("10 seconds");
      const left = routed([[S.start, S.never]], { b: [] }, { ownRoute: true });
      yield* Fiber.interrupt(yield* soon(left));
      const next = routed([S.hello], { b: [] }, { ownRoute: true });
      assert.deepStrictEqual(routeOfEach(yield* Fiber.join(yield* soon(next))), ["first"]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("gives the trial to the next run if the trial run was refused because its id is on record", () =>
    Effect.gen(function* () {
      yield* Fiber.join(yield* soon(routed([S.hello], { b: [] }, { ownRoute: true, runId: "r" })));
      yield* opened;
      yield* TestClock.adjust("10 seconds");
      const refused = yield* Fiber.join(yield* soon(routed([], { b: [] }, { ownRoute: true, runId: "r" })));
      assert.strictEqual(S.errorOf(refused.exit)?.reason, "refused");
      const next = routed([S.hello], { b: [] }, { ownRoute: true });
      assert.deepStrictEqual(routeOfEach(yield* Fiber.join(yield* soon(next))), ["first"]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("lets every run use its first route if no other route is up", () =>
    Effect.gen(function* () {
      yield* opened;
      // The second route's own breaker is open as well.
      yield* Fiber.join(yield* soon(routed([[quota]], { b: [[rejected(404, "not_found")]] }, { ownRoute: true })));
      const run = routed([S.hello], { b: [] }, { ownRoute: true });
      assert.deepStrictEqual(routeOfEach(yield* Fiber.join(yield* soon(run))), ["first"]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("that has kept a run from its first route leaves that route for it if the second is worse", () =>
    Effect.gen(function* () {
      yield* opened;
      const more: More = { ownRoute: true, runId: "r" };
      const run = routed([S.hello], { b: [[S.wait(10_000), rejected(400, "invalid_request")]] }, more);
      const fiber = yield* soon(run);
      yield* TestClock.adjust("10 seconds");
      assert.deepStrictEqual(routeOfEach(yield* Fiber.join(fiber)), ["b", "first"]);
      const { attempts } = yield* S.recordOf("r");
      assert.deepStrictEqual(
        attempts.map(({ mode, route, run: facts }) => [mode, route, facts?.moves]),
        [
          ["first", "b", 1],
          ["replay", undefined, 2],
        ],
      );
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("moves no run that may not move", () =>
    Effect.gen(function* () {
      yield* opened;
      const run = routed([S.hello], { b: [] }, { ownRoute: true, budget: { max_moves: 0 } });
      assert.deepStrictEqual(routeOfEach(yield* Fiber.join(yield* soon(run))), ["first"]);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("of a caller's own credential is opened by no refusal of it, because another caller's may be valid", () =>
    Effect.gen(function* () {
      for (let at = 0; at < 6; at += 1) {
        yield* Fiber.join(yield* soon(routed([[rejected(401, "auth")]], { b: [] })));
      }
      assert.deepStrictEqual(routeOfEach(yield* Fiber.join(yield* soon(routed([S.hello], { b: [] })))), ["first"]);
    }).pipe(Effect.provide(S.processor())),
  );
});

describe("A dead first route", () => {
  const dead = S.fail({ kind: "transport", operation: "connect", code: "ECONNREFUSED" });

  it.effect("gets five runs, and no further one until its breaker lets one try", () =>
    Effect.gen(function* () {
      const processor = yield* StreamProcessor;
      let asked = 0;
      for (let at = 0; at < 100; at += 1) {
        const run = routed([[dead], [dead]], { b: [S.hello] });
        const fiber = yield* Effect.forkChild(S.watch(processor.run(run.options)));
        // All but the last of the hundred start within ten seconds.
        yield* TestClock.adjust("100 millis");
        if (fiber.pollUnsafe() === undefined) yield* TestClock.adjust("600 millis");
        assert.strictEqual((yield* Fiber.join(fiber)).lines.at(-1), "completed");
        asked += run.requests()[0] ?? 0;
      }
      assert.isAtMost(asked, 12);
    }).pipe(Effect.provide(S.processor())),
  );

  it.effect("of one processor says nothing to another", () => {
    const started = Effect.gen(function* () {
      const run = yield* soon(routed([S.hello], { b: [] }, { ownRoute: true }));
      return routeOfEach(yield* Fiber.join(run));
    });
    return Effect.gen(function* () {
      yield* Effect.provide(opened, S.processor());
      assert.deepStrictEqual(yield* Effect.provide(started, S.processor()), ["first"]);
    });
  });
});
