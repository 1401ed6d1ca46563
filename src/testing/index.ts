/**
 * Tools for tests of streaming code: a provider that breaks on command, and a judge that does not use the code under test.
 */

export * as Arbitraries from "./Arbitraries.ts";
export * as Answers from "./answers/Answers.ts";
export { type ConformanceOptions, conformance, runConformance } from "./conformance/Conformance.ts";
export { type ConformanceFault, ConformanceFaultId, conformanceFaults } from "./conformance/ConformanceFault.ts";
export type {
  ConformanceReport,
  ConformanceRuntime,
  ConformanceScreen,
  ConformanceTask,
  ConformanceThrough,
  ConformanceTool,
} from "./conformance/ConformanceRuntime.ts";
export {
  ConformanceCell,
  ConformanceLetter,
  ConformanceScoreboard,
  ConformanceTotals,
  isSafe,
} from "./conformance/ConformanceScoreboard.ts";
export { conformanceLegend, conformanceTable } from "./conformance/Table.ts";
export * as FaultJudge from "./faults/FaultJudge.ts";
export type { RequestLog, RequestOutcome } from "./faults/FaultLog.ts";
export { FaultListenError, FaultProvider, type FaultProviderOptions } from "./faults/FaultProvider.ts";
export { checkGrammar, difference, remaining, transcript } from "./Matchers.ts";
export { ProviderBroke, ScriptedProvider, type ScriptedRun } from "./ScriptedProvider.ts";
export * as Step from "./ScriptedStep.ts";
export * as FaultScript from "./script/FaultScript.ts";
