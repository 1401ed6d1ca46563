import { assert, describe, it } from "@effect/vitest";
import { Pulse, turnMs, turnsMax } from "../../../src/cli/serve/Pulse.ts";
import { leaseMsDefault } from "../../../src/recorder/sql/SqlRunRecorder.ts";

const turns = (pulse: Pulse, count: number) => Array.from({ length: count }, () => pulse.advance());

describe("the pulse of a worker", () => {
  it("is requested once, and counts as hanging after the supervisor's maximum number of turns without an answer", () => {
    const pulse = new Pulse();
    assert.deepStrictEqual(turns(pulse, turnsMax + 1), [
      "ask",
      ...Array.from({ length: turnsMax - 1 }, () => "wait"),
      "hangs",
    ]);
  });

  it("is whole again with each answer, even a late one", () => {
    const pulse = new Pulse();
    for (let n = 0; n < 3; n += 1) {
      assert.notInclude(turns(pulse, turnsMax), "hangs");
      pulse.onAnswer();
    }
    assert.strictEqual(pulse.advance(), "ask");
  });

  it("hangs until it answers, even if it counted as hanging before", () => {
    const pulse = new Pulse();
    turns(pulse, turnsMax);
    assert.isFalse(pulse.isHanging);
    turns(pulse, 1);
    assert.isTrue(pulse.isHanging);
    pulse.onAnswer();
    assert.isFalse(pulse.isHanging);
  });

  it("has a longer limit than the lease of its runs", () => {
    assert.isAbove(turnsMax * turnMs, leaseMsDefault);
  });
});
