/**
 * Is the one output of a run: everything that the run says leaves here, to one reader, by its demand.
 *
 * Events of the run itself wait in a short queue; parts wait in one slot, and count as shown only when they are handed over
 * (L4). While the slot is full the attempt reads nothing more, so at most one chunk of parts is in flight. Where the reader
 * waits already, parts reach it in the step in which they arrive.
 *
 * A tee sees all that leaves, in that same step (see Taps). While it takes the events itself, no effect runs for them: the
 * reader waits on. What it refuses goes to the reader, and what comes until the reader asks again takes the slot. So does what comes
 * while the tee has no room: it is neither counted nor recorded before there is some.
 */
import type * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import type { RunEvent, RunInterrupted } from "../contract/RunEvent.ts";
import type { Room, Tee } from "../contract/Taps.ts";

type Taken<P> = Effect.Effect<readonly [RunEvent<P>, ...Array<RunEvent<P>>], RunInterrupted | Cause.Done>;

/** Parts that have arrived and were not taken. */
export interface Slot<P> {
  /** They continue what was handed over just now, and leave in a later turn of the event loop. */
  readonly inNextTurn: boolean;
  /**
   * Puts on record what must be there before the hand-over, and says whether the parts may leave; undefined where nothing must
   * be there. Each pull waits for the one write, also for one that an interrupted pull has begun.
   */
  readonly record: () => Effect.Effect<boolean> | undefined;
  /** Counts the parts as shown and gives their events. */
  readonly deliver: () => ReadonlyArray<RunEvent<P>>;
  /** Tells the reader that the slot is free. */
  readonly taken: () => void;
}

/** The output of one run. */
export class Handoff<P> {
  /** Undefined while nothing waits in it. */
  #queue: Array<RunEvent<P>> | undefined;
  #slot: Slot<P> | undefined;
  #end: Taken<P> | undefined;
  #waiting: ((effect: Taken<P>) => void) | undefined;
  #tee: Tee<P> | undefined;
  #room: Room | undefined;
  #lacksEnd = false;

  /**
   * @param tee sees what leaves the run, and may take it in the reader's stead
   * @param room nothing leaves while there is none
   */
  constructor(tee?: Tee<P>, room?: Room) {
    this.#tee = tee;
    this.#room = room;
  }

  /** Whether the reader waits right now, with nothing before it in line, and there is a place for what leaves. */
  get wanted(): boolean {
    return this.#waiting !== undefined && this.#queue === undefined && this.#room?.isFree() !== false;
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

  /** Gives parts to the reader, which waits for them. Only while `wanted`. */
  give(events: ReadonlyArray<RunEvent<P>>): void {
    if (isFilled(events) && this.#tee?.(events) !== true) this.#wake(Effect.succeed(events));
  }

  /** Puts parts into the free slot. */
  put(slot: Slot<P>): void {
    this.#slot = slot;
    this.#wake(this.take);
  }

  /** Takes the parts back that the reader has not taken. */
  clear(): void {
    this.#slot = undefined;
  }

  /**
   * Takes back parts and a completion that the reader has not taken: the run is another process's.
   *
   * @param keepsText parts stay, unless they hand a call over
   * @returns whether all parts stay
   */
  recall(keepsText = false): boolean {
    const queue = this.#queue ?? [];
    const parts = queue.filter((event) => event._tag === "Part");
    const stay = parts.length === 0 || (keepsText && parts.every(({ calls }) => calls === undefined));
    const left = queue.filter(({ _tag }) => (stay || _tag !== "Part") && _tag !== "RunCompleted");
    this.#queue = isFilled(left) ? left : undefined;
    this.#lacksEnd = queue.some(({ _tag }) => _tag === "RunCompleted");
    return stay;
  }

  /** Whether a completion was taken back. */
  get lacksEnd(): boolean {
    return this.#lacksEnd;
  }

  /** Ends the stream once the queue is empty. */
  end(end: Effect.Effect<never, RunInterrupted | Cause.Done>): void {
    this.#end ??= end;
    this.#wake(this.take);
  }

  /** What the reader pulls. */
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
    if (this.#end === undefined) return this.#awaited;
    // The run may be kept for its calls, and must not keep a buffer with it (L11).
    this.#tee = undefined;
    this.#room = undefined;
    return this.#end;
  });

  /** What comes next, where there is nothing to take now. */
  readonly #awaited: Taken<P> = Effect.callback((resume) => {
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
      // What may not be handed over stays until its attempt is decided.
      return may ? this.#empty(slot) : this.#awaited;
    });
  }

  #empty(slot: Slot<P>): Taken<P> {
    this.#slot = undefined;
    const events = slot.deliver();
    slot.taken();
    return isFilled(events) ? this.#leave(events) : this.take;
  }

  /** Gives events to the reader, unless the tee takes them: then the reader waits for the next ones. */
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
