import { assert, describe, it } from "@effect/vitest";
import { cutCall, cutHosted, goOn, sentences } from "../../../src/provider/Continuation.ts";
import { added, built, refused, type Story } from "../continuation/Story.ts";

const contents = [{ role: "user", parts: [{ text: "hi" }] }];
const body = { contents, tools: [] };
const next = (story: Omit<Story, "body">) => added("google-gemini", "contents", { body, ...story });

const chunk = (...parts: ReadonlyArray<object>) => ({ candidates: [{ index: 0, content: { role: "model", parts } }] });
const call = (id?: string, more: object = {}) => ({
  functionCall: { ...(id === undefined ? {} : { id }), name: "bash", args: { cmd: "ls" } },
  ...more,
});
const response = (said: object, id?: string) => ({
  functionResponse: { ...(id === undefined ? {} : { id }), name: "bash", response: said },
});
const model = (...parts: ReadonlyArray<object>) => ({ role: "model", parts });
const user = (...parts: ReadonlyArray<object>) => ({ role: "user", parts });
const text = (said: string) => ({ text: said });

describe("Continuation of Gemini", () => {
  it("asks to go on with a text that was cut, and never prefills; thoughts stay out", () => {
    const frames = [chunk({ text: "hm", thought: true }), chunk(text("one ")), chunk(text("two "))];
    assert.deepStrictEqual(next({ frames }), [model(text("one two ")), user(text(goOn))]);
  });

  it("repeats the request where nothing was kept", () => {
    assert.deepStrictEqual(next({ frames: [chunk({ text: "hm", thought: true }), chunk(text(""))] }), []);
    assert.deepStrictEqual(next({ frames: [chunk({ text: "", thoughtSignature: "s" })] }), []);
  });

  it("gives every call its response in the content behind it, with ids and signatures where they were", () => {
    const frames = [
      chunk(text("look")),
      chunk(call("f0", { thoughtSignature: "sig" }), call("f1")),
      chunk(call("f2")),
      chunk(call("f3")),
    ];
    const calls = { "0.0": "settled", "0.1": "not_run", "0.2": "settled", "0.3": "it_ran" } as const;
    assert.deepStrictEqual(next({ frames, calls, results: { "0.0": { files: ["a"] } } }), [
      model(text("look"), call("f0", { thoughtSignature: "sig" }), call("f1"), call("f2"), call("f3")),
      user(
        response({ files: ["a"] }, "f0"),
        response({ error: sentences.not_run }, "f1"),
        response({ output: sentences.settled }, "f2"),
        response({ output: sentences.it_ran }, "f3"),
      ),
    ]);
    assert.deepStrictEqual(next({ frames: [chunk(call())], calls: { "0.0": "settled" }, results: { "0.0": "x" } }), [
      model(call()),
      user(response({ output: "x" })),
    ]);
  });

  it("joins arguments that came in pieces, and leaves out a call that was cut", () => {
    const piece = (more: object, partialArgs: ReadonlyArray<object>, willContinue: boolean) =>
      chunk({ functionCall: { ...more, partialArgs, willContinue } });
    const begin = piece({ name: "bash" }, [{ jsonPath: "$.cmd", stringValue: "l", willContinue: true }], true);
    const rest = piece({}, [{ jsonPath: "$.cmd", stringValue: "s" }], false);
    assert.deepStrictEqual(next({ frames: [begin, rest] }), [
      model(call()),
      user(response({ error: sentences.unknown })),
    ]);
    assert.deepStrictEqual(next({ frames: [chunk(text("look")), begin] }), [
      model(text("look")),
      user(text(`${cutCall} ${goOn}`)),
    ]);
  });

  it("keeps a signed text apart from the texts around it", () => {
    const signed = { text: "two", thoughtSignature: "sig" };
    assert.deepStrictEqual(next({ frames: [chunk(text("one")), chunk(signed), chunk(text("three"))] }), [
      model(text("one"), signed, text("three")),
      user(text(goOn)),
    ]);
  });

  it("keeps Google's own tools with their results, and tells of one without", () => {
    const code = { executableCode: { language: "PYTHON", code: "1+1" } };
    const done = { codeExecutionResult: { outcome: "OUTCOME_OK", output: "2" } };
    assert.deepStrictEqual(next({ frames: [chunk(code), chunk(done), chunk(text("two"))] }), [
      model(code, done, text("two")),
      user(text(goOn)),
    ]);
    assert.deepStrictEqual(next({ frames: [chunk(text("so")), chunk(code)] }), [
      model(text("so")),
      user(text(`${cutHosted} ${goOn}`)),
    ]);
  });

  it("goes on inside the request of Code Assist", () => {
    const frames = [{ response: chunk(text("one")) }];
    assert.deepInclude(built("google-gemini", { body: { project: "p", request: { contents } }, frames }), {
      success: { project: "p", request: { contents: [...contents, model(text("one")), user(text(goOn))] } },
    });
  });

  it("refuses several candidates, JSON answers and what is not what it claims to be", () => {
    const of = (more: object) => refused("google-gemini", { body: { ...body, ...more }, frames: [chunk(text("{"))] });
    assert.deepStrictEqual(of({ contents: "hi" }), ["invalid", "contents"]);
    assert.deepStrictEqual(of({ generationConfig: { candidateCount: 2 } }), [
      "several_choices",
      "generationConfig.candidateCount",
    ]);
    assert.deepStrictEqual(of({ generationConfig: { responseMimeType: "application/json" } }), [
      "structured_output",
      "generationConfig.responseMimeType",
    ]);
  });
});
