/**
 * Turns an async iterable (an SDK's stream, a generator) into a Stream whose chunks contain everything that has arrived.
 *
 * Effect's own `Stream.fromAsyncIterable` runs through a fiber for every element. Here one plain loop reads ahead, and a pull takes the
 * collected elements. An attempt that receives such a stream unmodified reads its source without a fiber.
 */
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Stream from "effect/Stream";
import { makeLazy } from "../contract/LazyStream.ts";

/** Maximum elements that are read ahead of the reader's demand. */
export const readAheadMax = 64;

/** Result of a poll: elements, the end, an error, or undefined if nothing has arrived yet. */
export type Polled<A> =
  | { readonly _tag: "chunk"; readonly chunk: readonly [A, ...Array<A>] }
  | { readonly _tag: "end" }
  | { readonly _tag: "error"; readonly error: unknown }
  | undefined;

/** Reads a source for a single consumer. */
export interface PolledReader<A> {
  /** Returns what has arrived. Returns the end or the error once everything was taken. */
  readonly poll: () => Polled<A>;
  /** Calls `wake` once, when there is something to take. Call it only after a poll that returned undefined. */
  readonly wait: (wake: () => void) => void;
  /** Stops reading immediately, without waiting. */
  readonly close: () => void;
}

/** A source that an attempt can read without a fiber. */
export interface AsyncSource<A, E> {
  readonly open: () => PolledReader<A>;
  readonly onError: (error: unknown) => E;
}

/**
 * Key under which `fromReader` stores the source on the stream itself. A stream that was mapped or merged since lacks it and is read like
 * any other. We avoid a `WeakMap` because V8's minor collections treat its values as live, so every run in it would be copied, and kept
 * until the next full collection.
 */
const madeOf = Symbol("source");

/** Returns the source of a stream from `fromAsyncIterable` or `fromReader`; undefined if the stream was mapped or merged since. */
export const sourceOf = <A, E, R>(
  stream: Stream.Stream<A, E, R> & { readonly [madeOf]?: AsyncSource<A, E> },
): AsyncSource<A, E> | undefined => stream[madeOf];

/**
 * Reads an async iterable in chunks.
 *
 * @param open makes the iterable when the stream is run, so that each run has its own
 * @param onError converts an error of the iterable to the stream's error type
 * @returns a stream that ends with the iterable. It calls `return()` when its scope closes and does not wait for it, because a source that
 *   ignores its abort must not keep an attempt open.
 */
export const fromAsyncIterable = <A, E>(
  open: () => AsyncIterable<A>,
  onError: (error: unknown) => E,
): Stream.Stream<A, E> => fromReader(() => new Reader(open()[Symbol.asyncIterator]()), onError);

/**
 * Makes a stream of a reader that can be polled, without a promise between a part and the attempt that takes it.
 *
 * @param open makes the reader when the stream is run
 * @param onError converts an error of the reader to the stream's error type
 */
export const fromReader = <A, E>(open: () => PolledReader<A>, onError: (error: unknown) => E): Stream.Stream<A, E> => {
  const source: AsyncSource<A, E> = { open, onError };
  const stream = makeLazy(() =>
    Stream.unwrap(
      Effect.map(
        Effect.acquireRelease(Effect.sync(source.open), (reader) => Effect.sync(() => reader.close())),
        (reader) => Stream.fromPull(Effect.succeed(pull(reader, onError))),
      ),
    ),
  );
  return Object.assign(stream, { [madeOf]: source });
};

const pull = <A, E>(reader: PolledReader<A>, onError: (error: unknown) => E) => {
  const resultOf = (polled: Polled<A>): Effect.Effect<readonly [A, ...Array<A>], E | Cause.Done> | undefined => {
    switch (polled?._tag) {
      case "chunk":
        return Effect.succeed(polled.chunk);
      case "end":
        return Cause.done();
      case "error":
        return Effect.fail(onError(polled.error));
      case undefined:
        return undefined;
    }
  };
  const take: Effect.Effect<readonly [A, ...Array<A>], E | Cause.Done> = Effect.suspend(
    () => resultOf(reader.poll()) ?? Effect.callback((resume) => reader.wait(() => resume(take))),
  );
  return take;
};

/** Reads an iterator ahead of its consumer. */
class Reader<A> implements PolledReader<A> {
  readonly #iterator: AsyncIterator<A>;
  #ready: Array<A> = [];
  #end: Exclude<Polled<A>, undefined> | undefined;
  #reading = false;
  #closed = false;
  /** True if a wake-up is scheduled for the end of the microtasks, so that only one is scheduled. */
  #ticking = false;
  #wake: (() => void) | undefined;

  constructor(iterator: AsyncIterator<A>) {
    this.#iterator = iterator;
  }

  poll(): Polled<A> {
    const ready = this.#ready;
    if (ready.length === 0) return this.#end;
    this.#ready = [];
    if (!this.#reading && this.#end === undefined) void this.#read();
    // The length was checked above. A copy of the array, only to satisfy the type, would cost the time that this module saves.
    return { _tag: "chunk", chunk: ready as unknown as readonly [A, ...Array<A>] };
  }

  wait(wake: () => void): void {
    this.#wake = wake;
    if (!this.#reading) void this.#read();
  }

  /** Stops reading and calls the iterator's `return()` without waiting for it. An error of `return()` is dropped with the attempt. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#wake = undefined;
    if (this.#end !== undefined) return;
    Promise.resolve(this.#iterator.return?.()).catch(() => undefined);
  }

  /** Reads until enough is buffered. It never rejects, because an error is stored as the end. */
  async #read(): Promise<void> {
    this.#reading = true;
    try {
      let ahead = this.#ready.length;
      while (!this.#closed && ahead < readAheadMax) {
        const next = await this.#iterator.next();
        if (next.done === true) {
          this.#end = { _tag: "end" };
          break;
        }
        ahead = this.#ready.push(next.value);
        if (ahead === 1 && !this.#ticking) {
          this.#ticking = true;
          afterMicrotasks(this.#tick);
        }
      }
    } catch (error) {
      this.#end = { _tag: "error", error };
    }
    this.#reading = false;
    this.#flush();
  }

  /** Wakes the reader only after the microtasks, so that it takes everything that arrives together in one chunk. */
  readonly #tick = (): void => {
    this.#ticking = false;
    this.#flush();
  };

  #flush(): void {
    const wake = this.#wake;
    if (wake === undefined || (this.#ready.length === 0 && this.#end === undefined)) return;
    this.#wake = undefined;
    wake();
  }
}

/**
 * Runs a callback after the pending microtasks. Call it from a microtask, because it relies on `process.nextTick`. Without `process`, the
 * callback runs in the next microtask.
 */
export const afterMicrotasks: (run: () => void) => void =
  typeof process === "undefined" ? queueMicrotask : (run) => process.nextTick(run);

/** Runs a callback in the next turn of the event loop, after the work that is pending now. */
export const inNextTurn = (run: () => void): void => {
  if (typeof setImmediate === "undefined") setTimeout(run, 0);
  else setImmediate(run);
};
