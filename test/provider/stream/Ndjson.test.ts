import { assert, describe, it } from "@effect/vitest";
import { framing } from "../../../src/provider/stream/Ndjson.ts";
import { encode } from "../Decoded.ts";

const framed = (...pieces: ReadonlyArray<string>) => {
  const framer = framing.makeFramer();
  const fed = pieces.flatMap((piece) => framer.feed(encode(piece)));
  const late = framer.end();
  return { framer, events: [...fed, ...late].map((frame) => ("data" in frame ? [frame.data, frame.bytes] : frame)) };
};

describe("frames of lines of JSON", () => {
  it("is an event a line, with its line end, after LF and CRLF", () => {
    assert.deepStrictEqual(framed('{"a":1}\n{"b":2}\r\n').events, [
      ['{"a":1}', 8],
      ['{"b":2}', 9],
    ]);
  });

  it("keeps a line that arrives in pieces, inside a character too", () => {
    const bytes = encode('{"a":"ü"}\n');
    const framer = framing.makeFramer();
    const events = [...bytes].flatMap((byte) => framer.feed(Uint8Array.of(byte)));
    assert.deepStrictEqual(events, [{ event: "message", data: '{"a":"ü"}', bytes: 11 }]);
    assert.strictEqual(framer.unframed, 0);
  });

  it("counts blank lines for the next event, and drops a byte order mark", () => {
    assert.deepStrictEqual(framed('\uFEFF{"a":1}\n\n \n{"b":2}\n').events, [
      ['{"a":1}', 11],
      ['{"b":2}', 11],
    ]);
    const { events, framer } = framed("\n\n");
    assert.deepStrictEqual([events, framer.unframed, framer.failure], [[], 2, undefined]);
  });

  it("returns the last line without its line end, whole or cut", () => {
    assert.deepStrictEqual(framed('{"a":1}').events, [['{"a":1}', 7]]);
    assert.deepStrictEqual(framed('{"a":').events, [['{"a":', 5]]);
    assert.deepStrictEqual(framed('{"a":1}\n', '{"b"').events.at(-1), ['{"b"', 4]);
  });

  it("rejects a body whose first line is not an object", () => {
    for (const body of ["<html>\n", " [1]\n", "data: {}\n\n", '"text"\n', "{\n", '{\n  "a": 1\n}\n', "<", "d"])
      assert.deepStrictEqual(framed(body).framer.failure, { kind: "protocol", reason: "not_a_stream" }, body);
    assert.isUndefined(framed('{"a":1}\n', "<html>\n").framer.failure, "the decoder reports damage later");
  });

  it("refuses a line that is too long, in one piece and in many", () => {
    for (const piece of [60, 4]) {
      const framer = framing.makeFramer({ lineBytesMax: 50 });
      const bytes = encode(`{"a":"${"x".repeat(60)}"}\n`);
      for (let at = 0; at < bytes.length; at += piece) framer.feed(bytes.subarray(at, at + piece));
      assert.deepStrictEqual(framer.failure, { kind: "protocol", reason: "oversize" });
      assert.deepStrictEqual(framer.feed(encode("{}\n")), []);
      assert.deepStrictEqual(framer.end(), []);
    }
  });

  it("takes a body that begins with another line for no stream, however long that line is and however it is cut", () => {
    for (const body of [`[${"1,".repeat(40)}1]\n`, `  <html>${"x".repeat(60)}\n`, "\f\n", "\u00a0\n"])
      for (const piece of [100, 7, 1]) {
        const framer = framing.makeFramer({ lineBytesMax: 50 });
        const bytes = encode(body);
        for (let at = 0; at < bytes.length; at += piece) framer.feed(bytes.subarray(at, at + piece));
        assert.deepStrictEqual(framer.failure, { kind: "protocol", reason: "not_a_stream" }, `${body}, ${piece}`);
      }
  });

  it("writes an event as a line, and ends a line that lacks its end", () => {
    assert.strictEqual(framing.encode({ data: '{"a":1}' }), '{"a":1}\n');
    assert.strictEqual(framing.missingEnd(encode('{"a":1}')), "\n");
    assert.strictEqual(framing.missingEnd(encode('{"a":1}\n')), "");
    assert.isTrue(framing.isDeclaredBy("application/x-ndjson; charset=utf-8"));
    assert.isFalse(framing.isDeclaredBy("application/json"));
  });
});
