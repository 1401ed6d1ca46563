/**
 * Writes an answer as a Cohere stream: blocks of content, calls, `message-end`, and `[DONE]`.
 */
import type { AnswerProtocol } from "./AnswerProtocol.ts";
import { bytesFrame, commentFrame, frame, tokens } from "./Frames.ts";
import type { AnswerEvent, EventRole, FinishName, Item, NumberedAnswer, ScriptedCall } from "./Items.ts";
import { errors } from "./OpenAiErrors.ts";

interface About {
  readonly serials?: ReadonlyArray<string>;
  readonly call?: ScriptedCall;
}

const makeEvent = (role: EventRole, type: string, data: object, about: About = {}): AnswerEvent =>
  frame(role, { type, ...data }, { event: type, ...about });

const events = (answer: NumberedAnswer): ReadonlyArray<AnswerEvent> => {
  const message = { role: "assistant", content: [], tool_plan: "", tool_calls: [], citations: [] };
  const start = makeEvent("lifecycle", "message-start", { id: `r${answer.request}`, delta: { message } });
  const written = [start, ...answer.items.flatMap((item, index) => itemEvents(item, index))];
  if (answer.finish === "none") return written;
  const { input, output } = tokens(answer.items);
  const counts = { input_tokens: input, output_tokens: output };
  const usage = answer.usage ? { usage: { billed_units: counts, tokens: counts } } : {};
  const delta = { finish_reason: finishReasons[answer.finish], ...usage };
  return [
    ...written,
    makeEvent("terminal", "message-end", { id: `r${answer.request}`, delta }),
    frame("terminal", "[DONE]"),
  ];
};

const itemEvents = (item: Item, index: number): ReadonlyArray<AnswerEvent> => {
  switch (item.type) {
    case "reasoning":
      return blockEvents("reasoning", "thinking", item.deltas, index);
    case "text":
    case "refusal":
      return blockEvents("text", "text", item.deltas, index);
    case "ping":
      return Array.from({ length: item.count }, () => commentFrame);
    case "bytes":
      return [bytesFrame(item.bytes)];
    case "error":
      return [makeEvent("error", "error", { message: errors[item.error].message, code: errors[item.error].code })];
    case "call":
      return callEvents(item, index);
  }
};

const blockEvents = (
  role: "reasoning" | "text",
  field: "thinking" | "text",
  deltas: ReadonlyArray<string>,
  index: number,
): ReadonlyArray<AnswerEvent> => {
  const delta = (content: object) => ({ index, delta: { message: { content } } });
  return [
    makeEvent("lifecycle", "content-start", delta({ type: field, [field]: "" })),
    ...deltas.map((serial) => makeEvent(role, "content-delta", delta({ [field]: serial }), { serials: [serial] })),
    makeEvent("lifecycle", "content-end", { index }),
  ];
};

/** Returns the events of a call. Cohere runs no tools of its own in this protocol. */
const callEvents = (
  { call, cut, id, pieces }: Extract<Item, { readonly type: "call" }>,
  index: number,
): ReadonlyArray<AnswerEvent> => {
  const delta = (tool_calls: object) => ({ index, delta: { message: { tool_calls } } });
  const begun = { id, type: "function", function: { name: call.name, arguments: "" } };
  return [
    makeEvent("call", "tool-call-start", delta(begun)),
    ...pieces.map((piece) => makeEvent("arguments", "tool-call-delta", delta({ function: { arguments: piece } }))),
    makeEvent("arguments", "tool-call-end", { index }, cut ? {} : { call }),
  ];
};

const finishReasons: Record<Exclude<FinishName, "none">, string> = {
  stop: "COMPLETE",
  tool: "TOOL_CALL",
  length: "MAX_TOKENS",
  content_filter: "ERROR_TOXIC",
};

/** Cohere's protocol. */
export const cohereChat: AnswerProtocol = {
  id: "cohere-chat",
  shortName: "cohere",
  path: "/v2/chat",
  basePath: "",
  isServed: (path) => path.endsWith("/v2/chat"),
  write: events,
  errorBody: (status) => ({ message: `status ${status}` }),
  endsWith: "event",
  mayEnd: ({ type }) => type === "message-end",
};
