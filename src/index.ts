/**
 * Recovers broken model streams: in silence where recorded facts prove that nothing can be duplicated, by a question where
 * they do not.
 *
 * The core. It loads nothing but stable `effect` modules; http, command line and test kit stand in entry points of their own.
 */

export * as Decision from "./domain/Decision.ts";
export * as Failure from "./domain/Failure.ts";
export * as Observation from "./domain/Observation.ts";
export * as RunIncident from "./domain/RunIncident.ts";
export * as SideEffects from "./domain/SideEffects.ts";
export * as RecoveryPolicy from "./policy/RecoveryPolicy.ts";
export { AnswerRefused } from "./recorder/Answering.ts";
export * as IncidentExport from "./recorder/IncidentExport.ts";
export * as RunRecord from "./recorder/RunRecord.ts";
export { type Answer, RecorderError, type RunQuery, RunRecorder } from "./recorder/RunRecorder.ts";
export { fromAsyncIterable } from "./runtime/AsyncSource.ts";
export * as CallOutcomes from "./runtime/CallOutcomes.ts";
export * as CrashRecovery from "./runtime/CrashRecovery.ts";
export { InterruptSignature } from "./runtime/InterruptSignature.ts";
export * as RunEvent from "./runtime/RunEvent.ts";
export { RunInterrupted } from "./runtime/RunEvent.ts";
export type { AttemptContext, ResumeOptions, RunOptions } from "./runtime/RunOptions.ts";
export { ProcessorConfig, StreamProcessor } from "./runtime/StreamProcessor.ts";
export {
  type GuardedTool,
  type Tool,
  ToolGuard,
  type ToolOptions,
  ToolRefused,
  type Verify,
} from "./runtime/ToolGuard.ts";
export type { CallReference, SettledCall } from "./runtime/ToolLedger.ts";
export { type HeadlessOptions, type Question, UserDecisions } from "./runtime/UserDecisions.ts";
