/**
 * Renders a scripted answer as the events of a protocol, with a serial number in every delta and every call.
 *
 * A delta of request 3 reads `r3.12·`: what a caller shows can be held against what the server sent, delta by delta. The
 * middle dot is two bytes long in UTF-8, so that a break inside a character is possible everywhere. A call's input carries
 * its serial first (`"serial":"r3.t1"`) and last (`"end":"r3.t1·"`), so that cut arguments never look whole.
 */
import type { ProtocolId } from "../../provider/Protocols.ts";
import type { Block } from "../script/FaultScript.ts";
import { type AnswerEvent, type FinishName, type NumberedAnswer, number } from "./AnswerItems.ts";
import { anthropicMessages } from "./AnswersAnthropicMessages.ts";
import { googleGemini } from "./AnswersGoogleGemini.ts";
import { openAiChat } from "./AnswersOpenAiChat.ts";
import { openAiResponses } from "./AnswersOpenAiResponses.ts";

export type { AnswerEvent, EventRole, FinishName, ScriptedCall } from "./AnswerItems.ts";

/** What an answer says and how it ends; everything has a healthy default. */
export interface AnswerOptions {
  readonly content?: ReadonlyArray<Block>;
  readonly finish?: FinishName;
  readonly usage?: boolean;
  /** A background response, which can be resumed. */
  readonly background?: boolean;
}

/** What a provider answers when a script says nothing: short, healthy, with reasoning before text. */
export const defaultContent: ReadonlyArray<Block> = [{ reasoning: 2 }, { text: 5 }];

/**
 * Writes an answer.
 *
 * @param protocol the wire protocol
 * @param request number of the request at its server, from 1
 * @param options content, finish reason and whether usage is told
 * @returns the events in order; nothing follows an error event
 */
export const render = (
  protocol: ProtocolId,
  request: number,
  options: AnswerOptions = {},
): ReadonlyArray<AnswerEvent> => {
  const items = number(request, options.content ?? defaultContent);
  const called = items.some((item) => item.type === "call" && item.call.executor === "runtime");
  const failed = items.findIndex((item) => item.type === "error");
  return writers[protocol]({
    request,
    items: failed === -1 ? items : items.slice(0, failed + 1),
    finish: failed !== -1 ? "none" : (options.finish ?? (called ? "tool" : "stop")),
    usage: options.usage ?? true,
    background: options.background ?? false,
  });
};

const writers: Record<ProtocolId, (answer: NumberedAnswer) => ReadonlyArray<AnswerEvent>> = {
  "openai-chat": openAiChat,
  "openai-responses": openAiResponses,
  "anthropic-messages": anthropicMessages,
  "google-gemini": googleGemini,
};
