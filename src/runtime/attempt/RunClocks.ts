/**
 * The clocks of one run across its attempts: limits that a stall has doubled, and the time that the run's own clock has used.
 */
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type { ClockName, Failure } from "../../domain/Failure.ts";
import * as Clocks from "../contract/Clocks.ts";
import type { RunOptions } from "../contract/RunOptions.ts";
import type { Watch, WatchListener } from "./Watch.ts";
import type { Watchdog } from "./Watchdog.ts";

/** Failure of a run whose own clock has run out. It is never retried. */
export const runClock: Failure = { kind: "stalled", clock: "run" };

/** The clocks of one run across its attempts. */
export class RunClocks {
  readonly #watchdog: Watchdog;
  #clocks: Clocks.Clocks;
  #elapsedMs = 0;
  /** Start of the open wait, and the time that this process had been suspended before, in milliseconds. */
  #wait: { readonly from: number; readonly slept: number } | undefined;

  /** @param options options of the run, with its provider and its own limits */
  constructor(watchdog: Watchdog, options: Clocked) {
    this.#watchdog = watchdog;
    this.#clocks = clocksOf(options);
  }

  /**
   * Resets the clocks for another route, because its model may think longer. Doubled limits belong to the previous route and are dropped.
   */
  reset(options: Clocked): void {
    this.#clocks = clocksOf(options);
  }

  /** Remaining time of the run's own clock, in milliseconds; infinite if it is off. */
  get leftMs(): number {
    if (this.#clocks.run === Number.POSITIVE_INFINITY) return this.#clocks.run;
    return Math.max(0, this.#clocks.run - this.#elapsedMs - this.#openWaitMs);
  }

  /**
   * Counts a wait between the attempts of a run (a backoff, a path or a cooldown) on the run's clock. Excludes time in which this
   * process was suspended. Open questions and running tools are not waits. The start of an attempt ends the wait.
   */
  waiting<A, E, R>(wait: Effect.Effect<A, E, R>): Effect.Effect<A, E, R> {
    return Effect.suspend(() => {
      if (this.#clocks.run === Number.POSITIVE_INFINITY) return wait;
      this.#endWait();
      this.#wait = { from: this.#watchdog.now(), slept: this.#watchdog.sleptMs };
      return Effect.ensuring(
        wait,
        Effect.sync(() => this.#endWait()),
      );
    });
  }

  /** Waits until the run's own clock runs out; never completes if it is off. Suspensions do not count. */
  get awaitExpiry(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#watchdog.catchUp();
      const { leftMs } = this;
      if (leftMs === Number.POSITIVE_INFINITY) return Effect.never;
      return leftMs === 0 ? Effect.void : Effect.andThen(Effect.sleep(Duration.millis(leftMs)), this.awaitExpiry);
    });
  }

  #endWait(): void {
    if (this.#wait === undefined) return;
    this.#watchdog.catchUp();
    this.#elapsedMs += this.#openWaitMs;
    this.#wait = undefined;
  }

  get #openWaitMs(): number {
    const wait = this.#wait;
    if (wait === undefined) return 0;
    const { sleptMs } = this.#watchdog;
    return Math.max(0, this.#watchdog.now() - wait.from - (sleptMs - wait.slept));
  }

  /** Starts to watch an attempt of the run. */
  watch(listener: WatchListener): Watch {
    this.#endWait();
    return this.#watchdog.watch(this.#clocks, listener, this.#elapsedMs);
  }

  /**
   * Ends the watch of an attempt, and doubles the clock that ended it for the next attempt.
   *
   * @param watch undefined if the attempt was never started
   * @param stalled the clock that ended the attempt; undefined if none did, or if the stall proves nothing about the model
   * @returns the time since its last progress, in milliseconds
   */
  endWatch(watch: Watch | undefined, stalled: ClockName | undefined): number {
    if (stalled !== undefined) this.#clocks = Clocks.doubleClock(this.#clocks, stalled);
    if (watch === undefined) return 0;
    // Detect a suspension first, because a break may be reported before the watchdog wakes, and the gap must not count.
    this.#watchdog.catchUp();
    const now = this.#watchdog.now();
    this.#watchdog.unwatch(watch);
    this.#elapsedMs = watch.runElapsed(now);
    return watch.withoutProgress(now);
  }
}

/** Options that determine the clocks of a run. */
type Clocked = Pick<RunOptions<never, never, never>, "provider" | "streaming" | "clocks">;

const clocksOf = ({ clocks, provider, streaming }: Clocked): Clocks.Clocks =>
  Clocks.make(provider, streaming ?? true, clocks);
