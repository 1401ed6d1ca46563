/**
 * Virtual time for a whole process: one timer queue for the world and its fibers, and a scheduler that runs all tasks before time
 * advances. A sleep of the process is a jump of its clocks, after which its own timers fire late.
 *
 * TestClock checks on a real timer at each wake whether its fiber hangs. An hour of a thousand agents has millions of wakes.
 */
import { Clock, Context, Duration, Effect, Layer, Scheduler } from "effect";

/** Start of the wall clock, in milliseconds since the epoch. */
const epochMs = 1_760_000_000_000;

interface Timer {
  readonly at: number;
  readonly order: number;
  /** True if it belongs to the world, which continues while the process sleeps. */
  readonly outside: boolean;
  fire: (() => void) | undefined;
}

/** The clock, the timers and the scheduler of a simulated process. */
export class VirtualTime {
  #now = 0;
  #order = 0;
  readonly #heap: Array<Timer> = [];
  #tasks: Array<() => void> = [];
  /** Monotonic milliseconds from 0, including jumps. */
  get now(): number {
    return this.#now;
  }

  /** The clock and the scheduler that effects run with. */
  get context(): Context.Context<never> {
    const scheduler = new Scheduler.MixedScheduler("async", (task) => {
      this.#tasks.push(task);
      return () => {
        const at = this.#tasks.indexOf(task);
        if (at !== -1) this.#tasks.splice(at, 1);
      };
    });
    return Context.make(Clock.Clock, this.#clock()).pipe(Context.add(Scheduler.Scheduler, scheduler));
  }

  get layer(): Layer.Layer<never> {
    return Layer.succeedContext(this.context);
  }

  /**
   * Schedules an event of the world.
   *
   * @param at monotonic milliseconds; a time in the past fires at once
   * @returns a function that cancels it
   */
  at(at: number, fire: () => void): () => void {
    return this.#timer(at, fire, true);
  }

  #timer(at: number, fire: () => void, outside: boolean): () => void {
    this.#order += 1;
    const timer: Timer = { at, order: this.#order, outside, fire };
    this.#push(timer);
    return () => {
      timer.fire = undefined;
    };
  }

  /** Schedules an event of the world after a delay in milliseconds. */
  after(ms: number, fire: () => void): () => void {
    return this.at(this.#now + ms, fire);
  }

  /** Puts the process to sleep: both clocks jump, the events of the world fire, and the process's own timers fire late afterwards. */
  jump(ms: number): void {
    this.#now += ms;
    const missed = this.#heap.filter(({ at, outside }) => outside && at <= this.#now);
    for (const timer of missed.toSorted((one, other) => one.at - other.at || one.order - other.order)) {
      const { fire } = timer;
      timer.fire = undefined;
      fire?.();
    }
  }

  /** Runs until a time, or until nothing is left to do. */
  async run(until: number): Promise<void> {
    for (let turn = 0; ; turn += 1) {
      this.#drain();
      // Lets pending promises continue.
      if (turn % 64 === 0) await new Promise((next) => setImmediate(next));
      if (this.#tasks.length > 0) continue;
      const next = this.#heap[0];
      if (next === undefined || next.at > until) break;
      this.#pop();
      if (next.fire === undefined) continue;
      this.#now = Math.max(this.#now, next.at);
      next.fire();
    }
    this.#now = Math.max(this.#now, until);
  }

  #drain(): void {
    while (this.#tasks.length > 0) {
      const tasks = this.#tasks;
      this.#tasks = [];
      for (const task of tasks) task();
    }
  }

  #clock(): Clock.Clock {
    const millis = () => epochMs + this.#now;
    const nanosOf = (ms: number) => BigInt(Math.round(ms * 1e6));
    const nanos = () => BigInt(epochMs) * 1_000_000n + nanosOf(this.#now);
    const steady = () => nanosOf(this.#now);
    return {
      currentTimeMillisUnsafe: millis,
      currentTimeNanosUnsafe: nanos,
      monotonicTimeNanosUnsafe: steady,
      currentTimeMillis: Effect.sync(millis),
      currentTimeNanos: Effect.sync(nanos),
      monotonicTimeNanos: Effect.sync(steady),
      sleep: (duration) => {
        const ms = Duration.toMillis(duration);
        if (ms === Number.POSITIVE_INFINITY) return Effect.never;
        return Effect.callback<void>((resume) => {
          const cancel = this.#timer(this.#now + ms, () => resume(Effect.void), false);
          return Effect.sync(cancel);
        });
      },
    };
  }

  #isBefore(one: Timer, other: Timer): boolean {
    return one.at < other.at || (one.at === other.at && one.order < other.order);
  }

  #push(timer: Timer): void {
    const heap = this.#heap;
    let at = heap.length;
    heap.push(timer);
    while (at > 0) {
      const up = (at - 1) >>> 1;
      const parent = heap[up];
      if (parent === undefined || this.#isBefore(parent, timer)) break;
      heap[at] = parent;
      at = up;
    }
    heap[at] = timer;
  }

  #pop(): void {
    const heap = this.#heap;
    const last = heap.pop();
    if (last === undefined || heap.length === 0) return;
    let at = 0;
    for (;;) {
      const left = heap[2 * at + 1];
      const right = heap[2 * at + 2];
      if (left === undefined) break;
      const child = right !== undefined && this.#isBefore(right, left) ? right : left;
      if (this.#isBefore(last, child)) break;
      heap[at] = child;
      at = child === left ? 2 * at + 1 : 2 * at + 2;
    }
    heap[at] = last;
  }
}
