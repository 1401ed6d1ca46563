/**
 * Describes the form in which the bytes of a response hold its events: server-sent events, lines of JSON, or binary messages.
 */
import type { Failure } from "../../domain/Failure.ts";

/** One event of a stream, as framed. */
export interface SseEvent {
  /** The `event:` field; `message` if the frame has none (WHATWG HTML, 9.2.6). */
  readonly event: string;
  /** The unmodified `data:` lines, joined by newlines. For lines of JSON: the line. */
  readonly data: string;
  /** The last `id:` of the stream, if one was sent. */
  readonly id?: string;
  /** The `retry:` field of this frame, in milliseconds. */
  readonly retry?: number;
  /** Size of the frame on the wire, in bytes. */
  readonly bytes: number;
}

/** A comment line, which keeps the connection alive and is not an event. */
export interface SseComment {
  readonly comment: string;
  readonly bytes: number;
}

/** A frame: an event, or a comment, which proves only that the connection is alive. */
export type Frame = SseEvent | SseComment;

/** The limits of a framer. */
export interface Limits {
  /** Maximum length of a line, in bytes, without its line end. */
  readonly lineBytesMax: number;
  /** Maximum data of one event over all its `data:` lines, in bytes. */
  readonly eventBytesMax: number;
}

/** 16 MiB each: the largest known frames are base64 images of a few megabytes in one `data:` line. */
export const defaultLimits: Limits = { lineBytesMax: 16 * 1024 * 1024, eventBytesMax: 16 * 1024 * 1024 };

/**
 * A framer. The bytes of all frames and `unframed` add up to the bytes that were fed. Bytes between two events count for the next frame.
 */
export interface Framer {
  /** Frames the next bytes, which may be cut anywhere; the array may be reused afterwards. Never throws. */
  readonly feed: (bytes: Uint8Array) => ReadonlyArray<Frame>;
  /** Ends the bytes. Returns the event that lacks its line end, if any. The event's data shows if it is complete. */
  readonly end: () => ReadonlyArray<SseEvent>;
  /** The `protocol` failure with reason `oversize`, `not_a_stream` or `damaged_frame`. After a failure, no further bytes are framed. */
  readonly failure: Failure | undefined;
  /** Bytes that belong to no frame yet. */
  readonly unframed: number;
  /** Set by `end`: true if the bytes ended inside the fields of an event without data, so that more was to come. */
  readonly cut: boolean;
}

/** The form of a stream. */
export interface Framing {
  /** Content type of a response in this form. */
  readonly contentType: string;
  /** True if a content type declares this form. */
  readonly isDeclaredBy: (contentType: string) => boolean;
  /** Creates a framer for one response body. */
  readonly makeFramer: (limits?: Partial<Limits>) => Framer;
  /** Encodes an event as text or as bytes. Without a name, the event is unnamed. */
  readonly encode: (event: { readonly event?: string; readonly data: string }) => string | Uint8Array<ArrayBuffer>;
  /** Returns the line ends that are missing after the bytes of an event, which a cut may have removed. */
  readonly missingEnd: (event: Uint8Array) => string;
  /** Edits the text in the bytes of whole events, and keeps its length. If omitted, the bytes are the text. */
  readonly edited?: (
    events: Uint8Array<ArrayBuffer>,
    edit: (text: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>,
  ) => Uint8Array<ArrayBuffer>;
}

/** The form of a stream of text. */
export interface TextFraming extends Framing {
  readonly encode: (event: { readonly event?: string; readonly data: string }) => string;
}
