/**
 * Writes an answer as an OpenAI chat-completions stream: a role delta, deltas, a finish reason, usage and `[DONE]`.
 */
import * as Json from "../../domain/Json.ts";
import type { AnswerProtocol } from "./AnswerProtocol.ts";
import { bytesFrame, commentFrame, frame, tokens } from "./Frames.ts";
import type { AnswerEvent, FinishName, Item, NumberedAnswer } from "./Items.ts";
import { model } from "./Items.ts";
import { errorBody, errors } from "./OpenAiErrors.ts";

const events = (answer: NumberedAnswer): ReadonlyArray<AnswerEvent> => {
  const chunk = (delta: object, finish: string | null = null) => ({
    ...makeEnvelope(answer.request),
    choices: [{ index: 0, delta, finish_reason: finish }],
  });
  let index = -1;
  const written: Array<AnswerEvent> = [frame("lifecycle", chunk({ role: "assistant", content: "" }))];
  for (const item of answer.items) {
    if (item.type === "call" && item.call.executor === "runtime") index += 1;
    for (const event of itemEvents(item, index, chunk)) written.push(event);
  }
  if (answer.finish === "none") return written;
  written.push(frame("terminal", chunk({}, finishReasons[answer.finish])));
  if (answer.usage) {
    const { input, output } = tokens(answer.items);
    const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
    written.push(frame("terminal", { ...makeEnvelope(answer.request), choices: [], usage }));
  }
  written.push(frame("terminal", "[DONE]"));
  return written;
};

const makeEnvelope = (request: number) => ({
  id: `chatcmpl-r${request}`,
  object: "chat.completion.chunk",
  created: 1_700_000_000,
  model,
});

const itemEvents = (item: Item, index: number, chunk: (delta: object) => object): ReadonlyArray<AnswerEvent> => {
  switch (item.type) {
    case "reasoning":
      return item.deltas.map((serial) =>
        frame("reasoning", chunk({ reasoning_content: serial }), { serials: [serial] }),
      );
    case "text":
      return item.deltas.map((serial) => frame("text", chunk({ content: serial }), { serials: [serial] }));
    case "refusal":
      return item.deltas.map((serial) => frame("text", chunk({ refusal: serial }), { serials: [serial] }));
    case "ping":
      return Array.from({ length: item.count }, () => commentFrame);
    case "bytes":
      return [bytesFrame(item.bytes)];
    case "error": {
      const { code, message, type } = errors[item.error];
      return [frame("error", { error: { message, type, param: null, code } })];
    }
    case "call":
      return item.call.executor === "provider" ? [executedEvent(item, chunk)] : callEvents(item, index, chunk);
  }
};

type CallItem = Extract<Item, { readonly type: "call" }>;

const callEvents = (item: CallItem, index: number, chunk: (delta: object) => object): ReadonlyArray<AnswerEvent> => [
  frame(
    "call",
    chunk({
      tool_calls: [{ index, id: item.id, type: "function", function: { name: item.call.name, arguments: "" } }],
    }),
  ),
  ...item.pieces.map((piece, at) =>
    frame("arguments", chunk({ tool_calls: [{ index, function: { arguments: piece } }] }), callIfWhole(item, at)),
  ),
];

const callIfWhole = (item: CallItem, at: number) =>
  at === item.pieces.length - 1 && !item.cut ? { call: item.call } : {};

/**
 * Returns the event of a tool that the provider ran, as in `executed_tools` of Groq's compound models. Chat has no standard event for it.
 */
const executedEvent = (item: CallItem, chunk: (delta: object) => object): AnswerEvent =>
  frame(
    "call",
    chunk({
      executed_tools: [
        { index: 0, name: item.call.name, type: item.call.name, arguments: item.pieces.join(""), output: "done" },
      ],
    }),
    { call: item.call },
  );

const finishReasons: Record<Exclude<FinishName, "none">, string> = {
  stop: "stop",
  tool: "tool_calls",
  length: "length",
  content_filter: "content_filter",
};

/** The OpenAI Chat Completions protocol. */
export const openAiChat: AnswerProtocol = {
  id: "openai-chat",
  shortName: "chat",
  path: "/v1/chat/completions",
  basePath: "/v1",
  isServed: (path) => path.endsWith("/chat/completions"),
  write: events,
  errorBody,
  endsWith: "event",
  mayEnd: ({ choices }) => Json.list(choices).some((choice) => Json.string(Json.record(choice)?.finish_reason) !== ""),
};
