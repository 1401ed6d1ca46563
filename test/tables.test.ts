/**
 * Checks that each table of README and docs is what `npm run tables` prints.
 */
import { globSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { assert, describe, it } from "@effect/vitest";
import { Sources } from "../scripts/tables/Docstrings.ts";
import { printers } from "../scripts/tables/Printers.ts";
import { kindsOf, printTables } from "../scripts/tables/Sections.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const pages = ["README.md", "llms.txt", ...globSync("docs/*.md", { cwd: root }).sort()];
const all = printers(root);
/** Tables that take minutes to measure: `npm run tables -- --measure`. */
const measured = ["conformance"];

describe("the tables of README and docs", () => {
  for (const path of pages) {
    it(`${path} shows them as they are printed`, async () => {
      const page = readFileSync(join(root, path), "utf8");
      assert.deepStrictEqual(
        kindsOf(page).filter((kind) => !all.has(kind) && !measured.includes(kind)),
        [],
      );
      assert.strictEqual(await printTables(page, all), page, "`npm run tables` prints them anew");
    });
  }

  it("all have a page that shows them", () => {
    const used = new Set(pages.flatMap((path) => kindsOf(readFileSync(join(root, path), "utf8"))));
    assert.deepStrictEqual([...used].sort(), [...all.keys(), ...measured].sort());
  });

  it("leave no marker open", () => {
    for (const path of pages) {
      const page = readFileSync(join(root, path), "utf8");
      assert.strictEqual(kindsOf(page).length, page.split("<!-- printed: ").length - 1, path);
      assert.strictEqual(kindsOf(page).length, page.split("<!-- /printed -->").length - 1, path);
    }
  });

  it("have a docstring for everything that they list", () => {
    for (const path of pages)
      assert.notMatch(readFileSync(join(root, path), "utf8"), /^\| `\w+`(?:, required)? \| +\|$/m);
  });
});

describe("the tables of Markdown pages", () => {
  const every = [
    "README.md",
    "AGENTS.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "llms.txt",
    ...globSync("docs/**/*.md", { cwd: root }).sort(),
  ];

  for (const path of every) {
    it(`in ${path} have as many cells in each row as in the header`, () => {
      assert.deepStrictEqual(raggedRows(readFileSync(join(root, path), "utf8")), []);
    });
  }

  it("are rejected if a row has more or fewer cells than the header", () => {
    assert.deepStrictEqual(raggedRows("| a | b |\n| --- | --- |\n| 1 | `x \\| y` |"), []);
    assert.deepStrictEqual(raggedRows("| a | b |\n| --- | --- |\n| 1 | 2 | 3 |\n| 1 |"), [
      "line 3: expected 2 cells, got 3",
      "line 4: expected 2 cells, got 1",
    ]);
  });
});

describe("the printer of sections", () => {
  it("gets the words after a section's kind, and leaves unknown sections unchanged", async () => {
    const page =
      "a\n<!-- printed: one x y -->\nold\n<!-- /printed -->\n<!-- printed: two -->\nkept\n<!-- /printed -->\n";
    const after = await printTables(page, new Map([["one", (words) => words.join("+")]]));
    assert.strictEqual(after, page.replace("old", "x+y"));
    assert.deepStrictEqual(kindsOf(page), ["one", "two"]);
  });
});

describe("the reader of docstrings", () => {
  const folder = mkdtempSync(join(tmpdir(), "docstrings-"));
  const write = (path: string, text: string): void => {
    mkdirSync(dirname(join(folder, path)), { recursive: true });
    writeFileSync(join(folder, path), text);
  };
  write(
    "src/a/Options.ts",
    'export interface Options\n  extends Pick<Base<never>, "name" | "left">,\n    Partial<Other.More> {\n  /**\n   * Its own,\n   * in two lines.\n   */\n  readonly own?: string;\n  /** Ours. @internal */\n  readonly hidden?: string;\n}\n',
  );
  write("src/b/Options.ts", "export interface Options {}\n");
  write(
    "src/Base.ts",
    "export interface Base<T> {\n  /** A name. */\n  readonly name: T;\n  readonly other: T;\n  readonly left?: T;\n}\n",
  );
  write(
    "src/More.ts",
    'export interface More {\n  /** More. */\n  readonly more: number;\n}\nclass End {\n  x = Literals([\n    /** One. */\n    "one",\n    "two",\n  ]);\n}\n',
  );
  write(
    "src/Service.ts",
    "export declare namespace Service {\n  export interface Inner {\n    /** In it. */\n    readonly inner?: 1;\n  }\n}\n",
  );
  write("src/Struct.ts", "export const Limits = Schema.Struct({\n  /** At most. */\n  most: limit(3),\n});\n");
  const sources = new Sources(folder);
  rmSync(folder, { recursive: true });

  it("reads fields, including inherited ones", () => {
    assert.deepStrictEqual(sources.fieldsOf("Options", "src/a"), [
      { name: "own", optional: true, docstring: "Its own, in two lines." },
      { name: "name", optional: false, docstring: "A name." },
      { name: "left", optional: true, docstring: "" },
      { name: "more", optional: true, docstring: "More." },
    ]);
    assert.deepStrictEqual(sources.fieldsOf("Inner"), [{ name: "inner", optional: true, docstring: "In it." }]);
    assert.throws(() => sources.fieldsOf("Options"), "2 times");
    assert.throws(() => sources.fieldsOf("None"), "0 times");
  });

  it("reads words and keys with the comments above them", () => {
    assert.deepStrictEqual(
      sources.wordsOf("class End").map(({ docstring, name }) => [name, docstring]),
      [
        ["one", "One."],
        ["two", ""],
      ],
    );
    assert.deepStrictEqual(sources.keysOf("Limits"), [{ name: "most", optional: false, docstring: "At most." }]);
  });
});

/** The rows of tables whose number of cells differs from their header's. Fenced blocks are skipped. */
const raggedRows = (page: string): ReadonlyArray<string> => {
  const errors: Array<string> = [];
  let isFenced = false;
  let expected: number | undefined;
  for (const [index, line] of page.split("\n").entries()) {
    if (line.trimStart().startsWith("```")) isFenced = !isFenced;
    if (isFenced || !line.startsWith("|")) {
      expected = undefined;
      continue;
    }
    const cells = line.split(/(?<!\\)\|/).length - 2;
    expected ??= cells;
    if (cells !== expected) errors.push(`line ${index + 1}: expected ${expected} cells, got ${cells}`);
  }
  return errors;
};
