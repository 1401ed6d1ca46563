/**
 * Holds the mutants of what a run does in fewer steps than it could: each fast way must do what the long one does, and a run that
 * has ended must hold nothing.
 */
import type { Mutant } from "./Mutant.ts";

const health = "test/gateway/api/StoreHealth.test.ts";

/** What a fast way gets wrong. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a presence that is kept keeps its ended run, with all that it holds",
    breaks: "L11",
    within: "#end",
    find: "      this.taps?.presence?.forgets(this);\n",
    replace: "",
    proofs: [{ test: "test/runtime/run/EndedRuns.test.ts", named: "whose presence is kept" }],
  },
  {
    name: "a store that is watched does not commit at once any more",
    breaks: "a write that a store takes in the very step needs no fiber",
    within: "watch",
    find: "const followed = staysAtOnce(around, recorder, () => watched.taken());",
    replace: "const followed = around;",
    proofs: [{ test: health, named: "commits at once" }],
  },
  {
    name: "a commit that was taken at once does not say that the store is well",
    breaks: "an operator is told how the store is",
    within: "staysAtOnce",
    find: "if (refusal === undefined) taken();",
    replace: "",
    proofs: [{ test: health, named: "each such commit counts" }],
  },
  {
    name: "a commit that was refused at once says that the store is well",
    breaks: "an operator is told how the store is",
    within: "staysAtOnce",
    find: "if (refusal === undefined) taken();",
    replace: "taken();",
    proofs: [{ test: health, named: "each such commit counts" }],
  },
  {
    name: "a store that was wrapped commits at once, past what it was wrapped in",
    breaks: "L8",
    within: "staysAtOnce",
    find: "if (write === undefined) return around;",
    replace: "if (write === undefined) return commitsAtOnce(around, () => undefined);",
    proofs: [{ test: health, named: "is not asked to commit at once" }],
  },
];
