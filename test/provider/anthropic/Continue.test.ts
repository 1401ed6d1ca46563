import { assert, describe, it } from "@effect/vitest";
import { cutCall, cutHosted, goOn, sentences } from "../../../src/provider/Continuation.ts";
import { added, built, refused, type Story } from "../continuation/Story.ts";
import * as F from "./Frames.ts";

const body = { model: "claude-opus-4-6", max_tokens: 100, stream: true, messages: [{ role: "user", content: "hi" }] };
const next = (story: Omit<Story, "body">) => added("anthropic-messages", "messages", { body, ...story });

const text = (index: number, ...words: ReadonlyArray<string>) => [
  F.open(index, { type: "text", text: "" }),
  ...words.map((word) => F.delta(index, { type: "text_delta", text: word })),
];
const thinking = (index: number) => [
  F.open(index, { type: "thinking", thinking: "", signature: "" }),
  F.delta(index, { type: "thinking_delta", thinking: "hm " }),
  F.delta(index, { type: "thinking_delta", thinking: "so" }),
  F.delta(index, { type: "signature_delta", signature: "c2ln" }),
];
const call = (index: number, name = "bash") => [
  F.tool(index, name),
  F.args(index, '{"cmd":'),
  F.args(index, '"ls"}'),
  F.close(index),
];
const use = (index: number, name = "bash") => ({
  type: "tool_use",
  id: `toolu_${index}`,
  name,
  input: { cmd: "ls" },
});
const result = (index: number, content: unknown, failed = false) => ({
  type: "tool_result",
  tool_use_id: `toolu_${index}`,
  content,
  ...(failed ? { is_error: true } : {}),
});
const user = (...content: ReadonlyArray<object>) => ({ role: "user", content });
const assistant = (...content: ReadonlyArray<object>) => ({ role: "assistant", content });
const words = (said: string) => ({ type: "text", text: said });

describe("Continuation of Anthropic Messages", () => {
  it("asks to go on with a text that was cut, and never prefills", () => {
    assert.deepStrictEqual(next({ frames: [F.start, ...text(0, "one ", "two ")] }), [
      assistant(words("one two ")),
      user(words(goOn)),
    ]);
  });

  it("repeats the request where nothing was kept", () => {
    assert.deepStrictEqual(next({ frames: [F.start, ...text(0, " \n")] }), []);
    assert.deepStrictEqual(next({ frames: [F.start, ...thinking(0)] }), []);
    assert.deepStrictEqual(next({ frames: [F.start, F.tool(0, "bash"), F.args(0, '{"cm')] }), []);
  });

  it("gives the result of a settled call, first in the message behind it and without prose", () => {
    const frames = [F.start, ...text(0, "look"), F.close(0), ...call(1)];
    assert.deepStrictEqual(next({ frames, calls: { "0.0": "settled" }, results: { "0.0": "a.txt" } }), [
      assistant(words("look"), use(1)),
      user(result(1, "a.txt")),
    ]);
  });

  it("closes parallel calls, each by what became of it", () => {
    const frames = [F.start, ...call(0), ...call(1), ...call(2), ...call(3), ...call(4), ...call(5)];
    const calls = {
      "0.0": "settled",
      "0.1": "settled",
      "0.2": "not_run",
      "0.3": "unknown",
      "0.4": "it_ran",
      "0.5": "it_did_not_run",
    } as const;
    assert.deepStrictEqual(next({ frames, calls, results: { "0.0": [{ type: "text", text: "ok" }] } }), [
      assistant(use(0), use(1), use(2), use(3), use(4), use(5)),
      user(
        result(0, [{ type: "text", text: "ok" }]),
        result(1, sentences.settled),
        result(2, sentences.not_run, true),
        result(3, sentences.unknown, true),
        result(4, sentences.it_ran),
        result(5, sentences.it_did_not_run, true),
      ),
    ]);
  });

  it("treats a complete call without a ledger entry as one that may have run", () => {
    assert.deepStrictEqual(next({ frames: [F.start, ...call(0)] }), [
      assistant(use(0)),
      user(result(0, sentences.unknown, true)),
    ]);
  });

  it("leaves out a call that was cut, and says so where the text goes on", () => {
    const frames = [F.start, ...text(0, "look"), F.close(0), F.tool(1, "bash"), F.args(1, '{"cmd":"l')];
    assert.deepStrictEqual(next({ frames }), [assistant(words("look")), user(words(`${cutCall} ${goOn}`))]);
    const beside = [F.start, ...call(0), F.tool(1, "bash"), F.args(1, '{"cmd":"l')];
    assert.deepStrictEqual(next({ frames: beside, calls: { "0.0": "settled" }, results: { "0.0": "x" } }), [
      assistant(use(0)),
      user(result(0, "x")),
    ]);
  });

  it("keeps thinking with its signature as it came, and drops one that was cut or would stand last", () => {
    const whole = { type: "thinking", thinking: "hm so", signature: "c2ln" };
    const frames = [F.start, ...thinking(0), F.close(0), ...call(1)];
    assert.deepStrictEqual(next({ frames, calls: { "0.0": "settled" }, results: { "0.0": "x" } }), [
      assistant(whole, use(1)),
      user(result(1, "x")),
    ]);
    const redacted = { type: "redacted_thinking", data: "b64" };
    const spoken = [F.start, F.open(0, redacted), F.close(0), ...text(1, "so"), F.close(1), ...thinking(2)];
    assert.deepStrictEqual(next({ frames: spoken }), [assistant(redacted, words("so")), user(words(goOn))]);
    const unsigned = [F.start, ...thinking(0).slice(0, 3), F.close(0), ...text(1, "so")];
    assert.deepStrictEqual(next({ frames: unsigned }), [assistant(words("so")), user(words(goOn))]);
  });

  it("keeps a hosted call with its result, and tells of one without", () => {
    const hosted = F.open(0, { type: "server_tool_use", id: "srv_1", name: "web_search", input: {} });
    const answer = { type: "web_search_tool_result", tool_use_id: "srv_1", content: [] };
    const began = [F.start, hosted, F.args(0, '{"query":"x"}'), F.close(0)];
    const search = { type: "server_tool_use", id: "srv_1", name: "web_search", input: { query: "x" } };
    assert.deepStrictEqual(next({ frames: [...began, F.open(1, answer), F.close(1), ...text(2, "it is")] }), [
      assistant(search, answer, words("it is")),
      user(words(goOn)),
    ]);
    assert.deepStrictEqual(next({ frames: [...began, ...text(1, "it is")] }), [
      assistant(words("it is")),
      user(words(`${cutHosted} ${goOn}`)),
    ]);
  });

  it("tells of a lost hosted call in the user's own message where nothing else was kept", () => {
    const frames = [F.start, F.open(0, { type: "server_tool_use", id: "s", name: "code_execution", input: {} })];
    const result = built("anthropic-messages", { body, frames });
    assert.deepInclude(result, {
      success: { ...body, messages: [user(words("hi"), words(cutHosted))] },
    });
  });

  it("goes on with a paused turn and with the caller's own prefill in one assistant message", () => {
    const asked = { type: "server_tool_use", id: "srv_1", name: "web_search", input: {} };
    const paused = { ...body, messages: [...body.messages, assistant(asked)] };
    const answer = { type: "web_search_tool_result", tool_use_id: "srv_1", content: [] };
    const frames = [F.start, F.open(0, answer), F.close(0), ...text(1, "so")];
    assert.deepInclude(built("anthropic-messages", { body: paused, frames }), {
      success: {
        ...body,
        messages: [...body.messages, assistant(asked, answer, words("so")), user(words(goOn))],
      },
    });
  });

  it("makes new ids for calls without one of their own", () => {
    const frames = [F.start, F.tool(0, "bash", "", { cmd: "ls" }), F.close(0)];
    const [answer, results] = next({ frames, calls: { "0.0": "settled" }, results: { "0.0": "x" } });
    assert.deepStrictEqual(answer, assistant({ ...use(0), id: "call00001" }));
    assert.deepStrictEqual(results, user({ ...result(0, "x"), tool_use_id: "call00001" }));
  });

  it("forgets what was withdrawn", () => {
    const frames = [F.start, ...call(0), ...text(1, "later")];
    assert.deepStrictEqual(next({ frames, keepThrough: 5, calls: { "0.0": "settled" }, results: { "0.0": "x" } }), [
      assistant(use(0)),
      user(result(0, "x")),
    ]);
  });

  it("refuses bodies that are not what they claim to be, and answers that must be one JSON document", () => {
    const frames = [F.start, ...text(0, '{"a":')];
    const of = (more: object) => refused("anthropic-messages", { body: { ...body, ...more }, frames });
    assert.deepStrictEqual(of({ messages: "x" }), ["invalid", "messages"]);
    assert.deepStrictEqual(of({ output_config: { format: { type: "json_schema" } } }), [
      "structured_output",
      "output_config.format",
    ]);
  });
});
