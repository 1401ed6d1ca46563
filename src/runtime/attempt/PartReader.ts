/**
 * Reads an attempt's source on its caller's demand. Reading stops while the slot is full.
 *
 * `readStream` is a plain function over the attempt, because many runs wait at once and each would need another object.
 */
import type * as Cause from "effect/Cause";
import * as Channel from "effect/Channel";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import type * as Scope from "effect/Scope";
import * as Stream from "effect/Stream";
import type { RunOptions } from "../contract/RunOptions.ts";
import type { AsyncSource, PolledReader } from "./AsyncSource.ts";

/** The attempt that reads. */
export interface PartReader<P> {
  /** True if the attempt has ended. Reading then stops. */
  readonly isOver: boolean;
  readonly flow: { readonly isFull: boolean };
  /** Takes a chunk of parts. Must not throw. */
  readonly arrive: <E, R>(parts: ReadonlyArray<P>, options: RunOptions<P, E, R>) => void;
  /** Called when the first pull or poll begins. */
  readonly onPull: () => void;
  /** Registers `free`, which is called once the slot is free. */
  readonly park: (free: () => void) => void;
}

/** Reads a stream, and pauses while the slot is full. */
export const readStream = <P, E, R>(
  stream: Stream.Stream<P, E, R>,
  reader: PartReader<P>,
  options: RunOptions<P, E, R>,
): Effect.Effect<void, E | Cause.Done, R | Scope.Scope> =>
  Effect.flatMap(openPull(stream), (pull) => {
    const parked = awaitFreeSlot(reader);
    reader.onPull();
    return Effect.whileLoop({
      while: () => !reader.isOver,
      body: (): Effect.Effect<ReadonlyArray<P>, E | Cause.Done, R> => (reader.flow.isFull ? parked : pull),
      step: (parts) => {
        if (parts.length > 0) reader.arrive(parts, options);
      },
    });
  });

/** Opens a stream in the current scope. `Stream.toPull` guards each pull against concurrent pulls, which is not needed here. */
const openPull = <P, E, R>(stream: Stream.Stream<P, E, R>) =>
  Effect.flatMap(Effect.scope, (scope) => Channel.toPullScoped(Stream.toChannel(stream), scope));

/** The input of a direct reading. Dropped when the reading is over. */
interface Reading<P, E, R> {
  readonly source: AsyncSource<P, E>;
  readonly options: RunOptions<P, E, R>;
  /** Called once, in the step in which the source ends. Not called if the reading was closed before. */
  readonly onEnd: (exit: Exit.Exit<void, E>) => void;
}

/** Reads a source without a fiber, and hands over its chunks in the step in which they arrive. */
export class DirectReading<P, E, R> {
  readonly #owner: PartReader<P>;
  #reading: Reading<P, E, R> | undefined;
  #reader: PolledReader<P> | undefined;

  constructor(owner: PartReader<P>, reading: Reading<P, E, R>) {
    this.#owner = owner;
    this.#reading = reading;
  }

  /** True if the reading is over and keeps nothing of the source. */
  get isOver(): boolean {
    return this.#reading === undefined;
  }

  /** Stops reading the source. */
  close(): void {
    if (this.#reading === undefined) return;
    this.#reading = undefined;
    this.#closeReader();
  }

  /**
   * Reads everything available, then waits for more. An exception of the source ends the reading, because no caller of `step` would catch
   * it.
   */
  readonly step = (): void => {
    const reading = this.#reading;
    if (reading === undefined) return;
    try {
      if (this.#reader === undefined) {
        this.#reader = reading.source.open();
        // The call that opens the source may have ended this attempt.
        if (this.isOver) {
          this.#closeReader();
          return;
        }
        this.#owner.onPull();
      }
      this.#readAvailable(this.#reader, reading);
    } catch (defect) {
      if (this.#reading === undefined) return;
      this.close();
      reading.onEnd(Exit.die(defect));
    }
  };

  #readAvailable(reader: PolledReader<P>, { onEnd, options, source }: Reading<P, E, R>): void {
    const owner = this.#owner;
    let polled = owner.isOver ? undefined : reader.poll();
    while (polled?._tag === "chunk") {
      owner.arrive(polled.chunk, options);
      if (owner.flow.isFull) {
        owner.park(this.step);
        return;
      }
      polled = owner.isOver ? undefined : reader.poll();
    }
    if (owner.isOver) return;
    if (polled === undefined) {
      reader.wait(this.step);
      return;
    }
    const exit = polled._tag === "end" ? Exit.void : Exit.fail(source.onError(polled.error));
    this.#reading = undefined;
    this.#reader = undefined;
    onEnd(exit);
  }

  /** Closes the reader. An error of the close is dropped, because the attempt no longer needs its source. */
  #closeReader(): void {
    const reader = this.#reader;
    this.#reader = undefined;
    try {
      reader?.close();
    } catch {
      // The error is dropped.
    }
  }
}

const awaitFreeSlot = <P>(reader: PartReader<P>): Effect.Effect<ReadonlyArray<P>> =>
  Effect.callback((resume) => {
    if (!reader.flow.isFull) return resume(Effect.succeed([]));
    return reader.park(() => resume(Effect.succeed([])));
  });
