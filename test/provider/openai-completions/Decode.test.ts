import { assert, describe, it } from "@effect/vitest";
import { protocol } from "../../../src/provider/openai-completions/Decode.ts";
import { openAiCompletions } from "../../../src/provider/openai-completions/Protocol.ts";
import { player } from "../Play.ts";
import { suite } from "../ProtocolSuite.ts";

suite(protocol, {
  folder: new URL("../../fixtures/streams/openai-completions/", import.meta.url),
  files: {
    "text.sse": { end: "complete", text: 13, finish: "stop" },
    "empty.sse": { end: "complete", text: 0 },
    "fim.sse": { end: "complete", text: 5, finish: "stop" },
    "infill.sse": { end: "complete", text: 5, finish: "stop" },
    "infill-limit.sse": { end: "complete", text: 4, finish: "length" },
    "infill-error.sse": { end: "server_error", text: 4 },
    "truncated.sse": { end: "truncated", text: 8 },
  },
  error: 'data: {"error":{"message":"no","type":"server_error","code":500}}\n\n',
});

const play = player(protocol);
const chunk = (text: string, finish_reason: string | null = null) => ({ choices: [{ index: 0, text, finish_reason }] });

describe("text completions", () => {
  it("count their terminal marker as output, because nothing may belong into a gap", () => {
    const { seen } = play(chunk("", "stop"), "[DONE]");
    assert.strictEqual(seen.at(-1)?.progress, "output");
    assert.strictEqual(play({ content: "", stop: true, stop_type: "eos" }).seen[0]?.progress, "output");
  });

  it("reads an event of llama.cpp, keeps its JSON, and takes the flag of an old server for a limit", () => {
    const { parts, seen } = play(
      { content: "a", stop: false },
      { content: "b", stop: true, stopped_limit: true, tokens_evaluated: 3, tokens_predicted: 2 },
    );
    assert.deepStrictEqual(parts[0]?.json, { content: "a", stop: false });
    assert.deepInclude(seen[0], { shows: "text", characters: 1, terminal: false });
    assert.deepStrictEqual(seen.at(-1)?.usage, { input_tokens: 3, output_tokens: 2 });
    assert.strictEqual(seen.at(-1)?.finish, "length");
  });

  it("is claimed at the paths of OpenAI, Azure, Mistral and llama.cpp, and never at that of a chat", () => {
    const { address } = openAiCompletions;
    const model = (path: string) => address.claim({ path, query: new URLSearchParams(), has: () => false })?.model;
    for (const path of ["/v1/completions", "/v1/fim/completions", "/infill", "/completion"])
      assert.strictEqual(model(path), "", path);
    assert.strictEqual(model("/openai/deployments/d/completions"), "d");
    assert.isUndefined(model("/v1/chat/completions"));
    assert.isTrue(address.isRequestBody({ input_prefix: "a" }));
    assert.isFalse(address.isRequestBody({ messages: [] }));
    assert.strictEqual(address.choices({ prompt: ["a", "b"], n: 2 }), 4);
    assert.strictEqual(address.outputTokens?.({ n_predict: 9 }), 9);
  });

  it("has a no-op in the form of the last event", () => {
    const data = (last?: object) => openAiCompletions.noOp(last as never, { id: "gw_1", model: "m" }).data;
    assert.deepInclude(data(), { object: "text_completion", id: "gw_1" });
    assert.deepStrictEqual(data({ content: "a", stop: false }), { content: "", stop: false });
    assert.deepInclude(data({ id: "x", choices: [{ delta: { content: "a" } }] }), { object: "chat.completion.chunk" });
  });
});
