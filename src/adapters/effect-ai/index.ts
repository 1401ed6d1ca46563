/**
 * Recovers the language models of `effect/ai`. Runs everywhere Effect does: in Node, browsers and workers.
 */
export * as EffectAi from "./EffectAi.ts";
