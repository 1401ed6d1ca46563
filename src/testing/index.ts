/**
 * Holds what tests of streaming code need: a provider that breaks on command and a judge that shares no code with the tested.
 */
export * as Answers from "./Answers.ts";
export * as Arbitraries from "./Arbitraries.ts";
export { type ConformanceOptions, conformance, runConformance } from "./Conformance.ts";
export { type ConformanceFault, ConformanceFaultId, conformanceFaults } from "./ConformanceFault.ts";
export type {
  ConformanceReport,
  ConformanceRuntime,
  ConformanceScreen,
  ConformanceTask,
  ConformanceTool,
} from "./ConformanceRuntime.ts";
export {
  ConformanceCell,
  ConformanceLetter,
  ConformanceScoreboard,
  ConformanceTotals,
  isSafe,
} from "./ConformanceScoreboard.ts";
export { conformanceLegend, conformanceTable } from "./ConformanceTable.ts";
export * as FaultJudge from "./FaultJudge.ts";
export type { Outcome, RequestLog } from "./FaultLog.ts";
export { FaultListenError, FaultProvider, type FaultProviderOptions } from "./FaultProvider.ts";
export * as FaultScript from "./FaultScript.ts";
export { checkGrammar, difference, remaining, transcript } from "./Matchers.ts";
export { ProviderBroke, ScriptedProvider, type ScriptedRun } from "./ScriptedProvider.ts";
export * as Step from "./ScriptedStep.ts";
