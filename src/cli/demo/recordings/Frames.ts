/**
 * Reads recorded bytes on its own, so that the judge shares no code with what it judges: a server-sent-event reader as
 * short as it can be (WHATWG HTML, 9.2.6), and where a stream may first be taken for ended.
 */
import * as Json from "../../../domain/Json.ts";
import type { ProtocolId } from "../../../provider/Protocols.ts";
import { Answers } from "../../../testing/index.ts";

/** One event or comment. */
export interface Frame {
  /** The event's name; `comment` for a comment. */
  readonly event: string;
  readonly data: string;
  /** Offset of its first byte. */
  readonly from: number;
  /** The bytes ended before its blank line: only what its data says tells whether it is whole. */
  readonly open: boolean;
}

/**
 * Reads all frames of a stream.
 *
 * @param bytes the whole body
 */
export const read = (bytes: Uint8Array): ReadonlyArray<Frame> => {
  // latin1 keeps one code unit a byte: offsets in the text are offsets in the bytes.
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

/** Whether two frames say the same; the blank behind a comment's colon does not count. */
export const same = (a: Pick<Frame, "event" | "data">, b: Pick<Frame, "event" | "data">): boolean =>
  a.event === b.event && (a.event === "comment" ? a.data.trim() === b.data.trim() : a.data === b.data);

/** Whether a frame that lacks its blank line is whole all the same. */
export const isWhole = (frame: Frame): boolean =>
  !frame.open || frame.data === "[DONE]" || Json.parse(frame.data) !== undefined;

/**
 * Finds the offset at which the first event begins that could be taken for the end: before it no break may look like one.
 *
 * @returns an offset in bytes; the length of the stream where nothing in it looks like an end
 */
export const endOf = (protocol: ProtocolId, frames: ReadonlyArray<Frame>, length: number): number =>
  frames.find((frame) => mayEnd(protocol, frame))?.from ?? length;

/** An event that carries an error ends a stream, too. */
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
