/**
 * Keeps the clocks of one run over all its attempts: what a stall has doubled, and what the run's own clock has used.
 */
import type { ClockName } from "../../domain/Failure.ts";
import * as Clocks from "../contract/Clocks.ts";
import type { RunOptions } from "../contract/RunOptions.ts";
import type { Watch, WatchListener } from "./Watch.ts";
import type { Watchdog } from "./Watchdog.ts";

/** The clocks of one run, over all its attempts. */
export class RunClocks {
  readonly #watchdog: Watchdog;
  #clocks: Clocks.Clocks;
  #elapsedMs = 0;

  /** @param options of the run, which name its provider and its own limits */
  constructor(watchdog: Watchdog, options: Clocked) {
    this.#watchdog = watchdog;
    this.#clocks = clocksOf(options);
  }

  /** The run goes by another route, whose model may think longer. What a stall has doubled was the other one's. */
  goesBy(options: Clocked): void {
    this.#clocks = clocksOf(options);
  }

  /** Starts to watch an attempt of the run. */
  watch(listener: WatchListener): Watch {
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
