/**
 * Watches the clocks of all live attempts with one fiber.
 *
 * An event writes one number into its `Watch`; nothing is armed or raced per event. The fiber sleeps until the nearest deadline, at most
 * `sweepMs`, and checks the watches that may be due. Anything that brings a deadline nearer wakes it: the first progress, the keep-alive
 * that arms `silence`, the terminal marker, a release. The clocks of a held watch are stopped.
 *
 * An attempt that is silent for a while has not stalled yet. The watchdog has its path probed and ends the attempt early if the path is
 * lost. Clocks and checks never wait for a probe. Probes start at most twice per second, so that the fiber does not wake for each silent
 * attempt.
 *
 * A suspension is a gap in which this process did not run: a closed lid, SIGSTOP, a paused container, a blocked event loop. The fiber
 * detects it because it wakes late. All clocks exclude the gap, and for a grace period none of them ends an attempt.
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

/** Callbacks about paths, called in the watchdog's own step. They must not block. */
export interface PathListener {
  /** Called when a path has been silent for a while. */
  readonly onSilent: (path: string) => void;
  /** Called after a suspension, with the paths of all live attempts. */
  readonly onWake: (paths: ReadonlySet<string>) => void;
}

/** Result of a check of the deadlines. */
interface Look {
  /** Time until a clock can run out, in milliseconds; infinite if nothing is watched. */
  readonly wait: number;
  /** True if a clock has run out but the fiber woke late, so that parts that arrived in the meantime may be unread. */
  readonly again: boolean;
}

/** The watchdog that all attempts of a processor share. */
export class Watchdog {
  readonly #clock: Clock.Clock;
  readonly #watches = new Deadlines<Watch>();
  /** Time at which the fiber wakes; infinite while it waits for a wake-up. */
  #wakesAt = Number.POSITIVE_INFINITY;
  #wake = Deferred.makeUnsafe<void>();
  #lastMonotonic: number;
  #lastWall: number;
  /** End of the grace period, in which no clock ends an attempt. It also covers attempts that start within it. */
  #graceUntil = Number.NEGATIVE_INFINITY;
  /** True if the previous check was postponed because the fiber woke late. A check is postponed only once. */
  #putOff = false;
  /** Number of waiting runs without an attempt, for which suspensions are detected too. */
  #awake = 0;
  #sleptMs = 0;
  #paths: PathListener | undefined;

  private constructor(clock: Clock.Clock) {
    this.#clock = clock;
    this.#lastMonotonic = this.now();
    this.#lastWall = clock.currentTimeMillisUnsafe();
  }

  /** Starts the watchdog's fiber in the current scope. */
  static readonly make: Effect.Effect<Watchdog, never, Scope.Scope> = Effect.gen(function* () {
    const watchdog = new Watchdog(yield* Clock.Clock);
    yield* Effect.forkScoped(watchdog.#patrol());
    return watchdog;
  });

  /** Sets the listener for silent paths. Call it before anything is watched: existing watches are not rescheduled. */
  reportTo(paths: PathListener): void {
    this.#paths = paths;
  }

  /** Time of the Clock service, in monotonic milliseconds. */
  now(): number {
    return monotonicMs(this.#clock);
  }

  /** Starts to watch an attempt while the read for its first part is outstanding. */
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

  /** Time that this process was suspended while something was watched, by the monotonic clock, in milliseconds. */
  get sleptMs(): number {
    return this.#sleptMs;
  }

  /** Also detects suspensions for a waiting run without an attempt, until the same number of `allowSleep` calls. */
  keepAwake(): void {
    if (this.#isIdle) this.#mark(this.now());
    this.#awake += 1;
    if (this.#wakesAt === Number.POSITIVE_INFINITY) this.#wakeNow();
  }

  /** Ends one `keepAwake`. */
  allowSleep(): void {
    this.#awake -= 1;
  }

  get #isIdle(): boolean {
    return this.#watches.size === 0 && this.#awake === 0;
  }

  /** Ends the attempts of a path that have received nothing since the given time. */
  lose(path: string, since: number): void {
    for (const watch of this.#watches.values()) {
      if (watch.listener.path !== path || !watch.isSilentSince(since)) continue;
      if (!this.#watches.delete(watch)) continue;
      watch.listener.onPathLost?.();
    }
  }

  /** Number of attempts being watched. */
  get size(): number {
    return this.#watches.size;
  }

  /** Reports that a deadline may be nearer. Wakes the fiber if it is idle or would sleep past the deadline. */
  nearer(watch: Watch): void {
    const at = this.#dueAt(watch);
    if (at < watch.dueAt && this.#watches.has(watch)) this.#watches.set(watch, at);
    if (this.#wakesAt === Number.POSITIVE_INFINITY || at < this.#wakesAt) this.#wakeNow();
  }

  /** Time at which a watch must be checked. */
  #dueAt(watch: Watch): number {
    return Math.min(watch.nearest().at, this.#nextProbeAt(watch));
  }

  /** Time of the next probe for a watch, rounded up to the shared grid; infinite if there is none. */
  #nextProbeAt(watch: Watch): number {
    return this.#paths === undefined ? Number.POSITIVE_INFINITY : Math.ceil(watch.nextProbeAt / askGridMs) * askGridMs;
  }

  #wakeNow(): void {
    // Any delay from now on counts as lateness, even if this watch was not checked before.
    this.#wakesAt = this.now();
    Deferred.doneUnsafe(this.#wake, Effect.void);
  }

  /**
   * Detects a suspension. Called before anything is concluded from the current time, because a socket that broke in the gap may report the
   * break before the watchdog's own fiber wakes.
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
        // The watch of a listener that throws is already removed. If the fiber ended, all other attempts would wait forever.
        Effect.catchDefect((defect) => Effect.logError("cannot notify an attempt that it timed out", defect)),
      ),
    );
  }

  /** Ends the attempts whose clock has run out, and returns the time until the next one can. */
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

  /** Ends the attempts whose clock has run out, including those whose deadline a listener brings nearer in the meantime. */
  #cut(now: number): void {
    if (this.#nothingBefore > now) return;
    const silent = new Set<string>();
    try {
      // One check also covers deadlines that follow shortly, so that the fiber does not wake again for each moved deadline.
      for (const watch of this.#watches.due(now + foresightMs)) this.#place(watch, watch.nearest().at, now, silent);
      while (this.#nothingBefore <= now) this.#cutFirst(now, silent);
    } finally {
      for (const path of silent) this.#paths?.onSilent(path);
    }
  }

  /** Ends the first attempt if its clock has run out, else reschedules it. */
  #cutFirst(now: number, silent: Set<string>): void {
    const watch = this.#watches.first;
    if (watch === undefined) return;
    const { clock, at } = watch.nearest();
    if (at > now) {
      this.#place(watch, at, now, silent);
      return;
    }
    this.#watches.delete(watch);
    watch.listener.onStalled(clock);
  }

  /** Schedules a watch by its nearest clock and its next probe, and starts a probe that is due. */
  #place(watch: Watch, at: number, now: number, silent: Set<string>): void {
    let asksAt = this.#nextProbeAt(watch);
    if (at > now && asksAt <= now) {
      watch.recordProbe(now);
      if (watch.listener.path !== undefined) silent.add(watch.listener.path);
      asksAt = this.#nextProbeAt(watch);
    }
    this.#watches.set(watch, Math.min(at, asksAt));
  }

  /** Earliest time at which a watch can be due; infinite if nothing is watched. */
  get #nothingBefore(): number {
    return this.#watches.first?.dueAt ?? Number.POSITIVE_INFINITY;
  }

  #isOver(now: number): boolean {
    return this.#watches.due(now).some((watch) => watch.nearest().at <= now);
  }

  /**
   * Excludes from all clocks a gap in which this process did not run.
   *
   * On some systems the monotonic clock keeps running while the process is stopped or the machine sleeps, and this fiber wakes late. On
   * others it stops, and the wall clock runs ahead of it. A wall clock that is set forward looks the same, so it counts as a suspension. A
   * wall clock that is set back is ignored.
   *
   * @returns the lateness by the monotonic clock, in milliseconds
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
      watch.listener.onSuspended(Math.round(late + ahead));
      if (watch.listener.path !== undefined) paths.add(watch.listener.path);
    }
    this.#paths?.onWake(paths);
    return late;
  }

  #mark(now: number, wall = this.#clock.currentTimeMillisUnsafe()): void {
    this.#lastMonotonic = now;
    this.#lastWall = wall;
  }
}
