/**
 * The reference runtime: a small Effect agent on StreamProcessor, with tools in a sandbox, chats that outlive their process,
 * and questions in a terminal. docs/embedding.md walks through it.
 */
export { type Agent, type AgentOptions, open, stepsMaxDefault, systemDefault } from "./Agent.ts";
export { AgentError } from "./AgentError.ts";
export type { AgentEvent, TurnEnd, Watcher } from "./AgentEvent.ts";
export { type LayerOptions, layer } from "./AgentLayer.ts";
export type { Called } from "./Answering.ts";
export { Entry } from "./Entry.ts";
export { Escape, Sandbox } from "./Sandbox.ts";
