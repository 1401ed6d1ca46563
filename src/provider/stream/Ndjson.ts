/**
 * Frames a stream of JSON objects, one per line (NDJSON), without IO: bytes go in, and events come out.
 *
 * Each line is an event without a name. A body whose first line is not a JSON object is not a stream. `end` returns a last line without its
 * line end, whose data shows if it is complete.
 */
import type { Failure } from "../../domain/Failure.ts";
import * as Json from "../../domain/Json.ts";
import { defaultLimits, type Framer, type Limits, type SseEvent, type TextFraming } from "./Framing.ts";

const LF = 10;
const CR = 13;
const BRACE = 0x7b;
const nothing: ReadonlyArray<never> = [];
const empty = new Uint8Array(0);
const notAStream: Failure = { kind: "protocol", reason: "not_a_stream" };
const oversize: Failure = { kind: "protocol", reason: "oversize" };

// Without `ignoreBOM` the decoder drops a BOM at the start of a line, which only the first line may have.
const utf8 = new TextDecoder("utf-8");

/** Maximum size of a line buffer kept for the next line that spans chunks, in bytes. */
const bufferBytesKept = 65_536;

class LineFramer implements Framer {
  failure: Failure | undefined = undefined;
  readonly cut = false;
  readonly #limits: Limits;
  /** The start of an unfinished line. The buffer doubles when full, which takes linear time over any number of chunks. */
  #line = empty;
  #lineLength = 0;
  /** Bytes of blank lines, which count for the next event. */
  #blankBytes = 0;
  /** True after a line was a JSON object, which proves that the body is a stream. */
  #isRecognised = false;
  #ended = false;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  get unframed(): number {
    return this.#blankBytes + this.#lineLength;
  }

  feed(bytes: Uint8Array): ReadonlyArray<SseEvent> {
    if (this.failure !== undefined || this.#ended) return nothing;
    const events: Array<SseEvent> = [];
    let at = 0;
    while (at < bytes.length && this.failure === undefined) {
      const end = bytes.indexOf(LF, at);
      if (end === -1) {
        this.#keep(bytes.subarray(at));
        break;
      }
      if (this.#lineLength === 0) this.#take(bytes.subarray(at, end), 1, events);
      else this.#takeKept(bytes.subarray(at, end), 1, events);
      at = end + 1;
    }
    return events;
  }

  end(): ReadonlyArray<SseEvent> {
    if (this.failure !== undefined || this.#ended) return nothing;
    this.#ended = true;
    const events: Array<SseEvent> = [];
    if (this.#lineLength > 0) {
      // An incomplete first line proves nothing about the body, so it need not be an object.
      const wasRecognised = this.#isRecognised;
      this.#isRecognised = true;
      this.#takeKept(empty, 0, events);
      this.#isRecognised = wasRecognised;
    }
    return events;
  }

  #keep(bytes: Uint8Array): void {
    const needed = this.#lineLength + bytes.length;
    if (needed > this.#limits.lineBytesMax) {
      this.#refuseLong(hasContent(this.#line.subarray(0, this.#lineLength)) ? this.#line : bytes);
      return;
    }
    if (needed > this.#line.length) {
      const larger = new Uint8Array(Math.max(needed, this.#line.length * 2, 256));
      larger.set(this.#line.subarray(0, this.#lineLength));
      this.#line = larger;
    }
    this.#line.set(bytes, this.#lineLength);
    this.#lineLength = needed;
    if (!this.#isRecognised && !mayBeObject(this.#line.subarray(0, needed))) this.failure = notAStream;
  }

  #takeKept(bytes: Uint8Array, ending: number, events: Array<SseEvent>): void {
    this.#keep(bytes);
    if (this.failure !== undefined) return;
    const line = this.#line.subarray(0, this.#lineLength);
    this.#lineLength = 0;
    if (this.#line.length > bufferBytesKept) this.#line = empty;
    this.#take(line, ending, events);
  }

  /** Takes one line. `ending` is the length of its line end: 1, or 0 if the bytes ended first. */
  #take(line: Uint8Array, ending: number, events: Array<SseEvent>): void {
    const size = line.length + ending;
    if (line.length > Math.min(this.#limits.lineBytesMax, this.#limits.eventBytesMax)) {
      this.#refuseLong(line);
      return;
    }
    const text = utf8.decode(line[line.length - 1] === CR ? line.subarray(0, -1) : line);
    if (blank.test(text)) {
      this.#blankBytes += size;
      return;
    }
    if (!this.#isRecognised && Json.record(Json.parse(text)?.json) === undefined) {
      this.failure = notAStream;
      return;
    }
    this.#isRecognised = true;
    events.push({ event: "message", data: text, bytes: this.#blankBytes + size });
    this.#blankBytes = 0;
  }

  /** Refuses a line that is too long. A long line that begins another body shows that the response is not a stream. */
  #refuseLong(line: Uint8Array): void {
    this.failure = this.#isRecognised || mayBeObject(line) ? oversize : notAStream;
  }
}

/** Matches the white space of JSON. */
const blank = /^[ \t\r]*$/;

/** True if the first visible character of an unfinished line is a brace, or has not come yet. */
const mayBeObject = (line: Uint8Array): boolean => {
  const first = firstByte(line);
  return first === undefined || first === BRACE;
};

const hasContent = (line: Uint8Array): boolean => firstByte(line) !== undefined;

/** Returns the first visible byte of a line, after a byte order mark. */
const firstByte = (line: Uint8Array): number | undefined => {
  const start = line[0] === 0xef ? 3 : 0;
  return line.subarray(start).find((byte) => byte !== 32 && byte !== 9 && byte !== CR);
};

/** The form of lines of JSON. */
export const framing: TextFraming = {
  contentType: "application/x-ndjson",
  isDeclaredBy: (type) => /^\s*application\/(?:x-)?(?:ndjson|jsonl|jsonlines)\b/i.test(type),
  makeFramer: (limits = {}) => new LineFramer({ ...defaultLimits, ...limits }),
  encode: ({ data }) => `${data}\n`,
  missingEnd: (event) => (event[event.length - 1] === LF || event.length === 0 ? "" : "\n"),
};
