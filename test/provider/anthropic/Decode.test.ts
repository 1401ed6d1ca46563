import { assert, describe, it } from "@effect/vitest";
import type { Observation } from "../../../src/domain/Observation.ts";
import * as AnthropicMessages from "../../../src/provider/anthropic/Decode.ts";
import { event, last, player, signals } from "../Play.ts";
import { suite } from "../ProtocolSuite.ts";
import { close, delta, error, open, start, stop, tool } from "./Frames.ts";

suite(AnthropicMessages.protocol, {
  folder: new URL("../../fixtures/streams/anthropic-messages/", import.meta.url),
  files: {
    "thinking-text.sse": { end: "complete", text: 38, reasoning: 26, calls: [], finish: "end_turn" },
    "tools.sse": {
      end: "complete",
      text: 22,
      calls: ["read_file", "list_branches"],
      inputs: [{ path: "notes.md" }, {}],
      finish: "tool_use",
    },
    "server-tools.sse": {
      end: "complete",
      text: 19,
      calls: ["web_search", "bash_code_execution", "mcp.tracker.create_ticket"],
      inputs: [],
      finish: "end_turn",
    },
    "max-tokens-in-arguments.sse": {
      end: "complete",
      calls: ["write_file"],
      inputs: [],
      finish: "max_tokens",
    },
    "pause-turn.sse": { end: "complete", calls: ["web_fetch"], finish: "pause_turn" },
    "refusal.sse": { end: "complete", text: 2, finish: "refusal" },
    "invalid-arguments.sse": { end: "invalid_tool_input", calls: ["write_file"], inputs: [], finish: "tool_use" },
    "overloaded.sse": { end: "overloaded", text: 11 },
  },
  error: 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n',
});

const play = player(AnthropicMessages.protocol);

describe("what one Anthropic event proves", () => {
  const rows: ReadonlyArray<readonly [string, unknown, Partial<Observation>]> = [
    ["message_start is lifecycle", start, { progress: "started", shows: "nothing", quiet: false }],
    ["a ping is a keep-alive", { type: "ping" }, { keep_alive: true, quiet: true }],
    [
      "an empty text block is lifecycle",
      open(0, { type: "text", text: "" }),
      { progress: "started", shows: "nothing" },
    ],
    ["a text block with text shows it", open(0, { type: "text", text: "Hi" }), { shows: "text", characters: 2 }],
    ["a text delta shows text", delta(0, { type: "text_delta", text: "Hi" }), { progress: "output", shows: "text" }],
    ["a thinking block is reasoning", open(0, { type: "thinking", thinking: "" }), { progress: "reasoning" }],
    ["a redacted block is reasoning", open(0, { type: "redacted_thinking", data: "x" }), { progress: "reasoning" }],
    ["a signature shows nothing", delta(0, { type: "signature_delta" }), { progress: "reasoning", shows: "nothing" }],
    ["a citation shows nothing", delta(0, { type: "citations_delta" }), { progress: "output", shows: "nothing" }],
    [
      "an upload is output",
      open(0, { type: "container_upload", file_id: "f" }),
      { progress: "output", shows: "nothing" },
    ],
    ["a compaction is output", open(0, { type: "compaction", content: "" }), { progress: "output", shows: "nothing" }],
    ["usage alone is quiet", stop(null, { output_tokens: 3 }), { quiet: true, terminal: false, progress: "started" }],
    ["a stop_reason is the marker", stop("end_turn"), { terminal: true, finish: "end_turn", progress: "started" }],
    ["an empty stop_reason is none", stop(""), { terminal: false }],
    ["message_stop alone is no marker", { type: "message_stop" }, { terminal: false }],
    ["an unknown event proves nothing", { type: "message_hint", hint: 1 }, { progress: "started", shows: "nothing" }],
    ["a number is no event", 7, { progress: "started", terminal: false }],
  ];
  for (const [name, frame, expected] of rows)
    it(name, () => {
      assert.deepInclude(last(play(frame)), expected);
    });

  it("damage is a damaged frame, and no marker counts after it", () => {
    const played = play(start, '{"type":"content_block_', stop("end_turn"));
    assert.deepStrictEqual(played.seen[1]?.failure, { kind: "protocol", reason: "damaged_frame" });
    assert.isFalse(last(played)?.terminal);
    assert.isFalse(played.end.complete);
  });

  it("an error without a type is an error, also as a bare event", () => {
    assert.isDefined(last(play(start, { error: { type: "api_error", message: "x" } }))?.failure);
    const [, part] = AnthropicMessages.step(AnthropicMessages.initial(), event({ message: "no" }, "error"));
    assert.isDefined(part.observation.failure);
    const [, bare] = AnthropicMessages.step(AnthropicMessages.initial(), event('"upstream"', "error"));
    assert.isTrue(bare.observation.failure?.in_band);
    assert.isUndefined(last(play(start, { type: "note", error: null }))?.failure);
  });
});

describe("the end of an Anthropic stream", () => {
  it("message_stop without a stop_reason is a truncated stream", () => {
    const played = play(start, open(0, { type: "text", text: "Hi" }), close(0), { type: "message_stop" });
    assert.deepStrictEqual(played.end, { complete: false, failure: { kind: "truncated" } });
  });

  it("after the marker nothing counts: no text, no call, no second marker; a late error is only named", () => {
    const played = play(
      start,
      stop("end_turn"),
      start,
      open(0, { type: "text", text: "Hi" }),
      tool(1, "rm"),
      error,
      stop("max_tokens"),
    );
    assert.deepStrictEqual(played.end, { complete: true });
    assert.deepStrictEqual(signals(played), []);
    assert.strictEqual(played.seen.filter((one) => one.terminal).length, 1);
    assert.isTrue(played.seen.slice(2).every((one) => one.shows === "nothing"));
    assert.strictEqual(played.seen[5]?.failure?.kind, "overloaded");
  });

  it("an error after whole content fails the stream, and the marker after it does not count", () => {
    const played = play(start, open(0, { type: "text", text: "All." }), close(0), error, stop("end_turn"));
    assert.deepInclude(played.seen[3]?.failure, { kind: "overloaded", in_band: true });
    assert.isFalse(last(played)?.terminal);
    assert.isFalse(played.end.complete);
  });

  it("two answers spliced together are damage, a repeated start before content is none", () => {
    const text = [open(0, { type: "text", text: "Hi" }), close(0)];
    assert.deepInclude(last(play(start, ...text, start))?.failure, { kind: "protocol", reason: "damaged_frame" });
    assert.isTrue(play(start, start, ...text, stop("end_turn")).end.complete);
  });

  it("a finish of error is no marker", () => {
    const played = play(start, stop("error"));
    assert.isFalse(last(played)?.terminal);
    assert.strictEqual(last(played)?.failure?.kind, "server_error");
    assert.isFalse(played.end.complete);
  });

  it("usage is a total that never shrinks, caches included", () => {
    const first = {
      type: "message_start",
      message: { usage: { input_tokens: 10, cache_read_input_tokens: 90, output_tokens: 1 } },
    };
    const played = play(
      first,
      stop(null, { output_tokens: 20 }),
      stop("end_turn", { input_tokens: 0, output_tokens: 25 }),
    );
    assert.deepStrictEqual(
      played.seen.map((one) => one.usage),
      [
        { input_tokens: 100, output_tokens: 1 },
        { input_tokens: 100, output_tokens: 20 },
        { input_tokens: 100, output_tokens: 25 },
      ],
    );
  });
});
