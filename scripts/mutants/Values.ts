/**
 * Lists the mutants of values at the edges of their types: what an entrance lets in, and what a decision makes of it.
 */
import type { Mutant } from "./Mutant.ts";

/** Mutants whose proofs stand in the tests of the policy, the clocks and the entrances. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a ledger row of an unknown phase is passed over",
    breaks: "L2 (08)",
    within: "input",
    find: "const facts = isFacts(given.facts) ? given.facts : restrictedFacts(given.facts);",
    replace: "const facts = given.facts;",
    proofs: [{ test: "test/policy/Restricted.test.ts", named: "a phase of a newer version" }],
  },
  {
    name: "a word that a chain does not have stands below it",
    breaks: "L1 (08)",
    within: "rank",
    find: "return at < 0 ? chain.literals.length : at;",
    replace: "return at;",
    proofs: [{ test: "test/policy/Restricted.test.ts", named: "lost in no join" }],
  },
  {
    name: "a budget that is no number is unlimited",
    breaks: "L2 (08)",
    within: "input",
    find: "const budget = isBudget(given.budget) ? given.budget : restrictedBudget(given.budget);",
    replace: "const budget = given.budget;",
    proofs: [{ test: "test/policy/Restricted.test.ts", named: "a budget that is no number" }],
  },
  {
    name: "a transport failure is retried whatever its code says",
    breaks: "no retry that cannot succeed (42)",
    within: "defaultRetryable",
    find: "return transportRetryable(failure);",
    replace: "return true;",
    proofs: [{ test: "test/policy/Cases.test.ts", named: "CERT_HAS_EXPIRED" }],
  },
  {
    name: "a name that does not resolve is retried though its host was never reached",
    breaks: "no retry that cannot succeed (42)",
    within: "transportRetryable",
    find: "return reached_host_before === true;",
    replace: "return true;",
    proofs: [{ test: "test/policy/Cases.test.ts", named: "ENOTFOUND" }],
  },
  {
    name: "row 6 keeps an auth that could be refreshed from row 7",
    breaks: "DESIGN section 6, row 6",
    within: "endRows",
    find: '(s) => !s.resolved.retryable && s.run.mode === "continue" && !s.credentials,',
    replace: '(s) => !s.resolved.retryable && s.run.mode === "continue",',
    proofs: [{ test: "test/policy/Cases.test.ts", named: "a continuation with credentials that can be refreshed" }],
  },
  {
    name: "an incident of version 1 is decided by today's reading of codes",
    breaks: "L9",
    within: "ofIncident",
    find: 'if (decision.policy_version !== "1") return { facts, failure, run, budget, jitter };',
    replace: "if (decision.policy_version !== undefined) return { facts, failure, run, budget, jitter };",
    proofs: [{ test: "test/policy/Restricted.test.ts", named: "an incident of version 1" }],
  },
];
