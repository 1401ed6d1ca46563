/**
 * Reads the content of a line of Ollama: the `message` of `/api/chat`, or the `response` of `/api/generate`.
 */
import * as Json from "../../domain/Json.ts";
import { type Content, type ItemPiece, keyOfCall, nothing } from "../stream/Content.ts";

/**
 * Reads a line.
 *
 * @param calls number of calls before this line
 */
export const readWords = (line: Json.JsonRecord, calls: number): ReadonlyArray<Content> => {
  const message = Json.record(line.message);
  const text = Json.string(message === undefined ? line.response : message.content);
  const thought = Json.string((message ?? line).thinking);
  const called = Json.list(message?.tool_calls);
  const image = Json.string(line.image);
  if (thought === "" && called.length === 0 && image === "") return text === "" ? nothing : [textContent(text)];
  return [
    ...(thought === "" ? [] : [reasoningContent(thought)]),
    ...(text === "" ? [] : [textContent(text)]),
    ...(image === "" ? [] : [imageContent(image)]),
    ...called.map((_, at) => callContent(calls + at)),
  ];
};

const textItem: ItemPiece = { type: "text", field: "text" };
const reasoningItem: ItemPiece = { type: "reasoning", field: "thinking" };

const textContent = (text: string): Content => ({ kind: "text", choice: 0, key: "text", text, item: textItem });

const reasoningContent = (text: string): Content => ({
  kind: "reasoning",
  choice: 0,
  key: "thinking",
  text,
  item: reasoningItem,
});

/** An image of a model that generates images, as base64 of a PNG file. */
const imageContent = (data: string): Content => ({
  kind: "media",
  choice: 0,
  key: "image",
  text: "",
  file: { mediaType: "image/png", data },
});

const callContent = (ordinal: number): Content => ({
  kind: "call",
  choice: 0,
  key: keyOfCall({ choice: 0, ordinal }),
  text: "",
});
