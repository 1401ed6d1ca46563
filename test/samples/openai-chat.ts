/** A sample of Chat Completions. */
import { at, dataFrame, fields, list, pairs, pieces, problemOf, string, textAt } from "./Json.ts";
import type { Ended, Said, Sample } from "./Sample.ts";

const user = (content: string) => ({ role: "user", content });

const made = (number: number, choices: ReadonlyArray<object>) => ({
  ...{ id: `chatcmpl-${number}`, object: "chat.completion.chunk", created: 1_000 + number, model: "m" },
  choices,
});

const chunk = (number: number, delta: object, finish: string | null = null) =>
  made(number, [{ index: 0, delta, finish_reason: finish }]);

const usageOf = ([prompt_tokens, completion_tokens]: readonly [number, number]) => ({
  ...{ prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
});

const finishOf = (said: ReadonlyArray<Said>, { finish }: Ended): string =>
  finish ?? (said.some((it) => "call" in it) ? "tool_calls" : "stop");

/** The deltas of some content; in a document there is one for each. */
const deltas = (it: Said, index: number, number: number, piece?: number): ReadonlyArray<object> => {
  if ("text" in it) return pieces(it.text, piece).map((content) => ({ content }));
  if ("thought" in it) return pieces(it.thought, piece).map((reasoning_content) => ({ reasoning_content }));
  if ("native" in it) return [it.native];
  const begun = { index, id: `call_${number}_${index}`, type: "function", function: { name: it.call, arguments: "" } };
  return [begun, ...it.pieces.map((text) => ({ index, function: { arguments: text } }))].map((call) => ({
    tool_calls: [call],
  }));
};

const messageOf = (it: Said): object => {
  if (!("call" in it)) return deltas(it, 0, 1)[0] ?? {};
  const called = { name: it.call, arguments: it.pieces.join("") };
  return { tool_calls: [{ index: 0, id: "call_1_0", type: "function", function: called }] };
};

export const openAiChat: Sample = {
  id: "openai-chat",
  vendor: "openai",
  has: { thoughts: true, calls: "pieces", hosted: true, codes: true },
  path: "/v1/chat/completions",
  documentPath: "/v1/chat/completions",
  base: "/v1",
  key: (key) => ({ authorization: `Bearer ${key}` }),
  calls: [
    "POST /chat/completions",
    "POST /v1/chat/completions",
    "POST /openai/v1/chat/completions",
    "POST /openai/deployments/gpt-4o/chat/completions?api-version=2024-10-21",
  ],

  history: "messages",
  assistant: "assistant",
  bare: { model: "m", messages: [], stream: true },
  question: (text) => ({ model: "m", messages: [user(text)], stream: true }),
  message: user,
  histories: [
    { messages: [user("hi")] },
    { messages: [user("hi"), { role: "assistant", content: "Well,", prefix: true }] },
    {
      messages: [
        user("hi"),
        { role: "assistant", content: null, tool_calls: [{ id: "t0", function: { name: "b", arguments: "{}" } }] },
        { role: "tool", tool_call_id: "t0", content: "x" },
      ],
    },
  ],
  streams: (stream) => ({ stream }),
  limit: (max_tokens) => ({ max_tokens }),
  json: { response_format: { type: "json_object" } },
  check: (body) => {
    const messages = list(fields(body).messages);
    const problems: Array<string> = [];
    if (messages.at(-1)?.role === "assistant") problems.push("ends with the assistant");
    messages.forEach((message, at) => {
      const next = messages[at + 1];
      if (message.role === next?.role && message.role !== "tool") problems.push(`two messages of ${message.role}`);
      if (message.role === "tool" && !["assistant", "tool"].includes(string(messages[at - 1]?.role)))
        problems.push("a result that follows no call");
      if (message.role !== "assistant") return;
      const calls = list(message.tool_calls);
      if (calls.length === 0 && message.function_call === undefined && string(message.content).trim() === "")
        problems.push("an empty assistant message");
      const results = messages.slice(at + 1);
      const end = results.findIndex((it) => it.role !== "tool");
      const own = end === -1 ? results : results.slice(0, end);
      problems.push(
        ...pairs(
          `message ${at}`,
          calls.map((call) => string(call.id)),
          own.map((it) => string(it.tool_call_id)),
        ),
      );
      for (const call of calls) if (string(call.id) === "") problems.push("a call without an id");
    });
    return problems;
  },

  frame: dataFrame,
  start: (number) => chunk(number, { role: "assistant", content: "" }),
  delta: (content) => chunk(1, { content }),
  events: (said, ended = {}) => {
    const { cut, lacksLast, number = 1, piece, usage } = ended;
    const calls: ReadonlyArray<Said> = said.filter((it) => "call" in it);
    const content = said.flatMap((it) => deltas(it, calls.indexOf(it), number, piece));
    return [
      chunk(number, { role: "assistant", content: "" }),
      ...content.map((delta) => chunk(number, delta)),
      ...(cut === true ? [] : [chunk(number, {}, finishOf(said, ended))]),
      ...(cut === true || usage === undefined ? [] : [{ ...made(number, []), usage: usageOf(usage) }]),
      ...(cut === true || lacksLast === true ? [] : ["[DONE]"]),
    ];
  },
  document: (said, ended = {}) => ({
    ...{ id: `chatcmpl-${ended.number ?? 1}`, object: "chat.completion", model: "m" },
    choices: [
      {
        index: 0,
        message: Object.assign({ role: "assistant", content: null }, ...said.map(messageOf)),
        finish_reason: finishOf(said, ended),
      },
    ],
    ...(ended.usage === undefined ? {} : { usage: usageOf(ended.usage) }),
  }),
  finishes: { natural: "stop", others: ["length", "content_filter"] },
  failedFinish: {
    ...chunk(1, { content: "" }, "stop"),
    error: { message: "Provider returned error", code: 502 },
  },
  failed: (message) => [chunk(1, { role: "assistant" }), { error: { message, type: "server_error", code: 500 } }],
  errorEvent: (document) => document,
  refusal: (message) => ({
    status: 429,
    document: { error: { message, type: "rate_limit_exceeded", code: "rate_limit_exceeded" } },
  }),
  rateLimit: (details) => ({
    error: { message: "Rate limit reached", type: "rate_limit_error", code: "rate_limit_exceeded", details },
  }),
  noOp: /^: keep-alive\n\n/,

  recordings: ["text", "parallel-tools"],
  read: (event) => ({
    text: string(at(event, "choices", 0, "delta", "content")) + string(at(event, "choices", 0, "delta", "refusal")),
    reasoning: string(at(event, "choices", 0, "delta", "reasoning_content")),
  }),
  take: ({ data, json, kind }) => {
    if (kind !== "event" || data === "[DONE]") return {};
    if (at(json, "error") !== undefined) return { problem: problemOf(at(json, "error"), "error") };
    // OpenAI's helper reads `choices` of every chunk.
    if (!Array.isArray(at(json, "choices"))) return { broken: true };
    const text = textAt(json, "choices", 0, "delta", "content");
    const finish = textAt(json, "choices", 0, "finish_reason");
    return { ...(text === undefined ? {} : { text }), whole: finish !== undefined };
  },
};
