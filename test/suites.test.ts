/**
 * Checks that each test file is in exactly one suite, and that Vitest finds the intended files.
 */
import { globSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { assert, describe, it } from "@effect/vitest";
import { long, suiteOf } from "./Suites.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const found = (patterns: ReadonlyArray<string>): ReadonlyArray<string> =>
  patterns.flatMap((pattern) => globSync(pattern, { cwd: root })).sort();

const filesOf = (suite: "quick" | "long" | "postgres"): ReadonlyArray<string> => {
  const { exclude = [], include, projects = [] } = suiteOf(suite).test ?? {};
  const parts = projects.flatMap((it) => (typeof it === "object" && "test" in it ? (it.test?.include ?? []) : []));
  const without = new Set(found(exclude));
  return found(include ?? parts).filter((file) => !without.has(file));
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
