/** A sample of Mistral's conversations. */
import { at, fields, list, namedFrame, pairs, pieces, string, textAt } from "./Json.ts";
import type { Ended, Said, Sample } from "./Sample.ts";

const message = (content: string) => ({ type: "message.input", role: "user", content });

const start = (number: number) => ({ type: "conversation.response.started", conversation_id: `conv_${number}` });

const delta = (index: number, content: unknown) => ({
  ...{ type: "message.output.delta", output_index: index, id: `entry_${index}`, content_index: 0 },
  ...{ role: "assistant", model: "m", content },
});

const thinking = (text: string) => ({ type: "thinking", thinking: [{ type: "text", text }] });

const eventsOf = (it: Said, index: number, { number = 1, piece }: Ended): ReadonlyArray<object> => {
  if ("text" in it) return pieces(it.text, piece).map((text) => delta(index, text));
  if ("thought" in it) return pieces(it.thought, piece).map((text) => delta(index, thinking(text)));
  if ("native" in it) return [delta(index, it.native)];
  return it.pieces.map((arguments_) => ({
    ...{ type: "function.call.delta", output_index: index, id: `entry_${index}`, model: "m" },
    ...{ name: it.call, tool_call_id: `call_${number}_${index}`, arguments: arguments_ },
  }));
};

const entryOf = (it: Said, index: number): object => {
  const entry = { object: "entry", id: `entry_${index}`, model: "m" };
  if ("call" in it)
    return {
      ...entry,
      type: "function.call",
      tool_call_id: `call_${index}`,
      name: it.call,
      arguments: it.pieces.join(""),
    };
  const content = "text" in it ? it.text : "thought" in it ? [thinking(it.thought)] : [it.native];
  return { ...entry, type: "message.output", role: "assistant", content };
};

const usageOf = ({ usage: [prompt_tokens, completion_tokens] = [0, 0] }: Ended) => ({
  usage: { prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
});

export const mistralConversations: Sample = {
  id: "mistral-conversations",
  vendor: "openai",
  has: { thoughts: true, calls: "pieces", hosted: true, codes: false },
  path: "/v1/conversations",
  documentPath: "/v1/conversations",
  base: "",
  key: (key) => ({ authorization: `Bearer ${key}` }),
  calls: [],

  history: "inputs",
  assistant: "assistant",
  bare: { model: "m", inputs: "hi", stream: true, store: false },
  question: (text) => ({ model: "m", store: false, stream: true, inputs: [message(text)] }),
  message,
  histories: [
    { store: false, inputs: [message("hi")] },
    {
      store: false,
      inputs: [
        message("hi"),
        { type: "function.call", tool_call_id: "t0", name: "b", arguments: "{}" },
        { type: "function.result", tool_call_id: "t0", result: "x" },
      ],
    },
  ],
  streams: (stream) => ({ stream }),
  limit: (max_tokens) => ({ completion_args: { max_tokens } }),
  json: { completion_args: { response_format: { type: "json_object" } } },
  check: (body) => {
    const entries = list(fields(body).inputs);
    const problems: Array<string> = [];
    if (entries.at(-1)?.type === "message.output") problems.push("ends with the assistant");
    const of = (type: string) =>
      entries.filter((it) => it.type === type).map(({ tool_call_id }) => string(tool_call_id));
    problems.push(...pairs("entries", of("function.call"), of("function.result")));
    return problems;
  },

  frame: namedFrame,
  start,
  delta: (text) => delta(9, text),
  events: (said, ended = {}) => [
    start(ended.number ?? 1),
    ...said.flatMap((it, index) => eventsOf(it, index, ended)),
    ...(ended.cut === true ? [] : [{ type: "conversation.response.done", ...usageOf(ended) }]),
  ],
  document: (said, ended = {}) => ({
    ...{ object: "conversation.response", conversation_id: `conv_${ended.number ?? 1}` },
    ...{ outputs: said.map(entryOf), ...usageOf(ended) },
  }),
  finishes: { natural: "done", others: [] },
  failedFinish: { type: "conversation.response.done", usage: {}, error: { message: "Internal error", code: 500 } },
  failed: (words) => [start(1), { type: "conversation.response.error", message: words, code: 500 }],
  errorEvent: (document) => ({ type: "conversation.response.error", ...document }),
  refusal: (words) => ({
    status: 429,
    document: { object: "error", message: words, type: "rate_limited", param: null, code: "1300" },
  }),
  rateLimit: (details) => ({
    object: "error",
    message: "Rate limit exceeded",
    type: "rate_limited",
    code: "1300",
    details,
  }),
  noOp: /^: keep-alive\n\n/,

  recordings: ["thinking-text", "function-calls"],
  read: (event) => ({
    text: textAt(event, "content") ?? "",
    reasoning: string(at(event, "content", "thinking", 0, "text")),
  }),
  take: ({ json, kind }) => {
    if (kind !== "event") return {};
    const type = at(json, "type");
    if (type === "conversation.response.error")
      return { problem: { code: String(at(json, "code")), message: string(at(json, "message")), as: "error" } };
    const text = textAt(json, "content");
    return { ...(text === undefined ? {} : { text }), whole: type === "conversation.response.done" };
  },
};
