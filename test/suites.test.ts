/**
 * Holds the suites: each test file is in exactly one of them, and vitest finds the files that are meant.
 */
import { globSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { assert, describe, it } from "@effect/vitest";
import { long, suiteOf } from "./Suites.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const found = (patterns: ReadonlyArray<string>): ReadonlyArray<string> => globSync([...patterns], { cwd: root }).sort();

/** The files of a suite, by its configuration. */
const filesOf = (suite: "quick" | "long" | "postgres"): ReadonlyArray<string> => {
  const { exclude = [], include = [] } = suiteOf(suite).test ?? {};
  const without = new Set(found(exclude));
  return found(include).filter((file) => !without.has(file));
};

describe("the suites", () => {
  it("hold each test file of the repository exactly once", () => {
    // The agents that `npm run agents` installs bring tests of their own.
    const all = found(["{test,src,scripts}/**/*.{test,spec}.{ts,mts,js,mjs}"]);
    const files = all.filter((file) => !file.includes("/node_modules/"));
    assert.isAbove(files.length, 200);
    assert.deepStrictEqual([...filesOf("quick"), ...filesOf("long"), ...filesOf("postgres")].sort(), files);
  });

  it("name no long file that is not there: a file that was renamed would be quick without a word", () => {
    assert.deepStrictEqual(
      long.filter((pattern) => found([pattern]).length === 0),
      [],
    );
  });
});
