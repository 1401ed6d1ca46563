/**
 * Writes an answer as a Gemini stream: chunks with parts, the last with a finishReason, then the end of the body.
 */

import type { ProviderErrorName } from "../script/FaultScript.ts";
import { namedError, statusOf } from "./AnswerErrors.ts";
import { bytesFrame, commentFrame, frame, tokens } from "./AnswerFrames.ts";
import type { AnswerEvent, FinishName, Item, NumberedAnswer } from "./AnswerItems.ts";
import { model } from "./AnswerItems.ts";

/** The events of an answer in Gemini's stream, each with its role; there is no terminal event but the last finishReason. */
export const googleGemini = (answer: NumberedAnswer): ReadonlyArray<AnswerEvent> => {
  const { input, output } = tokens(answer.items);
  const counts = { promptTokenCount: input, candidatesTokenCount: output, totalTokenCount: input + output };
  const usage = answer.usage ? { usageMetadata: counts } : {};
  const chunk = (parts: ReadonlyArray<object>, finishReason?: string) => ({
    candidates: [
      { content: { parts, role: "model" }, ...(finishReason === undefined ? {} : { finishReason }), index: 0 },
    ],
    ...usage,
    modelVersion: model,
    responseId: `r${answer.request}`,
  });
  const events: Array<AnswerEvent> = [];
  for (const item of answer.items) for (const event of itemEvents(item, chunk)) events.push(event);
  if (answer.finish === "none") return events;
  const malformed = answer.items.some((item) => item.type === "call" && item.cut);
  const refused = answer.items.some((item) => item.type === "refusal");
  const reason = malformed ? "MALFORMED_FUNCTION_CALL" : refused ? "SAFETY" : finishReasons[answer.finish];
  events.push(frame("terminal", chunk([{ text: "" }], reason)));
  return events;
};

const itemEvents = (item: Item, chunk: (parts: ReadonlyArray<object>) => object): ReadonlyArray<AnswerEvent> => {
  switch (item.type) {
    case "reasoning":
      return item.deltas.map((serial) =>
        frame("reasoning", chunk([{ text: serial, thought: true }]), { serials: [serial] }),
      );
    case "text":
    case "refusal":
      return item.deltas.map((serial) => frame("text", chunk([{ text: serial }]), { serials: [serial] }));
    case "ping":
      return Array.from({ length: item.count }, () => commentFrame);
    case "bytes":
      return [bytesFrame(item.bytes)];
    case "error":
      return [frame("error", streamError(item.error))];
    case "call":
      return callEvents(item, chunk);
  }
};

/** A call comes whole in one part; one with cut arguments never comes, the finishReason says so instead. */
const callEvents = (
  item: Extract<Item, { readonly type: "call" }>,
  chunk: (parts: ReadonlyArray<object>) => object,
): ReadonlyArray<AnswerEvent> => {
  if (item.cut) return [];
  if (item.call.executor === "runtime") {
    const args: unknown = JSON.parse(item.call.input);
    return [frame("arguments", chunk([{ functionCall: { name: item.call.name, args } }]), { call: item.call })];
  }
  return [
    frame("arguments", chunk([{ executableCode: { language: "PYTHON", code: item.call.input } }])),
    frame("call", chunk([{ codeExecutionResult: { outcome: "OUTCOME_OK", output: "done" } }]), { call: item.call }),
  ];
};

const streamError = (error: ProviderErrorName) => ({
  error: {
    code: statusOf("google-gemini", error),
    message: namedError("google-gemini", error).message,
    status: statuses[error],
  },
});

const statuses: Record<ProviderErrorName, string> = {
  rate_limited: "RESOURCE_EXHAUSTED",
  overloaded: "UNAVAILABLE",
  server_error: "INTERNAL",
  context_overflow: "INVALID_ARGUMENT",
  invalid_request: "INVALID_ARGUMENT",
};

const finishReasons: Record<Exclude<FinishName, "none">, string> = {
  stop: "STOP",
  tool: "STOP",
  length: "MAX_TOKENS",
  content_filter: "SAFETY",
};
