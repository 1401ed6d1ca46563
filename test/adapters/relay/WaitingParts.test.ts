/** The events that have come and not left, in their order, whatever of them leaves (DESIGN.md, 11; law L11). */
import { assert, describe, it } from "@effect/vitest";
import type { RelayPart } from "../../../src/adapters/relay/RelayFrames.ts";
import { WaitingParts } from "../../../src/adapters/relay/RelayHeads.ts";
import { none } from "../../../src/domain/Observation.ts";

const part = (): RelayPart => ({ bytes: new Uint8Array(1), observation: none });

/** Numbers that look random and are the same in each run. */
const numbers = (seed: number) => {
  let state = seed;
  return (below: number): number => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
};

/** How many places a list keeps: its only array. */
const placesOf = (waiting: WaitingParts): number => {
  let most = 0;
  const { slice } = Array.prototype;
  // `all` takes its events out of the places.
  Array.prototype.slice = function (this: Array<unknown>, ...range) {
    most = Math.max(most, this.length);
    return slice.apply(this, range);
  };
  try {
    void waiting.all;
  } finally {
    Array.prototype.slice = slice;
  }
  return most;
};

describe("the events that wait to leave", () => {
  it("are those that have come and not left, the oldest first, whatever leaves", () => {
    for (let seed = 1; seed <= 40; seed += 1) {
      const next = numbers(seed);
      const waiting = new WaitingParts();
      const model = new Set<RelayPart>();
      const gone: Array<RelayPart> = [];
      for (let step = 0; step < 400; step += 1) {
        // It grows past the places that are kept, and shrinks again.
        if (next(100) < (step % 200 < 120 ? 75 : 20)) {
          const came = part();
          waiting.add(came);
          model.add(came);
        } else {
          const [first, ...others] = model;
          const left = next(10) < 8 ? first : (others[next(others.length + 1)] ?? gone[next(gone.length + 1)]);
          if (left === undefined) continue;
          waiting.remove(left);
          model.delete(left);
          gone.push(left);
        }
        if (next(100) === 0) {
          waiting.clear();
          model.clear();
        }
        assert.deepStrictEqual(waiting.all.length, model.size, `seed ${seed}, step ${step}`);
        assert.isTrue(
          [...model].every((it, at) => waiting.all[at] === it),
          `seed ${seed}, step ${step}`,
        );
      }
    }
  });

  it("take few places, however many have left", () => {
    const waiting = new WaitingParts();
    let last = part();
    waiting.add(last);
    for (let count = 0; count < 5_000; count += 1) {
      const came = part();
      waiting.add(came);
      // One always waits, so that the list is never empty.
      waiting.remove(last);
      last = came;
    }
    assert.deepStrictEqual(waiting.all.length, 1);
    assert.isAtMost(placesOf(waiting), 300);
  });
});
