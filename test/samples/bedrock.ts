/**
 * Samples of Amazon Bedrock: `converse-stream`, and `invoke-with-response-stream` for Anthropic's models.
 *
 * Messages are binary, so a frame is text in Latin-1: one character a byte.
 */
import { eventStreamMessage } from "../../src/testing/answers/Bedrock.ts";
import { anthropicMessages } from "./anthropic-messages.ts";
import { at, fields, list, pairs, pieces, string, textAt } from "./Json.ts";
import type { Ended, Event, Said, Sample } from "./Sample.ts";

const model = "/model/anthropic.m-v1%3A0";

const message = (type: string, data: unknown): string => {
  const isException = type.endsWith("Exception");
  const name = isException ? ":exception-type" : ":event-type";
  const headers = {
    [name]: type,
    ":content-type": "application/json",
    ":message-type": isException ? "exception" : "event",
  };
  return eventStreamMessage(headers, JSON.stringify(data)).toString("latin1");
};

/** An event has its type as its only member, as in Amazon's SDKs. */
const frame = (event: Event): string => {
  const [[type, data] = ["", {}]] = Object.entries(fields(event));
  return message(type, data);
};

const exception = (name: string, words: string) => ({ [name]: { message: words } });

const user = (text: string) => ({ role: "user", content: [{ text }] });

const eventsOf = (it: Said, contentBlockIndex: number, { number = 1, piece }: Ended): ReadonlyArray<object> => {
  const delta = (made: object) => ({ contentBlockDelta: { contentBlockIndex, delta: made } });
  const stop = { contentBlockStop: { contentBlockIndex } };
  if ("text" in it) return [...pieces(it.text, piece).map((text) => delta({ text })), stop];
  if ("native" in it) return [it.native];
  if ("call" in it) {
    const toolUse = { toolUseId: `tooluse_${number}_${contentBlockIndex}`, name: it.call };
    const begun = { contentBlockStart: { contentBlockIndex, start: { toolUse } } };
    return [begun, ...it.pieces.map((input) => delta({ toolUse: { input } })), ...(it.open === true ? [] : [stop])];
  }
  const thoughts = pieces(it.thought, piece).map((text) => delta({ reasoningContent: { text } }));
  const signature = it.signature === undefined ? [] : [delta({ reasoningContent: { signature: it.signature } })];
  return [...thoughts, ...signature, stop];
};

const blockOf = (it: Said): object => {
  if ("text" in it) return { text: it.text };
  if ("native" in it) return it.native;
  if ("call" in it)
    return { toolUse: { toolUseId: "tooluse_1", name: it.call, input: JSON.parse(it.pieces.join("")) } };
  return { reasoningContent: { reasoningText: { text: it.thought, signature: it.signature ?? "" } } };
};

const finishOf = (said: ReadonlyArray<Said>, finish?: string): string =>
  finish ?? (said.some((it) => "call" in it) ? "tool_use" : "end_turn");

const usageOf = ([inputTokens, outputTokens]: readonly [number, number]) => ({
  ...{ inputTokens, outputTokens, totalTokens: inputTokens + outputTokens },
});

const shared = {
  encoding: "latin1",
  vendor: "bedrock",
  has: { thoughts: true, calls: "pieces", hosted: true, codes: true },
  base: "",
  key: (key: string) => ({ authorization: `Bearer ${key}` }),
  streams: () => ({}),
  refusal: (words: string) => ({ status: 503, document: { message: words } }),
  failed: (words: string) => [exception("internalServerException", words)],
  errorEvent: (document: object) => ({ validationException: document }),
  rateLimit: (details: unknown) => ({ message: "Too many requests, please wait before trying again.", details }),
  noOp: /:event-type.{3}ping/s,
  recordings: ["", ""],
} as const;

export const bedrockConverse: Sample = {
  ...shared,
  rateLimit: (details) => ({ message: "Too many requests, please wait before trying again.", details }),
  id: "bedrock-converse",
  path: `${model}/converse-stream`,
  documentPath: `${model}/converse`,
  calls: [`POST ${model}/converse-stream`, `POST ${model}/converse`],

  history: "messages",
  assistant: "assistant",
  bare: { messages: [] },
  question: (text) => ({ messages: [user(text)] }),
  message: user,
  histories: [
    { messages: [user("hi")] },
    { messages: [user("hi"), { role: "assistant", content: [{ text: "Well," }] }] },
    {
      messages: [
        user("hi"),
        { role: "assistant", content: [{ toolUse: { toolUseId: "t0", name: "bash", input: {} } }] },
        { role: "user", content: [{ toolResult: { toolUseId: "t0", content: [{ text: "x" }] } }] },
      ],
    },
  ],
  limit: (maxTokens) => ({ inferenceConfig: { maxTokens } }),
  json: {},
  check: (body) =>
    pairs(
      "calls",
      list(fields(body).messages).flatMap(({ content }) =>
        list(content).flatMap((block) => textAt(block, "toolUse", "toolUseId") ?? []),
      ),
      list(fields(body).messages).flatMap(({ content }) =>
        list(content).flatMap((block) => textAt(block, "toolResult", "toolUseId") ?? []),
      ),
    ),

  frame,
  start: () => ({ messageStart: { role: "assistant" } }),
  delta: (text) => ({ contentBlockDelta: { contentBlockIndex: 9, delta: { text } } }),
  events: (said, ended = {}) => [
    { messageStart: { role: "assistant" } },
    ...said.flatMap((it, index) => eventsOf(it, index, ended)),
    ...(ended.cut === true ? [] : [{ messageStop: { stopReason: finishOf(said, ended.finish) } }]),
    ...(ended.cut === true || ended.lacksLast === true
      ? []
      : [{ metadata: { usage: usageOf(ended.usage ?? [1, 1]), metrics: { latencyMs: 1 } } }]),
  ],
  document: (said, { finish, usage: [input, output] = [1, 1] } = {}) => ({
    output: { message: { role: "assistant", content: said.map(blockOf) } },
    ...{ stopReason: finishOf(said, finish), usage: usageOf([input, output]) },
  }),
  finishes: {
    natural: "end_turn",
    others: ["max_tokens", "content_filtered", "guardrail_intervened", "stop_sequence"],
  },
  failedFinish: { messageStop: { stopReason: "malformed_model_output" } },
  read: (event) => ({
    text: string(at(event, "delta", "text")),
    reasoning: string(at(event, "delta", "reasoningContent", "text")),
  }),
  take: ({ json, kind }) => (kind === "event" ? { text: textAt(json, "delta", "text") ?? "" } : {}),
};

export const bedrockInvoke: Sample = {
  ...anthropicMessages,
  ...shared,
  rateLimit: (details) => ({ message: "Too many requests, please wait before trying again.", details }),
  id: "bedrock-invoke",
  path: `${model}/invoke-with-response-stream`,
  documentPath: `${model}/invoke`,
  calls: [`POST ${model}/invoke-with-response-stream`, `POST ${model}/invoke`],
  bare: { anthropic_version: "bedrock-2023-05-31", max_tokens: 9, messages: [] },
  question: (text) => ({
    ...{ anthropic_version: "bedrock-2023-05-31", max_tokens: 4_096 },
    messages: [{ role: "user", content: text }],
  }),
  histories: anthropicMessages.histories,
  frame: (event) =>
    Object.keys(fields(event)).some((name) => name.endsWith("Exception"))
      ? frame(event)
      : message("chunk", { bytes: Buffer.from(JSON.stringify(event)).toString("base64") }),
};
