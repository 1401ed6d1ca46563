import { readFileSync } from "node:fs";
import { assert, describe, it, vi } from "@effect/vitest";
import { ManagedRuntime } from "effect";
import { subjectNames } from "../../../src/cli/conformance/Subjects.ts";
import { ConformanceLetter, conformanceFaults, FaultProvider, FaultScript } from "../../../src/testing/index.ts";
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

describe("docs/scoreboard.md", () => {
  const page = file("docs/scoreboard.md");

  it("names every field of a script, every kind and place of a break, and every field of the log", async () => {
    const provider = ManagedRuntime.make(FaultProvider.layer());
    const { log, url } = await provider.runPromise(FaultProvider);
    await fetch(`${url}/v1/chat/completions`, { method: "POST", body: "{}" }).then((response) => response.text());
    const [row] = await provider.runPromise(log);
    await provider.dispose();
    const names = [
      ...Object.keys(FaultScript.Answer.fields),
      ...Object.keys(row ?? {}),
      ...FaultScript.BreakKind.literals,
      ...FaultScript.BreakPlace.literals,
    ];
    assert.isAbove(names.length, 40);
    for (const name of names) assert.match(page, new RegExp(`[\`"]${name}[\`"]`), name);
  });

  it("names every letter, and counts nothing unsafe behind this gateway", () => {
    for (const letter of ConformanceLetter.literals) assert.match(page, new RegExp(`\\| .*\\b${letter}\\b.* \\|`));
    const rows = page.split("\n").filter((line) => /^\| this gateway[^|]*\| \d+ \|/.test(line));
    assert.strictEqual(rows.length, 2);
    for (const row of rows) assert.deepStrictEqual(row.split("|").slice(6, 10).map(Number), [0, 0, 0, 0], row);
  });
});
