/** What the watchdog does for many attempts, each of which began at a moment of its own: it looks at those that may be due. */
import { assert, describe, it } from "@effect/vitest";
import { Clock, Effect } from "effect";
import { TestClock } from "effect/testing";
import type { Watch } from "../../../src/runtime/attempt/Watch.ts";
import { Watchdog } from "../../../src/runtime/attempt/Watchdog.ts";
import {
  askAfterMs,
  askAgainMs,
  askGridMs,
  type Clocks,
  foresightMs,
  sweepMs,
} from "../../../src/runtime/contract/Clocks.ts";
import { seeded } from "../../Seeded.ts";
import { skewed } from "./SkewedClock.ts";

const off = Number.POSITIVE_INFINITY;

/** How many attempts are watched, and within which time they begin, in milliseconds. */
const attempts = 500;
const beginWithinMs = 10_000;

/** Counts, and begins anew whenever it is read. */
class Tally {
  #count = 0;

  readonly add = (): void => {
    this.#count += 1;
  };

  taken(): number {
    const count = this.#count;
    this.#count = 0;
    return count;
  }
}

/** Counts how often a watch is asked for its deadline: it reads its clocks then. */
const counted = (clocks: Partial<Clocks>, count: () => void): Clocks => ({
  first_progress: off,
  idle: off,
  silence: off,
  run: off,
  ...clocks,
  get attempt() {
    count();
    return off;
  },
});

/** A Clock that counts the watchdog's looks: each reads the time of day once. */
const looking = (clock: Clock.Clock, count: () => void): Clock.Clock => ({
  ...clock,
  currentTimeMillisUnsafe: () => {
    count();
    return clock.currentTimeMillisUnsafe();
  },
});

interface World {
  readonly watchdog: Watchdog;
  /** How often any watch was asked for its deadline. */
  readonly asked: Tally;
  /** How often the watchdog has looked. */
  readonly looks: Tally;
  /** The paths that were silent so far, each with when it was told, in milliseconds from the start. */
  readonly silent: ReadonlyArray<readonly [path: string, at: number]>;
  readonly watch: (path: string | undefined, clocks?: Partial<Clocks>) => Watch;
}

const played = <A>(body: (world: World) => Effect.Effect<A>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const [asked, looks] = [new Tally(), new Tally()];
      const clock = looking(yield* Clock.Clock, looks.add);
      const watchdog = yield* Effect.provideService(Watchdog.make, Clock.Clock, clock);
      const startedAt = watchdog.now();
      const silent: Array<readonly [string, number]> = [];
      watchdog.reportTo({
        onSilent: (path) => void silent.push([path, watchdog.now() - startedAt]),
        onWake: () => assert.fail("nothing slept"),
      });
      const watch = (path: string | undefined, clocks: Partial<Clocks> = {}) => {
        const listener = {
          onStalled: () => undefined,
          onSuspended: () => assert.fail("nothing slept"),
          ...(path === undefined ? {} : { path }),
        };
        return watchdog.watch(counted(clocks, asked.add), listener, 0);
      };
      return yield* body({ watchdog, asked, looks, silent, watch });
    }),
  );

/** Begins them one after the other, each at a moment of its own; when each began, in milliseconds from the start. */
const spread = (world: World, clocks: Partial<Clocks> = {}) =>
  Effect.gen(function* () {
    const random = seeded(20_261_128);
    const moments = Array.from({ length: attempts }, () => Math.floor(random() * beginWithinMs)).sort((a, b) => a - b);
    let at = 0;
    const watches: Array<Watch> = [];
    for (const [index, moment] of moments.entries()) {
      yield* TestClock.adjust(moment - at);
      at = moment;
      watches.push(world.watch(`path ${index}`, clocks));
    }
    yield* TestClock.adjust(beginWithinMs - at);
    return { moments, watches };
  });

describe("many silent attempts", () => {
  it.effect("each is asked about within half a second after its time, and none before", () =>
    played((world) =>
      Effect.gen(function* () {
        const { moments } = yield* spread(world);
        yield* TestClock.adjust(askAfterMs + askGridMs);
        for (const [index, moment] of moments.entries()) {
          const at = world.silent.find(([path]) => path === `path ${index}`)?.[1] ?? off;
          assert.isAtLeast(at, moment + askAfterMs, `path ${index}`);
          assert.isAtMost(at, moment + askAfterMs + askGridMs, `path ${index}`);
        }
      }),
    ),
  );

  it.effect("cost a few looks a second, and not one each", () =>
    played((world) =>
      Effect.gen(function* () {
        yield* spread(world);
        world.looks.taken();
        // In these ten seconds each is asked about once.
        yield* TestClock.adjust(askAfterMs);
        assert.isAtMost(world.looks.taken(), (askAfterMs / 1_000) * (1_000 / askGridMs + 1_000 / sweepMs));
      }),
    ),
  );

  it.effect("are looked at when they may be due, and not whenever one is", () =>
    played((world) =>
      Effect.gen(function* () {
        yield* spread(world);
        world.asked.taken();
        yield* TestClock.adjust(askAfterMs);
        // Each is read ahead, and read when its time has come.
        assert.isAtMost(world.asked.taken(), 2 * attempts);
      }),
    ),
  );

  it.effect("are not looked at while none is due", () =>
    played((world) =>
      Effect.gen(function* () {
        const watches = Array.from({ length: attempts }, () => world.watch(undefined, { first_progress: 600_000 }));
        yield* TestClock.adjust(1);
        world.asked.taken();
        yield* TestClock.adjust(500_000);
        assert.strictEqual(world.asked.taken(), 0);
        assert.strictEqual(watches.length, world.watchdog.size);
      }),
    ),
  );
});

describe("many attempts to which something comes all the time", () => {
  it.effect("are looked at once in ten seconds each, however often something comes", () =>
    played((world) =>
      Effect.gen(function* () {
        const { watches } = yield* spread(world, { first_progress: 60_000, idle: 60_000 });
        for (const watch of watches) watch.recordParts(world.watchdog.now(), true);
        world.asked.taken();
        const seconds = 60;
        for (let tenth = 0; tenth < 10 * seconds; tenth += 1) {
          yield* TestClock.adjust(100);
          for (const watch of watches) watch.recordParts(world.watchdog.now(), true);
        }
        assert.deepStrictEqual(world.silent, []);
        assert.isAtMost(world.asked.taken(), 2 * attempts * (1 + seconds / (askAfterMs / 1_000)));
      }),
    ),
  );

  it.effect("cost a few looks a second, and not one each, also where their clocks are short", () =>
    played((world) =>
      Effect.gen(function* () {
        const { watches } = yield* spread(world, { first_progress: 60_000, idle: 2_000 });
        for (const watch of watches) watch.recordParts(world.watchdog.now(), true);
        world.looks.taken();
        const seconds = 10;
        // Something comes to each twice a second, at a moment of its own.
        for (let step = 0; step < 100 * seconds; step += 1) {
          yield* TestClock.adjust(10);
          for (const [index, watch] of watches.entries()) {
            if (index % 50 === step % 50) watch.recordParts(world.watchdog.now(), true);
          }
        }
        assert.strictEqual(world.watchdog.size, attempts);
        assert.isAtMost(world.looks.taken(), seconds * (1_000 / foresightMs + 1_000 / sweepMs));
      }),
    ),
  );
});

describe("a silence that was asked about", () => {
  it.effect("is asked about again after ten, twenty, forty and sixty seconds, and every sixty from then on", () =>
    played((world) =>
      Effect.gen(function* () {
        world.watch("p");
        yield* TestClock.adjust(400_000);
        const times = world.silent.map(([, at]) => at);
        const gaps = times.map((at, index) => at - (times[index - 1] ?? 0));
        assert.deepStrictEqual(gaps.slice(0, 5), [askAfterMs, ...askAgainMs]);
        assert.deepStrictEqual(new Set(gaps.slice(5)), new Set([askAgainMs.at(-1)]));
      }),
    ),
  );

  for (const comes of ["bytes", "a part", "progress"] as const) {
    it.effect(`ends with ${comes}: the next one is asked about ten seconds later`, () =>
      played((world) =>
        Effect.gen(function* () {
          const watch = world.watch("p");
          yield* TestClock.adjust(145_000);
          const before = world.silent.length;
          if (comes === "bytes") watch.bytes(world.watchdog.now());
          else watch.recordParts(world.watchdog.now(), comes === "progress");
          yield* TestClock.adjust(askAfterMs - 1);
          assert.strictEqual(world.silent.length, before);
          yield* TestClock.adjust(1);
          assert.strictEqual(world.silent.length, before + 1);
        }),
      ),
    );
  }

  it.effect("does so also where it comes while a tool runs, in which nobody looks", () =>
    played((world) =>
      Effect.gen(function* () {
        const watch = world.watch("p");
        yield* TestClock.adjust(145_000);
        const before = world.silent.length;
        watch.hold(world.watchdog.now());
        yield* TestClock.adjust(300_000);
        watch.bytes(world.watchdog.now());
        assert.strictEqual(world.silent.length, before);
        watch.release(world.watchdog.now());
        yield* TestClock.adjust(askAfterMs);
        assert.strictEqual(world.silent.length, before + 1);
      }),
    ),
  );
});

describe("a listener", () => {
  const quiet = { onStalled: () => undefined, onSuspended: () => undefined };
  const idle: Clocks = { first_progress: off, idle: off, silence: off, attempt: off, run: off };

  it.effect("that dies of its clock takes nobody's question with it", () =>
    Effect.scoped(
      Effect.gen(function* () {
        const watchdog = yield* Watchdog.make;
        const silent: Array<readonly [path: string, at: number]> = [];
        const startedAt = watchdog.now();
        watchdog.reportTo({
          onSilent: (path) => void silent.push([path, watchdog.now() - startedAt]),
          onWake: () => undefined,
        });
        watchdog.watch(idle, { ...quiet, path: "p" }, 0);
        const dies = () => {
          throw new Error("a listener that dies");
        };
        watchdog.watch({ ...idle, attempt: askAfterMs }, { ...quiet, onStalled: dies }, 0);
        yield* TestClock.adjust(askAfterMs);
        assert.deepStrictEqual(silent, [["p", askAfterMs]]);
        assert.strictEqual(watchdog.size, 1);
      }),
    ),
  );

  it.effect("is told of no suspension where the one before it has ended its attempt", () => {
    const { layer, skew } = skewed();
    return Effect.scoped(
      Effect.gen(function* () {
        const watchdog = yield* Watchdog.make;
        yield* TestClock.adjust(0);
        const told: Array<number> = [];
        const watches: Array<Watch> = [];
        for (const index of [0, 1, 2]) {
          const suspended = () => {
            told.push(index);
            for (const other of watches) if (other !== watches[index]) watchdog.unwatch(other);
          };
          watches.push(watchdog.watch(idle, { ...quiet, onSuspended: suspended }, 0));
        }
        yield* TestClock.adjust(1_000);
        skew.wall += 60_000;
        yield* TestClock.adjust(2_000);
        assert.deepStrictEqual([told.length, watchdog.size], [1, 1]);
      }),
    ).pipe(Effect.provide(layer));
  });
});
