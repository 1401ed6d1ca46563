import { assert, describe, it } from "@effect/vitest";
import { protocol } from "../../../src/provider/cohere/Decode.ts";
import { player } from "../Play.ts";
import { suite } from "../ProtocolSuite.ts";

suite(protocol, {
  folder: new URL("../../fixtures/streams/cohere-chat/", import.meta.url),
  files: {
    "thinking-text.sse": { end: "complete", text: 10, reasoning: 11, calls: [], finish: "COMPLETE" },
    "tool-calls.sse": {
      end: "complete",
      reasoning: 12,
      calls: ["get_weather", "get_weather"],
      inputs: [{ location: "Madrid" }, { location: "Brasília" }],
      finish: "TOOL_CALL",
    },
    "citations.sse": { end: "complete", text: 11, finish: "COMPLETE" },
    "max-tokens-in-arguments.sse": { end: "complete", calls: ["edit"], inputs: [], finish: "MAX_TOKENS" },
    "invalid-arguments.sse": { end: "invalid_tool_input", calls: ["edit"], inputs: [] },
    "error-finish.sse": { end: "server_error", text: 4 },
    "truncated.sse": { end: "truncated", text: 4 },
  },
  error: 'event: error\ndata: {"type":"error","message":"internal server error"}\n\n',
});

const play = player(protocol);
const end = (finish_reason: string, more: object = {}) => ({ type: "message-end", delta: { finish_reason, ...more } });

describe("events of Cohere", () => {
  it("does not accept the finish of an aborted server as the marker", () => {
    for (const last of [end("ERROR"), end("TIMEOUT"), end("COMPLETE", { error: "no" })]) {
      const { end: ended, seen } = play(last);
      assert.isFalse(seen[0]?.terminal);
      assert.isTrue(seen[0]?.failure?.in_band);
      assert.isFalse(ended.complete);
    }
  });

  it("reads a bare message as an error, and an event without a reason not as an end", () => {
    assert.isTrue(play({ message: "invalid api token" }).seen[0]?.failure?.in_band);
    assert.strictEqual(play({ type: "message-end", delta: {} }).end.complete, false);
  });

  it("gives a tool without parameters the arguments {}", () => {
    const call = { id: "a", function: { name: "now", arguments: "" } };
    const { seen } = play(
      { type: "tool-call-start", index: 0, delta: { message: { tool_calls: call } } },
      { type: "tool-call-end", index: 0 },
      end("TOOL_CALL"),
    );
    assert.deepStrictEqual(
      seen[1]?.calls.map(({ input, phase }) => [phase, input]),
      [["ready", "{}"]],
    );
    assert.isTrue(seen[2]?.terminal);
  });

  it("says that a block of thoughts has opened, and nothing of an empty plan or text", () => {
    const { seen } = play(
      { type: "content-start", index: 0, delta: { message: { content: { type: "thinking", thinking: "" } } } },
      { type: "tool-plan-delta", delta: { message: { tool_plan: "" } } },
      { type: "content-start", index: 1, delta: { message: { content: { type: "text", text: "" } } } },
    );
    assert.deepStrictEqual(
      seen.map(({ progress }) => progress),
      ["reasoning", "started", "started"],
    );
  });
});
