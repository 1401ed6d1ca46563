/**
 * Runs the alarms of all streams of a process with one fiber, so that a waiting stream needs neither a fiber nor a timer.
 *
 * The fiber exists while alarms are set, and sleeps until the nearest one. A nearer alarm replaces the fiber.
 */
import { type Clock, Duration, Effect, type Fiber } from "effect";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { Deadlines, type Due } from "../../runtime/contract/Deadlines.ts";

/** An action that runs once, at a set time. */
export class Alarm implements Due {
  static #made = 0;
  readonly id = Alarm.#made++;
  dueAt = Number.POSITIVE_INFINITY;
  place = -1;
  readonly act: () => void;

  /** @param act called once, by the common fiber, when the time is reached; must not throw */
  constructor(act: () => void) {
    this.act = act;
  }
}

/** Maximum sleep, in milliseconds, because system timers are limited. */
const longestMs = 24 * 60 * 60 * 1000;

/** The alarms of one clock. */
export class Alarms {
  readonly #clock: Clock.Clock;
  readonly #set = new Deadlines<Alarm>();
  #fiber: Fiber.Fiber<void> | undefined;
  #wakesAt = Number.POSITIVE_INFINITY;

  private constructor(clock: Clock.Clock) {
    this.#clock = clock;
  }

  static readonly #known = new WeakMap<Clock.Clock, Alarms>();

  /** Returns the alarms of a clock. There is one instance per clock. */
  static of(clock: Clock.Clock): Alarms {
    const known = Alarms.#known.get(clock);
    if (known !== undefined) return known;
    const made = new Alarms(clock);
    Alarms.#known.set(clock, made);
    return made;
  }

  /** Current time, in monotonic milliseconds. */
  now(): number {
    return monotonicMs(this.#clock);
  }

  get size(): number {
    return this.#set.size;
  }

  /** Sets an alarm, or moves it to another time, in monotonic milliseconds. An infinite time clears it. */
  set(alarm: Alarm, at: number): void {
    if (at === Number.POSITIVE_INFINITY) {
      this.#set.delete(alarm);
      return;
    }
    this.#set.set(alarm, at);
    if (this.#set.first === alarm && at < this.#wakesAt) this.#sleep(at);
  }

  clear(alarm: Alarm): void {
    if (!this.#set.delete(alarm) || this.size > 0) return;
    // A timer without a purpose would keep the process alive.
    this.#fiber?.interruptUnsafe();
    this.#fiber = undefined;
    this.#wakesAt = Number.POSITIVE_INFINITY;
  }

  #sleep(at: number): void {
    this.#fiber?.interruptUnsafe();
    this.#wakesAt = at;
    const ms = Math.min(longestMs, Math.max(0, Math.ceil(at - this.now())));
    this.#fiber = Effect.runFork(Effect.map(this.#clock.sleep(Duration.millis(ms)), () => this.#fireDue()));
  }

  #fireDue(): void {
    this.#fiber = undefined;
    const now = this.now();
    for (let next = this.#set.first; next !== undefined && next.dueAt <= now; next = this.#set.first) {
      this.#set.delete(next);
      next.act();
    }
    this.#wakesAt = Number.POSITIVE_INFINITY;
    const next = this.#set.first;
    if (next !== undefined) this.#sleep(next.dueAt);
  }
}
