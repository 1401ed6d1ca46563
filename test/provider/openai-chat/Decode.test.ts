import { assert, describe, it } from "@effect/vitest";
import * as OpenAiChat from "../../../src/provider/openai-chat/Decode.ts";
import type { Tolerance } from "../../../src/provider/Protocols.ts";
import { begun, decode, encode, endOf, readyInputs } from "../Decoded.ts";
import { suite } from "../ProtocolSuite.ts";

suite(OpenAiChat.protocol, {
  folder: new URL("../../fixtures/streams/openai-chat/", import.meta.url),
  files: {
    "text.sse": { end: "complete", text: 29, calls: [], finish: "stop" },
    "parallel-tools.sse": {
      end: "complete",
      text: 8,
      calls: ["read_file", "list_dir"],
      inputs: [{ path: "a.txt" }, {}],
      finish: "tool_calls",
    },
    "azure-filter.sse": { end: "complete", text: 7, finish: "content_filter" },
    "reasoning-comments.sse": { end: "complete", text: 1, reasoning: 12, finish: "stop" },
    "reasoning-details.sse": { end: "complete", text: 2, reasoning: 5, finish: "stop" },
    "error-finish.sse": { end: "server_error", text: 10 },
    "error-event.sse": { end: "overloaded", text: 4 },
    "late-error.sse": { end: "complete", text: 4, finish: "length" },
    "mistral.sse": {
      end: "complete",
      text: 12,
      reasoning: 8,
      calls: ["weather", "weather"],
      inputs: [{ city: "Oslo" }, { city: "Rome" }],
      finish: "tool_calls",
    },
    "length-cut-call.sse": { end: "complete", calls: ["write_file"], inputs: [], finish: "length" },
    "invalid-call.sse": {
      end: "invalid_tool_input",
      calls: ["noop", "write_file"],
      inputs: [{}],
      finish: "tool_calls",
    },
    "two-choices.sse": { end: "complete", text: 10, finish: "stop" },
    "done-without-finish.sse": { end: "complete", text: 2, calls: ["calc"], inputs: [{ x: 1 }], finish: "done" },
    "null-finish-done.sse": { end: "truncated", text: 10 },
    "refusal.sse": { end: "complete", text: 13, finish: "stop" },
    "function-call.sse": { end: "complete", calls: ["lookup"], inputs: [{ q: "x" }], finish: "function_call" },
    "same-index.sse": {
      end: "complete",
      calls: ["add", "add", "mul", "mul"],
      inputs: [{ a: 1 }, { a: 2 }, { a: 3 }, { a: 4 }],
      finish: "stop",
    },
    "no-index.sse": { end: "complete", calls: ["ping", "echo"], inputs: [{}, { text: "hi" }], finish: "tool_calls" },
    "truncated.sse": { end: "truncated", text: 9, calls: ["bash"], inputs: [] },
    "no-final-blank-line.sse": { end: "complete", text: 3, finish: "stop" },
    "groq-compound.sse": { end: "complete", text: 12, reasoning: 9, calls: ["web_search"], inputs: [], finish: "stop" },
    "fields-and-crlf.sse": { end: "complete", text: 2, finish: "stop" },
    "media.sse": { end: "complete", text: 5, finish: "stop" },
    "native-finish-length.sse": { end: "complete", calls: ["write_file"], inputs: [], finish: "tool_calls" },
    "audio-done.sse": { end: "complete", text: 8, finish: "done" },
    "one-finish-of-two.sse": { end: "complete", text: 8, finish: "stop", tolerance: { choices: 2 } },
  },
  error: 'data: {"error":{"message":"The server had an error","type":"server_error","code":"internal_error"}}\n\n',
});

type Delta = Readonly<Record<string, unknown>>;

const chunk = (delta: Delta, finish_reason: string | null = null, index = 0): string =>
  `data: ${JSON.stringify({ id: "c", choices: [{ index, delta, finish_reason }] })}\n\n`;

const run = (frames: ReadonlyArray<string>, tolerance: Tolerance = {}) =>
  decode(OpenAiChat.protocol, [encode(frames.join(""))], tolerance);

const observations = (frames: ReadonlyArray<string>) => run(frames).parts.map((part) => part.observation);

const done = "data: [DONE]\n\n";

describe("OpenAiChat: the terminal rule", () => {
  it("[DONE] after a null finish_reason is the marker only where that is declared", () => {
    const frames = [chunk({ content: "half" }), done];
    assert.strictEqual(endOf(run(frames).end), "truncated");
    assert.strictEqual(endOf(run(frames, { doneWithoutFinish: true }).end), "complete");
  });

  it("[DONE] of a server without the field finish_reason is the marker unless that is declared away", () => {
    const frames = ['data: {"choices":[{"index":0,"delta":{"content":"4"}}]}\n\n', done];
    assert.strictEqual(endOf(run(frames).end), "complete");
    assert.strictEqual(endOf(run(frames, { doneWithoutFinish: false }).end), "truncated");
  });

  it("[DONE] alone, or with a call that is still open, is no marker under any tolerance", () => {
    const tolerance = { doneWithoutFinish: true };
    const open = chunk({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: '{"x":' } }] });
    for (const frames of [[done], [open, done]]) assert.strictEqual(endOf(run(frames, tolerance).end), "truncated");
  });

  it("with the number of choices known, all of them must finish", () => {
    const one = [chunk({ content: "a" }), chunk({}, "stop")];
    assert.strictEqual(endOf(run(one, { choices: 2 }).end), "truncated");
    assert.strictEqual(endOf(run([...one, chunk({ content: "b" }, "stop", 1)], { choices: 2 }).end), "complete");
  });

  it("a choice that appears after the others finished must finish too", () => {
    const frames = [chunk({ content: "a" }, "stop"), chunk({ content: "b" }, null, 1)];
    assert.strictEqual(endOf(run(frames).end), "truncated");
    assert.strictEqual(endOf(run([...frames, chunk({}, "stop", 1)]).end), "complete");
  });

  it("a finish of choice 1 alone waits for a clean end or [DONE]", () => {
    const [, finish] = observations([chunk({ content: "b" }, null, 1), chunk({}, "stop", 1)]);
    assert.deepInclude(finish, { terminal: false, terminal_at_end: true });
    assert.deepInclude(observations([chunk({ content: "b" }, "stop", 1), done])[1], { terminal: true });
    const usage = 'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n';
    assert.isTrue(observations([chunk({ content: "b" }, "stop", 1), usage])[1]?.terminal_at_end);
  });

  it("an empty finish_reason is none", () => {
    assert.strictEqual(endOf(run([chunk({ content: "a" }, "")]).end), "truncated");
  });

  it("a finish that says that the server broke off is a failure and never the marker", () => {
    for (const [reason, kind] of [
      ["error", "server_error"],
      ["network_error", "server_error"],
      ["insufficient_system_resource", "overloaded"],
      ["abort", "cancelled"],
    ] as const) {
      const decoded = run([chunk({ content: "a" }, reason), chunk({}, "stop"), done]);
      assert.strictEqual(endOf(decoded.end), kind, reason);
      assert.isTrue(decoded.parts.every((part) => !part.observation.terminal));
    }
  });

  it("a filtered call that Gemini's compatible endpoint could not read is an invalid input, with the marker seen", () => {
    const [part] = observations([chunk({}, "function_call_filter: MALFORMED_FUNCTION_CALL")]);
    assert.deepInclude(part, { terminal: true, failure: { kind: "invalid_tool_input", in_band: true } });
  });
});

describe("OpenAiChat: ends that are said in other words", () => {
  const write = { index: 0, id: "c1", type: "function", function: { name: "write", arguments: '{"a' } };
  const finish = (native: string | null, finish_reason = "tool_calls"): string =>
    `data: ${JSON.stringify({ choices: [{ index: 0, delta: {}, finish_reason, native_finish_reason: native }] })}\n\n`;

  it("a limit that the server behind a gateway names cut the call: it is the marker, and nothing is malformed", () => {
    for (const native of ["length", "max_output_tokens", "MAX_TOKENS", "model_context_window_exceeded"]) {
      const { end, parts } = run([chunk({ tool_calls: [write] }), finish(native), done]);
      assert.strictEqual(endOf(end), "complete", native);
      assert.isTrue(parts[1]?.observation.terminal);
      assert.deepStrictEqual(readyInputs(parts), []);
    }
  });

  it("a native word that is no limit changes nothing", () => {
    for (const native of ["stop", "tool_calls", "completed", "", null]) {
      const { end } = run([chunk({ tool_calls: [write] }), finish(native), done]);
      assert.strictEqual(endOf(end), "invalid_tool_input", String(native));
    }
    assert.strictEqual(endOf(run([chunk({ content: "a" }), finish("length", "error"), done]).end), "server_error");
  });

  it("audio without its expiry, and a choice beside it that is open, are no end", () => {
    const audio = (fields: object, index = 0): string => chunk({ audio: fields }, null, index);
    assert.strictEqual(endOf(run([audio({ id: "a", transcript: "Hi" }), done]).end), "truncated");
    assert.strictEqual(endOf(run([audio({ expires_at: 1 })]).end), "truncated", "without [DONE]");
    const beside = [audio({ expires_at: 1 }), chunk({ content: "b" }, null, 1), done];
    assert.strictEqual(endOf(run(beside).end), "truncated");
    assert.strictEqual(endOf(run([audio({ expires_at: 1 }), audio({ expires_at: 1 }, 1), done]).end), "complete");
  });

  it("[DONE] behind the finish of one choice proves no call of another that is cut", () => {
    const open = chunk({ tool_calls: [write] }, null, 1);
    assert.strictEqual(endOf(run([chunk({ content: "a" }), chunk({}, "stop"), open, done]).end), "truncated");
    const error = 'data: {"error":{"message":"no","type":"server_error"}}\n\n';
    const failed = [chunk({ content: "a" }, null, 1), chunk({ content: "b" }), chunk({}, "stop"), error, done];
    assert.strictEqual(endOf(run(failed).end), "server_error");
  });
});

describe("OpenAiChat: what a part proves", () => {
  it("an empty role delta, empty reasoning and null fields are lifecycle", () => {
    for (const delta of [
      { role: "assistant", content: "" },
      { reasoning_content: "", content: null },
      { tool_calls: null, refusal: null, reasoning_details: [], annotations: [] },
      {},
    ])
      assert.deepInclude(observations([chunk(delta)])[0], { progress: "started", shows: "nothing", quiet: false });
  });

  it("usage alone is quiet, and a filter result before the first choice is not", () => {
    const [filter, usage] = observations([
      'data: {"choices":[],"prompt_filter_results":[]}\n\n',
      'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4}}\n\n',
    ]);
    assert.deepInclude(filter, { progress: "started", quiet: false });
    assert.deepInclude(usage, { quiet: true, usage: { input_tokens: 3, output_tokens: 4 } });
  });

  it("reasoning is read in all its spellings, once", () => {
    for (const delta of [
      { reasoning_content: "abc" },
      { reasoning: "abc" },
      { reasoning: "abc", reasoning_details: [{ type: "reasoning.text", text: "abc" }] },
      { reasoning_details: [{ type: "reasoning.summary", summary: "abc" }] },
      { reasoning_text: "abc" },
      { thinking: "abc" },
      { thinking_blocks: [{ type: "thinking", thinking: "abc" }] },
      { content: [{ type: "thinking", thinking: [{ type: "text", text: "abc" }] }] },
    ])
      assert.deepInclude(
        observations([chunk(delta)])[0],
        { progress: "reasoning", shows: "reasoning", characters: 3 },
        JSON.stringify(delta),
      );
  });

  it("a part of a call's arguments is output that shows nothing and says nothing new of the call", () => {
    const frames = [
      chunk({ tool_calls: [{ index: 0, id: "a", function: { name: "f", arguments: "" } }] }),
      chunk({ tool_calls: [{ index: 0, function: { arguments: "{}" } }] }),
    ];
    assert.deepInclude(observations(frames)[1], { progress: "output", shows: "nothing", calls: [] });
  });

  it("text of the delta that begins a call stands before the call; text beside an older call does not", () => {
    const call = { index: 0, id: "a", function: { name: "f", arguments: "" } };
    const [first] = observations([chunk({ content: "hm", tool_calls: [call] })]);
    assert.isTrue(first?.text_before_calls);
    const [, late] = observations([chunk({ tool_calls: [call] }), chunk({ content: "hm" }, "tool_calls")]);
    assert.strictEqual(late?.text_before_calls, undefined);
  });

  it("an error after the marker is told of and changes nothing", () => {
    const late = 'data: {"error":{"message":"late"}}\n\n';
    const decoded = run([chunk({ content: "a" }), chunk({}, "stop"), late, done]);
    assert.strictEqual(decoded.failure, undefined);
    assert.isDefined(decoded.parts[2]?.observation.failure);
    assert.deepStrictEqual(decoded.end, { complete: true });
  });
});

describe("OpenAiChat: calls", () => {
  const call = (id: string, name: string | null, args: unknown, index: number | undefined = 0): string =>
    chunk({ tool_calls: [{ index, id, type: "function", function: { name, arguments: args } }] });

  it("ids made up for every delta of one call make one call", () => {
    const decoded = run([call("a", "f", '{"x"'), call("b", "f", ":1"), call("c", "f", "}"), chunk({}, "tool_calls")]);
    assert.deepStrictEqual(begun(decoded.parts), ["f"]);
    assert.deepStrictEqual(readyInputs(decoded.parts), [{ x: 1 }]);
  });

  it("calls of several choices are told apart", () => {
    const frames = [
      call("a", "f", "{}"),
      chunk({ tool_calls: [{ index: 0, id: "a", function: { name: "g" } }] }, null, 1),
    ];
    const decoded = run([...frames, chunk({}, "tool_calls"), chunk({}, "tool_calls", 1)]);
    const ready = decoded.parts.flatMap((part) => part.observation.calls).filter((each) => each.phase === "ready");
    assert.deepStrictEqual(
      ready.map(({ choice, ordinal, tool }) => [choice, ordinal, tool]),
      [
        [0, 0, "f"],
        [1, 0, "g"],
      ],
    );
  });

  it("a call is ready when its choice finishes and not before", () => {
    const phases = observations([call("a", "f", "{}"), chunk({}, "stop")]).map(({ calls }) =>
      calls.map((c) => c.phase),
    );
    assert.deepStrictEqual(phases, [["input_started"], ["ready"]]);
  });

  it("a call that begins after the marker is never ready", () => {
    const decoded = run([
      chunk({ content: "a" }),
      chunk({}, "stop"),
      call("a", "f", "{}"),
      chunk({}, "tool_calls"),
      done,
    ]);
    assert.deepStrictEqual(readyInputs(decoded.parts), []);
    assert.deepStrictEqual(decoded.end, { complete: true });
  });

  it("argument text, calls and choices above their limits are oversize", () => {
    const state = { ...OpenAiChat.initial(), argumentCharacters: OpenAiChat.argumentCharactersMax };
    const event = { event: "message", data: call("a", "f", "{}").slice(6).trim(), bytes: 1 };
    const [, part] = OpenAiChat.step(state, event);
    assert.deepStrictEqual(part.observation.failure, { kind: "protocol", reason: "oversize" });
    const many = Array.from({ length: 600 }, (_, index) => call(`${index}`, "f", "{}", index));
    assert.strictEqual(endOf(run(many).end), "protocol");
    assert.strictEqual(endOf(run([chunk({ content: "a" }, null, OpenAiChat.choicesMax)]).end), "protocol");
  });
});
