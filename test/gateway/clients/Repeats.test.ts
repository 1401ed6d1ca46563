import type { ServerResponse } from "node:http";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Redacted } from "effect";
import { until } from "../../Polling.ts";
import { serverOf } from "../../Servers.ts";
import { bodies, front, fronted, paths, post, send } from "../GatewayCases.ts";

const always = { answers: [{ content: [{ text: 1 }], break: { kind: "rst", at: "before_head" } }] } as const;

const metadata = (text: string) =>
  JSON.stringify(bodies["openai-responses"]).replace(/\}$/, `,"client_metadata":${text}}`);

describe.concurrent("A client's repeat, through the gateway", () => {
  it.live("shares the budget with any spelling of its JSON, and without streaming", () =>
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

  it.live("is answered from memory only until a run of the same request has completed: programs sample", () =>
    Effect.gen(function* () {
      const asked: Array<ServerResponse> = [];
      const at = yield* serverOf((_, response) => void asked.push(response));
      const { url } = yield* front(at, { budget: { max_auto_retries: 0 } });
      const isAsked = (count: number) => until(() => asked.length >= count);
      const ask = (headers = {}) => Effect.forkChild(post(url, "openai-chat", { headers }));
      const complete = (response: ServerResponse | undefined) => {
        response?.writeHead(200, { "content-type": "text/event-stream" });
        response?.end('data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n');
      };
      const runs = [yield* ask(), yield* ask()] as const;
      yield* isAsked(2);
      asked[0]?.destroy();
      const marked = { "x-stainless-retry-count": "1" };
      const first = yield* Effect.raceFirst(Fiber.join(runs[0]), Fiber.join(runs[1]));
      assert.strictEqual(first.status, 400);
      assert.strictEqual((yield* post(url, "openai-chat", { headers: marked })).status, 400);
      assert.lengthOf(asked, 2);
      complete(asked[1]);
      assert.deepStrictEqual((yield* Fiber.joinAll(runs)).map(({ status }) => status).sort(), [200, 400]);
      const again = yield* ask(marked);
      yield* isAsked(3);
      complete(asked[2]);
      assert.strictEqual((yield* Fiber.join(again)).status, 200);
    }),
  );

  it.live("is a separate one if two tokens send the same bytes without a credential", () =>
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
