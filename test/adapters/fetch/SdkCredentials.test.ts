/** SDKs whose credentials expire, above a recoveringFetch. */
import Anthropic from "@anthropic-ai/sdk";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import OpenAI, { AzureOpenAI } from "openai";
import type { FetchRecoveryOptions } from "../../../src/adapters/fetch/FetchRecovery.ts";
import type { Answer } from "../../../src/testing/script/FaultScript.ts";
import { setup } from "./Cases.ts";

const whole = { content: [{ text: 3 }] } as const;
const limited: Partial<Answer> = { status: 429, headers: { "retry-after-ms": "10" } };
const expired: Partial<Answer> = {
  status: 401,
  body: { error: { type: "invalid_request_error", message: "expired" } },
};

/** Plays a turn against a script, and gives the token of each request that reached the server. */
const tokens = (
  answers: ReadonlyArray<Partial<Answer>>,
  options: FetchRecoveryOptions,
  turn: (fetch: typeof globalThis.fetch, url: string) => Promise<void>,
) =>
  Effect.gen(function* () {
    const seen: Array<string | null> = [];
    const under: typeof fetch = (input, init) => {
      seen.push(new Headers(init?.headers).get("authorization"));
      return fetch(input, init);
    };
    const { fetch: made, server } = yield* setup({ answers }, { ...options, fetch: under });
    const error = yield* Effect.promise(() =>
      turn(made, server.url).then(
        () => undefined,
        (thrown: unknown) => thrown,
      ),
    );
    return { error, seen };
  });

const counting = () => {
  let count = 0;
  return async () => `token-${count++}`;
};

const chat = async (client: OpenAI) => {
  const messages = [{ role: "user" as const, content: "hi" }];
  const stream = await client.chat.completions.create({ model: "m", stream: true, messages });
  for await (const _chunk of stream);
};

describe("a repeat below an SDK whose token expires", () => {
  for (const [why, first] of [
    ["a limit", limited],
    ["a refusal of the token", expired],
  ] as const) {
    it.live(`carries the token that Azure's own provider gives after ${why}`, () =>
      Effect.gen(function* () {
        const azureADTokenProvider = counting();
        const refreshCredentials = async () => ({ authorization: `Bearer ${await azureADTokenProvider()}` });
        const { error, seen } = yield* tokens([first, whole], { refreshCredentials }, (fetch, url) =>
          chat(new AzureOpenAI({ azureADTokenProvider, apiVersion: "1", baseURL: `${url}/v1`, fetch, maxRetries: 0 })),
        );
        assert.isUndefined(error);
        assert.deepStrictEqual(seen, ["Bearer token-0", "Bearer token-1"]);
      }),
    );

    it.live(`carries the key that OpenAI's own key function gives after ${why}`, () =>
      Effect.gen(function* () {
        const apiKey = counting();
        const refreshCredentials = async () => ({ authorization: `Bearer ${await apiKey()}` });
        const { error, seen } = yield* tokens([first, whole], { refreshCredentials }, (fetch, url) =>
          chat(new OpenAI({ apiKey, baseURL: `${url}/v1`, fetch, maxRetries: 0 })),
        );
        assert.isUndefined(error);
        assert.deepStrictEqual(seen, ["Bearer token-0", "Bearer token-1"]);
      }),
    );
  }

  it.live("leaves a refusal of the token to Anthropic's own cache, which asks for a new one", () =>
    Effect.gen(function* () {
      const next = counting();
      const credentials = async () => ({ token: await next(), expiresAt: null });
      const { error, seen } = yield* tokens([expired, whole], {}, async (fetch, url) => {
        const client = new Anthropic({ credentials, baseURL: url, fetch, maxRetries: 1 });
        const messages = [{ role: "user" as const, content: "hi" }];
        const stream = await client.messages.create({ model: "m", max_tokens: 9, stream: true, messages });
        for await (const _event of stream);
      });
      assert.isUndefined(error);
      assert.deepStrictEqual(seen, ["Bearer token-0", "Bearer token-1"]);
    }),
  );
});
