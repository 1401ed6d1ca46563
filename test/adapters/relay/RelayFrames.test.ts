import { assert, describe, it } from "@effect/vitest";
import { RelayFrames, type RelayPart } from "../../../src/adapters/relay/RelayFrames.ts";
import { type ProtocolId, protocols } from "../../../src/provider/Protocols.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import { Answers } from "../../../src/testing/index.ts";
import { bytesOf as recorded, recordings } from "../../Recordings.ts";
import { seeded } from "../../Seeded.ts";
import { hasLines, ids } from "../../samples/index.ts";

const bytesOf = (text: string): Uint8Array<ArrayBuffer> => new TextEncoder().encode(text);

const cut = (protocol: ProtocolId, chunks: ReadonlyArray<Uint8Array<ArrayBuffer>>) => {
  const { framing } = protocols.get(protocol);
  const frames = new RelayFrames(Decoder.make(protocols.get(protocol)), undefined, false, framing);
  const parts: Array<RelayPart> = [];
  for (const chunk of chunks) parts.push(...frames.push(chunk));
  const late = frames.end();
  return { parts: [...parts, ...late.parts], end: late.end };
};

const together = (parts: ReadonlyArray<RelayPart>): string =>
  Buffer.concat(parts.map((part) => part.bytes)).toString("latin1");

const pieces = (bytes: Uint8Array<ArrayBuffer>, size: () => number): ReadonlyArray<Uint8Array<ArrayBuffer>> => {
  const out: Array<Uint8Array<ArrayBuffer>> = [];
  for (let at = 0; at < bytes.byteLength; ) {
    const end = Math.min(bytes.byteLength, at + size());
    out.push(bytes.subarray(at, end));
    at = end;
  }
  return out;
};

/** Whole, in random pieces and byte by byte; a complete body keeps every byte, a broken one loses only from its end. */
const check = (protocol: ProtocolId, bytes: Uint8Array<ArrayBuffer>, seed: number) => {
  const next = seeded(seed);
  const body = Buffer.from(bytes).toString("latin1");
  for (const size of [() => bytes.byteLength, () => 1 + Math.floor(next() * 40), () => 1 + Math.floor(next() * 4000)]) {
    const { end, parts } = cut(protocol, pieces(bytes, size));
    if (end.complete) assert.strictEqual(together(parts), body, `seed ${seed}`);
    else assert.isTrue(body.startsWith(together(parts)), `seed ${seed}`);
  }
};

const chat = (delta: object, finish: string | null = null): string =>
  JSON.stringify({ id: "a", object: "chat.completion.chunk", choices: [{ index: 0, delta, finish_reason: finish }] });

describe("RelayFrames", () => {
  for (const protocol of protocols.ids) {
    it(`gives every byte of a ${protocol} answer once and in order, however it is cut`, () => {
      const events = Answers.render(protocol, 1, {
        content: [{ ping: 2 }, { reasoning: 2 }, { text: 6 }, { tool: "bash", input: { cmd: "ls · é" } }],
      });
      const bytes = Uint8Array.from(Buffer.concat(events.map(({ frame }) => Buffer.from(frame))));
      assert.isTrue(cut(protocol, [bytes]).end.complete);
      check(protocol, bytes, 7);
      check(protocol, bytes.slice(0, -30), 7);
      if (protocols.get(protocol).framing !== undefined) return check(protocol, Uint8Array.from([...bytes, 1, 2]), 9);
      const text = Buffer.from(bytes).toString();
      check(protocol, bytesOf(`\ufeff${text.replaceAll("\n", "\r\n")}`), 8);
      check(protocol, bytesOf(`${text}\n\n: bye\n\nevent: strange\ndata: {"x":1}`), 9);
      return undefined;
    });
  }

  it("ends the last event of a body that has ended before its line ends: what comes behind it is no part of it", () => {
    for (const protocol of ids.filter((id) => !hasLines(id))) {
      const events = Answers.render(protocol, 1, { content: [{ text: 3 }] });
      const frames = events.map((event) => (typeof event.frame === "string" ? event.frame : ""));
      for (const nl of ["\n", "\r\n", "\r"]) {
        const text = Buffer.from(frames.slice(0, -3).join("").replaceAll("\n", nl)).toString("latin1");
        for (let less = 0; less <= 2 * nl.length; less += 1) {
          const body = text.slice(0, text.length - less);
          const { end, parts } = cut(protocol, [Uint8Array.from(Buffer.from(body, "latin1"))]);
          const said = `${protocol} ${JSON.stringify(nl)} less ${less}`;
          assert.isFalse(end.complete, said);
          const given = together(parts);
          assert.isTrue(given.startsWith(body), said);
          assert.match(given.slice(body.length), /^\n{0,2}$/, said);
          assert.match(`${given}data: {}`.replaceAll(/\r\n?/g, "\n"), /\n\ndata: \{\}$/, said);
        }
      }
    }
  });

  it("gives the line feed of a CRLF to the event that it ends", () => {
    const events = ["hello", " there", "!"].map((content) => `data: ${chat({ content })}\r\n\r\n`);
    const frames = new RelayFrames(Decoder.make(protocols.get("openai-chat")));
    const parts = frames.push(bytesOf(events.join("")));
    assert.deepStrictEqual(
      parts.map((part) => Buffer.from(part.bytes).toString()),
      events,
    );
  });

  it("passes a keep-alive comment at once, and keeps one inside an event with the event", () => {
    const frames = new RelayFrames(Decoder.make(protocols.get("openai-chat")));
    const alone = frames.push(bytesOf(": ping\n\n"));
    assert.strictEqual(together(alone), ": ping\n");
    const event = `data: ${chat({ content: "x" })}`;
    const inside = frames.push(bytesOf(`${event}\n: ping\n`));
    assert.strictEqual(together(inside), "");
    assert.strictEqual(together(frames.push(bytesOf("\n"))), `\n${event}\n: ping\n\n`);
  });

  it("holds the bytes of an event that says several things until the last of them may leave", () => {
    const text = `data: ${chat({ content: "x" })}\ndata: ${chat({ tool_calls: [{ index: 0, id: "c", function: { name: "f", arguments: "{}" } }] })}\n\n`;
    const { parts } = cut("openai-chat", [bytesOf(text)]);
    assert.deepStrictEqual(
      parts.map((part) => part.bytes.byteLength),
      [0, text.length],
    );
    assert.isAbove(parts[1]?.observation.calls.length ?? 0, 0);
  });

  it("copies nothing of an event that came in one chunk", () => {
    const chunk = bytesOf(`data: ${chat({ content: "a" })}\n\ndata: ${chat({ content: "b" })}\n\n`);
    for (const part of new RelayFrames(Decoder.make(protocols.get("openai-chat"))).push(chunk)) {
      assert.strictEqual(part.bytes.buffer, chunk.buffer);
    }
  });

  it("passes what follows the marker as it comes, also what no decoder reads", () => {
    const frames = new RelayFrames(Decoder.make(protocols.get("openai-chat")));
    frames.push(bytesOf(`data: ${chat({ content: "a" })}\n\n`));
    const marker = frames.push(bytesOf(`data: ${chat({}, "stop")}\n\n{"garbage`));
    assert.isTrue(together(marker).endsWith('{"garbage'));
    assert.strictEqual(together(frames.push(bytesOf('":'))), '":');
    assert.strictEqual(frames.failure, undefined);
    assert.isTrue(frames.end().end.complete);
  });

  it("keeps an event that failed apart, with all that comes behind it", () => {
    const error = 'event: error\ndata: {"type":"error","code":"server_error","message":"x"}\n\n';
    const failed = `event: response.failed\ndata: ${JSON.stringify({
      type: "response.failed",
      response: { status: "failed", error: { code: "insufficient_quota", message: "your plan" } },
    })}\n\n`;
    const frames = new RelayFrames(Decoder.make(protocols.get("openai-responses")));
    assert.strictEqual(together(frames.push(bytesOf(error))), "");
    assert.strictEqual(together(frames.push(bytesOf(`: ping\n\n${failed.slice(0, 30)}`))), "");
    assert.strictEqual(frames.failed?.observation.failure?.kind, "server_error");
    assert.strictEqual(Buffer.from(frames.failed?.bytes ?? []).toString(), `${error}: ping\n`, "whole events only");
    frames.push(bytesOf(failed.slice(30)));
    assert.strictEqual(Buffer.from(frames.failed?.bytes ?? []).toString(), `${error}: ping\n\n${failed}`);
    assert.deepInclude(frames.failed?.observation.failure, { kind: "rejected", reason: "quota" });
    frames.push(bytesOf("data: rest"));
    frames.end();
    assert.isTrue(
      Buffer.from(frames.failed?.bytes ?? [])
        .toString()
        .endsWith("data: rest"),
      "all of a clean end",
    );
  });

  if (recordings.length === 0) it.skip("no recordings are here", () => undefined);
  for (const [index, recording] of recordings.entries()) {
    it(`${recording.file} loses no byte`, () => check(recording.protocol, recorded(recording), index));
  }
});
