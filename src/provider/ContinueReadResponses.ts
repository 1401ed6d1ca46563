/**
 * Reads what a part of an OpenAI response says about the answer: its output items, as they will be sent back.
 */
import * as Json from "../domain/Json.ts";
import { begunIn, type Change, frameOf, keyOf as keyOfCall, nothing, type Read } from "./ContinueReading.ts";
import type { Part } from "./Protocol.ts";
import * as ResponsesItem from "./ResponsesItem.ts";
import { keyOf } from "./ResponsesSlots.ts";

/** Reads one part. */
export const openAiResponses = (part: Part): Read => {
  const frame = frameOf(part);
  if (frame === undefined) return nothing;
  const key = `item ${keyOf(frame)}`;
  switch (frame.type ?? part.event.event) {
    case "response.output_item.added":
    case "response.output_item.done":
      return said(item(part, frame, key));
    case "response.output_text.delta":
      return said(text(key, frame, "output_text", frame.delta));
    case "response.refusal.delta":
      return said(text(key, frame, "refusal", frame.delta));
    default:
      return nothing;
  }
};

const said = (changes: ReadonlyArray<Change>): Read => ({ changes, choices: [0] });

const text = (key: string, frame: Json.JsonRecord, type: string, delta: unknown): ReadonlyArray<Change> => [
  {
    op: "append",
    key,
    type: "text",
    field: `${type} ${Json.natural(frame.content_index) ?? 0}`,
    text: Json.string(delta),
  },
];

const item = (part: Part, frame: Json.JsonRecord, key: string): ReadonlyArray<Change> => {
  const json = Json.record(frame.item);
  if (json === undefined) return [];
  const done = (frame.type ?? part.event.event) === "response.output_item.done";
  const read = ResponsesItem.read(json, false);
  const calls = begunIn(part);
  // The decoder knows better who runs a call.
  if (read.role === "call" && (calls.length > 0 || read.executor === "runtime"))
    return calls.map((call) => ({ op: "set", key: keyOfCall(call), json: { item: json } }));
  const type =
    read.role === "message"
      ? "text"
      : read.role === "reasoning"
        ? "reasoning"
        : read.role === "call"
          ? "hosted"
          : read.role === "result"
            ? "result"
            : undefined;
  if (type === undefined) return [];
  const fields = { item: json };
  return done ? [{ op: "close", key, type, json: fields }] : [{ op: "open", key, type, json: fields }];
};
