import { assert, describe, it } from "@effect/vitest";
import type { JsonRecord } from "../../../src/domain/Json.ts";
import { protocol } from "../../../src/provider/ollama/Decode.ts";
import { player } from "../Play.ts";
import { suite } from "../ProtocolSuite.ts";

suite(protocol, {
  folder: new URL("../../fixtures/streams/ollama/", import.meta.url),
  files: {
    "thinking-text.ndjson": { end: "complete", text: 10, reasoning: 16, calls: [], finish: "stop" },
    "tool-calls.ndjson": {
      end: "complete",
      reasoning: 11,
      calls: ["get_weather", "get_weather"],
      inputs: [{ city: "Köln" }, { city: "Rome", unit: "c" }],
      finish: "stop",
    },
    "generate.ndjson": { end: "complete", text: 11, finish: "stop" },
    "length.ndjson": { end: "complete", text: 11, finish: "length" },
    "error-line.ndjson": { end: "server_error", text: 5 },
    "load.ndjson": { end: "complete", text: 0, finish: "load" },
    "no-last-line-end.ndjson": { end: "complete", text: 2, finish: "stop" },
    "truncated.ndjson": { end: "truncated", text: 8 },
  },
  error: '{"error":"the model runner has stopped"}\n',
});

const play = player(protocol);
const said = (message: JsonRecord, more: JsonRecord = {}) => ({ message, done: false, ...more });

describe("lines of Ollama", () => {
  it("reports the calls of a line as begun and ready, after its text", () => {
    const call = { function: { name: "bash", arguments: { cmd: "ls" } } };
    const { seen } = play(said({ content: "So:", tool_calls: [call, call] }), said({ tool_calls: [call] }));
    assert.deepStrictEqual(
      seen.flatMap(({ calls }) => calls.map(({ ordinal, phase }) => `${ordinal} ${phase}`)),
      ["0 input_started", "0 ready", "1 input_started", "1 ready", "2 input_started", "2 ready"],
    );
    assert.isTrue(seen[0]?.text_before_calls);
    assert.strictEqual(seen[0]?.calls[1]?.input, '{"cmd":"ls"}');
  });

  it("fails at the end of a response with arguments that cannot be parsed", () => {
    const call = { function: { name: "bash", arguments: '{"cmd":"l' } };
    const { end, seen } = play(said({ tool_calls: [call] }), said({}, { done: true }));
    assert.deepStrictEqual(
      seen[0]?.calls.map(({ phase }) => phase),
      ["input_started", "input_complete"],
    );
    assert.isTrue(seen[1]?.terminal);
    assert.strictEqual(seen[1]?.failure?.kind, "invalid_tool_input");
    assert.isFalse(end.complete);
  });

  it("takes a line without content for quiet, and a done reason that old servers omit for a stop", () => {
    const { seen } = play(said({ content: "" }), said({}, { done: true }));
    assert.deepInclude(seen[0], { quiet: true, progress: "started" });
    assert.deepInclude(seen[1], { terminal: true, finish: "stop", progress: "started" });
  });

  it("counts a response that only loads or unloads a model as output, so that it is not empty", () => {
    for (const done_reason of ["load", "unload"])
      assert.strictEqual(play(said({}, { done: true, done_reason })).seen[0]?.progress, "output");
  });

  it("shows an image without text", () => {
    const { parts, seen } = play({ image: "aGk=", done: false });
    assert.deepInclude(seen[0], { shows: "text", characters: 0 });
    assert.deepStrictEqual(parts[0]?.content[0]?.file, { mediaType: "image/png", data: "aGk=" });
  });

  it("keeps the first failure, and ignores an error after the marker", () => {
    const broken = play({ error: "no" }, said({}, { done: true }));
    assert.isFalse(broken.end.complete);
    assert.isFalse(broken.seen[1]?.terminal);
    assert.isTrue(play(said({}, { done: true }), { error: "late" }).end.complete);
  });

  it("refuses more calls than its limit", () => {
    const tool_calls = Array.from({ length: 513 }, () => ({ function: { name: "b", arguments: {} } }));
    assert.deepInclude(play(said({ tool_calls })).seen[0]?.failure, { kind: "protocol", reason: "oversize" });
  });
});
