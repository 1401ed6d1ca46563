import { assert, describe, it } from "@effect/vitest";
import { protocol } from "../../../src/provider/code-assist/Decode.ts";
import { codeAssist } from "../../../src/provider/code-assist/Protocol.ts";
import { player } from "../Play.ts";
import { suite } from "../ProtocolSuite.ts";

suite(protocol, {
  folder: new URL("../../fixtures/streams/google-code-assist/", import.meta.url),
  files: {
    "thinking-text.sse": { end: "complete" },
    "function-calls.sse": { end: "complete" },
  },
  error: 'data: {"error":{"code":503,"status":"UNAVAILABLE","message":"overloaded"}}\n\n',
});

describe("Code Assist", () => {
  it("names its own protocol in every part", () => {
    const { parts } = player(protocol)({ response: { candidates: [{ content: { parts: [{ text: "Hi" }] } }] } });
    assert.deepInclude(parts[0], { protocol: "google-code-assist" });
    assert.deepInclude(parts[0]?.observation, { shows: "text", characters: 2 });
  });

  it("does not accept a finish next to an error in the envelope as the marker", () => {
    const candidates = [{ content: { parts: [{ text: "Hi" }] }, finishReason: "STOP" }];
    const { end, seen } = player(protocol)({ response: { candidates, error: { code: 500, status: "INTERNAL" } } });
    assert.strictEqual(seen[0]?.failure?.kind, "server_error");
    assert.isUndefined(seen[0]?.terminal_at_end);
    assert.isFalse(end.complete);
  });

  it("has the address of gemini-cli, and reads choices and limits in the wrapped request", () => {
    const { address } = codeAssist;
    const at = (path: string, query = "") =>
      address.claim({ path, query: new URLSearchParams(query), has: () => false })?.streaming;
    assert.isTrue(at("/v1internal:streamGenerateContent", "alt=sse"));
    assert.isUndefined(at("/v1internal:streamGenerateContent"), "a JSON array has no events");
    assert.isFalse(at("/v1internal:generateContent"));
    assert.isUndefined(at("/v1internal:loadCodeAssist"));
    const body = { request: { contents: [], generationConfig: { candidateCount: 2, maxOutputTokens: 7 } } };
    assert.deepStrictEqual([address.choices(body), address.outputTokens?.(body)], [2, 7]);
    assert.isFalse(address.isRequestBody({ contents: [] }));
  });
});
