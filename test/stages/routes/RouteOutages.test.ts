/**
 * Runs with routes whose paths go down and come back, or cool down: the route of a run, and its waits.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber } from "effect";
import { TestClock } from "effect/testing";
import { Paths } from "../../../src/paths/Paths.ts";
import * as RecoveryPolicy from "../../../src/policy/RecoveryPolicy.ts";
import { StreamProcessor } from "../../../src/runtime/StreamProcessor.ts";
import * as Routes from "../../../src/stages/routes/Routes.ts";
import { attached } from "../../paths/Lab.ts";
import { type Options, Outage, path, play, processor, settle } from "../../runtime/recovery/OutageBench.ts";
import * as S from "../../runtime/Scripted.ts";
import { routeOfEach } from "./RouteBench.ts";

const spare = "https://spare";

/** Two providers with a path each. */
const world = (scripts: ReadonlyArray<ReadonlyArray<S.Step>> = [S.hello], more: Options = {}) =>
  Effect.gen(function* () {
    const [first, second] = [new Outage(), new Outage()];
    yield* attached(first.network, path);
    yield* attached(second.network, spare);
    const route = {
      id: "spare",
      provider: { id: "spare", reasoning: false },
      attempt: second.attempts(S.hello),
      observe: (it: S.ScriptedPart) => it.says,
      path: { id: spare, way: second.network },
    };
    return {
      first,
      second,
      options: (its: Options = {}) => first.options(scripts, { routes: Routes.of([route]), ...more, ...its }),
    };
  });

describe("A run whose path is down", () => {
  it.effect("moves at once and waits for nothing", () =>
    Effect.gen(function* () {
      const it = yield* world();
      it.first.network.fail();
      const seen = yield* play(it.options(), 5_000);
      assert.deepStrictEqual(routeOfEach(seen), ["first", "spare"]);
      assert.isFalse(
        seen.lines.some((line) => line.startsWith("wait")),
        seen.lines.join(" | "),
      );
      const [, moved] = seen.record.attempts;
      assert.deepInclude(moved?.run, { moves: 1, auto_retries: 0, not_processed_retries: 0, waited_ms: 0 });
    }).pipe(Effect.provide(processor())),
  );

  it.effect("starts on the next route if the outage is known, and says so on record and to its caller", () =>
    Effect.gen(function* () {
      const it = yield* world();
      it.first.network.fail();
      yield* play(it.options({ runId: "before" }), 5_000);
      const connects = it.first.unconnected;
      const seen = yield* play(it.options(), 5_000);
      assert.deepStrictEqual(routeOfEach(seen), ["spare"]);
      assert.strictEqual(it.first.unconnected, connects, "no connect was tried");
      const [only] = seen.record.attempts;
      assert.deepInclude(only, { mode: "first", route: "spare" });
      assert.strictEqual(only?.run?.moves, 1);
    }).pipe(Effect.provide(processor())),
  );

  it.effect("gets few of a hundred runs, and all are answered", () =>
    Effect.gen(function* () {
      const it = yield* world();
      it.first.network.fail();
      for (let at = 0; at < 100; at += 1) {
        const seen = yield* play(it.options({ runId: `r${at}` }), 5_000);
        assert.strictEqual(seen.lines.at(-1), "completed");
      }
      assert.isAtMost(it.first.unconnected, 5);
      assert.lengthOf(it.second.sent, 100);
    }).pipe(Effect.provide(processor())),
  );

  for (const back of ["first", "second"] as const) {
    it.effect(`waits if all are down, and uses the one that comes back first: the ${back}`, () =>
      Effect.gen(function* () {
        const it = yield* world();
        it.first.network.fail();
        it.second.network.fail();
        // One run finds both down, another one starts during the outage.
        const finds = yield* Effect.forkChild(
          S.watch((yield* StreamProcessor).run(it.options({ budget: { max_not_processed: 9 } }))),
        );
        yield* settle;
        yield* TestClock.adjust("5 seconds");
        const begins = yield* Effect.forkChild(S.watch((yield* StreamProcessor).run(it.options({ runId: "later" }))));
        yield* settle;
        yield* TestClock.adjust("20 seconds");
        assert.isUndefined(begins.pollUnsafe());
        it[back].network.mend();
        for (let second = 0; second < 15; second += 1) yield* TestClock.adjust("1 second");
        const seen = yield* Fiber.join(begins);
        assert.strictEqual(seen.lines.at(-1), "completed", seen.lines.join(" | "));
        assert.strictEqual(routeOfEach(seen).at(-1), back === "first" ? "first" : "spare");
        yield* TestClock.adjust("2 minutes");
        const found = yield* Fiber.join(finds);
        if (back === "second") assert.strictEqual(found.lines.at(-1), "completed", found.lines.join(" | "));
      }).pipe(Effect.provide(processor())),
    );
  }

  it.effect("waits for its own path if its policy never moves", () =>
    Effect.gen(function* () {
      const it = yield* world([S.hello], { policy: RecoveryPolicy.strict });
      yield* it.first.away(20_000);
      const seen = yield* play(it.options(), 60_000);
      assert.deepStrictEqual(it.second.sent, []);
      assert.isDefined(seen.lines.find((line) => line.startsWith("wait path")));
    }).pipe(Effect.provide(processor())),
  );
});

describe("A run whose provider refuses requests for some time", () => {
  const limited = (ms: number) => S.fail({ kind: "rate_limited", status: 429, retry_after_ms: ms });

  it.effect(
    "moves instead of waiting for more than five seconds, and later runs start elsewhere during that time",
    () =>
      Effect.gen(function* () {
        const it = yield* world([[limited(30_000)], S.hello]);
        assert.deepStrictEqual(routeOfEach(yield* play(it.options(), 5_000)), ["first", "spare"]);
        assert.deepStrictEqual(routeOfEach(yield* play(it.options({ runId: "r2" }), 5_000)), ["spare"]);
        assert.lengthOf(it.first.sent, 1);
        yield* TestClock.adjust("30 seconds");
        yield* play(it.options({ runId: "r3" }), 5_000);
        assert.lengthOf(it.first.sent, 2, "it is asked again once its wait is over");
      }).pipe(Effect.provide(processor())),
  );

  it.effect("waits for a shorter time", () =>
    Effect.gen(function* () {
      const it = yield* world([[limited(3_000)], S.hello]);
      assert.deepStrictEqual(routeOfEach(yield* play(it.options(), 20_000)), ["first", "first"]);
    }).pipe(Effect.provide(processor())),
  );

  it.effect("blocks no other provider during that time, because each route has its own scope", () =>
    Effect.gen(function* () {
      const it = yield* world([[limited(30_000)], S.hello]);
      yield* play(it.options(), 5_000);
      const paths = yield* Paths;
      assert.isTrue(paths.isOpen({ path: spare, credential: "", model: undefined }));
      assert.isFalse(paths.isOpen({ path, credential: "", model: undefined }));
    }).pipe(Effect.provide(processor())),
  );
});
