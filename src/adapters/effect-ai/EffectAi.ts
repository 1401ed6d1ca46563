/**
 * Makes any language model of `effect/ai` recoverable, with one Layer and without changing a type.
 *
 * Every request of the model, one step, is a run of StreamProcessor. The tools of a toolkit run outside its attempts and
 * through ToolGuard, so a failure in step n never runs a tool of an earlier step again. The consumers of `streamText` (`Chat`
 * above all) cannot discard a part. So the lifecycle prefix is held until content arrives, and calls are held until the
 * provider's terminal marker: a break before the first word is replayed unseen, and no history ever holds a discarded part or
 * a call without its result. `EffectAi.run` emits the run's events for callers that can discard.
 *
 * In the three methods of the model a call settles only after its response is whole, so there is nothing to continue from:
 * `can_continue` is false for them, and true for `run`.
 */
export { type AgentOptions, run } from "./AgentRun.ts";
export { interruptionOf } from "./LanguageModelError.ts";
export { layer, make, type Options } from "./Model.ts";
export { StopSignal } from "./StopSignal.ts";
export { ToolEffect } from "./Tools.ts";
export { type AgentEvent, type ToolSettled, Transcript } from "./Transcript.ts";
