/**
 * Recovers broken model streams: silently if recorded facts prove that a retry is safe, and otherwise by asking.
 *
 * The core. It loads only stable modules of `effect`. HTTP, the command line and the test kit have separate entry points.
 */

export * as Decision from "./domain/Decision.ts";
export * as Failure from "./domain/Failure.ts";
export * as Observation from "./domain/Observation.ts";
export * as RunIncident from "./domain/RunIncident.ts";
export * as SideEffects from "./domain/SideEffects.ts";
export * as RecoveryPolicy from "./policy/RecoveryPolicy.ts";
export * as IncidentExport from "./recorder/export/IncidentExport.ts";
export { AnswerRefused } from "./recorder/Question.ts";
export * as RunRecord from "./recorder/RunRecord.ts";
export { RecorderError, RunRecorder } from "./recorder/RunRecorder.ts";
export { fromAsyncIterable } from "./runtime/attempt/AsyncSource.ts";
export { type AttachAfter, type AttachOptions, AttachRefused } from "./runtime/contract/AttachRefused.ts";
export { InterruptSignature } from "./runtime/contract/InterruptSignature.ts";
export * as RunEvent from "./runtime/contract/RunEvent.ts";
export { RunInterrupted } from "./runtime/contract/RunEvent.ts";
export type {
  AttemptContext,
  RunBase,
  RunLinger,
  RunOptions,
  RunRoute,
  RunRoutes,
  RunSeam,
  TakeUpOptions,
  TextAsks,
  TextContinues,
  TextOptions,
} from "./runtime/contract/RunOptions.ts";
export type { CallReference, ReadyCall, SettledCall } from "./runtime/contract/ToolCall.ts";
export * as CallOutcomes from "./runtime/crash/CallOutcomes.ts";
export * as CrashRecovery from "./runtime/crash/CrashRecovery.ts";
export { UserDecisions } from "./runtime/questions/UserDecisions.ts";
export { ProcessorConfig, StreamProcessor } from "./runtime/StreamProcessor.ts";
export {
  type GuardedTool,
  ToolGuard,
  type ToolOptions,
  ToolRefused,
} from "./runtime/tools/ToolGuard.ts";
export type { SeamPlan, TextSeam } from "./seam/TextSeam.ts";
