/**
 * Converts a scripted answer to the bytes to write and the place of the break. Planning is pure, so tests can inspect a plan without a
 * server.
 */
import type { AnswerProtocol } from "../answers/AnswerProtocol.ts";
import {
  type AnswerEvent,
  type AnswerOptions,
  type CutAnswer,
  type EventRole,
  render,
  renderRest,
  type ScriptedCall,
} from "../answers/Answers.ts";
import type { Answer, Break } from "../script/FaultScript.ts";

/** One write to the socket, with the serials and the call that it completes. */
export interface Piece {
  readonly bytes: Uint8Array;
  readonly text: ReadonlyArray<string>;
  readonly reasoning: ReadonlyArray<string>;
  readonly call?: ScriptedCall;
  /** True if an event ends with this piece, so that the script's delay follows. */
  readonly event_end: boolean;
  readonly terminal: boolean;
}

/** The response to one request, up to its break. */
export interface Plan {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly framing: "chunked" | "eof" | "length";
  /** Writes of the body, up to the break. */
  readonly pieces: ReadonlyArray<Piece>;
  readonly break?: Break;
}

/** One event or body before it is cut. */
interface Unit {
  readonly bytes: Uint8Array;
  readonly role: EventRole;
  readonly serials: ReadonlyArray<string>;
  readonly call?: ScriptedCall;
}

/**
 * Plans the response to one request: its head, its writes and its break.
 *
 * @param request number of the request at its server, from 1
 * @param recorded the bytes of `raw_file`
 * @param before the earlier answer that the request resumes or continues
 */
export const make = (
  answer: Answer,
  protocol: AnswerProtocol,
  request: number,
  recorded?: Uint8Array,
  before: Before = {},
): Plan => {
  const single = isSingle(answer);
  const units = single ? [bodyUnit(answer, protocol)] : unitsOf(answer, protocol, request, recorded, before);
  const cut = answer.break === undefined ? undefined : cutAt(units, answer.break);
  const length = units.reduce((sum, unit) => sum + unit.bytes.byteLength, 0);
  const type = single
    ? typeof answer.body === "string"
      ? "text/html"
      : "application/json"
    : (protocol.contentType ?? "text/event-stream; charset=utf-8");
  return {
    status: answer.status,
    headers: {
      "content-type": type,
      ...(single ? { "content-length": String(length) } : {}),
      ...(!single && answer.framing === "chunked" ? { "transfer-encoding": "chunked" } : {}),
      ...(answer.framing === "eof" ? { connection: "close" } : {}),
      ...(answer.body === undefined && single ? protocol.errorHeaders?.(answer.status) : {}),
      ...answer.headers,
    },
    framing: single ? "length" : answer.framing,
    pieces: cutPieces(units, cut, answer.write_bytes),
    ...(answer.break === undefined ? {} : { break: answer.break }),
  };
};

/** The earlier answer that a request resumes or continues. */
export interface Before {
  readonly resumed?: Resumed | undefined;
  readonly cut?: CutAnswer | undefined;
}

/** The answer that a request resumes, the request that received it, and the event after which to continue. */
export interface Resumed {
  readonly answer: Answer;
  readonly request: number;
  readonly after: number;
}

const unitsOf = (
  answer: Answer,
  protocol: AnswerProtocol,
  request: number,
  recorded: Uint8Array | undefined,
  { cut, resumed }: Before,
): ReadonlyArray<Unit> => {
  if (answer.goes_on !== undefined && cut !== undefined) {
    const rest = renderRest(protocol, request, cut, optionsOf(answer));
    if (rest !== undefined) return rest.map((event, at) => unitOf(event, at, answer));
  }
  if (answer.resume === undefined || resumed === undefined) return streamUnits(answer, protocol, request, recorded);
  const units = streamUnits(resumed.answer, protocol, resumed.request, undefined);
  const next = units.findIndex((unit) => (placeOf(unit) ?? -1) > resumed.after);
  if (next === -1) return [];
  const { repeat, skip } = answer.resume;
  return [...units.slice(Math.max(0, next - repeat), next), ...units.slice(next + skip)];
};

/** Reads the position of an event: its id or, without an id, its sequence number. */
const placeOf = ({ bytes }: Unit): number | undefined => {
  const frame = Buffer.from(bytes).toString();
  const place = /^id: (\d+)$/m.exec(frame)?.[1] ?? /"sequence_number":(\d+)/.exec(frame)?.[1];
  return place === undefined ? undefined : Number(place);
};

/** Returns true if an answer is a single body instead of a stream: an error, or an explicit `body`. */
const isSingle = (answer: Answer): boolean =>
  answer.body !== undefined ||
  ((answer.status < 200 || answer.status > 299) &&
    answer.content === undefined &&
    answer.resume === undefined &&
    answer.raw === undefined &&
    answer.raw_file === undefined);

const bodyUnit = (answer: Answer, protocol: AnswerProtocol): Unit => {
  const body = answer.body ?? protocol.errorBody(answer.status);
  return plainUnit(Buffer.from(typeof body === "string" ? body : JSON.stringify(body)));
};

const plainUnit = (bytes: Uint8Array): Unit => ({ bytes, role: "lifecycle", serials: [] });

const streamUnits = (
  answer: Answer,
  protocol: AnswerProtocol,
  request: number,
  recorded: Uint8Array | undefined,
): ReadonlyArray<Unit> => {
  const raw = recorded ?? (answer.raw === undefined ? undefined : Buffer.from(answer.raw));
  if (raw !== undefined) return splitEvents(raw, protocol.contentType === undefined ? blankLine : lineEnd);
  return render(protocol, request, optionsOf(answer)).map((event, at) => unitOf(event, at, answer));
};

const optionsOf = ({ background, content, finish, usage }: Answer): AnswerOptions => ({
  usage,
  background: background ?? false,
  ...(content === undefined ? {} : { content }),
  ...(finish === undefined ? {} : { finish }),
});

const unitOf = ({ frame, ...rest }: AnswerEvent, at: number, { ids }: Answer): Unit => ({
  ...rest,
  bytes: Buffer.concat([Buffer.from(ids === true ? `id: ${at}\n` : ""), Buffer.from(frame)]),
});

const blankLine = /(?:\r\n\r\n|\n\n|\r\r)[\r\n]*/g;
const lineEnd = /\n/g;

/** Cuts recorded bytes after the end of every event, so that events can be counted and paced. The bytes stay unchanged. */
const splitEvents = (raw: Uint8Array, eventEnd: RegExp): ReadonlyArray<Unit> => {
  // latin1 maps each byte to one code unit, so text offsets are byte offsets.
  const text = Buffer.from(raw).toString("latin1");
  const units: Array<Unit> = [];
  let start = 0;
  for (const match of text.matchAll(eventEnd)) {
    const end = match.index + match[0].length;
    units.push(plainUnit(raw.subarray(start, end)));
    start = end;
  }
  if (start < raw.byteLength) units.push(plainUnit(raw.subarray(start)));
  return units;
};

/** Returns the body offset of a break, in bytes; undefined if the break is outside the body. */
const cutAt = (units: ReadonlyArray<Unit>, { at, n }: Break): number | undefined => {
  const startOf = (index: number) => units.slice(0, index).reduce((sum, unit) => sum + unit.bytes.byteLength, 0);
  switch (at) {
    case "after_head":
      return 0;
    case "byte":
      return Math.min(n, startOf(units.length));
    case "event":
      return startOf(n);
    case "terminal": {
      const index = units.findIndex((unit) => unit.role === "terminal");
      return startOf(index === -1 ? units.length : index);
    }
    case "utf8": {
      const start = startOf(n);
      const inside = Buffer.concat(units.slice(n).map((unit) => unit.bytes)).findIndex((byte) => byte >= 0xc0);
      return inside === -1 ? startOf(units.length) : start + inside + 1;
    }
    case "tool_arguments":
      return middleOfArguments(units, startOf);
    default:
      return undefined;
  }
};

/** Returns the middle of the first call's arguments: the start of their middle event, or the middle of their only event. */
const middleOfArguments = (units: ReadonlyArray<Unit>, startOf: (index: number) => number): number => {
  const first = units.findIndex((unit) => unit.role === "arguments");
  if (first === -1) return startOf(units.length);
  let last = first;
  while (units[last]?.call === undefined && units[last + 1]?.role === "arguments") last += 1;
  if (last > first) return startOf(first + Math.ceil((last - first + 1) / 2));
  const only = units[first];
  const input = Buffer.from(only?.call?.input ?? "");
  const inside = only === undefined ? -1 : Buffer.from(only.bytes).indexOf(input);
  return startOf(first) + Math.max(inside, 0) + Math.floor(input.byteLength / 2);
};

const cutPieces = (
  units: ReadonlyArray<Unit>,
  cut: number | undefined,
  writeBytes: number | undefined,
): ReadonlyArray<Piece> => {
  const pieces: Array<Piece> = [];
  let offset = 0;
  for (const unit of units) {
    const room = cut === undefined ? unit.bytes.byteLength : Math.min(cut - offset, unit.bytes.byteLength);
    if (room <= 0) break;
    const size = writeBytes ?? room;
    for (let at = 0; at < room; at += size) {
      const end = Math.min(at + size, room);
      pieces.push(piece(unit, at, end));
    }
    offset += room;
  }
  return pieces;
};

/**
 * Returns a piece of a unit. The unit counts as sent once its last byte is sent, because a frame without its blank line is not an event.
 */
const piece = (unit: Unit, from: number, to: number): Piece => {
  const whole = to === unit.bytes.byteLength;
  return {
    bytes: unit.bytes.subarray(from, to),
    text: whole && unit.role === "text" ? unit.serials : [],
    reasoning: whole && unit.role === "reasoning" ? unit.serials : [],
    ...(whole && unit.call !== undefined ? { call: unit.call } : {}),
    event_end: whole,
    terminal: whole && unit.role === "terminal",
  };
};
