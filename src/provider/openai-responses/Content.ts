/**
 * Reads what a part of an OpenAI response says about the answer: its output items, as they will be sent back.
 */
import * as Json from "../../domain/Json.ts";
import { begunIn, type Change, frameOf, keyOf as keyOfCall, nothing, type Read } from "../continuation/Reading.ts";
import type { Part } from "../stream/Protocol.ts";
import * as ResponsesItem from "./Item.ts";
import { keyOf } from "./Slots.ts";

/** Reads one part. What of its text is new the decoder says: servers tell a text in deltas, in its end, or only at the end of all. */
export const openAiResponses = (part: Part): Read => {
  const frame = frameOf(part);
  if (frame === undefined) return nothing;
  const key = `item ${keyOf(frame)}`;
  switch (frame.type ?? part.event.event) {
    case "response.output_item.added":
    case "response.output_item.done":
      return said([...item(part, frame, key), ...messageTexts(key, Json.record(frame.item))]);
    case "response.output_text.delta":
    case "response.audio.transcript.delta":
    case "response.output_audio_transcript.delta":
      return said([text(key, "output_text", contentIndex(frame), frame.delta)]);
    case "response.refusal.delta":
      return said([text(key, "refusal", contentIndex(frame), frame.delta)]);
    case "response.output_text.done":
    case "response.refusal.done":
      return said(partTexts(key, contentIndex(frame), frame));
    case "response.content_part.added":
    case "response.content_part.done":
      return said(partTexts(key, contentIndex(frame), Json.record(frame.part)));
    case "response.completed":
    case "response.incomplete":
    case "response.done":
      return part.observation.shows === "text" ? said(final(Json.record(frame.response))) : nothing;
    default:
      // A preview of a picture belongs to the call that draws it.
      return part.observation.shows === "text" && Json.string(frame.type).endsWith("partial_image")
        ? said([{ op: "set", key, json: {} }])
        : nothing;
  }
};

const said = (changes: ReadonlyArray<Change>): Read => ({ changes, choices: [0] });

const contentIndex = (frame: Json.JsonRecord): number => Json.natural(frame.content_index) ?? 0;

const text = (key: string, type: string, index: number, piece: unknown): Change => ({
  op: "append",
  key,
  type: "text",
  field: `${type} ${index}`,
  text: Json.string(piece),
});

/** A content part that comes whole; the words of audio go back as text. */
const partTexts = (key: string, index: number, part: Json.JsonRecord = {}): ReadonlyArray<Change> => {
  const refused = Json.string(part.text) === "" && Json.string(part.refusal) !== "";
  return [text(key, refused ? "refusal" : "output_text", index, ResponsesItem.partText(part))];
};

const messageTexts = (key: string, message: Json.JsonRecord = {}): ReadonlyArray<Change> =>
  message.type === "message"
    ? Json.list(message.content).flatMap((part, index) => partTexts(key, index, Json.record(part)))
    : [];

/** Messages that the final response alone tells. */
const final = (response: Json.JsonRecord = {}): ReadonlyArray<Change> =>
  Json.list(response.output).flatMap((entry, index): ReadonlyArray<Change> => {
    const message = Json.record(entry) ?? {};
    const key = `item ${index}`;
    if (message.type !== "message") return [];
    return [{ op: "close", key, type: "text", json: { item: message } }, ...messageTexts(key, message)];
  });

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
