/** A sample of Responses. */
import { at, type Fields, fields, list, namedFrame, pairs, pieces, problemOf, string, textAt } from "./Json.ts";
import type { Ended, Said, Sample } from "./Sample.ts";

const message = (text: string) => ({ role: "user", content: [{ type: "input_text", text }] });

/** An output item: as it begins, the events until it is done, and as it is in the whole response. */
interface Item {
  readonly added?: object;
  readonly between?: ReadonlyArray<{ readonly type: string; readonly [field: string]: unknown }>;
  readonly done?: object;
}

const part = (text: string) => ({ type: "output_text", text, annotations: [], logprobs: [] });

const textItem = (text: string, id: string, output_index: number, piece?: number): Item => {
  const about = { output_index, item_id: id, content_index: 0 };
  const item = { id, type: "message", role: "assistant" };
  return {
    added: { ...item, status: "in_progress", content: [] },
    between: [
      { type: "response.content_part.added", ...about, part: part("") },
      ...pieces(text, piece).map((delta) => ({ type: "response.output_text.delta", ...about, delta, logprobs: [] })),
      { type: "response.output_text.done", ...about, text, logprobs: [] },
      { type: "response.content_part.done", ...about, part: part(text) },
    ],
    done: { ...item, status: "completed", content: [part(text)] },
  };
};

const thoughtItem = (text: string, id: string, output_index: number, piece?: number): Item => {
  const about = { output_index, item_id: id, summary_index: 0 };
  const summary = { type: "summary_text", text };
  return {
    added: { id, type: "reasoning", summary: [] },
    between: [
      { type: "response.reasoning_summary_part.added", ...about, part: { ...summary, text: "" } },
      ...pieces(text, piece).map((delta) => ({ type: "response.reasoning_summary_text.delta", ...about, delta })),
      { type: "response.reasoning_summary_text.done", ...about, text },
      { type: "response.reasoning_summary_part.done", ...about, part: summary },
    ],
    done: { id, type: "reasoning", summary: [summary] },
  };
};

const itemOf = (it: Said, index: number, { number = 1, piece }: Ended): Item => {
  const suffix = index === 0 ? `${number}` : `${number}_${index}`;
  // An item of another kind is only in the whole response.
  if ("native" in it) return { done: it.native };
  if ("text" in it) return textItem(it.text, `msg_${suffix}`, index, piece);
  if ("thought" in it) return thoughtItem(it.thought, `rs_${suffix}`, index, piece);
  const id = `fc_${suffix}`;
  const item = { id, type: "function_call", call_id: `call_${suffix}`, name: it.call };
  const about = { output_index: index, item_id: id };
  const type = "response.function_call_arguments";
  const written = it.pieces.join("");
  const deltas = it.pieces.map((delta) => ({ type: `${type}.delta`, ...about, delta }));
  const added = { ...item, status: "in_progress", arguments: "" };
  if (it.open === true) return { added, between: deltas };
  return {
    added,
    between: [...deltas, { type: `${type}.done`, ...about, name: it.call, arguments: written }],
    done: { ...item, status: "completed", arguments: written },
  };
};

/** The events of an item that has begun and is not done. */
const beginning = ({ added, between = [] }: Item): Item => ({
  ...(added === undefined ? {} : { added }),
  between: between.filter(({ type }) => !type.endsWith(".done")),
});

const response = (number: number) => ({
  ...{ id: `resp_${number}`, object: "response", created_at: 1_000 + number, model: "m" },
  ...{ error: null, incomplete_details: null },
});

const begun = (number: number) => ({ ...response(number), status: "in_progress", output: [], usage: null });

const whole = (items: ReadonlyArray<Item>, { finish = "completed", number = 1, usage }: Ended) => ({
  ...response(number),
  status: finish,
  output: items.flatMap(({ done }) => (done === undefined ? [] : [done])),
  usage:
    usage === undefined
      ? null
      : {
          ...{ input_tokens: usage[0], output_tokens: usage[1], total_tokens: usage[0] + usage[1] },
          ...{ input_tokens_details: { cached_tokens: 0 }, output_tokens_details: { reasoning_tokens: 0 } },
        },
  ...(finish === "incomplete" ? { incomplete_details: { reason: "max_output_tokens" } } : {}),
});

export const openAiResponses: Sample = {
  id: "openai-responses",
  vendor: "openai",
  has: { thoughts: true, calls: "pieces", hosted: true, codes: true },
  path: "/v1/responses",
  documentPath: "/v1/responses",
  base: "/v1",
  key: (key) => ({ authorization: `Bearer ${key}` }),
  calls: [
    "POST /v1/responses",
    "POST /responses",
    "POST /v1/responses/input_tokens",
    "POST /v1/responses/compact",
    "GET /v1/responses/resp_1",
    "GET /v1/responses/resp_1?stream=true&starting_after=3",
    "GET /v1/responses/resp_1/input_items",
    "DELETE /v1/responses/resp_1",
    "POST /v1/responses/resp_1/cancel",
  ],

  history: "input",
  assistant: "assistant",
  bare: { model: "m", input: "x", stream: true },
  question: (input) => ({ model: "m", input, stream: true, store: false }),
  message,
  histories: [
    { input: "hi" },
    { input: [{ role: "user", content: "hi" }] },
    { input: [{ role: "user", content: "hi" }], previous_response_id: "resp_0" },
  ],
  streams: (stream) => ({ stream }),
  limit: (max_output_tokens) => ({ max_output_tokens }),
  json: { text: { format: { type: "json_schema" } } },
  check: (body) => {
    const items = list(fields(body).input);
    const problems: Array<string> = [];
    const last = items.at(-1);
    if (last?.role === "assistant" || last?.type === "reasoning") problems.push("ends with the assistant");
    // A hosted call has its result in itself; its call_id is a label at some servers.
    const isCall = (item: Fields) =>
      /^(function|custom_tool|local_shell|shell|apply_patch|computer)_call$/.test(string(item.type));
    const isOutput = (item: Fields) => /_call_output$/.test(string(item.type));
    problems.push(
      ...pairs(
        "input",
        items.filter(isCall).map((it) => string(it.call_id)),
        items.filter(isOutput).map((it) => string(it.call_id)),
      ),
    );
    const requests = items.filter((item) => item.type === "mcp_approval_request").map((item) => string(item.id));
    const answers = items.filter((item) => item.type === "mcp_approval_response");
    problems.push(
      ...pairs(
        "approvals",
        requests,
        answers.map((item) => string(item.approval_request_id)),
      ),
    );
    items.forEach((item, at) => {
      if (item.type !== "reasoning") return;
      if (string(item.encrypted_content) === "") problems.push("reasoning that only the provider may have");
      const next = items.slice(at + 1).find((it) => it.type !== "reasoning");
      if (next === undefined || next.role === "user" || isOutput(next)) problems.push("reasoning without its item");
    });
    const closed = items.findLastIndex((item) => isOutput(item) && item.type !== "shell_call_output");
    if (closed !== -1 && items.slice(closed).some((item) => item.role === "assistant"))
      problems.push("prose behind results");
    return problems;
  },

  frame: namedFrame,
  start: (number) => ({ type: "response.created", response: begun(number) }),
  delta: (delta) => ({
    ...{ type: "response.output_text.delta", item_id: "msg_x", output_index: 9, content_index: 0, delta },
  }),
  events: (said, ended = {}) => {
    const { cut, finish = "completed", number = 1 } = ended;
    const items = said.map((it, index) => {
      const item = itemOf(it, index, ended);
      // A stream that is cut has not completed its last item.
      return cut === true && index === said.length - 1 ? beginning(item) : item;
    });
    return [
      { type: "response.created", response: begun(number) },
      { type: "response.in_progress", response: begun(number) },
      ...items.flatMap(({ added, between = [], done }, output_index) => [
        ...(added === undefined ? [] : [{ type: "response.output_item.added", output_index, item: added }]),
        ...between,
        ...(added === undefined || done === undefined
          ? []
          : [{ type: "response.output_item.done", output_index, item: done }]),
      ]),
      ...(cut === true ? [] : [{ type: `response.${finish}`, response: whole(items, ended) }]),
    ].map((event, sequence_number) => ({ ...event, sequence_number }));
  },
  document: (said, ended = {}) =>
    whole(
      said.map((it, index) => itemOf(it, index, ended)),
      ended,
    ),
  finishes: { natural: "completed", others: ["incomplete"] },
  failedFinish: {
    type: "response.completed",
    response: { id: "resp_x", status: "failed", error: { code: "server_error", message: "The server had an error" } },
  },
  failed: (words) => [
    { type: "response.created", sequence_number: 0, response: begun(1) },
    { type: "error", code: "server_error", message: words, sequence_number: 1 },
  ],
  errorEvent: (document) => ({ type: "response.failed", response: { ...response(1), status: "failed", ...document } }),
  refusal: (words) => ({
    status: 429,
    document: { error: { message: words, type: "rate_limit_exceeded", code: "rate_limit_exceeded" } },
  }),
  rateLimit: (details) => ({
    error: { message: "Rate limit reached", type: "rate_limit_error", code: "rate_limit_exceeded", details },
  }),
  noOp: /^: keep-alive\n\n/,

  recordings: ["reasoning-text", "functions"],
  read: (event) => {
    const type = string(at(event, "type"));
    const delta = string(at(event, "delta"));
    const isText = type === "response.output_text.delta" || type === "response.refusal.delta";
    return {
      text: isText ? delta : "",
      reasoning: type === "response.reasoning_summary_text.delta" ? delta : "",
    };
  },
  take: ({ json, kind }, before) => {
    if (kind !== "event") return {};
    switch (textAt(json, "type")) {
      case "response.created": {
        const created = before.find((frame) => textAt(frame.json, "type") === "response.created");
        const other =
          created !== undefined && textAt(created.json, "response", "id") !== textAt(json, "response", "id");
        // "Lifecycle response identity changed": the helper rejects a second response.
        return { broken: other };
      }
      case "response.output_text.delta":
        return { text: textAt(json, "delta") ?? "" };
      case "response.completed":
        return { whole: true };
      case "response.failed":
        return { problem: problemOf(at(json, "response", "error"), "failed") };
      case "error":
        return {
          problem: at(json, "error") === undefined ? problemOf(json, "error") : problemOf(at(json, "error"), "nested"),
        };
      default:
        return {};
    }
  },
};
