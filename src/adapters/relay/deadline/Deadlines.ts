/**
 * Calls what is due, for all streams of a process with one fiber: a stream that waits has neither a fiber nor a timer of its own.
 *
 * The fiber lives while something is due, and sleeps to the nearest time. A time that comes nearer starts another one.
 */
import { type Clock, Duration, Effect, type Fiber } from "effect";
import { monotonicMs } from "../../../recorder/MonotonicTime.ts";

/** Something that is due. */
export interface Deadline {
  /** Called in the step in which it is due, once; it must not throw. */
  readonly act: () => void;
  /** Monotonic milliseconds. */
  at: number;
  /** Its place in the heap; -1 where it is not due. */
  place: number;
}

/** Longest sleep, in milliseconds: a timer of the system takes no longer one. */
const longestMs = 24 * 60 * 60 * 1000;

/** What is due by one clock. */
export class Deadlines {
  readonly #clock: Clock.Clock;
  /** A binary heap, the nearest first. */
  readonly #heap: Array<Deadline> = [];
  #fiber: Fiber.Fiber<void> | undefined;
  #wakesAt = Number.POSITIVE_INFINITY;

  private constructor(clock: Clock.Clock) {
    this.#clock = clock;
  }

  static readonly #known = new WeakMap<Clock.Clock, Deadlines>();

  /** The deadlines of a clock. */
  static of(clock: Clock.Clock): Deadlines {
    const known = Deadlines.#known.get(clock) ?? new Deadlines(clock);
    Deadlines.#known.set(clock, known);
    return known;
  }

  /** Monotonic milliseconds. */
  now(): number {
    return monotonicMs(this.#clock);
  }

  /** What is due now and later. */
  get size(): number {
    return this.#heap.length;
  }

  /** Sets when something is due; what was due at another time is due at this one. */
  set(deadline: Deadline, at: number): void {
    if (deadline.place >= 0) this.#take(deadline);
    deadline.at = at;
    if (at === Number.POSITIVE_INFINITY) return;
    deadline.place = this.#heap.length;
    this.#heap.push(deadline);
    this.#rise(deadline);
    if (this.#heap[0] === deadline && at < this.#wakesAt) this.#sleep(at);
  }

  /** It is due no more. */
  clear(deadline: Deadline): void {
    if (deadline.place < 0) return;
    this.#take(deadline);
    if (this.#heap.length > 0) return;
    // A timer without a purpose would keep the process.
    this.#fiber?.interruptUnsafe();
    this.#fiber = undefined;
    this.#wakesAt = Number.POSITIVE_INFINITY;
  }

  #sleep(at: number): void {
    this.#fiber?.interruptUnsafe();
    this.#wakesAt = at;
    const ms = Math.min(longestMs, Math.max(0, Math.ceil(at - this.now())));
    this.#fiber = Effect.runFork(Effect.map(this.#clock.sleep(Duration.millis(ms)), () => this.#look()));
  }

  #look(): void {
    this.#fiber = undefined;
    const now = this.now();
    for (let next = this.#heap[0]; next !== undefined && next.at <= now; next = this.#heap[0]) {
      this.#take(next);
      next.act();
    }
    this.#wakesAt = Number.POSITIVE_INFINITY;
    const [next] = this.#heap;
    if (next !== undefined) this.#sleep(next.at);
  }

  #take(deadline: Deadline): void {
    const last = this.#heap.pop();
    if (last !== undefined && last !== deadline) {
      last.place = deadline.place;
      this.#heap[last.place] = last;
      this.#rise(last);
      this.#sink(last);
    }
    deadline.place = -1;
  }

  #rise(deadline: Deadline): void {
    while (deadline.place > 0) {
      const above = this.#heap[(deadline.place - 1) >> 1];
      if (above === undefined || above.at <= deadline.at) return;
      this.#swap(above, deadline);
    }
  }

  #sink(deadline: Deadline): void {
    for (;;) {
      const left = this.#heap[2 * deadline.place + 1];
      const right = this.#heap[2 * deadline.place + 2];
      const below = right !== undefined && left !== undefined && right.at < left.at ? right : left;
      if (below === undefined || below.at >= deadline.at) return;
      this.#swap(deadline, below);
    }
  }

  #swap(above: Deadline, below: Deadline): void {
    const { place } = above;
    above.place = below.place;
    below.place = place;
    this.#heap[above.place] = above;
    this.#heap[below.place] = below;
  }
}
