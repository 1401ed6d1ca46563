/** Stored responses behind one credential, asked for at two gateways over one database. */
import { assert, describe, it } from "@effect/vitest";
import { Effect, Redacted } from "effect";
import * as Databases from "../../recorder/postgres/Databases.ts";
import { serverOf } from "../../Servers.ts";
import { textAnswer } from "../../samples/index.ts";
import { bodies, front, paths, send } from "../GatewayCases.ts";

const secrets = { one: "token-number-one-of-two", two: "token-number-two-of-two" };

describe("two gateways over one database", () => {
  it.live("know which token made a stored response, also after both began anew", () =>
    Effect.gen(function* () {
      const db = yield* Databases.empty;
      const upstream = yield* serverOf((request, response) => {
        request.resume();
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(textAnswer("openai-responses", "hello"));
      });
      const program = {
        db,
        named: [{ name: "team", url: `${upstream}/v1`, headers: [], credential: Redacted.make("sk-operator") }],
        tokens: Object.entries(secrets).map(([name, secret]) => ({
          ...{ name, token: Redacted.make(secret), page: false, metrics: false },
        })),
      };
      const ask = (url: string, name: keyof typeof secrets, path: string, body?: string) =>
        Effect.promise(() =>
          send(`${url}/u/team${path}`, {
            headers: { "x-recovery-token": secrets[name] },
            ...(body === undefined ? {} : { body }),
          }),
        );
      const post = JSON.stringify(bodies["openai-responses"]);
      yield* Effect.scoped(
        Effect.gen(function* () {
          const a = yield* front("http://127.0.0.1:9", program);
          assert.strictEqual((yield* ask(a.url, "one", paths["openai-responses"], post)).status, 200);
          const b = yield* front("http://127.0.0.1:9", program);
          // The fact is put beside the response, and may come a moment after it.
          let status = 404;
          while (status === 404) status = (yield* ask(b.url, "one", "/v1/responses/resp_1")).status;
          assert.strictEqual(status, 200);
        }),
      );
      const c = yield* front("http://127.0.0.1:9", program);
      assert.strictEqual((yield* ask(c.url, "two", "/v1/responses/resp_1")).status, 404);
      const named = JSON.stringify({ ...bodies["openai-responses"], previous_response_id: "resp_1" });
      assert.strictEqual((yield* ask(c.url, "two", "/v1/responses", named)).status, 404);
      assert.strictEqual((yield* ask(c.url, "one", "/v1/responses", named)).status, 200);
    }),
  );
});
