import { assert, describe, it } from "@effect/vitest";
import * as RetryAfter from "../../../src/failure/tables/RetryAfter.ts";

/** Wed, 21 Oct 2026 07:28:00 GMT, which this machine's clock never shows. */
const nowMs = 1_792_567_680_000;

describe("RetryAfter.fromHeaders", () => {
  const rows: ReadonlyArray<readonly [string, Record<string, string | undefined>, number | undefined]> = [
    ["milliseconds", { "retry-after-ms": "1500" }, 1_500],
    ["fractions of milliseconds, rounded", { "retry-after-ms": "120.7" }, 121],
    ["milliseconds before seconds", { "retry-after-ms": "250", "retry-after": "1" }, 250],
    ["seconds where Azure's milliseconds are zero", { "retry-after-ms": "0", "retry-after": "1" }, 1_000],
    ["zero where both are zero", { "retry-after-ms": "0", "retry-after": "0" }, 0],
    ["seconds", { "retry-after": "20" }, 20_000],
    ["fractions of seconds", { "retry-after": "0.5" }, 500],
    ["an hour", { "retry-after": "3600" }, 3_600_000],
    ["an IMF-fixdate", { "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT" }, 30_000],
    ["a date of RFC 850", { "retry-after": "Wednesday, 21-Oct-26 07:29:00 GMT" }, 60_000],
    ["a date of asctime", { "retry-after": "Wed Oct 21 07:28:05 2026" }, 5_000],
    ["a date in the past as no wait", { "retry-after": "Wed, 21 Oct 2015 07:28:00 GMT" }, 0],
    ["a date over a leap day", { "retry-after": "Tue, 29 Feb 2028 00:00:00 GMT" }, RetryAfter.retryAfterMsMax],
    ["an epoch in seconds", { "retry-after": String(nowMs / 1_000 + 12) }, 12_000],
    ["an epoch in milliseconds", { "retry-after": String(nowMs + 700) }, 700],
    ["any case of the name", { "Retry-After": "2" }, 2_000],
    ["a duration with a unit", { "retry-after": "30s" }, 30_000],
    ["nothing for words", { "retry-after": "soon" }, undefined],
    ["nothing for a negative number", { "retry-after": "-5" }, undefined],
    ["nothing for Infinity", { "retry-after": "Infinity" }, undefined],
    ["nothing for an empty value", { "retry-after": "" }, undefined],
    ["nothing without the header", { "x-request-id": "7" }, undefined],
    ["at most the limit", { "retry-after": "999999999" }, RetryAfter.retryAfterMsMax],
  ];
  for (const [name, headers, expected] of rows)
    it(`reads ${name}`, () => assert.strictEqual(RetryAfter.fromHeaders(headers, nowMs), expected));

  it("agrees with Date on every month of fifty years", () => {
    const pad = (part: number) => String(part).padStart(2, "0");
    const days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"];
    const months = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(" ");
    for (let month = 0; month < 600; month += 1) {
      const at = new Date(Date.UTC(1990, month, 1 + (month % 28), month % 24, month % 60, (month * 7) % 60));
      const text = `${days[at.getUTCDay()]}, ${pad(at.getUTCDate())} ${months[at.getUTCMonth()]} ${at.getUTCFullYear()} ${pad(at.getUTCHours())}:${pad(at.getUTCMinutes())}:${pad(at.getUTCSeconds())} GMT`;
      assert.strictEqual(RetryAfter.fromHeaders({ "retry-after": text }, at.getTime() - 4_321), 4_321, text);
    }
  });

  it("does not guess a wait from a date or an epoch without a clock", () => {
    assert.isUndefined(RetryAfter.fromHeaders({ "retry-after": "Wed, 21 Oct 2026 07:28:30 GMT" }));
    assert.isUndefined(RetryAfter.fromHeaders({ "retry-after": String(nowMs) }));
  });

  it("reads Headers like a record", () => {
    assert.strictEqual(RetryAfter.fromHeaders(new Headers({ "Retry-After": "3" }), nowMs), 3_000);
  });

  it("survives headers that throw", () => {
    const hostile = {
      get: () => {
        throw new Error("no");
      },
    };
    assert.isUndefined(RetryAfter.fromHeaders(hostile, nowMs));
    assert.isUndefined(
      RetryAfter.fromHeaders(
        new Proxy(
          {},
          {
            ownKeys: () => {
              throw new Error("no");
            },
          },
        ),
        nowMs,
      ),
    );
  });
});

describe("RetryAfter.fromBody", () => {
  const rows: ReadonlyArray<readonly [string, unknown, number | undefined]> = [
    [
      "RetryInfo as text",
      { details: [{ "@type": "x" }, { "@type": "google.rpc.RetryInfo", retryDelay: "48s" }] },
      48_000,
    ],
    ["RetryInfo with fractions", { details: [{ retryDelay: "48.939935699s" }] }, 48_940],
    ["RetryInfo as a protobuf duration", { details: [{ retryDelay: { seconds: "2", nanos: 500_000_000 } }] }, 2_500],
    ["seconds of a plan limit", { resets_in_seconds: 90 }, 90_000],
    ["seconds in metadata", { metadata: { retry_after_seconds: 7 } }, 7_000],
    ["nothing from an epoch", { retry_after: nowMs }, undefined],
    ["nothing from a word", { retry_after: "soon", details: "soon" }, undefined],
  ];
  for (const [name, body, expected] of rows)
    it(`reads ${name}`, () => assert.strictEqual(RetryAfter.fromBody(body), expected));
});

describe("a number or a duration", () => {
  const max = RetryAfter.retryAfterMsMax;

  it("is a wait of its unit", () => {
    const units: ReadonlyArray<readonly [string, number]> = [
      ...["ms", "millisecond", "milliseconds"].map((unit) => [unit, 1] as const),
      ...["s", "sec", "secs", "second", "seconds", "S"].map((unit) => [unit, 1_000] as const),
      ...["m", "min", "mins", "minute", "minutes"].map((unit) => [unit, 60_000] as const),
      ...["h", "hr", "hrs", "hour", "hours"].map((unit) => [unit, 3_600_000] as const),
      ...["d", "day", "days"].map((unit) => [unit, 86_400_000] as const),
      ...["week", "weeks"].map((unit) => [unit, 604_800_000] as const),
    ];
    for (const [unit, ms] of units)
      for (const space of ["", " "]) {
        assert.strictEqual(RetryAfter.parseDuration(`3${space}${unit}`), 3 * ms, unit);
        assert.strictEqual(RetryAfter.parseDuration(`1${space}${unit}2ms`), ms + 2, unit);
      }
    assert.strictEqual(RetryAfter.parseDuration("0s"), 0);
    assert.strictEqual(RetryAfter.parseDuration("5s 3 parsecs 1h"), 5_000);
    for (const text of ["", "s", "5", "5 parsecs 3s"]) assert.isUndefined(RetryAfter.parseDuration(text), text);
  });

  it("is read from the first 64 characters, and is at most 30 days", () => {
    assert.strictEqual(RetryAfter.parseDuration(`${"x".repeat(62)}5s`), 5_000);
    assert.isUndefined(RetryAfter.parseDuration(`${"x".repeat(63)}5s`));
    assert.strictEqual(RetryAfter.parseDuration("30 days"), max);
    assert.strictEqual(RetryAfter.parseDuration("31 days"), max);
    assert.strictEqual(max, 2_592_000_000);
  });

  it("is clamped and rounded", () => {
    const rows: ReadonlyArray<readonly [number, number]> = [
      [-1, 0],
      [0, 0],
      [0.4, 0],
      [0.5, 1],
      [max, max],
      [max + 1, max],
    ];
    for (const [given, wait] of rows) assert.strictEqual(RetryAfter.clampWait(given), wait, String(given));
  });

  it("has at most 16 digits and nine fractional ones", () => {
    const rows: ReadonlyArray<readonly [string | undefined, number | undefined]> = [
      [undefined, undefined],
      [" 12 ", 12],
      ["1.5", 1.5],
      ["9".repeat(16), Number("9".repeat(16))],
      ["9".repeat(17), undefined],
      ["0.123456789", 0.123456789],
      ["0.1234567891", undefined],
      ["1.", undefined],
      ["-1", undefined],
      ["1e3", undefined],
    ];
    for (const [given, read] of rows) assert.strictEqual(RetryAfter.parseDecimal(given), read, given);
  });

  it("counts as seconds below an epoch of nine digits, and as milliseconds above a thousand times that", () => {
    const rows: ReadonlyArray<readonly [number, number | undefined, number | undefined]> = [
      [0, undefined, 0],
      [999_999_999, undefined, max],
      [1_000_000_000, undefined, undefined],
      [1_000_000_000, 999_999_999_000, 1_000],
      [999_999_999_999, 999_999_999_998_000, 1_000],
      [1_000_000_000_000, 999_999_999_000, 1_000],
    ];
    for (const [given, now, wait] of rows) assert.strictEqual(RetryAfter.fromNumber(given, now), wait, `${given}`);
  });
});

describe("a wait in a body", () => {
  it("is any of its fields, in their order", () => {
    const rows: ReadonlyArray<readonly [unknown, number | undefined]> = [
      [{ retry_after_ms: 0 }, 0],
      [{ retry_after_ms: 5, retry_after: 7 }, 5],
      [{ retry_after_ms: -1, retry_after: 7 }, 7_000],
      [{ retry_after: 0 }, 0],
      [{ retry_after: -1 }, undefined],
      [{ retry_after: 1, retry_after_seconds: 2, resets_in_seconds: 3 }, 1_000],
      [{ retry_after_seconds: 2, resets_in_seconds: 3 }, 2_000],
      [{ resets_in_seconds: 3, metadata: { retry_after: 4 } }, 3_000],
      [{ metadata: { retry_after_ms: 4 } }, 4],
      [{ retry_after: 999_999_999 }, RetryAfter.retryAfterMsMax],
      [{ retry_after: 1_000_000_000 }, undefined],
      [{ details: [{ retryDelay: "2s" }], retry_after_ms: 5 }, 2_000],
      [{ details: [{ retryDelay: "soon" }, { retryDelay: { seconds: 3 } }] }, 3_000],
      [{ details: [{ retryDelay: { seconds: 0, nanos: 7_000_000 } }] }, 7],
      [{ details: [{ retryDelay: { seconds: -1 } }] }, undefined],
      [{ details: [{ retryDelay: { nanos: 5 } }] }, undefined],
    ];
    for (const [body, wait] of rows) assert.strictEqual(RetryAfter.fromBody(body), wait, JSON.stringify(body));
  });
});

describe("a header", () => {
  it("is read by `get`, by its name or by its name in another case, if it is a string", () => {
    const rows: ReadonlyArray<readonly [unknown, string | undefined]> = [
      [{ get: () => "a" }, "a"],
      [{ get: () => 5, x: "b" }, "b"],
      [{ get: () => 5, X: "b" }, "b"],
      [{ x: "a", X: "b" }, "a"],
      [{ x: 5, X: "b" }, undefined],
      [{ X: ["b"] }, undefined],
      [{}, undefined],
      [null, undefined],
      [undefined, undefined],
      ["x", undefined],
    ];
    for (const [headers, value] of rows)
      assert.strictEqual(RetryAfter.readHeader(headers, "x"), value, JSON.stringify(headers));
  });

  it("Date is the time of the response, else the clock is", () => {
    assert.strictEqual(RetryAfter.readResponseDate({ date: " Wed, 21 Oct 2026 07:28:00 GMT " }, 5), nowMs);
    assert.strictEqual(RetryAfter.readResponseDate({ date: "Wednesday, 21-Oct-26 07:28:00 GMT" }, nowMs), nowMs);
    assert.strictEqual(RetryAfter.readResponseDate({ date: "today" }, 5), 5);
    assert.isUndefined(RetryAfter.readResponseDate({}, undefined));
  });
});
