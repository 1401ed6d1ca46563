/** A sample of Cohere's `/v2/chat`. */
import { at, dataFrame, fields, list, namedFrame, pairs, pieces, problemOf, string, textAt } from "./Json.ts";
import type { Ended, Event, Said, Sample } from "./Sample.ts";

const message = (content: string) => ({ role: "user", content });

const start = (number: number) => ({
  ...{ type: "message-start", id: `c_${number}` },
  delta: { message: { role: "assistant", content: [], tool_plan: "", tool_calls: [], citations: [] } },
});

const block = (index: number, type: "text" | "thinking", texts: ReadonlyArray<string>, open: boolean) => [
  { type: "content-start", index, delta: { message: { content: { type, [type]: "" } } } },
  ...texts.map((text) => ({ type: "content-delta", index, delta: { message: { content: { [type]: text } } } })),
  ...(open ? [] : [{ type: "content-end", index }]),
];

const eventsOf = (it: Said, index: number, open: boolean, { number = 1, piece }: Ended): ReadonlyArray<object> => {
  if ("text" in it) return block(index, "text", pieces(it.text, piece), open);
  if ("thought" in it) return block(index, "thinking", pieces(it.thought, piece), open);
  if ("native" in it) return [it.native];
  const begun = { id: `call_${number}_${index}`, type: "function", function: { name: it.call, arguments: "" } };
  return [
    { type: "tool-call-start", index, delta: { message: { tool_calls: begun } } },
    ...it.pieces.map((arguments_) => ({
      ...{ type: "tool-call-delta", index },
      delta: { message: { tool_calls: { function: { arguments: arguments_ } } } },
    })),
    ...(it.open === true ? [] : [{ type: "tool-call-end", index }]),
  ];
};

const natural = (said: ReadonlyArray<Said>): string => (said.some((it) => "call" in it) ? "TOOL_CALL" : "COMPLETE");

const usageOf = ([input_tokens, output_tokens]: readonly [number, number]) => ({
  usage: { billed_units: { input_tokens, output_tokens }, tokens: { input_tokens, output_tokens } },
});

const end = (said: ReadonlyArray<Said>, { finish = natural(said), number = 1, usage }: Ended) => ({
  ...{ type: "message-end", id: `c_${number}` },
  delta: { finish_reason: finish, ...(usage === undefined ? {} : usageOf(usage)) },
});

const frameOf = (event: Event): string =>
  typeof event === "string" || fields(event).type === undefined ? dataFrame(event) : namedFrame(event);

export const cohereChat: Sample = {
  id: "cohere-chat",
  vendor: "cohere",
  has: { thoughts: true, calls: "pieces", hosted: false, codes: false },
  path: "/v2/chat",
  documentPath: "/v2/chat",
  base: "",
  key: (key) => ({ authorization: `Bearer ${key}` }),
  calls: ["POST /v2/chat"],

  history: "messages",
  assistant: "assistant",
  bare: { model: "m", messages: [], stream: true },
  question: (text) => ({ model: "m", stream: true, messages: [message(text)] }),
  message,
  histories: [
    { messages: [message("hi")] },
    {
      messages: [
        message("hi"),
        { role: "assistant", tool_calls: [{ id: "t0", type: "function", function: { name: "b", arguments: "{}" } }] },
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
    messages.forEach((it, at) => {
      if (it.role !== "assistant") return;
      const calls = list(it.tool_calls);
      if (calls.length === 0 && it.content === undefined) problems.push("an empty assistant message");
      const behind = messages.slice(at + 1);
      const last = behind.findIndex(({ role }) => role !== "tool");
      const own = last === -1 ? behind : behind.slice(0, last);
      problems.push(
        ...pairs(
          `message ${at}`,
          calls.map(({ id }) => string(id)),
          own.map(({ tool_call_id }) => string(tool_call_id)),
        ),
      );
    });
    return problems;
  },

  frame: frameOf,
  start,
  delta: (text) => ({ type: "content-delta", index: 9, delta: { message: { content: { text } } } }),
  events: (said, ended = {}) => [
    start(ended.number ?? 1),
    ...said.flatMap((it, index) => eventsOf(it, index, ended.cut === true && index === said.length - 1, ended)),
    ...(ended.cut === true ? [] : [end(said, ended)]),
    ...(ended.cut === true || ended.lacksLast === true ? [] : ["[DONE]"]),
  ],
  document: (said, ended = {}) => ({
    ...{ id: `c_${ended.number ?? 1}`, finish_reason: ended.finish ?? natural(said) },
    message: {
      role: "assistant",
      content: said.flatMap(
        (it): ReadonlyArray<object> =>
          "text" in it
            ? [{ type: "text", text: it.text }]
            : "thought" in it
              ? [{ type: "thinking", thinking: it.thought }]
              : [],
      ),
      tool_calls: said.flatMap((it, index) =>
        "call" in it
          ? [{ id: `call_${index}`, type: "function", function: { name: it.call, arguments: it.pieces.join("") } }]
          : [],
      ),
    },
    ...(ended.usage === undefined ? {} : usageOf(ended.usage)),
  }),
  finishes: { natural: "COMPLETE", others: ["MAX_TOKENS", "STOP_SEQUENCE", "ERROR_TOXIC"] },
  failedFinish: { type: "message-end", id: "c_1", delta: { finish_reason: "ERROR", error: "internal server error" } },
  failed: (words) => [start(1), { type: "error", message: words }],
  errorEvent: (document) => ({ type: "error", ...document }),
  refusal: (words) => ({ status: 429, document: { message: words } }),
  rateLimit: (details) => ({ message: "too many requests", details }),
  noOp: /^: keep-alive\n\n/,

  recordings: ["thinking-text", "tool-calls"],
  read: (event) => ({
    text: string(at(event, "delta", "message", "content", "text")),
    reasoning: string(at(event, "delta", "message", "content", "thinking")),
  }),
  take: ({ data, json, kind }) => {
    if (kind !== "event" || data === "[DONE]") return {};
    if (textAt(json, "type") === "error") return { problem: problemOf(json, "error") };
    const text = textAt(json, "delta", "message", "content", "text");
    return { ...(text === undefined ? {} : { text }), whole: textAt(json, "type") === "message-end" };
  },
};
