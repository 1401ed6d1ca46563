/** Finds the tests that pass only with or only without `recoveringFetch`, and their reasons from the table. */
import { readFileSync } from "node:fs";

/** The outcome of a test. `message` is the error of a failed one. */
export interface Outcome {
  readonly passed: boolean;
  readonly message: string | undefined;
}

/** The outcomes of tests, by `FILE › TITLE`. */
export type Outcomes = ReadonlyMap<string, Outcome>;

/** The outcomes of a suite with and without `recoveringFetch`. */
export interface Both {
  readonly without: Outcomes;
  readonly below: Outcomes;
}

/** A test that passes only one way. */
export interface Difference {
  readonly test: string;
  readonly passes: "without" | "with";
  readonly reason: string | undefined;
  readonly message: string | undefined;
}

/** A row of the table: a reason, and the tests that it explains as `SUITE: FILE › TITLE`. */
export interface Reason {
  readonly reason: string;
  readonly passes: Difference["passes"];
  readonly tests: ReadonlyArray<string>;
}

/** The table `reasons.json` of this folder. */
export const reasons: ReadonlyArray<Reason> = JSON.parse(
  readFileSync(new URL("reasons.json", import.meta.url), "utf8"),
);

/** The files that contain tests with different outcomes. */
export const filesOf = (both: Both): ReadonlyArray<string> => [
  ...new Set(differing(both).map((test) => test.slice(0, test.indexOf(" › ")))),
];

/**
 * Finds the differences that occur in both plays.
 *
 * @param again the files with differences, played a second time; a difference that does not recur was chance
 */
export const differences = (
  suite: string,
  first: Both,
  again: Both,
  table: ReadonlyArray<Reason>,
): ReadonlyArray<Difference> =>
  differing(first)
    .filter((test) => !isSame(test, again))
    .map((test) => {
      const passes = first.below.get(test)?.passed === true ? "with" : "without";
      const row = table.find((it) => it.passes === passes && it.tests.includes(`${suite}: ${test}`));
      const failed = passes === "without" ? first.below : first.without;
      return { test, passes, reason: row?.reason, message: failed.get(test)?.message };
    });

const differing = (both: Both): ReadonlyArray<string> =>
  [...new Set([...both.without.keys(), ...both.below.keys()])].filter((test) => !isSame(test, both));

/** True if a test had the same outcome both ways. A test that never ran below `recoveringFetch` does not count as the same. */
const isSame = (test: string, { below, without }: Both): boolean =>
  below.has(test) && without.get(test)?.passed === below.get(test)?.passed;
