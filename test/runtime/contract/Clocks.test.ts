import { assert, describe, it } from "@effect/vitest";
import * as Clocks from "../../../src/runtime/contract/Clocks.ts";

const off = Number.POSITIVE_INFINITY;
const reasoning = { first_progress: 600_000, idle: 300_000, silence: 90_000, attempt: off, run: off };
const plain = { ...reasoning, first_progress: 180_000 };
const whole = { ...reasoning, first_progress: off };

describe("the clocks of a run", () => {
  it("have their defaults by the provider and the form of the response", () => {
    for (const options of [undefined, {}]) {
      assert.deepStrictEqual(Clocks.make({ id: "p" }, true, options), reasoning);
      assert.deepStrictEqual(Clocks.make({ id: "p", reasoning: true }, true, options), reasoning);
      assert.deepStrictEqual(Clocks.make({ id: "p", reasoning: false }, true, options), plain);
      assert.deepStrictEqual(Clocks.make({ id: "p", reasoning: false }, false, options), whole);
      assert.deepStrictEqual(Clocks.make({ id: "p" }, false, options), whole);
    }
  });

  it("are each set or switched off alone, and doubled alone", () => {
    for (const clock of ["first_progress", "idle", "silence", "attempt", "run"] as const) {
      for (const streaming of [true, false]) {
        const base = streaming ? plain : whole;
        const provider = { id: "p", reasoning: false };
        assert.deepStrictEqual(Clocks.make(provider, streaming, { [clock]: 5 }), { ...base, [clock]: 5 });
        assert.deepStrictEqual(Clocks.make(provider, streaming, { [clock]: "2 seconds" }), { ...base, [clock]: 2_000 });
        assert.deepStrictEqual(Clocks.make(provider, streaming, { [clock]: false }), { ...base, [clock]: off });
      }
      assert.deepStrictEqual(Clocks.doubleClock(plain, clock), { ...plain, [clock]: 2 * plain[clock] });
    }
    assert.strictEqual(Clocks.doubleClock(plain, "connect"), plain);
  });

  it("and the watchdog have the documented limits", () => {
    const { doubleClock: _, make: __, ...limits } = Clocks;
    assert.deepStrictEqual(limits, {
      ...{ firstProgressMs: 180_000, firstProgressReasoningMs: 600_000, idleMs: 300_000, silenceMs: 90_000 },
      ...{ keepAlivesToArm: 2, lingerMs: 10_000, sweepMs: 1_000, suspendLateMs: 2_000, suspendGraceMs: 20_000 },
      ...{ askAfterMs: 10_000, askAgainMs: [10_000, 20_000, 40_000, 60_000], foresightMs: 500, askGridMs: 500 },
      ...{ suspendGracesMax: 32, lateMs: 50, catchUpMs: 100, closeGraceMs: 1_000 },
    });
  });
});
