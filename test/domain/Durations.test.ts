import { assert, describe, it } from "@effect/vitest";
import { Duration } from "effect";
import { readMs, toMs } from "../../src/domain/Durations.ts";

describe("a duration in an option", () => {
  const accepted: ReadonlyArray<readonly [Duration.Input, number]> = [
    [5_000, 5_000],
    [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY],
    ["5 seconds", 5_000],
    ["Infinity", Number.POSITIVE_INFINITY],
    [Duration.minutes(2), 120_000],
    [{ minutes: 1, seconds: 30 }, 90_000],
    [[1, 500_000_000], 1_500],
  ];
  it("is read as milliseconds, whatever its form", () => {
    assert.deepStrictEqual(
      accepted.map(([given]) => toMs(given)),
      accepted.map(([, ms]) => ms),
    );
  });

  // What plain JavaScript can pass.
  const refused: ReadonlyArray<unknown> = [
    "5 parsecs",
    "",
    "-1 seconds",
    -1,
    Number.NaN,
    {},
    { sec: 5 },
    [],
    null,
    true,
  ];
  for (const given of refused) {
    it(`is refused with the name of its option: ${JSON.stringify(given) ?? given}`, () => {
      // Cast, because the types refuse it.
      assert.throws(() => readMs("leaseMs", given as Duration.Input), /^leaseMs: expected milliseconds or a duration/);
    });
  }
});
