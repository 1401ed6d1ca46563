/**
 * Writes an answer as a stream of Mistral's conversations: pieces of messages and calls between `conversation.response.started` and
 * `conversation.response.done`.
 */
import type { AnswerProtocol } from "./AnswerProtocol.ts";
import { bytesFrame, commentFrame, frame, tokens } from "./Frames.ts";
import type { AnswerEvent, EventRole, Item, NumberedAnswer, ScriptedCall } from "./Items.ts";
import { model } from "./Items.ts";
import { errors } from "./OpenAiErrors.ts";

interface About {
  readonly serials?: ReadonlyArray<string>;
  readonly call?: ScriptedCall;
}

const makeEvent = (role: EventRole, type: string, data: object, about: About = {}): AnswerEvent =>
  frame(role, { type, ...data }, { event: type, ...about });

const events = (answer: NumberedAnswer): ReadonlyArray<AnswerEvent> => {
  const written = [
    makeEvent("lifecycle", "conversation.response.started", { conversation_id: `conv_r${answer.request}` }),
    ...answer.items.flatMap((item, index) => itemEvents(item, index)),
  ];
  if (answer.finish === "none") return written;
  const { input, output } = tokens(answer.items);
  const usage = answer.usage ? { prompt_tokens: input, completion_tokens: output, total_tokens: input + output } : {};
  return [...written, makeEvent("terminal", "conversation.response.done", { usage })];
};

const itemEvents = (item: Item, index: number): ReadonlyArray<AnswerEvent> => {
  const entry = { output_index: index, id: `entry_${index}`, model };
  const message = (role: "reasoning" | "text", content: unknown, serial: string) =>
    makeEvent(
      role,
      "message.output.delta",
      { ...entry, content_index: 0, role: "assistant", content },
      { serials: [serial] },
    );
  switch (item.type) {
    case "reasoning":
      return item.deltas.map((text) =>
        message("reasoning", { type: "thinking", thinking: [{ type: "text", text }] }, text),
      );
    case "text":
    case "refusal":
      return item.deltas.map((text) => message("text", text, text));
    case "ping":
      return Array.from({ length: item.count }, () => commentFrame);
    case "bytes":
      return [bytesFrame(item.bytes)];
    case "error":
      return [
        makeEvent("error", "conversation.response.error", {
          message: errors[item.error].message,
          code: codes[item.error],
        }),
      ];
    case "call":
      return item.call.executor === "provider" ? hostedEvents(item, entry) : callEvents(item, entry);
  }
};

const codes = { rate_limited: 429, overloaded: 503, server_error: 500, context_overflow: 400, invalid_request: 400 };

type CallItem = Extract<Item, { readonly type: "call" }>;

/** The pieces of a call. Mistral sends no event at its end. */
const callEvents = ({ call, cut, id, pieces }: CallItem, entry: object): ReadonlyArray<AnswerEvent> =>
  (pieces.length === 0 ? [""] : pieces).map((text, at) =>
    makeEvent(
      at === 0 ? "call" : "arguments",
      "function.call.delta",
      { ...entry, name: call.name, tool_call_id: id, arguments: text },
      at >= pieces.length - 1 && !cut ? { call } : {},
    ),
  );

/** A tool of Mistral's, and its end. */
const hostedEvents = ({ call }: CallItem, entry: object): ReadonlyArray<AnswerEvent> => [
  makeEvent("call", "tool.execution.started", { ...entry, name: call.name, arguments: call.input }),
  makeEvent("call", "tool.execution.done", { ...entry, name: call.name }, { call }),
];

/** Mistral's conversations. */
export const mistralConversations: AnswerProtocol = {
  id: "mistral-conversations",
  shortName: "mistral",
  path: "/v1/conversations",
  basePath: "",
  isServed: (path) => /\/conversations(?:\/[^/]+(?:\/restart)?)?$/.test(path),
  write: events,
  errorBody: (status) => ({ object: "error", message: `status ${status}`, type: "error", param: null, code: null }),
  endsWith: "event",
  mayEnd: ({ type }) => type === "conversation.response.done",
};
