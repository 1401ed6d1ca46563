/**
 * Real clients, unmodified but for their base URL, through the gateway: FIELD's table again, in both modes.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { ConformanceFaultId } from "../../src/testing/index.ts";
import { line, through } from "./ClientsMatrix.ts";
import { clients } from "./ClientsRuntimes.ts";

/** The client has shown text when these break: a byte client cannot take it back, so that the answer ends with an error. */
const afterText: ReadonlyArray<ConformanceFaultId> = ["text_cut", "text_clean_end", "overload_in_text"];

describe("real clients through the gateway", () => {
  for (const { name, runtime } of clients) {
    it.live(`${name}, on_complete: every fault is recovered, and nobody sees it`, () =>
      Effect.gen(function* () {
        const { cells } = yield* through("on_complete", yield* runtime);
        assert.isAbove(cells.length, 10);
        assert.deepStrictEqual(cells.filter(({ letter }) => letter !== "R").map(line), []);
        assert.deepStrictEqual(cells.filter(({ false_abort }) => false_abort).map(line), []);
      }),
    );

    it.live(`${name}, live: what was not shown is recovered, and what was ends with an error and nothing worse`, () =>
      Effect.gen(function* () {
        const { cells } = yield* through("live", yield* runtime);
        assert.isAbove(cells.length, 10);
        const expected = (fault: ConformanceFaultId) => (afterText.includes(fault) ? "E" : "R");
        assert.deepStrictEqual(cells.filter(({ fault, letter }) => letter !== expected(fault)).map(line), []);
        assert.deepStrictEqual(cells.filter(({ false_abort }) => false_abort).map(line), []);
        // What the client was told it was told by a broken connection: it never asked again by itself.
        const worst = cells.filter(
          (cell) => cell.silent_truncation || cell.truncated_tool_runs + cell.duplicated_tool_runs > 0,
        );
        assert.deepStrictEqual(worst.map(line), []);
      }),
    );
  }
});
