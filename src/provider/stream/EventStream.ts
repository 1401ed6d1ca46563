/**
 * Frames and writes `application/vnd.amazon.eventstream`, the binary stream of Amazon's APIs, without IO.
 *
 * A message is its total length, the length of its headers, a CRC-32 of both, the headers, the payload, and a CRC-32 of everything before
 * it (https://smithy.io/2.0/aws/amazon-eventstream.html). All numbers are big-endian. A message whose lengths, headers or checksums are
 * invalid is a `protocol` failure, after which nothing is framed: there is no mark at which the next message could be found.
 */
import type { Failure } from "../../domain/Failure.ts";
import { defaultLimits, type Framer, type Framing, type Limits, type SseEvent } from "./Framing.ts";

/** The value of a header. Text and flags are plain values. Any other value names its type, because JavaScript has fewer types. */
export type HeaderValue =
  | boolean
  | string
  | { readonly type: "byte" | "short" | "integer"; readonly value: number }
  | { readonly type: "long" | "timestamp"; readonly value: bigint }
  | { readonly type: "binary" | "uuid"; readonly value: Uint8Array };

/** A message: its headers, in order, and its payload. */
export interface Message {
  readonly headers: ReadonlyArray<readonly [name: string, value: HeaderValue]>;
  readonly payload: Uint8Array;
}

/** Size of the two lengths and their checksum, in bytes. */
const preludeBytes = 12;

/** Size of a message without headers and payload, in bytes. */
const messageBytesMin = 16;

/** Maximum bytes of the headers, by the format's definition. */
const headerBytesMax = 131_072;

/** Size of a UUID, in bytes. */
const uuidBytes = 16;

const nothing: ReadonlyArray<never> = [];
const notAStream: Failure = { kind: "protocol", reason: "not_a_stream" };
const oversize: Failure = { kind: "protocol", reason: "oversize" };
const damaged: Failure = { kind: "protocol", reason: "damaged_frame" };

// checksums

const crcTable = Uint32Array.from({ length: 256 }, (_, index) => {
  let crc = index;
  for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0xedb88320 : crc >>> 1;
  return crc;
});

/** Returns the CRC-32 (IEEE 802.3) of bytes. `node:zlib` has one too, but the provider folder runs without Node. */
export const crc32 = (bytes: Uint8Array, end = bytes.length): number => {
  let crc = 0xffffffff;
  for (let at = 0; at < end; at++) crc = (crcTable[(crc ^ (bytes[at] ?? 0)) & 0xff] ?? 0) ^ (crc >>> 8);
  return (crc ^ 0xffffffff) >>> 0;
};

// reading

const utf8 = new TextDecoder("utf-8", { ignoreBOM: true });

const viewOf = (bytes: Uint8Array): DataView => new DataView(bytes.buffer, bytes.byteOffset, bytes.byteLength);

/** Reads one message. Returns undefined for a message whose lengths, headers or checksums are invalid. */
export const read = (bytes: Uint8Array): Message | undefined => {
  if (bytes.length < messageBytesMin) return undefined;
  const view = viewOf(bytes);
  const headerEnd = preludeBytes + view.getUint32(4);
  const payloadEnd = bytes.length - 4;
  if (view.getUint32(0) !== bytes.length || headerEnd > payloadEnd) return undefined;
  if (view.getUint32(8) !== crc32(bytes, 8) || view.getUint32(payloadEnd) !== crc32(bytes, payloadEnd))
    return undefined;
  const headers = readHeaders(bytes.subarray(preludeBytes, headerEnd));
  return headers === undefined ? undefined : { headers, payload: bytes.subarray(headerEnd, payloadEnd) };
};

const readHeaders = (bytes: Uint8Array): Message["headers"] | undefined => {
  const view = viewOf(bytes);
  const headers: Array<readonly [string, HeaderValue]> = [];
  let at = 0;
  while (at < bytes.length) {
    const name = at + 1;
    const type = name + (bytes[at] ?? 0);
    // A name has at least one byte.
    if (type === name || type >= bytes.length) return undefined;
    const found = readValue(view, bytes, type + 1, bytes[type] ?? 0);
    if (found === undefined || found.end > bytes.length) return undefined;
    headers.push([utf8.decode(bytes.subarray(name, type)), found.value]);
    at = found.end;
  }
  return headers;
};

type Found = { readonly value: HeaderValue; readonly end: number };

/** Reads the value at a place. Returns undefined for an unknown type, and for a value that is longer than the headers. */
const readValue = (view: DataView, bytes: Uint8Array, at: number, type: number): Found | undefined => {
  const left = bytes.length - at;
  const sized = type === 6 || type === 7;
  if (left < (sized ? 2 : (widths[type] ?? Number.POSITIVE_INFINITY))) return undefined;
  const end = at + (sized ? 2 + view.getUint16(at) : (widths[type] ?? 0));
  if (end > bytes.length) return undefined;
  switch (type) {
    case 0:
    case 1:
      return { value: type === 0, end };
    case 2:
      return { value: { type: "byte", value: view.getInt8(at) }, end };
    case 3:
      return { value: { type: "short", value: view.getInt16(at) }, end };
    case 4:
      return { value: { type: "integer", value: view.getInt32(at) }, end };
    case 5:
    case 8:
      return { value: { type: type === 5 ? "long" : "timestamp", value: view.getBigInt64(at) }, end };
    case 6:
      return { value: { type: "binary", value: bytes.slice(at + 2, end) }, end };
    case 7:
      return { value: utf8.decode(bytes.subarray(at + 2, end)), end };
    default:
      return { value: { type: "uuid", value: bytes.slice(at, end) }, end };
  }
};

/** Widths of the values, in bytes, by type. Types 6 and 7 begin with their own length. */
const widths: ReadonlyArray<number> = [0, 0, 1, 2, 4, 8, 2, 2, 8, uuidBytes];

// writing

/** Writes one message. */
export const write = ({ headers, payload }: Message): Uint8Array<ArrayBuffer> => {
  const written = headers.map(([name, value]) => writeHeader(name, value));
  const headerLength = written.reduce((sum, header) => sum + header.length, 0);
  const bytes = new Uint8Array(messageBytesMin + headerLength + payload.length);
  const view = viewOf(bytes);
  view.setUint32(0, bytes.length);
  view.setUint32(4, headerLength);
  view.setUint32(8, crc32(bytes, 8));
  let at = preludeBytes;
  for (const part of [...written, payload]) {
    bytes.set(part, at);
    at += part.length;
  }
  view.setUint32(at, crc32(bytes, at));
  return bytes;
};

const writeHeader = (name: string, value: HeaderValue): Uint8Array => {
  const label = encoder.encode(name);
  const { bytes, type } = writeValue(value);
  return Uint8Array.from([label.length, ...label, type, ...bytes]);
};

const writeValue = (value: HeaderValue): { readonly type: number; readonly bytes: Uint8Array } => {
  if (typeof value === "boolean") return { type: value ? 0 : 1, bytes: new Uint8Array(0) };
  if (typeof value === "string") return { type: 7, bytes: withLength(encoder.encode(value)) };
  switch (value.type) {
    case "binary":
      return { type: 6, bytes: withLength(value.value) };
    case "uuid":
      return { type: 9, bytes: value.value };
    case "long":
    case "timestamp": {
      const bytes = new Uint8Array(8);
      viewOf(bytes).setBigInt64(0, value.value);
      return { type: value.type === "long" ? 5 : 8, bytes };
    }
    default: {
      const type = value.type === "byte" ? 2 : value.type === "short" ? 3 : 4;
      const bytes = new Uint8Array(4);
      viewOf(bytes).setInt32(0, value.value);
      return { type, bytes: bytes.subarray(4 - (widths[type] ?? 4)) };
    }
  }
};

const withLength = (bytes: Uint8Array): Uint8Array =>
  Uint8Array.from([bytes.length >> 8, bytes.length & 0xff, ...bytes]);

const encoder = new TextEncoder();

/** Edits the payloads of whole messages, and writes their checksums again. Bytes that are not a message stay unchanged. */
export const editPayloads = (
  messages: Uint8Array<ArrayBuffer>,
  edit: (payload: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>,
): Uint8Array<ArrayBuffer> => {
  const bytes = messages.slice();
  for (let at = 0; at + messageBytesMin <= bytes.length; ) {
    const length = viewOf(bytes).getUint32(at);
    const message = read(bytes.subarray(at, at + length));
    if (message === undefined) break;
    bytes.set(write({ ...message, payload: edit(Uint8Array.from(message.payload)) }), at);
    at += length;
  }
  return bytes;
};

// events

/** True if an event of this name is an exception, which ends the stream. */
export const isException = (name: string): boolean => name === unmodeled || /Exception$/.test(name);

/** Name of an error that the API's model does not describe. */
const unmodeled = "error";

/** Writes an event as the API does: an exception if its name says so. */
export const writeEvent = (name: string, data: object | string): Uint8Array<ArrayBuffer> =>
  write({
    headers: [
      isException(name) ? [":exception-type", name] : [":event-type", name],
      [":content-type", "application/json"],
      [":message-type", isException(name) ? "exception" : "event"],
    ],
    payload: encoder.encode(typeof data === "string" ? data : JSON.stringify(data)),
  });

/**
 * Converts a message to an event: its type, or the type of its exception, and its payload as text. Returns undefined for any other kind of
 * message.
 */
const eventOf = ({ headers, payload }: Message, bytes: number): SseEvent | undefined => {
  const found = new Map(headers);
  const text = (name: string): string => {
    const value = found.get(name);
    return typeof value === "string" ? value : "";
  };
  switch (text(":message-type")) {
    case "event":
      return { event: text(":event-type"), data: utf8.decode(payload), bytes };
    case "exception":
      return { event: exceptionName(text(":exception-type")), data: utf8.decode(payload), bytes };
    case "error":
      return {
        event: unmodeled,
        data: JSON.stringify({ code: text(":error-code"), message: text(":error-message") }),
        bytes,
      };
    default:
      return undefined;
  }
};

/** An exception with another name must not be taken for an event. */
const exceptionName = (name: string): string => (isException(name) ? name : unmodeled);

/** Unwraps an event whose payload is an envelope. Returns undefined for an invalid one. */
export type Unwrap = (event: SseEvent) => SseEvent | undefined;

/**
 * Creates the framer of one response body.
 *
 * @param limits `lineBytesMax` does not apply, because a message has no lines
 */
export const makeFramer = (limits: Partial<Limits> = {}, unwrap?: Unwrap): Framer =>
  new MessageFramer(limits.eventBytesMax ?? defaultLimits.eventBytesMax, unwrap);

class MessageFramer implements Framer {
  failure: Failure | undefined = undefined;
  cut = false;
  readonly #messageBytesMax: number;
  readonly #unwrap: Unwrap | undefined;
  /** The incomplete message. The buffer grows with the bytes that arrive, so that a length alone allocates nothing. */
  #begun = new Uint8Array(0);
  #begunBytes = 0;
  /** Total length of the incomplete message; 0 before its prelude is complete. */
  #length = 0;
  #isRecognised = false;
  #ended = false;

  constructor(eventBytesMax: number, unwrap: Unwrap | undefined) {
    this.#messageBytesMax = messageBytesMin + headerBytesMax + eventBytesMax;
    this.#unwrap = unwrap;
  }

  get unframed(): number {
    return this.#begunBytes;
  }

  feed(bytes: Uint8Array): ReadonlyArray<SseEvent> {
    if (this.failure !== undefined || this.#ended || bytes.length === 0) return nothing;
    if (!this.#isRecognised && this.#begunBytes === 0 && isTextStart(bytes[0])) this.failure = notAStream;
    const events: Array<SseEvent> = [];
    let at = 0;
    while (at < bytes.length && this.failure === undefined) {
      const whole = this.#begunBytes === 0 ? this.#wholeAt(bytes, at) : undefined;
      if (whole !== undefined) this.#emit(whole, events);
      at += whole?.length ?? this.#keep(bytes, at, events);
    }
    return events;
  }

  end(): ReadonlyArray<SseEvent> {
    this.#ended = true;
    this.cut = this.#begunBytes > 0;
    return nothing;
  }

  /** The message at a place, without a copy, if it is complete. */
  #wholeAt(bytes: Uint8Array, at: number): Uint8Array | undefined {
    if (bytes.length - at < preludeBytes) return undefined;
    const length = this.#lengthOf(bytes.subarray(at, at + preludeBytes));
    return length === undefined || bytes.length - at < length ? undefined : bytes.subarray(at, at + length);
  }

  /** Adds bytes to the incomplete message, and frames it once it is complete. Returns the number of bytes taken. */
  #keep(bytes: Uint8Array, at: number, events: Array<SseEvent>): number {
    if (this.failure !== undefined) return 0;
    const missing = (this.#length === 0 ? preludeBytes : this.#length) - this.#begunBytes;
    const taken = Math.min(missing, bytes.length - at);
    this.#reserve(this.#begunBytes + taken);
    this.#begun.set(bytes.subarray(at, at + taken), this.#begunBytes);
    this.#begunBytes += taken;
    if (taken < missing) return taken;
    const begun = this.#begun.subarray(0, this.#begunBytes);
    if (this.#length === 0) {
      this.#length = this.#lengthOf(begun) ?? 0;
      return taken;
    }
    this.#begunBytes = 0;
    this.#length = 0;
    if (this.#begun.length > bufferBytesKept) this.#begun = new Uint8Array(0);
    this.#emit(begun, events);
    return taken;
  }

  #reserve(size: number): void {
    if (size <= this.#begun.length) return;
    const grown = new Uint8Array(Math.max(size, Math.min(2 * this.#begun.length, this.#length)));
    grown.set(this.#begun.subarray(0, this.#begunBytes));
    this.#begun = grown;
  }

  /** Reads a prelude. An invalid one is a failure. */
  #lengthOf(prelude: Uint8Array): number | undefined {
    const view = viewOf(prelude);
    const length = view.getUint32(0);
    const headers = view.getUint32(4);
    if (view.getUint32(8) !== crc32(prelude, 8) || length < messageBytesMin + headers) this.failure = damaged;
    else if (headers > headerBytesMax || length > this.#messageBytesMax) this.failure = oversize;
    return this.failure === undefined ? length : undefined;
  }

  #emit(bytes: Uint8Array, events: Array<SseEvent>): void {
    const message = read(bytes);
    const event = message === undefined ? undefined : eventOf(message, bytes.length);
    const inner = event === undefined || this.#unwrap === undefined ? event : this.#unwrap(event);
    if (inner === undefined) this.failure = damaged;
    else events.push(inner);
    this.#isRecognised = true;
  }
}

/** Maximum size of a buffer kept for the next message that spans chunks, in bytes. */
const bufferBytesKept = 65_536;

/** True for a byte with which a text begins. A message that began with one would be longer than a hundred megabytes. */
const isTextStart = (byte = 0): boolean =>
  (byte >= 0x20 && byte < 0x7f) || (byte >= 0x09 && byte <= 0x0d) || byte === 0xef;

/**
 * Creates the framing of one API's messages. Messages are sent whole, so an event may follow any byte that was sent.
 *
 * @param unwrap unwraps each event
 */
export const makeFraming = (unwrap?: Unwrap): Framing => ({
  contentType: "application/vnd.amazon.eventstream",
  isDeclaredBy: (type) => /^\s*application\/vnd\.amazon\.eventstream\b/i.test(type),
  makeFramer: (limits) => makeFramer(limits, unwrap),
  encode: ({ data, event = "" }) => writeEvent(event, data),
  missingEnd: () => "",
  edited: editPayloads,
});
