/**
 * Makes any language model of `effect/ai` recoverable, with one Layer and without a change of types.
 *
 * Every request of the model (a step) is a run of StreamProcessor. The tools of a toolkit run outside its attempts and through ToolGuard,
 * so a failure in step n never runs a tool of an earlier step again. Consumers of `streamText`, such as `Chat`, cannot discard parts.
 * Lifecycle parts are therefore held until content arrives, and calls are held until the provider's terminal marker. A break before the
 * first text is replayed unseen, and no history contains a discarded part or a call without its result. `EffectAi.run` emits the run's
 * events for callers that can discard.
 *
 * With the three methods of the model, a call settles only after its response is complete, so there is nothing to continue from:
 * `can_continue` is false for them. It is true for `run`.
 */
export { type AgentOptions, run } from "./AgentRun.ts";
export { interruptionOf } from "./LanguageModelError.ts";
export { layer, make, type Options } from "./Model.ts";
export { StopSignal } from "./StopSignal.ts";
export { ToolEffect } from "./Tools.ts";
export { type AgentEvent, type ToolSettled, Transcript } from "./Transcript.ts";
