/**
 * Events of Messages and Responses as servers write them, and what a splice makes of a few of them.
 */
import * as Json from "../../../src/domain/Json.ts";
import { protocols } from "../../../src/provider/Protocols.ts";
import { join, named, type WireEvent } from "./JoinedStream.ts";
import { plainVerifier } from "./PlainVerifier.ts";

/** An event. */
export type Frame = { readonly [key: string]: unknown };

export const messages = protocols.get("anthropic-messages");
export const responses = protocols.get("openai-responses");

/** What a client reads behind the first events, where the second ones are proven to begin with the anchor. */
export const joined = (
  protocol: typeof messages,
  first: ReadonlyArray<Frame>,
  second: ReadonlyArray<Frame>,
  anchor: string,
  holds = 0,
) => {
  const found = join(protocol, first.map(named), [
    { events: () => second.map(named), verifier: () => plainVerifier(anchor, holds) },
  ]);
  return { fault: found.fault, json: found.events.slice(first.length).map(({ json }: WireEvent) => Json.record(json)) };
};

// Messages

export const start = { type: "message_start", message: { id: "a", usage: { input_tokens: 10, output_tokens: 1 } } };
export const open = (index: number, content_block: object) => ({ type: "content_block_start", index, content_block });
export const delta = (index: number, change: object) => ({ type: "content_block_delta", index, delta: change });
export const says = (index: number, text: string) => delta(index, { type: "text_delta", text });
export const close = (index: number) => ({ type: "content_block_stop", index });
export const stop = (stop_reason: string) => ({
  type: "message_delta",
  delta: { stop_reason },
  usage: { input_tokens: 99, output_tokens: 20 },
});
export const end = { type: "message_stop" };
export const text = { type: "text", text: "" };
export const tool = { type: "tool_use", id: "t", name: "read", input: {} };
export const second = { ...start, message: { id: "b", usage: { input_tokens: 99, output_tokens: 1 } } };

// Responses

export const created = (id: string) => ({
  type: "response.created",
  response: { id, created_at: 7, model: "m", output: [] },
});
export const item = (id: string, content: ReadonlyArray<object> = []) => ({
  type: "message",
  id,
  role: "assistant",
  content,
});
export const added = (output_index: number, one: object) => ({
  type: "response.output_item.added",
  output_index,
  item: one,
});
export const done = (output_index: number, one: object) => ({
  type: "response.output_item.done",
  output_index,
  item: one,
});
export const part = (words: string, annotations: ReadonlyArray<object> = []) => ({
  type: "output_text",
  text: words,
  annotations,
});
export const at = (item_id: string, output_index: number) => ({ item_id, output_index, content_index: 0 });
export const partAdded = (id: string, index: number) => ({
  type: "response.content_part.added",
  ...at(id, index),
  part: part(""),
});
export const says2 = (id: string, index: number, words: string) => ({
  type: "response.output_text.delta",
  ...at(id, index),
  delta: words,
});
export const ends = (id: string, index: number, words: string) => [
  { type: "response.output_text.done", ...at(id, index), text: words },
  { type: "response.content_part.done", ...at(id, index), part: part(words) },
  done(index, item(id, [part(words)])),
];
export const completed = (output: ReadonlyArray<object>) => ({
  type: "response.completed",
  response: {
    id: "r2",
    created_at: 9,
    status: "completed",
    output,
    usage: { input_tokens: 5, output_tokens: 9, total_tokens: 14 },
  },
});
export const numbered = (frames: ReadonlyArray<Frame>) =>
  frames.map((frame, sequence_number) => ({ ...frame, sequence_number }));
export const shownFirst = numbered([
  created("r1"),
  added(0, item("m1")),
  partAdded("m1", 0),
  says2("m1", 0, "High water"),
]);
export const call = {
  type: "function_call",
  id: "f",
  call_id: "c",
  name: "read",
  arguments: "{}",
  status: "completed",
};
export const thought = {
  type: "reasoning",
  id: "rs",
  summary: [{ type: "summary_text", text: "Hm." }],
  encrypted_content: "x",
};
export const goesOn = (...more: ReadonlyArray<Frame>) =>
  numbered([created("r2"), added(0, thought), done(0, thought), added(1, item("m2")), partAdded("m2", 1), ...more]);
