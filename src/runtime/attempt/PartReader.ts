/**
 * Reads an attempt's source by its caller's demand: nothing more is read while the slot is full.
 *
 * Plain functions over the attempt: many runs wait at once, and an object of its own for each would be held by all of them.
 */
import type * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import type * as Scope from "effect/Scope";
import * as Stream from "effect/Stream";
import type { RunOptions } from "../contract/RunOptions.ts";
import type { AsyncSource } from "./AsyncSource.ts";

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

/** Reads a source without a fiber in between: it hands its chunks over in the step in which they arrive. */
export const readDirectly = <P, E, R>(
  source: AsyncSource<P, E>,
  owner: PartReader<P>,
  options: RunOptions<P, E, R>,
): Effect.Effect<void, E | Cause.Done> =>
  Effect.callback((resume) => {
    const reader = source.open();
    owner.pulls();
    const step = (): void => {
      let polled = owner.over ? undefined : reader.poll();
      while (polled?._tag === "chunk") {
        owner.arrive(polled.chunk, options);
        if (owner.flow.full) {
          owner.park(step);
          return;
        }
        polled = owner.over ? undefined : reader.poll();
      }
      if (owner.over || polled?._tag === "end") resume(Effect.void);
      else if (polled?._tag === "error") resume(Effect.fail(source.onError(polled.error)));
      else reader.wait(step);
    };
    step();
    return Effect.sync(() => reader.close());
  });

/** Waits until the reader has taken the slot. */
const parkedOf = <P>(reader: PartReader<P>): Effect.Effect<ReadonlyArray<P>> =>
  Effect.callback((resume) => {
    if (!reader.flow.full) return resume(Effect.succeed([]));
    return reader.park(() => resume(Effect.succeed([])));
  });
