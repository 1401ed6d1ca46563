/** Deadlines against a list that is sorted anew each time. */
import { assert, describe, it } from "@effect/vitest";
import { Deadlines, type Due } from "../../../src/runtime/contract/Deadlines.ts";
import { seeded } from "../../Seeded.ts";

const due = (id: number): Due => ({ id, dueAt: 0, place: -1 });

const sorted = (members: Iterable<Due>) => [...members].sort((a, b) => a.dueAt - b.dueAt || a.id - b.id);

describe("deadlines", () => {
  it("give the one that is due first, whatever is taken in, moved and taken out, over random steps", () => {
    const seed = 20_261_128;
    console.log(`seed ${seed}`);
    for (let round = 0; round < 40; round += 1) {
      const random = seeded(seed + round);
      const below = (limit: number) => Math.floor(random() * limit);
      const deadlines = new Deadlines<Due>();
      const model = new Set<Due>();
      const all = Array.from({ length: 1 + below(40) }, (_, id) => due(id));
      for (let step = 0; step < 200; step += 1) {
        const member = all[below(all.length)] ?? due(0);
        const at = below(10) === 0 ? Number.POSITIVE_INFINITY : below(50);
        if (below(3) === 0) assert.strictEqual(deadlines.delete(member), model.delete(member), `seed ${seed + round}`);
        else {
          deadlines.set(member, at);
          model.add(member);
        }
        const expected = sorted(model);
        assert.strictEqual(deadlines.first, expected[0], `seed ${seed + round} step ${step}`);
        assert.strictEqual(deadlines.size, model.size);
        assert.deepStrictEqual(sorted(deadlines.values()), expected);
        for (const it of all) assert.strictEqual(deadlines.has(it), model.has(it));
        const now = below(50);
        const mayBeDue = expected.filter((it) => it.dueAt <= now);
        assert.deepStrictEqual(sorted(deadlines.due(now)), mayBeDue);
      }
      const order: Array<Due> = [];
      const last = sorted(model);
      for (let first = deadlines.first; first !== undefined; first = deadlines.first) {
        order.push(first);
        deadlines.delete(first);
      }
      assert.deepStrictEqual(order, last, `seed ${seed + round}`);
    }
  });

  it("are left as they are by what happens while the members of a moment are gone through", () => {
    const deadlines = new Deadlines<Due>();
    const [a, b, c] = [due(1), due(2), due(3)];
    for (const [index, it] of [a, b, c].entries()) deadlines.set(it, index);
    const seen: Array<number> = [];
    for (const it of deadlines.values()) {
      seen.push(it.id);
      deadlines.delete(it);
    }
    assert.deepStrictEqual([seen.length, deadlines.size], [3, 0]);
  });

  it("take nobody out who stands among others", () => {
    const [ours, theirs] = [new Deadlines<Due>(), new Deadlines<Due>()];
    const [mine, other] = [due(1), due(2)];
    ours.set(mine, 1);
    theirs.set(other, 1);
    assert.isFalse(ours.delete(other));
    assert.deepStrictEqual([ours.size, theirs.size], [1, 1]);
  });
});
