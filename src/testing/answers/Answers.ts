/**
 * Renders a scripted answer as the events of a protocol, with a serial number in every delta and every call.
 *
 * A delta of request 3 reads `r3.12·`: what a caller shows can be held against what the server sent, delta by delta. The
 * middle dot is two bytes long in UTF-8, so that a break inside a character is possible everywhere. A call's input carries
 * its serial first (`"serial":"r3.t1"`) and last (`"end":"r3.t1·"`), so that cut arguments never look whole.
 */
import type { ProtocolId } from "../../provider/Protocols.ts";
import type { Block } from "../script/FaultScript.ts";
import type { AnswerProtocol } from "./AnswerProtocol.ts";
import { anthropicMessages } from "./AnthropicMessages.ts";
import { type GivenText, restOf } from "./Continuer.ts";
import { googleGemini } from "./GoogleGemini.ts";
import { type AnswerEvent, type FinishName, type Item, number } from "./Items.ts";
import { openAiChat } from "./OpenAiChat.ts";
import { openAiResponses } from "./OpenAiResponses.ts";

export type { AnswerProtocol } from "./AnswerProtocol.ts";
export { type GivenText, givenText } from "./Continuer.ts";
export type { AnswerEvent, EventRole, FinishName, NumberedAnswer, ScriptedCall } from "./Items.ts";

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

/** The protocols that a fault provider speaks unasked. A further one is given to it as an option. */
export const answerProtocols: ReadonlyArray<AnswerProtocol> = [
  anthropicMessages,
  openAiChat,
  openAiResponses,
  googleGemini,
];

/** One of those protocols. */
export const answerProtocol = (id: ProtocolId): AnswerProtocol => {
  const found = answerProtocols.find((protocol) => protocol.id === id);
  if (found === undefined) throw new TypeError(`protocol: nothing is known of how ${id} answers`);
  return found;
};

/** Whether an answer is whole only where its body ended cleanly, because its protocol has no terminal event. */
export const needsCleanEnd = (id: string | undefined): boolean =>
  answerProtocols.some((protocol) => protocol.id === id && protocol.endsWith === "clean_end");

/**
 * Writes an answer.
 *
 * @param protocol the wire protocol
 * @param request number of the request at its server, from 1
 * @param options content, finish reason and whether usage is told
 * @returns the events in order; nothing follows an error event
 */
export const render = (
  protocol: ProtocolId | AnswerProtocol,
  request: number,
  options: AnswerOptions = {},
): ReadonlyArray<AnswerEvent> => {
  return write(protocol, request, number(request, options.content ?? defaultContent), options);
};

/** What was said before a request that goes on with it, and by which request. */
export interface CutAnswer {
  readonly request: number;
  readonly content?: ReadonlyArray<Block>;
  readonly given: GivenText;
  readonly preface?: string;
}

/**
 * Writes the rest of an answer, as a model does that goes on with a text that was cut.
 *
 * @returns undefined where the answer does not have that text; serials stand at new deltas only
 */
export const renderRest = (
  protocol: ProtocolId | AnswerProtocol,
  request: number,
  { content = defaultContent, given, preface, request: before }: CutAnswer,
  options: AnswerOptions = {},
): ReadonlyArray<AnswerEvent> | undefined => {
  const rest = restOf(number(before, content), given, preface);
  if (rest === undefined) return undefined;
  const fresh = new Set([...rest.fresh].map(serialOf));
  return write(protocol, request, rest.items, options).map((event) => ({
    ...event,
    serials: event.serials.filter((serial) => fresh.has(serial)),
  }));
};

/** The serial number that a delta begins with; a delta that has none stands for itself. */
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
