import { globSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { assert, describe, it } from "@effect/vitest";
import { differences, stampPage } from "../../scripts/release/Figures.ts";
import { stepsOf } from "../../scripts/release/Steps.ts";

const root = fileURLToPath(new URL("../..", import.meta.url));
const page =
  "# Page\n\nProse with 3 cells.\n\n| cell | result |\n| --- | --- |\n| a | 4 as expected |\n| b | 1 wrong |\n";

describe("the figures of a page", () => {
  it("differ if a row changes, comes or goes, and not if prose does", () => {
    assert.deepStrictEqual(differences(page, page.replace("3 cells", "4 cells"), "exact"), []);
    assert.deepStrictEqual(differences(page, page.replace("1 wrong", "2 wrong"), "exact"), [
      "- | b | 1 wrong |",
      "+ | b | 2 wrong |",
    ]);
    assert.deepStrictEqual(differences(page, page.replace("| b | 1 wrong |\n", ""), "exact"), ["- | b | 1 wrong |"]);
  });

  it("of a bench differ by their verdict, and not by a time", () => {
    const bench =
      "| what | measured | bar | |\n| --- | --- | --- | --- |\n| a run | 5 µs | ≤ 60 µs | met |\n| memory | 4 KiB |  |  |\n";
    assert.deepStrictEqual(differences(bench, bench.replace("5 µs", "5.5 µs"), "verdicts"), []);
    assert.deepStrictEqual(differences(bench, bench.replace("| met |", "| missed |"), "verdicts"), [
      "- a run: met",
      "+ a run: missed",
    ]);
  });

  it("of a bench may stand in the name of a row", () => {
    const bench = (memory: string) => `| a run (${memory} in memory) | 5 µs | ≤ 60 µs | met |\n`;
    assert.deepStrictEqual(differences(bench("54 µs"), bench("76 µs"), "verdicts"), []);
  });

  it("of a bench may change a verdict if the bar lies within the spread that was measured", () => {
    const bench = (value: string, verdict: string) =>
      `| what | measured | bar | |\n| --- | --- | --- | --- |\n| a run | ${value} | ≤ 6 µs | ${verdict} |\n`;
    assert.deepStrictEqual(
      differences(bench("5 µs (4–7)", "met"), bench("7 µs (6.5–9)", "missed"), "verdicts"),
      [],
      "undecided before",
    );
    assert.deepStrictEqual(
      differences(bench("5 µs (4–5.5)", "met"), bench("7 µs (5.9–9)", "missed"), "verdicts"),
      [],
      "undecided now",
    );
    assert.deepStrictEqual(differences(bench("5 µs (4–5.5)", "met"), bench("7 µs (6.1–9)", "missed"), "verdicts"), [
      "- a run: met",
      "+ a run: missed",
    ]);
    assert.deepStrictEqual(differences(bench("5 µs (4–7)", "met"), bench("5 µs (4–7)", ""), "verdicts"), [
      "- a run: met",
      "+ a run",
    ]);
  });

  it("of a bench without a spread may change a verdict within a tenth of the bar", () => {
    const bench = (value: string, verdict: string) => `| workers | ${value} | ≥ 1.70 × | ${verdict} |\n`;
    assert.deepStrictEqual(
      differences(bench("1.59 ×, 975 a second", "missed"), bench("1.88 ×", "met"), "verdicts"),
      [],
    );
    assert.deepStrictEqual(differences(bench("1.40 ×", "missed"), bench("1.90 ×", "met"), "verdicts"), [
      "- workers: missed",
      "+ workers: met",
    ]);
  });

  it("of a bench are compared row by row, also where two groups have a row of one name", () => {
    const bench = (...verdicts: ReadonlyArray<string>) =>
      verdicts.map((verdict) => `| a run | 5 µs | ≤ 60 µs | ${verdict} |\n`).join("");
    assert.deepStrictEqual(differences(bench("met", "missed"), bench("missed", "missed"), "verdicts"), [
      "- a run: met",
      "+ a run: missed",
    ]);
    assert.deepStrictEqual(differences(bench("met"), bench("met", "met"), "verdicts"), ["+ a run: met"]);
  });

  it("of a play of some agents may be fewer than those of the page, and none may be new", () => {
    assert.deepStrictEqual(differences(page, "| a | 4 as expected |\n", "rows"), []);
    assert.deepStrictEqual(differences(page, "| a | 5 as expected |\n", "rows"), ["+ | a | 5 as expected |"]);
  });

  it("carry the commit that printed them last, once", () => {
    const marked = "x\n<!-- matrix -->\n| a |\n<!-- /matrix -->\n";
    const once = stampPage(marked, "<!-- matrix -->", "0123456789abcdef", "2026-11-29") ?? "";
    assert.strictEqual(
      once,
      "x\nPrinted at commit `0123456789ab` on 2026-11-29.\n\n<!-- matrix -->\n| a |\n<!-- /matrix -->\n",
    );
    const twice = stampPage(once, "<!-- matrix -->", "fedcba9876543210", "2026-11-30") ?? "";
    assert.strictEqual(twice, once.replace("0123456789ab", "fedcba987654").replace("29", "30"));
    assert.isUndefined(stampPage(marked, "<!-- bench -->", "0123456789abcdef", "2026-11-29"));
  });

  it("stand where the steps look for them, and every step's script is there", () => {
    const files = globSync("scripts/**/*.ts", { cwd: root });
    for (const { args, name, page: of } of stepsOf({ openai: "x" })) {
      assert.include(files, args[0], name);
      if (of !== undefined) assert.include(readFileSync(`${root}${of.path}`, "utf8"), `${of.marker}\n`, name);
    }
  });
});
