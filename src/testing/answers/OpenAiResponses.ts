/**
 * Writes an answer as an OpenAI Responses stream: `response.created`, items with their deltas, `response.completed`.
 */
import * as Json from "../../domain/Json.ts";
import type { AnswerProtocol } from "./AnswerProtocol.ts";
import { bytesFrame, commentFrame, frame, tokens } from "./Frames.ts";
import type { AnswerEvent, EventRole, Item, NumberedAnswer, ScriptedCall } from "./Items.ts";
import { model } from "./Items.ts";
import { errorBody, errors } from "./OpenAiErrors.ts";

interface EventOptions {
  readonly serials?: ReadonlyArray<string>;
  readonly call?: ScriptedCall;
}
type Write = (role: EventRole, type: string, fields: object, options?: EventOptions) => AnswerEvent;

/** Numbers the events as the API does, and assigns each a role. */
const events = (answer: NumberedAnswer): ReadonlyArray<AnswerEvent> => {
  let sequence = 0;
  const done: Array<unknown> = [];
  const write: Write = (role, type, fields, options = {}) => {
    if (type === "response.output_item.done" && "item" in fields) done.push(fields.item);
    return frame(role, { type, sequence_number: sequence++, ...fields }, { ...options, event: type });
  };
  const response = (status: string, more: object = {}) => ({
    response: {
      id: `resp_r${answer.request}`,
      object: "response",
      created_at: 1_700_000_000,
      status,
      model,
      output: [],
      ...(answer.background ? { background: true, store: true } : {}),
      ...more,
    },
  });
  const written: Array<AnswerEvent> = [
    write("lifecycle", "response.created", response("in_progress")),
    write("lifecycle", "response.in_progress", response("in_progress")),
  ];
  answer.items.forEach((item, index) => {
    for (const event of itemEvents(item, index, write, response)) written.push(event);
  });
  if (answer.finish === "none") return written;
  const { input, output } = tokens(answer.items);
  const usage = answer.usage
    ? { usage: { input_tokens: input, output_tokens: output, total_tokens: input + output } }
    : {};
  const cut =
    answer.finish === "length"
      ? "max_output_tokens"
      : answer.finish === "content_filter"
        ? "content_filter"
        : undefined;
  written.push(
    cut === undefined
      ? // Repeats the whole output, like the API, because clients read it from this event.
        write("terminal", "response.completed", response("completed", { output: done, ...usage }))
      : write(
          "terminal",
          "response.incomplete",
          response("incomplete", { output: done, ...usage, incomplete_details: { reason: cut } }),
        ),
  );
  return written;
};

const itemEvents = (
  item: Item,
  index: number,
  write: Write,
  response: (status: string, more?: object) => object,
): ReadonlyArray<AnswerEvent> => {
  switch (item.type) {
    case "reasoning":
      return reasoningEvents(item.deltas, index, write);
    case "text":
      return messageEvents(item.deltas, index, write, "output_text");
    case "refusal":
      return messageEvents(item.deltas, index, write, "refusal");
    case "ping":
      return Array.from({ length: item.count }, () => commentFrame);
    case "bytes":
      return [bytesFrame(item.bytes)];
    case "error": {
      const { code, message } = errors[item.error];
      return [write("error", "response.failed", response("failed", { error: { code, message } }))];
    }
    case "call":
      return item.call.executor === "provider" ? hostedEvents(item, index, write) : callEvents(item, index, write);
  }
};

const reasoningEvents = (deltas: ReadonlyArray<string>, index: number, write: Write): ReadonlyArray<AnswerEvent> => {
  const id = `rs_${index}`;
  const place = { item_id: id, output_index: index, summary_index: 0 };
  return [
    write("lifecycle", "response.output_item.added", {
      output_index: index,
      item: { id, type: "reasoning", summary: [] },
    }),
    ...deltas.map((serial) =>
      write("reasoning", "response.reasoning_summary_text.delta", { ...place, delta: serial }, { serials: [serial] }),
    ),
    write("lifecycle", "response.reasoning_summary_text.done", { ...place, text: deltas.join("") }),
    write("lifecycle", "response.output_item.done", {
      output_index: index,
      item: { id, type: "reasoning", summary: [{ type: "summary_text", text: deltas.join("") }] },
    }),
  ];
};

const messageEvents = (
  deltas: ReadonlyArray<string>,
  index: number,
  write: Write,
  type: "output_text" | "refusal",
): ReadonlyArray<AnswerEvent> => {
  const id = `msg_${index}`;
  const place = { item_id: id, output_index: index, content_index: 0 };
  const part = (text: string) => (type === "refusal" ? { type, refusal: text } : { type, text, annotations: [] });
  const message = (status: string, content: ReadonlyArray<object>) => ({
    id,
    type: "message",
    status,
    role: "assistant",
    content,
  });
  const text = deltas.join("");
  return [
    write("lifecycle", "response.output_item.added", { output_index: index, item: message("in_progress", []) }),
    write("lifecycle", "response.content_part.added", { ...place, part: part("") }),
    ...deltas.map((serial) =>
      write("text", `response.${type}.delta`, { ...place, delta: serial }, { serials: [serial] }),
    ),
    write("lifecycle", `response.${type}.done`, { ...place, ...(type === "refusal" ? { refusal: text } : { text }) }),
    write("lifecycle", "response.content_part.done", { ...place, part: part(text) }),
    write("lifecycle", "response.output_item.done", { output_index: index, item: message("completed", [part(text)]) }),
  ];
};

type CallItem = Extract<Item, { readonly type: "call" }>;

const callEvents = (item: CallItem, index: number, write: Write): ReadonlyArray<AnswerEvent> => {
  const id = `fc_${index}`;
  const sent = item.pieces.join("");
  const call = (status: string, text: string) => ({
    output_index: index,
    item: { id, type: "function_call", status, call_id: item.id, name: item.call.name, arguments: text },
  });
  return [
    write("call", "response.output_item.added", call("in_progress", "")),
    ...item.pieces.map((delta) =>
      write("arguments", "response.function_call_arguments.delta", { item_id: id, output_index: index, delta }),
    ),
    write("call", "response.function_call_arguments.done", { item_id: id, output_index: index, arguments: sent }),
    write("call", "response.output_item.done", call("completed", sent), item.cut ? {} : { call: item.call }),
  ];
};

/**
 * Returns the events of a hosted call. `web_search` has its own item type in this protocol. Any other name is written as a hosted MCP call.
 */
const hostedEvents = (item: CallItem, index: number, write: Write): ReadonlyArray<AnswerEvent> => {
  const search = item.call.name === "web_search";
  const id = `${search ? "ws" : "mcp"}_${index}`;
  const type = search ? "web_search_call" : "mcp_call";
  const place = { item_id: id, output_index: index };
  const sent = item.pieces.join("");
  const fields = search
    ? { action: { type: "search", query: sent } }
    : { name: item.call.name, server_label: "fault", arguments: sent, output: "done" };
  return [
    write("call", "response.output_item.added", {
      output_index: index,
      item: { id, type, status: "in_progress", ...fields },
    }),
    write("call", `response.${type}.in_progress`, place),
    write("call", `response.${type}.completed`, place, { call: item.call }),
    write("call", "response.output_item.done", {
      output_index: index,
      item: { id, type, status: "completed", ...fields },
    }),
  ];
};

/** The OpenAI Responses protocol, including a `GET` of one of its responses. */
export const openAiResponses: AnswerProtocol = {
  id: "openai-responses",
  shortName: "responses",
  path: "/v1/responses",
  basePath: "/v1",
  isServed: (path) => /\/responses(\/[^/]+)?$/.test(path),
  write: events,
  errorBody,
  endsWith: "event",
  mayEnd: ({ type }) => /^response\.(completed|incomplete|failed|cancelled)$/.test(Json.string(type)),
};
