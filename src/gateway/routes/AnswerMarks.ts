/** Extracts marks from a response while its bytes pass. A mark is an id or a signature that may later bind a request to the same route. */
import type { RelayExchange } from "../../adapters/relay/RelayTransport.ts";
import { documentBytesMax } from "../../adapters/relay/WholeBody.ts";
import * as Json from "../../domain/Json.ts";
import type { Framer, Framing } from "../../provider/stream/Framing.ts";
import * as Sse from "../../provider/stream/Sse.ts";
import type { Polled } from "../../runtime/attempt/AsyncSource.ts";
import { boundRows } from "./BoundRows.ts";

/** Maximum number of marks reported per response. */
export const answerMarksMax = 512;

/** Maximum depth to which an event is searched, in levels of nesting. */
const depthMax = 16;

/** Maximum length of a signature that arrives in several pieces, in characters. */
const joinedMax = 1024 * 1024;

/**
 * Keys whose values are marks: those in the table of bound fields, and `id`, because a request refers to a response's `id` by another key.
 */
const keys: ReadonlySet<string> = new Set([...boundRows.flatMap(({ marks = [] }) => marks), "id"]);

/**
 * Wraps an exchange so that its marks are reported.
 *
 * @param onMark called once with each mark, and must not throw; for a signature that arrives in pieces, it is called after each piece with
 *   the signature so far
 */
export const withMarks = (
  exchange: RelayExchange,
  framing: Framing | undefined,
  onMark: (text: string) => void,
): RelayExchange => {
  const marks = new AnswerMarks(onMark, framing);
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
      return arrivals && { poll: () => marks.inspectPoll(arrivals.poll()), wait: (wake) => arrivals.wait(wake) };
    },
    abort: () => exchange.abort(),
  };
};

/** Searches one response: a stream of events, or a document. */
export class AnswerMarks {
  readonly #onMark: (text: string) => void;
  readonly #framer: Framer;
  readonly #seen = new Set<string>();
  /** Signatures that are still arriving, by content block. */
  readonly #open = new Map<unknown, string>();
  #document: Array<Uint8Array> | undefined = [];
  #bytes = 0;

  constructor(onMark: (text: string) => void, framing: Framing = Sse.framing) {
    this.#onMark = onMark;
    this.#framer = framing.makeFramer();
  }

  /** Adds the next bytes. They may be split at any position. */
  take(bytes: Uint8Array): void {
    if (this.#seen.size >= answerMarksMax) return;
    for (const frame of this.#framer.feed(bytes)) {
      this.#document = undefined;
      if (!Sse.isComment(frame)) this.#look(frame.data);
    }
    this.#bytes += bytes.byteLength;
    if (this.#bytes > documentBytesMax) this.#document = undefined;
    this.#document?.push(bytes);
  }

  /** Searches the result of a poll and returns it unchanged. */
  inspectPoll(polled: Polled<Uint8Array<ArrayBuffer>>): Polled<Uint8Array<ArrayBuffer>> {
    if (polled?._tag === "end") this.end();
    else if (polled?._tag === "chunk") for (const chunk of polled.chunk) this.take(chunk);
    return polled;
  }

  /** Searches the document, if the response is one, and the last event. */
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
    this.#addMark(joined);
  }

  #walk(value: unknown, depth: number): void {
    if (depth > depthMax) return;
    if (Array.isArray(value)) {
      for (const item of value) this.#walk(item, depth + 1);
      return;
    }
    for (const [key, member] of Object.entries(Json.record(value) ?? {})) {
      if (typeof member === "string") {
        if (keys.has(key)) this.#addMark(member);
      } else this.#walk(member, depth + 1);
    }
  }

  #addMark(text: string): void {
    if (text === "" || this.#seen.has(text) || this.#seen.size >= answerMarksMax) return;
    this.#seen.add(text);
    this.#onMark(text);
  }
}
