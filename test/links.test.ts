/**
 * Checks the links of README and docs: each leads to an existing file and heading that the package contains.
 */
import { spawnSync } from "node:child_process";
import { globSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { assert, describe, it } from "@effect/vitest";
import { manifest, root } from "./package/Consumer.ts";
import { brokenLinks, isShipped } from "./package/Links.ts";
import { anchors, blocks, relativeLinks, shellOf, shows } from "./package/Markdown.ts";

describe("links", () => {
  for (const page of [
    "README.md",
    "AGENTS.md",
    "CHANGELOG.md",
    ...globSync(["docs/*.md", "docs/examples/*/*.md"], { cwd: root }),
  ]) {
    it(`of ${page} lead to files and headings of the package`, () => {
      // The API reference is written when the package is packed, and the test of the package follows the links into it.
      const broken = brokenLinks(root, page, (target) => isShipped(manifest.files, target)).filter(
        ({ target }) => !/^docs\/api(?:\.md$|\/)/.test(target),
      );
      assert.deepStrictEqual(broken, []);
    });

    it(`${page} contains no merge conflict markers`, () => {
      assert.notMatch(readFileSync(join(root, page), "utf8"), /^(?:<{7}|={7}|>{7})(?: |$)/m);
    });
  }

  it("of CONTRIBUTING.md, which is not in the package, lead to files of the repository", () => {
    assert.deepStrictEqual(
      brokenLinks(root, "CONTRIBUTING.md", () => true),
      [],
    );
  });

  it("may not leave the package", () => {
    assert.isTrue(isShipped(["docs", "README.md"], "docs/a.md"));
    assert.isTrue(isShipped(["docs", "README.md"], "README.md"));
    assert.isFalse(isShipped(["docs", "README.md"], "test/a.ts"));
    assert.isFalse(isShipped(["docs", "README.md"], "../a.md"));
  });
});

describe("the shell that runs the commands of a page", () => {
  it("reads no rc file, not even the user's, without a parent shell and with a pipe as stdin", () => {
    const home = mkdtempSync(join(tmpdir(), "no-rc-"));
    try {
      writeFileSync(join(home, ".bashrc"), "echo from the rc\n");
      const env = { ...process.env, HOME: home, SHLVL: undefined };
      const { status, stderr, stdout } = spawnSync("bash", shellOf("echo typed"), { env, encoding: "utf8", input: "" });
      assert.deepStrictEqual([status, stdout, stderr], [0, "typed\n", ""]);
    } finally {
      rmSync(home, { recursive: true });
    }
  });
});

describe("the reader of Markdown", () => {
  const fence = "```";

  it("finds blocks with their marks and lines", () => {
    const text = `# A\n\n${fence}ts run\nconst a = 1;\n${fence}\n${fence}text\nout\n${fence}\n`;
    assert.deepStrictEqual(blocks(text), [
      { language: "ts", marks: ["run"], text: "const a = 1;\n", line: 4 },
      { language: "text", marks: [], text: "out\n", line: 7 },
    ]);
  });

  it("finds no links inside code", () => {
    const text = `[a](x.md#y) \`[b](z)\`\n${fence}\n[c](w)\n${fence}\n[d](https://x.y) <img src="p.svg">`;
    assert.deepStrictEqual(relativeLinks(text), [
      { path: "x.md", anchor: "y", line: 1 },
      { path: "p.svg", anchor: undefined, line: 5 },
    ]);
  });

  it("gives headings the anchors that GitHub gives them", () => {
    assert.deepStrictEqual(
      [...anchors("# What it's `for`?\n## A – b\n## A – b\n")],
      ["what-its-for", "a--b", "a--b-1"],
    );
  });

  it("compares output line by line, with `…` as a wildcard", () => {
    assert.isTrue(shows("a\n…\nport …!\n", "a\nb\nc\nport 80!\n"));
    assert.isTrue(shows("a\n…\n", "a\n"));
    assert.isFalse(shows("a\n", "a\nb\n"));
    assert.isFalse(shows("a.c\n", "abc\n"));
    assert.isFalse(shows("port …!\n", "port 80\n"));
  });
});
