/**
 * Recovers the language models of `effect/ai`, and brings one for the four protocols.
 */
export * as EffectAi from "./EffectAiModel.ts";
export * as ProviderModel from "./ProviderModel.ts";
