/**
 * Checks pages of Markdown against the package: their programs compile in a strict project that has installed the package, and
 * blocks marked `run` run there and print the output that follows them on the page.
 */
import { spawnSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, assert, beforeAll, describe, it } from "@effect/vitest";
import * as Consumer from "./Consumer.ts";
import { root } from "./Consumer.ts";
import { type Block, blocks, shellOf, shows } from "./Markdown.ts";

/** A fenced block of a page. */
interface Example extends Block {
  readonly page: string;
  /** The name that it gives itself (`file=`), or one that its errors are found by. */
  readonly file: string;
  /** The output that the page shows after it. */
  readonly output: string | undefined;
}

/**
 * Declares the tests of pages.
 *
 * @param pages from the root of the repository
 * @param links packages that their programs use beside this one
 * @returns gives the project in which they run, once the tests run
 */
export const holdPages = (pages: ReadonlyArray<string>, links: ReadonlyArray<string>): (() => Consumer.Consumer) => {
  const examples = pages.flatMap(examplesOf);
  const programs = examples.filter(({ language, marks }) => language === "ts" && !marks.includes("norun"));
  const commands = examples.filter(({ language, marks }) => language === "sh" && marks.includes("run"));
  let consumer: Consumer.Consumer;

  beforeAll(() => {
    consumer = Consumer.make(["@types/node", ...links]);
    // Commands run programs by their names.
    for (const { file, text } of programs) writeFileSync(join(consumer.folder, file), text);
  });

  afterAll(() => consumer.remove());

  describe("programs", () => {
    it("are there, and some of them run", () => {
      assert.isTrue(programs.some(({ marks }) => marks.includes("run")));
    });

    it("compile in a strict project that installed the package", () => {
      const files = Object.fromEntries(programs.map(({ file, text }) => [file, `${text}\nexport {};\n`]));
      // A program that only declares something uses none of its names.
      const errors = consumer.compile(files, { skipLibCheck: true, noUnusedLocals: false });
      assert.deepStrictEqual(
        errors.map((error) => inPage(programs, error)),
        [],
      );
    });

    for (const { file, line, marks, output, page } of programs) {
      it.skipIf(!marks.includes("run"))(`the program in ${page}, line ${line}, runs`, () => {
        assertShows(output, consumer.node(file));
      });
    }
  });

  describe("commands", () => {
    it("are there", () => assert.isAbove(commands.length, 0));

    for (const { line, marks, output, page, text } of commands) {
      it(`the command in ${page}, line ${line}, runs`, () => {
        // `here` is the folder of the pages' programs, in a project that has installed the package.
        const cwd = marks.includes("here") ? consumer.folder : root;
        const options = { cwd, env: consumer.environment, encoding: "utf8", timeout: 60_000, input: "" } as const;
        const { status, stdout, stderr } = spawnSync("bash", shellOf(text), options);
        assert.strictEqual(status, 0, stderr);
        assertShows(output, stdout);
      });
    }
  });

  return () => consumer;
};

const examplesOf = (page: string): ReadonlyArray<Example> => {
  const all = blocks(readFileSync(join(root, page), "utf8"));
  return all.map((block, index) => ({ ...block, page, file: fileOf(page, block), output: outputOf(all[index + 1]) }));
};

const fileOf = (page: string, { line, marks }: Block): string =>
  marks.find((mark) => mark.startsWith("file="))?.slice("file=".length) ?? `${basename(page, ".md")}-${line}.ts`;

/** The output that follows a command or a program. */
const outputOf = (next: Block | undefined): string | undefined =>
  next !== undefined && ["text", "json"].includes(next.language) && !next.marks.includes("norun")
    ? next.text
    : undefined;

/** A compiler's line with the page's line instead of the line of the file that was cut out of it. */
const inPage = (programs: ReadonlyArray<Example>, error: string): string => {
  const [, name, row] = /^([^(]+)\((\d+),/.exec(error) ?? [];
  const program = programs.find(({ file }) => file === name);
  return program === undefined ? error : `${program.page}:${program.line + Number(row) - 1} ${error}`;
};

const assertShows = (block: string | undefined, printed: string): void => {
  if (block !== undefined && !shows(block, printed)) assert.strictEqual(printed, block);
};
