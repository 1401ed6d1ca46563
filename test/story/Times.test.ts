/**
 * Checks the words for times and amounts at the edges of their units.
 */
import { assert, describe, it } from "@effect/vitest";
import * as Times from "../../src/story/Times.ts";

const [second, minute, hour, day] = [1_000, 60_000, 3_600_000, 86_400_000] as const;

describe("times in words", () => {
  it("a duration changes its unit at the edge and never rounds up to it", () => {
    const told = [375.4, second, minute - 1, minute, hour - 1, hour, 2 * day - 1, 2 * day].map(Times.formatLasting);
    assert.deepStrictEqual(told, [
      "375 ms",
      "1.0 s",
      "59.9 s",
      "1 min 0 s",
      "59 min 59 s",
      "1 h 0 min",
      "47 h 59 min",
      "2 d",
    ]);
  });

  it("a moment is relative to now, in either direction", () => {
    const now = 10 * day;
    const told = [now - second, now - 12 * second, now + 3 * minute, now - 5 * hour, now - 9 * day];
    assert.deepStrictEqual(
      told.map((at) => Times.formatRelative(at, now)),
      ["now", "12 s ago", "in 3 min", "5 h ago", "9 d ago"],
    );
  });

  it("a time outside any calendar is shown as a number", () => {
    assert.strictEqual(Times.formatUtc(Date.UTC(2026, 10, 22, 1, 57, 22)), "2026-11-22 01:57:22 UTC");
    assert.strictEqual(Times.formatUtc(9e15), "9000000000000000 ms");
  });

  it("amounts are worded for one, many, and thousands", () => {
    assert.deepStrictEqual(
      [
        Times.formatCount(1, "attempt"),
        Times.formatCount(0, "attempt"),
        Times.formatTimes(1),
        Times.formatTimes(3),
        Times.groupDigits(1_840),
      ],
      ["one attempt", "0 attempts", "once", "3 times", "1\u202f840"],
    );
  });
});
