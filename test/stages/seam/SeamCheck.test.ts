import { assert, describe, it } from "@effect/vitest";
import * as Observation from "../../../src/domain/Observation.ts";
import type { SeamPassed } from "../../../src/seam/TextSeam.ts";
import { Check } from "../../../src/stages/seam/Seam.ts";

/** A stage whose join says these things in turn, with what it has counted as decoded and how often it was proven. */
const stageOf = (...says: ReadonlyArray<SeamPassed<string>>) => {
  const decoded: Array<Observation.Observation> = [];
  let proven = 0;
  let at = -1;
  const join = () => {
    at += 1;
    return says[at] ?? ({ type: "unproven", fault: "unwritable" } as const);
  };
  const stage = new Check<string>(
    { take: join, end: join },
    {
      facts: {
        decoded: (it) => {
          decoded.push(it);
          return true;
        },
      },
      onContinued: () => {
        proven += 1;
      },
    },
  );
  return { stage, decoded, proven: () => proven };
};

const passed = (joined: boolean, ...parts: ReadonlyArray<string>): SeamPassed<string> => ({
  type: "passed",
  joined,
  parts,
  observations: parts.map((it) => Observation.text(it.length)),
});
const text = (part: string) => ({ parts: [part], observations: [Observation.text(part.length)] });

describe("What stands in front of the hold of a continuation", () => {
  it("delivers nothing before the seam, whatever the caller's own join returns", () => {
    const { proven, stage } = stageOf(passed(false, "too early"), passed(true, "behind"));
    assert.deepStrictEqual(stage.take(text("a")), { parts: [], observations: [] });
    assert.strictEqual(proven(), 0);
    assert.deepStrictEqual(stage.take(text("b")), text("behind"));
    assert.strictEqual(proven(), 1);
  });

  it("counts what it keeps back as decoded, and text behind the seam when it leaves", () => {
    const { decoded, stage } = stageOf(passed(false), passed(true), passed(true, "x"));
    for (const part of ["anchor", "held", "x"]) stage.take(text(part));
    assert.deepStrictEqual(
      decoded.map(({ characters }) => characters),
      [6, 0],
    );
  });

  it("passes an error of the provider as it came", () => {
    const { stage } = stageOf(passed(false));
    const failed = Observation.failed({ kind: "server_error" });
    const out = stage.take({ parts: ["a", "error"], observations: [Observation.text(1), failed] });
    assert.deepStrictEqual(out, { parts: ["error"], observations: [failed] });
  });

  it("L5: the marker of what cannot be joined is no marker of the response", () => {
    const { decoded, stage } = stageOf({ type: "unproven", fault: "stopped" });
    const done = Observation.terminal("stop");
    assert.strictEqual(stage.take({ parts: ["done"], observations: [done] }), "stopped");
    assert.deepStrictEqual(
      decoded.map(({ terminal }) => terminal),
      [false],
    );
  });

  it("reports the fault of text that cannot be joined, also at its end", () => {
    const { stage } = stageOf(passed(false), { type: "unproven", fault: "stopped" });
    stage.take(text("a"));
    assert.strictEqual(stage.end(), "stopped");
  });
});
