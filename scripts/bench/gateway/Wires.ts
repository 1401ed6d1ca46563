/**
 * Writes whole streams of each protocol as its provider does: the events before the text, text deltas, usage and the end.
 */

/** The request and the stream of a protocol. */
export interface Wire {
  readonly title: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: (prompt: string) => object;
  readonly begin: string;
  readonly delta: (text: string, at: number) => string;
  /** @param deltas number of deltas before it */
  readonly end: (deltas: number) => string;
}

export type Protocol = "chat" | "responses" | "anthropic" | "gemini";

const data = (event: unknown): string => `data: ${JSON.stringify(event)}\n\n`;
/** An event with a type, as Anthropic and the Responses API send it. */
interface Typed {
  readonly type: string;
  readonly [field: string]: unknown;
}

const named = (event: Typed): string => `event: ${event.type}\n${data(event)}`;

const chatChunk = (choices: ReadonlyArray<object>, usage: object | null = null): string =>
  data({
    id: "chatcmpl-BpyKz2dGm1XcJ0kTq7h3WfS5aLr9E",
    object: "chat.completion.chunk",
    created: 1778037177,
    model: "bench",
    service_tier: "default",
    system_fingerprint: "fp_62a23a81ef",
    choices,
    usage,
  });

const choice = (delta: object, finish: string | null = null) => ({
  index: 0,
  delta,
  logprobs: null,
  finish_reason: finish,
});

const chat: Wire = {
  title: "OpenAI Chat Completions",
  path: "/v1/chat/completions",
  headers: { authorization: "Bearer sk-bench" },
  body: (content) => ({
    model: "bench",
    messages: [{ role: "user", content }],
    stream: true,
    stream_options: { include_usage: true },
  }),
  begin: chatChunk([choice({ role: "assistant", content: "", refusal: null })]),
  delta: (content) => chatChunk([choice({ content })]),
  end: (deltas) =>
    [
      chatChunk([choice({}, "stop")]),
      chatChunk([], { prompt_tokens: 500, completion_tokens: deltas, total_tokens: 500 + deltas }),
      "data: [DONE]\n\n",
    ].join(""),
};

const anthropic: Wire = {
  title: "Anthropic Messages",
  path: "/v1/messages",
  headers: { "x-api-key": "sk-ant-bench", "anthropic-version": "2023-06-01" },
  body: (content) => ({ model: "bench", max_tokens: 4096, messages: [{ role: "user", content }], stream: true }),
  begin: [
    named({
      type: "message_start",
      message: {
        model: "bench",
        id: "msg_01Pp3btiCYxbWhMJWewiYg5s",
        type: "message",
        role: "assistant",
        content: [],
        stop_reason: null,
        stop_sequence: null,
        usage: { input_tokens: 500, cache_creation_input_tokens: 0, cache_read_input_tokens: 0, output_tokens: 1 },
      },
    }),
    named({ type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }),
    named({ type: "ping" }),
  ].join(""),
  delta: (text) => named({ type: "content_block_delta", index: 0, delta: { type: "text_delta", text } }),
  end: (deltas) =>
    [
      named({ type: "content_block_stop", index: 0 }),
      named({
        type: "message_delta",
        delta: { stop_reason: "end_turn", stop_sequence: null },
        usage: { output_tokens: deltas },
      }),
      named({ type: "message_stop" }),
    ].join(""),
};

const item = "msg_00592e63e61b66660169fab1bada8481a28ef92eb62c168ead";

const response = (status: string, output: ReadonlyArray<object>, usage: object | null) => ({
  id: "resp_00592e63e61b66660169fab1b9f8e481a2b321356198d7ac1b",
  object: "response",
  created_at: 1778037177,
  status,
  error: null,
  incomplete_details: null,
  instructions: null,
  model: "bench",
  output,
  parallel_tool_calls: true,
  tool_choice: "auto",
  tools: [],
  usage,
});

const message = (status: string, content: ReadonlyArray<object>) => ({
  id: item,
  type: "message",
  status,
  content,
  role: "assistant",
});
const outputText = (text: string) => ({ type: "output_text", annotations: [], logprobs: [], text });
const at = { content_index: 0, item_id: item, output_index: 0 };

const responsesEnd = (deltas: number): string => {
  // The end repeats the whole text three times. Only its length matters here.
  const text = "text 1234567890123456 ".repeat(deltas);
  const done = message("completed", [outputText(text)]);
  const usage = { input_tokens: 500, output_tokens: deltas, total_tokens: 500 + deltas };
  const events = [
    { type: "response.output_text.done", ...at, logprobs: [], text },
    { type: "response.content_part.done", ...at, part: outputText(text) },
    { type: "response.output_item.done", item: done, output_index: 0 },
    { type: "response.completed", response: response("completed", [done], usage) },
  ];
  return events.map((event, index) => named({ ...event, sequence_number: 4 + deltas + index })).join("");
};

const responses: Wire = {
  title: "OpenAI Responses",
  path: "/v1/responses",
  headers: { authorization: "Bearer sk-bench" },
  body: (input) => ({ model: "bench", input, stream: true, store: false }),
  begin: [
    { type: "response.created", response: response("in_progress", [], null) },
    { type: "response.in_progress", response: response("in_progress", [], null) },
    { type: "response.output_item.added", item: message("in_progress", []), output_index: 0 },
    { type: "response.content_part.added", ...at, part: outputText("") },
  ]
    .map((event, index) => named({ ...event, sequence_number: index }))
    .join(""),
  delta: (delta, index) =>
    named({ type: "response.output_text.delta", ...at, delta, logprobs: [], sequence_number: 4 + index }),
  end: responsesEnd,
};

const geminiChunk = (text: string, tokens: number, finished: object = {}): string =>
  data({
    candidates: [{ content: { parts: [{ text }], role: "model" }, ...finished, index: 0 }],
    usageMetadata: { promptTokenCount: 500, candidatesTokenCount: tokens, totalTokenCount: 500 + tokens },
    modelVersion: "bench",
    responseId: "c3cpap_xFpLRjMcPt5CUwQw",
  });

const gemini: Wire = {
  title: "Google Gemini",
  path: "/v1beta/models/bench:streamGenerateContent?alt=sse",
  headers: { "x-goog-api-key": "bench" },
  body: (text) => ({ contents: [{ role: "user", parts: [{ text }] }] }),
  begin: geminiChunk("", 0),
  delta: (text, index) => geminiChunk(text, index + 1),
  end: (deltas) => geminiChunk("", deltas, { finishReason: "STOP" }),
};

export const wires: Readonly<Record<Protocol, Wire>> = { chat, responses, anthropic, gemini };

/** The protocol that a provider's path belongs to. */
export const protocolOf = (path: string): Protocol => {
  if (path.includes("chat/completions")) return "chat";
  if (path.includes("responses")) return "responses";
  return path.includes("generateContent") || path.includes("GenerateContent") ? "gemini" : "anthropic";
};

/**
 * The text of a delta that contains its write time, in nanoseconds of the clock that all processes of a machine share. That clock starts
 * with the machine, so its digits are padded: all stamps have the same length, however recently the machine booted.
 */
export const stamp = (ns: bigint): string => `text ${String(ns).padStart(19, "0")} `;

/** The write times of the deltas in some bytes, in nanoseconds. */
export const stampsIn = (bytes: string): ReadonlyArray<number> =>
  [...bytes.matchAll(/:"text (\d+) "/g)].map(([, ns]) => Number(ns));
