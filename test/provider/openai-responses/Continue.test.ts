import { assert, describe, it } from "@effect/vitest";
import { cutCall, cutHosted, goOn, lostCall, sentences } from "../../../src/provider/Continuation.ts";
import { added, built, refused, type Story } from "../continuation/Story.ts";
import * as F from "./Frames.ts";

const body = {
  model: "gpt-5",
  stream: true,
  previous_response_id: "resp_before",
  input: [{ role: "user", content: "hi" }],
};
const next = (story: Omit<Story, "body">) => added("openai-responses", "input", { body, ...story });

const start = { type: "response.created", response: { id: "resp_1", status: "in_progress", tools: [] } };
const call = (index: number, more: object = {}) => [
  F.added(index, F.fn(`call_${index}`, "", { id: `fc_${index}`, status: "in_progress", ...more })),
  F.args(index, '{"cmd":'),
  F.args(index, '"ls"}'),
  F.argsDone(index, '{"cmd":"ls"}'),
  F.done(index, F.fn(`call_${index}`, '{"cmd":"ls"}', { id: `fc_${index}`, status: "completed", ...more })),
];
const use = (index: number) => ({
  type: "function_call",
  call_id: `call_${index}`,
  name: "read",
  arguments: '{"cmd":"ls"}',
});
const output = (index: number, said: unknown) => ({
  type: "function_call_output",
  call_id: `call_${index}`,
  output: said,
});
const reasoning = (index: number, more: object = { encrypted_content: "enc" }) => {
  const item = { type: "reasoning", id: `rs_${index}`, summary: [], ...more };
  return { item, frames: [F.added(index, item), F.done(index, item)] };
};
const message = (text: string) => ({
  type: "message",
  role: "assistant",
  content: [{ type: "output_text", text }],
});
const user = (content: string) => ({ type: "message", role: "user", content });

describe("Continuation of OpenAI Responses", () => {
  it("asks to go on with a text that was cut, from input items and never from the broken response's id", () => {
    const opened = F.added(0, { type: "message", id: "msg_0", role: "assistant", status: "in_progress", content: [] });
    assert.deepStrictEqual(next({ frames: [start, opened, F.text(0, "one "), F.text(0, "two ")] }), [
      message("one two "),
      user(goOn),
    ]);
    assert.deepStrictEqual(next({ frames: [start, F.text(0, "one")] }), [message("one"), user(goOn)]);
  });

  it("keeps the fields of a message except its id", () => {
    const content = [{ type: "output_text", text: "one", annotations: [] }];
    const item = { type: "message", id: "msg_0", role: "assistant", status: "completed", phase: "commentary", content };
    assert.deepStrictEqual(next({ frames: [start, F.text(0, "one"), F.done(0, item)] }), [
      { type: "message", role: "assistant", phase: "commentary", content },
      user(goOn),
    ]);
  });

  it("keeps the fields of a message that follow its first text", () => {
    const item = {
      type: "message",
      id: "msg_0",
      role: "assistant",
      status: "in_progress",
      phase: "commentary",
      content: [],
    };
    assert.deepStrictEqual(next({ frames: [start, F.text(0, "one "), F.added(0, item), F.text(0, "two")] }), [
      { ...message("one two"), phase: "commentary" },
      user(goOn),
    ]);
  });

  it("takes a text as input for a list of one message", () => {
    const result = built("openai-responses", { body: { model: "m", input: "hi" }, frames: [start, F.text(0, "one")] });
    assert.deepInclude(result, { success: { model: "m", input: [user("hi"), message("one"), user(goOn)] } });
  });

  it("repeats the request where nothing was kept", () => {
    assert.deepStrictEqual(next({ frames: [start, ...reasoning(0).frames] }), []);
    assert.deepStrictEqual(next({ frames: [start, ...call(0).slice(0, 2)] }), []);
  });

  it("gives settled calls their outputs and closes the others", () => {
    const frames = [start, F.text(0, "look"), ...call(1), ...call(2), ...call(3), ...call(4)];
    const calls = { "0.0": "settled", "0.1": "not_run", "0.2": "it_did_not_run", "0.3": "settled" } as const;
    assert.deepStrictEqual(next({ frames, calls, results: { "0.0": "a.txt" } }), [
      message("look"),
      use(1),
      use(2),
      use(3),
      use(4),
      output(1, "a.txt"),
      output(2, sentences.not_run),
      output(3, sentences.it_did_not_run),
      output(4, sentences.settled),
    ]);
  });

  it("leaves out a call that was cut, and says so where the text goes on", () => {
    const frames = [start, F.text(0, "look"), ...call(1).slice(0, 3)];
    assert.deepStrictEqual(next({ frames }), [message("look"), user(`${cutCall} ${goOn}`)]);
  });

  it("keeps encrypted reasoning with the whole item that it belongs to", () => {
    const { frames, item } = reasoning(0);
    const settled = { calls: { "0.0": "settled" }, results: { "0.0": "x" } } as const;
    assert.deepStrictEqual(next({ frames: [start, ...frames, ...call(1)], ...settled }), [
      item,
      use(1),
      output(1, "x"),
    ]);
    assert.deepStrictEqual(next({ frames: [start, ...frames, F.text(1, "cut")] }), [message("cut"), user(goOn)]);
    assert.deepStrictEqual(next({ frames: [start, ...reasoning(0, {}).frames, ...call(1)], ...settled }), [
      use(1),
      output(1, "x"),
    ]);
    const later = reasoning(2);
    assert.deepStrictEqual(next({ frames: [start, ...frames, ...call(1), ...later.frames], ...settled }), [
      item,
      use(1),
      output(1, "x"),
    ]);
  });

  it("keeps hosted calls that are whole, and tells of one that was cut", () => {
    const search = { type: "web_search_call", id: "ws_0", status: "completed", action: { type: "search", query: "x" } };
    const began = F.added(0, { ...search, status: "in_progress" });
    assert.deepStrictEqual(next({ frames: [start, began, F.done(0, search), F.text(1, "it is")] }), [
      search,
      message("it is"),
      user(goOn),
    ]);
    assert.deepStrictEqual(next({ frames: [start, began, F.text(1, "it is")] }), [
      message("it is"),
      user(`${cutHosted} ${goOn}`),
    ]);
    const unsealed = [start, ...reasoning(0, {}).frames, F.done(1, search), F.text(2, "it is")];
    assert.deepStrictEqual(next({ frames: unsealed }), [message("it is"), user(goOn)]);
  });

  it("closes every kind of call in its own form, and leaves out one that no words can close", () => {
    const shell = { type: "shell_call", call_id: "c0", action: { commands: ["ls"] }, status: "completed" };
    const patch = { type: "apply_patch_call", call_id: "c1", operation: { type: "delete_file" }, status: "completed" };
    const local = { type: "local_shell_call", call_id: "c2", action: { command: ["ls"] }, status: "completed" };
    const custom = { type: "custom_tool_call", call_id: "c3", name: "py", input: "1+1", status: "completed" };
    const approval = { type: "mcp_approval_request", id: "mcpr_4", name: "x", arguments: "{}", server_label: "s" };
    const computer = { type: "computer_call", call_id: "c5", action: { type: "click" }, status: "completed" };
    const frames = [start, ...[shell, patch, local, custom, approval, computer].map((item, at) => F.done(at, item))];
    const calls = { "0.0": "not_run", "0.1": "not_run", "0.2": "it_ran", "0.4": "not_run" } as const;
    const { status: _, ...customCall } = custom;
    const outcome = { type: "exit", exit_code: 1 };
    assert.deepStrictEqual(next({ frames, calls, results: { "0.3": "2" } }), [
      shell,
      patch,
      local,
      customCall,
      approval,
      { type: "shell_call_output", call_id: "c0", output: [{ stdout: "", stderr: sentences.not_run, outcome }] },
      { type: "apply_patch_call_output", call_id: "c1", status: "failed", output: sentences.not_run },
      { type: "local_shell_call_output", call_id: "c2", output: sentences.it_ran },
      { type: "custom_tool_call_output", call_id: "c3", output: "2" },
      {
        type: "mcp_approval_response",
        approval_request_id: "mcpr_4",
        approve: false,
        reason: sentences.not_run,
      },
      user(lostCall),
    ]);
  });

  it("accepts an output item of the runtime unchanged", () => {
    const computer = { type: "computer_call", call_id: "c0", action: { type: "click" }, status: "completed" };
    const screen = { type: "computer_screenshot", image_url: "data:" };
    const results = { "0.0": { type: "computer_call_output", output: screen } };
    assert.deepStrictEqual(next({ frames: [start, F.done(0, computer)], calls: { "0.0": "settled" }, results }), [
      computer,
      { type: "computer_call_output", call_id: "c0", output: screen },
    ]);
  });

  it("refuses a conversation that the provider keeps, JSON answers and what is not what it claims to be", () => {
    const of = (more: object) => refused("openai-responses", { body: { ...body, ...more }, frames: [F.text(0, "{")] });
    assert.deepStrictEqual(of({ conversation: "conv_1" }), ["server_state", "conversation"]);
    assert.deepStrictEqual(of({ input: 3 }), ["invalid", "input"]);
    assert.deepStrictEqual(of({ text: { format: { type: "json_schema" } } }), ["structured_output", "text.format"]);
  });
});
