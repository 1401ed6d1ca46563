/**
 * Checks that each excerpt in the README of the example agent is in its file, word for word. Checks the size of the examples, and that they
 * import only public entry points.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { root } from "./Program.ts";

const chapter = readFileSync(join(root, "docs/examples/agent/README.md"), "utf8");
const excerpts = [...chapter.matchAll(/<!-- (\S+) -->\n```ts norun\n([\s\S]*?)```/g)];

describe("docs/examples/agent/README.md", () => {
  it("has no excerpt that is not held", () => {
    assert.strictEqual(excerpts.length, chapter.split("```ts norun").length - 1);
    assert.isAbove(excerpts.length, 3);
  });

  for (const [index, [, file = "", text = ""]] of excerpts.entries()) {
    it(`excerpt ${index + 1} stands in ${file}`, () => {
      assert.include(readFileSync(join(root, file), "utf8"), text);
    });
  }
});

describe.each([
  ["agent", 900],
  ["cluster-agent", 300],
] as const)("docs/examples/%s", (example, linesMax) => {
  const files = globSync(`docs/examples/${example}/*.ts`, { cwd: root });
  const texts = files.map((file) => readFileSync(join(root, file), "utf8"));

  it(`has at most ${linesMax} lines`, () => {
    assert.isAbove(files.length, 1);
    assert.isAtMost(texts.join("").split("\n").length - 1, linesMax);
  });

  it("imports public entry points alone", () => {
    const imported = texts.flatMap((text) => [...text.matchAll(/ from "([^"]+)"/g)].map(([, name = ""]) => name));
    const own = /^(?:\.\/\w+\.ts|effect(?:\/\w+)?|effect-stream-recovery(?:\/[\w-]+)?|node:\w+)$/;
    const others = imported.filter((name) => !own.test(name));
    const allowed = ["@effect/platform-node", ...(example === "agent" ? [] : ["@effect/sql-pg"])];
    assert.sameMembers([...new Set(others)], allowed);
  });
});
