import { readFileSync } from "node:fs";
import { assert, describe, it, vi } from "@effect/vitest";
import { subjectNames } from "../../../src/cli/conformance/Subjects.ts";
import { ConformanceLetter, conformanceFaults } from "../../../src/testing/index.ts";
import { prove } from "../../examples/conformance-twenty-lines.ts";

const file = (path: string) => readFileSync(new URL(`../../../${path}`, import.meta.url), "utf8");
const chapter = file("docs/conformance.md");

describe("docs/conformance.md", () => {
  it("has an example that is told of its breaks and never doubles, cuts or lies", async () => {
    const print = vi.spyOn(console, "log").mockImplementation(() => undefined);
    assert.isTrue(await prove({ silenceMs: 100, limitMs: 4_000 }));
    const table = String(print.mock.calls[0]?.[0]);
    print.mockRestore();
    assert.include(table, "| text, clean end                 | E1");
    assert.include(table, "| arguments, clean end            | E1");
  });

  it("names every fault and every letter", () => {
    for (const { id } of conformanceFaults) assert.include(chapter, `\`${id}\``);
    for (const letter of ConformanceLetter.literals)
      assert.match(chapter, new RegExp(`^\\| (?:\\*\\*)?${letter}(?:\\*\\*)? \\|`, "m"));
  });

  it("has the measured tables, in which no column with this package is unsafe", () => {
    const rows = chapter
      .split("\n")
      .filter((row) => /^\| (?:turns with repeated text|repeated tool runs|tool runs|silent trunc|false ab)/.test(row));
    assert.strictEqual(rows.length, 5 * subjectNames.length, "five lines for each SDK");
    for (const row of rows) {
      const [, , , ...ours] = row.split("|").map((cell) => cell.trim());
      assert.isTrue(ours.slice(0, -1).length >= 2 && ours.slice(0, -1).every((count) => count === "0"), row);
    }
  });
});
