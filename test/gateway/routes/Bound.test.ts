import { assert, describe, it } from "@effect/vitest";
import { valuesMax } from "../../../src/adapters/relay/form/CanonicalBody.ts";
import { marksMax, search } from "../../../src/gateway/routes/Bound.ts";
import { boundRows, toolRow } from "../../../src/gateway/routes/BoundRows.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { anthropic, block, boundBodies, chat, free, gemini, item, part, responses, said } from "./BoundBodies.ts";

describe("search", () => {
  for (const [field, protocol, body] of boundBodies)
    it(`finds ${field} in a request of ${protocol}: ${JSON.stringify(body).slice(0, 100)}`, () => {
      assert.strictEqual(search({ ...body }, protocol).bound, field);
    });

  it("has a case for every row of the table, in each protocol that the row names", () => {
    for (const { field, protocols } of [...boundRows, toolRow])
      for (const protocol of protocols)
        assert.isTrue(
          boundBodies.some(([of, at]) => of === field && at === protocol),
          `${field} ${protocol}`,
        );
  });

  it("finds no binding field in requests that any provider can answer", () => {
    const bodies: ReadonlyArray<readonly [ProtocolId, object]> = [
      ...(Object.entries(free) as ReadonlyArray<[ProtocolId, object]>), // the record's keys are protocols
      ["openai-chat", said({ tool_calls: [{ id: "c", function: { name: "f", arguments: '{"file_id":"x"}' } }] })],
      [
        "openai-chat",
        chat({ messages: [{ role: "user", content: [{ type: "file", file: { file_data: "data:" } }] }] }),
      ],
      ["openai-responses", item({ type: "reasoning", summary: [] })],
      ["openai-responses", responses({ tools: [{ type: "web_search" }, { type: "function", name: "container" }] })],
      ["anthropic-messages", block({ type: "tool_use", id: "t", name: "f", input: { file_id: "x", signature: "s" } })],
      ["google-gemini", part({ functionCall: { name: "f", args: { fileUri: "x" } } })],
      ["google-gemini", gemini({ tools: [{ googleSearch: {} }, { codeExecution: {} }] })],
      [
        "anthropic-messages",
        anthropic({
          tools: [
            {
              name: "sign",
              input_schema: {
                properties: { signature: { type: "string" }, file_id: {}, container: { type: "string" } },
              },
            },
          ],
        }),
      ],
    ];
    for (const [protocol, body] of bodies)
      assert.isUndefined(search({ ...body }, protocol).bound, JSON.stringify(body));
  });

  it("never treats the body of a client as a program's, whatever fields it has besides its input", () => {
    const input = [{ type: "reasoning", summary: [], encrypted_content: "gAAA" }];
    const body = { model: "m", store: false, type: "tool_use", name: "x", args: {}, input };
    assert.strictEqual(search(body, "openai-responses").bound, "encrypted_content");
  });

  it("treats a body as bound if it is deeper or has more parts than the search covers", () => {
    const deep = JSON.parse(`${'{"a":'.repeat(300)}1${"}".repeat(300)}`);
    assert.strictEqual(search({ ...free["openai-chat"], deep }, "openai-chat").bound, "size");
    const wide = { ...free["openai-chat"], wide: Array.from({ length: valuesMax }, () => ({})) };
    assert.strictEqual(search(wide, "openai-chat").bound, "size");
  });

  it("returns the newest marks that identify earlier responses in a history, up to a maximum", () => {
    const marked = search(
      { ...item({ type: "reasoning", encrypted_content: "gAAA" }), previous_response_id: "resp_1" },
      "openai-responses",
    );
    assert.sameMembers([...marked.marks], ["resp_1", "gAAA"]);
    const content = Array.from({ length: marksMax + 5 }, (_, n) => ({ type: "thinking", signature: `s${n}` }));
    const { marks } = search({ messages: [{ content }] }, "anthropic-messages");
    assert.strictEqual(marks.length, marksMax);
    assert.strictEqual(marks.at(-1), `s${marksMax + 4}`);
  });
});
