/**
 * Lists the tests that prove each law. docs/recovery.md is printed from this list, and a test checks it.
 *
 * A listed file must have a test with the law's number in its title.
 */

/** A law by its number. */
export type Law = "L1" | "L2" | "L3" | "L4" | "L5" | "L6" | "L7" | "L8" | "L9" | "L10" | "L11" | "L12";

/** A law and the files whose tests prove it, as paths from the root of the repository, the plainest first. */
export interface LawTests {
  readonly name: string;
  /** Printed in docs/recovery.md. */
  readonly statement: string;
  readonly tests: readonly [string, ...Array<string>];
}

/** Every law with its tests. */
export const laws: Readonly<Record<Law, LawTests>> = {
  L1: {
    name: "facts grow",
    statement: "Within an attempt, facts only grow. Later findings make a new incident.",
    tests: ["test/facts/Facts.test.ts", "test/recorder/RunRecord.test.ts"],
  },
  L2: {
    name: "permission shrinks",
    statement:
      "If facts forbid a replay, every later state of those facts forbids it too. Checked for every combination.",
    tests: ["test/policy/Laws.test.ts"],
  },
  L3: {
    name: "own facts",
    statement: "A decision uses the failed attempt's own facts, and a replay repeats that attempt's own request.",
    tests: ["test/laws/OwnFacts.test.ts", "test/policy/Laws.test.ts", "test/runtime/attempt/Handover.test.ts"],
  },
  L4: {
    name: "shown means handed over",
    statement: "A part counts as shown once the caller has pulled it.",
    tests: ["test/runtime/attempt/Handover.test.ts"],
  },
  L5: {
    name: "no false success",
    statement:
      "A response is complete only after the provider's own terminal marker, which this package never invents. A response with a seam ends with the marker of its continuation.",
    tests: ["test/laws/NoFalseSuccess.test.ts", "test/laws/SplicedEnd.test.ts"],
  },
  L6: {
    name: "one live attempt",
    statement: "The previous attempt is closed or, after a grace period, abandoned: fenced and never awaited.",
    tests: ["test/runtime/attempt/Handover.test.ts", "test/runtime/tools/ToolGuard.test.ts"],
  },
  L7: {
    name: "one end",
    statement: "A run record has one terminal state, and a stream ends once.",
    tests: ["test/laws/OneEnd.test.ts", "test/recorder/RunRecord.test.ts"],
  },
  L8: {
    name: "record, then act",
    statement:
      "In a durable run, an incident is recorded before its decision is carried out. In every run, a dispatch is recorded before its handler starts.",
    tests: ["test/runtime/tools/ToolGuard.test.ts", "test/simulation/Simulation.test.ts"],
  },
  L9: {
    name: "replayable",
    statement: "A stored incident, decided again, gives its stored decision.",
    tests: ["test/policy/Laws.test.ts", "test/runtime/recovery/Rules.test.ts"],
  },
  L10: {
    name: "whose cancel",
    statement:
      "Only `cancel`, the run's `signal` and a signed interrupt count as the user's cancel. With `linger`, a departure becomes a cancel when the linger time has passed. A provider's own cancel is retried.",
    tests: [
      "test/runtime/run/Interrupts.test.ts",
      "test/runtime/run/Signals.test.ts",
      "test/stages/output/Attach.test.ts",
    ],
  },
  L11: {
    name: "bounded",
    statement: "Every buffer, list, delay, attempt and record has a named limit with a unit.",
    tests: ["test/laws/Bounded.test.ts", "test/policy/Laws.test.ts", "test/stages/output/Bounds.test.ts"],
  },
  L12: {
    name: "original error",
    statement: "The error that the caller gets has the provider's error, unchanged, as its cause.",
    tests: ["test/laws/OriginalError.test.ts", "test/runtime/run/Interrupts.test.ts"],
  },
};

/** Matches a test or a group of tests with the law's number in its title. */
export const titled = (law: Law): RegExp =>
  new RegExp(`(?:\\b(?:it|test|describe)(?:\\.\\w+)*|\\))\\(\\s*["'\`][^\\n]*\\b${law}\\b`);
