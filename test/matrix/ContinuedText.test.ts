/**
 * Breaks streams in every way of the matrix with `continue_text: auto` in a gateway: no text and no call comes twice, nothing
 * is missing from a whole answer, and every provable answer is continued (laws L2, L4, L5).
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { ids, playAll, type Row, wrongIn } from "./ContinuedText.ts";

const holds = (rows: ReadonlyArray<Row>): void => {
  for (const row of rows) {
    assert.strictEqual(wrongIn(row), "", row.said);
    // An answer that showed only thoughts cannot be continued.
    if (!row.whole) assert.isFalse(row.shown, `${row.said}: could be proven and did not go on`);
  }
  const count = (which: (row: Row) => boolean) => rows.filter(which).length;
  assert.isAbove(
    count(({ whole }) => whole),
    rows.length * 0.8,
  );
  assert.strictEqual(
    count(({ reveal, whole }) => reveal === "on_complete" && !whole),
    0,
  );
};

describe("the fault matrix with continue_text auto", () => {
  for (const id of ids) {
    it.live(`${id}: continues or asks after every kind of break, live and held, and never repeats text`, () =>
      Effect.map(playAll(id, "auto"), holds),
    );
  }
});
