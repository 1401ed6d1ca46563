/**
 * Compares the parsers of points in time with `Date`, and holds each bound at its edges.
 */
import { assert, describe, it } from "@effect/vitest";
import { nextTimeOfDay, parseHttpDate, parseTimestamp, toUtc } from "../../../src/failure/tables/Instants.ts";
import { seeded } from "../../Seeded.ts";

const pad = (part: number, length = 2) => String(part).padStart(length, "0");
const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
const dayMs = 86_400_000;
const nowMs = Date.UTC(2026, 10, 30);

/** 2,000 instants between 1901 and 2199, of which some are at the edges of months and leap years. */
const instants: ReadonlyArray<Date> = (() => {
  const random = seeded(20261130);
  const first = Date.UTC(1901, 0);
  const span = Date.UTC(2199, 11, 31) - first;
  const drawn = Array.from({ length: 1_600 }, () => first + Math.floor((random() * span) / 1_000) * 1_000);
  const edges = Array.from(
    { length: 400 },
    (_, at) => Date.UTC(1996 + (at % 10), 1 + (at % 3), 0) + (at % 7) * 3_601_000,
  );
  return [...drawn, ...edges].map((ms) => new Date(ms));
})();

describe("points in time", () => {
  it("in the forms of HTTP and of RFC 3339 are the instants of Date", () => {
    for (const at of instants) {
      const [year, month, day] = [at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()];
      const time = `${pad(at.getUTCHours())}:${pad(at.getUTCMinutes())}:${pad(at.getUTCSeconds())}`;
      const ms = at.getTime();
      assert.strictEqual(parseHttpDate(`Sun, ${pad(day)} ${months[month]} ${year} ${time} GMT`, undefined), ms);
      assert.strictEqual(
        parseHttpDate(`Sun ${months[month]} ${String(day).padStart(2)} ${time} ${year}`, undefined),
        ms,
      );
      const two = `Sunday, ${pad(day)}-${months[month]}-${pad(year % 100)} ${time} GMT`;
      assert.strictEqual(parseHttpDate(two, ms), ms);
      assert.isUndefined(parseHttpDate(two, undefined));
      assert.strictEqual(parseTimestamp(`${pad(year, 4)}-${pad(month + 1)}-${pad(day)}T${time}Z`), ms);
      assert.strictEqual(toUtc(year, month + 1, day, at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()), ms);
    }
  });

  it("with a zone are the instants of Date", () => {
    const rows: ReadonlyArray<readonly [string, string]> = [
      ["2026-10-21T07:28:30+02:30", "2026-10-21T07:28:30+02:30"],
      ["2026-10-21T07:28:30-0930", "2026-10-21T07:28:30-09:30"],
      ["2026-10-21t07:28:30z", "2026-10-21T07:28:30Z"],
      ["2026-10-21 07:28:30Z", "2026-10-21T07:28:30Z"],
      ["2026-10-21T07:28:30.25Z", "2026-10-21T07:28:30.250Z"],
    ];
    for (const [given, same] of rows) assert.strictEqual(parseTimestamp(given), Date.parse(same), given);
  });

  it("with other words, without a zone or with a month that does not exist are none", () => {
    for (const text of ["", "soon", "2026-10-21", "2026-10-21T07:28:30", "2026-10-21T07:28Z", "2026-13-21T07:28:30Z"])
      assert.isUndefined(parseTimestamp(text), text);
    for (const text of [
      "",
      "Sun, 30 Foo 2026 00:00:00 GMT",
      "Sun, 30 Nov 2026 00:00:00 PST",
      "Sun Foo 30 00:00:00 2026",
    ])
      assert.isUndefined(parseHttpDate(text, nowMs), text);
  });

  it("with a part out of its range are none", () => {
    type Parts = readonly [number, number, number, number, number, number];
    const lowest: Parts = [2026, 1, 1, 0, 0, 0];
    const highest: Parts = [2026, 12, 31, 24, 59, 60];
    assert.strictEqual(toUtc(...lowest), Date.UTC(2026, 0, 1));
    assert.strictEqual(toUtc(...highest), Date.UTC(2027, 0, 1, 0, 59, 60));
    assert.strictEqual(toUtc(2026, 1, 1, 0, 0, 60.9), Date.UTC(2026, 0, 1, 0, 1, 0, 900));
    const outside: ReadonlyArray<Parts> = [
      [2026, 0, 1, 0, 0, 0],
      [2026, 13, 1, 0, 0, 0],
      [2026, 1, 0, 0, 0, 0],
      [2026, 1, 32, 0, 0, 0],
      [2026, 1, 1, 25, 0, 0],
      [2026, 1, 1, 0, 60, 0],
      [2026, 1, 1, 0, 0, 61],
    ];
    for (const parts of outside) assert.isUndefined(toUtc(...parts), parts.join());
  });
});

describe("a year of two digits", () => {
  const yearOf = (two: string, now: number) => {
    const ms = parseHttpDate(`Monday, 15-Jun-${two} 00:00:00 GMT`, now);
    return ms === undefined ? undefined : new Date(ms).getUTCFullYear();
  };
  it("is at most 50 years ahead, else in the past", () => {
    const mid = Date.UTC(2026, 6);
    const rows: ReadonlyArray<readonly [string, number]> = [
      ["26", 2026],
      ["27", 2027],
      ["76", 2076],
      ["77", 1977],
      ["99", 1999],
      ["00", 2000],
    ];
    for (const [two, year] of rows) assert.strictEqual(yearOf(two, mid), year, two);
  });
});

describe("the next time of day", () => {
  it("is at least now, less than a day ahead, and shows that time", () => {
    const random = seeded(5);
    for (let times = 0; times < 500; times += 1) {
      const now = Math.floor(random() * 2 ** 41);
      const time = Math.floor(random() * 3 * dayMs) - dayMs;
      const at = nextTimeOfDay(time, now);
      assert.isTrue(at >= now && at < now + dayMs, `${time} at ${now}`);
      assert.strictEqual(at % dayMs, ((time % dayMs) + dayMs) % dayMs);
    }
    assert.strictEqual(nextTimeOfDay(1_000, nowMs + 1_000), nowMs + 1_000);
    assert.strictEqual(nextTimeOfDay(1_000, nowMs + 1_001), nowMs + dayMs + 1_000);
  });
});
