/**
 * Writes an answer as a Gemini stream: chunks with parts, a finishReason in the last one, then the end of the body.
 */
import * as Json from "../../domain/Json.ts";
import type { ProviderErrorName } from "../script/FaultScript.ts";
import type { AnswerProtocol } from "./AnswerProtocol.ts";
import { bytesFrame, commentFrame, frame, tokens } from "./Frames.ts";
import type { AnswerEvent, FinishName, Item, NumberedAnswer } from "./Items.ts";
import { model } from "./Items.ts";
import { errors } from "./OpenAiErrors.ts";

/** Assigns each event a role. The chunk with the finishReason is the only terminal event. */
const events = (answer: NumberedAnswer): ReadonlyArray<AnswerEvent> => {
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
  const written: Array<AnswerEvent> = [];
  for (const item of answer.items) for (const event of itemEvents(item, chunk)) written.push(event);
  if (answer.finish === "none") return written;
  const malformed = answer.items.some((item) => item.type === "call" && item.cut);
  const refused = answer.items.some((item) => item.type === "refusal");
  const reason = malformed ? "MALFORMED_FUNCTION_CALL" : refused ? "SAFETY" : finishReasons[answer.finish];
  written.push(frame("terminal", chunk([{ text: "" }], reason)));
  return written;
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

/**
 * Returns the events of a call, which arrives whole in one part. A call with cut arguments has no part, and the finishReason reports the
 * call instead.
 */
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
    code: statusOf(error),
    message: errors[error].message,
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

const statusOf = (error: ProviderErrorName): number => {
  switch (error) {
    case "rate_limited":
      return 429;
    case "overloaded":
      return 503;
    case "server_error":
      return 500;
    case "context_overflow":
    case "invalid_request":
      return 400;
  }
};

const errorBody = (status: number): object => ({
  error: { code: status, message: `status ${status}`, status: googleStatuses[status] ?? "UNKNOWN" },
});

const googleStatuses: Record<number, string> = {
  400: "INVALID_ARGUMENT",
  401: "UNAUTHENTICATED",
  403: "PERMISSION_DENIED",
  404: "NOT_FOUND",
  429: "RESOURCE_EXHAUSTED",
  499: "CANCELLED",
  500: "INTERNAL",
  503: "UNAVAILABLE",
  504: "DEADLINE_EXCEEDED",
};

/** The Google Gemini protocol. */
export const googleGemini: AnswerProtocol = {
  id: "google-gemini",
  shortName: "gemini",
  path: "/v1beta/models/fault-model:streamGenerateContent?alt=sse",
  basePath: "/v1beta",
  isServed: (path) => /\/models\/[^/]+:streamGenerateContent$/.test(path),
  write: events,
  errorBody,
  endsWith: "clean_end",
  mayEnd: (data) => {
    const body = Json.record(data.response) ?? data;
    return (
      Json.record(body.promptFeedback)?.blockReason !== undefined ||
      Json.list(body.candidates).some((candidate) => Json.string(Json.record(candidate)?.finishReason) !== "")
    );
  },
};
