/**
 * The provider protocols: bytes in, parts with their observations out. Pure: no IO, no clock, no Layer.
 */

export * as HostedTools from "../domain/HostedTools.ts";
export * as FailureClassifier from "../failure/FailureClassifier.ts";
export * as AnthropicMessages from "./anthropic/Decode.ts";
export * as BedrockConverse from "./bedrock/Converse.ts";
export * as BedrockInvoke from "./bedrock/Invoke.ts";
export * as Continuation from "./Continuation.ts";
export * as CodeAssist from "./code-assist/Decode.ts";
export * as Cohere from "./cohere/Decode.ts";
export * as Gemini from "./gemini/Decode.ts";
export * as GeminiInteractions from "./gemini-interactions/Decode.ts";
export * as MistralConversations from "./mistral-conversations/Decode.ts";
export * as Ollama from "./ollama/Decode.ts";
export * as OpenAiChat from "./openai-chat/Decode.ts";
export * as OpenAiCompletions from "./openai-completions/Decode.ts";
export * as OpenAiResponses from "./openai-responses/Decode.ts";
export * as ProtocolSeam from "./ProtocolSeam.ts";
export type {
  AnyProtocolId,
  End,
  Part,
  Protocol,
  ProtocolId,
  SseComment,
  SseEvent,
  Tolerance,
} from "./Protocols.ts";
export { PrefillRule } from "./seam/Prefills.ts";
export * as AnySse from "./stream/AnySse.ts";
export type { Content } from "./stream/Content.ts";
export * as Decoder from "./stream/Decoder.ts";
export * as Resume from "./stream/Resume.ts";
export * as Sse from "./stream/Sse.ts";
