/**
 * What becomes of a call that names a turn.
 */
import { assert, describe, it } from "@effect/vitest";
import type { Order } from "../../../src/agent/cluster/Protocol.ts";
import { moveOf, newestOf, type Standing } from "../../../src/agent/cluster/Turns.ts";

const ended: Standing = { turns: 2, asked: "two", isOpen: false, isDriven: false, rest: undefined };
const left: Standing = { ...ended, isOpen: true };
const driven: Standing = { ...left, isDriven: true };
const resting: Standing = { ...left, rest: "7.1" };
const fresh: Standing = { ...ended, turns: 0, asked: undefined };

const said = (order: Order, standing: Standing): string => {
  const move = moveOf(order, standing);
  return typeof move === "string" ? move : move.reason;
};

describe("A call that names a turn", () => {
  it("begins the next one, and no other", () => {
    assert.strictEqual(said({ turn: 1, text: "one" }, fresh), "begin");
    assert.strictEqual(said({ turn: 3, text: "three" }, ended), "begin");
    assert.strictEqual(said({ turn: 4, text: "four" }, ended), "out_of_turn");
    assert.strictEqual(said({ turn: 1, text: "one" }, ended), "out_of_turn");
    assert.strictEqual(said({ turn: 0 }, fresh), "out_of_turn");
  });

  it("counts with the one that the call before has begun, before and behind its line in the journal", () => {
    const [one, two] = [
      { number: 1, asked: "one" },
      { number: 2, asked: "two" },
    ];
    assert.strictEqual(newestOf(one, two), two);
    assert.strictEqual(newestOf(two, one), two);
    assert.strictEqual(newestOf(two, undefined), two);
    assert.strictEqual(newestOf(two, { number: 2, asked: "2" }), two);
  });

  it("begins none without words, and none behind one that is open", () => {
    assert.strictEqual(said({ turn: 3 }, ended), "out_of_turn");
    for (const open of [left, driven, resting]) assert.strictEqual(said({ turn: 3, text: "three" }, open), "open");
  });

  it("that comes again is told how its turn is, and begins nothing", () => {
    for (const order of [{ turn: 2, text: "two" }, { turn: 2 }, { turn: 2, text: "two", go_on: "7.1" }]) {
      assert.strictEqual(said(order, ended), "tell");
      assert.strictEqual(said(order, driven), "tell");
    }
  });

  it("goes on with what another owner has left open", () => {
    assert.strictEqual(said({ turn: 2, text: "two" }, left), "go_on");
    assert.strictEqual(said({ turn: 2 }, left), "go_on");
  });

  it("goes on with a turn that rests where it names that rest, and only then", () => {
    assert.strictEqual(said({ turn: 2 }, resting), "tell");
    assert.strictEqual(said({ turn: 2, go_on: "7.1" }, resting), "go_on");
    assert.strictEqual(said({ turn: 2, go_on: "6.1" }, resting), "tell");
  });

  it("with other words than the turn has is another caller's", () => {
    for (const standing of [ended, left, driven, resting]) {
      assert.strictEqual(said({ turn: 2, text: "other" }, standing), "taken");
    }
  });
});
