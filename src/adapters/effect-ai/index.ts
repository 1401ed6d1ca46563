/**
 * Recovers the language models of `effect/ai`. This entry point runs wherever Effect does: in Node, browsers and workers.
 */
export * as EffectAi from "./EffectAi.ts";
