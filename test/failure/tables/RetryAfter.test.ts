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
