/**
 * Keeps the clocks of one attempt as numbers: an event writes one of them, and the watchdog reads when the first runs out.
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

/** What a watch tells its attempt, by the watchdog's fiber. Nothing of it may block. */
export interface WatchListener {
  readonly stalled: (clock: ClockName) => void;
  readonly suspended: (ms: number) => void;
  /** The path of the attempt's request; undefined where none is known. */
  readonly path?: string;
  /** The path is lost, and the attempt with it. */
  readonly lost?: () => void;
}

/** Who looks at a watch. */
interface WatchKeeper {
  /** The deadline of a watch may have come nearer. */
  readonly nearer: (watch: Watch) => void;
}

/** The clocks of one attempt, as numbers. Times are monotonic milliseconds. */
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
  /** When the terminal marker was seen; undefined before it. */
  #markedAt: number | undefined;
  /** When the path was asked last because nothing comes, and how often; undefined while it was not. */
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

  /** Parts arrived at `now`. The only call on the hot path. */
  arrived(now: number, progress: boolean): void {
    this.bytes(now);
    if (progress) {
      this.#progressAt = this.#bytesAt;
      if (!this.#progressed) this.#firstProgress(this.#bytesAt);
    }
  }

  /** The request is being written: `first_progress` counts from here, and not from the wait for a connection. Said again, it changes nothing. */
  written(now: number): void {
    if (this.#written) return;
    this.#written = true;
    if (!this.#progressed) this.#progressAt = this.#standing(now);
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

  /** The terminal marker was seen at `now`: what still comes is an afterthought. */
  terminal(now: number): void {
    this.#markedAt ??= this.#standing(now);
    this.#watchdog.nearer(this);
  }

  /** The finish was not the last one: the response continues. */
  goesOn(): void {
    this.#markedAt = undefined;
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
    if (this.#markedAt !== undefined) this.#markedAt += held;
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
    if (this.#markedAt !== undefined) this.#markedAt = Math.min(this.#markedAt + ms, until);
    if (this.#asked !== undefined) this.#asked.at = Math.min(this.#asked.at + ms, until);
  }

  /** The clock that runs out first and when; an infinite `at` while nothing runs. */
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

  /** When the path is to be asked because nothing comes; infinite where it is not. */
  get asksAt(): number {
    if (this.#holds > 0 || this.#markedAt !== undefined || this.listener.path === undefined)
      return Number.POSITIVE_INFINITY;
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
