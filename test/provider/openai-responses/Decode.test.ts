import { assert, describe, it } from "@effect/vitest";
import type { Observation } from "../../../src/domain/Observation.ts";
import * as OpenAiResponses from "../../../src/provider/openai-responses/Decode.ts";
import { event, last, phases, player, signals } from "../Play.ts";
import { suite } from "../ProtocolSuite.ts";
import { added, completed, created, done, error, fn, incomplete, message, text } from "./Frames.ts";

suite(OpenAiResponses.protocol, {
  folder: new URL("../../fixtures/streams/openai-responses/", import.meta.url),
  files: {
    "reasoning-text.sse": { end: "complete", text: 24, reasoning: 22, calls: [], finish: "completed" },
    "functions.sse": {
      end: "complete",
      text: 0,
      reasoning: 12,
      calls: ["read_file", "list_branches"],
      inputs: [{ path: "notes.md" }, {}],
      finish: "completed",
    },
    "hosted-tools.sse": {
      end: "complete",
      text: 19,
      calls: ["web_search", "code_interpreter", "mcp.tracker.create_ticket", "image_generation", "file_search"],
      inputs: [],
    },
    "shell-custom.sse": { end: "complete", calls: ["shell", "run_sql"], finish: "completed" },
    "incomplete-arguments.sse": {
      end: "complete",
      text: 8,
      calls: ["write_file"],
      inputs: [],
      finish: "max_output_tokens",
    },
    "refusal.sse": { end: "complete", text: 24 },
    "invalid-arguments.sse": { end: "invalid_tool_input", calls: ["write_file"], inputs: [], finish: "completed" },
    "quota.sse": { end: "rejected" },
    "error-then-failed.sse": { end: "rejected" },
    "too-large.sse": { end: "rejected" },
  },
  error:
    'event: error\ndata: {"type":"error","sequence_number":9,"error":{"type":"server_error","code":"server_error","message":"x"}}\n\n',
});

const play = player(OpenAiResponses.protocol);

describe("what one Responses event proves", () => {
  const rows: ReadonlyArray<readonly [string, unknown, Partial<Observation>]> = [
    ["response.created is lifecycle", created, { progress: "started", shows: "nothing", quiet: false }],
    [
      "response.queued is lifecycle",
      { type: "response.queued", response: {} },
      { progress: "started", terminal: false },
    ],
    ["an empty message item is lifecycle", added(0, message("")), { progress: "started", shows: "nothing" }],
    ["a reasoning item is reasoning", added(0, { type: "reasoning", summary: [] }), { progress: "reasoning" }],
    ["a text delta shows text", text(0, "Hi"), { progress: "output", shows: "text", characters: 2 }],
    ["a refusal shows text", { type: "response.refusal.delta", delta: "No" }, { shows: "text", characters: 2 }],
    [
      "raw reasoning is reasoning",
      { type: "response.reasoning_text.delta", delta: "Hm" },
      { shows: "reasoning", characters: 2 },
    ],
    ["a summary is reasoning", { type: "response.reasoning_summary_text.delta", delta: "Hm" }, { shows: "reasoning" }],
    ["audio counts as text", { type: "response.audio.delta", delta: "UklG" }, { shows: "text", characters: 0 }],
    [
      "a transcript is text",
      { type: "response.audio.transcript.delta", delta: "Hi" },
      { shows: "text", characters: 2 },
    ],
    [
      "a compaction is output",
      added(0, { type: "compaction", encrypted_content: "x" }),
      { progress: "output", shows: "nothing" },
    ],
    [
      "a list of MCP tools is output",
      done(0, { type: "mcp_list_tools", tools: [] }),
      { progress: "output", calls: [] },
    ],
    [
      "an unknown event proves nothing",
      { type: "response.hint", delta: "Hi" },
      { progress: "started", shows: "nothing" },
    ],
    ["a sentinel is no marker", "[DONE]", { terminal: false, progress: "started" }],
    [
      "an annotation shows nothing",
      { type: "response.output_text.annotation.added" },
      { progress: "output", shows: "nothing" },
    ],
    ["a ping of a gateway is a keep-alive", { type: "ping" }, { keep_alive: true }],
    ["a keepalive is a keep-alive", { type: "keepalive", sequence_number: 3 }, { keep_alive: true }],
    ["a list is no event", [1], { progress: "started", terminal: false }],
    ["completed is the marker", completed(), { terminal: true, finish: "completed", progress: "started" }],
    ["a filter is a marker", incomplete("content_filter"), { terminal: true, finish: "content_filter" }],
    [
      "incomplete in a completed event keeps its reason",
      { type: "response.completed", response: incomplete("max_output_tokens").response },
      { terminal: true, finish: "max_output_tokens" },
    ],
  ];
  for (const [name, frame, expected] of rows)
    it(name, () => {
      assert.deepInclude(last(play(frame)), expected);
    });

  it("usage comes with the marker", () => {
    const played = play(completed({ usage: { input_tokens: 9, output_tokens: 3 } }));
    assert.deepStrictEqual(last(played)?.usage, { input_tokens: 9, output_tokens: 3 });
  });

  it("a whole text shows something only where no delta did", () => {
    const whole = { type: "response.output_text.done", output_index: 0, text: "Hi" };
    const shown = (...frames: ReadonlyArray<unknown>) => play(...frames).seen.map((one) => one.characters);
    assert.deepStrictEqual(
      shown(text(0, "Hi"), whole, done(0, message("Hi")), completed({ output: [message("Hi")] })),
      [2, 0, 0, 0],
    );
    assert.deepStrictEqual(shown(whole, done(0, message("Hi"))), [2, 0]);
    assert.deepStrictEqual(shown(done(0, message("Hi")), completed({ output: [message("Hi")] })), [2, 0]);
    assert.deepStrictEqual(shown(created, completed({ output: [message("Hi")] })), [0, 2]);
  });
});

describe("the end of a Responses stream", () => {
  it("a clean end without a marker is truncated, also after [DONE] and whole items", () => {
    const played = play(created, done(0, message("Hi")), "[DONE]");
    assert.deepStrictEqual(played.end, { complete: false, failure: { kind: "truncated" } });
  });

  it("failed, cancelled, an error and a final response with an error are no markers, nor is what follows", () => {
    const quota = { code: "insufficient_quota", message: "x" };
    const rows = [
      [{ type: "response.failed", response: { status: "failed", error: quota } }, "rejected"],
      [{ type: "response.failed", response: { status: "failed", error: null } }, "server_error"],
      [{ type: "response.failed" }, "server_error"],
      [{ type: "response.cancelled", response: { status: "cancelled" } }, "cancelled"],
      [error, "server_error"],
      [{ type: "response.error", error: { code: "rate_limit_exceeded", message: "x" } }, "rate_limited"],
      [{ error: { code: 502, message: "x" } }, "server_error"],
      [completed({ error: quota }), "rejected"],
      [completed({ status: "failed" }), "server_error"],
      [completed({ status: "cancelled" }), "cancelled"],
    ] as const;
    for (const [frame, kind] of rows) {
      const played = play(created, text(0, "All."), frame, completed(), "[DONE]");
      assert.strictEqual(played.seen[2]?.failure?.kind, kind, JSON.stringify(frame));
      assert.isTrue(played.seen[2]?.failure?.in_band);
      assert.isFalse(played.seen.some((one) => one.terminal));
      assert.isFalse(played.end.complete);
    }
  });

  it("an error of a hosted MCP server is its call's, not the stream's", () => {
    const failed = { type: "response.mcp_call.failed", output_index: 0, error: { message: "no" } };
    const played = play(added(0, { type: "mcp_call", name: "t", server_label: "s" }), failed, completed());
    assert.isUndefined(played.seen[1]?.failure);
    assert.deepStrictEqual(phases(played), ["0 input_started", "0 settled"]);
    assert.isTrue(played.end.complete);
  });

  it("an event that is named an error is one, whatever its data", () => {
    for (const data of ['"upstream"', '{"message":"upstream"}', "[1]"]) {
      const [state, part] = OpenAiResponses.step(OpenAiResponses.initial(), event(data, "error"));
      assert.isTrue(part.observation.failure?.in_band, data);
      assert.isFalse(OpenAiResponses.halt(state).complete);
    }
    const [, ping] = OpenAiResponses.step(OpenAiResponses.initial(), event('{"cost":"0"}', "ping"));
    assert.isTrue(ping.observation.keep_alive);
  });

  it("after the marker nothing counts; a late error is only named", () => {
    const played = play(completed(), created, text(0, "x"), done(0, fn("a", "{}")), error, completed());
    assert.deepStrictEqual(played.end, { complete: true });
    assert.deepStrictEqual(signals(played), []);
    assert.strictEqual(played.seen.filter((one) => one.terminal).length, 1);
    assert.isTrue(played.seen.every((one) => one.shows === "nothing"));
    assert.isDefined(played.seen[4]?.failure);
  });

  it("two answers spliced together are damage, a repeated start before output is none", () => {
    assert.deepInclude(last(play(created, text(0, "Hi"), created))?.failure, { reason: "damaged_frame" });
    assert.isTrue(play(created, created, text(0, "Hi"), completed()).end.complete);
  });

  it("damage before the marker is a damaged frame, after it nothing", () => {
    assert.deepStrictEqual(last(play(created, '{"type":'))?.failure, {
      kind: "protocol",
      reason: "damaged_frame",
    });
    assert.isUndefined(last(play(completed(), '{"type":'))?.failure);
  });
});
