/**
 * Who is given a prefill: by origin, model and thinking, by the table of the package and by rules of the caller's own.
 */
import { assert, describe, it } from "@effect/vitest";
import { Schema } from "effect";
import * as Prefills from "../../../src/provider/seam/Prefills.ts";

const anthropic = "https://api.anthropic.com/v1/messages";
const google = (model: string) =>
  `https://generativelanguage.googleapis.com/v1beta/models/${model}:streamGenerateContent?alt=sse`;
const beta = "https://api.deepseek.com/beta/chat/completions";
const qwen = "https://dashscope-intl.aliyuncs.com/compatible-mode/v1/chat/completions";

type Row = readonly [url: string, model: string, body: object, form: string | undefined, echo?: boolean];

const off = { generationConfig: { thinkingConfig: { thinkingBudget: 0 } } };

const rows: ReadonlyArray<Row> = [
  [anthropic, "claude-haiku-4-5-20251001", {}, "trailing"],
  [anthropic, "claude-sonnet-4-5", { thinking: { type: "disabled" } }, "trailing"],
  [anthropic, "claude-sonnet-4-5", { thinking: { type: "enabled", budget_tokens: 1024 } }, undefined],
  [anthropic, "claude-sonnet-4-5", { thinking: { type: "adaptive" } }, undefined],
  [anthropic, "claude-sonnet-4-20250514", {}, "trailing"],
  [anthropic, "claude-opus-4-6", {}, undefined],
  [anthropic, "claude-sonnet-5-1", {}, undefined],
  ["https://api.openai.com/v1/chat/completions", "gpt-4.1", {}, undefined],
  ["https://openrouter.ai/api/v1/chat/completions", "anthropic/claude-haiku-4.5", {}, undefined],
  ["https://unknown.example/v1/chat/completions", "claude-haiku-4-5", {}, undefined],
  ["not an address", "claude-haiku-4-5", {}, undefined],
  [anthropic, "", {}, undefined],
  [google("gemini-2.0-flash"), "gemini-2.0-flash", {}, "trailing"],
  [google("gemini-2.5-flash"), "gemini-2.5-flash", {}, undefined],
  [google("gemini-2.5-flash"), "gemini-2.5-flash", off, "trailing"],
  [google("gemini-2.5-flash"), "gemini-2.5-flash", { request: off }, "trailing"],
  [
    google("gemini-3.5-flash"),
    "gemini-3.5-flash",
    { generation_config: { thinking_config: { thinking_level: "MINIMAL" } } },
    "trailing",
  ],
  [google("gemini-3.5-flash-lite"), "gemini-3.5-flash-lite", off, undefined],
  [google("gemini-3.6-flash"), "gemini-3.6-flash", off, undefined],
  [beta, "deepseek-chat", {}, "prefix"],
  [beta, "deepseek-chat", { thinking: { type: "enabled" } }, undefined],
  [beta, "deepseek-v4", {}, undefined],
  [beta, "deepseek-v4", { thinking: { type: "disabled" } }, "prefix"],
  [beta, "deepseek-reasoner", {}, undefined],
  ["https://api.deepseek.com/v1/chat/completions", "deepseek-chat", {}, undefined],
  ["https://api.mistral.ai/v1/chat/completions", "mistral-small-latest", {}, "prefix", true],
  ["https://api.mistral.ai/v1/chat/completions", "magistral-medium", {}, undefined],
  [qwen, "qwen3.7-max", {}, undefined],
  [qwen, "qwen3.7-max", { enable_thinking: true }, undefined],
  [qwen, "qwen3.7-max", { enable_thinking: false }, "partial"],
  ["https://api.moonshot.ai/v1/chat/completions", "moonshot-v1-8k", {}, "partial"],
  ["https://api.moonshot.ai/v1/chat/completions", "kimi-k2.6", {}, undefined],
];

const given = ([url, model, body]: Row, rules?: ReadonlyArray<Prefills.PrefillRule>) =>
  Prefills.prefillOf({ url, model, body: { ...body } }, rules);

describe("A prefill is given where it is declared", () => {
  for (const row of rows) {
    const [url, model, body, form, echo = false] = row;
    it(`${model} at ${new URL(URL.canParse(url) ? url : "none:").host} with ${JSON.stringify(body)}: ${form ?? "the anchor"}`, () => {
      assert.deepStrictEqual(given(row), form === undefined ? undefined : { form, echo });
    });
  }

  const local: Prefills.PrefillRule = {
    origin: "http://localhost:8000",
    model: "*",
    form: "continue_final_message",
    thinking: "never",
  };

  it("a rule of the caller's own stands before the table, and declares what the table does not know", () => {
    const vllm: Row = ["http://localhost:8000/v1/chat/completions", "org/model", { enable_thinking: true }, undefined];
    assert.deepStrictEqual(given(vllm, [local]), { form: "continue_final_message", echo: false });
    assert.isUndefined(given(["http://localhost:8001/v1/chat/completions", "org/model", {}, undefined], [local]));
    const none: Prefills.PrefillRule = { origin: "https://api.anthropic.com", model: "claude-haiku-*", form: "none" };
    assert.isUndefined(given([anthropic, "claude-haiku-4-5", {}, undefined], [none]));
    assert.isDefined(given([anthropic, "claude-sonnet-4-5", {}, undefined], [none]));
  });

  it("no path passes for a host", () => {
    const rule: Prefills.PrefillRule = { origin: "https://*.good.example/v1", model: "*", form: "trailing" };
    const at = (url: string) => given([url, "m", {}, undefined], [rule]);
    assert.isDefined(at("https://eu.good.example/v1/chat/completions"));
    assert.isUndefined(at("https://eu.good.example/v2/chat/completions"));
    assert.isUndefined(at("https://evil.example/eu.good.example/v1"));
    assert.isUndefined(at("https://evil.example/.good.example/v1/chat"));
  });

  it("a rule is configuration", () => {
    const decoded = Schema.decodeUnknownSync(Prefills.PrefillRule)({ origin: "http://x", model: "*", form: "none" });
    assert.strictEqual(decoded.form, "none");
    assert.throws(() =>
      Schema.decodeUnknownSync(Prefills.PrefillRule)({ origin: "http://x", model: "*", form: "other" }),
    );
    assert.throws(() => Schema.decodeUnknownSync(Prefills.PrefillRule)({ origin: "", model: "*", form: "none" }));
  });

  it("a refusal is remembered by origin and model, and the oldest is forgotten", () => {
    const refused = new Prefills.RefusedPrefills();
    const request = (model: string, url = anthropic) => ({ url, model, body: {} });
    refused.add(request("m"));
    assert.isTrue(refused.has(request("m", "https://api.anthropic.com/other")));
    assert.isFalse(refused.has(request("n")));
    assert.isFalse(refused.has(request("m", "https://other.example")));
    for (let n = 0; n < Prefills.refusedPrefillsMax - 1; n += 1) refused.add(request(`m${n}`));
    assert.isTrue(refused.has(request("m")));
    refused.add(request("one more"));
    assert.isFalse(refused.has(request("m")));
  });

  it("every row of the table names its sources", () => {
    for (const { models, note, origins, provider, sources } of Prefills.declared) {
      assert.isNotEmpty(sources, provider);
      assert.isNotEmpty(note, provider);
      assert.isNotEmpty(models, provider);
      for (const origin of origins) assert.match(origin, /^https:\/\/[^/]+(?:\/[^/]+)*$/);
    }
  });
});
