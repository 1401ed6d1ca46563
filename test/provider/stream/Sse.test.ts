import { assert, describe, it } from "@effect/vitest";
import * as Sse from "../../../src/provider/stream/Sse.ts";
import { seeded } from "../../Seeded.ts";
import { encode } from "../Decoded.ts";

/** Frames of whole bytes, those of the end among them. */
const frames = (text: string, limits?: Partial<Sse.Limits>) => {
  const framer = Sse.makeFramer(limits);
  const fed = framer.feed(encode(text));
  return { fed, last: framer.end(), failure: framer.failure };
};

const plain = (text: string) =>
  frames(text).fed.map((frame) => (Sse.isComment(frame) ? { comment: frame.comment } : shape(frame)));

const shape = ({ bytes: _, ...event }: { readonly bytes: number }) => event;

describe("Sse: what a line means", () => {
  const cases: ReadonlyArray<readonly [string, string, ReadonlyArray<object>]> = [
    ["a data line and a blank line are a message", "data: a\n\n", [{ event: "message", data: "a" }]],
    ["several data lines are joined by newlines", "data: a\ndata:b\ndata\n\n", [{ event: "message", data: "a\nb\n" }]],
    ["one leading space is stripped and no more", "data:  a \n\n", [{ event: "message", data: " a " }]],
    ["a field without a colon has an empty value", "data\n\n", [{ event: "message", data: "" }]],
    ["an event without data is none", "event: x\n\ndata: a\n\n", [{ event: "message", data: "a" }]],
    [
      "an event has the name of its own frame only",
      "event: x\ndata: a\n\ndata: b\n\n",
      [
        { event: "x", data: "a" },
        { event: "message", data: "b" },
      ],
    ],
    [
      "the last id holds for later events",
      "id: 1\ndata: a\n\ndata: b\n\nid\ndata: c\n\n",
      [
        { event: "message", data: "a", id: "1" },
        { event: "message", data: "b", id: "1" },
        { event: "message", data: "c", id: "" },
      ],
    ],
    ["an id with NUL is ignored", "id: 1\u00002\ndata: a\n\n", [{ event: "message", data: "a" }]],
    [
      "retry takes digits only",
      "retry: 1e3\nretry: 250\nretry: -1\ndata: a\n\ndata: b\n\n",
      [
        { event: "message", data: "a", retry: 250 },
        { event: "message", data: "b" },
      ],
    ],
    [
      "a comment is a frame, also inside an event",
      ": one\ndata: a\n:two\n\n",
      [{ comment: "one" }, { comment: "two" }, { event: "message", data: "a" }],
    ],
    ["unknown fields are ignored", "foo: 1\ndatas: 2\nData: 3\ndata: a\n\n", [{ event: "message", data: "a" }]],
    [
      "a byte order mark counts at the start only",
      "\uFEFFdata: a\n\ndata: \uFEFFb\n\n\uFEFFdata: c\n\n",
      [
        { event: "message", data: "a" },
        { event: "message", data: "\uFEFFb" },
      ],
    ],
    [
      "CR, LF and CRLF end lines, mixed",
      "data: a\r\rdata: b\r\n\ndata: c\n\r\ndata: d\r\n\r\n",
      [
        { event: "message", data: "a" },
        { event: "message", data: "b" },
        { event: "message", data: "c" },
        { event: "message", data: "d" },
      ],
    ],
  ];
  for (const [name, text, expected] of cases) it(name, () => assert.deepStrictEqual(plain(text), [...expected]));

  it("a blank CR line gives the event at once, without waiting for a LF", () => {
    const framer = Sse.makeFramer();
    assert.strictEqual(framer.feed(encode("data: a\r\n\r")).length, 1);
    assert.deepStrictEqual(framer.feed(encode("\ndata: b\n\n")), [{ event: "message", data: "b", bytes: 10 }]);
  });
});

describe("Sse: bytes", () => {
  const text =
    '\uFEFF: héllo\r\n\r\nid: 1\nevent: é\ndata: {"a":"東京🌊"}\ndata: x\r\rretry: 10\ndata: end\n\n\n\n: bye\n\n';

  it("chunks may be cut anywhere, also inside a character or a CRLF", () => {
    const bytes = encode(text);
    const whole = Sse.makeFramer().feed(bytes);
    assert.strictEqual(whole.length, 4);
    for (let seed = 1; seed <= 200; seed++) {
      const random = seeded(seed);
      const framer = Sse.makeFramer();
      const found: Array<Sse.Frame> = [];
      for (let at = 0; at < bytes.length; ) {
        const size = 1 + Math.floor(random() * 6);
        found.push(...framer.feed(bytes.subarray(at, at + size)));
        at += size;
      }
      assert.deepStrictEqual(found, [...whole], `seed ${seed}`);
    }
  });

  it("the bytes of the frames and the unframed ones are the bytes that were fed, after every byte", () => {
    const framer = Sse.makeFramer();
    let framed = 0;
    for (const [index, byte] of encode(`${text}data: open`).entries()) {
      for (const frame of framer.feed(Uint8Array.of(byte))) framed += frame.bytes;
      assert.strictEqual(framed + framer.unframed, index + 1);
    }
    for (const frame of framer.end()) framed += frame.bytes;
    assert.strictEqual(framed + framer.unframed, encode(`${text}data: open`).length);
  });

  it("an array that is reused after feed changes nothing", () => {
    const framer = Sse.makeFramer();
    const bytes = encode("data: hel");
    framer.feed(bytes);
    bytes.fill(0);
    assert.deepStrictEqual(framer.feed(encode("lo\n\n")), [{ event: "message", data: "hello", bytes: 13 }]);
  });

  it("bytes that are no UTF-8 become replacement characters", () => {
    const bytes = Uint8Array.from([...encode("data: a"), 0xff, 0xc3, ...encode("\n\n")]);
    assert.deepInclude(Sse.makeFramer().feed(bytes)[0], { data: "a\uFFFD\uFFFD" });
  });

  it("a line of four megabytes in small pieces comes out whole", () => {
    const framer = Sse.makeFramer();
    const piece = encode("0123456789abcdef".repeat(64));
    framer.feed(encode("data: "));
    for (let index = 0; index < 4096; index++) framer.feed(piece);
    const [frame] = framer.feed(encode("\n\n"));
    assert.strictEqual(frame?.bytes, 4096 * 1024 + 8);
  });
});

describe("Sse: the end", () => {
  it("gives the event that lacks its blank line, or its line end too", () => {
    assert.deepStrictEqual(frames("data: a\n").last, [{ event: "message", data: "a", bytes: 8 }]);
    assert.deepStrictEqual(frames("event: x\ndata: a").last, [{ event: "x", data: "a", bytes: 16 }]);
  });

  it("delivers no event twice, and none after the end", () => {
    const framer = Sse.makeFramer();
    framer.feed(encode("data: a"));
    assert.strictEqual(framer.end().length, 1);
    assert.strictEqual(framer.end().length, 0);
    assert.strictEqual(framer.feed(encode("data: b\n\n")).length, 0);
  });

  it("says that fields were cut before their data came", () => {
    for (const [text, cut] of [
      ["data: a\n\nda", true],
      ["data: a\n\nevent: b\n", true],
      ["data: a\n\n: com", false],
      ["data: a\n\n", false],
    ] as const) {
      const framer = Sse.makeFramer();
      framer.feed(encode(text));
      framer.end();
      assert.strictEqual(framer.cut, cut, text);
    }
  });
});

describe("Sse: failures", () => {
  const limits = { lineBytesMax: 20, eventBytesMax: 30 };

  it("a line above its limit is oversize, whole or in pieces, and what stood before it is given", () => {
    const long = `data: ${"x".repeat(40)}`;
    const whole = frames(`data: a\n\n${long}\n\ndata: b\n\n`, limits);
    assert.strictEqual(whole.fed.length, 1);
    assert.deepStrictEqual(whole.failure, { kind: "protocol", reason: "oversize" });
    const framer = Sse.makeFramer(limits);
    for (const byte of encode(long)) framer.feed(Uint8Array.of(byte));
    assert.deepStrictEqual(framer.failure, { kind: "protocol", reason: "oversize" });
    assert.isAtMost(framer.unframed, limits.lineBytesMax);
    assert.strictEqual(framer.feed(encode("\n\ndata: a\n\n")).length, 0, "it is sticky");
  });

  it("a JSON or HTML body on one line above the limit is no stream, whole or in pieces", () => {
    for (const body of [`{"a":"${"x".repeat(40)}"}`, `<html>${"x".repeat(40)}\n`, `  [${"1,".repeat(40)}`]) {
      assert.deepInclude(frames(body, limits).failure, { reason: "not_a_stream" });
      const framer = Sse.makeFramer(limits);
      for (const byte of encode(body)) framer.feed(Uint8Array.of(byte));
      assert.deepInclude(framer.failure, { reason: "not_a_stream" });
    }
    const long = `data: a\n\n{"a":"${"x".repeat(40)}"}`;
    assert.deepInclude(frames(long, limits).failure, { reason: "oversize" }, "the body was recognised as a stream");
  });

  it("a line at its limit is not", () => {
    assert.strictEqual(frames(`data: ${"x".repeat(14)}\n\n`, limits).fed.length, 1);
  });

  it("an event of many lines above its limit is oversize, and comments do not count for it", () => {
    assert.deepInclude(frames(`${"data: 0123456789\n".repeat(4)}\n`, limits).failure, { reason: "oversize" });
    assert.strictEqual(frames(`${": 0123456789\n".repeat(9)}data: a\n\n`, limits).failure, undefined);
  });

  it("a body that is no stream is said to be none at its first byte, or at its end", () => {
    for (const body of ['{"error":1}', "[\n", "<!doctype html>", '  {"a":1}', '\r\n\r\n{"a":1}', "\uFEFF<html>"]) {
      const framer = Sse.makeFramer();
      framer.feed(encode(body));
      assert.deepStrictEqual(framer.failure, { kind: "protocol", reason: "not_a_stream" }, body);
    }
    for (const body of ["upstream connect error", "Bad Gateway\n", "503: no healthy upstream\n\n"]) {
      assert.deepStrictEqual(frames(body).failure, { kind: "protocol", reason: "not_a_stream" }, body);
    }
  });

  it("a stream that was cut in its first line is one all the same", () => {
    for (const start of ["", "d", "data", "data: {", "event", ": ke", "id: ", "\n", "retr"])
      assert.strictEqual(frames(start).failure, undefined, start);
  });

  it("a JSON or HTML body that takes the place of a frame is damage", () => {
    for (const body of ['{"error":{}}\n', "<html>\n"])
      assert.deepStrictEqual(frames(`data: a\n\n${body}`).failure, { kind: "protocol", reason: "damaged_frame" });
  });
});
