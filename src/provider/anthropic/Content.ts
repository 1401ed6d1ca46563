/**
 * Reads what a part of an Anthropic message says about the answer: its content blocks, as they will be sent back.
 */
import * as Json from "../../domain/Json.ts";
import { begunIn, type Change, frameOf, keyOf, nothing, type Read } from "../continuation/Reading.ts";
import type { Part } from "../stream/Protocol.ts";

/** Reads one part. */
export const anthropicMessages = (part: Part): Read => {
  const frame = frameOf(part);
  if (frame === undefined) return nothing;
  const key = `block ${String(frame.index)}`;
  switch (frame.type ?? part.event.event) {
    case "content_block_start":
      return said(opened(part, key, Json.record(frame.content_block) ?? {}));
    case "content_block_delta":
      return said(grown(key, Json.record(frame.delta) ?? {}));
    case "content_block_stop":
      return said([{ op: "close", key }]);
    default:
      return nothing;
  }
};

const said = (changes: ReadonlyArray<Change>): Read => ({ changes, choices: [0] });

const opened = (part: Part, key: string, block: Json.JsonRecord): ReadonlyArray<Change> => {
  const type = Json.string(block.type);
  if (type === "tool_use") {
    const [call] = begunIn(part);
    return call === undefined ? [] : [{ op: "set", key: keyOf(call), json: block }];
  }
  if (type === "text") {
    const { text, ...rest } = block;
    const start: Change = { op: "open", key, type: "text", json: rest };
    return [start, { op: "append", key, type: "text", field: "text", text: Json.string(text) }];
  }
  if (type === "thinking") {
    const { signature, thinking, ...rest } = block;
    return [
      { op: "open", key, type: "reasoning", json: { ...rest, thinking: "" } },
      { op: "append", key, field: "thinking", text: Json.string(thinking) },
      { op: "append", key, field: "signature", text: Json.string(signature) },
    ];
  }
  if (type === "redacted_thinking") return [{ op: "open", key, type: "reasoning", json: block }];
  if (type.endsWith("tool_result")) return [{ op: "open", key, type: "result", json: block }];
  if (type.endsWith("tool_use")) return [{ op: "open", key, type: "hosted", json: block }];
  return [];
};

const grown = (key: string, delta: Json.JsonRecord): ReadonlyArray<Change> => {
  switch (delta.type) {
    case "text_delta":
      return [{ op: "append", key, type: "text", field: "text", text: Json.string(delta.text) }];
    case "thinking_delta":
      return [{ op: "append", key, field: "thinking", text: Json.string(delta.thinking) }];
    case "signature_delta":
      return [{ op: "append", key, field: "signature", text: Json.string(delta.signature) }];
    case "input_json_delta":
      // Only a hosted call has an item under its block's key: the caller's own calls are told whole by the decoder.
      return [{ op: "append", key, field: "input_text", text: Json.string(delta.partial_json) }];
    case "citations_delta":
      return delta.citation === undefined ? [] : [{ op: "set", key, json: { citations: [delta.citation] } }];
    default:
      return [];
  }
};
