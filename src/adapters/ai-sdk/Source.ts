/** Opens one attempt at an AI SDK model. The stream, or the whole response, becomes a stream of parts with their observations. */
import type { Stream } from "effect";
import { fromAsyncIterable } from "../../runtime/attempt/AsyncSource.ts";
import type { CallOptions, GenerateResult, Model, StreamPart, StreamResult } from "./Parts.ts";
import { PartReader, type ReadAttempt, type ReadPart } from "./Parts.ts";

/** Metadata of the current request and its response. */
export type Envelope = Pick<StreamResult, "request" | "response">;

/**
 * Opens the stream of one attempt.
 *
 * @param opened called with the metadata once the response has started
 * @returns a stream; closing its scope aborts the request
 */
export const requestStream = (
  model: Model,
  params: CallOptions,
  attempt: ReadAttempt,
  opened: (envelope: Envelope) => void,
): Stream.Stream<ReadPart, unknown> =>
  fromAsyncIterable(
    () => {
      const abort = new AbortController();
      const open = async () => {
        const { stream, ...envelope } = await model.doStream({ ...params, abortSignal: abort.signal });
        opened(envelope);
        return stream.getReader();
      };
      return new Source(abort, open, new PartReader(attempt));
    },
    (error) => error,
  );

/** Requests a whole response. The resulting stream has one part, whose observation covers the whole response. */
export const requestWhole = (
  model: Model,
  params: CallOptions,
  attempt: ReadAttempt,
): Stream.Stream<ReadPart<GenerateResult>, unknown> =>
  fromAsyncIterable(
    () => {
      const abort = new AbortController();
      let asked = false;
      return iterable<ReadPart<GenerateResult>>({
        next: async () => {
          if (asked) return { done: true, value: undefined };
          asked = true;
          const result = await model.doGenerate({ ...params, abortSignal: abort.signal });
          return { done: false, value: new PartReader(attempt).readWhole(result) };
        },
        return: () => {
          abort.abort();
          return Promise.resolve({ done: true, value: undefined });
        },
      });
    },
    (error) => error,
  );

const iterable = <A>(iterator: AsyncIterator<A>): AsyncIterable<A> => ({ [Symbol.asyncIterator]: () => iterator });

/**
 * Iterates over a model's stream. It is not a generator, because a generator cannot be ended while it waits. This iterator aborts its
 * request at once.
 */
class Source implements AsyncIterable<ReadPart>, AsyncIterator<ReadPart> {
  readonly #abort: AbortController;
  readonly #open: () => Promise<ReadableStreamDefaultReader<StreamPart>>;
  readonly #parts: PartReader;
  #reader: ReadableStreamDefaultReader<StreamPart> | undefined;

  constructor(abort: AbortController, open: () => Promise<ReadableStreamDefaultReader<StreamPart>>, parts: PartReader) {
    this.#abort = abort;
    this.#open = open;
    this.#parts = parts;
  }

  [Symbol.asyncIterator](): AsyncIterator<ReadPart> {
    return this;
  }

  async next(): Promise<IteratorResult<ReadPart, undefined>> {
    this.#reader ??= await this.#open();
    const { done, value } = await this.#reader.read();
    return done ? { done, value: undefined } : { done, value: this.#parts.read(value) };
  }

  async return(): Promise<IteratorResult<ReadPart, undefined>> {
    this.#abort.abort();
    await this.#reader?.cancel();
    return { done: true, value: undefined };
  }
}
