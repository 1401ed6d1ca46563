import { assert, describe, it } from "@effect/vitest";
import { Cause } from "effect";
import { fieldsMax, type LogEvent, lineOf, logFormats, valueCharactersMax } from "../../../src/gateway/log/LogLine.ts";
import { seeded } from "../../Seeded.ts";

const event = (message: unknown, annotations: Record<string, unknown> = {}): LogEvent => ({
  date: new Date(Date.UTC(2026, 0, 2, 3, 4, 5, 678)),
  logLevel: "Warn",
  cause: Cause.empty,
  message,
  annotations,
});

/** What a terminal or a reader of lines might obey. */
const obeyed = /[\p{Cc}\u2028\u2029\u200e\u200f\u061c\u202a-\u202e\u2066-\u2069\ufeff]/u;

describe("a line of the log", () => {
  it("is a sentence with its fields, for a person", () => {
    assert.strictEqual(
      lineOf(
        "text",
        event(["a request failed", { path: "/v1/x", code: "ECONNRESET", ms: 12 }], { run_id: "gw_1", said: "a b" }),
      ),
      '2026-01-02T03:04:05.678Z WARN  a request failed path=/v1/x code=ECONNRESET ms=12 run_id=gw_1 said="a b"',
    );
  });

  it("is an object with its fields, for a program", () => {
    assert.deepStrictEqual(JSON.parse(lineOf("json", event(["a request failed", { ms: 12 }], { run_id: "gw_1" }))), {
      time: "2026-01-02T03:04:05.678Z",
      level: "warn",
      message: "a request failed",
      ms: 12,
      run_id: "gw_1",
    });
  });

  it("is one line whatever it says, and its fields pass for no others", () => {
    const random = seeded(7);
    const sharp = [
      "\n",
      "\r\n2026-01-02T",
      "\u001b[31m",
      "\u2028",
      "\u202e",
      "\ud800",
      '"',
      "\\",
      "=",
      "level=ERROR",
      "\u0085",
      "\u007f",
    ];
    const text = () =>
      Array.from({ length: 1 + Math.floor(random() * 8) }, () =>
        random() < 0.5
          ? sharp[Math.floor(random() * sharp.length)]
          : String.fromCharCode(Math.floor(random() * 0xffff)),
      ).join("");
    for (let round = 0; round < 2_000; round += 1) {
      const fields = { [text()]: text(), [text()]: { [text()]: [text()] }, n: text() };
      for (const format of logFormats) {
        const line = lineOf(format, event([text(), fields], { [text()]: text() }));
        assert.notMatch(line, obeyed);
        assert.isTrue(line.isWellFormed());
        if (format === "text") continue;
        const read: Record<string, unknown> = JSON.parse(line);
        assert.deepStrictEqual([read.time, read.level], ["2026-01-02T03:04:05.678Z", "warn"]);
        assert.strictEqual(read.n, fields.n);
      }
    }
  });

  it("ignores fields that would replace its time, level or message", () => {
    const read = JSON.parse(lineOf("json", event("said", { time: "0", level: "none", message: "forged" })));
    assert.deepStrictEqual([read.level, read.message, read._message], ["warn", "said", "forged"]);
  });

  it("is bounded, and cut so that it can be read", () => {
    const long = Object.fromEntries(Array.from({ length: 500 }, (_, n) => [`f${n}`, "x".repeat(100_000)]));
    for (const format of logFormats) {
      const line = lineOf(format, event("y".repeat(1_000_000), long));
      assert.isBelow(line.length, (fieldsMax + 1) * (valueCharactersMax + 40) + 100);
      if (format === "json") assert.lengthOf(Object.keys(JSON.parse(line)), fieldsMax + 3);
    }
  });

  it("has a cause, an error and a value that refers to itself as text in one line", () => {
    const self: Record<string, unknown> = {};
    self.self = self;
    const line = lineOf("text", {
      ...event(["failed", { self, error: new Error("a\nb"), big: 1n, infinite: 1 / 0 }]),
      cause: Cause.die(new Error("deep\ndown")),
    });
    assert.notMatch(line, obeyed);
    assert.include(line, "infinite=Infinity");
    assert.match(line, /error="Error: a\\nb"/);
    assert.match(line, /cause="Error: deep\\n/);
  });
});
