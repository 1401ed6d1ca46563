/**
 * Holds the mutants of the wire: decoders, the classifier's tables, continuations, and what the relay makes of them.
 */
import type { Mutant } from "./Mutant.ts";

/** The mutants of `src/provider` and of the relay. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "a request that is larger than its limit is taken for a rate limit",
    breaks: "no retry that cannot succeed (break 37)",
    within: "refinement",
    find: 'if (status === 429) return reason === "quota" ? code : permanent(body, status);',
    replace: 'if (status === 429) return reason === "quota" ? code : undefined;',
    proofs: [{ test: "test/provider/FailureClassifierProviders.test.ts", named: "larger than its limit" }],
  },
  {
    name: "a server that can never serve the request is asked again, because it says 500",
    breaks: "no retry that cannot succeed",
    within: "refinement",
    find: 'const told = body.form === "text" ? undefined : permanent(body, status);',
    replace: "const told = undefined;",
    proofs: [{ test: "test/provider/FailureClassifierProviders.test.ts", named: "llama.cpp" }],
  },
  {
    name: "a broken body in the words of a runtime is a bug of the caller's",
    breaks: "what breaks is recovered on every runtime",
    within: "read",
    find: 'className === "TypeError" ? fetchRows : allRows;',
    replace: 'className === "TypeError" ? fetchRows.slice(0, 4) : allRows;',
    proofs: [{ test: "test/provider/FailureClassifierRuntimes.test.ts" }],
  },
];
