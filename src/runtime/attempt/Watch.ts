/**
 * The clocks of one attempt, as numbers. An event writes one of them, and the watchdog reads which clock runs out first.
 */
import type { ClockName } from "../../domain/Failure.ts";
import {
  askAfterMs,
  askAgainMs,
  type Clocks,
  keepAlivesToArm,
  lingerMs,
  suspendGracesMax,
} from "../contract/Clocks.ts";
import type { Due } from "../contract/Deadlines.ts";

/** Callbacks of an attempt, called by the watchdog's fiber. They must not block. */
export interface WatchListener {
  readonly onStalled: (clock: ClockName) => void;
  readonly onSuspended: (ms: number) => void;
  /** Path of the attempt's request; undefined if unknown. */
  readonly path?: string;
  /** Called when the path is lost. The attempt then ends. */
  readonly onPathLost?: () => void;
}

/** The watchdog that checks a watch. */
interface WatchKeeper {
  /** Called when the deadline of a watch may be nearer. */
  readonly nearer: (watch: Watch) => void;
}

/** The clocks of one attempt. Times are monotonic milliseconds. */
export class Watch implements Due {
  static #made = 0;
  readonly id = Watch.#made++;
  dueAt = Number.POSITIVE_INFINITY;
  place = -1;
  readonly clocks: Clocks;
  readonly listener: WatchListener;
  readonly #watchdog: WatchKeeper;
  #startedAt: number;
  #runStartedAt: number;
  #progressAt: number;
  #bytesAt: number;
  #heldAt = 0;
  #holds = 0;
  #written = false;
  #progressed = false;
  #firstProgressAt: number | undefined;
  #keepAlives = 0;
  #graceMs = 0;
  #graces = 0;
  /** Time at which the terminal marker was seen; undefined before. */
  #markedAt: number | undefined;
  /** Time of the last probe in the current silence, and the number of probes; undefined if there was none. */
  #asked: { at: number; readonly times: number } | undefined;

  constructor(watchdog: WatchKeeper, clocks: Clocks, listener: WatchListener, now: number, runElapsedMs: number) {
    this.#watchdog = watchdog;
    this.clocks = clocks;
    this.listener = listener;
    this.#startedAt = now;
    this.#runStartedAt = now - runElapsedMs;
    this.#progressAt = now;
    this.#bytesAt = now;
  }

  /** Records parts that arrived at `now`. This is the only call on the hot path. */
  recordParts(now: number, progress: boolean): void {
    this.bytes(now);
    if (progress) {
      this.#progressAt = this.#bytesAt;
      if (!this.#progressed) this.#firstProgress(this.#bytesAt);
    }
  }

  /**
   * Starts the `first_progress` clock when the request is written, so that the wait for a connection does not count. Further calls have no
   * effect.
   */
  onRequestWritten(now: number): void {
    if (this.#written) return;
    this.#written = true;
    if (!this.#progressed) this.#progressAt = this.#standing(now);
  }

  /** Switches the limit to `idle`, which may run out long before `first_progress` would have. */
  #firstProgress(at: number): void {
    this.#firstProgressAt = at;
    this.#progressed = true;
    this.#watchdog.nearer(this);
  }

  /** Records bytes, even if they do not complete a part. */
  bytes(now: number): void {
    this.#bytesAt = this.#standing(now);
    if (this.#asked === undefined) return;
    // A new silence starts, and it may have to be probed earlier than the old one.
    this.#asked = undefined;
    this.#watchdog.nearer(this);
  }

  /** Returns the time. During a hold the time does not advance; `release` adds the gap. */
  #standing(now: number): number {
    return this.#holds > 0 ? this.#heldAt : now;
  }

  /** Records a keep-alive. The keep-alive that arms `silence` brings the deadline nearer, so it notifies the watchdog. */
  keepAlive(): void {
    this.#keepAlives += 1;
    if (this.#keepAlives === keepAlivesToArm) this.#watchdog.nearer(this);
  }

  /** Records the terminal marker. Only trailing data may follow it. */
  terminal(now: number): void {
    this.#markedAt ??= this.#standing(now);
    this.#watchdog.nearer(this);
  }

  /** Called when the response continues after its marker. */
  forgetTerminal(): void {
    this.#markedAt = undefined;
  }

  /** Stops the clocks until the same number of `release` calls, for example while no read is outstanding or a tool runs. */
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
    if (this.#markedAt !== undefined) this.#markedAt += held;
    if (this.#asked !== undefined) this.#asked.at += held;
    this.#watchdog.nearer(this);
  }

  /**
   * Grants extra time after a suspension, at most `suspendGracesMax` times, so that the clocks still end attempts in a process that is
   * constantly starved of CPU time.
   */
  grant(ms: number): void {
    this.#graces += 1;
    if (this.#graces <= suspendGracesMax) this.#graceMs += ms;
  }

  /**
   * Excludes the `ms` before `now`, in which this process did not run. Events since then keep their time, so that no clock starts in the
   * future.
   */
  skip(ms: number, now: number): void {
    // If the gap lies within a hold, releasing the hold excludes it.
    if (this.#holds > 0 && this.#heldAt <= now - ms) return;
    const until = this.#standing(now);
    this.#startedAt = Math.min(this.#startedAt + ms, until);
    this.#runStartedAt = Math.min(this.#runStartedAt + ms, until);
    this.#progressAt = Math.min(this.#progressAt + ms, until);
    this.#bytesAt = Math.min(this.#bytesAt + ms, until);
    if (this.#markedAt !== undefined) this.#markedAt = Math.min(this.#markedAt + ms, until);
    if (this.#asked !== undefined) this.#asked.at = Math.min(this.#asked.at + ms, until);
  }

  /** Returns the clock that runs out first and its time; `at` is infinite if no clock runs. */
  nearest(): { readonly clock: ClockName; readonly at: number } {
    let clock: ClockName = "idle";
    let at = Number.POSITIVE_INFINITY;
    if (this.#holds > 0) return { clock, at };
    const { clocks } = this;
    const idle = this.#progressed ? clocks.idle : clocks.first_progress;
    const markedAt = this.#markedAt;
    if (!this.#progressed && markedAt === undefined) clock = "first_progress";
    at =
      markedAt === undefined
        ? this.#progressAt + idle
        : Math.max(this.#progressAt, markedAt) + Math.min(idle, lingerMs);
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

  /** Time at which a silent path must be probed; infinite if no probe is needed. */
  get nextProbeAt(): number {
    if (this.#holds > 0 || this.#markedAt !== undefined || this.listener.path === undefined)
      return Number.POSITIVE_INFINITY;
    const asked = this.#asked;
    if (asked === undefined) return this.#bytesAt + askAfterMs;
    return asked.at + (askAgainMs[Math.min(asked.times, askAgainMs.length) - 1] ?? askAfterMs);
  }

  recordProbe(now: number): void {
    this.#asked = { at: now, times: (this.#asked?.times ?? 0) + 1 };
  }

  /** True if no bytes have arrived since `at` while a read was outstanding. */
  isSilentSince(at: number): boolean {
    return this.#holds === 0 && this.#bytesAt <= at;
  }

  /** Time of the first progress, in monotonic milliseconds; undefined before it. */
  get firstProgressAt(): number | undefined {
    return this.#firstProgressAt;
  }

  /** Milliseconds since the last progress, or since the start if there was none. */
  withoutProgress(now: number): number {
    return Math.max(0, this.#standing(now) - this.#progressAt);
  }

  /** Time that the run's own clock has used, in milliseconds. */
  runElapsed(now: number): number {
    return this.#standing(now) - this.#runStartedAt;
  }
}
