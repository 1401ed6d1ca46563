import { assert, describe, it } from "@effect/vitest";
import * as GeminiArguments from "../../../src/provider/gemini/Arguments.ts";
import * as Gemini from "../../../src/provider/gemini/Decode.ts";
import { decode, encode, endOf } from "../Decoded.ts";
import { suite } from "../ProtocolSuite.ts";

suite(Gemini.protocol, {
  folder: new URL("../../fixtures/streams/google-gemini/", import.meta.url),
  files: {
    "thinking-text.sse": { end: "complete", text: 12, reasoning: 12 },
    "code-stop-in-the-middle.sse": { end: "complete", text: 23, calls: ["code_execution"] },
    "server-tool-cut.sse": { end: "truncated", calls: ["google_search"] },
    "finish-in-every-chunk.sse": { end: "complete", text: 16 },
    "function-calls.sse": {
      end: "complete",
      text: 6,
      calls: ["read_file", "list_dir", "read_file"],
      inputs: [{ path: "a.txt" }, {}, { path: "b.txt" }],
    },
    "streamed-arguments.sse": {
      end: "complete",
      calls: ["book", "ping"],
      inputs: [{ guest: { name: "Ada" }, nights: [3, 4], late: false, note: null }, {}],
    },
    "prompt-blocked.sse": { end: "complete", text: 0, calls: [] },
    "malformed-call.sse": { end: "invalid_tool_input", text: 6, finish: "MALFORMED_FUNCTION_CALL" },
    "open-call-at-stop.sse": { end: "invalid_tool_input", calls: ["book"], inputs: [], finish: "STOP" },
    "open-call-at-limit.sse": { end: "complete", calls: ["book"], inputs: [] },
    "code-execution.sse": { end: "complete", text: 19, calls: ["code_execution"], inputs: [] },
    "hosted-search.sse": { end: "complete", text: 13, calls: ["google_search"], inputs: [] },
    "grounding.sse": { end: "complete", text: 5, calls: ["url_context", "google_search"], inputs: [] },
    "two-candidates.sse": { end: "complete", text: 4 },
    "truncated.sse": { end: "truncated", text: 9 },
    "error.sse": { end: "server_error", text: 7 },
    "safety.sse": { end: "complete", text: 2 },
    "code-assist.sse": { end: "complete", text: 3 },
    "image.sse": { end: "complete", text: 5 },
  },
  error: 'data: {"error":{"code":500,"message":"An internal error has occurred.","status":"INTERNAL"}}\n\n',
});

type Content = Readonly<Record<string, unknown>>;

const chunk = (parts: ReadonlyArray<Content>, finishReason?: string): string =>
  `data: ${JSON.stringify({ candidates: [{ content: { role: "model", parts }, finishReason }] })}\r\n\r\n`;

const run = (frames: ReadonlyArray<string>) => decode(Gemini.protocol, [encode(frames.join(""))]);

const observations = (frames: ReadonlyArray<string>) => run(frames).parts.map((part) => part.observation);

describe("Gemini: the terminal rule", () => {
  it("a finish is the marker only at a clean end, and content without one takes it back", () => {
    const frames = [chunk([{ text: "a" }], "STOP"), chunk([{ text: "b" }]), chunk([{ text: "" }], "STOP")];
    const found = observations(frames).map(({ terminal, terminal_at_end }) => [terminal, terminal_at_end]);
    assert.deepStrictEqual(found, [
      [false, true],
      [false, undefined],
      [false, true],
    ]);
    assert.strictEqual(endOf(run(frames.slice(0, 2)).end), "truncated");
  });

  it("usage, comments and unknown events after the last finish leave it standing", () => {
    const after = [
      "event: tick\ndata: 1s\n\n",
      'data: {"usageMetadata":{"totalTokenCount":3}}\n\n',
      ": bye\n\n",
      'data: {"later":1}\n\n',
    ];
    const decoded = run([chunk([{ text: "a" }], "STOP"), ...after]);
    assert.strictEqual(endOf(decoded.end), "complete");
    for (const part of decoded.parts) assert.isTrue(part.observation.terminal_at_end);
  });

  it("a frame that was cut after a finish says that more was to come", () => {
    for (const cut of ["d", "data: {", 'data: {"candidates":[{"con'])
      assert.strictEqual(endOf(run([chunk([{ text: "a" }], "STOP"), cut]).end), "truncated", cut);
  });

  it("FINISH_REASON_UNSPECIFIED is no finish", () => {
    assert.strictEqual(endOf(run([chunk([{ text: "a" }], "FINISH_REASON_UNSPECIFIED")]).end), "truncated");
  });

  it("every candidate that was asked for must finish", () => {
    const bytes = encode(chunk([{ text: "a" }], "STOP"));
    assert.strictEqual(endOf(decode(Gemini.protocol, [bytes], { choices: 2 }).end), "truncated");
  });

  it("an unexpected tool call is an invalid input, with the marker seen", () => {
    assert.deepInclude(observations([chunk([], "UNEXPECTED_TOOL_CALL")])[0], {
      terminal: true,
      finish: "UNEXPECTED_TOOL_CALL",
      failure: { kind: "invalid_tool_input", in_band: true },
    });
  });

  it("a JSON array, which comes without alt=sse, is no stream", () => {
    assert.deepInclude(run(['[{"candidates":[]}\n,\n']).failure, { reason: "not_a_stream" });
  });
});

describe("Gemini: what a part proves", () => {
  it("a whole function call is ready with its part, arguments or not", () => {
    const [one] = observations([chunk([{ text: "x" }, { functionCall: { name: "f", args: { a: 1 } } }])]);
    assert.deepStrictEqual(
      one?.calls.map(({ phase, input }) => [phase, input]),
      [
        ["input_started", undefined],
        ["ready", '{"a":1}'],
      ],
    );
    assert.isTrue(one?.text_before_calls);
    const [none] = observations([chunk([{ functionCall: { name: "f" } }, { text: "x" }])]);
    assert.strictEqual(none?.calls[1]?.input, "{}");
    assert.strictEqual(none?.text_before_calls, undefined);
  });

  it("code that Google runs is a provider's call, settled by its result", () => {
    const [code, result] = observations([
      chunk([{ executableCode: { code: "1" } }]),
      chunk([{ codeExecutionResult: { outcome: "OUTCOME_OK" } }]),
    ]);
    assert.deepStrictEqual(
      code?.calls.map((call) => [call.tool, call.executor, call.phase]),
      [
        ["code_execution", "provider", "input_started"],
        ["code_execution", "provider", "input_complete"],
      ],
    );
    assert.deepStrictEqual(
      result?.calls.map((call) => [call.ordinal, call.phase]),
      [[0, "settled"]],
    );
  });

  it("thinking counts as output tokens, and tool use as input", () => {
    const usage = { promptTokenCount: 5, toolUsePromptTokenCount: 2, candidatesTokenCount: 3, thoughtsTokenCount: 4 };
    const [part] = observations([`data: ${JSON.stringify({ usageMetadata: usage })}\n\n`]);
    assert.deepInclude(part, { quiet: true, usage: { input_tokens: 7, output_tokens: 7 } });
  });

  it("a signature without text is lifecycle", () => {
    const [part] = observations([chunk([{ text: "", thoughtSignature: "c2ln" }])]);
    assert.deepInclude(part, { progress: "started", shows: "nothing" });
  });
});

describe("Gemini: streamed arguments", () => {
  const build = (...partial: ReadonlyArray<Content>) =>
    GeminiArguments.build(undefined, GeminiArguments.gather([], partial));

  it("are put at their paths", () => {
    const text = build(
      { jsonPath: "$.a.b", stringValue: "x" },
      { jsonPath: "$['a c'][0].d", numberValue: 1 },
      { jsonPath: "$['a c'][1]", boolValue: true },
      { jsonPath: "$.n", nullValue: "NULL_VALUE" },
    );
    assert.deepStrictEqual(JSON.parse(text ?? ""), { a: { b: "x" }, "a c": [{ d: 1 }, true], n: null });
  });

  it("join text that goes on at the same path, and only that", () => {
    const text = build(
      { jsonPath: "$.a", stringValue: "x", willContinue: true },
      { jsonPath: "$.a", stringValue: "y" },
      { jsonPath: "$.b", stringValue: "z", willContinue: true },
      { jsonPath: "$.c", stringValue: "z" },
    );
    assert.deepStrictEqual(JSON.parse(text ?? ""), { a: "xy", b: "z", c: "z" });
  });

  it("cannot reach a prototype, ask for a billion holes or go through a value", () => {
    assert.strictEqual(build({ jsonPath: "$.__proto__.x", stringValue: "y" }), '{"__proto__":{"x":"y"}}');
    assert.strictEqual(Reflect.get({}, "x"), undefined);
    assert.strictEqual(build({ jsonPath: "$.a[999999999]", stringValue: "y" }), undefined);
    assert.strictEqual(build({ jsonPath: "a", stringValue: "y" }), undefined);
    assert.strictEqual(build({ jsonPath: "$..a", stringValue: "y" }), undefined);
  });
});

describe("Gemini: a finish in the middle of a tool of Google's", () => {
  const chunk = (part: object, finishReason: string): Uint8Array =>
    encode(`data: ${JSON.stringify({ candidates: [{ index: 0, content: { parts: [part] }, finishReason }] })}\n\n`);
  const code = { executableCode: { language: "PYTHON", code: "1" } };

  it("STOP is no end before the result has come, and one after it", () => {
    const result = { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } };
    const cut = decode(Gemini.protocol, [chunk(code, "STOP")]);
    assert.strictEqual(endOf(cut.end), "truncated");
    assert.isUndefined(cut.parts[0]?.observation.terminal_at_end);
    assert.strictEqual(endOf(decode(Gemini.protocol, [chunk(code, "STOP"), chunk(result, "STOP")]).end), "complete");
    const twice = [chunk(code, "STOP"), chunk(result, "STOP"), chunk(code, "STOP")];
    assert.strictEqual(endOf(decode(Gemini.protocol, twice).end), "truncated", "the second run has no result");
  });

  it("a limit or a filter ends it there", () => {
    for (const reason of ["MAX_TOKENS", "SAFETY", "OTHER"])
      assert.strictEqual(endOf(decode(Gemini.protocol, [chunk(code, reason)]).end), "complete", reason);
  });
});

describe("Gemini: pieces of arguments past their limit", () => {
  it("are not held: the call is unreadable, and what is kept does not grow", () => {
    let pieces: ReturnType<typeof GeminiArguments.gather> = [];
    for (let index = 0; index < 3 * GeminiArguments.piecesMax; index += 1)
      pieces = GeminiArguments.gather(pieces, [{ jsonPath: `$.c${index}`, stringValue: "x" }]);
    assert.strictEqual(pieces.length, GeminiArguments.piecesMax + 1);
  });
});
