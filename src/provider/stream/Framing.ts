/**
 * Describes how a protocol's events travel as bytes: as server-sent events, or in the binary messages of Amazon's APIs.
 */
import * as Json from "../../domain/Json.ts";
import { encodeEvent, type StreamEvent } from "../protocol/StreamEvent.ts";
import * as EventStream from "./EventStream.ts";
import * as Sse from "./Sse.ts";

/** The format of a stream. */
export interface Framing {
  /** The content type that the gateway writes itself. */
  readonly contentType: string;
  /** True if a content type promises this format. */
  readonly isPromised: (contentType: string) => boolean;
  readonly makeFramer: (limits?: Partial<Sse.Limits>) => Sse.Framer;
  /**
   * Encodes an event of ours for a place in the stream.
   *
   * @param lastByte the last byte that was sent; undefined at the start
   * @returns undefined if the place is inside another event
   */
  readonly encodeAfter: (event: StreamEvent, lastByte: number | undefined) => Uint8Array<ArrayBuffer> | undefined;
  /** Edits the text in the bytes of whole events. */
  readonly edited: (events: Uint8Array<ArrayBuffer>, edit: Edit) => Uint8Array<ArrayBuffer>;
  /** Returns the bytes that an event lacks whose body ended inside it. Without them, the next event would become part of it. */
  readonly closing: (event: Uint8Array) => Uint8Array<ArrayBuffer>;
}

/** An edit of a text, as bytes. It keeps the length. */
export type Edit = (text: Uint8Array<ArrayBuffer>) => Uint8Array<ArrayBuffer>;

const LF = 10;
const CR = 13;
const encoder = new TextEncoder();
const empty = new Uint8Array(0);

/** Server-sent events. */
export const sse: Framing = {
  contentType: "text/event-stream; charset=utf-8",
  isPromised: (type) => /^\s*text\/event-stream\b/i.test(type),
  makeFramer: Sse.makeFramer,
  encodeAfter: (event, lastByte) => {
    if (lastByte !== undefined && lastByte !== LF && lastByte !== CR) return undefined;
    const text = encodeEvent(event);
    // Completes a line end of CR alone with an LF. If the provider's own LF still follows, a reader takes it for an empty line.
    return encoder.encode(lastByte === CR ? `\n${text}` : text);
  },
  edited: (events, edit) => edit(events),
  closing: (event) => {
    const end = String.fromCharCode(...event.subarray(-4));
    if (/(?:\n\n|\n\r\n)$/.test(end)) return empty;
    return encoder.encode(/(?:\n|[\r\n]\r)$/.test(end) ? "\n" : "\n\n");
  },
};

/**
 * Creates the format of `EventStream`. Its messages are sent whole, so an event of ours may follow any byte that was sent.
 *
 * @param unwrap unwraps each event
 */
export const eventStream = (unwrap?: EventStream.Unwrap): Framing => ({
  contentType: "application/vnd.amazon.eventstream",
  isPromised: (type) => /^\s*application\/vnd\.amazon\.eventstream\b/i.test(type),
  makeFramer: (limits) => EventStream.makeFramer(limits, unwrap),
  encodeAfter: ({ data, event = "" }) => EventStream.writeEvent(event, data),
  edited: EventStream.edited,
  closing: () => empty,
});

/** Returns the format of a protocol; server-sent events by default. */
export const framingOf = ({ framing }: { readonly framing?: Framing }): Framing => framing ?? sse;

/** Returns the data of the last event in the bytes of whole events, if it is a JSON object. */
export const lastDataOf = (framing: Framing, bytes: Uint8Array): Json.JsonRecord | undefined => {
  const framer = framing.makeFramer();
  const last = [...framer.feed(bytes), ...framer.end()].findLast((frame) => !Sse.isComment(frame));
  return last === undefined || Sse.isComment(last) ? undefined : Json.record(Json.parse(last.data)?.json);
};
