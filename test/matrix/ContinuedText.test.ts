/**
 * Breaks in every way that the matrix has for streams, with `continue_text: auto` behind a gateway: no text and no call comes twice,
 * none is missing from what is whole, and what could be proven went on (laws L2, L4, L5).
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { ids, playAll, type Row, wrongIn } from "./ContinuedText.ts";

const holds = (rows: ReadonlyArray<Row>): void => {
  for (const row of rows) {
    assert.strictEqual(wrongIn(row), "", row.said);
    // Only thoughts that were shown alone cannot be gone on with.
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
    it.live(`${id}: every break of every shape, live and held, by silence too`, () =>
      Effect.map(playAll(id, "auto"), holds),
    );
  }
});
