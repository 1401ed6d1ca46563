/**
 * Writes an answer as an Anthropic Messages stream: `message_start`, content blocks, `message_delta`, `message_stop`.
 */
import * as Json from "../../domain/Json.ts";
import type { ProviderErrorName } from "../script/FaultScript.ts";
import type { AnswerProtocol } from "./AnswerProtocol.ts";
import { bytesFrame, frame, tokens } from "./Frames.ts";
import type { AnswerEvent, EventRole, FinishName, Item, NumberedAnswer, ScriptedCall } from "./Items.ts";
import { model } from "./Items.ts";

const events = (answer: NumberedAnswer): ReadonlyArray<AnswerEvent> => {
  const { input, output } = tokens(answer.items);
  const message = {
    id: `msg_r${answer.request}`,
    type: "message",
    role: "assistant",
    model,
    content: [],
    stop_reason: null,
    stop_sequence: null,
    usage: { input_tokens: input, output_tokens: 1 },
  };
  const written: Array<AnswerEvent> = [write("lifecycle", "message_start", { message }), pingFrame];
  let index = 0;
  for (const item of answer.items) {
    for (const event of itemEvents(item, index)) written.push(event);
    index += blocksOf(item);
  }
  if (answer.finish === "none") return written;
  const refused = answer.items.some((item) => item.type === "refusal");
  written.push(
    write("terminal", "message_delta", {
      delta: { stop_reason: refused ? "refusal" : stopReasons[answer.finish], stop_sequence: null },
      ...(answer.usage ? { usage: { output_tokens: output } } : {}),
    }),
    write("terminal", "message_stop", {}),
  );
  return written;
};

const write = (
  role: EventRole,
  type: string,
  fields: object,
  options: { readonly serials?: ReadonlyArray<string>; readonly call?: ScriptedCall } = {},
): AnswerEvent => frame(role, { type, ...fields }, { ...options, event: type });

const pingFrame: AnswerEvent = write("ping", "ping", {});

/** Returns the number of blocks of an item. A hosted call and its result are two blocks. Pings, errors and raw bytes are not blocks. */
const blocksOf = (item: Item): number => {
  if (item.type === "ping" || item.type === "error" || item.type === "bytes") return 0;
  return item.type === "call" && item.call.executor === "provider" ? 2 : 1;
};

const itemEvents = (item: Item, index: number): ReadonlyArray<AnswerEvent> => {
  switch (item.type) {
    case "reasoning":
      return [
        ...block(
          "reasoning",
          index,
          { type: "thinking", thinking: "", signature: "" },
          item.deltas.map((serial) => ({ type: "thinking_delta", thinking: serial })),
          item.deltas,
        ),
        write("lifecycle", "content_block_delta", { index, delta: { type: "signature_delta", signature: "c2ln" } }),
        stop(index),
      ];
    case "text":
    case "refusal":
      return [
        ...block(
          "text",
          index,
          { type: "text", text: "" },
          item.deltas.map((serial) => ({ type: "text_delta", text: serial })),
          item.deltas,
        ),
        stop(index),
      ];
    case "ping":
      return Array.from({ length: item.count }, () => pingFrame);
    case "bytes":
      return [bytesFrame(item.bytes)];
    case "error": {
      const { message, type } = errors[item.error];
      return [write("error", "error", { error: { type, message } })];
    }
    case "call":
      return callEvents(item, index);
  }
};

const block = (
  role: EventRole,
  index: number,
  start: object,
  deltas: ReadonlyArray<object>,
  serials: ReadonlyArray<string>,
): ReadonlyArray<AnswerEvent> => [
  write("lifecycle", "content_block_start", { index, content_block: start }),
  ...deltas.map((delta, at) =>
    write(role, "content_block_delta", { index, delta }, { serials: serials.slice(at, at + 1) }),
  ),
];

const stop = (index: number): AnswerEvent => write("lifecycle", "content_block_stop", { index });

const callEvents = (item: Extract<Item, { readonly type: "call" }>, index: number): ReadonlyArray<AnswerEvent> => {
  const hosted = item.call.executor === "provider";
  const id = hosted ? `srvtoolu_${item.call.serial}` : `toolu_${item.call.serial}`;
  const start = { type: hosted ? "server_tool_use" : "tool_use", id, name: item.call.name, input: {} };
  const whole = item.cut ? {} : { call: item.call };
  const events = [
    write("call", "content_block_start", { index, content_block: start }),
    ...["", ...item.pieces].map((piece) =>
      write("arguments", "content_block_delta", { index, delta: { type: "input_json_delta", partial_json: piece } }),
    ),
    write("call", "content_block_stop", { index }, hosted ? {} : whole),
  ];
  if (!hosted) return events;
  const result = { type: `${item.call.name}_tool_result`, tool_use_id: id, content: [] };
  return [
    ...events,
    write("call", "content_block_start", { index: index + 1, content_block: result }, { call: item.call }),
    stop(index + 1),
  ];
};

const stopReasons: Record<Exclude<FinishName, "none">, string> = {
  stop: "end_turn",
  tool: "tool_use",
  length: "max_tokens",
  content_filter: "refusal",
};

const errorBody = (status: number): object => ({
  type: "error",
  error: { type: anthropicTypes[status] ?? "api_error", message: `status ${status}` },
  request_id: "req_fault",
});

const anthropicTypes: Record<number, string> = {
  400: "invalid_request_error",
  401: "authentication_error",
  402: "billing_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  500: "api_error",
  504: "timeout_error",
  529: "overloaded_error",
};

const errors: Readonly<Record<ProviderErrorName, { readonly type: string; readonly message: string }>> = {
  rate_limited: { type: "rate_limit_error", message: "Rate limited" },
  overloaded: { type: "overloaded_error", message: "Overloaded" },
  server_error: { type: "api_error", message: "Internal server error" },
  context_overflow: {
    type: "invalid_request_error",
    message: "prompt is too long: 200001 tokens > 200000 maximum",
  },
  invalid_request: {
    type: "invalid_request_error",
    message: "messages: field required",
  },
};

/** The Anthropic Messages protocol. */
export const anthropicMessages: AnswerProtocol = {
  id: "anthropic-messages",
  shortName: "messages",
  path: "/v1/messages",
  basePath: "",
  isServed: (path) => path.endsWith("/messages"),
  write: events,
  errorBody,
  ping: pingFrame,
  endsWith: "event",
  mayEnd: ({ delta, type }) => type === "message_stop" || Json.string(Json.record(delta)?.stop_reason) !== "",
};
