/**
 * Holds what servers that imitate a protocol really send: each case names whose it is.
 */
import { assert, describe, it } from "@effect/vitest";
import * as AnthropicMessages from "../../../src/provider/anthropic/Decode.ts";
import * as Gemini from "../../../src/provider/gemini/Decode.ts";
import * as OpenAiChat from "../../../src/provider/openai-chat/Decode.ts";
import * as OpenAiResponses from "../../../src/provider/openai-responses/Decode.ts";
import type { Protocol } from "../../../src/provider/Protocols.ts";
import { checkGrowth, type Decoded, decode, encode, endOf, readyInputs } from "../Decoded.ts";

const frame = (data: unknown): string => `data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`;

const player =
  <S>(protocol: Protocol<S>) =>
  (...frames: ReadonlyArray<unknown>): Decoded => {
    const decoded = decode(protocol, [encode(frames.map(frame).join(""))]);
    checkGrowth(decoded.parts);
    return decoded;
  };

const terminals = ({ parts }: Decoded): ReadonlyArray<number> =>
  parts.flatMap(({ observation }, index) => (observation.terminal ? [index] : []));

const failure = ({ end }: Decoded) => (end.complete ? undefined : end.failure);

describe("chat", () => {
  const play = player(OpenAiChat.protocol);
  const chunk = (delta: object, finish_reason: unknown = null, more: object = {}) => ({
    choices: [{ index: 0, delta, finish_reason }],
    ...more,
  });
  const say = (content: string, finish: unknown = null) => chunk({ content }, finish);
  const call = (fields: object, finish: unknown = null) => chunk({ tool_calls: [{ index: 0, ...fields }] }, finish);
  const whole = (id: string, input: string, index = 0) => ({ index, id, function: { name: "f", arguments: input } });
  const done = "[DONE]";

  it("a finish in every chunk is the marker only at a clean end or [DONE] (gcli2api 403, litellm 2195)", () => {
    const played = play(say("a", "stop"), say("b", "stop"), done);
    assert.deepStrictEqual(terminals(played), [2]);
    assert.strictEqual(endOf(played.end), "complete");
    assert.strictEqual(endOf(play(say("a", "stop"), say("b", "stop")).end), "complete");
    assert.strictEqual(endOf(play(say("", "stop"), say("b")).end), "truncated");
    assert.deepStrictEqual(play(say("a", "stop")).parts[0]?.observation.terminal_at_end, true);
  });

  it("a finish with every call loses none of them (litellm 31634)", () => {
    const first = call(whole("1", '{"a":1}'), "tool_calls");
    const second = call(whole("2", '{"a":2}', 1), "tool_calls");
    for (const frames of [
      [first, second],
      [say("x"), first, second, done],
    ]) {
      const played = play(...frames);
      assert.deepStrictEqual(readyInputs(played.parts), [{ a: 1 }, { a: 2 }]);
      assert.strictEqual(endOf(played.end), "complete");
    }
    assert.strictEqual(endOf(play(first, call({ ...whole("2", '{"a":'), index: 1 })).end), "truncated");
  });

  it("arguments that still come under a finish in every chunk are not ready before they are whole", () => {
    const pieces = [call(whole("1", ""), "stop"), call({ function: { arguments: '{"a"' } }, "stop")];
    assert.deepStrictEqual(readyInputs(play(...pieces).parts), []);
    assert.strictEqual(endOf(play(...pieces).end), "invalid_tool_input");
    assert.deepStrictEqual(terminals(play(...pieces, done)), [2]);
    const end = call({ function: { arguments: ":1}" } }, "stop");
    assert.deepStrictEqual(readyInputs(play(...pieces, end, done).parts), [{ a: 1 }]);
    assert.deepStrictEqual(readyInputs(play(call(whole("1", ""), "tool_calls"), done).parts), [{}]);
  });

  it("a null that became a text is no finish", () => {
    for (const none of ["null", "None", "", "NOT_FINISHED"]) {
      assert.strictEqual(endOf(play(say("a", none), say("b", none)).end), "truncated", none);
      assert.strictEqual(endOf(play(say("a", none), chunk({}, "stop")).end), "complete", none);
    }
  });

  it("limits and filters under their own names leave calls unready, and a server that gave up is a failure", () => {
    for (const cut of ["max_length", "model_context_window_exceeded", "time_limit", "RECITATION", "content_filtered"]) {
      const played = play(call(whole("1", "")), chunk({}, cut));
      assert.deepStrictEqual([endOf(played.end), readyInputs(played.parts)], ["complete", []], cut);
    }
    assert.deepInclude(failure(play(say("a"), chunk({}, "cancelled"))), { kind: "cancelled", by: "provider" });
    for (const gone of ["timeout", "internal_error"])
      assert.strictEqual(endOf(play(say("a"), chunk({}, gone)).end), "server_error", gone);
  });

  it("fields that are filled with nothing are no call", () => {
    for (const nothing of [
      { tool_calls: [null] },
      { tool_calls: [{}] },
      { tool_calls: [{ index: 0, id: "", type: "function", function: { name: "", arguments: "" } }] },
      { function_call: {} },
      { function_call: { name: "", arguments: "" } },
    ]) {
      const played = play(chunk({ content: "a", ...nothing }), chunk(nothing, "stop"), done);
      assert.deepStrictEqual([endOf(played.end), readyInputs(played.parts)], ["complete", []]);
    }
  });

  it("arguments said twice, or after an empty object, are one call's", () => {
    const input = '{"a":1}';
    const named = (text: unknown) => ({ id: "1", function: { name: "f", arguments: text } });
    const message = { choices: [{ index: 0, finish_reason: "tool_calls", message: { tool_calls: [named(input)] } }] };
    for (const frames of [
      [call(named(input)), call(named(input), "tool_calls")],
      [call(named({ a: 1 })), call(named({ a: 1 })), chunk({}, "tool_calls")],
      [call(named({})), call({ function: { arguments: '{"a"' } }), call({ function: { arguments: ":1}" } }, "stop")],
      [call(named("{}")), call({ function: { arguments: input } }), chunk({}, "stop")],
      [call(named(input)), message],
      [chunk({ function_call: { name: "f", arguments: input }, tool_calls: [named(input)] }), chunk({}, "stop")],
    ])
      assert.deepStrictEqual(readyInputs(play(...frames).parts), [{ a: 1 }]);
  });

  it("an index may be text, a custom tool takes any text, and Zhipu's own tools run at the provider", () => {
    const at = (index: string, fields: object) => ({ ...fields, index });
    const two = [at("0", { ...whole("1", ""), index: "0" }), at("1", { ...whole("2", ""), index: "1" })];
    const played = play(
      chunk({ tool_calls: two }),
      call(at("0", { function: { arguments: '{"n":1}' } })),
      call(at("1", { function: { arguments: '{"n":2}' } })),
      chunk({}, "tool_calls"),
    );
    assert.deepStrictEqual(readyInputs(played.parts), [{ n: 1 }, { n: 2 }]);
    const custom = play(call({ id: "1", custom: { name: "patch", input: "*** Begin" } }), chunk({}, "tool_calls"));
    assert.deepStrictEqual(readyInputs(custom.parts), ["*** Begin"]);
    const hosted = play(call({ id: "1", type: "web_search", web_search: { outputs: [{}] } }), chunk({}, "stop"));
    assert.deepStrictEqual(
      hosted.parts[0]?.observation.calls.map(({ executor, phase, tool }) => [executor, tool, phase]),
      [
        ["provider", "web_search", "input_started"],
        ["provider", "web_search", "settled"],
      ],
    );
    assert.strictEqual(endOf(hosted.end), "complete");
  });

  it("an error needs no field of that name: MiniMax, z.ai, FastAPI", () => {
    const bare = (event: object) => failure(play({ choices: [{ delta: { content: "a" } }] }, event, done));
    const minimax = (code: number) => bare({ choices: null, base_resp: { status_code: code, status_msg: "no" } });
    assert.deepInclude(minimax(1008), { kind: "rejected", reason: "quota", in_band: true });
    assert.deepInclude(minimax(2049), { kind: "rejected", reason: "auth" });
    assert.deepInclude(minimax(1002), { kind: "rate_limited" });
    assert.deepInclude(minimax(1), { kind: "server_error", retryable: true });
    assert.deepInclude(bare({ code: 401, msg: "expired", success: false }), { kind: "rejected", reason: "auth" });
    assert.deepInclude(bare({ code: 500, message: "upstream" }), { kind: "server_error", status: 500 });
    assert.deepInclude(bare({ detail: "Internal Server Error" }), { kind: "server_error" });
    assert.deepInclude(bare([{ error: { code: 429, message: "slow" } }]), { kind: "rate_limited" });
    const healthy = { base_resp: { status_code: 0, status_msg: "" }, error: {} };
    assert.strictEqual(endOf(play(chunk({ content: "a" }, null, healthy), chunk({}, "stop", healthy)).end), "complete");
  });

  it("llama.cpp's `error:` field is an event of that name", () => {
    const text = `${frame({ choices: [{ delta: { content: "a" } }] })}error: {"message":"slot lost"}\n\n${frame(done)}`;
    assert.strictEqual(endOf(decode(OpenAiChat.protocol, [encode(text)]).end), "server_error");
  });

  it("events without the blank line between them are read one by one", () => {
    const lines = [say("a"), say("b"), chunk({}, "stop")].map((data) => `data: ${JSON.stringify(data)}\n`).join("");
    const played = decode(OpenAiChat.protocol, [encode(`${lines}data: [DONE]\n`)]);
    assert.deepStrictEqual([endOf(played.end), played.parts.length], ["complete", 4]);
    const cut = decode(OpenAiChat.protocol, [encode(lines.slice(0, -20))]);
    assert.strictEqual(endOf(cut.end), "truncated");
  });
});

describe("Anthropic Messages", () => {
  const play = player(AnthropicMessages.protocol);
  const start = { type: "message_start", message: {} };
  const open = (index: unknown, block: object = {}) => ({
    type: "content_block_start",
    index,
    content_block: { type: "tool_use", id: "t", name: "f", input: {}, ...block },
  });
  const piece = (index: unknown, partial_json: string) => ({
    type: "content_block_delta",
    index,
    delta: { type: "input_json_delta", partial_json },
  });
  const close = (index: unknown) => ({ type: "content_block_stop", index });
  const stop = (stop_reason: string | null) => ({ type: "message_delta", delta: { stop_reason } });

  it("a call's deltas are its own whatever index they bear, and never lost to an empty call", () => {
    for (const index of ["1", 0, undefined]) {
      const played = play(start, open(1), piece(index, '{"a":1}'), close(index), stop("tool_use"));
      assert.deepStrictEqual(readyInputs(played.parts), [{ a: 1 }], String(index));
    }
    const late = play(start, open(0), close(0), piece(0, '{"a":1}'), stop("tool_use"));
    assert.deepStrictEqual([readyInputs(late.parts), endOf(late.end)], [[], "invalid_tool_input"]);
  });

  it("an input given as text is that input", () => {
    const played = play(start, open(0, { input: '{"a":1}' }), close(0), stop("tool_use"));
    assert.deepStrictEqual(readyInputs(played.parts), [{ a: 1 }]);
  });

  it("the words of chat end a message too, and a null that became text does not", () => {
    const played = play(start, open(0), piece(0, '{"a":1}'), stop("tool_calls"));
    assert.deepStrictEqual(readyInputs(played.parts), [{ a: 1 }]);
    assert.strictEqual(endOf(play(start, stop("null")).end), "truncated");
  });

  it("the type may stand in the `event:` line alone, and an error may be plain text", () => {
    const text = 'event: message_delta\ndata: {"delta":{"stop_reason":"end_turn"}}\n\n';
    assert.strictEqual(endOf(decode(AnthropicMessages.protocol, [encode(text)]).end), "complete");
    const plain = (event: string) =>
      endOf(decode(AnthropicMessages.protocol, [encode(`event: ${event}\ndata: oh no\n\n${text}`)]).end);
    assert.deepStrictEqual(["error", "content_block_delta", "message", "heartbeat"].map(plain), [
      "server_error",
      "protocol",
      "protocol",
      "complete",
    ]);
  });
});

describe("Responses", () => {
  const play = player(OpenAiResponses.protocol);
  const item = { type: "function_call", id: "i", call_id: "c", name: "f", arguments: "" };
  const added = { type: "response.output_item.added", output_index: 0, item };
  const delta = (text: string) => ({ type: "response.function_call_arguments.delta", output_index: 0, delta: text });
  const told = { type: "response.function_call_arguments.done", output_index: 0 };
  const finished = (fields: object) => ({ type: "response.output_item.done", output_index: 0, item: fields });
  const completed = { type: "response.completed", response: { status: "completed" } };
  const nameless = { type: "function_call", call_id: "c", name: "f" };

  it("arguments that only the deltas told are the call's, not an empty object", () => {
    for (const later of [[], [told], [finished(item)], [told, finished(item)], [finished(nameless)]]) {
      const played = play(added, delta('{"a"'), delta(":1}"), ...later, completed);
      assert.deepStrictEqual(readyInputs(played.parts), [{ a: 1 }], JSON.stringify(later));
    }
    assert.deepStrictEqual(readyInputs(play(added, delta('{"a"'), delta(":1}")).parts), []);
    const whole = { ...added, item: { ...item, arguments: '{"a":1}' } };
    assert.deepStrictEqual(readyInputs(play(whole, completed).parts), [{ a: 1 }]);
    const cut = { type: "response.incomplete", response: { status: "incomplete" } };
    assert.deepStrictEqual(readyInputs(play(added, delta('{"a":1}'), cut).parts), []);
  });

  it("response.done is the marker by what it says of the response", () => {
    const end = (response: object) => endOf(play({ type: "response.done", response }).end);
    assert.deepStrictEqual(
      [{ status: "completed" }, { status: "incomplete" }, {}, { status: "failed" }, { status: "canceled" }].map(end),
      ["complete", "complete", "complete", "server_error", "cancelled"],
    );
  });

  it("an error field of nothing is none", () => {
    const progress = { type: "response.in_progress", response: { error: {} } };
    const end = { type: "response.completed", response: { status: "completed", error: {} } };
    assert.strictEqual(endOf(play(progress, end).end), "complete");
    assert.deepInclude(failure(play({ code: 401, message: "no" })), { kind: "rejected", reason: "auth" });
    assert.deepInclude(failure(play({ detail: "boom" })), { kind: "server_error" });
  });
});

describe("Gemini", () => {
  const play = player(Gemini.protocol);
  const chunk = (part: object, finishReason?: string) => ({
    candidates: [{ content: { parts: [part] }, finishReason }],
  });

  it("a gateway's [DONE] is evidence of nothing", () => {
    assert.strictEqual(endOf(play(chunk({ text: "a" }, "STOP"), "[DONE]").end), "complete");
    assert.strictEqual(endOf(play(chunk({ text: "a" }), "[DONE]").end), "truncated");
  });

  it("arguments as text are those arguments, and errors come in a list too", () => {
    const called = play(chunk({ functionCall: { name: "f", args: '{"a":1}' } }, "STOP"));
    assert.deepStrictEqual(readyInputs(called.parts), [{ a: 1 }]);
    const error = { code: 429, message: "slow", status: "RESOURCE_EXHAUSTED" };
    assert.strictEqual(endOf(play(chunk({ text: "a" }), [{ error }]).end), "rate_limited");
  });
});
