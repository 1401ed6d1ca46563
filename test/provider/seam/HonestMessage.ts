/**
 * Makes honest continuations of a recorded message of Anthropic: a new message that begins with the anchor and goes on as the
 * recording does.
 */
import * as Json from "../../../src/domain/Json.ts";
import type { ShownResponse } from "../../../src/seam/ShownText.ts";
import { named, type WireEvent } from "./JoinedStream.ts";

/** How a continuation differs from a plain one. */
export interface Honesty {
  /** How many characters at the end of the shown run it says again; left out: all of them. */
  readonly anchor?: number;
  /** It thinks first. */
  readonly thinks?: boolean;
  /** Its text comes in pieces of so many characters. */
  readonly pieces?: number;
}

/** The text of the anchor. */
const anchorOf = (run: string, { anchor }: Honesty): string =>
  anchor === undefined ? run : run.slice(Math.max(0, run.length - anchor));

interface Block {
  readonly start: Json.JsonRecord;
  readonly deltas: Array<Json.JsonRecord>;
  closed: boolean;
}

/** The blocks of a whole message, with what ends it. */
const blocksOf = (events: ReadonlyArray<WireEvent>) => {
  const blocks: Array<Block> = [];
  const tail: Array<WireEvent> = [];
  for (const event of events) {
    const frame = Json.record(event.json) ?? {};
    if (frame.type === "content_block_start")
      blocks.push({ start: Json.record(frame.content_block) ?? {}, deltas: [], closed: false });
    else if (frame.type === "content_block_delta") blocks.at(-1)?.deltas.push(Json.record(frame.delta) ?? {});
    else if (frame.type === "content_block_stop") for (const block of blocks.slice(-1)) block.closed = true;
    else if (frame.type === "message_delta" || frame.type === "message_stop" || tail.length > 0) tail.push(event);
  }
  return { blocks, tail };
};

const isText = ({ start }: Block): boolean => start.type === "text";

const textOf = ({ deltas, start }: Block): string =>
  Json.string(start.text) + deltas.map((delta) => Json.string(delta.text)).join("");

/** Cuts characters off the front of blocks of text; blocks of which nothing is left go. */
const without = (blocks: ReadonlyArray<Block>, characters: number): ReadonlyArray<Block> => {
  let rest = characters;
  return blocks.flatMap((block) => {
    if (!isText(block) || rest === 0) return [block];
    const length = textOf(block).length;
    if (length <= rest) {
      rest -= length;
      return [];
    }
    const take = (text: string): string => {
      const cut = Math.min(rest, text.length);
      rest -= cut;
      return text.slice(cut);
    };
    const start = { ...block.start, text: take(Json.string(block.start.text)) };
    return [
      {
        ...block,
        start,
        deltas: block.deltas.map((delta) =>
          "text" in delta ? { ...delta, text: take(Json.string(delta.text)) } : delta,
        ),
      },
    ];
  });
};

const piecesOf = (deltas: ReadonlyArray<Json.JsonRecord>, size: number | undefined): ReadonlyArray<Json.JsonRecord> =>
  size === undefined
    ? deltas
    : deltas.flatMap((delta) => {
        const text = Json.string(delta.text);
        if (text === "") return [delta];
        const count = Math.ceil(text.length / size);
        return Array.from({ length: count }, (_, at) => ({ ...delta, text: text.slice(at * size, (at + 1) * size) }));
      });

const thinking: Block = {
  start: { type: "thinking", thinking: "", signature: "" },
  deltas: [
    { type: "thinking_delta", thinking: "Where was I?" },
    { type: "signature_delta", signature: "second" },
  ],
  closed: true,
};

/**
 * The continuation of a message.
 *
 * @param whole the unbroken recording
 */
export const honestMessage = (
  whole: ReadonlyArray<WireEvent>,
  { run }: ShownResponse,
  seen: number,
  honesty: Honesty = {},
): ReadonlyArray<WireEvent> => {
  const { blocks, tail } = blocksOf(whole);
  // The blocks of the run that is open: behind the last of those that had begun and is no text.
  const from = blocks.slice(0, seen).findLastIndex((block) => !isText(block)) + 1;
  const rest = without(blocks.slice(from), run.length - anchorOf(run, honesty).length);
  const told = honesty.thinks === true ? [thinking, ...rest] : rest;
  const message = { id: "msg_second", type: "message", role: "assistant", model: "claude-second", content: [] };
  const usage = { input_tokens: 999, cache_read_input_tokens: 7, output_tokens: 2 };
  return [
    named({ type: "message_start", message: { ...message, stop_reason: null, stop_sequence: null, usage } }),
    named({ type: "ping" }),
    ...told.flatMap(({ closed, deltas, start }, index) => [
      named({ type: "content_block_start", index, content_block: start }),
      ...piecesOf(deltas, honesty.pieces).map((delta) => named({ type: "content_block_delta", index, delta })),
      ...(closed ? [named({ type: "content_block_stop", index })] : []),
    ]),
    ...tail,
  ];
};

/** How many blocks have begun. */
export const blocksBegun = (events: ReadonlyArray<WireEvent>): number =>
  events.filter(({ json }) => Json.record(json)?.type === "content_block_start").length;
