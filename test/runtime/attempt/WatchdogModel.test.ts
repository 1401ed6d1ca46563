/** The watchdog against a model that counts milliseconds: every clock is found within 50 ms after it is over, and none before. */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect, Exit, Scope } from "effect";
import { TestClock } from "effect/testing";
import type { ClockName } from "../../../src/domain/Failure.ts";
import type { Watch } from "../../../src/runtime/attempt/Watch.ts";
import { Watchdog } from "../../../src/runtime/attempt/Watchdog.ts";
import {
  type Clocks,
  keepAlivesToArm,
  lingerMs,
  suspendGraceMs,
  suspendGracesMax,
} from "../../../src/runtime/contract/Clocks.ts";
import { seeded } from "../../Seeded.ts";
import * as FreezingClock from "../../simulation/world/FreezingClock.ts";
import { skewed } from "./SkewedClock.ts";

const off = Number.POSITIVE_INFINITY;
const noClocks: Clocks = { first_progress: off, idle: off, silence: off, attempt: off, run: off };

/** Longest time that a clock may be over before it is found, in milliseconds. */
const foundWithinMs = 50;

const dice = (seed: number) => {
  const random = seeded(seed);
  return (below: number): number => Math.floor(random() * below);
};

type Event = "written" | "progress" | "part" | "bytes" | "keep_alive" | "terminal" | "goes_on" | "hold" | "release";
const events: ReadonlyArray<Event> = [
  "written",
  "progress",
  "part",
  "bytes",
  "keep_alive",
  "terminal",
  "goes_on",
  "hold",
  "release",
];

/** Counts the milliseconds in which a read was outstanding, one by one. */
class Model {
  readonly #clocks: Clocks;
  #sinceStart = 0;
  #run: number;
  #sinceProgress = 0;
  #sinceBytes = 0;
  #written = false;
  #progressed = false;
  #terminal = false;
  #sinceTerminal = 0;
  #keepAlives = 0;
  #holds = 0;

  constructor(clocks: Clocks, runElapsedMs: number) {
    this.#clocks = clocks;
    this.#run = runElapsedMs;
  }

  happens(event: Event): boolean {
    if (event === "release" && this.#holds === 0) return false;
    if (event === "hold") this.#holds += 1;
    if (event === "release") this.#holds -= 1;
    if (event === "written") {
      if (!this.#written && !this.#progressed) this.#sinceProgress = 0;
      this.#written = true;
    }
    if (event === "progress") {
      this.#progressed = true;
      this.#sinceProgress = 0;
    }
    if (event === "progress" || event === "part" || event === "bytes") this.#sinceBytes = 0;
    if (event === "keep_alive") this.#keepAlives += 1;
    if (event === "terminal" && !this.#terminal) {
      this.#terminal = true;
      this.#sinceTerminal = 0;
    }
    if (event === "goes_on") this.#terminal = false;
    return true;
  }

  /** The clocks that are over. */
  over(): ReadonlyArray<ClockName> {
    if (this.#holds > 0) return [];
    const { attempt, first_progress, idle, run, silence } = this.#clocks;
    const progress = Math.min(this.#progressed ? idle : first_progress, this.#terminal ? lingerMs : off);
    const found: Array<ClockName> = [];
    const elapsed = this.#terminal ? Math.min(this.#sinceProgress, this.#sinceTerminal) : this.#sinceProgress;
    if (elapsed >= progress) found.push(this.#progressed || this.#terminal ? "idle" : "first_progress");
    if (this.#keepAlives >= keepAlivesToArm && this.#sinceBytes >= silence) found.push("silence");
    if (this.#sinceStart >= attempt) found.push("attempt");
    if (this.#run >= run) found.push("run");
    return found;
  }

  tick(): void {
    if (this.#holds > 0) return;
    this.#sinceStart += 1;
    this.#run += 1;
    this.#sinceProgress += 1;
    this.#sinceTerminal += 1;
    this.#sinceBytes += 1;
  }
}

const tell = (watch: Watch, event: Event, now: number): void => {
  if (event === "written") watch.onRequestWritten(now);
  if (event === "progress") watch.recordParts(now, true);
  if (event === "part") watch.recordParts(now, false);
  if (event === "bytes") watch.bytes(now);
  if (event === "keep_alive") watch.keepAlive();
  if (event === "terminal") watch.terminal(now);
  if (event === "goes_on") watch.forgetTerminal();
  if (event === "hold") watch.hold(now);
  if (event === "release") watch.release(now);
};

const play = (seed: number) =>
  Effect.gen(function* () {
    const next = dice(seed);
    const limit = () => (next(4) === 0 ? off : 1 + next(next(3) === 0 ? 20_000 : 900));
    const clocks = { first_progress: limit(), idle: limit(), silence: limit(), attempt: limit(), run: limit() };
    const scope = yield* Scope.make();
    const watchdog = yield* Scope.provide(Watchdog.make, scope);
    let fired: { readonly clock: ClockName; readonly at: number } | undefined;
    const startedAt = watchdog.now();
    const listener = {
      onStalled: (clock: ClockName) => {
        fired = { clock, at: watchdog.now() - startedAt };
      },
      onSuspended: () => assert.fail(`seed ${seed}: nothing was suspended`),
    };
    // Others that are watched too, so that the fiber sleeps to deadlines that are not this one's.
    watchdog.watch({ ...noClocks, attempt: 7_000 }, { ...listener, onStalled: () => undefined }, 0);
    yield* TestClock.adjust(next(3) * 10);
    const begun = watchdog.now() - startedAt;
    const runElapsed = next(200);
    const model = new Model(clocks, runElapsed);
    const watch = watchdog.watch(clocks, listener, runElapsed);
    const story: Array<string> = [];
    let at = begun;
    let overAt: number | undefined;
    let expected: ReadonlyArray<ClockName> = model.over();
    if (expected.length > 0) overAt = at;
    while (overAt === undefined && fired === undefined && story.length < 60) {
      const event = events[next(events.length)] ?? "part";
      if (model.happens(event)) {
        story.push(`${at} ${event}`);
        tell(watch, event, watchdog.now());
      }
      const wait = next(next(5) === 0 ? 12_000 : 400);
      // Step by step: the model says in which millisecond a clock is over.
      for (let ms = 0; ms < wait && overAt === undefined; ms += 1) {
        expected = model.over();
        if (expected.length > 0) overAt = at;
        else {
          model.tick();
          at += 1;
        }
      }
      yield* TestClock.adjust(at - (watchdog.now() - startedAt));
    }
    yield* TestClock.adjust(foundWithinMs);
    const told = `seed ${seed}: ${JSON.stringify(clocks)} ${story.join(", ")}: over ${overAt} ${expected.join("|")}`;
    const found = fired as { readonly clock: ClockName; readonly at: number } | undefined;
    if (overAt === undefined) assert.isTrue(found === undefined || found.at >= at, `${told}, fired ${found?.at}`);
    else {
      assert.isDefined(found, told);
      assert.include(expected, found?.clock, told);
      assert.isAtLeast(found?.at ?? 0, overAt, told);
      assert.isAtMost(found?.at ?? off, overAt + foundWithinMs, told);
    }
    yield* Scope.close(scope, Exit.void);
    return overAt === undefined ? "none" : (found?.clock ?? "none");
  }).pipe(Effect.provide(TestClock.layer()));

describe("the watchdog against its model", () => {
  it("finds every clock within 50 ms, whatever brings a deadline nearer, over random events", async () => {
    const seed = 20_261_122;
    const counts = new Map<string, number>();
    for (let round = 0; round < 400; round += 1) {
      const clock = await Effect.runPromise(play(seed + round));
      counts.set(clock, (counts.get(clock) ?? 0) + 1);
    }
    console.log(`seed ${seed}: ${[...counts].map(([clock, count]) => `${clock} ${count}`).join(", ")}`);
    for (const clock of ["first_progress", "idle", "silence", "attempt", "run"]) {
      assert.isAbove(counts.get(clock) ?? 0, 5, clock);
    }
  });

  it.effect("idle is the time since progress, also where the first progress brings it nearer", () =>
    watched({ first_progress: 180_000, idle: 1_000 }, ({ fired, watch, watchdog }) =>
      Effect.gen(function* () {
        yield* TestClock.adjust(100);
        watch.recordParts(watchdog.now(), true);
        yield* TestClock.adjust(1_050);
        assert.deepStrictEqual(fired, ["idle"]);
      }),
    ),
  );
});

interface Watched {
  readonly watchdog: Watchdog;
  readonly watch: Watch;
  readonly fired: Array<string>;
  readonly suspended: Array<number>;
}

const watched = <A>(clocks: Partial<Clocks>, body: (it: Watched) => Effect.Effect<A>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const watchdog = yield* Watchdog.make;
      const fired: Array<string> = [];
      const suspended: Array<number> = [];
      const listener = {
        onStalled: (clock: ClockName) => void fired.push(clock),
        onSuspended: (ms: number) => void suspended.push(ms),
      };
      const watch = watchdog.watch({ ...noClocks, ...clocks }, listener, 0);
      yield* TestClock.adjust(0);
      return yield* body({ watchdog, watch, fired, suspended });
    }),
  );

describe("a suspension", () => {
  const kinds = [
    ["a stopped process, whose monotonic clock runs on", { wall: 1, monotonic: 1 }],
    ["a sleeping machine, whose monotonic clock stands still", { wall: 1, monotonic: 0 }],
    ["a monotonic clock that runs on alone", { wall: 0, monotonic: 1 }],
  ] as const;
  const all = ["first_progress", "idle", "silence", "attempt", "run"] as const;
  for (const [name, jumps] of kinds) {
    for (const clock of all) {
      it.effect(`${name}: ${clock} holds the gap and cuts nothing for 20 s`, () => {
        const { layer, skew } = skewed();
        return watched({ first_progress: 600_000, [clock]: 30_000 }, ({ fired, suspended, watch, watchdog }) =>
          Effect.gen(function* () {
            if (clock === "silence") {
              watch.keepAlive();
              watch.keepAlive();
            }
            if (clock === "idle") watch.recordParts(watchdog.now(), true);
            yield* TestClock.adjust(29_000);
            skew.wall += jumps.wall * 3_600_000;
            skew.monotonic += jumps.monotonic * 3_600_000;
            yield* TestClock.adjust(20_000);
            assert.deepStrictEqual([fired, suspended], [[], [3_600_000]]);
            // One second was left, and the grace.
            yield* TestClock.adjust(suspendGraceMs + 5_000);
            assert.deepStrictEqual(fired, [clock]);
          }),
        ).pipe(Effect.provide(layer));
      });
    }
  }

  it.effect("in the step in which a watch begins, before the watchdog has looked at it, is one too", () => {
    const { layer, skew } = skewed();
    return Effect.scoped(
      Effect.gen(function* () {
        const watchdog = yield* Watchdog.make;
        yield* TestClock.adjust(0);
        const fired: Array<string> = [];
        const suspended: Array<number> = [];
        const listener = {
          onStalled: (clock: ClockName) => void fired.push(clock),
          onSuspended: (ms: number) => void suspended.push(ms),
        };
        watchdog.watch({ ...noClocks, attempt: 30_000 }, listener, 0);
        skew.monotonic += 3_600_000;
        skew.wall += 3_600_000;
        yield* TestClock.adjust(20_000);
        assert.deepStrictEqual([fired, suspended], [[], [3_600_000]]);
      }),
    ).pipe(Effect.provide(layer));
  });

  it.effect("the run's own time and the time without progress leave the gap out", () => {
    const { layer, skew } = skewed();
    return watched({ idle: 600_000 }, ({ watch, watchdog }) =>
      Effect.gen(function* () {
        yield* TestClock.adjust(12_000);
        skew.monotonic += 3_600_000;
        skew.wall += 3_600_000;
        // A socket's error is heard of before the watchdog's own fiber wakes.
        yield* TestClock.adjust(3_000);
        watchdog.catchUp();
        assert.isAtMost(watch.runElapsed(watchdog.now()), 22_000);
        assert.isAtMost(watch.withoutProgress(watchdog.now()), 22_000);
      }),
    ).pipe(Effect.provide(layer));
  });

  it.effect("what came behind the gap counts from when it came: no clock starts in the future", () => {
    const { layer, skew } = skewed();
    return watched({ first_progress: 60_000, idle: 60_000 }, ({ fired, watch, watchdog }) =>
      Effect.gen(function* () {
        yield* TestClock.adjust(6_000);
        skew.monotonic += 8 * 3_600_000;
        skew.wall += 8 * 3_600_000;
        // Read from a socket before the watchdog has looked.
        watch.recordParts(watchdog.now(), true);
        yield* TestClock.adjust(60_000 + suspendGraceMs + 5_000);
        assert.deepStrictEqual(fired, ["idle"]);
      }),
    ).pipe(Effect.provide(layer));
  });

  it.effect("a gap inside a hold is held once", () => {
    const { layer, skew } = skewed();
    return watched({ first_progress: 30_000 }, ({ fired, watch, watchdog }) =>
      Effect.gen(function* () {
        yield* TestClock.adjust(1_000);
        watch.hold(watchdog.now());
        yield* TestClock.adjust(10_000);
        skew.monotonic += 600_000;
        skew.wall += 600_000;
        yield* TestClock.adjust(10_000);
        watch.release(watchdog.now());
        assert.approximately(watch.withoutProgress(watchdog.now()), 1_000, 1);
        yield* TestClock.adjust(29_000 + suspendGraceMs + 50);
        assert.deepStrictEqual(fired, ["first_progress"]);
      }),
    ).pipe(Effect.provide(layer));
  });

  it.effect("woken late, but by less than a suspension, it lets what came meanwhile be read before it cuts", () => {
    const { layer, skew } = skewed();
    return watched({ first_progress: 1_000, idle: 1_000 }, ({ fired, watch, watchdog }) =>
      Effect.gen(function* () {
        yield* TestClock.adjust(990);
        skew.monotonic += 1_500;
        skew.wall += 1_500;
        yield* TestClock.adjust(20);
        // Only now the event loop comes to what has arrived.
        watch.recordParts(watchdog.now(), true);
        yield* TestClock.adjust(900);
        assert.deepStrictEqual(fired, []);
        yield* TestClock.adjust(150);
        assert.deepStrictEqual(fired, ["idle"]);
      }),
    ).pipe(Effect.provide(layer));
  });

  it.effect("an attempt that starts in the grace is not cut in it", () => {
    const { layer, skew } = skewed();
    return watched({ first_progress: 600_000 }, ({ watchdog }) =>
      Effect.gen(function* () {
        yield* TestClock.adjust(1_000);
        skew.wall += 600_000;
        yield* TestClock.adjust(5_000);
        const fired: Array<string> = [];
        const listener = { onStalled: (clock: string) => void fired.push(clock), onSuspended: () => undefined };
        watchdog.watch({ ...noClocks, first_progress: 1_000 }, listener, 0);
        yield* TestClock.adjust(15_000);
        assert.deepStrictEqual(fired, []);
        yield* TestClock.adjust(10_000);
        assert.deepStrictEqual(fired, ["first_progress"]);
      }),
    ).pipe(Effect.provide(layer));
  });

  it.effect("a wall clock that is set back, by a second or a year, fires nothing and lengthens nothing", () => {
    const { layer, skew } = skewed();
    return watched({ first_progress: 30_000 }, ({ fired, suspended }) =>
      Effect.gen(function* () {
        yield* TestClock.adjust(7_000);
        skew.wall -= 1_000;
        yield* TestClock.adjust(7_000);
        skew.wall -= 365 * 86_400_000;
        yield* TestClock.adjust(15_999);
        assert.deepStrictEqual(fired, []);
        yield* TestClock.adjust(1);
        assert.deepStrictEqual([fired, suspended], [["first_progress"], []]);
      }),
    ).pipe(Effect.provide(layer));
  });

  it.effect("a wall clock that is set forward by less than two seconds is none", () => {
    const { layer, skew } = skewed();
    return watched({ first_progress: 30_000 }, ({ fired, suspended }) =>
      Effect.gen(function* () {
        for (let times = 0; times < 5; times += 1) {
          skew.wall += 1_900;
          yield* TestClock.adjust(5_000);
        }
        yield* TestClock.adjust(5_000);
        assert.deepStrictEqual([fired, suspended], [["first_progress"], []]);
      }),
    ).pipe(Effect.provide(layer));
  });

  for (const wakes of ["watch", "keepAwake"] as const) {
    it.effect(`that nothing was watched in is no matter of what begins behind it: ${wakes}`, () => {
      const { layer, skew } = skewed();
      return Effect.scoped(
        Effect.gen(function* () {
          const watchdog = yield* Watchdog.make;
          yield* TestClock.adjust(0);
          skew.wall += 3_600_000;
          if (wakes === "keepAwake") watchdog.keepAwake();
          const fired: Array<string> = [];
          const suspended: Array<number> = [];
          const listener = {
            onStalled: (clock: ClockName) => void fired.push(clock),
            onSuspended: (ms: number) => void suspended.push(ms),
          };
          watchdog.watch({ ...noClocks, first_progress: 5_000 }, listener, 0);
          yield* TestClock.adjust(5_000 + foundWithinMs);
          assert.deepStrictEqual([fired, suspended], [["first_progress"], []]);
        }),
      ).pipe(Effect.provide(layer));
    });
  }

  it.effect("each grace up to the limit delays a deadline, and no later one does", () =>
    watched({ first_progress: 10_000 }, ({ fired, watch }) =>
      Effect.gen(function* () {
        for (let times = 0; times < suspendGracesMax + 5; times += 1) watch.grant(1_000);
        yield* TestClock.adjust(10_000 + suspendGracesMax * 1_000 - 1);
        assert.deepStrictEqual(fired, []);
        yield* TestClock.adjust(1 + foundWithinMs);
        assert.deepStrictEqual(fired, ["first_progress"]);
      }),
    ),
  );

  it.effect("a process that is starved for ever still cuts: graces are counted", () => {
    const { layer, skew } = skewed();
    return watched({ idle: 60_000, attempt: 600_000 }, ({ fired }) =>
      Effect.gen(function* () {
        for (let times = 0; times < 2_000 && fired.length === 0; times += 1) {
          skew.monotonic += 2_500;
          skew.wall += 2_500;
          yield* TestClock.adjust(5_000);
        }
        assert.deepStrictEqual(fired, ["attempt"]);
      }),
    ).pipe(Effect.provide(layer));
  });
});

describe("a suspension in the middle of a long wait", () => {
  for (const clock of ["first_progress", "idle", "attempt", "run"] as const) {
    it.effect(`${clock} holds the gap also where it is over long after the process goes on`, () =>
      Effect.gen(function* () {
        const clockOfTest = yield* Clock.Clock;
        const frozen = { ...clockOfTest, ...FreezingClock.make(clockOfTest) };
        const body = watched({ first_progress: 600_000, [clock]: 300_000 }, ({ fired, suspended, watch, watchdog }) =>
          Effect.gen(function* () {
            if (clock === "idle") watch.recordParts(watchdog.now(), true);
            yield* TestClock.adjust(100_000);
            // Timers that were not due yet come in time: only a look in between tells of the gap.
            frozen.jump(60_000, 60_000);
            yield* TestClock.adjust(199_000);
            assert.deepStrictEqual([fired, suspended.length], [[], 1]);
            assert.isAtLeast(suspended[0] ?? 0, 55_000);
            yield* TestClock.adjust(1_000 + suspendGraceMs + 5_000);
            assert.deepStrictEqual(fired, [clock]);
          }),
        );
        yield* Effect.provideService(body, Clock.Clock, frozen);
      }),
    );
  }

  it.effect("of four seconds is found wherever it falls before a near deadline: no living stream is cut for it", () =>
    Effect.gen(function* () {
      for (const at of [0, 1, 600, 1_500, 2_900, 3_999]) {
        const clockOfTest = yield* Clock.Clock;
        const frozen = { ...clockOfTest, ...FreezingClock.make(clockOfTest) };
        const body = watched({ attempt: 4_000 }, ({ fired, suspended }) =>
          Effect.gen(function* () {
            yield* TestClock.adjust(at);
            frozen.jump(0, 4_000);
            yield* TestClock.adjust(4_000 - at);
            assert.deepStrictEqual([fired, suspended.length], [[], 1], `frozen after ${at} ms`);
          }),
        );
        yield* Effect.provideService(body, Clock.Clock, frozen);
      }
    }),
  );
});
