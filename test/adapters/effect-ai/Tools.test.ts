import { assert, describe, it } from "@effect/vitest";
import { Tool } from "effect/ai";
import { EffectAi } from "../../../src/adapters/effect-ai/index.ts";
import { boundaries, effectOf } from "../../../src/adapters/effect-ai/Tools.ts";

const plain = Tool.make("t");
const search = Tool.providerDefined({
  id: "openai.web_search",
  customName: "OpenAiWebSearch",
  providerName: "web_search",
})();
const mcp = Tool.providerDefined({ id: "openai.mcp", customName: "OpenAiMcp", providerName: "mcp" })();
const bash = Tool.providerDefined({
  id: "anthropic.bash_20250124",
  customName: "AnthropicBash",
  providerName: "bash",
  requiresHandler: true,
})({});

describe("The effect of a tool", () => {
  it("is unknown where it is not declared", () => assert.strictEqual(effectOf(plain), "unknown"));

  it("is what its annotation declares, also against the annotations of effect/ai", () => {
    assert.strictEqual(effectOf(plain.annotate(EffectAi.ToolEffect, "read_only")), "read_only");
    const both = plain.annotate(Tool.Readonly, true).annotate(EffectAi.ToolEffect, "mutating");
    assert.strictEqual(effectOf(both), "mutating");
  });

  it("is unknown where the annotation is no effect", () => {
    const odd = plain.annotate(EffectAi.ToolEffect, "harmless");
    assert.strictEqual(effectOf(odd), "unknown");
  });

  it("is read by the annotations of effect/ai: an idempotent tool still changes something", () => {
    assert.strictEqual(effectOf(plain.annotate(Tool.Readonly, true)), "read_only");
    assert.strictEqual(effectOf(plain.annotate(Tool.Readonly, false)), "unknown");
    assert.strictEqual(effectOf(plain.annotate(Tool.Destructive, false)), "mutating");
    assert.strictEqual(effectOf(plain.annotate(Tool.Destructive, true)), "mutating");
    assert.strictEqual(effectOf(plain.annotate(Tool.Idempotent, true)), "mutating");
  });

  it("of a hosted tool stands in the table, by the name on the wire", () => {
    assert.deepStrictEqual(boundaries([search, mcp, bash], undefined), [
      { name: "web_search", executor: "provider", effect: "read_only" },
      { name: "mcp", executor: "provider", effect: "unknown" },
      { name: "bash", executor: "runtime", effect: "unknown" },
    ]);
  });
});
