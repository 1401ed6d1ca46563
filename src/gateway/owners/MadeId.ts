/**
 * Reads from an answer, as its bytes pass, the id under which its provider stores it.
 */
import type { Arrivals, RelayExchange } from "../../adapters/relay/RelayTransport.ts";
import * as Json from "../../domain/Json.ts";
import { isComment, makeFramer } from "../../provider/stream/Sse.ts";
import type { Bytes } from "../upstream/ContentDecoding.ts";

/** Maximum bytes that are searched: the first event of OpenAI repeats instructions and tools, and a document is searched whole. */
export const searchedBytesMax = 8 * 1024 * 1024;

/** Reads the id of one answer: of a stream's first event that has one, or of a document. */
export class MadeId {
  readonly #found: (id: string) => void;
  readonly #framer = makeFramer({ lineBytesMax: searchedBytesMax, eventBytesMax: searchedBytesMax });
  #document: Array<Uint8Array> | undefined = [];
  #bytes = 0;
  #isOver = false;

  /** @param found called once at most, before the bytes that complete the id go on */
  constructor(found: (id: string) => void) {
    this.#found = found;
  }

  /** Takes the next bytes, cut anywhere. */
  take(bytes: Uint8Array): void {
    if (this.#isOver) return;
    this.#bytes += bytes.byteLength;
    if (this.#bytes > searchedBytesMax) this.#end();
    if (this.#isOver) return;
    for (const frame of this.#framer.feed(bytes)) {
      this.#document = undefined;
      if (!isComment(frame)) this.#look(Json.record(Json.record(Json.parse(frame.data)?.json)?.response));
      if (this.#isOver) return;
    }
    this.#document?.push(bytes);
  }

  /** The bytes are over. */
  end(): void {
    if (this.#isOver) return;
    const last = this.#framer.end();
    if (this.#document !== undefined && last.length === 0)
      this.#look(Json.record(Json.parse(Buffer.concat(this.#document).toString())?.json));
    for (const { data } of last) this.#look(Json.record(Json.record(Json.parse(data)?.json)?.response));
    this.#end();
  }

  #look(response: Json.JsonRecord | undefined): void {
    const id = Json.string(response?.id);
    if (id === "" || this.#isOver) return;
    this.#end();
    this.#found(id);
  }

  #end(): void {
    this.#isOver = true;
    this.#document = undefined;
  }
}

/**
 * Reads an exchange's bytes on their way.
 *
 * @param found called once at most
 */
export const identified = (exchange: RelayExchange, found: (id: string) => void): RelayExchange => {
  const made = new MadeId(found);
  const { coming } = exchange;
  const seen = (chunks: ReadonlyArray<Bytes> | undefined) => {
    if (chunks === undefined) made.end();
    else for (const chunk of chunks) made.take(chunk);
  };
  return {
    head: () => exchange.head(),
    ...(coming === undefined ? {} : { coming }),
    read: async () => {
      const chunks = await exchange.read();
      seen(chunks);
      return chunks;
    },
    arrivals: () => {
      const arrivals = exchange.arrivals?.();
      return arrivals && { poll: () => polled(arrivals.poll(), seen), wait: (wake) => arrivals.wait(wake) };
    },
    abort: () => exchange.abort(),
  };
};

const polled = (
  found: ReturnType<Arrivals["poll"]>,
  seen: (chunks: ReadonlyArray<Bytes> | undefined) => void,
): ReturnType<Arrivals["poll"]> => {
  if (found?._tag === "end") seen(undefined);
  else if (found?._tag === "chunk") seen(found.chunk);
  return found;
};
