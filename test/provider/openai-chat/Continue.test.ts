import { assert, describe, it } from "@effect/vitest";
import { cutCall, goOn, sentences } from "../../../src/provider/Continuation.ts";
import { added, refused, type Story } from "../continuation/Story.ts";

const body = { model: "gpt-5", stream: true, messages: [{ role: "user", content: "hi" }] };
const next = (story: Omit<Story, "body">) => added("openai-chat", "messages", { body, ...story });

const chunk = (delta: object, finish: string | null = null, index = 0) => ({
  id: "c",
  choices: [{ index, delta, finish_reason: finish }],
});
const text = (content: string) => chunk({ content });
const piece = (index: number, fields: object, more: object = {}) =>
  chunk({ tool_calls: [{ index, ...more, function: fields }] });
const call = (index: number, id = `call_${index}`, more: object = {}) => [
  piece(index, { name: "bash", arguments: "" }, { id, type: "function", ...more }),
  piece(index, { arguments: '{"cmd":' }),
  piece(index, { arguments: '"ls"}' }),
];
const finish = chunk({}, "tool_calls");
const use = (id: string) => ({ id, type: "function", function: { name: "bash", arguments: '{"cmd":"ls"}' } });
const assistant = (content: string | null, more: object = {}) => ({ role: "assistant", content, ...more });
const tool = (tool_call_id: string, content: unknown) => ({ role: "tool", tool_call_id, content });
const user = (content: string) => ({ role: "user", content });

describe("Continuation of OpenAI Chat Completions", () => {
  it("asks to go on with a text that was cut, and never prefills", () => {
    assert.deepStrictEqual(next({ frames: [text("one "), text("two ")] }), [assistant("one two "), user(goOn)]);
  });

  it("repeats the request where nothing was kept", () => {
    assert.deepStrictEqual(next({ frames: [chunk({ role: "assistant", content: "" })] }), []);
    assert.deepStrictEqual(next({ frames: [...call(0)] }), []);
  });

  it("gives settled calls their results and closes the others, in their order", () => {
    const frames = [text("look"), ...call(0), ...call(1), ...call(2), ...call(3), ...call(4), finish];
    const calls = {
      "0.0": "settled",
      "0.1": "not_run",
      "0.2": "settled",
      "0.3": "it_ran",
      "0.4": "unknown",
    } as const;
    const ids = [0, 1, 2, 3, 4].map((index) => `call_${index}`);
    assert.deepStrictEqual(next({ frames, calls, results: { "0.0": { files: 1 } } }), [
      assistant("look", { tool_calls: ids.map(use) }),
      tool("call_0", '{"files":1}'),
      tool("call_1", sentences.not_run),
      tool("call_2", sentences.settled),
      tool("call_3", sentences.it_ran),
      tool("call_4", sentences.unknown),
    ]);
  });

  it("leaves out a call that was cut, and says so where the text goes on", () => {
    assert.deepStrictEqual(next({ frames: [text("look"), ...call(0).slice(0, 2)] }), [
      assistant("look"),
      user(`${cutCall} ${goOn}`),
    ]);
  });

  it("gives ids that are empty or stand twice new ones that every provider takes", () => {
    const frames = [...call(0, "0"), ...call(1, "0"), ...call(2, ""), finish];
    const [answer, ...results] = next({ frames });
    assert.deepStrictEqual(answer, assistant(null, { tool_calls: ["0", "call00001", "call00002"].map(use) }));
    assert.deepStrictEqual(results, [
      tool("0", sentences.unknown),
      tool("call00001", sentences.unknown),
      tool("call00002", sentences.unknown),
    ]);
  });

  it("keeps ids longer than a label, Google's signatures and custom tools", () => {
    const id = "x".repeat(300);
    const extra_content = { google: { thought_signature: "sig" } };
    const frames = [...call(0, id, { extra_content }), finish];
    assert.deepStrictEqual(next({ frames, results: { "0.0": "ok" }, calls: { "0.0": "settled" } }), [
      assistant(null, { tool_calls: [{ ...use(id), extra_content }] }),
      tool(id, "ok"),
    ]);
    const custom = chunk({
      tool_calls: [{ index: 0, id: "c1", type: "custom", custom: { name: "py", input: "1+1" } }],
    });
    assert.deepStrictEqual(next({ frames: [custom, finish], results: { "0.0": "2" }, calls: { "0.0": "settled" } }), [
      assistant(null, { tool_calls: [{ id: "c1", type: "custom", custom: { name: "py", input: "1+1" } }] }),
      tool("c1", "2"),
    ]);
  });

  it("sends the first form of calls back in its own form", () => {
    const frames = [chunk({ function_call: { name: "bash", arguments: '{"cmd":"ls"}' } }), chunk({}, "function_call")];
    assert.deepStrictEqual(next({ frames, results: { "0.0": "ok" }, calls: { "0.0": "settled" } }), [
      assistant(null, { function_call: { name: "bash", arguments: '{"cmd":"ls"}' } }),
      { role: "function", name: "bash", content: "ok" },
    ]);
  });

  it("sends reasoning back beside calls only", () => {
    const detail = (fields: object) => ({ type: "reasoning.text", index: 0, format: "anthropic", ...fields });
    const think = [
      chunk({ reasoning_content: "hm " }),
      chunk({ reasoning_content: "so" }),
      chunk({ reasoning_details: [detail({ text: "a" })] }),
      chunk({ reasoning_details: [detail({ text: "b", signature: "sig" })] }),
    ];
    assert.deepStrictEqual(next({ frames: [...think, text("x")] }), [assistant("x"), user(goOn)]);
    const [answer] = next({ frames: [...think, ...call(0), finish] });
    assert.deepStrictEqual(
      answer,
      assistant(null, {
        reasoning_content: "hm so",
        reasoning_details: [detail({ text: "ab", signature: "sig" })],
        tool_calls: [use("call_0")],
      }),
    );
  });

  it("keeps the text around a call that the provider ran itself", () => {
    const executed = chunk({ executed_tools: [{ index: 0, type: "search", arguments: "{}", output: "found" }] });
    assert.deepStrictEqual(next({ frames: [text("a"), executed, text("b")] }), [assistant("ab"), user(goOn)]);
  });

  it("refuses several choices and what is not what it claims to be", () => {
    const of = (more: object, frames: ReadonlyArray<unknown> = [text('{"a"')]) =>
      refused("openai-chat", { body: { ...body, ...more }, frames });
    assert.deepStrictEqual(of({ messages: {} }), ["invalid", "messages"]);
    assert.deepStrictEqual(of({ n: 2 }), ["several_choices", "n"]);
    assert.deepStrictEqual(of({}, [text("a"), chunk({ content: "b" }, null, 1)]), [
      "several_choices",
      "received.choices",
    ]);
    assert.deepStrictEqual(of({ response_format: { type: "json_schema" } }), ["structured_output", "response_format"]);
  });
});
