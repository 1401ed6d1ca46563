/**
 * Holds README to what the package does: its examples compile and run, its tables are the policy's and the tests' own, its
 * links lead somewhere.
 */
import { spawnSync } from "node:child_process";
import { existsSync, globSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest";
import { laws } from "./Laws.ts";
import * as Consumer from "./package/Consumer.ts";
import { root } from "./package/Consumer.ts";
import { anchors, type Block, blocks, relativeLinks, shows } from "./package/Markdown.ts";

/** What the first screen holds, in lines: `.ci/run` reads the test command there. */
const firstScreenLines = 60;

const read = (path: string): string => (existsSync(join(root, path)) ? readFileSync(join(root, path), "utf8") : "");

const readme = read("README.md");
const all = blocks(readme);
const programs = all.filter(({ language }) => language === "ts");
const commands = all
  .map((block, index) => ({ block, output: outputOf(all[index + 1]) }))
  .filter(({ block }) => ["sh", "bash", "shell"].includes(block.language) && block.marks.includes("run"));

let consumer: Consumer.Consumer;

beforeAll(() => {
  const used = ["@types/node", "@effect/vitest", "vitest"];
  consumer = Consumer.make(used);
  // Commands run programs by their names.
  for (const block of programs) writeFileSync(join(consumer.folder, fileOf(block)), block.text);
}, 120_000);

afterAll(() => consumer.remove());

describe("README's first screen", () => {
  it("exists", () => assert.isAbove(readme.length, 0, "README.md is missing or empty"));

  for (const command of ["npm ci && npm test", "npm start"]) {
    it(`names \`${command}\``, () => {
      const screen = readme.split("\n").slice(0, firstScreenLines).join("\n");
      assert.include(screen, command, `README.md does not name it in its first ${firstScreenLines} lines`);
    });
  }
});

describe("README's programs", () => {
  it("are there, and at least one is marked `ts run`", () => {
    assert.isTrue(
      programs.some(({ marks }) => marks.includes("run")),
      "README.md has no block that starts with ```ts run",
    );
  });

  it("compile in a strict project that installed the package", () => {
    const files = Object.fromEntries(programs.map((block) => [fileOf(block), block.text]));
    const errors = programs.length === 0 ? [] : consumer.compile(files, { skipLibCheck: true });
    assert.deepStrictEqual(errors.map(inReadme), []);
  });

  for (const block of programs.filter(({ marks }) => marks.includes("run"))) {
    it(`the program of line ${block.line} runs`, () => {
      consumer.compile({ [fileOf(block)]: block.text }, { skipLibCheck: true });
      const printed = consumer.node(fileOf(block));
      const output = outputOf(all[all.indexOf(block) + 1]);
      if (output !== undefined) assertShows(output, printed);
    });
  }
});

describe("README's commands", () => {
  it("are there, and at least one is marked `sh run`", () => {
    assert.isAbove(commands.length, 0, "README.md has no block that starts with ```sh run");
  });

  for (const { block, output } of commands) {
    it(`the command of line ${block.line} runs`, () => {
      const script = block.text.replace(/^\$ /gm, "");
      // `here` is where the programs of README stand, in a project that has installed the package.
      const cwd = block.marks.includes("here") ? consumer.folder : root;
      const options = { cwd, env: consumer.environment, encoding: "utf8", timeout: 60_000, input: "" } as const;
      const { status, stdout, stderr } = spawnSync("bash", ["-euo", "pipefail", "-c", script], options);
      assert.strictEqual(status, 0, stderr);
      if (output !== undefined) assertShows(output, stdout);
    }, 90_000);
  }
});

describe("README's tables", () => {
  it("the decision table is what `stream-recovery policy` prints", () => {
    const [, table] = /<!-- policy-table -->\n([\s\S]*?)\n<!-- \/policy-table -->/.exec(readme) ?? [];
    assert.isDefined(table, "README.md has no lines <!-- policy-table --> and <!-- /policy-table -->");
    const printed = spawnSync("stream-recovery", ["policy"], { env: consumer.environment, encoding: "utf8" }).stdout;
    assert.strictEqual(table?.trim(), printed.trim(), "`npm run policy-table` writes it anew");
  });

  for (const [law, { name, tests }] of Object.entries(laws)) {
    it(`law ${law} has a row with its name, whose links are the tests that hold it`, () => {
      const row = readme.split("\n").find((line) => line.startsWith(`| ${law} ${name} |`));
      assert.isDefined(row, `README.md has no table row that starts with ${law} ${name}`);
      assert.deepStrictEqual(
        relativeLinks(row ?? "").map(({ path }) => path),
        [...tests],
      );
    });
  }
});

describe("links", () => {
  for (const file of globSync(["*.md", "docs/**/*.md"], { cwd: root })) {
    it(`of ${file} lead to files and headings that exist`, () => {
      const broken = relativeLinks(read(file)).filter(({ path, anchor }) => {
        const target = path === "" ? file : path.startsWith("/") ? path.slice(1) : join(dirname(file), path);
        if (!existsSync(join(root, target))) return true;
        if (anchor === undefined || statSync(join(root, target)).isDirectory()) return false;
        return target.endsWith(".md") && !anchors(read(target)).has(anchor);
      });
      assert.deepStrictEqual(
        broken.map(({ path, anchor, line }) => `${file}:${line}: ${path}${anchor === undefined ? "" : `#${anchor}`}`),
        [],
      );
    });
  }
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

  it("takes nothing in code for a link", () => {
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

  it("compares output line by line, but for what `…` stands for", () => {
    assert.isTrue(shows("a\n…\nport …!\n", "a\nb\nc\nport 80!\n"));
    assert.isTrue(shows("a\n…\n", "a\n"));
    assert.isFalse(shows("a\n", "a\nb\n"));
    assert.isFalse(shows("a.c\n", "abc\n"));
    assert.isFalse(shows("port …!\n", "port 80\n"));
  });
});

/** The output that stands after a command or a program. */
function outputOf(next: Block | undefined): string | undefined {
  return next !== undefined &&
    ["text", "json", "jsonc", "console"].includes(next.language) &&
    !next.marks.includes("norun")
    ? next.text
    : undefined;
}

/** The name that a block gives itself, or one that its errors are found by. */
const fileOf = ({ line, marks }: Block): string =>
  marks.find((mark) => mark.startsWith("file="))?.slice("file=".length) ?? `readme-${line}.ts`;

/** A compiler's line with the line of README instead of the line of the file that was cut out of it. */
const inReadme = (error: string): string =>
  error.replace(/^readme-(\d+)\.ts\((\d+),/, (_, first: string, line: string) => {
    return `README.md(${Number(first) + Number(line) - 1},`;
  });

const assertShows = (block: string, printed: string): void => {
  if (!shows(block, printed)) assert.strictEqual(printed, block);
};
