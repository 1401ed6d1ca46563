import { assert, describe, it } from "@effect/vitest";
import { Effect, Redacted } from "effect";
import { samples, textAnswer } from "../../samples/index.ts";
import { front, send } from "../GatewayCases.ts";
import { gone, operatorsKey, paired, recording, routeIn, streaming, token } from "./RouteCases.ts";

describe("A route that sets a model", () => {
  it.live(
    "takes no request whose path names a deployment: the path would stay, and the body's model mean nothing",
    () =>
      Effect.gen(function* () {
        const other = yield* recording(streaming(textAnswer("openai-chat", "x")));
        const set = { headers: [], body: [["model", "another"]] as const };
        const { url } = yield* paired(yield* gone, other.url, { route: { set } });
        const got = yield* Effect.promise(() =>
          send(`${url}/t/${token}/u/openai/openai/deployments/mine/chat/completions?api-version=x`, {
            body: '{"messages":[],"stream":true}',
            headers: { "content-type": "application/json" },
          }),
        );
        assert.notStrictEqual(routeIn(got), "second");
        assert.lengthOf(other.asked, 0);
      }),
  );

  it.live("sets it in the path of Bedrock, and leaves the body as it is", () =>
    Effect.gen(function* () {
      const other = yield* recording((response) =>
        response
          .writeHead(200, { "content-type": "application/json" })
          .end(JSON.stringify(samples["bedrock-converse"].document([{ text: "x" }]))),
      );
      const set = { headers: [], body: [["model", "eu.another-v1:0"]] as const };
      const route = { id: "second", upstream: "second", set, drop: { headers: [], body: [] } };
      const dead = yield* gone;
      const { url } = yield* front(dead, {
        named: [
          { name: "bedrock", url: dead, headers: [] },
          { name: "second", url: other.url, headers: [], credential: Redacted.make(operatorsKey) },
        ],
        routes: { bedrock: { movesOn: [], routes: [route] } },
        token,
      });
      const body = '{"messages":[]}';
      for (const call of ["converse", "converse-stream", "invoke", "invoke-with-response-stream"])
        yield* Effect.promise(() =>
          send(`${url}/t/${token}/model/a.model-v1%3A0/${call}`, {
            body: call.startsWith("invoke") ? '{"anthropic_version":"x","max_tokens":9,"messages":[]}' : body,
            headers: { "content-type": "application/json" },
          }),
        );
      assert.deepStrictEqual(
        [...new Set(other.asked.map((asked) => asked.url))],
        [
          "/model/eu.another-v1%3A0/converse",
          "/model/eu.another-v1%3A0/converse-stream",
          "/model/eu.another-v1%3A0/invoke",
          "/model/eu.another-v1%3A0/invoke-with-response-stream",
        ],
      );
      assert.strictEqual(other.asked[0]?.body, body);
    }),
  );
});
