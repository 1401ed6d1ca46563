/**
 * Hands events from a run to its one consumer, by demand.
 *
 * Events of the run itself wait in a short queue; parts wait in one slot, and count as shown only when the consumer has
 * taken them (law L4). While the slot is full nothing more is read, so at most one chunk of parts is in flight.
 */
import type * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import type { RunEvent, RunInterrupted } from "../contract/RunEvent.ts";

type Taken<P> = Effect.Effect<readonly [RunEvent<P>, ...Array<RunEvent<P>>], RunInterrupted | Cause.Done>;

/** Parts that have arrived and were not taken. */
export interface Slot<P> {
  /**
   * Puts on record what must be there before the parts may be handed over, and says whether they may; undefined when nothing
   * must. Each pull waits for the one write, also for one that an interrupted pull has begun.
   */
  readonly record: () => Effect.Effect<boolean> | undefined;
  /** Counts the parts as shown and gives their events. */
  readonly deliver: () => ReadonlyArray<RunEvent<P>>;
  /** Tells the reader that the slot is free. */
  readonly taken: () => void;
}

/** The way from one run to its one consumer. */
export class Handoff<P> {
  /** Undefined while nothing waits in it. */
  #queue: Array<RunEvent<P>> | undefined;
  #slot: Slot<P> | undefined;
  #end: Taken<P> | undefined;
  #waiting: ((effect: Taken<P>) => void) | undefined;

  /** Whether the consumer waits right now, with nothing before it in line. */
  get wanted(): boolean {
    return this.#waiting !== undefined && this.#queue === undefined;
  }

  get slot(): Slot<P> | undefined {
    return this.#slot;
  }

  /** Adds an event of the run. */
  push(...events: ReadonlyArray<RunEvent<P>>): void {
    if (events.length === 0) return;
    if (this.#queue === undefined) this.#queue = [...events];
    else this.#queue.push(...events);
    this.#wake(this.take);
  }

  /** Gives parts to a consumer that waits for them. Only while `wanted`. */
  give(events: ReadonlyArray<RunEvent<P>>): void {
    if (isFilled(events)) this.#wake(Effect.succeed(events));
  }

  /** Puts parts into the free slot. */
  put(slot: Slot<P>): void {
    this.#slot = slot;
    this.#wake(this.take);
  }

  /** Takes the parts back that the consumer has not taken. */
  clear(): void {
    this.#slot = undefined;
  }

  /** Ends the stream once the queue is empty. */
  end(end: Effect.Effect<never, RunInterrupted | Cause.Done>): void {
    this.#end ??= end;
    this.#wake(this.take);
  }

  /** What the consumer pulls. */
  readonly take: Taken<P> = Effect.suspend((): Taken<P> => {
    const queue = this.#queue;
    if (queue !== undefined && isFilled(queue)) {
      this.#queue = undefined;
      return Effect.succeed(queue);
    }
    if (this.#slot !== undefined) return this.#takeSlot(this.#slot);
    return this.#end ?? this.#awaited;
  });

  /** What comes next, where there is nothing to take now. */
  readonly #awaited: Taken<P> = Effect.callback((resume) => {
    this.#waiting = resume;
    return Effect.sync(() => {
      if (this.#waiting === resume) this.#waiting = undefined;
    });
  });

  #takeSlot(slot: Slot<P>): Taken<P> {
    const record = slot.record();
    if (record === undefined) return this.#empty(slot);
    return Effect.flatMap(record, (may) => {
      if (this.#slot !== slot) return this.take;
      // What may not be handed over stays until the attempt that it belongs to has been decided.
      return may ? this.#empty(slot) : this.#awaited;
    });
  }

  #empty(slot: Slot<P>): Taken<P> {
    this.#slot = undefined;
    const events = slot.deliver();
    slot.taken();
    return isFilled(events) ? Effect.succeed(events) : this.take;
  }

  #wake(effect: Taken<P>): void {
    const resume = this.#waiting;
    this.#waiting = undefined;
    resume?.(effect);
  }
}

const isFilled = <A>(events: ReadonlyArray<A>): events is readonly [A, ...Array<A>] => events.length > 0;
