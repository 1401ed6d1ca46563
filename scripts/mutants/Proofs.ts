/**
 * What the simulations found by themselves.
 */
import type { Mutant } from "./Mutant.ts";

/** One mutant a finding. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a process that stands still before the watchdog's first look has its stream cut",
    breaks: "a clock counts only time in which the process ran",
    within: "#wakeNow",
    find: "this.#wakesAt = this.now();\n    Deferred.doneUnsafe(this.#wake, Effect.void);",
    replace: "Deferred.doneUnsafe(this.#wake, Effect.void);",
    proofs: [
      { simulate: "runs", runs: 2_000 },
      { test: "test/runtime/attempt/WatchdogModel.test.ts", named: "before the watchdog has looked" },
    ],
  },
  {
    name: "a person's retry waits for ever for a Retry-After that is no number",
    breaks: "L11, no wait without a limit",
    within: "announced",
    find: "(ms > announcedMsMax ? 0 : ms)",
    replace: "ms",
    proofs: [{ simulate: "runs", seed: 20_261_421, runs: 200 }],
  },
];
