/**
 * Watches the clocks of every live attempt with one fiber.
 *
 * An event writes one number into its `Watch`; nothing is armed or raced per event. The fiber sleeps to the nearest deadline of all
 * watches, at most `sweepMs`, and looks at those that may be due; whatever brings a deadline nearer (the first progress, the
 * keep-alive that arms `silence`, the terminal marker, a release) wakes it. A watch that is held (no read outstanding, a tool
 * running) stands still.
 *
 * A watch without a byte for a while is no stall yet: its path is asked, by whoever can, and an attempt on a path that is lost
 * ends without its clock. No clock and no look waits for that. Those that are to be asked are asked together, twice a
 * second: however many are silent or read, each since a moment of its own, the fiber does not wake for each.
 *
 * A suspension is a gap in our own time: a closed lid, SIGSTOP, a paused container, a blocked loop. The fiber notices it
 * by waking late. The gap is held time for every clock, and for a while no clock cuts.
 */
import * as Clock from "effect/Clock";
import * as Deferred from "effect/Deferred";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import {
  askGridMs,
  type Clocks,
  catchUpMs,
  foresightMs,
  lateMs,
  suspendGraceMs,
  suspendLateMs,
  sweepMs,
} from "../contract/Clocks.ts";
import { Deadlines } from "../contract/Deadlines.ts";
import { Watch, type WatchListener } from "./Watch.ts";

/** What the watchdog tells of paths, in its own step. Nothing of it may block. */
export interface PathListener {
  /** Nothing has come from this path for a while. */
  readonly silent: (path: string) => void;
  /** This process has not run for a while. */
  readonly woke: (paths: ReadonlySet<string>) => void;
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

  /** From now on these are told of silent paths. Called before anything is watched: a watch that stands already is not placed anew. */
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
    this.#wakesAt = this.#isIdle ? Number.POSITIVE_INFINITY : Math.min(this.#nothingBefore, now + sweepMs);
    return { wait: this.#wakesAt - now, again };
  }

  /** Ends the attempts whose clock has run out. A deadline that a listener brings nearer meanwhile counts too. */
  #cut(now: number): void {
    if (this.#nothingBefore > now) return;
    const silent = new Set<string>();
    try {
      // One look finds for all that come next whether theirs has moved away: the fiber would wake for each.
      for (const watch of this.#watches.due(now + foresightMs)) this.#place(watch, watch.nearest().at, now, silent);
      while (this.#nothingBefore <= now) this.#cutFirst(now, silent);
    } finally {
      for (const path of silent) this.#paths?.silent(path);
    }
  }

  /** Ends the first attempt where its clock has run out, or places it anew. */
  #cutFirst(now: number, silent: Set<string>): void {
    const watch = this.#watches.first;
    if (watch === undefined) return;
    const { clock, at } = watch.nearest();
    if (at > now) {
      this.#place(watch, at, now, silent);
      return;
    }
    this.#watches.delete(watch);
    watch.listener.stalled(clock);
  }

  /** Places a watch by its nearest clock and the question about its path, which is asked where it is due. */
  #place(watch: Watch, at: number, now: number, silent: Set<string>): void {
    let asksAt = this.#asksAt(watch);
    if (at > now && asksAt <= now) {
      watch.asked(now);
      if (watch.listener.path !== undefined) silent.add(watch.listener.path);
      asksAt = this.#asksAt(watch);
    }
    this.#watches.set(watch, Math.min(at, asksAt));
  }

  /** Before then no watch is due; infinite where nothing is watched. */
  get #nothingBefore(): number {
    return this.#watches.first?.dueAt ?? Number.POSITIVE_INFINITY;
  }

  #isOver(now: number): boolean {
    return this.#watches.due(now).some((watch) => watch.nearest().at <= now);
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
      if (!this.#watches.has(watch)) continue;
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
