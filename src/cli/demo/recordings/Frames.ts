/**
 * Parses recorded bytes with a minimal server-sent-events reader (WHATWG HTML, 9.2.6), and finds the first place at which a stream may look
 * complete. It shares no code with the decoders under test, so the judge does not share their faults.
 */
import * as Json from "../../../domain/Json.ts";
import type { ProtocolId } from "../../../provider/Protocols.ts";
import { Answers } from "../../../testing/index.ts";

/** An event or a comment. */
export interface Frame {
  /** The event's name; `comment` for a comment. */
  readonly event: string;
  readonly data: string;
  /** Offset of the frame's first byte. */
  readonly from: number;
  /** True if the bytes ended before the blank line that ends a frame. Only the data then shows whether the event is complete. */
  readonly open: boolean;
}

/**
 * Parses all events and comments of a stream.
 *
 * @param bytes the whole body
 */
export const read = (bytes: Uint8Array): ReadonlyArray<Frame> => {
  // latin1 maps each byte to one code unit, so text offsets are byte offsets.
  const raw = Buffer.from(bytes).toString("latin1");
  const frames: Array<Frame> = [];
  let from: number | undefined;
  let event = "";
  let data: Array<string> | undefined;
  const flush = (open: boolean) => {
    if (data !== undefined)
      frames.push({ event: utf8(event) || "message", data: utf8(data.join("\n")), from: from ?? 0, open });
    from = undefined;
    event = "";
    data = undefined;
  };
  for (const match of raw.replace(/^\u00ef\u00bb\u00bf/, "   ").matchAll(/([^\r\n]*)(\r\n|\r|\n|$)/g)) {
    const line = match.index === 0 ? match[0].replace(/^ {3}(?=\S)/, "").replace(/[\r\n]+$/, "") : (match[1] ?? "");
    if (line === "" && match[2] !== "") {
      flush(false);
      continue;
    }
    if (line.startsWith(":")) {
      frames.push({ event: "comment", data: utf8(line.slice(1)), from: match.index, open: false });
      continue;
    }
    const [, field = "", value = ""] = /^([^:]*):? ?(.*)$/s.exec(line) ?? [];
    if (field === "event" || field === "data") from ??= match.index;
    if (field === "event") event = value;
    if (field === "data") data = [...(data ?? []), value];
  }
  flush(true);
  return frames;
};

const utf8 = (latin1: string): string => Buffer.from(latin1, "latin1").toString("utf8");

/** Compares two frames, ignoring white space around a comment's text. */
export const isSameFrame = (a: Pick<Frame, "event" | "data">, b: Pick<Frame, "event" | "data">): boolean =>
  a.event === b.event && (a.event === "comment" ? a.data.trim() === b.data.trim() : a.data === b.data);

/** True if a frame is complete even without its blank line. */
export const isWhole = (frame: Frame): boolean =>
  !frame.open || frame.data === "[DONE]" || Json.parse(frame.data) !== undefined;

/**
 * Finds the first event that a reader could take for the end. A break before this event must not look complete.
 *
 * @returns the offset of that event in bytes; `length` if no event looks like an end
 */
export const endOf = (protocol: ProtocolId, frames: ReadonlyArray<Frame>, length: number): number =>
  frames.find((frame) => mayEnd(protocol, frame))?.from ?? length;

/** True for an event that carries an error, which also ends a stream. */
const isError = ({ data, event }: Frame): boolean => {
  if (event === "comment" || event === "error") return event === "error";
  const json = Json.record(Json.parse(data)?.json) ?? {};
  return (json.error !== undefined && json.error !== null) || json.type === "error" || json.type === "response.failed";
};

const mayEnd = (protocol: ProtocolId, frame: Frame): boolean => {
  const { data } = frame;
  if (data === "[DONE]" || isError(frame)) return true;
  return Answers.answerProtocol(protocol).mayEnd(Json.record(Json.parse(data)?.json) ?? {});
};
