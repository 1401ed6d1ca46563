/**
 * Checks README against the package: its first screen names the commands, and its examples compile and run.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { root } from "./package/Consumer.ts";
import { relativeLinks } from "./package/Markdown.ts";
import { holdPages } from "./package/Pages.ts";

/** Length of the first screen, in lines. `.ci/run` reads the test command there. */
const firstScreenLines = 60;

/** Maximum lines of README. Anything longer belongs in docs/. */
const readmeLinesMax = 250;

const readme = readFileSync(join(root, "README.md"), "utf8");

describe("README", () => {
  for (const command of ["npm ci && npm test", "npm ci && npm start"]) {
    it(`names \`${command}\` on its first screen`, () => {
      const screen = readme.split("\n").slice(0, firstScreenLines);
      assert.isTrue(screen.some((line) => line === command || line.startsWith(`${command} `)));
    });
  }

  it("leads to CONTRIBUTING.md, which names for nine kinds of change the files to open, at most five each", () => {
    assert.include(readme, "`CONTRIBUTING.md`");
    const contributing = readFileSync(join(root, "CONTRIBUTING.md"), "utf8");
    const [, table = ""] = /\| to change \| open \|\n\| --- \| --- \|\n([\s\S]*?)\n\n/.exec(contributing) ?? [];
    const counts = table.split("\n").map((row) => relativeLinks(row).length);
    assert.strictEqual(counts.length, 9);
    for (const count of counts) assert.isTrue(count >= 1 && count <= 5);
  });

  it(`has at most ${readmeLinesMax} lines`, () => {
    assert.isAtMost(readme.trimEnd().split("\n").length, readmeLinesMax);
  });
});

holdPages(["README.md"], []);
