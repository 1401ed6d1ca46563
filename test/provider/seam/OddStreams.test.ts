/**
 * What no provider should send, and some do: a splice never throws, writes nothing in front of the seam, and keeps to its bounds.
 */
import { assert, describe, it } from "@effect/vitest";
import * as Json from "../../../src/domain/Json.ts";
import { protocols } from "../../../src/provider/Protocols.ts";
import { TextGate } from "../../../src/provider/seam/TextGate.ts";
import type { Part } from "../../../src/provider/stream/Protocol.ts";
import type { SeamStep } from "../../../src/seam/SeamVerifier.ts";
import { seeded } from "../../Seeded.ts";
import { decode, encode } from "../Decoded.ts";
import { chatContinuer, geminiContinuer } from "./Continuers.ts";
import { played, shownOf, wholeStreams, written } from "./Spliced.ts";

const odd: ReadonlyArray<unknown> = [
  ...[null, true, -1, 1.5, 2 ** 60, "", "x", "7", [], {}, [[]], [null], [{}], { a: { b: [1] } }],
  ...[
    ["text"],
    { type: "text", text: 5 },
    [{ index: 9 }],
    [{ type: "refusal" }],
    [{ functionCall: 3 }],
    [{ text: "x", thought: "yes" }],
  ],
];

/** The value with one of its places filled with something odd. */
const broken = (value: unknown, random: () => number): unknown => {
  if (random() < 0.06) return odd[Math.floor(random() * odd.length)];
  if (Array.isArray(value)) return value.map((item) => broken(item, random));
  const record = Json.record(value);
  if (record === undefined) return value;
  return Object.fromEntries(Object.entries(record).map(([name, it]) => [name, broken(it, random)]));
};

const rounds = 40;

for (const [protocol, continuer] of [
  [protocols.get("openai-chat"), chatContinuer],
  [protocols.get("google-gemini"), geminiContinuer],
] as const)
  describe(`odd events of ${protocol.name}`, () => {
    it("are read and joined without an error, and write nothing where the seam is not proven", () => {
      for (const stream of wholeStreams(protocol).filter(({ parts }) => parts.length < 60)) {
        const random = seeded(stream.bytes.length);
        for (let round = 0; round < rounds; round++) {
          const told = continuer({ first: stream.parts, rest: stream.parts, anchor: "So it is", attempt: 2 });
          const events = told.map(({ data }) => written({ data: broken(data, random) }));
          const parts: ReadonlyArray<Part> = decode(protocol, [encode(events.join(""))]).parts;
          const splice = shownOf(protocol, parts);
          assert.isAtLeast(splice.response().characters, splice.response().run.length);
          let joined = false;
          const step = (text: string): SeamStep => (joined ? { type: "joined", text } : { type: "wait" });
          const close = () => step(random() < 0.5 ? "held" : "");
          const take = (text: string) => {
            joined ||= random() < 0.1;
            return step(random() < 0.8 ? text : "");
          };
          const gate = new TextGate({ cut: 3, take, close, stop: close });
          const attempt = splice.startContinuation(gate);
          for (const next of [...parts.map((part) => () => attempt.take(part)), attempt.end]) {
            const hadFailed = gate.fault !== undefined;
            const out = next();
            if (!joined || hadFailed) assert.isEmpty(out);
            for (const { json } of out) splice.recordSent(json);
          }
        }
      }
    });

    it("are of any JSON", () => {
      const splice = shownOf(protocol, []);
      for (const json of odd) splice.recordSent(json);
      assert.strictEqual(splice.response().run, "");
    });
  });

describe("events that never end a response", () => {
  const chunk = (delta: unknown, finish_reason: string | null = null) => ({
    choices: [{ index: 0, delta, finish_reason }],
  });

  it("are not kept without end behind a finish, and are forgotten in front of the seam", () => {
    const protocol = protocols.get("openai-chat");
    const quiet = Array.from({ length: 300 }, () => ({ choices: [], usage: null }));
    const first = [chunk({ content: "Hello wor" }, "stop")];
    const behind = [chunk({ content: "Hello world" }, "stop"), ...quiet, "[DONE]"];
    assert.strictEqual(played(protocol, { first, told: behind }).fault, "unwritable");
    const before = [
      ...quiet,
      chunk({ content: "Hello" }, "stop"),
      ...quiet,
      chunk({ content: " world" }),
      chunk({}, "stop"),
    ];
    assert.deepStrictEqual(played(protocol, { first, told: before }).events, [
      chunk({ content: "ld" }),
      chunk({}, "stop"),
    ]);
  });

  it("keep to the same bound in Gemini", () => {
    const protocol = protocols.get("google-gemini");
    const said = (text: string, more = {}) => ({
      candidates: [{ content: { parts: [{ text }], role: "model" }, ...more }],
    });
    const quiet = Array.from({ length: 300 }, () => ({ usageMetadata: { promptTokenCount: 1 } }));
    const told = [said("Hello world", { finishReason: "STOP" }), ...quiet];
    assert.strictEqual(played(protocol, { first: [said("Hello wor")], told }).fault, "unwritable");
    const before = [said("Hello", { finishReason: "STOP" }), ...quiet, said(" world")];
    assert.deepStrictEqual(played(protocol, { first: [said("Hello wor")], told: before }).events, [said("ld")]);
  });
});

describe("text that only the end of a response proves", () => {
  const chunk = (text: string, more: object = {}) => ({
    candidates: [{ content: { parts: [{ text }], role: "model" }, index: 0, ...more }],
  });
  const usage = { usageMetadata: { promptTokenCount: 1, candidatesTokenCount: 2 } };

  it("is written by Gemini although a chunk without candidates came before its finish", () => {
    const gemini = protocols.get("google-gemini");
    const partsOf = (...chunks: ReadonlyArray<object>): ReadonlyArray<Part> =>
      decode(gemini, [encode(chunks.map((it) => written({ data: it })).join(""))]).parts;
    const splice = shownOf(gemini, partsOf(chunk("High water")));
    const close = (): SeamStep => ({ type: "joined", text: " is at six." });
    const gate = new TextGate({ cut: 0, take: () => ({ type: "wait" }), close, stop: close });
    const attempt = splice.startContinuation(gate);
    const said = partsOf(chunk(" is at six."), usage, chunk("", { finishReason: "STOP" }));
    const events = [...said.flatMap((part) => attempt.take(part)), ...attempt.end()];
    assert.isUndefined(gate.fault);
    const texts = JSON.stringify(events).match(/"text":"[^"]+"/g);
    assert.deepStrictEqual(texts, ['"text":" is at six."']);
  });
});
