/**
 * Provides a language model of `effect/ai` for Messages, Chat, Responses, Gemini and Bedrock. This package's own client needs Node, so this is a separate entry point:
 * `./effect-ai` also runs without Node.
 */
export * as ProviderModel from "./ProviderModel.ts";
