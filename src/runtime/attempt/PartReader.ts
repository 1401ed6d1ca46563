/**
 * Reads an attempt's source by its caller's demand: nothing more is read while the slot is full.
 *
 * Plain functions over the attempt: many runs wait at once, and an object of its own for each would be held by all of them.
 */
import type * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import type * as Scope from "effect/Scope";
import * as Stream from "effect/Stream";
import type { RunOptions } from "../contract/RunOptions.ts";
import type { AsyncSource, PolledReader } from "./AsyncSource.ts";

/** Who reads, with the options of the caller. */
export interface PartReader<P> {
  /** The attempt has ended: nothing more is read. */
  readonly over: boolean;
  readonly flow: { readonly full: boolean };
  /** Takes a chunk of parts; it does not throw. */
  readonly arrive: <E, R>(parts: ReadonlyArray<P>, options: RunOptions<P, E, R>) => void;
  /** A pull or a poll begins. */
  readonly pulls: () => void;
  /** Calls `free` once the slot was taken. */
  readonly park: (free: () => void) => void;
}

/** Reads a stream: parked while the slot is full, else reading. */
export const readStream = <P, E, R>(
  stream: Stream.Stream<P, E, R>,
  reader: PartReader<P>,
  options: RunOptions<P, E, R>,
): Effect.Effect<void, E | Cause.Done, R | Scope.Scope> =>
  Effect.flatMap(Stream.toPull(stream), (pull) => {
    const parked = parkedOf(reader);
    reader.pulls();
    return Effect.whileLoop({
      while: () => !reader.over,
      body: (): Effect.Effect<ReadonlyArray<P>, E | Cause.Done, R> => (reader.flow.full ? parked : pull),
      step: (parts) => {
        if (parts.length > 0) reader.arrive(parts, options);
      },
    });
  });

/** What a direct reading reads, until it is over. */
interface Reading<P, E, R> {
  readonly source: AsyncSource<P, E>;
  readonly options: RunOptions<P, E, R>;
  /** Called once, in the step in which the source has ended; not where the reading is closed before. */
  readonly ended: (exit: Exit.Exit<void, E>) => void;
}

/** Reads a source without a fiber: it hands its chunks over in the step in which they arrive. */
export class DirectReading<P, E, R> {
  readonly #owner: PartReader<P>;
  #reading: Reading<P, E, R> | undefined;
  #reader: PolledReader<P> | undefined;

  constructor(owner: PartReader<P>, reading: Reading<P, E, R>) {
    this.#owner = owner;
    this.#reading = reading;
  }

  /** Nothing of the source is read or held any more. */
  get isOver(): boolean {
    return this.#reading === undefined;
  }

  /** Asks for nothing of the source any more. */
  close(): void {
    if (this.#reading === undefined) return;
    this.#reading = undefined;
    this.#lets();
  }

  /** Reads what there is, and waits for more. Whatever the source throws is its end: nothing above would hear of it. */
  readonly step = (): void => {
    const reading = this.#reading;
    if (reading === undefined) return;
    try {
      if (this.#reader === undefined) {
        this.#reader = reading.source.open();
        // What opens it may end its own attempt.
        if (this.isOver) {
          this.#lets();
          return;
        }
        this.#owner.pulls();
      }
      this.#reads(this.#reader, reading);
    } catch (defect) {
      if (this.#reading === undefined) return;
      this.close();
      reading.ended(Exit.die(defect));
    }
  };

  #reads(reader: PolledReader<P>, { ended, options, source }: Reading<P, E, R>): void {
    const owner = this.#owner;
    let polled = owner.over ? undefined : reader.poll();
    while (polled?._tag === "chunk") {
      owner.arrive(polled.chunk, options);
      if (owner.flow.full) {
        owner.park(this.step);
        return;
      }
      polled = owner.over ? undefined : reader.poll();
    }
    if (owner.over) return;
    if (polled === undefined) {
      reader.wait(this.step);
      return;
    }
    const exit = polled._tag === "end" ? Exit.void : Exit.fail(source.onError(polled.error));
    this.#reading = undefined;
    this.#reader = undefined;
    ended(exit);
  }

  /** Closes what is read. What that throws is dropped with the attempt, which waits for nothing more of it. */
  #lets(): void {
    const reader = this.#reader;
    this.#reader = undefined;
    try {
      reader?.close();
    } catch {
      // As above.
    }
  }
}

/** Waits until the reader has taken the slot. */
const parkedOf = <P>(reader: PartReader<P>): Effect.Effect<ReadonlyArray<P>> =>
  Effect.callback((resume) => {
    if (!reader.flow.full) return resume(Effect.succeed([]));
    return reader.park(() => resume(Effect.succeed([])));
  });
