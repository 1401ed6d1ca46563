/** Requests to the newer wires, as their clients send them: what the gateway sends on, holds, repeats and says. */
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { FaultProvider } from "../../../src/testing/index.ts";
import { front, fronted, post, recovery, send } from "../GatewayCases.ts";

const json = (body: object) => JSON.stringify(body);
const text = [{ text: 3 }];

describe.concurrent("Gateway, its newer wires", () => {
  it.live(
    "repeats a chat of Ollama that ended without its last line, although the body does not mention a stream",
    () =>
      Effect.gen(function* () {
        const { server, url } = yield* fronted(
          {
            answers: [{ content: text, break: { kind: "end", at: "terminal" } }, { content: text }],
          },
          { reveal: "on_complete" },
        );
        const body = json({ model: "m", messages: [{ role: "user", content: "hi" }] });
        const got = yield* Effect.promise(() => send(`${url}/api/chat`, { body }));
        assert.deepStrictEqual([got.status, got.broken, recovery(got, "attempts")], [200, false, "2"]);
        assert.strictEqual(got.headers["content-type"], "application/x-ndjson");
        assert.strictEqual(got.headers["x-accel-buffering"], "no");
        const lines = got.text
          .trimEnd()
          .split("\n")
          .map((line) => JSON.parse(line));
        assert.strictEqual(lines.map((line) => line.message.content).join(""), "r2.0·r2.1·r2.2·");
        assert.isTrue(lines.at(-1).done);
        assert.lengthOf(yield* server.log, 2);
      }),
  );

  it.live("says in a line of Ollama why a shown answer broke, and ends no body cleanly for an unknown client", () =>
    Effect.gen(function* () {
      const { url } = yield* fronted({ answers: [{ content: text, break: { kind: "rst", at: "terminal" } }] });
      const got = yield* post(url, "ollama");
      assert.isTrue(got.broken);
      const last = got.text.trimEnd().split("\n").at(-1) ?? "";
      assert.match(JSON.parse(last).error, /^stream-recovery gateway: /);
      assert.include(got.text, "r1.2·");
    }),
  );

  it.live("sends each family to an upstream of its own, and an account's request without recovery", () =>
    Effect.gen(function* () {
      const of = (name: string) =>
        Effect.map(FaultProvider.make({ script: { answers: [{ content: text }], after: "repeat" } }), (server) => ({
          name,
          server,
        }));
      const [ollama, codeAssist, cohere] = [yield* of("ollama"), yield* of("code-assist"), yield* of("cohere")];
      const { url } = yield* front("http://127.0.0.1:1", {
        upstreams: {
          ollama: ollama.server.url,
          "code-assist": codeAssist.server.url,
          cohere: cohere.server.url,
        },
      });
      for (const [protocol, { server }] of [
        ["ollama", ollama],
        ["google-code-assist", codeAssist],
        ["cohere-chat", cohere],
      ] as const) {
        const got = yield* post(url, protocol);
        assert.deepStrictEqual([got.status, recovery(got, "attempts")], [200, "1"], protocol);
        assert.lengthOf(yield* server.log, 1, protocol);
      }
      const account = yield* Effect.promise(() => send(`${url}/v1internal:loadCodeAssist`, { body: json({}) }));
      assert.strictEqual(account.status, 404, "the provider's own answer");
      assert.isUndefined(recovery(account, "run"));
      const pulled = yield* Effect.promise(() => send(`${url}/api/pull`, { body: json({ model: "m" }) }));
      assert.strictEqual(recovery(pulled, "refused"), "vendor");
    }),
  );

  it.live("repeats a cut completion, and passes an empty one on", () =>
    Effect.gen(function* () {
      const { server, url } = yield* fronted({
        answers: [{ content: text, break: { kind: "end", at: "after_head" } }, { content: [] }],
      });
      const got = yield* post(url, "openai-completions");
      assert.deepStrictEqual([got.status, got.broken, recovery(got, "attempts")], [200, false, "2"]);
      assert.lengthOf(yield* server.log, 2);
    }),
  );
});
