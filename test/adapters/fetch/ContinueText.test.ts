/** A shown text goes on below an SDK that is given a recovering fetch, as it does behind the gateway (DESIGN.md, 16). */
import Anthropic from "@anthropic-ai/sdk";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import OpenAI from "openai";
import { type FetchRecoveryOptions, recoveringFetch } from "../../../src/adapters/fetch/FetchRecovery.ts";
import { honest, type Said, serveModel } from "../relay/seam/HonestModel.ts";

const said: Said = {
  text: "The lock is taken in open() and given back in close(). A second caller waits for it, and goes on once it may.",
};

const fetching = (options: FetchRecoveryOptions) =>
  Effect.acquireRelease(
    Effect.sync(() => recoveringFetch(options)),
    (made) => Effect.promise(made.close),
  );

const outcome = <A>(promise: () => Promise<A>) =>
  Effect.promise(() =>
    promise().then(
      (value) => ({ value, error: undefined }),
      (error: unknown) => ({ value: undefined, error }),
    ),
  );

const chat = (fetch: typeof globalThis.fetch, url: string) => async () => {
  const client = new OpenAI({ apiKey: "k", baseURL: `${url}/v1`, maxRetries: 0, fetch });
  const messages = [{ role: "user" as const, content: "Tell me." }];
  const runner = client.chat.completions.stream({ model: "m", messages });
  return (await runner.finalChatCompletion()).choices[0];
};

describe("recoveringFetch with continueText", () => {
  for (const breakAt of [6, 9, 14]) {
    it.live(
      `auto: openai reads one answer of a response that broke behind event ${breakAt}, and of its continuation`,
      () =>
        Effect.gen(function* () {
          const server = yield* serveModel(honest("openai-chat", said, [breakAt]));
          const seams: Array<string> = [];
          const onEvent: FetchRecoveryOptions["onEvent"] = (event) => {
            if (event._tag === "Continued") seams.push(event.proof);
          };
          const fetch = yield* fetching({ continueText: "auto", onEvent });
          const { error, value } = yield* outcome(chat(fetch, server.url));
          assert.isUndefined(error);
          assert.strictEqual(value?.message.content, said.text);
          assert.strictEqual(value?.finish_reason, "stop");
          assert.deepStrictEqual(seams, ["anchor"]);
          assert.strictEqual(server.asked.length, 2);
        }),
    );
  }

  it.live("auto, with a provider that is declared to take a prefill: its text is not said again", () =>
    Effect.gen(function* () {
      const server = yield* serveModel(honest("anthropic-messages", said, [8]));
      const prefills = [{ origin: server.url, model: "*", form: "trailing" }] as const;
      const fetch = yield* fetching({ continueText: "auto", prefills });
      const client = new Anthropic({ apiKey: "k", baseURL: server.url, maxRetries: 0, fetch });
      const body = { model: "m", max_tokens: 4_000, messages: [{ role: "user" as const, content: "Tell me." }] };
      const { error, value } = yield* outcome(() => client.messages.stream(body).finalText());
      assert.isUndefined(error);
      assert.strictEqual(value, said.text);
      assert.deepStrictEqual(
        server.asked.map(({ prefill }) => prefill !== undefined),
        [false, true],
      );
    }),
  );

  it.live("ask, which is the default: the body breaks, and nothing more is asked for", () =>
    Effect.gen(function* () {
      const server = yield* serveModel(honest("openai-chat", said, [9]));
      const { error } = yield* outcome(chat(yield* fetching({}), server.url));
      assert.isDefined(error);
      assert.strictEqual(server.asked.length, 1);
    }),
  );
});
