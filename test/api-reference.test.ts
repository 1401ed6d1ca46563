/**
 * Checks the API reference against the sources: every export has a docstring, and the reference shows it.
 */
import { spawnSync } from "node:child_process";
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { assert, beforeAll, describe, it } from "@effect/vitest";
import * as Docstring from "../scripts/api-reference/Docstring.ts";
import { files } from "../scripts/api-reference/Markdown.ts";
import { moduleComment } from "../scripts/api-reference/ModuleComment.ts";
import { type Chapter, flatten, read } from "../scripts/api-reference/Reference.ts";
import { write } from "../scripts/api-reference/Write.ts";
import { anchors, relativeLinks } from "./package/Markdown.ts";

const root = fileURLToPath(new URL("..", import.meta.url));

let chapters: ReadonlyArray<Chapter>;
let reference: ReadonlyMap<string, string>;

beforeAll(() => {
  chapters = read(root);
  reference = files(chapters);
});

const all = () => chapters.flatMap(({ entries, page }) => flatten(entries).map((entry) => ({ ...entry, page })));

describe("the API reference", () => {
  it("has a page for every entry point", () => {
    const specifiers = chapters.map(({ page }) => page.specifier);
    for (const entry of [
      "",
      "/policy",
      "/provider",
      "/client",
      "/fetch",
      "/promise",
      "/ai-sdk",
      "/effect-ai",
      "/testing",
    ]) {
      assert.include(specifiers, `effect-stream-recovery${entry}`);
    }
    assert.isAbove(all().length, 300);
  });

  it("finds a docstring at every export and every entry point", () => {
    const bare = all().filter(({ docstring }) => docstring.text === "");
    assert.deepStrictEqual(
      bare.map(({ name, page, source }) => `${page.specifier}: ${name} of ${source}`),
      [],
    );
    assert.deepStrictEqual(
      chapters.filter(({ docstring }) => docstring.text === "").map(({ page }) => page.source),
      [],
    );
  });

  it("describes only parameters that exist", () => {
    const wrong = all().flatMap(({ docstring, name, page, signature }) =>
      signature.startsWith("const ") && signature.includes("=>")
        ? docstring.tags
            .filter((tag) => tag.name === "param")
            .map(({ text }) => /^\w+/.exec(text)?.[0] ?? "")
            .filter((parameter) => !new RegExp(`[(\\s.]${parameter}\\??: `).test(signature))
            .map((parameter) => `${page.specifier}: ${name} has no parameter ${parameter}`)
        : [],
    );
    assert.deepStrictEqual(wrong, []);
  });

  it("shows nothing internal, and gives the type of everything", () => {
    for (const { name, signature } of all()) {
      const code = signature.replace(/\/\*[\s\S]*?\*\//g, "");
      assert.notMatch(signature, /@internal/, name);
      assert.notMatch(code, /import\("|\bany\b|#\w|\b(?:private|protected) /, name);
    }
  });

  it("shows a declaration once, and links to it from every other place", () => {
    const policy = all().find(({ name, page }) => page.specifier.endsWith("/policy") && name === "Failure");
    assert.strictEqual(policy?.same?.page.specifier, "effect-stream-recovery");
    for (const [path, text] of reference) {
      for (const { anchor, path: to } of relativeLinks(text)) {
        if (anchor === undefined) continue;
        const target = to === "" ? path : join(dirname(path), to);
        assert.isTrue(anchors(reference.get(target) ?? "").has(anchor), `${path}: ${to}#${anchor}`);
      }
    }
  });

  it("is written to the requested folder and replaces an earlier one", () => {
    const folder = mkdtempSync(join(tmpdir(), "api-reference-"));
    mkdirSync(join(folder, "docs/api"), { recursive: true });
    writeFileSync(join(folder, "docs/api/left.md"), "of an entry point that is gone\n");
    write(reference, folder);
    const written = globSync("docs/**/*.md", { cwd: folder }).sort();
    const texts = written.map((path) => [path, readFileSync(join(folder, path), "utf8")] as const);
    rmSync(folder, { recursive: true });
    assert.deepStrictEqual(texts, [...reference].sort());
  });

  it("is written before npm packs the package, and is not committed", () => {
    const { scripts } = JSON.parse(readFileSync(join(root, "package.json"), "utf8"));
    assert.include(scripts.prepack, "scripts/api-reference.ts");
    const { stdout } = spawnSync("git", ["ls-files", "docs/api", "docs/api.md"], { cwd: root, encoding: "utf8" });
    assert.strictEqual(stdout, "");
  });
});

describe("the reader of docstrings", () => {
  const docstring = {
    text: "Reads a `file.ts` of 1.5 MB, e.g.: this one. And more.\n\nA paragraph.",
    tags: [
      { name: "param", text: "path where it\n  lies" },
      { name: "returns", text: "its text" },
      { name: "throws", text: "Error it is gone" },
    ],
  };

  it("gives the first sentence", () => {
    assert.strictEqual(Docstring.sentence(docstring), "Reads a `file.ts` of 1.5 MB, e.g.: this one.");
    assert.strictEqual(Docstring.sentence({ text: "A name:\n\n- one", tags: [] }), "A name.");
  });

  it("lists parameters and return values", () => {
    assert.include(
      Docstring.markdown(docstring),
      "A paragraph.\n\n- `path`: where it lies\n- Returns its text\n- Throws Error it is gone",
    );
  });

  it("distinguishes a module's comment from a declaration's", () => {
    assert.strictEqual(moduleComment('/**\n * A module.\n *\n * More.\n */\nimport "a";\n'), "A module.\n\nMore.");
    assert.strictEqual(moduleComment("/** A module. */\n\nexport const a = 1;\n"), "A module.");
    assert.strictEqual(moduleComment("/** A number. */\nexport const a = 1;\n"), "");
    assert.strictEqual(moduleComment("const a = 1;\n"), "");
  });
});
