/**
 * Reads from an answer, as its bytes pass, the texts by which a later request may be bound to the route that it came by.
 */
import type { RelayExchange } from "../../adapters/relay/RelayTransport.ts";
import { documentBytesMax } from "../../adapters/relay/WholeBody.ts";
import * as Json from "../../domain/Json.ts";
import { isComment, makeFramer } from "../../provider/stream/Sse.ts";
import type { Polled } from "../../runtime/attempt/AsyncSource.ts";
import { boundRows } from "./BoundRows.ts";

/** Most texts of one answer that are told. */
export const answerMarksMax = 512;

/** Deepest nesting of an event that is looked at, in levels. */
const depthMax = 16;

/** Longest signature that is put together from its pieces, in characters. */
const joinedMax = 1024 * 1024;

/** Keys of the table, and those under which an answer itself has what a request names otherwise. */
const keys: ReadonlySet<string> = new Set([...boundRows.flatMap(({ marks = [] }) => marks), "id"]);

/**
 * Reads an exchange's bytes on their way.
 *
 * @param told called with every text, once each; it must not throw
 */
export const marking = (exchange: RelayExchange, told: (text: string) => void): RelayExchange => {
  const marks = new AnswerMarks(told);
  return {
    head: () => exchange.head(),
    read: async () => {
      const chunks = await exchange.read();
      if (chunks === undefined) marks.end();
      else for (const chunk of chunks) marks.take(chunk);
      return chunks;
    },
    arrivals: () => {
      const arrivals = exchange.arrivals?.();
      return arrivals && { poll: () => marks.polled(arrivals.poll()), wait: (wake) => arrivals.wait(wake) };
    },
    abort: () => exchange.abort(),
  };
};

/** Reads one answer: a stream of events, or one document. */
export class AnswerMarks {
  readonly #told: (text: string) => void;
  readonly #framer = makeFramer();
  readonly #seen = new Set<string>();
  /** Signatures whose pieces still come, by their block. */
  readonly #open = new Map<unknown, string>();
  #document: Array<Uint8Array> | undefined = [];
  #bytes = 0;

  constructor(told: (text: string) => void) {
    this.#told = told;
  }

  /** Takes the next bytes, cut anywhere. */
  take(bytes: Uint8Array): void {
    if (this.#seen.size >= answerMarksMax) return;
    for (const frame of this.#framer.feed(bytes)) {
      this.#document = undefined;
      if (!isComment(frame)) this.#look(frame.data);
    }
    this.#bytes += bytes.byteLength;
    if (this.#bytes > documentBytesMax) this.#document = undefined;
    this.#document?.push(bytes);
  }

  /** Takes what a poll has given, and gives it on. */
  polled(polled: Polled<Uint8Array<ArrayBuffer>>): Polled<Uint8Array<ArrayBuffer>> {
    if (polled?._tag === "end") this.end();
    else if (polled?._tag === "chunk") for (const chunk of polled.chunk) this.take(chunk);
    return polled;
  }

  /** The bytes are over. */
  end(): void {
    if (this.#document !== undefined) this.#look(Buffer.concat(this.#document).toString());
    this.#document = undefined;
    for (const frame of this.#framer.end()) this.#look(frame.data);
  }

  #look(data: string): void {
    const event = Json.record(Json.parse(data)?.json);
    if (event === undefined) return;
    const piece = Json.record(event.delta);
    if (piece?.type === "signature_delta") this.#join(event.index, Json.string(piece.signature));
    else this.#walk(event, 0);
  }

  #join(block: unknown, piece: string): void {
    const joined = `${this.#open.get(block) ?? ""}${piece}`;
    if (joined.length > joinedMax || this.#open.size > answerMarksMax) return;
    this.#open.set(block, joined);
    this.#tell(joined);
  }

  #walk(value: unknown, depth: number): void {
    if (depth > depthMax) return;
    if (Array.isArray(value)) {
      for (const item of value) this.#walk(item, depth + 1);
      return;
    }
    for (const [key, member] of Object.entries(Json.record(value) ?? {})) {
      if (typeof member === "string") {
        if (keys.has(key)) this.#tell(member);
      } else this.#walk(member, depth + 1);
    }
  }

  #tell(text: string): void {
    if (text === "" || this.#seen.has(text) || this.#seen.size >= answerMarksMax) return;
    this.#seen.add(text);
    this.#told(text);
  }
}
