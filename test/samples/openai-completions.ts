/** A sample of text completions, which have neither a conversation nor thoughts nor calls. */
import { at, dataFrame, pieces, problemOf, string, textAt } from "./Json.ts";
import type { Ended, Sample } from "./Sample.ts";

const made = (number: number, choices: ReadonlyArray<object>) => ({
  ...{ id: `cmpl-${number}`, object: "text_completion", created: 1_000 + number, model: "m" },
  choices,
});

const chunk = (number: number, text: string, finish_reason: string | null = null) =>
  made(number, [{ index: 0, text, logprobs: null, finish_reason }]);

const usageOf = ([prompt_tokens, completion_tokens]: readonly [number, number]) => ({
  ...{ prompt_tokens, completion_tokens, total_tokens: prompt_tokens + completion_tokens },
});

const finishOf = ({ finish = "stop" }: Ended): string => finish;

export const openAiCompletions: Sample = {
  id: "openai-completions",
  vendor: "openai",
  has: { thoughts: false, calls: "none", hosted: false, codes: true },
  path: "/v1/completions",
  documentPath: "/v1/completions",
  base: "/v1",
  key: (key) => ({ authorization: `Bearer ${key}` }),
  calls: ["POST /v1/completions", "POST /v1/fim/completions", "POST /infill", "POST /completion"],

  history: "messages",
  assistant: "assistant",
  bare: { model: "m", prompt: "x", stream: true },
  question: (prompt) => ({ model: "m", prompt, stream: true }),
  message: (content) => ({ role: "user", content }),
  histories: [{ model: "m", prompt: "hi", stream: true }],
  streams: (stream) => ({ stream }),
  limit: (max_tokens) => ({ max_tokens }),
  json: { response_format: { type: "json_object" } },
  check: () => [],

  frame: dataFrame,
  start: (number) => chunk(number, ""),
  delta: (text) => chunk(1, text),
  events: (said, ended = {}) => {
    const { cut, lacksLast, number = 1, piece, usage } = ended;
    const texts = said.flatMap((it) => ("text" in it ? pieces(it.text, piece) : []));
    return [
      ...texts.map((text) => chunk(number, text)),
      ...(cut === true ? [] : [chunk(number, "", finishOf(ended))]),
      ...(cut === true || usage === undefined ? [] : [{ ...made(number, []), usage: usageOf(usage) }]),
      ...(cut === true || lacksLast === true ? [] : ["[DONE]"]),
    ];
  },
  document: (said, ended = {}) => ({
    ...chunk(ended.number ?? 1, said.map((it) => ("text" in it ? it.text : "")).join(""), finishOf(ended)),
    ...(ended.usage === undefined ? {} : { usage: usageOf(ended.usage) }),
  }),
  finishes: { natural: "stop", others: ["length", "content_filter"] },
  failedFinish: { ...chunk(1, "", "stop"), error: { message: "Provider returned error", code: 502 } },
  failed: (message) => [chunk(1, ""), { error: { message, type: "server_error", code: 500 } }],
  errorEvent: (document) => document,
  refusal: (message) => ({
    status: 429,
    document: { error: { message, type: "rate_limit_exceeded", code: "rate_limit_exceeded" } },
  }),
  rateLimit: (details) => ({
    error: { message: "Rate limit reached", type: "rate_limit_error", code: "rate_limit_exceeded", details },
  }),
  noOp: /^: keep-alive\n\n/,

  recordings: ["text", "text"],
  read: (event) => ({ text: string(at(event, "choices", 0, "text")), reasoning: "" }),
  take: ({ data, json, kind }) => {
    if (kind !== "event" || data === "[DONE]") return {};
    if (at(json, "error") !== undefined) return { problem: problemOf(at(json, "error"), "error") };
    if (!Array.isArray(at(json, "choices"))) return { broken: true };
    const text = textAt(json, "choices", 0, "text");
    const finish = textAt(json, "choices", 0, "finish_reason");
    return { ...(text === undefined ? {} : { text }), whole: finish !== undefined };
  },
};
