/**
 * Requests that are bound to their provider's account, by every field of the table.
 */
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { byProtocol } from "../../samples/index.ts";

/** A body of each protocol that nothing binds. */
export const free = byProtocol(({ question }) => question("hi"));

export const responses = (more: object) => ({ ...free["openai-responses"], ...more });
export const item = (it: object) => responses({ input: [{ role: "user", content: "hi" }, it] });
export const chat = (more: object) => ({ ...free["openai-chat"], ...more });
export const said = (it: object) => chat({ messages: [{ role: "assistant", content: "", ...it }] });
export const anthropic = (more: object) => ({ ...free["anthropic-messages"], ...more });
export const block = (it: object) =>
  anthropic({ messages: [{ role: "assistant", content: [{ type: "text", text: "" }, it] }] });
export const gemini = (more: object) => ({ ...free["google-gemini"], ...more });
export const part = (it: object) => gemini({ contents: [{ role: "model", parts: [it] }] });
export const interaction = (more: object) => ({ ...free["google-interactions"], ...more });

/** Every field of the table at its place in each protocol. */
export const boundBodies: ReadonlyArray<readonly [field: string, protocol: ProtocolId, body: object]> = [
  ["previous_response_id", "openai-responses", responses({ previous_response_id: "resp_1" })],
  ["previous_response_id", "google-gemini", gemini({ previousInteractionId: "i" })],
  ["previous_response_id", "google-interactions", interaction({ previous_interaction_id: "v1_a" })],
  ["conversation", "openai-responses", responses({ conversation: "conv_1" })],
  ["conversation", "openai-responses", responses({ conversation: { id: "conv_1" } })],
  ["store", "openai-responses", responses({ store: true })],
  ["store", "openai-responses", { model: "m", input: "hi", stream: true }],
  ["store", "openai-chat", chat({ store: true })],
  ["store", "google-interactions", { model: "m", input: "hi" }],
  ["store", "mistral-conversations", { model: "m", inputs: "hi" }],
  ["agent", "mistral-conversations", { ...free["mistral-conversations"], agent_id: "ag_1" }],
  ["background", "openai-responses", responses({ background: true })],
  ["background", "google-interactions", interaction({ background: true })],
  ["agent", "google-interactions", interaction({ agent: "deep-research" })],
  ["agent", "google-interactions", interaction({ environment: "env_1" })],
  ["project", "google-code-assist", { model: "m", project: "p", request: { contents: [] } }],
  ["context", "ollama", { model: "m", prompt: "hi", context: [1, 2] }],
  ["prompt.id", "openai-responses", responses({ prompt: { id: "pmpt_1" } })],
  ["encrypted_content", "openai-responses", item({ type: "reasoning", summary: [], encrypted_content: "gAAA" })],
  ["encrypted_content", "openai-responses", item({ type: "compaction", encrypted_content: "gAAA" })],
  [
    "encrypted_content",
    "anthropic-messages",
    block({ type: "web_search_tool_result", content: [{ type: "web_search_result", encrypted_content: "Eq" }] }),
  ],
  [
    "encrypted_content",
    "anthropic-messages",
    block({ type: "text", text: "", citations: [{ type: "web_search_result_location", encrypted_index: "Eo" }] }),
  ],
  ["encrypted_content", "openai-chat", said({ reasoning_details: [{ type: "reasoning.encrypted", data: "x" }] })],
  ["signature", "anthropic-messages", block({ type: "thinking", thinking: "hm", signature: "Er" })],
  ["signature", "openai-chat", said({ thinking_blocks: [{ thinking: "hm", signature: "Er" }] })],
  ["signature", "openai-chat", said({ reasoning_details: [{ type: "reasoning.text", text: "", signature: "Er" }] })],
  ["signature", "google-interactions", interaction({ input: [{ type: "thought", signature: "Er" }] })],
  ["redacted_thinking", "anthropic-messages", block({ type: "redacted_thinking", data: "Em" })],
  ["thoughtSignature", "google-gemini", part({ text: "", thoughtSignature: "Ci" })],
  ["thoughtSignature", "google-gemini", part({ functionCall: { name: "f", args: {} }, thought_signature: "Ci" })],
  [
    "thoughtSignature",
    "openai-chat",
    said({ tool_calls: [{ id: "c", extra_content: { google: { thought_signature: "Ci" } } }] }),
  ],
  ["item_reference", "openai-responses", item({ type: "item_reference", id: "msg_1" })],
  ["item_reference", "openai-responses", item({ id: "msg_1" })],
  ["item_reference", "openai-responses", item({ type: "image_generation_call", id: "ig_1" })],
  ["file_id", "openai-responses", item({ role: "user", content: [{ type: "input_file", file_id: "file-1" }] })],
  ["file_id", "openai-responses", item({ role: "user", content: [{ type: "input_image", file_id: "file-1" }] })],
  [
    "file_id",
    "openai-chat",
    chat({ messages: [{ role: "user", content: [{ type: "file", file: { file_id: "f" } }] }] }),
  ],
  ["file_id", "anthropic-messages", block({ type: "document", source: { type: "file", file_id: "file_1" } })],
  ["file_id", "anthropic-messages", block({ type: "container_upload", file_id: "file_1" })],
  ["file_id", "openai-responses", responses({ tools: [{ type: "x", container: { type: "auto", file_ids: ["f"] } }] })],
  ["fileUri", "google-gemini", part({ fileData: { fileUri: "https://g/files/1" } })],
  ["fileUri", "google-gemini", part({ file_data: { file_uri: "https://g/files/1" } })],
  ["cachedContent", "google-gemini", gemini({ cachedContent: "cachedContents/1" })],
  ["vector_store_ids", "openai-responses", responses({ tools: [{ type: "file_search", vector_store_ids: ["vs_1"] }] })],
  ["vector_store_ids", "google-gemini", gemini({ tools: [{ fileSearch: { fileSearchStoreNames: ["s"] } }] })],
  [
    "vector_store_ids",
    "google-gemini",
    gemini({ tools: [{ retrieval: { vertexRagStore: { ragResources: [{ ragCorpus: "corpus" }] } } }] }),
  ],
  [
    "vector_store_ids",
    "google-gemini",
    gemini({ tools: [{ retrieval: { vertexAiSearch: { datastore: "datastore" } } }] }),
  ],
  // It holds the key of a search service, too.
  [
    "vector_store_ids",
    "openai-chat",
    chat({ data_sources: [{ type: "azure_search", parameters: { index_name: "i" } }] }),
  ],
  ["container", "anthropic-messages", anthropic({ container: "container_1" })],
  ["container", "anthropic-messages", anthropic({ container: { skills: [{ type: "custom", skill_id: "s" }] } })],
  ["container", "openai-responses", responses({ tools: [{ type: "code_interpreter", container: "cntr_1" }] })],
  ["container", "openai-responses", item({ type: "code_interpreter_call", container_id: "cntr_1" })],
  ["audio.id", "openai-chat", said({ audio: { id: "audio_1" } })],
  ["mcp", "anthropic-messages", anthropic({ mcp_servers: [{ type: "url", url: "https://m", name: "m" }] })],
  ["mcp", "openai-responses", responses({ tools: [{ type: "mcp", server_label: "m", server_url: "https://m" }] })],
  ["mcp", "openai-responses", item({ type: "mcp_approval_response", approval_request_id: "mcpr_1", approve: true })],
  ["tools", "openai-responses", responses({ tools: [{ type: "code_interpreter", container: { type: "auto" } }] })],
  ["tools", "openai-responses", responses({ tools: [{ type: "shell", environment: { type: "container_auto" } }] })],
  ["tools", "openai-responses", responses({ tools: [{ type: "a_tool_that_is_not_known" }] })],
  ["tools", "anthropic-messages", anthropic({ tools: [{ type: "code_execution_20250825", name: "code_execution" }] })],
  ["tools", "google-gemini", gemini({ tools: [{ somethingNew: {} }] })],
];
