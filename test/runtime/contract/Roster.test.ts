import { describe, expect, it } from "vitest";
import { Roster } from "../../../src/runtime/contract/Roster.ts";

describe("a roster of what is under way", () => {
  it("returns the member with a key, also after another member has replaced it", () => {
    const roster = new Roster<string, string>();
    roster.set("a", "first");
    roster.set("b", "second");
    roster.set("a", "third");
    expect([roster.get("a"), roster.get("b"), roster.get("c"), roster.size]).toEqual(["third", "second", undefined, 2]);
    expect([roster.has("a"), roster.has("c")]).toEqual([true, false]);
  });

  it("forgets what is over, and never gives it for what came to its place", () => {
    const roster = new Roster<number, string>();
    for (const key of [1, 2, 3]) roster.set(key, `run ${key}`);
    expect([roster.delete(2), roster.delete(2)]).toEqual([true, false]);
    roster.set(4, "run 4");
    roster.set(5, "run 5");
    expect([1, 2, 3, 4, 5].map((key) => roster.get(key))).toEqual(["run 1", undefined, "run 3", "run 4", "run 5"]);
    for (const key of [1, 3, 4, 5]) roster.delete(key);
    roster.set(6, "run 6");
    roster.set(7, "run 7");
    expect([...roster.entries()]).toEqual([
      [6, "run 6"],
      [7, "run 7"],
    ]);
  });

  it("iterates in insertion order, without members deleted and with members added during the iteration", () => {
    const roster = new Roster<string, string>();
    for (const key of ["a", "b", "c", "d"]) roster.set(key, key);
    roster.delete("a");
    const seen: Array<string> = [];
    for (const value of roster.values()) {
      seen.push(value);
      if (value === "b") {
        roster.delete("b");
        roster.delete("c");
        roster.set("e", "e");
      }
    }
    expect(seen).toEqual(["b", "d", "e"]);
  });
});
