/**
 * Writes an answer as an Ollama stream: one JSON object a line, and a last one with `done: true`.
 */
import type { AnswerProtocol } from "./AnswerProtocol.ts";
import { bytesFrame, tokens } from "./Frames.ts";
import type { AnswerEvent, FinishName, Item, NumberedAnswer } from "./Items.ts";
import { model } from "./Items.ts";
import { errors } from "./OpenAiErrors.ts";

const line = (role: AnswerEvent["role"], data: object, more: Partial<AnswerEvent> = {}): AnswerEvent => ({
  frame: `${JSON.stringify(data)}\n`,
  role,
  serials: [],
  ...more,
});

const chunk = (message: object) => ({
  ...{ model, created_at: "2026-01-01T00:00:00Z" },
  message: { role: "assistant", content: "", ...message },
  done: false,
});

const events = (answer: NumberedAnswer): ReadonlyArray<AnswerEvent> => {
  const written = answer.items.flatMap(itemEvents);
  if (answer.finish === "none") return written;
  const { input, output } = tokens(answer.items);
  const usage = answer.usage ? { prompt_eval_count: input, eval_count: output } : {};
  const last = { ...chunk({}), done: true, done_reason: doneReasons[answer.finish], ...usage };
  return [...written, line("terminal", last)];
};

const itemEvents = (item: Item): ReadonlyArray<AnswerEvent> => {
  switch (item.type) {
    case "reasoning":
      return item.deltas.map((serial) => line("reasoning", chunk({ thinking: serial }), { serials: [serial] }));
    case "text":
    case "refusal":
      return item.deltas.map((serial) => line("text", chunk({ content: serial }), { serials: [serial] }));
    case "ping":
      return Array.from({ length: item.count }, () => ping);
    case "bytes":
      return [bytesFrame(item.bytes)];
    case "error":
      return [line("error", { error: errors[item.error].message })];
    case "call":
      return callEvents(item);
  }
};

/** Returns the event of a call, which arrives whole. A call with cut arguments never arrives. Ollama has no tools of its own. */
const callEvents = ({ call, cut, id }: Extract<Item, { readonly type: "call" }>): ReadonlyArray<AnswerEvent> => {
  if (cut) return [];
  const args: unknown = JSON.parse(call.input);
  return [line("arguments", chunk({ tool_calls: [{ id, function: { name: call.name, arguments: args } }] }), { call })];
};

const ping = line("ping", chunk({}));

const doneReasons: Record<Exclude<FinishName, "none">, string> = {
  stop: "stop",
  tool: "stop",
  length: "length",
  content_filter: "stop",
};

/** Ollama's own protocol. */
export const ollama: AnswerProtocol = {
  id: "ollama",
  shortName: "ollama",
  path: "/api/chat",
  basePath: "",
  isServed: (path) => /\/api\/(?:chat|generate)$/.test(path),
  contentType: "application/x-ndjson",
  write: events,
  errorBody: (status) => ({ error: `status ${status}` }),
  ping,
  endsWith: "event",
  mayEnd: ({ done }) => done === true,
};
