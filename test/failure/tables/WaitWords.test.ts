import { assert, describe, it } from "@effect/vitest";
import { retryAfterMsMax } from "../../../src/failure/tables/RetryAfter.ts";
import * as WaitWords from "../../../src/failure/tables/WaitWords.ts";
import { seeded } from "../../Seeded.ts";

/** Sun, 29 Nov 2026 21:30:00 GMT. */
const nowMs = Date.UTC(2026, 10, 29, 21, 30);
const minute = 60_000;
const hour = 60 * minute;

describe("WaitWords.read", () => {
  const rows: ReadonlyArray<readonly [string, number | undefined]> = [
    ["Limit 30000, Used 14567, Requested 24754. Please try again in 18.642s. Visit https://x", 18_642],
    ["Please try again in 1m30s.", 90_000],
    ["Please try again in 20ms", 20],
    ["Please retry after 39 seconds.", 39_000],
    ["Please retry your request after 2 minutes", 120_000],
    ["Please retry in 48.939935699s.", 48_940],
    ["Please wait 40000 seconds before retrying.", 40_000_000],
    ["Weekly limit reached, will reset after 27h41m36s", (27 * 60 + 41) * minute + 36_000],
    ["Try again in 3 days 2 hours.", 74 * hour],
    ["You've hit your limit, and it resets in 2 hrs, 5 mins", 125 * minute],
    ["Your limit resets 12am (UTC)", 150 * minute],
    ["resets 9:45 pm UTC", 15 * minute],
    ["resets at 21:29 UTC", 24 * hour - minute],
    ["resets 6am (UTC+8)", 30 * minute],
    ["Your quota resets at 2026-11-30 00:00", 150 * minute],
    ["It resets at 2026-11-30T00:00:30Z.", 150 * minute + 30_000],
    ["It resets at 2026-11-30 00:00:00 +08:00.", undefined],
    ["You will regain access on 2026-12-01 at 00:00 UTC.", 26.5 * hour],
    ["resets at 2026-11-28 00:00", undefined],
    ["resets 3am (America/Los_Angeles)", undefined],
    ["resets 3am PST", undefined],
    ["resets at 13pm", undefined],
    ["resets at 2026-13-40 00:00", undefined],
    ["The limit was reset 5 minutes ago", undefined],
    ["Please try again later.", undefined],
    ["try again in a while", undefined],
    ["try again in 5 parsecs", undefined],
    ["Please retry 3 times", undefined],
    ["resets in 999999999 days", retryAfterMsMax],
    [`${"retry ".repeat(20)}in 5s`, undefined],
    [`${"retry. ".repeat(15)}retry in 5s`, 5_000],
    [`${"retry. ".repeat(16)}retry in 5s`, undefined],
    [`${"x".repeat(4_096 - 12)} retry in 5s`, 5_000],
    [`${"x".repeat(4_096 - 11)} retry in 5s`, undefined],
    [`retry ${" ".repeat(61)}5s`, 5_000],
    [`retry ${" ".repeat(62)}5s`, undefined],
    ["resets 12pm UTC", 14.5 * hour],
    ["resets 12AM UTC", 2.5 * hour],
    ["resets 11 PM", 1.5 * hour],
    ["resets 1am", 3.5 * hour],
    ["resets 0am", undefined],
    ["resets 13am", undefined],
    ["resets at 24:00", 2.5 * hour],
    ["resets at 25:00", undefined],
    ["resets at 22:59", 89 * minute],
    ["resets at 22:60", undefined],
    ["resets at 21:30 UTC", 0],
    ["resets at 22:00 GMT-1", 1.5 * hour],
    ["resets at 22:00 +05:45", 18.75 * hour],
    ["resets 5", undefined],
    ["resets at 2026-11-29 21:30", 0],
    ["resets at 2026-11-29 21:29:59", undefined],
    ["resets at 2026-11-30T00:00:00-02:00", 4.5 * hour],
    ["retry 5 minutes ago, or try again in 7s", 7_000],
  ];
  for (const [message, expected] of rows)
    it(`reads "${message.slice(0, 60)}"`, () => assert.strictEqual(WaitWords.read(message, nowMs), expected));

  it("guesses no time of day without a clock, but reads a duration", () => {
    assert.isUndefined(WaitWords.read("resets 12am (UTC)"));
    assert.isUndefined(WaitWords.read("resets at 2026-11-30 00:00"));
    assert.strictEqual(WaitWords.read("resets after 20s"), 20_000);
  });

  const words = [
    ...[
      "retry",
      "resets",
      "try again",
      "in",
      "at",
      " ",
      "12am",
      "(UTC)",
      "+08:00",
      "2026-11-30",
      "00:00",
      "27h",
      "41m",
    ],
    ...["99", "days", "ago", "Z", ":", ".", "-", "(", "America/New_York", "\u0000", "é", "9".repeat(40)],
  ];
  const random = seeded(20261129);
  const sentence = (): string =>
    Array.from({ length: Math.floor(random() * 40) }, () => words[Math.floor(random() * words.length)]).join(
      random() < 0.5 ? " " : "",
    );

  it("reads from any sentence a wait within bounds or none", () => {
    let read = 0;
    for (let times = 0; times < 20_000; times += 1) {
      const text = sentence();
      const wait = WaitWords.read(text, random() < 0.2 ? undefined : Math.floor(random() * 2 ** 41));
      if (wait !== undefined) read += 1;
      assert.isTrue(wait === undefined || (Number.isInteger(wait) && wait >= 0 && wait <= retryAfterMsMax), text);
    }
    assert.isAbove(read, 1_000);
  });

  it("reads only the beginning of a message, however often it mentions a retry", () => {
    for (let times = 0; times < 500; times += 1) {
      const start = sentence().padEnd(4_096, "retry ").slice(0, 4_096);
      assert.strictEqual(WaitWords.read(start + " retry in 5s".repeat(2_000), nowMs), WaitWords.read(start, nowMs));
    }
  });
});
