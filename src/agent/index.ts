/**
 * The reference runtime: a small Effect agent on StreamProcessor, with tools in a sandbox, chats that outlive their process,
 * and questions in a terminal. docs/embedding.md walks through it.
 */
export { type Agent, type AgentOptions, open, stepsMaxDefault, systemDefault } from "./Agent.ts";
export type { AgentEvent, TurnEnd, Watcher } from "./AgentEvent.ts";
export { type LayerOptions, layer } from "./AgentLayer.ts";
export { AgentError } from "./conversation/AgentError.ts";
export type { Called } from "./conversation/ChatRun.ts";
export { Entry } from "./conversation/Entry.ts";
export { Escape, Sandbox } from "./tools/Sandbox.ts";
