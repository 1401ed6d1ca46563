/** Checks that every law has a test with its number in the title, in the files that Laws.ts lists. */
import { existsSync, readFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import { type Law, laws, titled } from "./Laws.ts";

const root = new URL("..", import.meta.url);
const read = (path: string): string => {
  const file = new URL(path, root);
  return existsSync(file) ? readFileSync(file, "utf8") : "";
};

// Object.entries forgets that the keys are the laws.
const entries = Object.entries(laws) as ReadonlyArray<[Law, (typeof laws)[Law]]>;

describe("the laws", () => {
  it("are the twelve of the design, in order", () => {
    assert.deepStrictEqual(
      entries.map(([law]) => law),
      Array.from({ length: 12 }, (_, index) => `L${index + 1}`),
    );
  });

  for (const [law, { name, tests }] of entries) {
    it(`${law} ${name}: each of its files has a test of that title`, () => {
      for (const path of tests) assert.match(read(path), titled(law), `${path} has no test with ${law} in its title`);
    });
  }

  it("are found only in titles, not in comments, names or other numbers", () => {
    for (const source of ['// it("L1 grows"', 'const it = "L1"', 'it("L10 whose cancel"', 'it("grows")\n// L1']) {
      assert.notMatch(source.replace(/^\/\/.*$/gm, ""), titled("L1"), source);
    }
    for (const source of [
      'it.effect("L1 grows"',
      'describe("grows (L1)"',
      "it.each(rows)(`L1 of a row`",
      'it(\n  "L1"',
    ]) {
      assert.match(source, titled("L1"), source);
    }
  });
});
