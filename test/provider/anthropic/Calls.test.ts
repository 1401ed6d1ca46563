import { assert, describe, it } from "@effect/vitest";
import { inputCharactersMax, openCallsMax } from "../../../src/provider/anthropic/Calls.ts";
import * as AnthropicMessages from "../../../src/provider/anthropic/Decode.ts";
import { event, last, player, ready, signals } from "../Play.ts";
import { args, close, open, start, stop, tool } from "./Frames.ts";

const play = player(AnthropicMessages.protocol);

describe("calls of an Anthropic stream", () => {
  it("a tool_use is ready at the end of its block and not before", () => {
    const played = play(start, tool(0, "read", "0"), args(0, '{"a":'), args(0, "1}"), close(0));
    assert.deepStrictEqual(signals(played), [
      { choice: 0, ordinal: 0, id: "0", tool: "read", executor: "runtime", phase: "input_started" },
      { choice: 0, ordinal: 0, id: "0", tool: "read", executor: "runtime", phase: "ready", input: '{"a":1}' },
    ]);
    assert.deepInclude(played.seen[2], { progress: "output", shows: "nothing", characters: 0 });
  });

  it("arguments given with the block are its input", () => {
    assert.deepStrictEqual(ready(play(tool(0, "read", "a", { a: 1 }), close(0))), [[0, '{"a":1}']]);
  });

  it("cut arguments are never ready, whatever the stream says at its end", () => {
    for (const reason of ["max_tokens", "refusal", "pause_turn", "model_context_window_exceeded", "stop_sequence"]) {
      for (const closing of [[], [close(0)]]) {
        const played = play(start, tool(0, "write"), args(0, '{"a":"b'), ...closing, stop(reason));
        assert.deepStrictEqual(ready(played), []);
        assert.isUndefined(last(played)?.failure, reason);
        assert.isTrue(last(played)?.terminal);
        assert.isTrue(played.end.complete, reason);
      }
    }
  });

  it("a broken call that the model says it finished is invalid tool input, with the marker seen", () => {
    for (const reason of ["tool_use", "end_turn"])
      for (const closing of [[], [close(0)]]) {
        const played = play(start, tool(0, "write"), args(0, '{"a":"b'), ...closing, stop(reason));
        assert.deepStrictEqual(ready(played), []);
        assert.isTrue(last(played)?.terminal);
        assert.deepStrictEqual(last(played)?.failure, {
          kind: "invalid_tool_input",
          in_band: true,
          code: "incomplete_call",
        });
        assert.isFalse(played.end.complete);
      }
  });

  it("a block that was never closed is ready with a marker of tool_use", () => {
    const played = play(start, tool(0, "read"), args(0, '{"a":1}'), stop("tool_use"));
    assert.deepStrictEqual(ready(played), [[0, '{"a":1}']]);
    assert.deepInclude(last(played), { terminal: true, progress: "output" });
    assert.isTrue(played.end.complete);
  });

  it("empty and repeated ids are calls of their own", () => {
    const begun = (id: string) => [tool(0, "a", id), args(0, "{}"), close(0), tool(0, "b", id), close(0)];
    for (const id of ["", "0", "same"])
      assert.deepStrictEqual(ready(play(...begun(id), stop("tool_use"))), [
        [0, "{}"],
        [1, "{}"],
      ]);
  });

  it("a call without argument text is ready only when the model says that it ended its calls", () => {
    const block = [start, tool(0, "now"), args(0, ""), close(0)];
    assert.deepStrictEqual(ready(play(...block)), []);
    assert.deepStrictEqual(ready(play(...block, stop("max_tokens"))), []);
    assert.deepStrictEqual(ready(play(...block, stop("tool_use"))), [[0, "{}"]]);
  });

  it("the same open block sent twice is one call, another one under its index is another", () => {
    assert.strictEqual(signals(play(tool(0, "a", "x"), tool(0, "a", "x"))).length, 1);
    assert.strictEqual(signals(play(tool(0, "a", ""), tool(0, "b", ""))).length, 2);
    const played = play(
      tool(0, "a", "x"),
      args(0, '{"n":1}'),
      tool(0, "b", "y"),
      args(0, "{}"),
      close(0),
      stop("tool_use"),
    );
    assert.deepStrictEqual(ready(played), [
      [1, "{}"],
      [0, '{"n":1}'],
    ]);
  });

  it("the executor of a call is read from its block, and an unknown block runs at the provider", () => {
    const rows = [
      [{ type: "tool_use", name: "web_search" }, "runtime", "web_search"],
      [{ type: "tool_use", name: "get", caller: { type: "code_execution_20250825" } }, "runtime", "get"],
      [{ type: "server_tool_use", name: "web_search" }, "provider", "web_search"],
      [{ type: "server_tool_use", name: "tool_search_tool_bm25" }, "provider", "tool_search_tool_bm25"],
      [{ type: "server_tool_use", name: "advisor" }, "provider", "advisor"],
      [{ type: "server_tool_use", name: "brand_new" }, "provider", "brand_new"],
      [{ type: "mcp_tool_use", name: "web_search", server_name: "s" }, "provider", "mcp.s.web_search"],
      [{ type: "robot_tool_use", name: "web_search" }, "provider", "robot_tool_use"],
    ] as const;
    for (const [block, executor, name] of rows)
      assert.deepInclude(signals(play(open(0, block)))[0], { executor, tool: name, phase: "input_started" });
  });

  it("a result settles its call, also before its block was closed", () => {
    const block = { type: "server_tool_use", id: "srv", name: "web_fetch" };
    const result = open(1, { type: "web_fetch_tool_result", tool_use_id: "srv", content: {} });
    const phases = (...frames: ReadonlyArray<unknown>) =>
      signals(play(...frames)).map((call) => [call.ordinal, call.phase]);
    assert.deepStrictEqual(phases(open(0, block), close(0), result), [
      [0, "input_started"],
      [0, "input_complete"],
      [0, "settled"],
    ]);
    assert.deepStrictEqual(phases(open(0, block), result), [
      [0, "input_started"],
      [0, "settled"],
    ]);
  });

  it("a result settles the call with its id, and of calls that share one the oldest", () => {
    const call = (index: number, id: string) => open(index, { type: "server_tool_use", id, name: "web_search" });
    const result = (id: string) => open(9, { type: "web_search_tool_result", tool_use_id: id });
    const settled = (...frames: ReadonlyArray<unknown>) =>
      signals(play(...frames)).flatMap((one) => (one.phase === "settled" ? [one.ordinal] : []));
    assert.deepStrictEqual(settled(call(0, "a"), call(1, "b"), result("a"), result("b")), [0, 1]);
    for (const id of ["", "same"])
      assert.deepStrictEqual(settled(call(0, id), close(0), call(1, id), close(1), result(id), result(id)), [0, 1]);
  });

  it("a result without a call, or of a runtime call, counts as a provider's call", () => {
    const result = open(1, { type: "bash_code_execution_tool_result", tool_use_id: "t", content: {} });
    assert.deepInclude(signals(play(result))[0], {
      tool: "bash_code_execution",
      executor: "provider",
      phase: "settled",
    });
    const played = play(tool(0, "bash", "t"), result, open(2, { type: "mcp_tool_result", tool_use_id: "u" }));
    assert.deepStrictEqual(
      signals(played).map((call) => [call.ordinal, call.executor, call.tool]),
      [
        [0, "runtime", "bash"],
        [1, "provider", "bash_code_execution"],
        [2, "provider", "mcp"],
      ],
    );
  });

  it("arguments of a block that was never opened are a provider's call of unknown effect", () => {
    assert.deepInclude(signals(play(start, args(3, '{"a":1}')))[0], {
      executor: "provider",
      tool: "lost_tool_use",
    });
  });

  it("arguments and calls past their limits are oversize, not memory", () => {
    const piece = "x".repeat(inputCharactersMax / 2);
    const long = play(tool(0, "a"), args(0, piece), args(0, piece), args(0, "x"));
    assert.deepInclude(last(long)?.failure, { kind: "protocol", reason: "oversize" });
    assert.isUndefined(long.seen[2]?.failure);
    const many = play(...Array.from({ length: openCallsMax + 1 }, (_, index) => tool(index, "a")));
    assert.deepInclude(last(many)?.failure, { kind: "protocol", reason: "oversize" });
    assert.isUndefined(many.seen[openCallsMax - 1]?.failure);
  });

  it("a step changes nothing of the state before it", () => {
    const before = AnthropicMessages.step(AnthropicMessages.initial(), event(tool(0, "a")))[0];
    const copy = structuredClone(before);
    AnthropicMessages.step(before, event(args(0, "{}")));
    AnthropicMessages.step(before, event(close(0)));
    assert.deepStrictEqual(before, copy);
  });
});
