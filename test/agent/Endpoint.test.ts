/**
 * Where requests go, and that no key is stored.
 */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Exit } from "effect";
import { checked, endpoint } from "../../src/agent/Endpoint.ts";

describe("An address", () => {
  const cases = [
    ["openai-chat", "https://api.openai.com/v1", "https://api.openai.com/v1/chat/completions"],
    ["openai-chat", "http://127.0.0.1:4010", "http://127.0.0.1:4010/v1/chat/completions"],
    ["openai-chat", "https://host/chat/completions", "https://host/chat/completions"],
    ["openai-responses", "https://openrouter.ai/api/v1/", "https://openrouter.ai/api/v1/responses"],
    ["anthropic-messages", "https://api.anthropic.com", "https://api.anthropic.com/v1/messages"],
    ["anthropic-messages", "https://host/anthropic", "https://host/anthropic/v1/messages"],
    ["google-gemini", "https://host/v1beta", "https://host/v1beta/models/m%2F1:streamGenerateContent?alt=sse"],
    ["google-gemini", "http://host/s/x", "http://host/s/x/v1beta/models/m%2F1:streamGenerateContent?alt=sse"],
  ] as const;
  for (const [protocol, url, expected] of cases) {
    it(`of ${protocol} at ${url}`, () => assert.strictEqual(endpoint(protocol, url, "m/1"), expected));
  }

  for (const url of ["https://me:key@host/v1", "https://host/v1?api_key=1", "ftp://host", "host"]) {
    it.effect(`is refused: ${url}`, () =>
      Effect.map(Effect.exit(checked(url)), (exit) => assert.isTrue(Exit.isFailure(exit))),
    );
  }
});
