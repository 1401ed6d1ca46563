/**
 * Encodes an event of a response as bytes of a stream.
 */
import type { SseEvent } from "../../../provider/stream/Protocol.ts";

const encoder = new TextEncoder();

/**
 * Encodes an event: its name, if it has one, its data, and a blank line.
 *
 * @param event the event as a decoder reads it
 * @param owed true to start with a line feed, because the bytes sent so far end with the first half of a line end
 */
export const bytesOf = ({ data, event }: Pick<SseEvent, "event" | "data">, owed = false): Uint8Array<ArrayBuffer> => {
  const name = event === unnamed ? "" : `event: ${event}\n`;
  const lines = data.split("\n").map((line) => `data: ${line}\n`);
  return encoder.encode(`${owed ? "\n" : ""}${name}${lines.join("")}\n`);
};

/** The name that a decoder gives to an event without one (WHATWG HTML, 9.2.6). */
const unnamed = "message";
