import { assert, describe, it } from "@effect/vitest";
import { Arbitrary, Schema } from "effect";
import * as EventStream from "../../../src/provider/stream/EventStream.ts";
import type { SseEvent } from "../../../src/provider/stream/Protocol.ts";
import { eventStreamMessage } from "../../../src/testing/answers/Bedrock.ts";

const int = (minimum: number, maximum: number) =>
  Arbitrary.schema(Schema.Int.check(Schema.isBetween({ minimum, maximum })));

const bytesOf = (maxLength: number, minLength = 0) =>
  Arbitrary.map(Arbitrary.array(int(0, 255), { maxLength, minLength }), (bytes) => Uint8Array.from(bytes));

const text = Arbitrary.map(Arbitrary.schema(Schema.String), (it) => it.toWellFormed());

const number = (type: "byte" | "short" | "integer", bits: number) =>
  Arbitrary.map(int(-(2 ** (bits - 1)), 2 ** (bits - 1) - 1), (value): EventStream.HeaderValue => ({ type, value }));

const long = (type: "long" | "timestamp") =>
  Arbitrary.map(
    int(Number.MIN_SAFE_INTEGER, Number.MAX_SAFE_INTEGER),
    (value): EventStream.HeaderValue => ({ type, value: BigInt(value) }),
  );

/** One arbitrary of each type of value. */
const values = Arbitrary.all({
  yes: Arbitrary.map(int(0, 1), (it): EventStream.HeaderValue => it === 1),
  byte: number("byte", 8),
  short: number("short", 16),
  integer: number("integer", 32),
  long: long("long"),
  binary: Arbitrary.map(bytesOf(40), (value): EventStream.HeaderValue => ({ type: "binary", value })),
  text: Arbitrary.map(text, (it): EventStream.HeaderValue => it),
  timestamp: long("timestamp"),
  uuid: Arbitrary.map(bytesOf(16, 16), (value): EventStream.HeaderValue => ({ type: "uuid", value })),
});

const message = Arbitrary.map(
  Arbitrary.all({ values, payload: bytesOf(80) }),
  ({ payload, values }): EventStream.Message => ({ headers: Object.entries(values), payload }),
);

/** Events of a stream, as their names and texts. */
const events = Arbitrary.array(
  Arbitrary.map(Arbitrary.all({ name: int(0, 2), said: text }), ({ name, said }) => ({
    event: ["contentBlockDelta", "metadata", "throttlingException"][name] ?? "",
    data: { said },
  })),
  { maxLength: 5, minLength: 1 },
);

const written = (of: ReadonlyArray<{ readonly event: string; readonly data: object }>): Uint8Array =>
  Uint8Array.from(Buffer.concat(of.map(({ data, event }) => EventStream.writeEvent(event, data))));

/** Frames bytes in pieces that end at the given places. */
const framed = (bytes: Uint8Array, cuts: ReadonlyArray<number> = []) => {
  const framer = EventStream.makeFramer();
  const ends = [...cuts.map((cut) => cut % (bytes.length + 1)), bytes.length].sort((a, b) => a - b);
  const found: Array<SseEvent> = [];
  let from = 0;
  for (const end of ends) {
    // The framer's caller may reuse the array.
    const piece = bytes.slice(from, end);
    for (const event of framer.feed(piece)) if ("event" in event) found.push(event);
    piece.fill(0xff);
    from = end;
  }
  framer.end();
  return { found, framer };
};

describe("the event stream of Amazon's APIs", () => {
  it.prop("reads back what it writes, with a header of every type", { message }, ({ message }) => {
    const bytes = EventStream.write(message);
    assert.deepStrictEqual(EventStream.read(bytes), {
      headers: message.headers,
      payload: bytes.subarray(bytes.length - 4 - message.payload.length, bytes.length - 4),
    });
  });

  it.prop(
    "frames the same events, however the bytes are split",
    { events, cuts: Arbitrary.array(int(0, 100_000), { maxLength: 12 }) },
    ({ cuts, events }) => {
      const bytes = written(events);
      const { found, framer } = framed(bytes, cuts);
      assert.deepStrictEqual(
        found.map(({ data, event }) => ({ event, data: JSON.parse(data) })),
        events,
      );
      assert.strictEqual(
        found.reduce((sum, event) => sum + event.bytes, 0),
        bytes.length,
      );
      assert.deepStrictEqual([framer.failure, framer.unframed, framer.cut], [undefined, 0, false]);
    },
  );

  it("frames the same events byte by byte", () => {
    const bytes = written([
      { event: "messageStart", data: { role: "assistant" } },
      { event: "x", data: {} },
    ]);
    const single = Array.from(bytes, (_, at) => at);
    assert.deepStrictEqual(framed(bytes, single).found, framed(bytes).found);
  });

  it.prop(
    "notices every flipped bit, and frames nothing after it",
    { events, at: int(0, 100_000), bit: int(0, 7) },
    ({ at, bit, events }) => {
      const bytes = written(events);
      const place = at % bytes.length;
      bytes[place] = (bytes[place] ?? 0) ^ (1 << bit);
      const { found, framer } = framed(bytes);
      const whole = framed(written(events)).found;
      assert.deepStrictEqual(found, whole.slice(0, found.length));
      assert.isBelow(found.length, whole.length);
      assert.strictEqual(framer.failure?.kind ?? (framer.cut ? "cut" : undefined), "protocol");
      assert.deepStrictEqual(framer.feed(written(events)), []);
    },
  );

  it("notices each flipped bit of one message", () => {
    const original = EventStream.writeEvent("messageStop", { stopReason: "end_turn" });
    for (let bit = 0; bit < original.length * 8; bit++) {
      const bytes = original.slice();
      bytes[bit >> 3] = (bytes[bit >> 3] ?? 0) ^ (1 << (bit & 7));
      const { found, framer } = framed(bytes);
      assert.deepStrictEqual([found, framer.failure?.kind], [[], "protocol"], `bit ${bit}`);
    }
  });

  it("is cut at every byte inside a message, and whole after it", () => {
    const bytes = EventStream.writeEvent("messageStop", { stopReason: "end_turn" });
    for (let size = 0; size <= bytes.length; size++) {
      const { found, framer } = framed(bytes.subarray(0, size));
      const isWhole = size === bytes.length;
      assert.deepStrictEqual([found.length, framer.cut], [isWhole ? 1 : 0, !isWhole && size > 0], `${size} bytes`);
      assert.isUndefined(framer.failure);
    }
  });

  it("refuses lengths that are too long before their bytes arrive", () => {
    const prelude = (total: number, headers: number): Uint8Array => {
      const bytes = Buffer.alloc(12);
      bytes.writeUInt32BE(total, 0);
      bytes.writeUInt32BE(headers, 4);
      bytes.writeUInt32BE(EventStream.crc32(bytes, 8), 8);
      return bytes;
    };
    const rows: ReadonlyArray<readonly [number, number, "oversize" | "damaged_frame" | undefined]> = [
      [16, 0, undefined],
      [15, 0, "damaged_frame"],
      [100, 85, "damaged_frame"],
      [100, 84, undefined],
      [16 + 131_072 + 1_000, 131_072, undefined],
      [16 + 131_072 + 1_001, 0, "oversize"],
      [131_073 + 16, 131_073, "oversize"],
    ];
    for (const [total, headers, reason] of rows) {
      const framer = EventStream.makeFramer({ eventBytesMax: 1_000 });
      framer.feed(prelude(total, headers));
      const expected = reason === undefined ? undefined : ({ kind: "protocol", reason } as const);
      assert.deepStrictEqual(framer.failure, expected, `${total}, ${headers}`);
    }
  });

  it("refuses headers that do not fit, and messages of an unknown kind", () => {
    const invalid = (headers: Uint8Array): boolean => {
      const bytes = Buffer.alloc(16 + headers.length);
      bytes.writeUInt32BE(bytes.length, 0);
      bytes.writeUInt32BE(headers.length, 4);
      bytes.writeUInt32BE(EventStream.crc32(bytes, 8), 8);
      bytes.set(headers, 12);
      bytes.writeUInt32BE(EventStream.crc32(bytes, bytes.length - 4), bytes.length - 4);
      return EventStream.read(bytes) === undefined;
    };
    const rows: ReadonlyArray<readonly [string, ReadonlyArray<number>, boolean]> = [
      ["no header", [], false],
      ["a flag", [1, 65, 0], false],
      ["no name", [0, 0], true],
      ["no type", [1, 65], true],
      ["an unknown type", [1, 65, 10], true],
      ["a text that is too long", [1, 65, 7, 0, 2, 65], true],
      ["a text without its length", [1, 65, 7, 0], true],
      ["half an integer", [1, 65, 4, 0, 0], true],
      ["half a UUID", [1, 65, 9, 1, 2, 3], true],
    ];
    for (const [name, headers, isInvalid] of rows)
      assert.strictEqual(invalid(Uint8Array.from(headers)), isInvalid, name);
    for (const kind of ["", "greeting"]) {
      const { framer } = framed(eventStreamMessage({ ":message-type": kind, ":event-type": "x" }, "{}"));
      assert.deepStrictEqual(framer.failure, { kind: "protocol", reason: "damaged_frame" }, kind);
    }
  });

  it("reads exceptions and errors as such, whatever their name", () => {
    const read = (headers: Readonly<Record<string, string>>, payload = "") => {
      const [event] = framed(eventStreamMessage(headers, payload)).found;
      return [event?.event, event?.data];
    };
    const thrown = { ":message-type": "exception", ":exception-type": "throttlingException" };
    assert.deepStrictEqual(read(thrown, '{"message":"slow"}'), ["throttlingException", '{"message":"slow"}']);
    assert.deepStrictEqual(read({ ...thrown, ":exception-type": "odd" }, "{}"), ["error", "{}"]);
    const failed = { ":message-type": "error", ":error-code": "Internal", ":error-message": "broken" };
    assert.deepStrictEqual(read(failed), ["error", '{"code":"Internal","message":"broken"}']);
  });

  it("rejects a document or a page as not a stream, and other bytes as damaged", () => {
    for (const body of ['{"message":"no"}', "<html>", "\n\n[1]", "\uFEFF{}"])
      assert.deepStrictEqual(framed(Buffer.from(body)).framer.failure, { kind: "protocol", reason: "not_a_stream" });
    const zeros = framed(new Uint8Array(64)).framer;
    assert.deepStrictEqual(zeros.failure, { kind: "protocol", reason: "damaged_frame" });
  });

  it("writes what the provider's own form reads, and the other way round", () => {
    const headers = { ":event-type": "x", ":content-type": "application/json", ":message-type": "event" };
    assert.deepStrictEqual(
      Buffer.from(EventStream.writeEvent("x", { a: 1 })).toString("hex"),
      eventStreamMessage(headers, '{"a":1}').toString("hex"),
    );
  });

  it("edits payloads and keeps the messages valid", () => {
    const bytes = Uint8Array.from(
      written([
        { event: "throttlingException", data: { message: "the key secret is slow" } },
        { event: "x", data: { key: "secret" } },
      ]),
    );
    const masked = EventStream.editPayloads(bytes, (payload) =>
      Uint8Array.from(Buffer.from(Buffer.from(payload).toString().replace("secret", "******"))),
    );
    assert.deepStrictEqual(
      framed(masked).found.map(({ data }) => data),
      ['{"message":"the key ****** is slow"}', '{"key":"******"}'],
    );
    const cut = bytes.slice(0, 20);
    assert.deepStrictEqual(
      EventStream.editPayloads(cut, () => new Uint8Array(0)),
      cut,
    );
  });
});
