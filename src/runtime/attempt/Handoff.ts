/**
 * The single output of a run, read by one reader on demand.
 *
 * Events of the run wait in a short queue. Parts wait in one slot, and count as shown only when they are handed over (L4). While the slot
 * is full the attempt stops reading, so at most one chunk of parts is in flight. A reader that is already waiting gets parts in the step in
 * which they arrive.
 *
 * A tee sees all output in the same step (see Taps). While it consumes events, no effect runs and the reader keeps waiting. Events that it
 * declines are passed to the reader, and parts wait in the slot until the reader pulls again. While the room is not free, parts also wait
 * in the slot, neither counted nor recorded.
 */
import type * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import type { RunEvent, RunInterrupted } from "../contract/RunEvent.ts";
import type { Room, Tee } from "../contract/Taps.ts";

type Taken<P> = Effect.Effect<readonly [RunEvent<P>, ...Array<RunEvent<P>>], RunInterrupted | Cause.Done>;

/** Parts that have arrived and that the reader has not taken yet. */
export interface Slot<P> {
  /** True if the parts continue those that were just handed over, and must leave in a later turn of the event loop. */
  readonly inNextTurn: boolean;
  /**
   * Records the facts that must be stored before the hand-over, and resolves to true if the parts may be handed over. Returns
   * undefined if there is nothing to record. All pulls share one write, even after the pull that started it was interrupted.
   */
  readonly record: () => Effect.Effect<boolean> | undefined;
  /** Counts the parts as shown and returns their events. */
  readonly deliver: () => ReadonlyArray<RunEvent<P>>;
  /** Called when the slot is free. */
  readonly onTaken: () => void;
}

/** The output of one run. */
export class Handoff<P> {
  /** Undefined while the queue is empty. */
  #queue: Array<RunEvent<P>> | undefined;
  #slot: Slot<P> | undefined;
  #end: Taken<P> | undefined;
  #waiting: ((effect: Taken<P>) => void) | undefined;
  #tee: Tee<P> | undefined;
  #room: Room | undefined;
  #lacksEnd = false;

  /**
   * @param tee sees the output of the run, and may consume it in the reader's place
   * @param room blocks all output while it is not free
   */
  constructor(tee?: Tee<P>, room?: Room) {
    this.#tee = tee;
    this.#room = room;
  }

  /** True if the reader is waiting, the queue is empty, and the room is free. */
  get isWanted(): boolean {
    return this.#waiting !== undefined && this.#queue === undefined && this.#room?.isFree() !== false;
  }

  get slot(): Slot<P> | undefined {
    return this.#slot;
  }

  /** Queues events of the run. */
  push(...events: ReadonlyArray<RunEvent<P>>): void {
    if (events.length === 0) return;
    if (this.#queue === undefined) this.#queue = [...events];
    else this.#queue.push(...events);
    this.#wake(this.take);
  }

  /** Passes events to the waiting reader. Call it only if `isWanted` is true. */
  give(events: ReadonlyArray<RunEvent<P>>): void {
    if (isFilled(events) && this.#tee?.(events) !== true) this.#wake(Effect.succeed(events));
  }

  /** Puts parts into the free slot. */
  put(slot: Slot<P>): void {
    this.#slot = slot;
    this.#wake(this.take);
  }

  /** Empties the slot. */
  clear(): void {
    this.#slot = undefined;
  }

  /** Removes queued parts and a queued completion, because another process owns the run now. */
  recall(): void {
    const queue = this.#queue ?? [];
    const left = queue.filter(({ _tag }) => _tag !== "Part" && _tag !== "RunCompleted");
    this.#queue = isFilled(left) ? left : undefined;
    this.#lacksEnd = queue.some(({ _tag }) => _tag === "RunCompleted");
  }

  /** True if a completion was removed. */
  get hasLostEnd(): boolean {
    return this.#lacksEnd;
  }

  /** Ends the stream once the queue is empty. */
  end(end: Effect.Effect<never, RunInterrupted | Cause.Done>): void {
    this.#end ??= end;
    this.#wake(this.take);
  }

  /** The pull of the reader. */
  readonly take: Taken<P> = Effect.suspend((): Taken<P> => {
    const room = this.#room;
    if (room?.isFree() === false) return Effect.andThen(room.freed, this.take);
    const queue = this.#queue;
    if (queue !== undefined && isFilled(queue)) {
      this.#queue = undefined;
      return this.#leave(queue);
    }
    const slot = this.#slot;
    if (slot !== undefined) return slot.inNextTurn ? this.#takeLater(slot) : this.#takeSlot(slot);
    if (this.#end === undefined) return this.#awaitOutput;
    // The run may stay in memory for its calls, but it must not keep a buffer alive (L11).
    this.#tee = undefined;
    this.#room = undefined;
    return this.#end;
  });

  /** Waits for the next output. */
  readonly #awaitOutput: Taken<P> = Effect.callback((resume) => {
    this.#waiting = resume;
    return Effect.sync(() => {
      if (this.#waiting === resume) this.#waiting = undefined;
    });
  });

  #takeLater(slot: Slot<P>): Taken<P> {
    return Effect.andThen(
      Effect.yieldNow,
      Effect.suspend(() => (this.#slot === slot ? this.#takeSlot(slot) : this.take)),
    );
  }

  #takeSlot(slot: Slot<P>): Taken<P> {
    const record = slot.record();
    if (record === undefined) return this.#empty(slot);
    return Effect.flatMap(record, (may) => {
      if (this.#slot !== slot) return this.take;
      // Parts that may not be handed over stay in the slot until their attempt is decided.
      return may ? this.#empty(slot) : this.#awaitOutput;
    });
  }

  #empty(slot: Slot<P>): Taken<P> {
    this.#slot = undefined;
    const events = slot.deliver();
    slot.onTaken();
    return isFilled(events) ? this.#leave(events) : this.take;
  }

  /** Passes events to the reader. If the tee consumes them, the reader keeps waiting. */
  #leave(events: readonly [RunEvent<P>, ...Array<RunEvent<P>>]): Taken<P> {
    return this.#tee?.(events) === true ? this.take : Effect.succeed(events);
  }

  #wake(effect: Taken<P>): void {
    const resume = this.#waiting;
    this.#waiting = undefined;
    resume?.(effect);
  }
}

const isFilled = <A>(events: ReadonlyArray<A>): events is readonly [A, ...Array<A>] => events.length > 0;
