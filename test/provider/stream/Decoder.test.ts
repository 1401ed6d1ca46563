import { assert, describe, it } from "@effect/vitest";
import * as Gemini from "../../../src/provider/gemini/Decode.ts";
import * as OpenAiChat from "../../../src/provider/openai-chat/Decode.ts";
import * as OpenAiResponses from "../../../src/provider/openai-responses/Decode.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import { encode, endOf } from "../Decoded.ts";

const text = (content: string, finish: string | null = null): string =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content }, finish_reason: finish }] })}\n\n`;

const make = (options?: Decoder.Options) => Decoder.make(OpenAiChat.protocol, options);

describe("Decoder", () => {
  it("gives the parts before a failure in the same chunk first, then nothing more", () => {
    const decoder = make();
    const parts = decoder.push(encode(`${text("a")}${text("b")}data: {"cut\n\n${text("c", "stop")}`));
    assert.deepStrictEqual(
      parts.map((part) => part.observation.characters),
      [1, 1, 0],
    );
    assert.deepStrictEqual(decoder.failure, { kind: "protocol", reason: "damaged_frame" });
    assert.strictEqual(decoder.push(encode(text("d", "stop"))).length, 0);
    const last = decoder.end();
    assert.strictEqual(last.parts.length, 0);
    assert.deepStrictEqual(last.end, { complete: false, failure: { kind: "protocol", reason: "damaged_frame" } });
    assert.deepStrictEqual(decoder.end().end, last.end, "the answer stays");
  });

  it("gives what a provider says behind its error, which proves nothing but usage", () => {
    const decoder = make();
    const error = 'data: {"error":{"message":"no","type":"server_error"}}\n\n';
    const usage = 'data: {"choices":[],"usage":{"prompt_tokens":3}}\n\n';
    const parts = decoder.push(encode(`${text("a")}${error}${text("b", "stop")}${usage}data: [DONE]\n\n`));
    assert.lengthOf(parts, 5);
    for (const { observation } of parts.slice(2))
      assert.deepInclude(observation, { progress: "started", shows: "nothing", calls: [], terminal: false });
    assert.deepStrictEqual(parts[3]?.observation.usage, { input_tokens: 3 });
    assert.strictEqual(endOf(decoder.end().end), "server_error");
  });

  it("believes the word that tells more where a provider says its failure twice, in whatever order", () => {
    const vague = { type: "error", code: "server_error", message: "The server had an error", param: null };
    const quota = { code: "insufficient_quota", message: "You exceeded your current quota" };
    const limit = { code: "rate_limit_exceeded", message: "Rate limit reached. Please try again in 2s." };
    const failed = (error: object) => ({ type: "response.failed", response: { status: "failed", error } });
    const rows = [
      [vague, failed(quota), "rejected", undefined],
      [{ type: "error", error: quota }, failed({ code: "server_error", message: "x" }), "rejected", undefined],
      [vague, failed(limit), "rate_limited", 2_000],
      [{ type: "error", error: { code: "rate_limit_exceeded", message: "x" } }, failed(limit), "rate_limited", 2_000],
    ] as const;
    for (const [first, then, kind, wait] of rows) {
      const decoder = Decoder.make(OpenAiResponses.protocol);
      const [part] = decoder.push(encode(`data: ${JSON.stringify(first)}\n\n`));
      assert.isDefined(part?.observation.failure);
      assert.lengthOf(decoder.push(encode(`data: ${JSON.stringify(then)}\n\n`)), 1);
      assert.strictEqual(decoder.failure?.kind, kind);
      assert.strictEqual(decoder.failure?.retry_after_ms, wait);
      assert.isTrue(decoder.failure?.in_band);
    }
  });

  it("an error behind a finish whose call cannot be read is another one's", () => {
    const decoder = make();
    const call = { tool_calls: [{ index: 0, id: "c", function: { name: "f", arguments: '{"a' } }] };
    const frame = (delta: object, finish_reason: string | null) =>
      `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason }] })}\n\n`;
    decoder.push(encode(frame(call, null) + frame({}, "tool_calls")));
    decoder.push(encode('data: {"error":{"code":"insufficient_quota","message":"x"}}\n\n'));
    assert.strictEqual(decoder.failure?.kind, "invalid_tool_input");
  });

  it("gives the parts before an oversize line, and fails at the line", () => {
    const decoder = make({ limits: { lineBytesMax: 200 } });
    const parts = decoder.push(encode(`${text("a")}${text("x".repeat(300))}`));
    assert.strictEqual(parts.length, 1);
    assert.deepStrictEqual(decoder.failure, { kind: "protocol", reason: "oversize" });
  });

  it("an event keeps its original beside its JSON", () => {
    const [part] = make().push(encode(`id: 4\nevent: x\ndata: {"choices":[]}\n\n`));
    assert.deepStrictEqual(part?.event, { event: "x", data: '{"choices":[]}', id: "4", bytes: 37 });
    assert.deepStrictEqual(part?.json, { choices: [] });
  });

  it("comments and events without a character of data are keep-alives", () => {
    const parts = make().push(encode(": hi\n\ndata:\n\nevent: ping\ndata: \n\n"));
    assert.deepStrictEqual(
      parts.map((part) => [part.event.event, part.event.data, part.observation.keep_alive, part.observation.quiet]),
      [
        ["comment", "hi", true, true],
        ["message", "", true, true],
        ["ping", "", true, true],
      ],
    );
  });

  it("the plain word of a named event passes, the plain text of an error event fails", () => {
    for (const protocol of [OpenAiChat.protocol, Gemini.protocol] as const) {
      const make =
        protocol.id === "openai-chat" ? () => Decoder.make(OpenAiChat.protocol) : () => Decoder.make(Gemini.protocol);
      const passing = make();
      passing.push(encode("event: heartbeat\ndata: 12:00\n\n"));
      assert.strictEqual(passing.failure, undefined);
      const failing = make();
      failing.push(encode("event: error\ndata: upstream went away\n\n"));
      assert.deepStrictEqual(failing.failure, { kind: "server_error", in_band: true });
      const damaged = make();
      damaged.push(encode('event: chunk\ndata: {"a\n\n'));
      assert.deepInclude(damaged.failure, { reason: "damaged_frame" });
    }
  });

  it("an event without its blank line counts when its data is whole, and is dropped when it is cut", () => {
    const whole = make();
    whole.push(encode(text("a", "stop").trimEnd()));
    assert.deepInclude(whole.end(), { end: { complete: true } });
    const cut = make();
    assert.strictEqual(cut.push(encode(text("a", "stop").trimEnd().slice(0, -1))).length, 0);
    const last = cut.end();
    assert.strictEqual(last.parts.length, 0);
    assert.strictEqual(endOf(last.end), "truncated");
  });

  it("nothing after the marker makes it fail, not even an oversize line", () => {
    const decoder = make({ limits: { lineBytesMax: 200 } });
    decoder.push(encode(text("a") + text("b", "stop")));
    decoder.push(encode(`data: ${"x".repeat(400)}\n\n`));
    assert.strictEqual(decoder.failure, undefined);
    assert.deepStrictEqual(decoder.end().end, { complete: true });
  });
});
