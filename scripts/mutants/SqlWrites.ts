/**
 * Holds the mutants of what makes a write to a file cheap.
 */
import type { Mutant } from "./Mutant.ts";

const check = "test/recorder/sql/entry/SqlEntryCheck.test.ts";
const damaged = "of 100,000 entries to which something was done";

/** The mutants of the short ways of `src/recorder/sql`. */
export const mutants: ReadonlyArray<Mutant> = [
  {
    name: "an entry is asked for its fields and not for their limits",
    breaks: "L7, L11",
    within: "questionOf",
    find: "if (filter.run(value as never, ast, plainly) !== undefined) return false;",
    replace: "void filter;",
    proofs: [{ test: check, named: damaged }],
  },
  {
    name: "a hole in a list of an entry is passed over",
    breaks: "L7",
    within: "listOf",
    find: "for (let n = 0; n < value.length; n += 1) if (!fits(value[n])) return false;\n    return true;",
    replace: "return value.every(fits);",
    proofs: [{ test: check, named: "a hole in a list" }],
  },
  {
    name: "a field that may be left out may be undefined too",
    breaks: "L7",
    within: "structOf",
    find: "if (found === undefined && !(name in value) ? !isOptional : !fits(found)) return false;",
    replace: "if (found === undefined ? !isOptional : !fits(found)) return false;",
    proofs: [{ test: check, named: damaged }],
  },
  {
    name: "of members with one tag the last one is asked alone",
    breaks: "L7",
    within: "byTag",
    find: "if (members.size === types.length) {",
    replace: "if (members.size > 0) {",
    proofs: [{ test: check, named: "two members of one tag" }],
  },
];
