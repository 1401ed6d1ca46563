/**
 * Provides a language model of `effect/ai` for Messages, Chat, Responses and Gemini. This package's own client needs Node, so this is a separate entry point:
 * `./effect-ai` also runs without Node.
 */
export * as ProviderModel from "./ProviderModel.ts";
