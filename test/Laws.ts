/**
 * Says which tests hold which law of DESIGN section 1: the one list that README's table of laws and its test read.
 *
 * A file stands here only where a test of it has the law's number in its title.
 */

/** A law by its number. */
export type Law = "L1" | "L2" | "L3" | "L4" | "L5" | "L6" | "L7" | "L8" | "L9" | "L10" | "L11" | "L12";

/** What a law is called, and the files whose tests hold it, from the root of the repository; the plainest first. */
export interface LawTests {
  readonly name: string;
  readonly tests: readonly [string, ...Array<string>];
}

/** Every law with its tests. */
export const laws: Readonly<Record<Law, LawTests>> = {
  L1: { name: "facts grow", tests: ["test/facts/Facts.test.ts", "test/recorder/RunRecord.test.ts"] },
  L2: { name: "permission shrinks", tests: ["test/policy/Laws.test.ts"] },
  L3: {
    name: "own facts",
    tests: ["test/laws/OwnFacts.test.ts", "test/policy/Laws.test.ts", "test/runtime/attempt/Handover.test.ts"],
  },
  L4: { name: "shown means handed over", tests: ["test/runtime/attempt/Handover.test.ts"] },
  L5: { name: "no false success", tests: ["test/laws/NoFalseSuccess.test.ts"] },
  L6: {
    name: "one live attempt",
    tests: ["test/runtime/attempt/Handover.test.ts", "test/runtime/tools/ToolGuard.test.ts"],
  },
  L7: { name: "one end", tests: ["test/laws/OneEnd.test.ts", "test/recorder/RunRecord.test.ts"] },
  L8: {
    name: "record, then act",
    tests: ["test/runtime/tools/ToolGuard.test.ts", "test/simulation/Simulation.test.ts"],
  },
  L9: { name: "replayable", tests: ["test/policy/Laws.test.ts", "test/runtime/recovery/Rules.test.ts"] },
  L10: { name: "whose cancel", tests: ["test/runtime/run/Interrupts.test.ts", "test/runtime/run/Signals.test.ts"] },
  L11: { name: "bounded", tests: ["test/laws/Bounded.test.ts", "test/policy/Laws.test.ts"] },
  L12: { name: "original error", tests: ["test/laws/OriginalError.test.ts", "test/runtime/run/Interrupts.test.ts"] },
};

/** A test, or a group of tests, whose title has the law's number in it. */
export const titled = (law: Law): RegExp =>
  new RegExp(`(?:\\b(?:it|test|describe)(?:\\.\\w+)*|\\))\\(\\s*["'\`][^\\n]*\\b${law}\\b`);
