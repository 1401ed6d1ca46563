/**
 * The request and the response of each protocol: text, a tool call for streams of kind `call`, and the end.
 */
import { argumentsOf, type Drawn, deltaOf, type Protocol, promptOf, textOf } from "./Drawn.ts";

/** One protocol, as its SDK requests it and its provider streams it. */
export interface Wire {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: (prompt: string, tools: boolean) => object;
  readonly begin: (drawn: Drawn) => string;
  readonly delta: (text: string, at: number) => string;
  readonly end: (drawn: Drawn) => string;
}

const parameters = { type: "object", properties: { order: { type: "integer" } }, required: ["order"] };
const tool = { name: "ship", description: "Ships an order", parameters };
const data = (event: unknown): string => `data: ${JSON.stringify(event)}\n\n`;
const named = (event: { readonly type: string; readonly [field: string]: unknown }): string =>
  `event: ${event.type}\n${data(event)}`;

const stainless = { "x-stainless-lang": "js", "x-stainless-runtime": "node" };

const chunk = (id: number, delta: object, finish: string | null = null): string =>
  data({
    id: `chatcmpl-${id}`,
    object: "chat.completion.chunk",
    created: 1_778_037_177,
    model: "m",
    choices: [{ index: 0, delta, finish_reason: finish }],
  });

const chat: Wire = {
  path: "/v1/chat/completions",
  headers: { ...stainless, authorization: "Bearer sk-cluster", "user-agent": "OpenAI/JS 7.57.0" },
  body: (content, tools) => ({
    model: "m",
    messages: [{ role: "user", content }],
    stream: true,
    ...(tools ? { tools: [{ type: "function", function: tool }] } : {}),
  }),
  begin: ({ id }) => chunk(id, { role: "assistant", content: "" }),
  delta: (content) => chunk(0, { content }),
  end: (drawn) => {
    const { id, kind } = drawn;
    if (kind !== "call") return `${chunk(id, {}, "stop")}data: [DONE]\n\n`;
    const call = {
      index: 0,
      id: `call_${id}`,
      type: "function",
      function: { name: tool.name, arguments: argumentsOf(drawn) },
    };
    return `${chunk(id, { tool_calls: [call] })}${chunk(id, {}, "tool_calls")}data: [DONE]\n\n`;
  },
};

const responseOf = (id: number, status: string, output: ReadonlyArray<object>) => ({
  id: `resp_${id}`,
  object: "response",
  created_at: 1_778_037_177,
  status,
  error: null,
  model: "m",
  output,
});
const message = (status: string, content: ReadonlyArray<object>) => ({
  id: "msg_1",
  type: "message",
  status,
  role: "assistant",
  content,
});
const outputText = (text: string) => ({ type: "output_text", annotations: [], text });
const place = { content_index: 0, item_id: "msg_1", output_index: 0 };

const responsesEnd = (drawn: Drawn): string => {
  const text = textOf(drawn);
  const done = message("completed", [outputText(text)]);
  const call = { id: "fc_1", type: "function_call", call_id: `call_${drawn.id}`, name: tool.name };
  const whole = { ...call, status: "completed", arguments: argumentsOf(drawn) };
  const calls = [
    {
      type: "response.output_item.added",
      output_index: 1,
      item: { ...call, status: "in_progress", arguments: "" },
    },
    {
      type: "response.function_call_arguments.delta",
      item_id: "fc_1",
      output_index: 1,
      delta: argumentsOf(drawn),
    },
    {
      type: "response.function_call_arguments.done",
      item_id: "fc_1",
      output_index: 1,
      arguments: argumentsOf(drawn),
    },
    { type: "response.output_item.done", output_index: 1, item: whole },
  ];
  const called = drawn.kind === "call";
  const events = [
    { type: "response.output_text.done", ...place, text },
    { type: "response.content_part.done", ...place, part: outputText(text) },
    { type: "response.output_item.done", output_index: 0, item: done },
    ...(called ? calls : []),
    {
      type: "response.completed",
      response: responseOf(drawn.id, "completed", called ? [done, whole] : [done]),
    },
  ];
  return events.map((event, index) => named({ ...event, sequence_number: 4 + drawn.deltas + index })).join("");
};

const responses: Wire = {
  path: "/v1/responses",
  headers: chat.headers,
  body: (input, tools) => ({
    model: "m",
    input,
    stream: true,
    store: false,
    ...(tools ? { tools: [{ type: "function", ...tool }] } : {}),
  }),
  begin: ({ id }) =>
    [
      { type: "response.created", response: responseOf(id, "in_progress", []) },
      { type: "response.in_progress", response: responseOf(id, "in_progress", []) },
      { type: "response.output_item.added", item: message("in_progress", []), output_index: 0 },
      { type: "response.content_part.added", ...place, part: outputText("") },
    ]
      .map((event, index) => named({ ...event, sequence_number: index }))
      .join(""),
  delta: (delta, at) => named({ type: "response.output_text.delta", ...place, delta, sequence_number: 4 + at }),
  end: responsesEnd,
};

const block = (index: number, content_block: object): string =>
  named({ type: "content_block_start", index, content_block });
const blockDelta = (index: number, delta: object): string => named({ type: "content_block_delta", index, delta });

const anthropicEnd = (drawn: Drawn): string => {
  const called = drawn.kind === "call";
  const call = [
    block(1, { type: "tool_use", id: `toolu_${drawn.id}`, name: tool.name, input: {} }),
    blockDelta(1, { type: "input_json_delta", partial_json: argumentsOf(drawn) }),
    named({ type: "content_block_stop", index: 1 }),
  ];
  const delta = { stop_reason: called ? "tool_use" : "end_turn", stop_sequence: null };
  return [
    named({ type: "content_block_stop", index: 0 }),
    ...(called ? call : []),
    named({ type: "message_delta", delta, usage: { output_tokens: drawn.deltas } }),
    named({ type: "message_stop" }),
  ].join("");
};

const anthropic: Wire = {
  path: "/v1/messages",
  headers: {
    ...stainless,
    "x-api-key": "sk-ant-cluster",
    "anthropic-version": "2023-06-01",
    "user-agent": "Anthropic/JS 1.12.0",
  },
  body: (content, tools) => ({
    model: "m",
    max_tokens: 4096,
    messages: [{ role: "user", content }],
    stream: true,
    ...(tools ? { tools: [{ name: tool.name, description: tool.description, input_schema: parameters }] } : {}),
  }),
  begin: ({ id }) =>
    named({
      type: "message_start",
      message: {
        id: `msg_${id}`,
        type: "message",
        role: "assistant",
        model: "m",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 5, output_tokens: 1 },
      },
    }) + block(0, { type: "text", text: "" }),
  delta: (text) => blockDelta(0, { type: "text_delta", text }),
  end: anthropicEnd,
};

const candidate = (parts: ReadonlyArray<object>, finished: object = {}): string =>
  data({ candidates: [{ content: { parts, role: "model" }, ...finished, index: 0 }], modelVersion: "m" });

const gemini: Wire = {
  path: "/v1beta/models/m:streamGenerateContent?alt=sse",
  headers: { "x-goog-api-key": "cluster", "user-agent": "google-genai-sdk/3.1.0 gl-node/v24.21.0" },
  body: (text, tools) => ({
    contents: [{ role: "user", parts: [{ text }] }],
    ...(tools ? { tools: [{ functionDeclarations: [tool] }] } : {}),
  }),
  begin: () => "",
  delta: (text) => candidate([{ text }]),
  end: (drawn) => {
    const call = { functionCall: { name: tool.name, args: { order: drawn.id } } };
    return candidate(drawn.kind === "call" ? [call] : [{ text: "" }], { finishReason: "STOP" });
  },
};

export const wires: Readonly<Record<Protocol, Wire>> = { chat, responses, anthropic, gemini };

/** The bytes of a complete response. */
export const wholeOf = (drawn: Drawn): string => {
  const wire = wires[drawn.protocol];
  const deltas = Array.from({ length: drawn.deltas }, (_, at) => wire.delta(deltaOf(drawn, at), at));
  return wire.begin(drawn) + deltas.join("") + wire.end(drawn);
};

/** The request body of a stream. A retry sends the same bytes. */
export const bodyOf = (drawn: Drawn): string =>
  JSON.stringify(wires[drawn.protocol].body(promptOf(drawn), drawn.kind === "call"));
