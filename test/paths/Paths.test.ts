import { expect, it } from "@effect/vitest";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as TestClock from "effect/testing/TestClock";
import type { Probed } from "../../src/paths/Path.ts";
import { type Admission, type Admitted, Paths, type Scope } from "../../src/paths/Paths.ts";

const scope: Scope = { path: "https://a", credential: "c", model: "m" };

const ask = (told: Array<string> = [], over: Partial<Admission> = {}): Admission => ({
  scope,
  maxRetryAfterMs: 60_000,
  withinMs: Number.POSITIVE_INFINITY,
  told: (wait) => void told.push(wait.for),
  hold: () => {},
  ...over,
});

it.effect("1,000 runs wait for one path, and all go within ten seconds of its return", () =>
  Effect.gen(function* () {
    const paths = yield* Paths;
    let well = false;
    let probes = 0;
    paths.attach(scope.path, {
      probe: Effect.sync((): Probed => {
        probes += 1;
        return well ? { _tag: "works" } : { _tag: "failed", reason: "network", code: "ECONNREFUSED" };
      }),
      dropIdle: () => {},
    });
    paths.answered(scope);
    expect(paths.isOpen(scope)).toBe(true);
    yield* paths.unconnected(scope, "ECONNREFUSED");
    expect(paths.standing(scope, 60_000).path).toBe("down");
    let gone = 0;
    let going = 0;
    const run = Effect.gen(function* () {
      let leave = (): void => {};
      const admitted: Admitted = yield* paths.admit(ask([], { hold: (given) => void (leave = given) }));
      expect(admitted._tag).toBe("admitted");
      going += 1;
      yield* Effect.sleep(100);
      paths.answered(scope);
      leave();
      going -= 1;
      gone += 1;
    });
    const fibers = yield* Effect.forEach(Array.from({ length: 1_000 }), () => Effect.forkChild(run));
    yield* TestClock.adjust(20_000);
    expect(gone).toBe(0);
    well = true;
    yield* TestClock.adjust(2_000);
    expect(gone + going).toBeGreaterThan(8);
    yield* TestClock.adjust(8_000);
    expect(gone).toBe(1_000);
    expect(probes).toBeLessThan(40);
    yield* Effect.forEach(fibers, Fiber.join);
    yield* TestClock.adjust(6_000);
    expect(paths.list()[0]).toMatchObject({ state: "up", waiting: 0 });
  }).pipe(Effect.provide(Paths.layer)),
);

it.effect("a cooldown holds its scope and no other, and its end lets the run go", () =>
  Effect.gen(function* () {
    const paths = yield* Paths;
    paths.refused(scope, { kind: "rate_limited", waitMs: 10_000, onlyThis: false });
    expect(paths.isOpen(scope)).toBe(false);
    expect(paths.isOpen({ ...scope, model: "n" })).toBe(true);
    expect(paths.standing(scope, 4_000)).toEqual({ path: "up", cooldownMs: 4_000 });
    const told: Array<string> = [];
    const fiber = yield* Effect.forkChild(paths.admit(ask(told)));
    expect(yield* paths.admit(ask([], { withinMs: 5_000 }))).toMatchObject({ _tag: "too_long", waitMs: 10_000 });
    yield* TestClock.adjust(9_999);
    expect(fiber.pollUnsafe()).toBeUndefined();
    yield* TestClock.adjust(1);
    expect(yield* Fiber.join(fiber)).toEqual({ _tag: "admitted", waitedMs: 10_000 });
    expect(told).toEqual(["cooldown"]);
    expect(paths.isOpen(scope)).toBe(true);
  }).pipe(Effect.provide(Paths.layer)),
);
