import { assert, describe, it } from "@effect/vitest";
import * as Observation from "../../../src/domain/Observation.ts";
import * as AnySse from "../../../src/provider/stream/AnySse.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

const decode = (rules: AnySse.Rules, text: string) => {
  const decoder = Decoder.make(AnySse.protocol(rules));
  const parts = [...decoder.push(bytes(text))];
  const { end, parts: late } = decoder.end();
  return { parts: [...parts, ...late], end };
};

describe("AnySse", () => {
  it("is never complete where no rule says when", () => {
    assert.deepStrictEqual(decode({}, "data: a\n\ndata: [DONE]\n\n").end, {
      complete: false,
      failure: { kind: "truncated" },
    });
  });

  it("is complete at the event that the caller names, whatever follows it", () => {
    const rules: AnySse.Rules = { terminal: ({ event }) => event === "end" };
    const { end, parts } = decode(rules, "data: a\n\nevent: end\ndata: x\n\ndata: after\n\n");
    assert.deepStrictEqual(end, { complete: true });
    assert.deepStrictEqual(
      parts.map((part) => part.observation.terminal),
      [false, true, false],
    );
  });

  it("is complete at a clean end only where the caller says so, and never inside an event", () => {
    const rules: AnySse.Rules = { cleanEnd: true };
    const { end, parts } = decode(rules, "data: a\n\n: ping\n\n");
    assert.deepStrictEqual(end, { complete: true });
    assert.isTrue(parts.every((part) => part.observation.terminal_at_end === true || part.event.event === "comment"));
    assert.isFalse(decode(rules, "data: a\n\nevent: b\n").end.complete);
  });

  it("gives every event with its data as text that the caller sees, and its JSON where it is one", () => {
    const { parts } = decode({}, 'id: 7\nevent: x\ndata: {"a":1}\n\ndata: plain words\n\n');
    assert.deepStrictEqual(
      parts.map((part) => [part.protocol, part.json, AnySse.observe(part).shows, AnySse.cursor(part)]),
      [
        ["sse", { a: 1 }, "text", "7"],
        ["sse", undefined, "text", "7"],
      ],
    );
  });

  it("never takes an event that carries an error for the last one", () => {
    const rules: AnySse.Rules = {
      terminal: () => true,
      observe: () => Observation.failed({ kind: "server_error" }),
    };
    const { end, parts } = decode(rules, "data: a\n\n");
    assert.deepStrictEqual(end, { complete: false, failure: { kind: "server_error" } });
    assert.isFalse(parts[0]?.observation.terminal);
  });

  it("knows the response of a JSON-RPC request, also inside a batch, and no other message", () => {
    const rules = AnySse.jsonRpc(1);
    const complete = (json: unknown) => decode(rules, `data: ${JSON.stringify(json)}\n\n`).end.complete;
    assert.isTrue(complete({ id: 1, result: null }));
    assert.isTrue(complete({ id: 1, error: { code: -1 } }));
    assert.isTrue(complete([{ method: "n" }, { id: 1, result: {} }]));
    for (const other of [
      { id: "1", result: {} },
      { id: 1, method: "sampling/createMessage" },
      { id: 2, result: {} },
      "1",
      null,
    ])
      assert.isFalse(complete(other), JSON.stringify(other));
  });
});
