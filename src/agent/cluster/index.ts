/**
 * Conversations of the reference agent that several nodes share: each has one live owner, and its journal stands in PostgreSQL. It
 * needs the package `@effect/sql-pg`. docs/cluster.md says what it gives and what not.
 */
export { AgentError } from "../conversation/AgentError.ts";
export { ClusterCarrier, forgetConversations, layerNode, type NodeAddress } from "./ClusterLayers.ts";
export {
  type Carrier,
  type ConversationCaller,
  make as makeCaller,
  ownerWaitMsDefault,
} from "./ConversationCaller.ts";
export { ConversationError } from "./ConversationError.ts";
export type { OwnerOptions, OwnerServices } from "./ConversationOwner.ts";
export type { Forgotten, Meant } from "./ForgottenChats.ts";
export type { Order, Report, Verdict } from "./Protocol.ts";
