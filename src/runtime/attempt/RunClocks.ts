/**
 * Keeps the clocks of one run over all its attempts: what a stall has doubled, and what the run's own clock has used.
 */
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import type { ClockName, Failure } from "../../domain/Failure.ts";
import * as Clocks from "../contract/Clocks.ts";
import type { RunOptions } from "../contract/RunOptions.ts";
import type { Watch, WatchListener } from "./Watch.ts";
import type { Watchdog } from "./Watchdog.ts";

/** The failure of a run whose own clock has run out. It is never retried. */
export const runClock: Failure = { kind: "stalled", clock: "run" };

/** The clocks of one run, over all its attempts. */
export class RunClocks {
  readonly #watchdog: Watchdog;
  #clocks: Clocks.Clocks;
  #elapsedMs = 0;
  /** The wait that is open: when it began, and what this process had slept until then, in milliseconds. */
  #wait: { readonly from: number; readonly slept: number } | undefined;

  /** @param options of the run, which name its provider and its own limits */
  constructor(watchdog: Watchdog, options: Clocked) {
    this.#watchdog = watchdog;
    this.#clocks = clocksOf(options);
  }

  /** The run goes by another route, whose model may think longer. What a stall has doubled was the other one's. */
  goesBy(options: Clocked): void {
    this.#clocks = clocksOf(options);
  }

  /** What is left of the run's own clock, in milliseconds; infinite without one. */
  get leftMs(): number {
    if (this.#clocks.run === Number.POSITIVE_INFINITY) return this.#clocks.run;
    return Math.max(0, this.#clocks.run - this.#elapsedMs - this.#openWaitMs);
  }

  /**
   * Counts a wait of the run between its attempts: for a backoff, a path or a cooldown. Time in which this process was suspended does not
   * count. Time with an open question or a running tool is no wait. An attempt that starts ends the wait.
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

  /** Waits until the run's own clock has run out; for ever without one. A suspension is no time that the run has spent. */
  get runsOut(): Effect.Effect<void> {
    return Effect.suspend(() => {
      this.#watchdog.catchUp();
      const { leftMs } = this;
      if (leftMs === Number.POSITIVE_INFINITY) return Effect.never;
      return leftMs === 0 ? Effect.void : Effect.andThen(Effect.sleep(Duration.millis(leftMs)), this.runsOut);
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
   * An attempt has ended. A clock that has cut it is twice as long for the next one.
   *
   * @param watch undefined where the attempt was never started
   * @param stalled the clock that has cut it; undefined where none has, or where that proves nothing about the model
   * @returns the time since its last progress, in milliseconds
   */
  ended(watch: Watch | undefined, stalled: ClockName | undefined): number {
    if (stalled !== undefined) this.#clocks = Clocks.doubled(this.#clocks, stalled);
    if (watch === undefined) return 0;
    // The break may come before the watchdog has woken from a suspension: the gap is no time that the run has spent.
    this.#watchdog.catchUp();
    const now = this.#watchdog.now();
    this.#watchdog.unwatch(watch);
    this.#elapsedMs = watch.runElapsed(now);
    return watch.withoutProgress(now);
  }
}

/** What the clocks of a run are read from. */
type Clocked = Pick<RunOptions<never, never, never>, "provider" | "streaming" | "clocks">;

const clocksOf = ({ clocks, provider, streaming }: Clocked): Clocks.Clocks =>
  Clocks.make(provider, streaming ?? true, clocks);
