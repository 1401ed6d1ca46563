/**
 * Writes an event of a response as the bytes of a stream have it.
 */
import type { SseEvent } from "../../../provider/stream/Protocol.ts";

const encoder = new TextEncoder();

/**
 * The bytes of an event: its name where it has one, its data, a blank line.
 *
 * @param event as a decoder reads it
 * @param owed a line feed stands in front of it: what has left ends with the first half of a line end
 */
export const bytesOf = ({ data, event }: Pick<SseEvent, "event" | "data">, owed = false): Uint8Array<ArrayBuffer> => {
  const name = event === unnamed ? "" : `event: ${event}\n`;
  const lines = data.split("\n").map((line) => `data: ${line}\n`);
  return encoder.encode(`${owed ? "\n" : ""}${name}${lines.join("")}\n`);
};

/** The name that a decoder gives to an event without one (WHATWG HTML, 9.2.6). */
const unnamed = "message";
