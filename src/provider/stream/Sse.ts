/**
 * Frames a server-sent-event stream (WHATWG HTML, 9.2.6) without IO: bytes go in, and frames come out.
 *
 * It differs from a browser's EventSource in five ways, because a broken stream must be distinguishable from a complete one: comments are
 * frames (they prove that the connection is alive), every byte is counted, only `end` returns an event without its blank line, an `error:`
 * field is an error event, and a body that is not a stream is a failure.
 */
import type { Failure } from "../../domain/Failure.ts";
import {
  defaultLimits,
  type Frame,
  type Framer,
  type Limits,
  type SseComment,
  type SseEvent,
  type TextFraming,
} from "./Framing.ts";

export { defaultLimits, type Frame, type Framer, type Limits } from "./Framing.ts";

/**
 * Creates a framer for one response body.
 *
 * A CR ends a line at once, because otherwise an event could wait for a byte that never comes. The LF of a CRLF counts for the next frame.
 * Lines that are not part of an event (blank, or only `id:` and `retry:`) also count for the next frame.
 */
export const makeFramer = (limits: Partial<Limits> = {}): Framer => new ByteFramer({ ...defaultLimits, ...limits });

/** True if a frame is a comment. */
export const isComment = (frame: Frame): frame is SseComment => "comment" in frame;

const LF = 10;
const CR = 13;
const SPACE = 32;
const COLON = 58;
const nothing: ReadonlyArray<never> = [];
const notAStream: Failure = { kind: "protocol", reason: "not_a_stream" };
const oversize: Failure = { kind: "protocol", reason: "oversize" };
const damaged: Failure = { kind: "protocol", reason: "damaged_frame" };

/** Maximum size of a line buffer kept for the next line that spans chunks, in bytes. */
const bufferBytesKept = 65_536;

const empty = new Uint8Array(0);

// A BOM at the start is stripped as bytes. A BOM inside the data is text, which `ignoreBOM` keeps. Invalid UTF-8 becomes U+FFFD. Lines are
// decoded whole, so the decoder keeps no state and all framers can share it.
const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

class ByteFramer implements Framer {
  failure: Failure | undefined = undefined;
  cut = false;
  readonly #limits: Limits;
  #line = empty;
  #lineLength = 0;
  #afterCr = false;
  #atStart = true;
  #ended = false;
  /** True after a known field or a comment was seen, which proves that the body is a stream. */
  #recognised = false;
  #nonsense = false;
  #data: string | undefined = undefined;
  #dataBytes = 0;
  #event = "";
  #id: string | undefined = undefined;
  #retry: number | undefined = undefined;
  #pendingBytes = 0;
  /**
   * Frames of the current call; undefined until the first one. Usually a call produces one frame, and V8 reserves room for seventeen
   * elements when an empty array grows.
   */
  #frames: Array<Frame> | undefined;

  constructor(limits: Limits) {
    this.#limits = limits;
  }

  get unframed(): number {
    return this.#pendingBytes + this.#lineLength;
  }

  feed(bytes: Uint8Array): ReadonlyArray<Frame> {
    if (this.failure !== undefined || this.#ended) return nothing;
    let at = 0;
    // The positions of the next LF and the next CR are remembered. Otherwise a stream with only one of them would take quadratic time.
    let lf = -1;
    let cr = -1;
    while (at < bytes.length && this.failure === undefined) {
      if (this.#afterCr) {
        this.#afterCr = false;
        if (bytes[at] === LF) {
          this.#pendingBytes += 1;
          at += 1;
          continue;
        }
      }
      // Every second line is blank, and its end needs no search.
      if (lf < at) lf = bytes[at] === LF ? at : indexOrEnd(bytes, LF, at);
      if (cr < at) cr = indexOrEnd(bytes, CR, at);
      const stop = Math.min(lf, cr);
      if (stop === bytes.length) {
        this.#keep(bytes, at, stop);
        break;
      }
      this.#afterCr = stop === cr;
      if (this.#lineLength === 0) this.#take(bytes, at, stop, 1);
      else this.#takeKept(bytes, at, stop);
      at = stop + 1;
    }
    return this.#takeFrames();
  }

  #takeFrames(): ReadonlyArray<Frame> {
    const frames = this.#frames;
    this.#frames = undefined;
    return frames ?? nothing;
  }

  #emit(frame: Frame): void {
    if (this.#frames === undefined) this.#frames = [frame];
    else this.#frames.push(frame);
  }

  end(): ReadonlyArray<SseEvent> {
    if (this.failure !== undefined || this.#ended) return nothing;
    this.#ended = true;
    const length = this.#lineLength;
    const comment = this.#line[0] === COLON;
    if (length > 0 && !comment) {
      const nonsense = this.#nonsense || !isFieldBegun(this.#line, length);
      this.#lineLength = 0;
      this.#take(this.#line, 0, length, 0);
      this.#nonsense = nonsense;
    }
    if (this.failure !== undefined) return nothing;
    if (this.#nonsense && !this.#recognised) this.failure = notAStream;
    this.cut = this.#data === undefined && (this.#event !== "" || (length > 0 && !comment));
    this.#dispatch();
    return this.#takeFrames().filter((frame): frame is SseEvent => !isComment(frame));
  }

  /** Keeps the start of an unfinished line in a buffer that doubles when full, which takes linear time over any number of chunks. */
  #keep(bytes: Uint8Array, from: number, to: number): void {
    const needed = this.#lineLength + to - from;
    if (needed > this.#limits.lineBytesMax) {
      if (this.#lineLength === 0) this.#refuseLong(bytes, from, to);
      else this.#refuseLong(this.#line, 0, this.#lineLength);
      return;
    }
    if (needed > this.#line.length) {
      const larger = new Uint8Array(Math.max(needed, this.#line.length * 2, 256));
      larger.set(this.#line.subarray(0, this.#lineLength));
      this.#line = larger;
    }
    this.#line.set(bytes.subarray(from, to), this.#lineLength);
    this.#lineLength = needed;
    if (this.#recognised) return;
    const first = firstByte(this.#line, 0, needed);
    if (first !== undefined && isBodyStart(first)) this.failure = notAStream;
  }

  #takeKept(bytes: Uint8Array, from: number, to: number): void {
    this.#keep(bytes, from, to);
    if (this.failure !== undefined) return;
    const line = this.#line;
    const length = this.#lineLength;
    this.#lineLength = 0;
    this.#take(line, 0, length, 1);
    if (line.length > bufferBytesKept) this.#line = empty;
  }

  /** Reads one complete line. `ending` is the length of its line end: 1, or 0 if the bytes ended first. */
  #take(bytes: Uint8Array, lineStart: number, stop: number, ending: number): void {
    this.#pendingBytes += stop - lineStart + ending;
    if (stop - lineStart > this.#limits.lineBytesMax) {
      this.#refuseLong(bytes, lineStart, stop);
      return;
    }
    let start = lineStart;
    if (this.#atStart) {
      this.#atStart = false;
      if (bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf && stop - start >= 3)
        start += 3;
    }
    if (start === stop) this.#dispatch();
    else if (bytes[start] === COLON) this.#readComment(bytes, start, stop, stop - lineStart + ending);
    else this.#readField(bytes, start, stop);
  }

  /** Refuses a line that is too long. A long line that begins a JSON or HTML body shows that the response is not a stream. */
  #refuseLong(bytes: Uint8Array, start: number, stop: number): void {
    const first = firstByte(bytes, start, stop);
    this.failure = !this.#recognised && first !== undefined && isBodyStart(first) ? notAStream : oversize;
  }

  #readComment(bytes: Uint8Array, start: number, stop: number, size: number): void {
    this.#recognised = true;
    // Inside an event, a comment counts only its own line, so that the other lines count for the event.
    const taken = this.#data === undefined ? this.#pendingBytes : size;
    this.#pendingBytes -= taken;
    this.#emit({ comment: this.#readValue(bytes, start, stop), bytes: taken });
  }

  /** Processes a field line, as the HTML standard calls it. */
  #readField(bytes: Uint8Array, start: number, stop: number): void {
    if (isNamed(bytes, start, stop, "data")) {
      this.#addData(bytes, start + 4, stop);
    } else if (isNamed(bytes, start, stop, "error") && start + 5 < stop) {
      // llama.cpp writes `error: {…}` instead of `event: error` with data. The standard does not define this field.
      this.#event = "error";
      this.#addData(bytes, start + 5, stop);
    } else if (isNamed(bytes, start, stop, "event")) this.#event = this.#readValue(bytes, start + 5, stop);
    else if (isNamed(bytes, start, stop, "id")) {
      const id = this.#readValue(bytes, start + 2, stop);
      if (!id.includes("\u0000")) this.#id = id;
    } else if (isNamed(bytes, start, stop, "retry")) {
      const retry = this.#readValue(bytes, start + 5, stop);
      if (/^[0-9]{1,15}$/.test(retry)) this.#retry = Number(retry);
    } else {
      this.#readUnknownLine(bytes, start, stop);
      return;
    }
    this.#recognised = true;
  }

  #addData(bytes: Uint8Array, colon: number, stop: number): void {
    this.#dataBytes += stop - colon;
    if (this.#dataBytes > this.#limits.eventBytesMax) {
      this.failure = oversize;
      return;
    }
    const value = this.#readValue(bytes, colon, stop);
    this.#data = this.#data === undefined ? value : `${this.#data}\n${value}`;
  }

  /** Ignores a line without a known field, as the standard requires, unless the line begins a JSON or HTML body. */
  #readUnknownLine(bytes: Uint8Array, start: number, stop: number): void {
    const first = firstByte(bytes, start, stop);
    if (first === undefined) return;
    if (isBodyStart(first)) this.failure = this.#recognised ? damaged : notAStream;
    this.#nonsense = true;
  }

  /** Returns the text after the colon at `colon`, without one leading space; empty if the line ends before a colon. */
  #readValue(bytes: Uint8Array, colon: number, stop: number): string {
    if (colon >= stop) return "";
    const from = bytes[colon + 1] === SPACE ? colon + 2 : colon + 1;
    return from >= stop ? "" : utf8.decode(bytes.subarray(from, stop));
  }

  #dispatch(): void {
    const data = this.#data;
    const event = this.#event;
    this.#event = "";
    if (data === undefined) return;
    const frame: { -readonly [K in keyof SseEvent]: SseEvent[K] } = {
      event: event === "" ? "message" : event,
      data,
      bytes: this.#pendingBytes,
    };
    if (this.#id !== undefined) frame.id = this.#id;
    if (this.#retry !== undefined) frame.retry = this.#retry;
    this.#data = undefined;
    this.#dataBytes = 0;
    this.#retry = undefined;
    this.#pendingBytes = 0;
    this.#emit(frame);
  }
}

const indexOrEnd = (bytes: Uint8Array, byte: number, from: number): number => {
  const index = bytes.indexOf(byte, from);
  return index === -1 ? bytes.length : index;
};

/** True if the line is the field `name`: the name alone, or the name and a colon. */
const isNamed = (bytes: Uint8Array, start: number, stop: number, name: string): boolean => {
  const end = start + name.length;
  if (end > stop || (end < stop && bytes[end] !== COLON)) return false;
  for (let index = 0; index < name.length; index++) {
    if (bytes[start + index] !== name.charCodeAt(index)) return false;
  }
  return true;
};

const fieldNames = ["data", "event", "id", "retry", "error"];

/** True if an incomplete line may still become a known field. It may begin with a BOM or a part of one. */
const isFieldBegun = (bytes: Uint8Array, length: number): boolean => {
  const text = new TextDecoder().decode(bytes.subarray(0, Math.min(length, 16)));
  const name = text.replace(/^\uFFFD+$/, "").split(":")[0] ?? "";
  return fieldNames.some((field) => field.startsWith(name));
};

/** Maximum leading blank bytes that are skipped to find the start of a body. */
const blankBytesMax = 64;

const firstByte = (bytes: Uint8Array, start: number, stop: number): number | undefined => {
  const bom = bytes[start] === 0xef && bytes[start + 1] === 0xbb && bytes[start + 2] === 0xbf ? 3 : 0;
  for (let at = start + bom; at < Math.min(stop, start + blankBytesMax); at++) {
    const byte = bytes[at];
    if (byte !== SPACE && byte !== 9) return byte;
  }
  return undefined;
};

/**
 * True for `{`, `[` and `<`. No field of the format begins with them, but a JSON body, a JSON array (Gemini without `alt=sse`) and HTML do.
 */
const isBodyStart = (byte: number): boolean => byte === 0x7b || byte === 0x5b || byte === 0x3c;

/** Returns the line ends that are missing after an event. */
const missingEnd = (event: Uint8Array): string => {
  const end = String.fromCharCode(...event.subarray(-4));
  if (/(?:\n\n|\n\r\n)$/.test(end)) return "";
  return /(?:\n|[\r\n]\r)$/.test(end) ? "\n" : "\n\n";
};

/** The form of server-sent events. */
export const framing: TextFraming = {
  contentType: "text/event-stream; charset=utf-8",
  isDeclaredBy: (type) => /^\s*text\/event-stream\b/i.test(type),
  makeFramer,
  encode: ({ data, event }) => {
    const lines = data.includes("\n") ? data.replaceAll("\n", "\ndata: ") : data;
    return `${event === undefined ? "" : `event: ${event}\n`}data: ${lines}\n\n`;
  },
  missingEnd,
};
