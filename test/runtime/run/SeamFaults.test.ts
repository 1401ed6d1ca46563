/** A run with a seam of its caller that fails (M3). */
import { assert, it } from "@effect/vitest";
import { Seams } from "../../../src/runtime/run/Seams.ts";

it("a seam that throws once is never called again, because its state of the text is incomplete", () => {
  let fails = true;
  const unproven = () => ({ type: "unproven", fault: "unwritable" }) as const;
  const seams = new Seams<string>(() => ({
    begins: () => {
      if (fails) throw new Error("a seam of the caller's throws");
    },
    left: () => {},
    plan: () => ({ proof: "anchor", quote: "one two", at: 7 }),
    joins: () => ({ take: unproven, end: unproven }),
    refused: () => {},
  }));
  assert.isObject(seams.plan());
  seams.beginResponse(true);
  fails = false;
  assert.strictEqual(seams.plan(), "unbuildable");
});
