import { describe, expect, it } from "@effect/vitest";
import * as Clock from "effect/Clock";
import * as Deferred from "effect/Deferred";
import type * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Scope from "effect/Scope";
import * as TestClock from "effect/testing/TestClock";
import { Paths } from "../../src/paths/Paths.ts";
import { attached, downPath, Network, Runs, scope } from "./Lab.ts";

const many = <A, E, R>(count: number, one: Effect.Effect<A, E, R>) =>
  Effect.forEach(Array.from({ length: count }), () => Effect.forkChild(one));

const limited = (waitMs: number) => ({ kind: "rate_limited" as const, waitMs, onlyThis: false });

describe("an outage", () => {
  it.effect(
    "is waited for by 1,000 runs, and all of them start within ten seconds of its end, never more than the wave allows",
    () =>
      Effect.gen(function* () {
        const network = new Network();
        const runs = new Runs();
        const paths = yield* downPath(network);
        expect(paths.standing(scope, 60_000).path).toBe("down");
        const fibers = yield* many(1_000, runs.run(network));
        yield* TestClock.adjust(20_250);
        expect(runs.sent).toEqual([]);
        network.mend();
        yield* TestClock.adjust(10_000);
        expect(runs.answered).toBe(1_000);
        expect(runs.sent[0]).toBeLessThanOrEqual(20_250 + 1_500 + 500);
        expect(runs.beyond).toBe(0);
        expect(runs.goingMost).toBeGreaterThan(100);
        expect(network.probingMost).toBe(1);
        expect(runs.told.length).toBe(1_000);
        yield* Effect.forEach(fibers, Fiber.join);
        yield* TestClock.adjust(6_000);
        expect(paths.list()).toMatchObject([{ state: "up", waiting: 0 }]);
        const { probes } = network;
        yield* TestClock.adjust("1 hour");
        expect(network.probes).toBe(probes);
      }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("with slow probes sends one probe at a time, and drops the idle connections with each failure", () =>
    Effect.gen(function* () {
      const network = new Network();
      network.takes = 5_000;
      const paths = yield* attached(network);
      network.fail();
      const unconnected = yield* many(50, paths.recordConnectFailure(scope, "ETIMEDOUT"));
      yield* TestClock.adjust(5_000);
      yield* Effect.forEach(unconnected, Fiber.join);
      expect(network.probes).toBe(1);
      const fiber = yield* Effect.forkChild(new Runs().run(network));
      yield* TestClock.adjust(60_000);
      expect(network.probingMost).toBe(1);
      expect(network.probes).toBeGreaterThan(10);
      expect(network.dropped).toBe(network.probes - 1);
      yield* Fiber.interrupt(fiber);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("that comes and goes every two seconds lets all its runs through, and loses none", () =>
    Effect.gen(function* () {
      const network = new Network();
      const runs = new Runs();
      const paths = yield* downPath(network);
      const fibers = yield* many(300, runs.run(network));
      for (let n = 0; n < 30; n += 1) {
        if (n % 2 === 0) network.fail();
        else network.mend();
        yield* TestClock.adjust(2_000);
      }
      network.mend();
      yield* TestClock.adjust(10_000);
      yield* Effect.forEach(fibers, Fiber.join);
      expect(runs.answered).toBe(300);
      expect(runs.sent.length).toBeLessThan(300 + 30 * 64);
      expect(paths.list()[0]?.waiting).toBe(0);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("is no worse if runs give their place back before they say that they could not connect", () =>
    Effect.gen(function* () {
      const network = new Network();
      const paths = yield* downPath(network);
      network.mend();
      let sent = 0;
      const run = Effect.gen(function* () {
        for (;;) {
          const left: Array<() => void> = [];
          yield* paths.admit({
            scope,
            maxRetryAfterMs: 1,
            withinMs: 1e9,
            onWait: () => {},
            hold: (leave) => void left.push(leave),
          });
          sent += 1;
          yield* Effect.sleep(1);
          left[0]?.();
          yield* Effect.sleep(1);
          yield* paths.recordConnectFailure(scope, "ECONNREFUSED");
        }
      });
      const fibers = yield* many(100, run);
      yield* TestClock.adjust(60_000);
      expect(sent).toBeLessThan(8 + 76);
      yield* Effect.forEach(fibers, Fiber.interrupt);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("whose probes work while its requests fail sends about one request per probe, and ends in time", () =>
    Effect.gen(function* () {
      const network = new Network();
      const paths = yield* attached(network);
      const runs = new Runs();
      const wrong = new Network();
      wrong.fail();
      network.fail();
      yield* paths.recordConnectFailure(scope, "ECONNREFUSED");
      network.mend();
      const fibers = yield* many(100, runs.run(wrong, { withinMs: 60_000 }));
      yield* TestClock.adjust(60_000);
      expect(runs.sent.length).toBeLessThan(8 + 70);
      expect(runs.sent.length).toBeGreaterThan(20);
      yield* Effect.forEach(fibers, Fiber.interrupt);
      expect(paths.list()[0]?.waiting).toBe(0);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("half of whose runs are interrupted lets the other half go, and sends nothing for the first", () =>
    Effect.gen(function* () {
      const network = new Network();
      const runs = new Runs();
      const paths = yield* downPath(network);
      const fibers = yield* many(200, runs.run(network));
      yield* TestClock.adjust(3_000);
      const half = fibers.filter((_, n) => n % 2 === 0);
      yield* Effect.forEach(half, Fiber.interrupt);
      expect(paths.list()[0]?.waiting).toBe(100);
      network.mend();
      yield* TestClock.adjust(10_000);
      expect(runs.sent.length).toBe(100);
      expect(runs.answered).toBe(100);
      expect(paths.list()[0]?.waiting).toBe(0);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("behind a captive portal lasts until the origin shows its own certificate", () =>
    Effect.gen(function* () {
      const network = new Network();
      const runs = new Runs();
      const paths = yield* attached(network);
      network.finds = { _tag: "failed", reason: "certificate", code: "CERT_HAS_EXPIRED" };
      yield* paths.recordConnectFailure(scope, "CERT_HAS_EXPIRED");
      const fiber = yield* Effect.forkChild(runs.run(network));
      yield* TestClock.adjust(300_000);
      expect(runs.sent).toEqual([]);
      expect(paths.list()).toMatchObject([{ state: "down", code: "CERT_HAS_EXPIRED" }]);
      network.mend();
      yield* TestClock.adjust(7_000);
      yield* Fiber.join(fiber);
      expect(runs.answered).toBe(1);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("does not exist if the path was never reached, and does if the record says that it was", () =>
    Effect.gen(function* () {
      const network = new Network();
      network.fail("ENOTFOUND");
      const paths = yield* Paths;
      paths.attach(scope.path, network);
      yield* paths.recordConnectFailure(scope, "ENOTFOUND");
      for (let n = 0; n < 20; n += 1) paths.recordBreak(scope);
      expect(paths.isOpen(scope)).toBe(true);
      expect(paths.hasReached(scope.path)).toBe(false);
      paths.markReached(scope.path);
      expect(paths.hasReached(scope.path)).toBe(true);
      yield* paths.recordConnectFailure(scope, "ENOTFOUND");
      expect(paths.isOpen(scope)).toBe(false);
      expect(paths.list()).toMatchObject([{ state: "down", code: "ENOTFOUND", probes: 1 }]);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("of a path without a probe admits one run at a time, 1 s apart and doubling to 15 s", () =>
    Effect.gen(function* () {
      const network = new Network();
      const runs = new Runs();
      const paths = yield* Paths;
      paths.recordResponse(scope);
      network.fail();
      yield* paths.recordConnectFailure(scope, "ECONNREFUSED");
      const fibers = yield* many(50, runs.run(network));
      yield* TestClock.adjust(60_000);
      const gaps = runs.sent.slice(1).map((at, n) => at - (runs.sent[n] ?? 0));
      expect(runs.sent.length).toBeGreaterThan(4);
      expect(runs.sent.length).toBeLessThan(9);
      expect(Math.min(...gaps)).toBeGreaterThan(1_500);
      expect(Math.max(...gaps)).toBeLessThan(18_100);
      network.mend();
      yield* TestClock.adjust(30_000);
      yield* Effect.forEach(fibers, Fiber.join);
      expect(runs.answered).toBe(50);
      expect(runs.beyond).toBe(0);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("of a path without a probe continues after the run that served as the probe was interrupted", () =>
    Effect.gen(function* () {
      const runs = new Runs();
      const network = new Network();
      const paths = yield* Paths;
      paths.recordResponse(scope);
      yield* paths.recordConnectFailure(scope, "ECONNREFUSED");
      const left: Array<() => void> = [];
      const first = yield* Effect.forkChild(
        Effect.andThen(
          paths.admit({
            scope,
            maxRetryAfterMs: 1,
            withinMs: 1e9,
            onWait: () => {},
            hold: (leave) => void left.push(leave),
          }),
          Effect.never,
        ),
      );
      const second = yield* Effect.forkChild(runs.run(network));
      yield* TestClock.adjust(1_250);
      expect(left.length).toBe(1);
      yield* TestClock.adjust(3_000);
      expect(runs.sent).toEqual([]);
      yield* Fiber.interrupt(first);
      left[0]?.();
      yield* TestClock.adjust(1_300);
      yield* Fiber.join(second);
      expect(runs.answered).toBe(1);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("without waiting runs is forgotten after two minutes, and found again by the next request", () =>
    Effect.gen(function* () {
      const network = new Network();
      const paths = yield* downPath(network);
      yield* TestClock.adjust("10 minutes");
      expect(paths.isOpen(scope)).toBe(true);
      const { probes } = network;
      yield* TestClock.adjust("10 minutes");
      expect(network.probes).toBe(probes);
      yield* paths.recordConnectFailure(scope, "ECONNREFUSED");
      expect(paths.isOpen(scope)).toBe(false);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("ends only for a run whose time is over", () =>
    Effect.gen(function* () {
      const network = new Network();
      const runs = new Runs();
      const paths = yield* downPath(network);
      yield* many(3, runs.request(network, { withinMs: 30_000 }));
      const longer = yield* Effect.forkChild(runs.request(network));
      yield* TestClock.adjust(29_999);
      expect(runs.ends).toEqual([]);
      yield* TestClock.adjust(1);
      expect(runs.ends).toEqual(
        Array.from({ length: 3 }, () => ({ _tag: "too_long", for: "path", waitedMs: 30_000, waitMs: 0 })),
      );
      expect(paths.list()[0]?.waiting).toBe(1);
      yield* Fiber.interrupt(longer);
      expect(paths.list()[0]?.waiting).toBe(0);
    }).pipe(Effect.provide(Paths.layer)),
  );
});

describe("connections that break together", () => {
  it.effect("are an outage until a probe says otherwise: 1,000 runs find the path down and start in waves", () =>
    Effect.gen(function* () {
      const network = new Network();
      network.takes = 20;
      const runs = new Runs();
      const paths = yield* attached(network);
      const stood: Array<string> = [];
      const broken = Effect.gen(function* () {
        paths.recordBreak(scope);
        stood.push(paths.standing(scope, 60_000).path);
        yield* runs.run(network);
      });
      const fibers = yield* many(1_000, broken);
      yield* TestClock.adjust(5_000);
      yield* Effect.forEach(fibers, Fiber.join);
      expect(stood.filter((path) => path === "up").length).toBe(8);
      expect(network.probes).toBe(1);
      // Runs that found the path up before the ninth break were admitted at once, as usual.
      expect(runs.beyond).toBeLessThanOrEqual(8);
      expect(runs.answered).toBe(1_000);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("start in waves if there is no probe, even if they decide a second later", () =>
    Effect.gen(function* () {
      const network = new Network();
      const runs = new Runs();
      const paths = yield* Paths;
      paths.recordResponse(scope);
      for (let n = 0; n < 1_000; n += 1) paths.recordBreak(scope);
      yield* TestClock.adjust(1_000);
      expect(paths.standing(scope, 0).path).toBe("down");
      const fibers = yield* many(1_000, runs.run(network));
      yield* TestClock.adjust(5_000);
      yield* Effect.forEach(fibers, Fiber.join);
      expect(runs.answered).toBe(1_000);
      expect(runs.goingMost).toBeLessThan(1_000);
      yield* TestClock.adjust(5_000);
      expect(paths.isOpen(scope)).toBe(true);
    }).pipe(Effect.provide(Paths.layer)),
  );
});

describe("a suspension", () => {
  it.effect(
    "of eight hours probes each path in use once and at once, drops idle connections, and admits a waiting run",
    () =>
      Effect.gen(function* () {
        const network = new Network();
        const other = new Network();
        const runs = new Runs();
        const paths = yield* attached(other, "https://b");
        yield* downPath(network);
        const fiber = yield* Effect.forkChild(runs.run(network));
        yield* TestClock.adjust(90_000);
        network.mend();
        const before = { probes: network.probes, others: other.probes, dropped: other.dropped };
        paths.onWake();
        yield* TestClock.adjust(100);
        yield* Fiber.join(fiber);
        expect(runs.answered).toBe(1);
        expect(network.probes).toBe(before.probes + 1);
        expect(other.probes).toBe(before.others + 1);
        expect(other.dropped).toBe(before.dropped + 1);
      }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("does not wait for a probe from before it", () =>
    Effect.gen(function* () {
      const network = new Network();
      const paths = yield* downPath(network);
      network.takes = 14_000;
      const runs = new Runs();
      const fiber = yield* Effect.forkChild(runs.run(network));
      yield* TestClock.adjust(1_000);
      expect(network.probing).toBe(1);
      network.takes = 10;
      network.mend();
      paths.onWake();
      yield* TestClock.adjust(200);
      expect(fiber.pollUnsafe()).toBeDefined();
      network.fail();
      yield* TestClock.adjust(20_000);
      expect(paths.list()).toMatchObject([{ state: "up" }]);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("does not probe a path that was not used for an hour", () =>
    Effect.gen(function* () {
      const network = new Network();
      const paths = yield* attached(network);
      yield* TestClock.adjust("61 minutes");
      paths.onWake();
      yield* TestClock.adjust(1_000);
      expect(network.probes).toBe(0);
      expect(network.dropped).toBe(1);
    }).pipe(Effect.provide(Paths.layer)),
  );
});

describe("a cooldown", () => {
  it.effect("holds only its own scope, and its end lets the run go", () =>
    Effect.gen(function* () {
      const network = new Network();
      const runs = new Runs();
      const paths = yield* attached(network);
      paths.recordRefusal(scope, limited(10_000));
      expect(paths.isOpen(scope)).toBe(false);
      expect(paths.isOpen({ ...scope, model: "n" })).toBe(true);
      expect(paths.standing(scope, 4_000)).toEqual({ path: "up", cooldownMs: 4_000 });
      const fiber = yield* Effect.forkChild(runs.request(network));
      yield* Effect.forkChild(runs.request(network, { withinMs: 5_000 }));
      yield* TestClock.adjust(0);
      expect(runs.ends).toEqual([{ _tag: "too_long", for: "cooldown", waitedMs: 0, waitMs: 10_000 }]);
      yield* TestClock.adjust(9_999);
      expect(runs.sent).toEqual([]);
      yield* TestClock.adjust(101);
      yield* Fiber.join(fiber);
      expect(runs.sent).toEqual([10_000]);
      expect(runs.told).toEqual([{ for: "cooldown", since: 0, until: 10_000 }]);
      expect(paths.isOpen(scope)).toBe(true);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("does not affect another one of the same path, and both admit their runs in waves", () =>
    Effect.gen(function* () {
      const network = new Network();
      const paths = yield* attached(network);
      const other = { ...scope, credential: "d" };
      const [mine, theirs, free] = [new Runs(), new Runs(), new Runs()];
      paths.recordRefusal(scope, limited(10_000));
      paths.recordRefusal(other, limited(20_000));
      const fibers = [
        ...(yield* many(100, mine.run(network))),
        ...(yield* many(100, theirs.run(network, { scope: other }))),
        ...(yield* many(100, free.run(network, { scope: { ...scope, credential: "e" } }))),
      ];
      yield* TestClock.adjust(5_000);
      expect([mine.answered, theirs.answered, free.answered]).toEqual([0, 0, 100]);
      yield* TestClock.adjust(10_000);
      expect([mine.answered, theirs.answered]).toEqual([100, 0]);
      yield* TestClock.adjust(10_000);
      expect([mine.answered, theirs.answered]).toEqual([100, 100]);
      expect([mine.beyond, theirs.beyond]).toEqual([0, 0]);
      expect(free.goingMost).toBe(100);
      yield* Effect.forEach(fibers, Fiber.join);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("that a wave meets again holds the rest: no request of the scope is sent before its end", () =>
    Effect.gen(function* () {
      const paths = yield* attached(new Network());
      paths.recordRefusal(scope, limited(10_000));
      const sent: Array<number> = [];
      let refusals = 3;
      const run = Effect.gen(function* () {
        for (;;) {
          let leave = (): void => {};
          yield* paths.admit({
            scope,
            maxRetryAfterMs: 60_000,
            withinMs: Number.POSITIVE_INFINITY,
            onWait: () => {},
            hold: (given) => {
              leave = given;
            },
          });
          sent.push(yield* Clock.currentTimeMillis);
          yield* Effect.sleep(100);
          const isRefused = sent.length <= 8 && refusals > 0;
          paths.recordResponse(scope);
          if (isRefused) paths.recordRefusal(scope, limited(10_000));
          leave();
          if (!isRefused) return;
        }
      });
      const fibers = yield* many(50, run);
      yield* TestClock.adjust(10_000 + 100);
      refusals = 0;
      expect(sent.length).toBe(8);
      yield* TestClock.adjust(9_999);
      expect(sent.length).toBe(8);
      yield* TestClock.adjust(5_000);
      yield* Effect.forEach(fibers, Fiber.join);
      expect(sent.length).toBe(50 + 8);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect(
    "of thirty days holds for what each run keeps of others, then one run starts and its response decides",
    () =>
      Effect.gen(function* () {
        const network = new Network();
        const runs = new Runs();
        const paths = yield* attached(network);
        paths.recordRefusal(scope, limited(2_592_000_000));
        const fibers = yield* many(20, runs.run(network, { maxRetryAfterMs: 60_000 }));
        yield* TestClock.adjust(59_999);
        expect(runs.sent).toEqual([]);
        yield* TestClock.adjust(1);
        expect(runs.sent).toEqual([60_000]);
        yield* TestClock.adjust(99);
        expect(runs.sent.length).toBe(1);
        yield* TestClock.adjust(5_000);
        yield* Effect.forEach(fibers, Fiber.join);
        expect(runs.answered).toBe(20);
      }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("of thirty days that its trial gets again holds for that time again", () =>
    Effect.gen(function* () {
      const paths = yield* attached(new Network());
      const runs = new Runs();
      paths.recordRefusal(scope, limited(2_592_000_000));
      let leave = (): void => {};
      const first = yield* Effect.forkChild(
        paths.admit({
          scope,
          maxRetryAfterMs: 10_000,
          withinMs: 1e9,
          onWait: () => {},
          hold: (given) => {
            leave = given;
          },
        }),
      );
      yield* many(5, runs.run(new Network(), { maxRetryAfterMs: 10_000 }));
      yield* TestClock.adjust(10_000);
      expect(yield* Fiber.join(first)).toEqual({ _tag: "admitted", waitedMs: 10_000 });
      paths.recordResponse(scope);
      paths.recordRefusal(scope, limited(2_592_000_000));
      leave();
      yield* TestClock.adjust(9_999);
      expect(runs.sent).toEqual([]);
      yield* TestClock.adjust(1);
      expect(runs.sent).toEqual([20_000]);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("that begins while a run waits for its path is reported, and ends a wait that would be in vain", () =>
    Effect.gen(function* () {
      const network = new Network();
      const [patient, hasty] = [new Runs(), new Runs()];
      const paths = yield* downPath(network);
      yield* Effect.forkChild(patient.request(network));
      yield* Effect.forkChild(hasty.request(network, { withinMs: 20_000 }));
      yield* TestClock.adjust(100);
      paths.recordRefusal(scope, limited(50_000));
      yield* TestClock.adjust(0);
      expect(hasty.ends).toEqual([{ _tag: "too_long", for: "cooldown", waitedMs: 100, waitMs: 50_000 }]);
      network.mend();
      yield* TestClock.adjust(10_000);
      expect(patient.told.map((wait) => wait.for)).toEqual(["path", "cooldown"]);
      expect(patient.sent).toEqual([]);
      yield* TestClock.adjust(40_500);
      expect(patient.answered).toBe(1);
    }).pipe(Effect.provide(Paths.layer)),
  );
});

describe("a silent path", () => {
  it.effect("is probed once for all requests, and is lost if the probe fails", () =>
    Effect.gen(function* () {
      const network = new Network();
      network.takes = 1_000;
      const paths = yield* attached(network);
      const well = yield* many(10, paths.isLost(scope.path));
      yield* TestClock.adjust(1_000);
      expect(yield* Effect.forEach(well, Fiber.join)).toEqual(Array.from({ length: 10 }, () => false));
      expect(network.probes).toBe(1);
      network.fail();
      const lost = yield* many(10, paths.isLost(scope.path));
      yield* TestClock.adjust(1_000);
      expect(yield* Effect.forEach(lost, Fiber.join)).toEqual(Array.from({ length: 10 }, () => true));
      expect(network.probes).toBe(2);
      expect(paths.standing(scope, 0).path).toBe("down");
      expect(yield* paths.isLost(scope.path)).toBe(true);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("is not lost if it has no probe or is unknown", () =>
    Effect.gen(function* () {
      const paths = yield* Paths;
      paths.recordResponse(scope);
      expect(yield* paths.isLost(scope.path)).toBe(false);
      expect(yield* paths.isLost("unknown")).toBe(false);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("is lost if its probe dies or never ends", () =>
    Effect.gen(function* () {
      const paths = yield* Paths;
      const way = { dropIdle: () => {} };
      paths.attach("dies", { ...way, probe: Effect.die(new Error("a bug")) });
      paths.attach("hangs", { ...way, probe: Effect.uninterruptible(Effect.never) });
      expect(yield* paths.isLost("dies")).toBe(true);
      const hangs = yield* Effect.forkChild(paths.isLost("hangs"));
      yield* TestClock.adjust(15_000);
      expect(hangs.pollUnsafe()).toEqual(Exit.succeed(true));
    }).pipe(Effect.provide(Paths.layer), Effect.timeoutOption("1 hour")),
  );
});

describe("the service of paths", () => {
  it.effect("uses the monotonic clock: a wall clock that is set an hour forward or back ends no wait", () =>
    Effect.gen(function* () {
      let skew = 0;
      const real = yield* Clock.Clock;
      const skewed: Clock.Clock = Object.assign(Object.create(real), {
        currentTimeMillisUnsafe: () => real.currentTimeMillisUnsafe() + skew,
      });
      yield* Effect.gen(function* () {
        const paths = yield* Paths;
        const runs = new Runs();
        paths.recordRefusal(scope, limited(60_000));
        const fiber = yield* Effect.forkChild(runs.request(new Network(), { withinMs: 100_000 }));
        skew = 3_600_000;
        yield* TestClock.adjust(30_000);
        expect(runs.sent).toEqual([]);
        expect(paths.standing(scope, 60_000).cooldownMs).toBe(30_000);
        skew = -3_600_000;
        yield* TestClock.adjust(30_000);
        yield* TestClock.adjust(100);
        yield* Fiber.join(fiber);
        expect(runs.ends).toEqual([{ _tag: "admitted", waitedMs: 60_000 }]);
      }).pipe(Effect.provide(Paths.layer), Effect.provideService(Clock.Clock, skewed));
    }),
  );

  it.effect("has no timer while every path is up, and one while a run waits", () =>
    Effect.gen(function* () {
      let timers = 0;
      const real = yield* Clock.Clock;
      const counting: Clock.Clock = Object.assign(Object.create(real), {
        sleep: (duration: Duration.Duration) => {
          timers += 1;
          return Effect.ensuring(
            real.sleep(duration),
            Effect.sync(() => {
              timers -= 1;
            }),
          );
        },
      });
      const network = new Network();
      yield* Effect.gen(function* () {
        const paths = yield* attached(network);
        paths.recordRefusal(scope, limited(1_000));
        expect(timers).toBe(0);
        network.fail();
        yield* paths.recordConnectFailure(scope, "ECONNREFUSED");
        yield* TestClock.adjust(1);
        expect(timers).toBe(1);
        network.mend();
        yield* TestClock.adjust(30_000);
        expect(paths.list()).toMatchObject([{ state: "up" }]);
        expect(timers).toBe(0);
      }).pipe(Effect.provide(Paths.layer), Effect.provideService(Clock.Clock, counting));
    }),
  );

  it.effect("probes a path at once if a person asks for it, and knows all paths", () =>
    Effect.gen(function* () {
      const network = new Network();
      const runs = new Runs();
      const paths = yield* downPath(network);
      const fiber = yield* Effect.forkChild(runs.run(network));
      yield* TestClock.adjust(120_000);
      network.mend();
      expect(yield* paths.tryNow("unknown")).toBe(false);
      expect(yield* paths.tryNow(scope.path)).toBe(true);
      yield* TestClock.adjust(100);
      yield* Fiber.join(fiber);
      expect(runs.answered).toBe(1);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("lists the state of each path, and shows at most eight characters of a credential's digest", () =>
    Effect.gen(function* () {
      const paths = yield* downPath(new Network());
      const digest = "0123456789abcdef";
      paths.recordRefusal({ ...scope, credential: digest }, limited(30_000));
      const [status] = paths.list();
      expect(status).toMatchObject({ path: scope.path, state: "down", reached: true, since: 0, probes: 1, waiting: 0 });
      expect(status?.cooldowns).toEqual([{ model: "m", credential: "01234567", kind: "rate_limited", until: 30_000 }]);
      expect(JSON.stringify(paths.list())).not.toContain(digest);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("answers a request that may not wait in the same step, and reports no wait to it", () =>
    Effect.gen(function* () {
      const network = new Network();
      const runs = new Runs();
      yield* downPath(network);
      yield* runs.request(network, { withinMs: 0 });
      expect(runs.ends).toEqual([{ _tag: "too_long", for: "path", waitedMs: 0, waitMs: 0 }]);
      expect(runs.told).toEqual([]);
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect(
    "keeps no run waiting forever once its scope is closed: waiting runs get no place, and it holds nothing more",
    () =>
      Effect.gen(function* () {
        const network = new Network();
        const runs = new Runs();
        const services = yield* Scope.make();
        const paths = yield* Effect.provideService(Paths.make, Scope.Scope, services);
        paths.attach(scope.path, network);
        paths.recordResponse(scope);
        paths.recordRefusal(scope, limited(60_000));
        const waits = yield* Effect.forkChild(Effect.provideService(runs.request(network), Paths, paths));
        yield* TestClock.adjust(1_000);
        yield* Scope.close(services, Exit.void);
        yield* Fiber.join(waits);
        expect(runs.ends).toEqual([{ _tag: "full", waitedMs: 1_000 }]);
        expect(paths.isOpen(scope)).toBe(true);
        expect(yield* paths.isLost(scope.path)).toBe(false);
        yield* paths.recordConnectFailure(scope, "ECONNREFUSED");
      }),
  );

  it.effect("interrupts its fiber and its probes with its scope", () =>
    Effect.gen(function* () {
      const network = new Network();
      const services = yield* Scope.make();
      const paths = yield* Effect.provideService(Paths.make, Scope.Scope, services);
      network.takes = 10_000;
      paths.attach(scope.path, network);
      paths.recordResponse(scope);
      const asking = yield* Effect.forkChild(paths.isLost(scope.path));
      yield* TestClock.adjust(10);
      expect(network.probing).toBe(1);
      yield* Scope.close(services, Exit.void);
      expect(network.probing).toBe(0);
      yield* Fiber.interrupt(asking);
    }),
  );

  it.effect("is still known to the last run that waited for it, after any time and any kind of end", () =>
    Effect.gen(function* () {
      const network = new Network();
      const paths = yield* downPath(network);
      const runs = new Runs();
      const waits = yield* Effect.forkChild(runs.run(network, { withinMs: 300_000 }));
      yield* TestClock.adjust(300_000);
      yield* Fiber.join(waits);
      expect(runs.ends).toMatchObject([{ _tag: "too_long", for: "path" }]);
      expect(paths.standing(scope, 60_000).path).toBe("down");
      const left = yield* Effect.forkChild(runs.run(network));
      yield* TestClock.adjust(300_000);
      yield* Fiber.interrupt(left);
      expect(paths.standing(scope, 60_000).path).toBe("down");
      yield* TestClock.adjust(300_000);
      expect(paths.standing(scope, 60_000).path).toBe("up");
    }).pipe(Effect.provide(Paths.layer)),
  );

  it.effect("returns the place of a request that is interrupted in the step that admits it", () =>
    Effect.gen(function* () {
      const network = new Network();
      const paths = yield* downPath(network);
      const gate = yield* Deferred.make<void>();
      const left: Array<() => void> = [];
      const fibers = yield* many(
        8,
        Effect.andThen(
          paths.admit({
            scope,
            maxRetryAfterMs: 1,
            withinMs: 1e9,
            onWait: () => {},
            hold: (leave) => void left.push(leave),
          }),
          Deferred.await(gate),
        ).pipe(Effect.ensuring(Effect.sync(() => left.pop()?.()))),
      );
      network.mend();
      yield* TestClock.adjust(500);
      expect(left.length).toBe(8);
      const runs = new Runs();
      const ninth = yield* Effect.forkChild(runs.run(network));
      yield* TestClock.adjust(1);
      expect(runs.sent).toEqual([]);
      yield* Effect.forEach(fibers, Fiber.interrupt);
      yield* TestClock.adjust(200);
      yield* Fiber.join(ninth);
      expect(runs.answered).toBe(1);
    }).pipe(Effect.provide(Paths.layer)),
  );
});
