/**
 * Checks that each test file is in exactly one suite, and that Vitest finds the intended files.
 */
import { globSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { assert, describe, it } from "@effect/vitest";
import { long, suiteOf } from "./Suites.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const found = (patterns: ReadonlyArray<string>): ReadonlyArray<string> => globSync([...patterns], { cwd: root }).sort();

const filesOf = (suite: "quick" | "long" | "postgres"): ReadonlyArray<string> => {
  const { exclude = [], include = [] } = suiteOf(suite).test ?? {};
  const without = new Set(found(exclude));
  return found(include).filter((file) => !without.has(file));
};

describe("the suites", () => {
  it("hold each test file of the repository exactly once", () => {
    // Agents that `npm run agents` installs have their own tests.
    const all = found(["{test,src,scripts}/**/*.{test,spec}.{ts,mts,js,mjs}"]);
    const files = all.filter((file) => !file.includes("/node_modules/"));
    assert.isAbove(files.length, 200);
    assert.deepStrictEqual([...filesOf("quick"), ...filesOf("long"), ...filesOf("postgres")].sort(), files);
  });

  it("name only files that exist, because a renamed file would silently become quick", () => {
    assert.deepStrictEqual(
      long.filter((pattern) => found([pattern]).length === 0),
      [],
    );
  });
});
