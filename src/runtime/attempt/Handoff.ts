/**
 * The single output of a run, read by one reader on demand.
 *
 * Events of the run wait in a short queue. Parts wait in one slot, and count as shown only when they are handed over (L4). While the slot
 * is full the attempt stops reading, so at most one chunk of parts is in flight. A reader that is already waiting gets parts in the step in
 * which they arrive.
 *
 * A tee (see Taps.ts) sees all output in the same step. While the tee consumes events, no effect runs and the reader keeps waiting. The
 * reader is woken only for what needs an effect: backpressure (`Room`), a write that takes time, parts for a later turn, or the end. Events
 * that the tee declines are passed to the reader, and parts wait in the slot until the reader pulls again. During backpressure parts also
 * wait in the slot, neither counted nor recorded.
 */
import type * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import type { RunEvent, RunInterrupted } from "../contract/RunEvent.ts";
import type { Taken } from "../contract/Stages.ts";
import type { Room, Tee } from "../contract/Taps.ts";

/** Parts that have arrived and that the reader has not taken yet. */
export interface Slot<P> {
  /** True until the next turn of the event loop, if the parts continue those that were just handed over. */
  inNextTurn: boolean;
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
  /** The reader that still waits while the tee gets its output; undefined if it was interrupted meanwhile. */
  #served: ((effect: Taken<P>) => void) | undefined;
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
    this.#wakeIfNeeded();
  }

  /** Passes events to the waiting reader. Call it only if `isWanted` is true. */
  give(events: ReadonlyArray<RunEvent<P>>): void {
    if (isFilled(events) && this.#tee?.(events) !== true) this.#wake(Effect.succeed(events));
  }

  /** Puts parts into the free slot. */
  put(slot: Slot<P>): void {
    this.#slot = slot;
    this.#wakeIfNeeded();
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

  /** True if `recall` removed a completion. */
  get hasLostEnd(): boolean {
    return this.#lacksEnd;
  }

  /** Ends the stream once the queue is empty. */
  end(end: Effect.Effect<never, RunInterrupted | Cause.Done>): void {
    this.#end ??= end;
    this.#wakeIfNeeded();
  }

  /** The pull of the reader. */
  readonly take: Taken<P> = Effect.suspend(() => this.#next() ?? this.#awaitOutput);

  /** Wakes a waiting reader, unless the tee consumes everything that there is. Output that arrives meanwhile keeps its order. */
  #wakeIfNeeded(): void {
    const reader = this.#waiting;
    if (reader === undefined) return;
    this.#waiting = undefined;
    this.#served = reader;
    const next = this.#nextOrDefect();
    if (next !== undefined) reader(next);
    else if (this.#served === reader) this.#waiting = reader;
    this.#served = undefined;
  }

  #nextOrDefect(): Taken<P> | undefined {
    try {
      return this.#next();
    } catch (defect) {
      return Effect.die(defect);
    }
  }

  /**
   * Passes output to the tee while the tee consumes it. Returns the remaining output for the reader, or undefined if the reader has to
   * wait.
   */
  #next(): Taken<P> | undefined {
    for (;;) {
      const room = this.#room;
      if (room?.isFree() === false) return Effect.andThen(room.freed, this.take);
      const slot = this.#slot;
      let events: ReadonlyArray<RunEvent<P>>;
      if (this.#queue !== undefined) {
        events = this.#queue;
        this.#queue = undefined;
      } else if (slot !== undefined) {
        if (slot.inNextTurn) return this.#takeLater(slot);
        const record = slot.record();
        if (record !== undefined) return this.#takeRecorded(slot, record);
        events = this.#empty(slot);
      } else if (this.#end === undefined) {
        return undefined;
      } else {
        // The run may stay in memory for its calls, but it must not keep the buffers of its tee and room alive (L11).
        this.#tee = undefined;
        this.#room = undefined;
        return this.#end;
      }
      if (isFilled(events) && this.#tee?.(events) !== true) return Effect.succeed(events);
    }
  }

  /** Waits for the next output. */
  readonly #awaitOutput: Taken<P> = Effect.callback((resume) => {
    this.#waiting = resume;
    return Effect.sync(() => {
      if (this.#waiting === resume) this.#waiting = undefined;
      if (this.#served === resume) this.#served = undefined;
    });
  });

  #takeLater(slot: Slot<P>): Taken<P> {
    return Effect.andThen(
      Effect.yieldNow,
      Effect.suspend(() => {
        slot.inNextTurn = false;
        return this.take;
      }),
    );
  }

  /** Takes the slot after the write that its parts wait for. Parts that may not be handed over stay until their attempt is decided. */
  #takeRecorded(slot: Slot<P>, record: Effect.Effect<boolean>): Taken<P> {
    return Effect.flatMap(record, (may) => {
      if (this.#slot !== slot) return this.take;
      if (!may) return this.#awaitOutput;
      const events = this.#empty(slot);
      return isFilled(events) && this.#tee?.(events) !== true ? Effect.succeed(events) : this.take;
    });
  }

  /** Empties the slot, and returns the events of its parts. */
  #empty(slot: Slot<P>): ReadonlyArray<RunEvent<P>> {
    this.#slot = undefined;
    const events = slot.deliver();
    slot.onTaken();
    return events;
  }

  #wake(effect: Taken<P>): void {
    const resume = this.#waiting;
    this.#waiting = undefined;
    resume?.(effect);
  }
}

const isFilled = <A>(events: ReadonlyArray<A>): events is readonly [A, ...Array<A>] => events.length > 0;
