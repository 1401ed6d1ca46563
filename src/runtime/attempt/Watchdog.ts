/**
 * Watches the clocks of every live attempt with one fiber.
 *
 * An event writes one number into its `Watch`; nothing is armed or raced per event. The fiber sleeps to the nearest deadline of all
 * watches, at most `sweepMs`, and looks at those that may be due; whatever brings a deadline nearer (the first progress, the
 * keep-alive that arms `silence`, the terminal marker, a release) wakes it. A watch that is held (no read outstanding, a tool
 * running) stands still.
 *
 * A watch without a byte for a while is no stall yet: its path is asked, by whoever can, and an attempt on a path that is lost
 * ends without its clock. No clock and no look waits for that. Those that are to be asked are asked together, a few times a
 * second: however many are silent, each since a moment of its own, the fiber does not wake for each.
 *
 * A suspension is a gap in our own time: a closed lid, SIGSTOP, a paused container, a blocked loop. The fiber notices it
 * by waking late. The gap is held time for every clock, and for a while no clock cuts.
 */
import * as Clock from "effect/Clock";
import * as Deferred from "effect/Deferred";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import type { ClockName } from "../../domain/Failure.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import {
  askAfterMs,
  askAgainMs,
  askGridMs,
  type Clocks,
  catchUpMs,
  keepAlivesToArm,
  lateMs,
  lingerMs,
  suspendGraceMs,
  suspendGracesMax,
  suspendLateMs,
  sweepMs,
} from "../contract/Clocks.ts";
import { Deadlines, type Due } from "./Deadlines.ts";

/** What a watch tells its attempt, by the watchdog's fiber. Nothing of it may block. */
export interface WatchListener {
  readonly stalled: (clock: ClockName) => void;
  readonly suspended: (ms: number) => void;
  /** The path of the attempt's request; undefined where none is known. */
  readonly path?: string;
  /** The path is lost, and the attempt with it. */
  readonly lost?: () => void;
}

/** What the watchdog tells of paths, in its own step. Nothing of it may block. */
export interface PathListener {
  /** Nothing has come from this path for a while. */
  readonly silent: (path: string) => void;
  /** This process has not run for a while. */
  readonly woke: (paths: ReadonlySet<string>) => void;
}

/** The clocks of one attempt, as numbers. Times are monotonic milliseconds. */
export class Watch implements Due {
  static #made = 0;
  readonly id = Watch.#made++;
  dueAt = Number.POSITIVE_INFINITY;
  place = -1;
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
  #graces = 0;
  #terminal = false;
  /** When the path was asked last because nothing comes, and how often; undefined while it was not. */
  #asked: { at: number; readonly times: number } | undefined;

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
    this.bytes(now);
    if (progress) {
      this.#progressAt = this.#bytesAt;
      if (!this.#progressed) this.#firstProgress(this.#bytesAt);
    }
  }

  /** From now on `idle` is the limit, which may be over long before `first_progress` would have been. */
  #firstProgress(at: number): void {
    this.#firstProgressAt = at;
    this.#progressed = true;
    this.#watchdog.nearer(this);
  }

  /** Bytes arrived that are no part yet. */
  bytes(now: number): void {
    this.#bytesAt = this.#standing(now);
    if (this.#asked === undefined) return;
    // The next silence is asked about sooner than the rest of this one would have been.
    this.#asked = undefined;
    this.#watchdog.nearer(this);
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
    if (this.#asked !== undefined) this.#asked.at += held;
    this.#watchdog.nearer(this);
  }

  /** Grants time after a suspension, at most `suspendGracesMax` times: a process that is starved for ever must still cut. */
  grant(ms: number): void {
    this.#graces += 1;
    if (this.#graces <= suspendGracesMax) this.#graceMs += ms;
  }

  /**
   * Until `now` this process did not run for `ms`: held time. What has come since the gap counts from when it came, so
   * that no clock starts in the future.
   */
  skip(ms: number, now: number): void {
    // A hold that the gap lies in adds it when it is released.
    if (this.#holds > 0 && this.#heldAt <= now - ms) return;
    const until = this.#standing(now);
    this.#startedAt = Math.min(this.#startedAt + ms, until);
    this.#runStartedAt = Math.min(this.#runStartedAt + ms, until);
    this.#progressAt = Math.min(this.#progressAt + ms, until);
    this.#bytesAt = Math.min(this.#bytesAt + ms, until);
    if (this.#asked !== undefined) this.#asked.at = Math.min(this.#asked.at + ms, until);
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

  /** When the path is to be asked because nothing comes; infinite where it is not. */
  get asksAt(): number {
    if (this.#holds > 0 || this.#terminal || this.listener.path === undefined) return Number.POSITIVE_INFINITY;
    const asked = this.#asked;
    if (asked === undefined) return this.#bytesAt + askAfterMs;
    return asked.at + (askAgainMs[Math.min(asked.times, askAgainMs.length) - 1] ?? askAfterMs);
  }

  /** The path is asked now. */
  asked(now: number): void {
    this.#asked = { at: now, times: (this.#asked?.times ?? 0) + 1 };
  }

  /** Whether nothing has come since a time, while somebody read. */
  isSilentSince(at: number): boolean {
    return this.#holds === 0 && this.#bytesAt <= at;
  }

  /** When the first progress arrived, in monotonic milliseconds; undefined before it. */
  get firstProgressAt(): number | undefined {
    return this.#firstProgressAt;
  }

  /** Milliseconds since the last progress, or since the start where there was none. */
  withoutProgress(now: number): number {
    return Math.max(0, this.#standing(now) - this.#progressAt);
  }

  /** What the run's own clock has used so far, in milliseconds. */
  runElapsed(now: number): number {
    return this.#standing(now) - this.#runStartedAt;
  }
}

/** What one look has found, in milliseconds. */
interface Look {
  /** How long no clock can run out; infinite where nothing is watched. */
  readonly wait: number;
  /** A clock has run out, but the fiber woke late: parts that came meanwhile may be unread. */
  readonly again: boolean;
}

/** The shared watcher of one processor. */
export class Watchdog {
  readonly #clock: Clock.Clock;
  readonly #watches = new Deadlines<Watch>();
  /** When the fiber is to wake; infinite while it waits to be woken. */
  #wakesAt = Number.POSITIVE_INFINITY;
  #wake = Deferred.makeUnsafe<void>();
  #lastMonotonic: number;
  #lastWall: number;
  /** Until then no clock cuts, also none of an attempt that starts meanwhile. */
  #graceUntil = Number.NEGATIVE_INFINITY;
  /** The look before this one was put off because its fiber woke late; it is put off once. */
  #putOff = false;
  /** Runs that wait, and have no attempt that could be watched. */
  #awake = 0;
  #sleptMs = 0;
  #paths: PathListener | undefined;

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

  /** From now on these are told of silent paths. */
  reportTo(paths: PathListener): void {
    this.#paths = paths;
  }

  /** Monotonic milliseconds of the Clock service. */
  now(): number {
    return monotonicMs(this.#clock);
  }

  /** Starts to watch an attempt; the read for its first part is outstanding from now on. */
  watch(clocks: Clocks, listener: WatchListener, runElapsedMs: number): Watch {
    const now = this.now();
    if (this.#isIdle) this.#mark(now);
    const watch = new Watch(this, clocks, listener, now, runElapsedMs);
    if (now < this.#graceUntil) watch.grant(this.#graceUntil - now);
    this.#watches.set(watch, this.#dueAt(watch));
    this.nearer(watch);
    return watch;
  }

  unwatch(watch: Watch): void {
    this.#watches.delete(watch);
  }

  /** What this process has slept while something was watched, by the monotonic clock, in milliseconds. */
  get sleptMs(): number {
    return this.#sleptMs;
  }

  /** A run waits that has no attempt: a suspension is noticed all the same, until as many `maySleep`. */
  keepAwake(): void {
    if (this.#isIdle) this.#mark(this.now());
    this.#awake += 1;
    if (this.#wakesAt === Number.POSITIVE_INFINITY) this.#wakeNow();
  }

  /** Such a run waits no longer. */
  maySleep(): void {
    this.#awake -= 1;
  }

  get #isIdle(): boolean {
    return this.#watches.size === 0 && this.#awake === 0;
  }

  /** Ends the attempts of a path from which nothing has come since a time. */
  lose(path: string, since: number): void {
    for (const watch of this.#watches.values()) {
      if (watch.listener.path !== path || !watch.isSilentSince(since)) continue;
      if (!this.#watches.delete(watch)) continue;
      watch.listener.lost?.();
    }
  }

  /** Number of attempts being watched. */
  get size(): number {
    return this.#watches.size;
  }

  /** A watch's deadline may have come nearer: wakes the fiber if it would sleep past it, or does not look at all. */
  nearer(watch: Watch): void {
    const at = this.#dueAt(watch);
    if (at < watch.dueAt && this.#watches.has(watch)) this.#watches.set(watch, at);
    if (this.#wakesAt === Number.POSITIVE_INFINITY || at < this.#wakesAt) this.#wakeNow();
  }

  /** When a watch has to be looked at. */
  #dueAt(watch: Watch): number {
    return Math.min(watch.nearest().at, this.#asksAt(watch));
  }

  /** When the path of a watch is asked, together with those of others; infinite where it is not. */
  #asksAt(watch: Watch): number {
    return this.#paths === undefined ? Number.POSITIVE_INFINITY : Math.ceil(watch.asksAt / askGridMs) * askGridMs;
  }

  #wakeNow(): void {
    // The fiber is to wake now: the time until it does is lateness, also before its first look at this watch.
    this.#wakesAt = this.now();
    Deferred.doneUnsafe(this.#wake, Effect.void);
  }

  /**
   * Looks whether this process has not run for a while. Called before anything is concluded from the time: a socket that
   * broke in a sleep may be heard of before the watchdog's own fiber wakes.
   */
  catchUp(): void {
    this.#noticeSuspension(this.now());
  }

  #patrol(): Effect.Effect<never> {
    return Effect.forever(
      Effect.suspend(() => {
        const { again, wait } = this.#look();
        if (again) return Effect.sleep(Duration.millis(catchUpMs));
        const woken = Deferred.await(this.#wake);
        return wait === Number.POSITIVE_INFINITY
          ? woken
          : Effect.raceFirst(woken, Effect.sleep(Duration.millis(Math.ceil(wait))));
      }).pipe(
        // The watch of a listener that dies is removed already. Without this fiber every other attempt would wait for ever.
        Effect.catchDefect((defect) => Effect.logError("an attempt could not be told of its clock", defect)),
      ),
    );
  }

  /** Ends the attempts whose clock has run out, and says how long none can run out. */
  #look(): Look {
    this.#wake = Deferred.makeUnsafe<void>();
    const now = this.now();
    const again = this.#noticeSuspension(now) > lateMs && !this.#putOff && this.#isOver(now);
    this.#putOff = again;
    if (again) {
      this.#wakesAt = now + catchUpMs;
      return { wait: catchUpMs, again };
    }
    this.#cut(now);
    const nothingBefore = this.#watches.first?.dueAt ?? Number.POSITIVE_INFINITY;
    this.#wakesAt = this.#isIdle ? Number.POSITIVE_INFINITY : Math.min(nothingBefore, now + sweepMs);
    return { wait: this.#wakesAt - now, again };
  }

  /** Ends the attempts whose clock has run out. A deadline that a listener brings nearer meanwhile counts too. */
  #cut(now: number): void {
    const silent = new Set<string>();
    for (;;) {
      const watch = this.#watches.first;
      if (watch === undefined || watch.dueAt > now) break;
      const { clock, at } = watch.nearest();
      if (at <= now) {
        this.#watches.delete(watch);
        watch.listener.stalled(clock);
        continue;
      }
      if (this.#asksAt(watch) <= now) {
        watch.asked(now);
        if (watch.listener.path !== undefined) silent.add(watch.listener.path);
      }
      this.#watches.set(watch, Math.min(at, this.#asksAt(watch)));
    }
    for (const path of silent) this.#paths?.silent(path);
  }

  #isOver(now: number): boolean {
    return this.#watches.someDue(now, (watch) => watch.nearest().at <= now);
  }

  /**
   * Holds a gap in our own time for every clock.
   *
   * The monotonic clock runs on while a process is stopped, and on some systems while a machine sleeps: then this fiber
   * wakes late by it. On others it stands still: then the wall clock runs ahead of it, as it does when it is set forward;
   * the two cannot be told apart. A wall clock that is set back means nothing.
   *
   * @returns how late it is by the monotonic clock
   */
  #noticeSuspension(now: number): number {
    const wall = this.#clock.currentTimeMillisUnsafe();
    const late = Math.max(0, now - Math.max(this.#wakesAt, this.#lastMonotonic));
    const ahead = Math.max(0, wall - this.#lastWall - (now - this.#lastMonotonic));
    this.#mark(now, wall);
    if (late <= suspendLateMs && ahead <= suspendLateMs) return late;
    this.#graceUntil = now + suspendGraceMs;
    this.#sleptMs += late;
    const paths = new Set<string>();
    for (const watch of this.#watches.values()) {
      watch.skip(late, now);
      watch.grant(suspendGraceMs);
      watch.listener.suspended(Math.round(late + ahead));
      if (watch.listener.path !== undefined) paths.add(watch.listener.path);
    }
    this.#paths?.woke(paths);
    return late;
  }

  #mark(now: number, wall = this.#clock.currentTimeMillisUnsafe()): void {
    this.#lastMonotonic = now;
    this.#lastWall = wall;
  }
}
