/**
 * Makes honest continuations of a recorded response of OpenAI Responses: a new response that begins with the anchor and goes on
 * as the recording does.
 */
import * as Json from "../../../src/domain/Json.ts";
import type { ShownResponse } from "../../../src/seam/ShownText.ts";
import { named, type WireEvent } from "./JoinedStream.ts";

/** How a continuation differs from a plain one. */
export interface ResponseHonesty {
  /** How many characters at the end of the shown run it says again, where they lie in its first text; left out: all of them. */
  readonly anchor?: number;
  /** It reasons first. */
  readonly thinks?: boolean;
  /** Its text comes in pieces of so many characters. */
  readonly pieces?: number;
}

type Frame = Json.JsonRecord;

const typeOf = (frame: Frame): string => Json.string(frame.type);

const framesOf = (events: ReadonlyArray<WireEvent>): ReadonlyArray<Frame> =>
  events.map(({ json }) => Json.record(json) ?? {});

const isEnd = (frame: Frame): boolean => /^response\.(?:completed|incomplete|failed|done)$/.test(typeOf(frame));

/** The items that have begun, in order. */
const itemsOf = (frames: ReadonlyArray<Frame>): ReadonlyArray<Frame> =>
  frames.filter((frame) => typeOf(frame) === "response.output_item.added");

const itemType = (frame: Frame): string => Json.string(Json.record(frame.item)?.type);

/** The events of the open run of text and what follows it, and how many items stand in front of it. */
const restOf = (whole: ReadonlyArray<WireEvent>, first: ReadonlyArray<WireEvent>) => {
  const frames = framesOf(whole);
  const items = itemsOf(frames);
  const begun = itemsOf(framesOf(first)).length;
  const from = items.slice(0, begun).findLastIndex((frame) => itemType(frame) !== "message") + 1;
  const indexes = new Map(items.slice(from).map((frame, at) => [frame.output_index, at]));
  const rest = frames.filter((frame) => indexes.has(frame.output_index));
  const end = frames.find(isEnd) ?? {};
  return { rest, indexes, end, from };
};

/** How much of the run is not said again. */
const dropped = (rest: ReadonlyArray<Frame>, run: string, { anchor }: ResponseHonesty): number => {
  if (anchor === undefined) return 0;
  const text = rest.find((frame) => typeOf(frame) === "response.output_text.done");
  const count = Math.max(0, run.length - anchor);
  return count < Json.string(text?.text).length ? count : 0;
};

const reasoning = {
  type: "reasoning",
  id: "rs_second",
  summary: [{ type: "summary_text", text: "Where was I?" }],
  encrypted_content: "sealed",
};

const thought: ReadonlyArray<Frame> = [
  { type: "response.output_item.added", output_index: 0, item: { ...reasoning, summary: [] } },
  {
    type: "response.reasoning_summary_part.added",
    item_id: "rs_second",
    output_index: 0,
    summary_index: 0,
    part: { type: "summary_text", text: "" },
  },
  {
    type: "response.reasoning_summary_text.delta",
    item_id: "rs_second",
    output_index: 0,
    summary_index: 0,
    delta: "Where was I?",
  },
  { type: "response.output_item.done", output_index: 0, item: reasoning },
];

/** The continuation of a response. */
export const honestResponse = (
  whole: ReadonlyArray<WireEvent>,
  first: ReadonlyArray<WireEvent>,
  { run }: ShownResponse,
  honesty: ResponseHonesty = {},
): ReadonlyArray<WireEvent> => {
  const { end, from, indexes, rest } = restOf(whole, first);
  const drop = dropped(rest, run, honesty);
  const shift = honesty.thinks === true ? 1 : 0;
  const own = (id: unknown) => (typeof id === "string" ? `c_${id}` : id);
  const annotation = (value: unknown): unknown => {
    const given = Json.record(value) ?? {};
    const back = (index: unknown) => (typeof index === "number" ? { was: index - drop } : undefined);
    return {
      ...given,
      ...(back(given.start_index) && { start_index: back(given.start_index)?.was }),
      ...(back(given.end_index) && { end_index: back(given.end_index)?.was }),
      ...(back(given.index) && { index: back(given.index)?.was }),
    };
  };
  const part = (value: unknown, isFirst: boolean): unknown => {
    const given = Json.record(value) ?? {};
    if (!isFirst || given.type !== "output_text") return given;
    const annotations = Array.isArray(given.annotations) ? { annotations: given.annotations.map(annotation) } : {};
    return { ...given, ...annotations, text: Json.string(given.text).slice(drop) };
  };
  const item = (value: unknown, isFirst: boolean): Frame => {
    const given = Json.record(value) ?? {};
    const content = Array.isArray(given.content)
      ? { content: given.content.map((one, at) => part(one, isFirst && at === 0)) }
      : {};
    return { ...given, ...content, ...(given.id === undefined ? {} : { id: own(given.id) }) };
  };
  let left = drop;
  const events = rest.flatMap((frame): ReadonlyArray<Frame> => {
    const isFirst = indexes.get(frame.output_index) === 0;
    const isFirstPart = isFirst && (frame.content_index ?? 0) === 0;
    const output_index = (indexes.get(frame.output_index) ?? 0) + shift;
    const moved = { ...frame, output_index, ...(frame.item_id === undefined ? {} : { item_id: own(frame.item_id) }) };
    if (frame.item !== undefined) return [{ ...moved, item: item(frame.item, isFirst) }];
    if (frame.part !== undefined) return [{ ...moved, part: part(frame.part, isFirstPart) }];
    if (frame.annotation !== undefined && isFirstPart) return [{ ...moved, annotation: annotation(frame.annotation) }];
    if (typeOf(frame) === "response.output_text.done" && isFirstPart)
      return [{ ...moved, text: Json.string(frame.text).slice(drop) }];
    if (typeOf(frame) !== "response.output_text.delta") return [moved];
    const text = Json.string(frame.delta);
    const cut = isFirstPart ? Math.min(left, text.length) : 0;
    left -= cut;
    const said = text.slice(cut);
    const size = honesty.pieces ?? Math.max(1, said.length);
    return Array.from({ length: Math.ceil(said.length / size) }, (_, at) => ({
      ...moved,
      delta: said.slice(at * size, (at + 1) * size),
    }));
  });
  const response = Json.record(end.response) ?? {};
  const output = Json.list(response.output)
    .slice(from)
    .map((one, at) => item(one, at === 0));
  const identity = {
    id: "resp_second",
    object: "response",
    created_at: 1,
    model: "second",
    status: "in_progress",
    output: [],
  };
  const all = [
    { type: "response.created", response: identity },
    { type: "response.in_progress", response: identity },
    ...(shift === 1 ? thought : []),
    ...events,
    {
      ...end,
      response: {
        ...response,
        id: "resp_second",
        created_at: 1,
        output: [...(shift === 1 ? [reasoning] : []), ...output],
      },
    },
  ];
  return all.map((frame, sequence_number) => named({ ...frame, sequence_number }));
};
