/**
 * Reads the content of the blocks of an Anthropic message.
 */
import * as Json from "../../domain/Json.ts";
import type { CallSignal } from "../../domain/Observation.ts";
import { type Content, type ItemPiece, keyOfCall, nothing } from "../stream/Content.ts";

/**
 * Reads a `content_block_start`. `readCall` reads the calls of the caller's tools.
 *
 * @param key the block's index, as in all its events
 */
export const readStart = (key: string, block: Json.JsonRecord): ReadonlyArray<Content> => {
  const type = Json.string(block.type);
  switch (type) {
    case "text": {
      const { text, ...json } = block;
      return [makeContent("text", key, Json.string(text), { type: "text", phase: "begins", field: "text", json })];
    }
    case "thinking": {
      const { signature: given, thinking, ...rest } = block;
      const signature = Json.string(given);
      const json = { ...rest, thinking: "" };
      const item: ItemPiece = { type: "reasoning", phase: "begins", field: "thinking", json, texts: { signature } };
      const content = makeContent("reasoning", key, Json.string(thinking), item);
      return [signature === "" ? content : { ...content, keep: { signature } }];
    }
    case "redacted_thinking": {
      const content = makeContent("reasoning", key, "", { type: "reasoning", phase: "begins", json: block });
      return [{ ...content, keep: { redacted_data: Json.string(block.data) } }];
    }
    case "image":
      return [{ kind: "media", choice: 0, key, text: "" }];
    case "tool_use":
      return nothing;
  }
  if (type.endsWith("tool_result"))
    return [makeContent("item", key, "", { type: "result", phase: "begins", json: block })];
  if (type.endsWith("tool_use"))
    return [makeContent("item", key, "", { type: "hosted", phase: "begins", json: block })];
  return nothing;
};

/** Reads the block in which a call begins. */
export const readCall = (signals: ReadonlyArray<CallSignal>, block: Json.JsonRecord): ReadonlyArray<Content> => {
  const [signal] = signals;
  return signal?.executor === "runtime" ? [makeContent("call", keyOfCall(signal), "", { json: block })] : nothing;
};

/** Reads a `content_block_delta`. If a server omits the start of a block, only a text delta begins a new item. */
export const readDelta = (key: string, delta: Json.JsonRecord): ReadonlyArray<Content> => {
  switch (delta.type) {
    case "text_delta":
      return [makeContent("text", key, Json.string(delta.text), textItem)];
    case "thinking_delta":
      return [makeContent("reasoning", key, Json.string(delta.thinking), thinkingItem)];
    case "signature_delta": {
      const signature = Json.string(delta.signature);
      return [{ ...makeContent("reasoning", key, "", { texts: { signature } }), keep: { signature } }];
    }
    case "input_json_delta":
      // Only a hosted call has an item under its block's key. The decoder's signals carry the caller's own calls completely.
      return [makeContent("item", key, "", { texts: { input_text: Json.string(delta.partial_json) } })];
    case "citations_delta":
      return delta.citation === undefined
        ? nothing
        : [makeContent("item", key, "", { json: { citations: [delta.citation] } })];
    default:
      return nothing;
  }
};

/** Reads a `content_block_stop`. */
export const readStop = (key: string): ReadonlyArray<Content> => [makeContent("item", key, "", { phase: "ends" })];

const textItem: ItemPiece = { type: "text", field: "text" };
const thinkingItem: ItemPiece = { field: "thinking" };

const makeContent = (kind: Content["kind"], key: string, text: string, item: ItemPiece): Content => ({
  kind,
  choice: 0,
  key,
  text,
  item,
});
