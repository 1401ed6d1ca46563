import { assert, describe, it } from "@effect/vitest";
import { Effect, Redacted } from "effect";
import { bodies, fronted, paths, send } from "../GatewayCases.ts";

const always = { answers: [{ content: [{ text: 1 }], break: { kind: "rst", at: "before_head" } }] } as const;

const metadata = (text: string) =>
  JSON.stringify(bodies["openai-responses"]).replace(/\}$/, `,"client_metadata":${text}}`);

describe("A client's repeat, through the gateway", () => {
  it.live("shares the budget however its JSON is spelt, and without streaming", () =>
    Effect.gen(function* () {
      const { server, url } = yield* fronted(always);
      const ask = (body: string) =>
        Effect.gen(function* () {
          const before = (yield* server.log).length;
          yield* Effect.promise(() => send(`${url}${paths["openai-responses"]}`, { body }));
          return (yield* server.log).length - before;
        });
      assert.strictEqual(yield* ask(metadata('{"session":"s","turn":"t"}')), 4);
      assert.isAtMost(yield* ask(metadata('{"turn":"t","session":"s"}')), 1);
      assert.isAtMost(yield* ask(metadata('{"turn":"t","session":"s"}').replace('"stream":true', '"stream":false')), 1);
      assert.strictEqual(yield* ask(metadata('{"turn":"u","session":"s"}')), 4, "another turn is another request");
    }),
  );

  it.live("is its own, where two tokens send the same bytes without a credential", () =>
    Effect.gen(function* () {
      const token = (name: string) => ({
        name,
        token: Redacted.make(`${name}-${"x".repeat(16)}`),
        page: false,
        metrics: false,
      });
      const { server, url } = yield* fronted(always, { tokens: [token("red"), token("blue")] });
      const ask = (name: string) =>
        Effect.gen(function* () {
          const before = (yield* server.log).length;
          const path = `/t/${name}-${"x".repeat(16)}${paths["openai-responses"]}`;
          yield* Effect.promise(() => send(`${url}${path}`, { body: metadata("{}") }));
          return (yield* server.log).length - before;
        });
      assert.strictEqual(yield* ask("red"), 4);
      assert.strictEqual(yield* ask("blue"), 4);
      assert.isAtMost(yield* ask("red"), 1);
    }),
  );
});
