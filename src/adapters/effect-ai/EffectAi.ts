/**
 * Gathers what the namespace `EffectAi` holds: recovered language models, and runs for callers that can discard.
 */
export { type AgentOptions, run } from "./AgentRun.ts";
export { interruptionOf } from "./LanguageModelError.ts";
export { layer, make, type Options } from "./Model.ts";
export { StopSignal } from "./StopSignal.ts";
export { ToolEffect } from "./Tools.ts";
export { type AgentEvent, type ToolSettled, Transcript } from "./Transcript.ts";
