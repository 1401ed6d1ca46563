import { assert, describe, it } from "@effect/vitest";
import { marksMax, search, valuesMax } from "../../../src/gateway/routes/Bound.ts";
import { boundRows, toolRow } from "../../../src/gateway/routes/BoundRows.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";

/** A body of each protocol that nothing binds. */
export const free: Readonly<Record<ProtocolId, Readonly<Record<string, unknown>>>> = {
  "openai-chat": { model: "m", messages: [{ role: "user", content: "hi" }], stream: true },
  "openai-responses": { model: "m", input: "hi", stream: true, store: false },
  "anthropic-messages": { model: "m", max_tokens: 9, messages: [{ role: "user", content: "hi" }], stream: true },
  "google-gemini": { contents: [{ role: "user", parts: [{ text: "hi" }] }] },
};

const responses = (more: object) => ({ ...free["openai-responses"], ...more });
const item = (it: object) => responses({ input: [{ role: "user", content: "hi" }, it] });
const chat = (more: object) => ({ ...free["openai-chat"], ...more });
const said = (it: object) => chat({ messages: [{ role: "assistant", content: "", ...it }] });
const anthropic = (more: object) => ({ ...free["anthropic-messages"], ...more });
const block = (it: object) =>
  anthropic({ messages: [{ role: "assistant", content: [{ type: "text", text: "" }, it] }] });
const gemini = (more: object) => ({ ...free["google-gemini"], ...more });
const part = (it: object) => gemini({ contents: [{ role: "model", parts: [it] }] });

/** Every field of the table where it stands in each protocol. */
export const boundBodies: ReadonlyArray<readonly [field: string, protocol: ProtocolId, body: object]> = [
  ["previous_response_id", "openai-responses", responses({ previous_response_id: "resp_1" })],
  ["previous_response_id", "google-gemini", gemini({ previousInteractionId: "i" })],
  ["conversation", "openai-responses", responses({ conversation: "conv_1" })],
  ["conversation", "openai-responses", responses({ conversation: { id: "conv_1" } })],
  ["store", "openai-responses", responses({ store: true })],
  ["store", "openai-responses", { model: "m", input: "hi", stream: true }],
  ["store", "openai-chat", chat({ store: true })],
  ["background", "openai-responses", responses({ background: true })],
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

describe("search", () => {
  for (const [field, protocol, body] of boundBodies)
    it(`finds ${field} in a request of ${protocol}: ${JSON.stringify(body).slice(0, 100)}`, () => {
      assert.strictEqual(search({ ...body }, protocol).bound, field);
    });

  it("has a case for every row of the table, in each protocol that the row names", () => {
    for (const { field, protocols } of [...boundRows, toolRow])
      for (const protocol of protocols)
        assert.isTrue(
          boundBodies.some(([of, at]) => of === field && at === protocol),
          `${field} ${protocol}`,
        );
  });

  it("finds nothing in requests that any provider can answer", () => {
    const bodies: ReadonlyArray<readonly [ProtocolId, object]> = [
      ...(Object.entries(free) as ReadonlyArray<[ProtocolId, object]>), // the record's keys are protocols
      ["openai-chat", said({ tool_calls: [{ id: "c", function: { name: "f", arguments: '{"file_id":"x"}' } }] })],
      [
        "openai-chat",
        chat({ messages: [{ role: "user", content: [{ type: "file", file: { file_data: "data:" } }] }] }),
      ],
      ["openai-responses", item({ type: "reasoning", summary: [] })],
      ["openai-responses", responses({ tools: [{ type: "web_search" }, { type: "function", name: "container" }] })],
      ["anthropic-messages", block({ type: "tool_use", id: "t", name: "f", input: { file_id: "x", signature: "s" } })],
      ["google-gemini", part({ functionCall: { name: "f", args: { fileUri: "x" } } })],
      ["google-gemini", gemini({ tools: [{ googleSearch: {} }, { codeExecution: {} }] })],
      [
        "anthropic-messages",
        anthropic({
          tools: [
            {
              name: "sign",
              input_schema: {
                properties: { signature: { type: "string" }, file_id: {}, container: { type: "string" } },
              },
            },
          ],
        }),
      ],
    ];
    for (const [protocol, body] of bodies)
      assert.isUndefined(search({ ...body }, protocol).bound, JSON.stringify(body));
  });

  it("takes a body for bound that is deeper or has more parts than what is searched", () => {
    const deep = JSON.parse(`${'{"a":'.repeat(300)}1${"}".repeat(300)}`);
    assert.strictEqual(search({ ...free["openai-chat"], deep }, "openai-chat").bound, "size");
    const wide = { ...free["openai-chat"], wide: Array.from({ length: valuesMax }, () => ({})) };
    assert.strictEqual(search(wide, "openai-chat").bound, "size");
  });

  it("tells the texts that say of which answer the history is, at most so many, the newest ones", () => {
    const marked = search(
      { ...item({ type: "reasoning", encrypted_content: "gAAA" }), previous_response_id: "resp_1" },
      "openai-responses",
    );
    assert.sameMembers([...marked.marks], ["resp_1", "gAAA"]);
    const content = Array.from({ length: marksMax + 5 }, (_, n) => ({ type: "thinking", signature: `s${n}` }));
    const { marks } = search({ messages: [{ content }] }, "anthropic-messages");
    assert.strictEqual(marks.length, marksMax);
    assert.strictEqual(marks.at(-1), `s${marksMax + 4}`);
  });
});
