/**
 * The reference runtime: a small Effect agent on StreamProcessor, with tools in a sandbox, chats that survive their process,
 * and questions in a terminal. docs/embedding.md walks through it.
 */
export { type Agent, type AgentOptions, open, stepsMaxDefault, systemDefault } from "./Agent.ts";
export type { AgentEvent, TurnEnd, Watcher } from "./AgentEvent.ts";
export { type LayerOptions, layer } from "./AgentLayer.ts";
export { AgentError } from "./conversation/AgentError.ts";
export type { StartedCall } from "./conversation/ChatRun.ts";
export { Entry } from "./conversation/Entry.ts";
export { Escape, Sandbox } from "./tools/Sandbox.ts";
