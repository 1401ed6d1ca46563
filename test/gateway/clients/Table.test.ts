/**
 * Real clients with only their base URL changed, through the gateway, against each fault of the conformance kit, in both modes.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { ConformanceFaultId } from "../../../src/testing/index.ts";
import { line, through } from "./Matrix.ts";
import { clients } from "./Runtimes.ts";

/** The client has shown text before these breaks. A byte client cannot withdraw it, so the answer ends with an error. */
const afterText: ReadonlyArray<ConformanceFaultId> = ["text_cut", "text_clean_end", "overload_in_text"];

describe("real clients through the gateway", () => {
  for (const { name, runtime } of clients) {
    it.live(`${name}, on_complete: every fault is recovered, and the client never retries`, () =>
      Effect.gen(function* () {
        const { cells, repeated } = yield* through("on_complete", yield* runtime);
        assert.isAbove(cells.length, 10);
        assert.deepStrictEqual(cells.filter((cell) => cell.letter !== "R" || cell.false_abort).map(line), []);
        assert.deepStrictEqual(repeated, []);
      }),
    );

    it.live(
      `${name}, live: unshown content is recovered, and shown text is followed by an error and nothing worse`,
      () =>
        Effect.gen(function* () {
          const { cells, repeated } = yield* through("live", yield* runtime);
          assert.isAbove(cells.length, 10);
          const expected = (fault: ConformanceFaultId) => (afterText.includes(fault) ? "E" : "R");
          const wrong = cells.filter((cell) => cell.letter !== expected(cell.fault) || cell.false_abort);
          assert.deepStrictEqual(wrong.map(line), []);
          // No client retries after a connection that broke behind text, so nothing can be duplicated.
          assert.deepStrictEqual(repeated, []);
        }),
    );
  }
});
