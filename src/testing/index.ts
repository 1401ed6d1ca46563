/**
 * Holds what tests of streaming code need: a provider that breaks on command and a judge that shares no code with the tested.
 */
export * as Answers from "./Answers.ts";
export * as FaultJudge from "./FaultJudge.ts";
export type { Outcome, RequestLog } from "./FaultLog.ts";
export { FaultListenError, FaultProvider, type FaultProviderOptions } from "./FaultProvider.ts";
export * as FaultScript from "./FaultScript.ts";
