import { assert, describe, it } from "@effect/vitest";
import { protocol } from "../../../src/provider/mistral-conversations/Decode.ts";
import { player } from "../Play.ts";
import { suite } from "../ProtocolSuite.ts";

suite(protocol, {
  folder: new URL("../../fixtures/streams/mistral-conversations/", import.meta.url),
  files: {
    "thinking-text.sse": { end: "complete", text: 16, reasoning: 13, calls: [], finish: "done" },
    "function-calls.sse": {
      end: "complete",
      calls: ["get_weather", "now"],
      inputs: [{ city: "Paris" }, {}],
      finish: "done",
    },
    "web-search.sse": { end: "complete", text: 6, calls: ["web_search"], finish: "done" },
    "image.sse": { end: "complete", calls: ["image_generation"], finish: "done" },
    "handoff.sse": { end: "complete", text: 6, finish: "done" },
    "invalid-arguments.sse": { end: "invalid_tool_input", calls: ["edit"], inputs: [] },
    "error.sse": { end: "server_error", text: 4 },
    "done-sentinel.sse": { end: "complete", text: 6, finish: "done" },
    "truncated.sse": { end: "truncated", text: 4 },
  },
  error:
    'event: conversation.response.error\ndata: {"type":"conversation.response.error","message":"Internal server error","code":500}\n\n',
});

const play = player(protocol);

describe("events of a conversation", () => {
  it("reads the status in an error event", () => {
    const failure = (code: number) =>
      play({ type: "conversation.response.error", message: "no", code }).seen[0]?.failure;
    assert.strictEqual(failure(429)?.kind, "rate_limited");
    assert.strictEqual(failure(500)?.kind, "server_error");
    assert.strictEqual(failure(400)?.kind, "rejected");
    assert.isTrue(failure(400)?.in_band);
  });

  it("settles a tool of Mistral's at its end, and keeps two calls of one name apart", () => {
    const started = (id: string) => ({ type: "tool.execution.started", id, name: "code_interpreter", arguments: "{}" });
    const { seen } = play(started("a"), started("b"), {
      type: "tool.execution.done",
      id: "b",
      name: "code_interpreter",
    });
    assert.deepStrictEqual(
      seen.flatMap(({ calls }) => calls.map(({ executor, ordinal, phase }) => [executor, ordinal, phase])),
      [
        ["provider", 0, "input_started"],
        ["provider", 1, "input_started"],
        ["provider", 1, "settled"],
      ],
    );
  });

  it("joins the pieces of interleaved calls by their entry", () => {
    const piece = (id: string, arguments_: string) => ({
      ...{ type: "function.call.delta", id, name: "f", tool_call_id: `t_${id}` },
      arguments: arguments_,
    });
    const done = { type: "conversation.response.done", usage: {} };
    const { seen } = play(piece("a", '{"x":'), piece("b", '{"y":'), piece("a", "1}"), piece("b", "2}"), done);
    assert.deepStrictEqual(
      seen.at(-1)?.calls.map(({ id, input }) => [id, input]),
      [
        ["t_a", '{"x":1}'],
        ["t_b", '{"y":2}'],
      ],
    );
  });
});
