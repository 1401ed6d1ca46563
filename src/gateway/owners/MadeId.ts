/**
 * Extracts the id under which a provider stores a response, while the response's bytes pass.
 */
import type { Arrivals, RelayExchange } from "../../adapters/relay/RelayTransport.ts";
import * as Json from "../../domain/Json.ts";
import { isComment, makeFramer } from "../../provider/stream/Sse.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";

/**
 * Maximum number of bytes that are searched. OpenAI's first event repeats instructions and tools, so it can be long, and a document is
 * searched as a whole.
 */
export const searchedBytesMax = 8 * 1024 * 1024;

/** Extracts the id of one response: from the first event of a stream that contains an id, or from a document. */
export class MadeId {
  readonly #onFound: (id: string) => void;
  readonly #framer = makeFramer({ lineBytesMax: searchedBytesMax, eventBytesMax: searchedBytesMax });
  #document: Array<Uint8Array> | undefined = [];
  #bytes = 0;
  #isOver = false;

  /** @param onFound called at most once, before the bytes that complete the id are forwarded */
  constructor(onFound: (id: string) => void) {
    this.#onFound = onFound;
  }

  /** Adds the next bytes. They may be split at any position. */
  take(bytes: Uint8Array): void {
    if (this.#isOver) return;
    this.#bytes += bytes.byteLength;
    if (this.#bytes > searchedBytesMax) this.#end();
    if (this.#isOver) return;
    for (const frame of this.#framer.feed(bytes)) {
      this.#document = undefined;
      if (!isComment(frame)) this.#inspect(responseIn(frame.data));
      if (this.#isOver) return;
    }
    this.#document?.push(bytes);
  }

  end(): void {
    if (this.#isOver) return;
    const last = this.#framer.end();
    if (this.#document !== undefined && last.length === 0)
      this.#inspect(Json.record(Json.parse(Buffer.concat(this.#document).toString())?.json));
    for (const { data } of last) this.#inspect(responseIn(data));
    this.#end();
  }

  #inspect(response: Json.JsonRecord | undefined): void {
    const id = Json.string(response?.id);
    if (id === "" || this.#isOver) return;
    this.#end();
    this.#onFound(id);
  }

  #end(): void {
    this.#isOver = true;
    this.#document = undefined;
  }
}

/** Returns the response in an event of OpenAI's Responses, or the interaction in one of Gemini's. */
const responseIn = (data: string): Json.JsonRecord | undefined => {
  const event = Json.record(Json.parse(data)?.json);
  return Json.record(event?.response ?? event?.interaction);
};

/**
 * Wraps an exchange so that the id is extracted from its bytes.
 *
 * @param found called at most once
 */
export const withIdListener = (exchange: RelayExchange, found: (id: string) => void): RelayExchange => {
  const made = new MadeId(found);
  const { coming } = exchange;
  const inspect = (chunks: ReadonlyArray<Bytes> | undefined) => {
    if (chunks === undefined) made.end();
    else for (const chunk of chunks) made.take(chunk);
  };
  return {
    head: () => exchange.head(),
    ...(coming === undefined ? {} : { coming }),
    read: async () => {
      const chunks = await exchange.read();
      inspect(chunks);
      return chunks;
    },
    arrivals: () => {
      const arrivals = exchange.arrivals?.();
      return arrivals && { poll: () => inspectPoll(arrivals.poll(), inspect), wait: (wake) => arrivals.wait(wake) };
    },
    abort: () => exchange.abort(),
  };
};

const inspectPoll = (
  found: ReturnType<Arrivals["poll"]>,
  inspect: (chunks: ReadonlyArray<Bytes> | undefined) => void,
): ReturnType<Arrivals["poll"]> => {
  if (found?._tag === "end") inspect(undefined);
  else if (found?._tag === "chunk") inspect(found.chunk);
  return found;
};
