/** A sample of Anthropic's Messages. */
import { alternate, at, fields, list, namedFrame, pairs, pieces, problemOf, string, textAt } from "./Json.ts";
import type { Said, Sample } from "./Sample.ts";

const user = (content: string) => ({ role: "user", content });

const message = (number: number, usage: object) => ({
  ...{ id: `msg_${number}`, type: "message", role: "assistant", model: "m", content: [] },
  ...{ stop_reason: null, stop_sequence: null, usage },
});

const start = (number: number, input_tokens = 1) => ({
  type: "message_start",
  message: message(number, { input_tokens, output_tokens: 1 }),
});

/** The start of a block and its deltas. */
const blockOf = (it: Said, index: number, number: number, piece?: number): readonly [object, ReadonlyArray<object>] => {
  if ("text" in it)
    return [{ type: "text", text: "" }, pieces(it.text, piece).map((text) => ({ type: "text_delta", text }))];
  if ("native" in it) return [it.native, []];
  if ("call" in it)
    return [
      { type: "tool_use", id: `toolu_${number}_${index}`, name: it.call, input: {} },
      it.pieces.map((partial_json) => ({ type: "input_json_delta", partial_json })),
    ];
  const { signature = "" } = it;
  return [
    { type: "thinking", thinking: "", signature: "" },
    [
      ...pieces(it.thought, piece).map((thinking) => ({ type: "thinking_delta", thinking })),
      ...pieces(signature, Math.ceil(signature.length / 2)).map((half) => ({
        ...{ type: "signature_delta", signature: half },
      })),
    ],
  ];
};

const contentOf = (it: Said): object => {
  if ("text" in it) return { type: "text", text: it.text };
  if ("native" in it) return it.native;
  if ("call" in it) return { type: "tool_use", id: "toolu_1", name: it.call, input: JSON.parse(it.pieces.join("")) };
  return { type: "thinking", thinking: it.thought, signature: it.signature ?? "" };
};

const finishOf = (said: ReadonlyArray<Said>, finish?: string): string =>
  finish ?? (said.some((it) => "call" in it) ? "tool_use" : "end_turn");

export const anthropicMessages: Sample = {
  id: "anthropic-messages",
  vendor: "anthropic",
  has: { thoughts: true, calls: "pieces", hosted: true, codes: true },
  path: "/v1/messages",
  documentPath: "/v1/messages",
  base: "",
  key: (key) => ({ "x-api-key": key }),
  calls: [
    "POST /v1/messages",
    "POST /v1/messages?beta=true",
    "POST /v1/messages/count_tokens",
    "POST /v1/projects/p/locations/l/publishers/anthropic/models/claude-x@20250101:streamRawPredict",
    "POST /v1/projects/p/locations/l/publishers/anthropic/models/count-tokens:rawPredict",
  ],

  history: "messages",
  assistant: "assistant",
  bare: { model: "m", max_tokens: 9, messages: [], stream: true },
  question: (text) => ({ model: "m", max_tokens: 4_096, messages: [user(text)], stream: true }),
  message: user,
  histories: [
    { messages: [user("hi")] },
    { messages: [user("hi"), { role: "assistant", content: "Well," }] },
    {
      messages: [
        user("hi"),
        { role: "assistant", content: [{ type: "tool_use", id: "t0", name: "bash", input: {} }] },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "t0", content: "x" }] },
      ],
    },
  ],
  streams: (stream) => ({ stream }),
  limit: (max_tokens) => ({ max_tokens }),
  json: { output_format: {} },
  check: (body) => {
    const messages = list(fields(body).messages);
    const problems = [...alternate(messages.map((message) => string(message.role)))];
    const ids: Array<string> = [];
    messages.forEach((message, at) => {
      const blocks =
        typeof message.content === "string" ? [{ type: "text", text: message.content }] : list(message.content);
      if (blocks.length === 0) problems.push("an empty message");
      for (const block of blocks) {
        if (block.type === "text" && string(block.text).trim() === "") problems.push("a blank text");
        if (block.type === "thinking" && string(block.signature) === "") problems.push("thinking without a signature");
        if (block.type === "tool_use" && (Array.isArray(block.input) || typeof block.input !== "object"))
          problems.push("an input that is no object");
      }
      const first = blocks.findIndex((block) => block.type !== "tool_result");
      if (first !== -1 && blocks.slice(first).some((block) => block.type === "tool_result"))
        problems.push("a result behind other content");
      if (message.role !== "assistant") {
        if (at === 0 && blocks.some((block) => block.type === "tool_result")) problems.push("a result in front");
        return;
      }
      if (/thinking$/.test(string(blocks.at(-1)?.type))) problems.push("thinking at the end");
      const own = blocks.filter((block) => block.type === "tool_use").map((block) => string(block.id));
      ids.push(...own);
      const results = list(messages[at + 1]?.content).filter((block) => block.type === "tool_result");
      problems.push(
        ...pairs(
          `message ${at}`,
          own,
          results.map((block) => string(block.tool_use_id)),
        ),
      );
      const hosted = blocks.filter((block) => /._tool_use$/.test(string(block.type))).map((block) => string(block.id));
      const told = blocks.filter((block) => /._tool_result$/.test(string(block.type)));
      problems.push(
        ...pairs(
          `hosted ${at}`,
          hosted,
          told.map((block) => string(block.tool_use_id)),
        ),
      );
    });
    if (new Set(ids).size !== ids.length) problems.push(`ids stand twice: ${ids}`);
    return problems;
  },

  frame: namedFrame,
  start: (number) => start(number),
  delta: (text) => ({ type: "content_block_delta", index: 9, delta: { type: "text_delta", text } }),
  events: (said, { cut, finish, lacksLast, number = 1, piece, usage } = {}) => {
    const [input, output] = usage ?? [1, 1];
    const end = { stop_reason: finishOf(said, finish), stop_sequence: null };
    return [
      start(number, input),
      { type: "ping" },
      ...said.flatMap((it, index) => {
        const [content_block, deltas] = blockOf(it, index, number, piece);
        return [
          { type: "content_block_start", index, content_block },
          ...deltas.map((delta) => ({ type: "content_block_delta", index, delta })),
          { type: "content_block_stop", index },
        ];
      }),
      ...(cut === true ? [] : [{ type: "message_delta", delta: end, usage: { output_tokens: output } }]),
      ...(cut === true || lacksLast === true ? [] : [{ type: "message_stop" }]),
    ];
  },
  document: (said, { finish, number = 1, usage: [input_tokens, output_tokens] = [1, 1] } = {}) => ({
    ...message(number, { input_tokens, output_tokens }),
    ...{ content: said.map(contentOf), stop_reason: finishOf(said, finish) },
  }),
  finishes: { natural: "end_turn", others: ["max_tokens", "refusal", "pause_turn", "stop_sequence"] },
  failedFinish: {
    type: "message_delta",
    delta: { stop_reason: "error", stop_sequence: null },
    error: { type: "api_error", message: "Internal server error" },
  },
  failed: (words) => [start(1), { type: "error", error: { type: "api_error", message: words } }],
  errorEvent: (document) => document,
  refusal: (words) => ({
    status: 529,
    document: { type: "error", error: { type: "overloaded_error", message: words } },
  }),
  rateLimit: (details) => ({
    type: "error",
    error: { type: "rate_limit_error", message: "Rate limited", details },
  }),
  noOp: /^event: ping\ndata: \{"type":"ping"\}\n\n/,

  recordings: ["thinking-text", "tools"],
  read: (event) => ({
    text: string(at(event, "delta", "text")),
    reasoning: string(at(event, "delta", "thinking")),
  }),
  take: ({ json, kind }) => {
    if (kind !== "event") return {};
    switch (textAt(json, "type")) {
      case "content_block_delta":
        return { text: textAt(json, "delta", "text") ?? "" };
      case "message_stop":
        return { whole: true };
      case "error":
        return { problem: problemOf(at(json, "error"), "error") };
      default:
        return {};
    }
  },
};
