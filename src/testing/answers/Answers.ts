/**
 * Renders a scripted answer as the events of a protocol, with a serial number in every delta and every call.
 *
 * A delta of request 3 reads `r3.12·`, so a test can compare the text that a caller shows with the text that the server sent, delta by
 * delta. The middle dot takes two bytes in UTF-8, so every delta can break inside a character. A call's input starts with its serial
 * (`"serial":"r3.t1"`) and ends with it (`"end":"r3.t1·"`), so truncated arguments never look complete.
 */
import type { ProtocolId } from "../../provider/Protocols.ts";
import type { Block } from "../script/FaultScript.ts";
import type { AnswerProtocol } from "./AnswerProtocol.ts";
import { anthropicMessages } from "./AnthropicMessages.ts";
import { bedrockConverse, bedrockInvoke } from "./Bedrock.ts";
import { codeAssist } from "./CodeAssist.ts";
import { cohereChat } from "./Cohere.ts";
import { computeRest, type GivenText } from "./Continuer.ts";
import { googleGemini } from "./GoogleGemini.ts";
import { interactions } from "./Interactions.ts";
import { type AnswerEvent, type FinishName, type Item, number } from "./Items.ts";
import { mistralConversations } from "./Mistral.ts";
import { ollama } from "./Ollama.ts";
import { openAiChat } from "./OpenAiChat.ts";
import { openAiCompletions } from "./OpenAiCompletions.ts";
import { openAiResponses } from "./OpenAiResponses.ts";

export type { AnswerProtocol } from "./AnswerProtocol.ts";
export { type GivenText, givenText } from "./Continuer.ts";
export type { AnswerEvent, EventRole, FinishName, NumberedAnswer, ScriptedCall } from "./Items.ts";

/** Content and ending of an answer. The defaults give a healthy answer. */
export interface AnswerOptions {
  readonly content?: ReadonlyArray<Block>;
  readonly finish?: FinishName;
  readonly usage?: boolean;
  /** True for a background response, which a client can resume after a break. */
  readonly background?: boolean;
}

/** Default content of an answer: short and healthy, with reasoning before text. */
export const defaultContent: ReadonlyArray<Block> = [{ reasoning: 2 }, { text: 5 }];

/** The protocols that every fault provider speaks. `FaultProviderOptions.protocols` adds further protocols. */
export const answerProtocols: ReadonlyArray<AnswerProtocol> = [
  anthropicMessages,
  openAiChat,
  openAiResponses,
  googleGemini,
  codeAssist,
  ollama,
  openAiCompletions,
  cohereChat,
  bedrockConverse,
  bedrockInvoke,
  interactions,
  mistralConversations,
];

/** Looks up a built-in protocol by its id. */
export const answerProtocol = (id: ProtocolId): AnswerProtocol => {
  const found = answerProtocols.find((protocol) => protocol.id === id);
  if (found === undefined) throw new TypeError(`protocol: expected a protocol with scripted responses, got ${id}`);
  return found;
};

/** Returns true if the protocol has no terminal event, so only a clean end of the body completes an answer. */
export const needsCleanEnd = (id: string | undefined): boolean =>
  answerProtocols.some((protocol) => protocol.id === id && protocol.endsWith === "clean_end");

/**
 * Renders a scripted answer as the events of a protocol.
 *
 * @param request number of the request at its server, from 1
 * @param options content, finish reason, and true or false for a usage report and for a background response
 * @returns the events in order; an error event is always the last
 */
export const render = (
  protocol: ProtocolId | AnswerProtocol,
  request: number,
  options: AnswerOptions = {},
): ReadonlyArray<AnswerEvent> => {
  return write(protocol, request, number(request, options.content ?? defaultContent), options);
};

/**
 * The answer that a request continues: the number of the request that received it, its content, and the text that the continuing request
 * carries.
 */
export interface CutAnswer {
  readonly request: number;
  readonly content?: ReadonlyArray<Block>;
  readonly given: GivenText;
  readonly preface?: string;
}

/**
 * Renders the rest of an answer, like a model that continues an interrupted text.
 *
 * @returns the events, in which only new deltas carry serials; undefined if the answer does not contain the text that the request carries
 */
export const renderRest = (
  protocol: ProtocolId | AnswerProtocol,
  request: number,
  { content = defaultContent, given, preface, request: before }: CutAnswer,
  options: AnswerOptions = {},
): ReadonlyArray<AnswerEvent> | undefined => {
  const rest = computeRest(number(before, content), given, preface);
  if (rest === undefined) return undefined;
  const fresh = new Set([...rest.fresh].map(serialOf));
  return write(protocol, request, rest.items, options).map((event) => ({
    ...event,
    serials: event.serials.filter((serial) => fresh.has(serial)),
  }));
};

/** Returns the serial at the start of a delta, or the whole delta if it has none. */
const serialOf = (delta: string): string => /^r\d+\.\d+·/.exec(delta)?.[0] ?? delta;

const write = (
  protocol: ProtocolId | AnswerProtocol,
  request: number,
  items: ReadonlyArray<Item>,
  options: AnswerOptions,
): ReadonlyArray<AnswerEvent> => {
  const called = items.some((item) => item.type === "call" && item.call.executor === "runtime");
  const failed = items.findIndex((item) => item.type === "error");
  const { write: events } = typeof protocol === "string" ? answerProtocol(protocol) : protocol;
  const written = events({
    request,
    items: failed === -1 ? items : items.slice(0, failed + 1),
    finish: failed !== -1 ? "none" : (options.finish ?? (called ? "tool" : "stop")),
    usage: options.usage ?? true,
    background: options.background ?? false,
  });
  return written.map((event) => ({ ...event, serials: event.serials.map(serialOf) }));
};
