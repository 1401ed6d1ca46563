import { assert, describe, it } from "@effect/vitest";
import type { FinishReason, StreamPart } from "../../../src/adapters/ai-sdk/Parts.ts";
import { PartReader } from "../../../src/adapters/ai-sdk/Parts.ts";

const reader = () => new PartReader({ run_id: "run", attempt: 1 });

const usage = {
  inputTokens: { total: 3, noCache: undefined, cacheRead: undefined, cacheWrite: undefined },
  outputTokens: { total: Number.NaN, text: undefined, reasoning: undefined },
};

const finish = (unified: FinishReason["unified"], raw?: string): StreamPart => ({
  type: "finish",
  finishReason: { unified, raw },
  usage,
});

const observe = (part: StreamPart) => reader().read(part).observation;

describe("a finish part", () => {
  it("is the terminal marker where it repeats the provider's end", () => {
    for (const part of [
      finish("stop"),
      finish("tool-calls"),
      finish("length", "max_tokens"),
      finish("other", "compaction"),
    ]) {
      assert.isTrue(observe(part).terminal);
      assert.isUndefined(observe(part).failure);
    }
    assert.deepEqual(observe(finish("stop", "end_turn")).usage, { input_tokens: 3 });
  });

  it("is a cut where the provider package made it up", () => {
    for (const part of [finish("interrupted"), finish("other")]) {
      assert.isFalse(observe(part).terminal);
      assert.strictEqual(observe(part).failure?.kind, "truncated");
    }
  });

  it("is a failure where the provider broke off, and a broken call where it could not read one", () => {
    assert.strictEqual(observe(finish("error")).failure?.kind, "server_error");
    assert.strictEqual(observe(finish("other", "insufficient_system_resource")).failure?.kind, "overloaded");
    assert.isFalse(observe(finish("other", "insufficient_system_resource")).terminal);
    const broken = observe(finish("error", "MALFORMED_FUNCTION_CALL"));
    assert.isTrue(broken.terminal);
    assert.strictEqual(broken.failure?.kind, "invalid_tool_input");
  });
});

describe("an error part", () => {
  it("is what the provider's own error says, as an error or as it came", () => {
    const error = (thrown: unknown) => observe({ type: "error", error: thrown }).failure?.kind;
    assert.strictEqual(error({ type: "overloaded_error", message: "Overloaded" }), "overloaded");
    assert.strictEqual(error(new SyntaxError("Unexpected end of JSON input")), "protocol");
    const cut = Object.assign(new Error("Response stream ended without a finish reason."), {
      name: "AI_InvalidResponseDataError",
    });
    assert.strictEqual(error(cut), "truncated");
  });
});

describe("what is seen of an answer", () => {
  it("is text, reasoning and sources; an opened block is progress and not seen", () => {
    assert.strictEqual(observe({ type: "text-delta", id: "0", delta: "abc" }).characters, 3);
    assert.strictEqual(observe({ type: "text-delta", id: "0", delta: "" }).shows, "nothing");
    const opened = observe({ type: "reasoning-start", id: "0" });
    assert.deepEqual([opened.progress, opened.shows], ["reasoning", "nothing"]);
    assert.strictEqual(observe({ type: "reasoning-delta", id: "0", delta: "a" }).shows, "reasoning");
    assert.isTrue(observe({ type: "ping" }).keep_alive);
  });
});

describe("the calls of an attempt", () => {
  it("are counted in the order in which they began, also where every call has the same id", () => {
    const read = reader();
    const keys = [
      read.read({ type: "tool-input-start", id: "0", toolName: "a" }),
      read.read({ type: "tool-call", toolCallId: "0", toolName: "a", input: "{}" }),
      read.read({ type: "tool-call", toolCallId: "0", toolName: "b", input: "{}" }),
      read.read({ type: "tool-input-start", id: "0", toolName: "c" }),
      read.read({ type: "tool-input-end", id: "0" }),
      read.read({ type: "tool-call", toolCallId: "0", toolName: "c", input: "{}" }),
    ].map(({ observation }) => observation.calls.map(({ ordinal, phase }) => `${ordinal} ${phase}`).join());
    assert.deepEqual(keys, ["0 input_started", "0 ready", "1 ready", "2 input_started", "2 input_complete", "2 ready"]);
  });

  it("are ready for a caller only where a caller runs them", () => {
    const read = reader();
    const own = read.read({ type: "tool-call", toolCallId: "1", toolName: "bash", input: "{}" });
    assert.deepEqual(own.ready, [{ run_id: "run", attempt: 1, call: "0.0", id: "1" }]);
    const hosted = read.read({
      type: "tool-call",
      toolCallId: "2",
      toolName: "web",
      input: "{}",
      providerExecuted: true,
    });
    assert.deepEqual(hosted.ready, []);
    const result = read.read({ type: "tool-result", toolCallId: "2", toolName: "web", result: "found" });
    assert.deepEqual(
      result.observation.calls.map(({ executor, ordinal, phase }) => [executor, ordinal, phase]),
      [["provider", 1, "settled"]],
    );
  });
});
