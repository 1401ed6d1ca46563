/**
 * One conversation, written for each protocol, and what a provider gave to be given back.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Schema } from "effect";
import { Prompt, Response, Tool, Toolkit } from "effect/ai";
import { writeAnthropicMessages, writeBedrockInvoke } from "../../../src/adapters/provider-model/AnthropicMessages.ts";
import { writeBedrockConverse } from "../../../src/adapters/provider-model/BedrockConverse.ts";
import { writeGoogleGemini } from "../../../src/adapters/provider-model/GoogleGemini.ts";
import { writeOpenAiChat } from "../../../src/adapters/provider-model/OpenAiChat.ts";
import { writeOpenAiResponses } from "../../../src/adapters/provider-model/OpenAiResponses.ts";
import { PartWriter } from "../../../src/adapters/provider-model/PartWriter.ts";
import type { Written } from "../../../src/adapters/provider-model/Request.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import { protocols } from "../../client/Protocols.ts";
import { samples } from "../../samples/index.ts";

const Bash = Tool.make("bash", {
  description: "Runs a command.",
  parameters: Schema.Struct({ cmd: Schema.String }),
  success: Schema.String,
});
const search = Tool.providerDefined({
  id: "openai.web_search",
  customName: "OpenAiWebSearch",
  providerName: "web_search",
})();

const conversation = Prompt.make([
  { role: "system", content: "Be kind." },
  {
    role: "user",
    content: [
      { type: "text", text: "Look." },
      { type: "file", mediaType: "image/png", data: new Uint8Array([1, 2, 3]) },
    ],
  },
  {
    role: "assistant",
    content: [
      { type: "text", text: "Wait." },
      { type: "tool-call", id: "c1", name: "bash", params: { cmd: "ls" }, providerExecuted: false },
    ],
  },
  {
    role: "tool",
    content: [{ type: "tool-result", id: "c1", name: "bash", isFailure: false, result: "a.txt" }],
  },
  { role: "user", content: [{ type: "text", text: "And now?" }] },
]);

const written = (protocol: ProtocolId, more: Partial<Written> = {}): Written => ({
  protocol,
  model: "m",
  prompt: conversation,
  tools: [Bash],
  toolChoice: "auto",
  responseFormat: { type: "text" },
  ...more,
});

const image = "AQID";
const parameters = Tool.getJsonSchema(Bash);

describe("A request", () => {
  it("of chat completions holds the conversation, the tools and the wish for usage", () => {
    assert.deepStrictEqual(writeOpenAiChat(written("openai-chat")), {
      model: "m",
      stream: true,
      stream_options: { include_usage: true },
      messages: [
        { role: "system", content: "Be kind." },
        {
          role: "user",
          content: [
            { type: "text", text: "Look." },
            { type: "image_url", image_url: { url: `data:image/png;base64,${image}` } },
          ],
        },
        {
          role: "assistant",
          content: "Wait.",
          tool_calls: [{ id: "c1", type: "function", function: { name: "bash", arguments: '{"cmd":"ls"}' } }],
        },
        { role: "tool", tool_call_id: "c1", content: "a.txt" },
        { role: "user", content: "And now?" },
      ],
      tools: [{ type: "function", function: { name: "bash", description: "Runs a command.", parameters } }],
      tool_choice: "auto",
    });
  });

  it("of responses holds items, and stores nothing", () => {
    const body = writeOpenAiResponses(
      written("openai-responses", { toolChoice: { tool: "bash" }, tools: [Bash, search] }),
    );
    assert.deepStrictEqual(body, {
      model: "m",
      stream: true,
      store: false,
      input: [
        { role: "system", content: "Be kind." },
        {
          role: "user",
          content: [
            { type: "input_text", text: "Look." },
            { type: "input_image", image_url: `data:image/png;base64,${image}` },
          ],
        },
        { role: "assistant", content: [{ type: "output_text", text: "Wait." }] },
        { type: "function_call", call_id: "c1", name: "bash", arguments: '{"cmd":"ls"}' },
        { type: "function_call_output", call_id: "c1", output: "a.txt" },
        { role: "user", content: [{ type: "input_text", text: "And now?" }] },
      ],
      tools: [
        { type: "function", name: "bash", description: "Runs a command.", parameters, strict: false },
        { type: "web_search" },
      ],
      tool_choice: { type: "function", name: "bash" },
    });
  });

  it("of messages alternates its turns", () => {
    assert.deepStrictEqual(writeAnthropicMessages(written("anthropic-messages", { toolChoice: "required" })), {
      model: "m",
      stream: true,
      max_tokens: 8_192,
      system: [{ type: "text", text: "Be kind." }],
      messages: [
        {
          role: "user",
          content: [
            { type: "text", text: "Look." },
            { type: "image", source: { type: "base64", media_type: "image/png", data: image } },
          ],
        },
        {
          role: "assistant",
          content: [
            { type: "text", text: "Wait." },
            { type: "tool_use", id: "c1", name: "bash", input: { cmd: "ls" } },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: "c1", content: "a.txt" },
            { type: "text", text: "And now?" },
          ],
        },
      ],
      tools: [{ name: "bash", description: "Runs a command.", input_schema: parameters }],
      tool_choice: { type: "any" },
    });
  });

  it("of Bedrock's invoke is one of messages with a version, and its address has the rest", () => {
    const { model: _, stream: _s, ...body } = writeAnthropicMessages(written("bedrock-invoke"));
    assert.deepStrictEqual(writeBedrockInvoke(written("bedrock-invoke")), {
      anthropic_version: "bedrock-2023-05-31",
      ...body,
    });
  });

  it("of Bedrock's Converse alternates its turns", () => {
    assert.deepStrictEqual(writeBedrockConverse(written("bedrock-converse", { toolChoice: { tool: "bash" } })), {
      system: [{ text: "Be kind." }],
      messages: [
        {
          role: "user",
          content: [{ text: "Look." }, { image: { format: "png", source: { bytes: image } } }],
        },
        {
          role: "assistant",
          content: [{ text: "Wait." }, { toolUse: { toolUseId: "c1", name: "bash", input: { cmd: "ls" } } }],
        },
        {
          role: "user",
          content: [{ toolResult: { toolUseId: "c1", content: [{ text: "a.txt" }] } }, { text: "And now?" }],
        },
      ],
      toolConfig: {
        tools: [{ toolSpec: { name: "bash", description: "Runs a command.", inputSchema: { json: parameters } } }],
        toolChoice: { tool: { name: "bash" } },
      },
    });
    assert.notProperty(writeBedrockConverse(written("bedrock-converse", { toolChoice: "none" })), "toolConfig");
    assert.throws(() => writeBedrockConverse(written("bedrock-converse", { tools: [search] })), /web_search/);
  });

  it("of Gemini holds contents and names the functions that may be called", () => {
    assert.deepStrictEqual(writeGoogleGemini(written("google-gemini", { toolChoice: { tool: "bash" } })), {
      systemInstruction: { parts: [{ text: "Be kind." }] },
      contents: [
        { role: "user", parts: [{ text: "Look." }, { inlineData: { mimeType: "image/png", data: image } }] },
        { role: "model", parts: [{ text: "Wait." }, { functionCall: { name: "bash", args: { cmd: "ls" } } }] },
        {
          role: "user",
          parts: [{ functionResponse: { name: "bash", response: { result: "a.txt" } } }, { text: "And now?" }],
        },
      ],
      tools: [
        { functionDeclarations: [{ name: "bash", description: "Runs a command.", parametersJsonSchema: parameters }] },
      ],
      toolConfig: { functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["bash"] } },
    });
  });

  it("requests a structured answer in the form of each protocol", () => {
    const responseFormat = {
      type: "json",
      objectName: "person",
      schema: Schema.Struct({ name: Schema.String }),
    } as const;
    const more = { responseFormat, tools: [] };
    const text = (body: object) => JSON.stringify(body);
    assert.include(text(writeOpenAiChat(written("openai-chat", more))), '"response_format":{"type":"json_schema"');
    assert.include(
      text(writeOpenAiResponses(written("openai-responses", more))),
      '"text":{"format":{"type":"json_schema","name":"person"',
    );
    assert.include(
      text(writeBedrockConverse(written("bedrock-converse", more))),
      '"outputConfig":{"textFormat":{"type":"json_schema","structure":{"jsonSchema":{"name":"person"',
    );
    assert.include(
      text(writeAnthropicMessages(written("anthropic-messages", more))),
      '"output_config":{"format":{"type":"json_schema"',
    );
    assert.include(text(writeGoogleGemini(written("google-gemini", more))), '"responseMimeType":"application/json"');
  });
});

const decodeParts = Schema.decodeUnknownEffect(Schema.Array(Response.StreamPart(Toolkit.make(Bash))));

/** What an answer becomes in the next request. */
const givenBack = (protocol: ProtocolId, events: ReadonlyArray<object>) =>
  Effect.gen(function* () {
    const { encoding, frame } = samples[protocol];
    const bytes = Buffer.from(events.map(frame).join(""), encoding);
    const writer = new PartWriter(protocols[protocol], "id_test");
    const parts = [
      ...Decoder.make(protocols[protocol])
        .push(bytes)
        .flatMap((part) => writer.take(part)),
      ...writer.end(),
    ];
    return Prompt.fromResponseParts(yield* decodeParts(parts));
  });

describe("What a provider wants back", () => {
  it.effect("is a signature on thinking at Anthropic", () =>
    Effect.gen(function* () {
      const prompt = yield* givenBack("anthropic-messages", [
        { type: "message_start", message: { id: "m", model: "m" } },
        { type: "content_block_start", index: 0, content_block: { type: "thinking", thinking: "", signature: "" } },
        { type: "content_block_delta", index: 0, delta: { type: "thinking_delta", thinking: "hm" } },
        { type: "content_block_delta", index: 0, delta: { type: "signature_delta", signature: "c2ln" } },
        { type: "content_block_stop", index: 0 },
        { type: "content_block_start", index: 1, content_block: { type: "redacted_thinking", data: "eHl6" } },
        { type: "content_block_stop", index: 1 },
        {
          type: "content_block_start",
          index: 2,
          content_block: { type: "tool_use", id: "t1", name: "bash", input: {} },
        },
        { type: "content_block_delta", index: 2, delta: { type: "input_json_delta", partial_json: '{"cmd":"ls"}' } },
        { type: "content_block_stop", index: 2 },
        { type: "message_delta", delta: { stop_reason: "tool_use" } },
      ]);
      assert.deepStrictEqual(writeAnthropicMessages(written("anthropic-messages", { prompt, tools: [] })).messages, [
        {
          role: "assistant",
          content: [
            { type: "thinking", thinking: "hm", signature: "c2ln" },
            { type: "redacted_thinking", data: "eHl6" },
            { type: "tool_use", id: "t1", name: "bash", input: { cmd: "ls" } },
          ],
        },
      ]);
    }),
  );

  it.effect("is a signature on reasoning at Bedrock", () =>
    Effect.gen(function* () {
      const reasoning = (reasoningContent: object) => ({
        contentBlockDelta: { contentBlockIndex: 0, delta: { reasoningContent } },
      });
      const prompt = yield* givenBack("bedrock-converse", [
        { messageStart: { role: "assistant" } },
        reasoning({ text: "hm" }),
        reasoning({ signature: "c2ln" }),
        { contentBlockStop: { contentBlockIndex: 0 } },
        { contentBlockDelta: { contentBlockIndex: 1, delta: { text: "Hi" } } },
        { contentBlockStop: { contentBlockIndex: 1 } },
        { messageStop: { stopReason: "end_turn" } },
      ]);
      assert.deepStrictEqual(writeBedrockConverse(written("bedrock-converse", { prompt, tools: [] })).messages, [
        {
          role: "assistant",
          content: [{ reasoningContent: { reasoningText: { text: "hm", signature: "c2ln" } } }, { text: "Hi" }],
        },
      ]);
    }),
  );

  it.effect("is encrypted reasoning at Responses", () =>
    Effect.gen(function* () {
      const item = { id: "rs_1", type: "reasoning", summary: [] };
      const prompt = yield* givenBack("openai-responses", [
        { type: "response.created", response: { id: "r", model: "m" } },
        { type: "response.output_item.added", output_index: 0, item },
        {
          type: "response.reasoning_summary_text.delta",
          item_id: "rs_1",
          output_index: 0,
          summary_index: 0,
          delta: "hm",
        },
        { type: "response.output_item.done", output_index: 0, item: { ...item, encrypted_content: "eHl6" } },
        { type: "response.completed", response: { id: "r", status: "completed", output: [] } },
      ]);
      assert.deepStrictEqual(writeOpenAiResponses(written("openai-responses", { prompt, tools: [] })).input, [
        { type: "reasoning", id: "rs_1", summary: [{ type: "summary_text", text: "hm" }], encrypted_content: "eHl6" },
      ]);
    }),
  );

  it.effect("is a thought signature on a call at Gemini", () =>
    Effect.gen(function* () {
      const parts = [{ functionCall: { name: "bash", args: { cmd: "ls" } }, thoughtSignature: "c2ln" }];
      const prompt = yield* givenBack("google-gemini", [
        { candidates: [{ index: 0, content: { parts }, finishReason: "STOP" }], responseId: "r" },
      ]);
      assert.deepStrictEqual(writeGoogleGemini(written("google-gemini", { prompt, tools: [] })).contents, [
        { role: "model", parts: [{ functionCall: { name: "bash", args: { cmd: "ls" } }, thoughtSignature: "c2ln" }] },
      ]);
    }),
  );
});
