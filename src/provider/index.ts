/**
 * The provider protocols: bytes in, parts with what they prove out. Pure: no IO, no clock, no Layer.
 */

export * as HostedTools from "../domain/HostedTools.ts";
export * as AnthropicMessages from "./AnthropicMessages.ts";
export * as AnySse from "./AnySse.ts";
export * as Continuation from "./Continuation.ts";
export * as Decoder from "./Decoder.ts";
export * as FailureClassifier from "./FailureClassifier.ts";
export * as Gemini from "./Gemini.ts";
export * as OpenAiChat from "./OpenAiChat.ts";
export * as OpenAiResponses from "./OpenAiResponses.ts";
export type { AnyProtocolId, End, Part, Protocol, ProtocolId, SseComment, SseEvent, Tolerance } from "./Protocol.ts";
export * as Resume from "./Resume.ts";
export * as Sse from "./Sse.ts";
