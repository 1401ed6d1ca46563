/** A sample of Ollama's `/api/chat`. */
import { at, fields, list, pairs, pieces, string, textAt } from "./Json.ts";
import type { Ended, Event, Said, Sample } from "./Sample.ts";

const message = (content: string) => ({ role: "user", content });

const chunk = (number: number, said: object, last: object = {}) => ({
  ...{ model: "m", created_at: `2026-01-01T00:00:${String(number).padStart(2, "0")}Z` },
  message: { role: "assistant", content: "", ...said },
  done: false,
  ...last,
});

/** The messages of some content, each in a line of its own. */
const messagesOf = (it: Said, index: number, { number = 1, piece }: Ended): ReadonlyArray<object> => {
  if ("text" in it) return pieces(it.text, piece).map((content) => ({ content }));
  if ("thought" in it) return pieces(it.thought, piece).map((thinking) => ({ thinking }));
  if ("native" in it) return [it.native];
  const called = { name: it.call, arguments: JSON.parse(it.pieces.join("")) };
  return it.open === true ? [] : [{ tool_calls: [{ id: `call_${number}_${index}`, function: called }] }];
};

const end = ({ finish = "stop", usage }: Ended) => ({
  ...{ done: true, done_reason: finish },
  ...(usage === undefined ? {} : { prompt_eval_count: usage[0], eval_count: usage[1] }),
});

const lineOf = (event: Event): string => `${typeof event === "string" ? event : JSON.stringify(event)}\n`;

export const ollama: Sample = {
  id: "ollama",
  vendor: "ollama",
  has: { thoughts: true, calls: "whole", hosted: false, codes: false },
  path: "/api/chat",
  documentPath: "/api/chat",
  base: "",
  key: (key) => ({ authorization: `Bearer ${key}` }),
  calls: [
    ...["chat", "generate", "embed", "embeddings", "show"].map((call) => `POST /api/${call}`),
    ...["tags", "ps", "version"].map((call) => `GET /api/${call}`),
  ],

  history: "messages",
  assistant: "assistant",
  bare: { model: "m", messages: [] },
  question: (text) => ({ model: "m", messages: [message(text)] }),
  message,
  histories: [
    { model: "m", messages: [message("hi")] },
    {
      model: "m",
      messages: [
        message("hi"),
        { role: "assistant", content: "", tool_calls: [{ id: "t0", function: { name: "b", arguments: {} } }] },
        { role: "tool", tool_name: "b", tool_call_id: "t0", content: "x" },
      ],
    },
  ],
  streams: (stream) => ({ stream }),
  limit: (num_predict) => ({ options: { num_predict } }),
  json: { format: "json" },
  check: (body) => {
    const messages = list(fields(body).messages);
    const problems: Array<string> = [];
    if (messages.at(-1)?.role === "assistant") problems.push("ends with the assistant");
    messages.forEach((it, at) => {
      if (it.role !== "assistant") return;
      const calls = list(it.tool_calls);
      if (calls.length === 0 && string(it.content).trim() === "") problems.push("an empty assistant message");
      const results = messages.slice(at + 1);
      const end = results.findIndex(({ role }) => role !== "tool");
      const own = end === -1 ? results : results.slice(0, end);
      const names = own.map(({ tool_name }) => string(tool_name));
      if (names.join() !== calls.map((call) => textAt(call, "function", "name")).join())
        problems.push(`calls answered by ${names}`);
      const ids = calls.map(({ id }) => string(id)).filter((id) => id !== "");
      problems.push(
        ...pairs(
          `message ${at}`,
          ids,
          own.map((result) => string(result.tool_call_id)).filter((id) => id !== ""),
        ),
      );
    });
    return problems;
  },

  frame: lineOf,
  start: (number) => chunk(number, {}),
  delta: (content) => chunk(1, { content }),
  events: (said, ended = {}) => [
    ...said.flatMap((it, index) => messagesOf(it, index, ended)).map((it) => chunk(ended.number ?? 1, it)),
    ...(ended.cut === true ? [] : [chunk(ended.number ?? 1, {}, end(ended))]),
  ],
  document: (said, ended = {}) =>
    chunk(
      ended.number ?? 1,
      Object.assign({}, ...said.flatMap((it, index) => messagesOf(it, index, ended))),
      end(ended),
    ),
  finishes: { natural: "stop", others: ["length"] },
  failedFinish: { ...chunk(1, {}, end({})), error: "the model runner has stopped" },
  failed: (words) => [{ error: words }],
  errorEvent: (document) => document,
  refusal: (error) => ({ status: 429, document: { error } }),
  rateLimit: (details) => ({ error: "too many requests", details }),
  noOp: /^\{"model":"[^"]*","created_at":"1970-01-01T00:00:00Z","message":\{"role":"assistant","content":""\},"response":"","done":false\}\n/,

  recordings: ["thinking-text", "tool-calls"],
  read: (event) => ({
    text: string(at(event, "message", "content")),
    reasoning: string(at(event, "message", "thinking")),
  }),
  take: ({ json }) => {
    // Ollama's clients parse every line as JSON.
    if (json === undefined) return { broken: true };
    const error = textAt(json, "error");
    if (error !== undefined) return { problem: { code: "", message: error, as: "error" } };
    const text = textAt(json, "message", "content");
    return { ...(text === undefined ? {} : { text }), whole: at(json, "done") === true };
  },
};
