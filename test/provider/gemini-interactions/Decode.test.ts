import { assert, describe, it } from "@effect/vitest";
import { protocol } from "../../../src/provider/gemini-interactions/Decode.ts";
import { player } from "../Play.ts";
import { suite } from "../ProtocolSuite.ts";

suite(protocol, {
  folder: new URL("../../fixtures/streams/google-interactions/", import.meta.url),
  files: {
    "thinking-text.sse": { end: "complete", text: 14, reasoning: 12, calls: [], finish: "completed" },
    "started-content.sse": { end: "complete", text: 38, reasoning: 10, finish: "completed" },
    "function-calls.sse": {
      end: "complete",
      calls: ["get_weather", "now"],
      inputs: [{ location: "San Francisco, CA" }, {}],
      finish: "requires_action",
    },
    "invalid-arguments.sse": { end: "invalid_tool_input", calls: ["edit"], inputs: [] },
    "incomplete-in-arguments.sse": { end: "complete", calls: ["edit"], inputs: [], finish: "incomplete" },
    "google-search.sse": { end: "complete", text: 10, calls: ["google_search"], finish: "completed" },
    "image.sse": { end: "complete", finish: "completed" },
    "failed.sse": { end: "server_error", text: 4 },
    "error.sse": { end: "server_error", text: 4 },
    "truncated.sse": { end: "truncated", text: 4 },
    "older-revision.sse": {
      end: "complete",
      text: 3,
      reasoning: 3,
      calls: ["get_weather"],
      inputs: [{ location: "Paris" }],
      finish: "requires_action",
    },
    "background.sse": { end: "complete", text: 6, reasoning: 4, finish: "completed" },
  },
  error: 'event: error\ndata: {"error":{"code":"internal","message":"Internal error"},"event_type":"error"}\n\n',
});

const play = player(protocol);
const completed = (status: string, more: object = {}) => ({
  event_type: "interaction.completed",
  interaction: { id: "i", status, ...more },
});

describe("events of an interaction", () => {
  it("does not accept the status of a failed, cancelled or running interaction as the marker", () => {
    for (const status of ["failed", "cancelled", "in_progress", "queued"]) {
      const { end, seen } = play(completed(status));
      assert.isFalse(seen[0]?.terminal, status);
      assert.isFalse(end.complete, status);
    }
    assert.strictEqual(play(completed("cancelled")).seen[0]?.failure?.kind, "cancelled");
  });

  it("accepts an unknown status of `interaction.completed` as the marker", () => {
    assert.strictEqual(play(completed("of_a_later_revision")).seen[0]?.finish, "of_a_later_revision");
    assert.isTrue(play({ event_type: "interaction.completed", interaction: {} }).end.complete);
  });

  it("counts thinking as output, and the use of tools as input", () => {
    const usage = {
      ...{ total_input_tokens: 5, total_tool_use_tokens: 2 },
      ...{ total_output_tokens: 3, total_thought_tokens: 4 },
    };
    assert.deepStrictEqual(play(completed("completed", { usage })).seen[0]?.usage, {
      input_tokens: 7,
      output_tokens: 7,
    });
  });

  it("settles the call of a tool of Google's by its id, and reports a tool on a server by its server", () => {
    const start = (index: number, step: object) => ({ event_type: "step.start", index, step });
    const { seen } = play(
      start(0, { type: "mcp_server_tool_call", id: "a", server_name: "files", name: "read" }),
      start(1, { type: "code_execution_call", id: "b" }),
      start(2, { type: "code_execution_result", call_id: "b" }),
      start(3, { type: "mcp_server_tool_result" }),
    );
    assert.deepStrictEqual(
      seen.flatMap(({ calls }) => calls.map(({ ordinal, phase, tool }) => [ordinal, phase, tool])),
      [
        [0, "input_started", "mcp.files.read"],
        [1, "input_started", "code_execution"],
        [1, "settled", "code_execution"],
        [0, "settled", "mcp.files.read"],
      ],
    );
  });

  it("fails a finish beside an error", () => {
    const { end, seen } = play({ ...completed("completed"), error: { code: "internal", message: "no" } });
    assert.isFalse(seen[0]?.terminal);
    assert.isFalse(end.complete);
  });
});
