import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Layer } from "effect";
import { TestClock } from "effect/testing";
import * as SharedPaths from "../../../src/gateway/api/SharedPaths.ts";
import type { BusEnvelope } from "../../../src/gateway/workers/BusEnvelope.ts";
import { type BusEnd, WorkerBus } from "../../../src/gateway/workers/WorkerBus.ts";
import { Paths } from "../../../src/paths/Paths.ts";
import { members, newcomer } from "../workers/Members.ts";

const scope = { path: "https://api.example", credential: "c".repeat(32), model: "m" };
const refusal = { kind: "rate_limited", waitMs: 5_000, onlyThis: false } as const;

const built = ({ bus }: Pick<BusEnd, "bus">) =>
  Effect.map(Layer.build(Layer.provide(Layer.fresh(SharedPaths.layer), Layer.succeed(WorkerBus, bus))), (context) =>
    Context.get(context, Paths),
  );

const two = Effect.gen(function* () {
  const { ends, router } = yield* members(2);
  const [first, second] = yield* Effect.forEach(ends, built);
  if (first === undefined || second === undefined) return yield* Effect.die("too few");
  return { first, second, router };
});

describe("waits that a provider announces to one of several workers", () => {
  it.effect("hold the same credential and model at each of them, for as long", () =>
    Effect.gen(function* () {
      const { first, second } = yield* two;
      first.refused(scope, refusal);
      for (const paths of [first, second]) {
        assert.strictEqual(paths.standing(scope, 60_000).cooldownMs, 5_000);
        assert.isTrue(paths.isOpen({ ...scope, credential: "d".repeat(32) }));
        assert.isTrue(paths.isOpen({ ...scope, model: "n" }));
      }
      yield* TestClock.adjust(5_000);
      for (const paths of [first, second]) assert.isTrue(paths.isOpen(scope));
      second.refused({ ...scope, model: undefined }, { ...refusal, kind: "overloaded" });
      assert.isFalse(first.isOpen({ ...scope, model: undefined }));
    }),
  );

  it.effect("hold at a worker that takes the place of another one, for what is left of them", () =>
    Effect.gen(function* () {
      const { first, router, second } = yield* two;
      const over = { ...scope, model: "over" };
      first.refused(over, { ...refusal, waitMs: 1_000 });
      second.refused(scope, refusal);
      second.refused(scope, { ...refusal, waitMs: 100 });
      second.refused({ ...scope, model: undefined }, { ...refusal, kind: "overloaded" });
      yield* TestClock.adjust(2_000);
      const come = yield* newcomer(2, router, 2);
      const third = yield* built(come);
      assert.isTrue(third.isOpen(scope));
      come.join();
      assert.strictEqual(third.standing(scope, 60_000).cooldownMs, 3_000);
      assert.isFalse(third.isOpen({ ...scope, model: undefined }));
      assert.isTrue(third.isOpen(over));
      assert.isTrue(third.isOpen({ ...scope, credential: "d".repeat(32) }));
    }),
  );

  it.effect("hold no other request where they are about one alone, and no word that is none holds any (L11)", () =>
    Effect.gen(function* () {
      const { first, router, second } = yield* two;
      first.refused(scope, { ...refusal, onlyThis: true });
      first.refused({ ...scope, path: "x".repeat(3_000) }, refusal);
      const word = { ...scope, kind: "rate_limited", waitMs: 5_000 };
      const tell = (body: unknown): BusEnvelope => ({ _tag: "Notice", topic: "path_refused", from: 1, to: 2, body });
      for (const body of [
        null,
        {},
        { ...word, waitMs: -1 },
        { ...word, waitMs: Number.NaN },
        { ...word, kind: "later" },
      ])
        router.route(1, tell(body));
      assert.isTrue(second.isOpen(scope));
      assert.lengthOf(second.list(), 0);
      router.route(1, tell({ ...word, later: "a version that says more" }));
      assert.isFalse(second.isOpen(scope));
    }),
  );
});
