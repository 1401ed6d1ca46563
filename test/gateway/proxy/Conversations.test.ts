/** Conversations of Mistral: a request that may have arrived is not sent again, unless the provider stores nothing. */
import type { ServerResponse } from "node:http";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import type { GatewayProgram } from "../../../src/gateway/GatewayLayers.ts";
import { closedPort, serverOf } from "../../Servers.ts";
import { framesOf, samples } from "../../samples/index.ts";
import { front, send } from "../GatewayCases.ts";

type Answer = (response: ServerResponse) => void;

const sse = { "content-type": "text/event-stream" };
const json = { "content-type": "application/json" };

const { document, failed, frame } = samples["mistral-conversations"];
const frames = framesOf("mistral-conversations", [{ text: "Hello" }]);
const whole = frames.join("");

const complete: Answer = (response) => response.writeHead(200, sse).end(whole);
const reset: Answer = (response) => response.socket?.resetAndDestroy();

const cut =
  (events: number): Answer =>
  (response) => {
    const text = frames.slice(0, events).join("");
    response.writeHead(200, sse).write(text, () => response.socket?.resetAndDestroy());
  };

const refused =
  (status: number): Answer =>
  (response) =>
    response.writeHead(status, { ...json, "retry-after": "0" }).end('{"object":"error","message":"no","type":"x"}');

const failedAt: Answer = (response) => response.writeHead(200, sse).end(failed("no").map(frame).join(""));

const paths = ["/v1/conversations", "/v1/conversations/conv_1", "/v1/conversations/conv_1/restart"];

const played = (answers: ReadonlyArray<Answer>, body: object, path = paths[0], program: GatewayProgram = {}) =>
  Effect.gen(function* () {
    let asked = 0;
    const upstream = yield* serverOf((request, response) => {
      request.resume().on("end", () => {
        asked += 1;
        answers[Math.min(asked, answers.length) - 1]?.(response);
      });
    });
    const gateway = yield* front(upstream, { keepAliveMs: 60_000, ...program });
    const sent = JSON.stringify({ model: "m", inputs: "hi", stream: true, ...body });
    const got = yield* Effect.promise(() => send(`${gateway.url}${path}`, { body: sent }));
    const [run] = yield* gateway.runs;
    return { asked, got, run };
  }).pipe(Effect.scoped);

describe.concurrent("A conversation that the provider stores", () => {
  for (const path of paths)
    it.live(`is not sent again once it may have arrived: ${path}`, () =>
      Effect.gen(function* () {
        for (const first of [reset, cut(0), cut(1), failedAt]) {
          const { asked, run } = yield* played([first, complete], {}, path, { reveal: "on_complete" });
          assert.strictEqual(asked, 1);
          assert.strictEqual(run?.incidents[0]?.decision.rule, "side_effects_unprovable");
        }
      }),
    );

  it.live("is sent again if its provider refused it, or if it was not sent", () =>
    Effect.gen(function* () {
      for (const status of [429, 503]) {
        const { asked, got } = yield* played([refused(status), complete], {});
        assert.deepStrictEqual([asked, got.text], [2, whole], `${status}`);
      }
      const port = yield* closedPort;
      const gateway = yield* front(`http://127.0.0.1:${port}`);
      const body = JSON.stringify({ model: "m", inputs: "hi", stream: true });
      yield* Effect.promise(() => send(`${gateway.url}/v1/conversations`, { body }));
      const [run] = yield* gateway.runs;
      assert.isAbove(run?.attempts.length ?? 0, 1);
    }),
  );

  it.live("as a document is not sent again either", () =>
    Effect.gen(function* () {
      const { asked, got } = yield* played([reset], { stream: false });
      assert.strictEqual(asked, 1);
      assert.isAtLeast(got.status, 400);
    }),
  );

  it.live("that has answered is handed over, even if its connection breaks then", () =>
    Effect.gen(function* () {
      const answered: Answer = (response) => {
        response.writeHead(200, sse).write(whole, () => response.socket?.resetAndDestroy());
      };
      const { asked, got } = yield* played([answered], {});
      assert.deepStrictEqual([asked, got.text], [1, whole]);
    }),
  );
});

describe.concurrent("A conversation that the provider does not store", () => {
  it.live("is repeated while nothing of it was shown", () =>
    Effect.gen(function* () {
      for (const first of [reset, cut(1), failedAt]) {
        const { asked, got } = yield* played([first, complete], { store: false });
        assert.deepStrictEqual([asked, got.text, got.broken], [2, whole, false]);
      }
      const text = JSON.stringify(document([{ text: "Hello" }]));
      const answer: Answer = (response) => response.writeHead(200, json).end(text);
      const { asked, got } = yield* played([reset, answer], { store: false, stream: false });
      assert.deepStrictEqual([asked, got.text], [2, text]);
    }),
  );
});

describe.concurrent("A conversation of OpenAI, which has the same path", () => {
  it.live("passes without recovery", () =>
    Effect.gen(function* () {
      const created: Answer = (response) => response.writeHead(200, json).end('{"id":"conv_1"}');
      const { asked, got, run } = yield* played([created], { inputs: undefined, stream: undefined, metadata: {} });
      assert.deepStrictEqual([asked, got.text, run], [1, '{"id":"conv_1"}', undefined]);
    }),
  );
});
