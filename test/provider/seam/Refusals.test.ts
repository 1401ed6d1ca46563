/**
 * What a request says that forbids to go on with the text of its response: each protocol's table, row by row.
 */
import { assert, describe, it } from "@effect/vitest";
import type { SeamRefusal } from "../../../src/domain/SeamWords.ts";
import { type ProtocolId, protocols } from "../../../src/provider/Protocols.ts";

type Rows = ReadonlyArray<readonly [refusal: SeamRefusal | undefined, body: object]>;

const config = (generationConfig: object) => ({ contents: [], generationConfig });
const mode = (mode: string) => ({ contents: [], toolConfig: { functionCallingConfig: { mode } } });
const kept = (body: object) => ({ store: false, ...body });

const tables: Partial<Record<ProtocolId, Rows>> = {
  "openai-chat": [
    [undefined, { messages: [], max_tokens: 9, temperature: 0, stop: ["x"], response_format: { type: "text" } }],
    [undefined, { n: 1, logprobs: false, top_logprobs: null, modalities: ["text"], audio: null, store: false }],
    [undefined, { tool_choice: "auto", prediction: { type: "content", content: "x" }, web_search_options: {} }],
    [undefined, { tool_choice: "none", function_call: "auto" }],
    [undefined, { tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [] } } }],
    ["structured_output", { response_format: { type: "json_object" } }],
    ["structured_output", { response_format: { type: "json_schema", json_schema: {} } }],
    ["structured_output", { guided_json: {} }],
    ["structured_output", { guided_regex: "a+" }],
    ["structured_output", { grammar: "root ::= x" }],
    ["several_choices", { n: 2 }],
    ["several_choices", { best_of: 3 }],
    ["logprobs", { logprobs: true }],
    ["logprobs", { top_logprobs: 2 }],
    ["not_text", { modalities: ["text", "audio"], audio: { voice: "x" } }],
    ["not_text", { modalities: ["image", "text"] }],
    ["server_state", { store: true }],
    ["forced_tool", { tool_choice: "required" }],
    ["forced_tool", { tool_choice: "any" }],
    ["forced_tool", { tool_choice: { type: "function", function: { name: "f" } } }],
    ["forced_tool", { tool_choice: { type: "allowed_tools", allowed_tools: { mode: "required", tools: [] } } }],
    ["forced_tool", { function_call: { name: "f" } }],
  ],
  "openai-responses": [
    [undefined, kept({ input: "hi", text: { format: { type: "text" } }, tool_choice: "auto", top_logprobs: 0 })],
    [undefined, kept({ include: ["reasoning.encrypted_content"], background: false, conversation: null })],
    [undefined, kept({ tool_choice: { type: "allowed_tools", mode: "auto", tools: [] } })],
    ["server_state", { input: "hi" }],
    ["server_state", { store: true }],
    ["server_state", { store: null }],
    ["server_state", kept({ conversation: "conv_1" })],
    ["server_state", kept({ previous_response_id: "resp_1" })],
    ["server_state", kept({ background: true })],
    ["structured_output", kept({ text: { format: { type: "json_schema" } } })],
    ["structured_output", kept({ text: { format: { type: "json_object" } } })],
    ["several_choices", kept({ n: 2 })],
    ["logprobs", kept({ top_logprobs: 3 })],
    ["logprobs", kept({ include: ["message.output_text.logprobs"] })],
    ["not_text", kept({ modalities: ["audio"] })],
    ["forced_tool", kept({ tool_choice: "required" })],
    ["forced_tool", kept({ tool_choice: { type: "web_search_preview" } })],
    ["forced_tool", kept({ tool_choice: { type: "allowed_tools", mode: "required", tools: [] } })],
  ],
  "anthropic-messages": [
    [undefined, { messages: [], max_tokens: 1, thinking: { type: "adaptive" }, output_config: { effort: "high" } }],
    [undefined, { tool_choice: { type: "auto", disable_parallel_tool_use: true }, container: "c" }],
    [undefined, { tool_choice: { type: "none" } }],
    ["structured_output", { output_config: { format: { type: "json_schema" } } }],
    ["structured_output", { output_format: { type: "json_schema" } }],
    ["several_choices", { n: 2 }],
    ["forced_tool", { tool_choice: { type: "any" } }],
    ["forced_tool", { tool_choice: { type: "tool", name: "f" } }],
  ],
  "google-code-assist": [
    [undefined, { request: config({ responseMimeType: "text/plain" }) }],
    ["structured_output", { request: config({ responseSchema: {} }) }],
    ["forced_tool", { request: mode("ANY") }],
  ],
  "google-gemini": [
    [undefined, config({ responseMimeType: "text/plain", candidateCount: 1, responseModalities: ["TEXT"] })],
    [undefined, mode("AUTO")],
    [undefined, mode("VALIDATED")],
    [undefined, mode("NONE")],
    ["structured_output", config({ responseMimeType: "application/json" })],
    ["structured_output", config({ responseMimeType: "text/x.enum" })],
    ["structured_output", config({ responseSchema: {} })],
    ["structured_output", config({ responseJsonSchema: {} })],
    ["structured_output", { contents: [], generation_config: { response_mime_type: "application/json" } }],
    ["structured_output", { request: config({ responseSchema: {} }) }],
    ["several_choices", config({ candidateCount: 2 })],
    ["logprobs", config({ responseLogprobs: true })],
    ["logprobs", config({ logprobs: 2 })],
    ["not_text", config({ responseModalities: ["TEXT", "IMAGE"] })],
    ["not_text", config({ speechConfig: {} })],
    ["forced_tool", mode("ANY")],
    ["forced_tool", { contents: [], tool_config: { function_calling_config: { mode: "any" } } }],
  ],
};

describe("A request forbids to go on with the text of its response", () => {
  for (const id of protocols.ids) {
    for (const [refusal, body] of tables[id] ?? [["no_seam", {}] as const]) {
      it(`${id}: ${JSON.stringify(body)} ${refusal === undefined ? "forbids nothing" : `is ${refusal}`}`, () => {
        assert.strictEqual(protocols.get(id).seamRefusal({ ...body }), refusal);
      });
    }
  }
});
