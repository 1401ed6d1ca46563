/**
 * Recovers the language models of `effect/ai`. Runs wherever Effect does: in Node, browsers and workers.
 */
export * as EffectAi from "./EffectAi.ts";
