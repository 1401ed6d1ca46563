/**
 * Watches the clocks of every live attempt with one fiber.
 *
 * An event writes one number into its `Watch`; nothing is armed or raced per event. The fiber sleeps to the nearest
 * deadline of all watches and looks. A watch that is held (no read outstanding, a tool running) stands still.
 */
import * as Clock from "effect/Clock";
import * as Deferred from "effect/Deferred";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { ClockName } from "../domain/Failure.ts";
import { type Clocks, keepAlivesToArm, lingerMs, suspendGraceMs, suspendJumpMs } from "./Clocks.ts";

/** What a watch tells its attempt. Both are called by the watchdog's fiber and must not block. */
export interface WatchListener {
  readonly stalled: (clock: ClockName) => void;
  readonly suspended: (ms: number) => void;
}

/** The clocks of one attempt, as numbers. Times are monotonic milliseconds. */
export class Watch {
  readonly clocks: Clocks;
  readonly listener: WatchListener;
  readonly #watchdog: Watchdog;
  #startedAt: number;
  #runStartedAt: number;
  #progressAt: number;
  #bytesAt: number;
  #heldAt = 0;
  #holds = 0;
  #progressed = false;
  #firstProgressAt: number | undefined;
  #keepAlives = 0;
  #graceMs = 0;
  #terminal = false;

  constructor(watchdog: Watchdog, clocks: Clocks, listener: WatchListener, now: number, runElapsedMs: number) {
    this.#watchdog = watchdog;
    this.clocks = clocks;
    this.listener = listener;
    this.#startedAt = now;
    this.#runStartedAt = now - runElapsedMs;
    this.#progressAt = now;
    this.#bytesAt = now;
  }

  /** Parts arrived at `now`. The only call on the hot path. */
  arrived(now: number, progress: boolean): void {
    const at = this.#standing(now);
    this.#bytesAt = at;
    if (progress) {
      this.#progressAt = at;
      if (!this.#progressed) this.#firstProgressAt = at;
      this.#progressed = true;
    }
  }

  /** Bytes arrived that are no part yet. */
  bytes(now: number): void {
    this.#bytesAt = this.#standing(now);
  }

  /** Time stands still while held: `release` adds what has passed. */
  #standing(now: number): number {
    return this.#holds > 0 ? this.#heldAt : now;
  }

  /** A keep-alive arrived. The one that arms `silence` brings a deadline nearer, so the watchdog is told. */
  keepAlive(): void {
    this.#keepAlives += 1;
    if (this.#keepAlives === keepAlivesToArm) this.#watchdog.nearer(this);
  }

  /** The terminal marker was seen: what still comes is an afterthought. */
  terminal(): void {
    this.#terminal = true;
    this.#watchdog.nearer(this);
  }

  /** Stops the clocks until as many `release` calls: no read is outstanding, or a tool runs. */
  hold(now: number): void {
    if (this.#holds === 0) this.#heldAt = now;
    this.#holds += 1;
  }

  release(now: number): void {
    this.#holds -= 1;
    if (this.#holds > 0) return;
    const held = now - this.#heldAt;
    this.#startedAt += held;
    this.#runStartedAt += held;
    this.#progressAt += held;
    this.#bytesAt += held;
    this.#watchdog.nearer(this);
  }

  grant(ms: number): void {
    this.#graceMs += ms;
  }

  /** The clock that runs out first and when; an infinite `at` while nothing runs. */
  nearest(): { readonly clock: ClockName; readonly at: number } {
    let clock: ClockName = "idle";
    let at = Number.POSITIVE_INFINITY;
    if (this.#holds > 0) return { clock, at };
    const { clocks } = this;
    const idle = this.#progressed ? clocks.idle : clocks.first_progress;
    const progress = this.#terminal ? Math.min(idle, lingerMs) : idle;
    if (!this.#progressed && !this.#terminal) clock = "first_progress";
    at = this.#progressAt + progress;
    if (this.#keepAlives >= keepAlivesToArm && this.#bytesAt + clocks.silence < at) {
      clock = "silence";
      at = this.#bytesAt + clocks.silence;
    }
    if (this.#startedAt + clocks.attempt < at) {
      clock = "attempt";
      at = this.#startedAt + clocks.attempt;
    }
    if (this.#runStartedAt + clocks.run < at) {
      clock = "run";
      at = this.#runStartedAt + clocks.run;
    }
    return { clock, at: at + this.#graceMs };
  }

  /** When the first progress arrived, in monotonic milliseconds; undefined before it. */
  get firstProgressAt(): number | undefined {
    return this.#firstProgressAt;
  }

  /** Milliseconds since the last progress, or since the start while there was none. */
  withoutProgress(now: number): number {
    return Math.max(0, this.#standing(now) - this.#progressAt);
  }

  /** What the run's own clock has used so far, in milliseconds. */
  runElapsed(now: number): number {
    return this.#standing(now) - this.#runStartedAt;
  }
}

/** The shared watcher of one processor. */
export class Watchdog {
  readonly #clock: Clock.Clock;
  readonly #watches = new Set<Watch>();
  #sleepsUntil = Number.POSITIVE_INFINITY;
  #wake = Deferred.makeUnsafe<void>();
  #lastMonotonic: number;
  #lastWall: number;

  private constructor(clock: Clock.Clock) {
    this.#clock = clock;
    this.#lastMonotonic = this.now();
    this.#lastWall = clock.currentTimeMillisUnsafe();
  }

  /** Starts the watcher's fiber in the scope. */
  static readonly make: Effect.Effect<Watchdog, never, Scope.Scope> = Effect.gen(function* () {
    const watchdog = new Watchdog(yield* Clock.Clock);
    yield* Effect.forkScoped(watchdog.#patrol());
    return watchdog;
  });

  /** Monotonic milliseconds of the Clock service. */
  now(): number {
    return Number(this.#clock.monotonicTimeNanosUnsafe()) / 1e6;
  }

  /** Starts to watch an attempt; the read for its first part is outstanding from now on. */
  watch(clocks: Clocks, listener: WatchListener, runElapsedMs: number): Watch {
    if (this.#watches.size === 0) this.#markClocks();
    const watch = new Watch(this, clocks, listener, this.now(), runElapsedMs);
    this.#watches.add(watch);
    this.nearer(watch);
    return watch;
  }

  unwatch(watch: Watch): void {
    this.#watches.delete(watch);
  }

  /** Number of attempts being watched. */
  get size(): number {
    return this.#watches.size;
  }

  /** A watch's deadline may have come nearer: wakes the fiber if it would sleep past it. */
  nearer(watch: Watch): void {
    if (watch.nearest().at < this.#sleepsUntil) Deferred.doneUnsafe(this.#wake, Effect.void);
  }

  #patrol(): Effect.Effect<never> {
    return Effect.forever(
      Effect.suspend(() => {
        const wait = this.#look();
        const woken = Deferred.await(this.#wake);
        return wait === Number.POSITIVE_INFINITY
          ? woken
          : Effect.raceFirst(woken, Effect.sleep(Duration.millis(Math.ceil(wait))));
      }),
    );
  }

  /** Fires what is over and says how long nothing can be, in milliseconds. */
  #look(): number {
    this.#wake = Deferred.makeUnsafe<void>();
    const now = this.now();
    this.#noticeSuspension(now);
    let next = Number.POSITIVE_INFINITY;
    for (const watch of this.#watches) {
      const { clock, at } = watch.nearest();
      if (at <= now) {
        this.#watches.delete(watch);
        watch.listener.stalled(clock);
      } else if (at < next) {
        next = at;
      }
    }
    this.#sleepsUntil = next;
    return next - now;
  }

  /** Linux's monotonic time stands still while a laptop sleeps: the wall clock running ahead of it gives the sleep away. */
  #noticeSuspension(now: number): void {
    const wall = this.#clock.currentTimeMillisUnsafe();
    const jump = wall - this.#lastWall - (now - this.#lastMonotonic);
    this.#lastWall = wall;
    this.#lastMonotonic = now;
    if (jump < suspendJumpMs) return;
    for (const watch of this.#watches) {
      watch.grant(suspendGraceMs);
      watch.listener.suspended(jump);
    }
  }

  #markClocks(): void {
    this.#lastMonotonic = this.now();
    this.#lastWall = this.#clock.currentTimeMillisUnsafe();
  }
}
