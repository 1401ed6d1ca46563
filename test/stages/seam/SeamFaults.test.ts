/** A run with a seam of its caller that fails (M3). */
import { assert, it } from "@effect/vitest";
import { fresh } from "../../../src/domain/AttemptFacts.ts";
import type { BrokenText } from "../../../src/runtime/contract/Stages.ts";
import type { TextSeam } from "../../../src/seam/TextSeam.ts";
import { Seam } from "../../../src/stages/seam/Seam.ts";

const broken: BrokenText = {
  attempt: { number: 1, setup: { mode: "first", request: "first" }, facts: { snapshot: () => fresh } },
  failure: { kind: "truncated" },
  cause: undefined,
  facts: () => fresh,
};

it("a seam that throws once is never called again, because its state of the text is incomplete", () => {
  let fails = true;
  const unproven = () => ({ type: "unproven", fault: "unwritable" }) as const;
  const make = (): TextSeam<string> => ({
    begins: () => {
      if (fails) throw new Error("a seam of the caller's throws");
    },
    left: () => {},
    plan: () => ({ proof: "anchor", quote: "one two", at: 7 }),
    joins: () => ({ take: unproven, end: unproven }),
    refused: () => {},
  });
  const seams = new Seam<string, BrokenText>(make, 2);
  assert.isObject(seams.plan());
  seams.onLaunch({ mode: "continue", request: "continue" }, broken);
  fails = false;
  assert.strictEqual(seams.plan(), "unbuildable");
});
