/**
 * Holds docs/embedding.md to the files that it shows: every excerpt stands in its file, word for word, and every file is named.
 */
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { assert, describe, it } from "@effect/vitest";

const root = join(import.meta.dirname, "../..");
const chapter = readFileSync(join(root, "docs/embedding.md"), "utf8");
const excerpts = [...chapter.matchAll(/<!-- (\S+) -->\n```ts norun\n([\s\S]*?)```/g)].map(
  ([, file = "", text = ""]) => ({ file, text }),
);

describe("docs/embedding.md", () => {
  it("has no excerpt that is not held", () => {
    assert.strictEqual(excerpts.length, chapter.split("```ts norun").length - 1);
    assert.isAbove(excerpts.length, 5);
  });

  for (const [index, { file, text }] of excerpts.entries()) {
    it(`excerpt ${index + 1} stands in ${file}`, () => {
      assert.include(readFileSync(join(root, file), "utf8"), text);
    });
  }

  it("shows where the main parts are", () => {
    const files = globSync("src/agent/**/*.ts", { cwd: root }).map((path) => path.replace("src/agent/", ""));
    const small = ["AgentError", "AgentEvent", "AgentTool", "Cursor", "Endpoint", "LineReader", "PlainText", "index"];
    const left = files.filter(
      (file) => !small.includes(basename(file, ".ts")) && !chapter.includes(`(../src/agent/${file})`),
    );
    assert.deepStrictEqual(left, []);
  });
});
