import { readFileSync } from "node:fs";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit } from "effect";
import { row } from "../testing/faults/Requests.ts";
import { type Cell, none, whole } from "./Cell.ts";
import { judge } from "./CellJudge.ts";
import { cutRules } from "./cells/CutRules.ts";
import { allCuts } from "./cells/Cuts.ts";
import { cells, playAll, slice } from "./Matrix.ts";
import type { Outcome } from "./Play.ts";
import { markdown, totalsOf } from "./Table.ts";

const all = cells();

describe("the fault matrix", () => {
  const comesOut = (selected: ReadonlyArray<Cell>) =>
    Effect.map(playAll(selected), (judged) => {
      const wrong = judged.filter((one) => one.problems.length > 0);
      assert.deepStrictEqual(
        wrong.map((one) => [one.cell.name, ...one.problems]),
        [],
      );
      assert.deepStrictEqual(totalsOf(judged), {
        cells: selected.length,
        as_expected: selected.length,
        duplicates: 0,
        false_successes: 0,
        false_aborts: 0,
        lost_records: 0,
      });
    });

  it.live(
    "has the expected outcome in every cell of a representative slice, without a duplicate, a false success or a false abort",
    () => comesOut(slice(all)),
  );

  it("gives every cell a unique name", () => {
    assert.strictEqual(new Set(all.map((cell) => cell.name)).size, all.length);
  });

  it("has a slice that covers every fault, protocol, reveal mode and tool state", () => {
    const axes = (selected: ReadonlyArray<Cell>, of: (cell: Cell) => string) => [...new Set(selected.map(of))].sort();
    const light = all.filter((cell) => cell.heavy !== true);
    for (const of of [
      (cell: Cell) => cell.group,
      (cell: Cell) => `${cell.protocol} ${cell.mode}`,
      (cell: Cell) => cell.tools.name,
      (cell: Cell) => `${cell.expect.end} ${cell.expect.rules.join(" ")}`,
    ]) {
      assert.deepStrictEqual(axes(slice(all), of), axes(light, of));
    }
  });

  it("uses every rule of its expectations, in every protocol that it can fit", () => {
    for (const rule of cutRules) {
      const fitting = allCuts().filter((cut) => cutRules.find((it) => it.fits(cut)) === rule);
      assert.isAbove(fitting.length, 0, rule.if);
    }
  });

  it("is up to date in the docs", () => {
    const docs = readFileSync(new URL("../../docs/fault-matrix.md", import.meta.url), "utf8");
    const table = /<!-- matrix -->\n([\s\S]*?)\n<!-- \/matrix -->/.exec(docs)?.[1];
    assert.strictEqual(table, markdown(all), "run: node scripts/matrix.ts --write");
  });
});

describe("the matrix's own judge", () => {
  const cell: Cell = {
    name: "x",
    group: "x",
    protocol: "openai-chat",
    mode: "live",
    tools: none,
    answers: () => [{}],
    expect: whole,
  };
  const outcome = (more: Partial<Outcome>): Outcome => ({
    exit: Exit.void,
    text: "r1.0·r1.1·",
    reasoning: "",
    inputs: [],
    incidents: [],
    record: undefined,
    log: [row(1)],
    gateMissed: false,
    ...more,
  });

  it("counts the text of two answers to one request as duplicates", () => {
    const judged = judge(
      cell,
      outcome({ text: "r1.0·r2.0·r2.1·", log: [row(1, { outcome: "broken", terminal: false }), row(2)] }),
    );
    assert.isAbove(judged.duplicates, 0);
    assert.strictEqual(judged.false_aborts, 1);
  });

  it("counts a completion without the marker, and one with a part missing, as false successes", () => {
    assert.strictEqual(
      judge(cell, outcome({ log: [row(1, { terminal: false, outcome: "broken" })] })).false_successes,
      1,
    );
    assert.strictEqual(judge(cell, outcome({ text: "r1.0·" })).false_successes, 1);
  });

  it("counts an abandoned whole answer as a false abort", () => {
    assert.strictEqual(judge(cell, outcome({ exit: Exit.fail("the run hangs") })).false_aborts, 1);
  });

  it("names a run without a record, a wait that was too short and a break without its caller", () => {
    const judged = judge(
      { ...cell, expect: { ...whole, requests: 2, keeps: [1, 2], waitMs: [100, 200] } },
      outcome({
        text: "r1.0·r1.1·r2.0·r2.1·",
        log: [row(1, { body_hash: "a" }), row(2, { started_ms: 11 })],
        gateMissed: true,
      }),
    );
    assert.strictEqual(judged.lost_records, 1);
    assert.include(judged.problems, "waited 10 ms, expected 100 to 200");
    assert.include(judged.problems, "the caller never saw what was sent before the break");
  });
});
