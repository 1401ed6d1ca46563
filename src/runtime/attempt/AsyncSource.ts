/**
 * Turns an async iterable (an SDK's stream, a generator) into a Stream that hands over as one chunk what has arrived.
 *
 * Effect's own `Stream.fromAsyncIterable` pays a fiber's whole way for every element. Here one plain loop reads, and a pull
 * takes whatever it has. An attempt that is given such a stream as it is reads it without a fiber in between.
 */
import * as Cause from "effect/Cause";
import * as Effect from "effect/Effect";
import * as Stream from "effect/Stream";
import { lazily } from "../contract/LazyStream.ts";

/** Elements that are read ahead of the reader's demand. */
export const readAheadMax = 64;

/** What a reader has: elements, its end, an error, or nothing yet. */
export type Polled<A> =
  | { readonly _tag: "chunk"; readonly chunk: readonly [A, ...Array<A>] }
  | { readonly _tag: "end" }
  | { readonly _tag: "error"; readonly error: unknown }
  | undefined;

/** What is read of a source, by one taker. */
export interface PolledReader<A> {
  /** Takes what has arrived, or the end once all of it was taken. */
  readonly poll: () => Polled<A>;
  /** Calls back once, when there is something to take. Called where a poll has given nothing. */
  readonly wait: (wake: () => void) => void;
  /** Ends the reading at once, and waits for nothing. */
  readonly close: () => void;
}

/** A source as an attempt reads it. */
export interface AsyncSource<A, E> {
  readonly open: () => PolledReader<A>;
  readonly onError: (error: unknown) => E;
}

/**
 * Names the source on the very stream that was made of it: a stream that was mapped or merged since has none, and is read as any
 * other. A `WeakMap` would do as well, but V8's minor collections take its values for alive: each run that it knew would be copied, and
 * kept until the next full collection.
 */
const madeOf = Symbol("source");

/** The source of a stream as `fromAsyncIterable` made it; a stream that was mapped or merged since has none. */
export const sourceOf = <A, E, R>(
  stream: Stream.Stream<A, E, R> & { readonly [madeOf]?: AsyncSource<A, E> },
): AsyncSource<A, E> | undefined => stream[madeOf];

/**
 * Reads an async iterable by chunks.
 *
 * @param open makes the iterable when the stream is run, so that each run has its own
 * @param onError says what an error of the iterable is in the stream's error channel
 * @returns a stream that ends with the iterable. When its scope closes, `return()` is called and not waited for: a source
 *   that ignores its abort must not hold an attempt open.
 */
export const fromAsyncIterable = <A, E>(
  open: () => AsyncIterable<A>,
  onError: (error: unknown) => E,
): Stream.Stream<A, E> => fromReader(() => new Reader(open()[Symbol.asyncIterator]()), onError);

/**
 * Reads what can be polled: no promise stands between a part and the attempt that takes it.
 *
 * @param open makes the reader when the stream is run
 * @param onError as of `fromAsyncIterable`
 */
export const fromReader = <A, E>(open: () => PolledReader<A>, onError: (error: unknown) => E): Stream.Stream<A, E> => {
  const source: AsyncSource<A, E> = { open, onError };
  const stream = lazily(() =>
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
  const taken = (polled: Polled<A>): Effect.Effect<readonly [A, ...Array<A>], E | Cause.Done> | undefined => {
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
    () => taken(reader.poll()) ?? Effect.callback((resume) => reader.wait(() => resume(take))),
  );
  return take;
};

/** Reads one iterator ahead of its taker. */
class Reader<A> implements PolledReader<A> {
  readonly #iterator: AsyncIterator<A>;
  #ready: Array<A> = [];
  #end: Exclude<Polled<A>, undefined> | undefined;
  #reading = false;
  #closed = false;
  /** A flush is to come once the microtasks are done. While they never are, one is enough. */
  #ticking = false;
  #wake: (() => void) | undefined;

  constructor(iterator: AsyncIterator<A>) {
    this.#iterator = iterator;
  }

  /** Takes what has arrived, or the end once all of it was taken. */
  poll(): Polled<A> {
    const ready = this.#ready;
    if (ready.length === 0) return this.#end;
    this.#ready = [];
    if (!this.#reading && this.#end === undefined) void this.#read();
    // Its length was just looked at; copying it only for the type would cost what this module saves.
    return { _tag: "chunk", chunk: ready as unknown as readonly [A, ...Array<A>] };
  }

  /** Calls back once there is something to take. */
  wait(wake: () => void): void {
    this.#wake = wake;
    if (!this.#reading) void this.#read();
  }

  /** Ends the reading. It asks for the iterator's own end and does not wait; an error of that end is dropped with the attempt. */
  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    this.#wake = undefined;
    if (this.#end !== undefined) return;
    Promise.resolve(this.#iterator.return?.()).catch(() => undefined);
  }

  /** Reads until enough is ahead. It never rejects: an error is the end. */
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

  /** Wakes the reader once the loop has nothing more to do at once, so that what arrives together is taken together. */
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

/** Called from a microtask, nextTick runs when the microtasks are done; elsewhere than in Node the next microtask must do. */
export const afterMicrotasks: (run: () => void) => void =
  typeof process === "undefined" ? queueMicrotask : (run) => process.nextTick(run);

/** Runs in the next turn of the event loop, after what others wait for. */
export const inNextTurn = (run: () => void): void => {
  if (typeof setImmediate === "undefined") setTimeout(run, 0);
  else setImmediate(run);
};
