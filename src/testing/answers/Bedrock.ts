/**
 * Writes an answer as Amazon Bedrock does: as the events of `converse-stream`, or as the events of Anthropic Messages inside those of
 * `invoke-with-response-stream`. Both travel as binary messages.
 */
import { crc32 } from "node:zlib";
import * as Json from "../../domain/Json.ts";
import type { ProviderErrorName } from "../script/FaultScript.ts";
import type { AnswerProtocol } from "./AnswerProtocol.ts";
import { anthropicMessages } from "./AnthropicMessages.ts";
import { bytesFrame, tokens } from "./Frames.ts";
import type { AnswerEvent, EventRole, FinishName, Item, NumberedAnswer, ScriptedCall } from "./Items.ts";

/** Writes one message of `application/vnd.amazon.eventstream`, with headers of text. */
export const eventStreamMessage = (headers: Readonly<Record<string, string>>, payload: string): Buffer => {
  const written = Object.entries(headers).map(([name, value]) => {
    const size = Buffer.alloc(2);
    size.writeUInt16BE(Buffer.byteLength(value));
    return Buffer.concat([
      Buffer.of(Buffer.byteLength(name)),
      Buffer.from(name),
      Buffer.of(7),
      size,
      Buffer.from(value),
    ]);
  });
  const [head, body] = [Buffer.concat(written), Buffer.from(payload)];
  const message = Buffer.alloc(16 + head.length + body.length);
  message.writeUInt32BE(message.length, 0);
  message.writeUInt32BE(head.length, 4);
  message.writeUInt32BE(crc32(message.subarray(0, 8)), 8);
  message.set([...head, ...body], 12);
  message.writeUInt32BE(crc32(message.subarray(0, -4)), message.length - 4);
  return message;
};

interface FrameOptions {
  readonly serials?: ReadonlyArray<string>;
  readonly call?: ScriptedCall;
}

const frame = (
  role: EventRole,
  type: string,
  data: object,
  { call, serials = [] }: FrameOptions = {},
): AnswerEvent => ({
  frame: eventStreamMessage(
    { ":event-type": type, ":content-type": "application/json", ":message-type": "event" },
    JSON.stringify({ ...data, p: "abcdefghij" }),
  ),
  ...{ role, serials },
  ...(call === undefined ? {} : { call }),
});

const exceptionFrame = (error: ProviderErrorName): AnswerEvent => {
  const { message, type } = errors[error];
  const headers = { ":exception-type": type, ":content-type": "application/json", ":message-type": "exception" };
  return { frame: eventStreamMessage(headers, JSON.stringify({ message })), role: "error", serials: [] };
};

const errors: Readonly<Record<ProviderErrorName, { readonly type: string; readonly message: string }>> = {
  rate_limited: { type: "throttlingException", message: "Too many tokens, please wait before trying again." },
  overloaded: { type: "serviceUnavailableException", message: "Bedrock is unable to process your request." },
  server_error: { type: "internalServerException", message: "The system encountered an unexpected error." },
  context_overflow: { type: "validationException", message: "Input is too long for requested model." },
  invalid_request: { type: "validationException", message: "messages: field required" },
};

/** An event of an unknown type, which every client of the API drops. */
const pingFrame: AnswerEvent = frame("ping", "ping", {});

const converseEvents = (answer: NumberedAnswer): ReadonlyArray<AnswerEvent> => {
  const written: Array<AnswerEvent> = [frame("lifecycle", "messageStart", { role: "assistant" })];
  answer.items.forEach((item, index) => {
    written.push(...itemEvents(item, index));
  });
  if (answer.finish === "none") return written;
  const { input, output } = tokens(answer.items);
  const refused = answer.items.some((item) => item.type === "refusal");
  written.push(
    frame("terminal", "messageStop", { stopReason: refused ? "content_filtered" : stopReasons[answer.finish] }),
  );
  if (!answer.usage) return written;
  const usage = { inputTokens: input, outputTokens: output, totalTokens: input + output };
  return [...written, frame("terminal", "metadata", { usage, metrics: { latencyMs: 1 } })];
};

const itemEvents = (item: Item, contentBlockIndex: number): ReadonlyArray<AnswerEvent> => {
  const delta = (role: EventRole, made: object, options?: FrameOptions) =>
    frame(role, "contentBlockDelta", { contentBlockIndex, delta: made }, options);
  const stop = (role: EventRole, options?: FrameOptions) =>
    frame(role, "contentBlockStop", { contentBlockIndex }, options);
  switch (item.type) {
    case "reasoning":
      return [
        ...item.deltas.map((text) => delta("reasoning", { reasoningContent: { text } }, { serials: [text] })),
        delta("lifecycle", { reasoningContent: { signature: "c2ln" } }),
        stop("lifecycle"),
      ];
    case "text":
    case "refusal":
      return [...item.deltas.map((text) => delta("text", { text }, { serials: [text] })), stop("lifecycle")];
    case "ping":
      return Array.from({ length: item.count }, () => pingFrame);
    case "bytes":
      return [bytesFrame(item.bytes)];
    case "error":
      return [exceptionFrame(item.error)];
    case "call": {
      const { call, cut, pieces } = item;
      const hosted = call.executor === "provider";
      const toolUseId = `tooluse_${call.serial}`;
      const toolUse = { toolUseId, name: call.name, ...(hosted ? { type: "server_tool_use" } : {}) };
      return [
        frame("call", "contentBlockStart", { contentBlockIndex, start: { toolUse } }),
        ...pieces.map((input) => delta("arguments", { toolUse: { input } })),
        stop("call", hosted || cut ? {} : { call }),
        ...(hosted ? [frame("call", "contentBlockStart", resultOf(contentBlockIndex, toolUseId), { call })] : []),
      ];
    }
  }
};

const resultOf = (contentBlockIndex: number, toolUseId: string) => ({
  contentBlockIndex,
  start: { toolResult: { toolUseId, status: "success" } },
});

const stopReasons: Record<Exclude<FinishName, "none">, string> = {
  stop: "end_turn",
  tool: "tool_use",
  length: "max_tokens",
  content_filter: "content_filtered",
};

/** Puts each event of Anthropic's into a `chunk`. A ping there becomes one of the unknown type. */
const invokeEvents = (answer: NumberedAnswer): ReadonlyArray<AnswerEvent> =>
  anthropicMessages
    .write({ ...answer, items: answer.items.filter(({ type }) => type !== "error") })
    .flatMap((event) => {
      if (event.role === "ping") return [pingFrame];
      if (typeof event.frame !== "string") return [event];
      const data = /^data: (.*)$/m.exec(event.frame)?.[1] ?? "";
      return [frame(event.role, "chunk", { bytes: Buffer.from(data).toString("base64") }, event)];
    });

const withError =
  (write: AnswerProtocol["write"]): AnswerProtocol["write"] =>
  (answer) => {
    const error = answer.items.find((item) => item.type === "error");
    return error === undefined ? write(answer) : [...write(answer), exceptionFrame(error.error)];
  };

const errorTypes: Record<number, string> = {
  400: "ValidationException",
  403: "AccessDeniedException",
  404: "ResourceNotFoundException",
  408: "ModelTimeoutException",
  424: "ModelErrorException",
  429: "ThrottlingException",
  500: "InternalServerException",
  503: "ServiceUnavailableException",
};

const shared = {
  basePath: "",
  contentType: "application/vnd.amazon.eventstream",
  errorBody: (status: number) => ({ message: `status ${status}` }),
  errorHeaders: (status: number) => ({
    "x-amzn-errortype": `${errorTypes[status] ?? "InternalFailure"}:http://internal.amazon.com/coral/com.amazon.bedrock/`,
  }),
  ping: pingFrame,
  endsWith: "event",
} as const;

const model = "anthropic.fault-model-v1%3A0";

/** Bedrock's Converse. */
export const bedrockConverse: AnswerProtocol = {
  ...shared,
  id: "bedrock-converse",
  shortName: "converse",
  path: `/model/${model}/converse-stream`,
  isServed: (path) => /\/model\/[^/]+\/converse(?:-stream)?$/.test(path),
  write: converseEvents,
  mayEnd: ({ stopReason }) => Json.string(stopReason) !== "",
};

/** Bedrock's invoke, for Anthropic's models. */
export const bedrockInvoke: AnswerProtocol = {
  ...shared,
  id: "bedrock-invoke",
  shortName: "invoke",
  path: `/model/${model}/invoke-with-response-stream`,
  isServed: (path) => /\/model\/[^/]+\/invoke(?:-with-response-stream)?$/.test(path),
  write: withError(invokeEvents),
  mayEnd: anthropicMessages.mayEnd,
};
