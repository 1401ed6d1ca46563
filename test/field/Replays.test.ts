/**
 * Breaks responses that do not stream, in the ways of the field: each is replayed until its first byte has reached the client.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { documentBytesMax } from "../../src/adapters/relay/WholeBody.ts";
import { type WireExample, wires } from "../../src/gateway/wires/Wires.ts";
import { front, type Got, send } from "../gateway/GatewayCases.ts";
import { serverOf } from "../Servers.ts";

type Answer = (response: ServerResponse, asked: IncomingMessage) => void;

const json = { "content-type": "application/json" };

const whole: Answer = (response) => response.writeHead(200, json).end('{"input_tokens":3}');

/** Some faults need the head to be on its way before the socket breaks. */
const breaks = (response: ServerResponse, written: string): void => {
  response.write(written, () => response.socket?.resetAndDestroy());
};

interface Fault {
  readonly named: string;
  readonly answer: Answer;
}

const faults: ReadonlyArray<Fault> = [
  { named: "a reset before the head", answer: (response) => response.socket?.resetAndDestroy() },
  { named: "a clean end before the head", answer: (response) => response.socket?.end() },
  { named: "a reset in the body", answer: (response) => breaks(response.writeHead(200, json), '{"input_') },
  {
    named: "a body shorter than its length",
    answer: (response) => {
      response.writeHead(200, { ...json, "content-length": "18" });
      response.write('{"input_', () => response.socket?.end());
    },
  },
  { named: "JSON that stops", answer: (response) => response.writeHead(200, json).end('{"input_') },
  {
    named: "429 with a wait",
    answer: (response) => response.writeHead(429, { ...json, "retry-after": "0" }).end('{"error":{"message":"slow"}}'),
  },
  {
    named: "503 of the provider",
    answer: (response) => response.writeHead(503, json).end('{"error":{"type":"server_error","message":"x"}}'),
  },
];

/** Plays a list of answers, the last one from then on. */
const played = (answers: ReadonlyArray<Answer>, { body: field, method, target }: WireExample, headers = {}) =>
  Effect.gen(function* () {
    const asked: Array<string> = [];
    const provider = yield* serverOf((request, response) => {
      let text = "";
      request.on("data", (chunk: Buffer) => {
        text += chunk.toString();
      });
      request.on("end", () => {
        asked.push(`${request.method} ${request.url} ${text}`);
        answers[Math.min(asked.length, answers.length) - 1]?.(response, request);
      });
    });
    const gateway = yield* front(provider);
    const body = JSON.stringify({ model: "m", input: "x", prompt: "x", contents: [], messages: [], ...field });
    const sending = { method, headers: { ...json, ...headers }, ...(method === "POST" ? { body } : {}) };
    const got = yield* Effect.promise(() => send(`${gateway.url}${target}`, sending));
    return { asked, gateway, got };
  });

const rows = wires.filter(({ treatment }) => treatment === "replayed");

const isGood = (got: Got, attempts: number): void => {
  assert.strictEqual(got.status, 200, got.text);
  assert.strictEqual(got.text, '{"input_tokens":3}');
  assert.isFalse(got.broken);
  assert.strictEqual(got.headers["x-recovery-attempts"], String(attempts));
};

describe.concurrent("a response that does not stream", () => {
  for (const { examples, name } of rows)
    for (const { answer, named } of faults)
      it.live(`is requested again after ${named}: ${name}`, () =>
        Effect.gen(function* () {
          for (const example of examples) {
            const { asked, got } = yield* played([answer, whole], example);
            isGood(got, 2);
            assert.lengthOf(asked, 2);
            assert.strictEqual(asked[0], asked[1]);
          }
        }),
      );

  for (const { examples, name } of rows) {
    const [example] = examples;
    if (example === undefined) continue;

    it.live(`is requested at most four times, and its client learns the end: ${name}`, () =>
      Effect.gen(function* () {
        const reset: Answer = (response) => response.socket?.resetAndDestroy();
        const { asked, got } = yield* played([reset], example);
        assert.lengthOf(asked, 4);
        assert.strictEqual(got.status, 400);
        assert.strictEqual(got.headers["x-should-retry"], "false");
      }),
    );

    it.live(`passes a refusal that no repeat changes unchanged: ${name}`, () =>
      Effect.gen(function* () {
        const refusal = '{"error":{"type":"invalid_request_error","message":"no such model"}}';
        const { asked, got } = yield* played([(response) => response.writeHead(404, json).end(refusal)], example);
        assert.lengthOf(asked, 1);
        assert.strictEqual(got.status, 404);
        assert.strictEqual(got.text, refusal);
      }),
    );
  }

  it.live("passes on as it comes beyond the limit of a document", () =>
    Effect.gen(function* () {
      const piece = "x".repeat(1024 * 1024);
      const large: Answer = (response) => {
        response.writeHead(200, json);
        for (let at = 0; at <= documentBytesMax / piece.length; at += 1) response.write(piece);
        response.end();
      };
      const { asked, got } = yield* played([large], { method: "POST", target: "/v1/embeddings" });
      assert.lengthOf(asked, 1);
      assert.strictEqual(got.body.byteLength, documentBytesMax + piece.length);
      assert.isFalse(got.broken);
    }),
  );

  it.live("is sent once if the length of its request is not known", () =>
    Effect.gen(function* () {
      const chunked = { "transfer-encoding": "chunked" };
      const reset: Answer = (response) => response.socket?.resetAndDestroy();
      const { asked, got } = yield* played([reset, whole], { method: "POST", target: "/v1/embeddings" }, chunked);
      assert.lengthOf(asked, 1);
      assert.strictEqual(got.status, 502);
    }),
  );

  it.live("passes a document whose server wraps it with a code and a message of success", () =>
    Effect.gen(function* () {
      const document = '{"code":200,"msg":"ok","data":[{"embedding":[0.5]}]}';
      const wrapped: Answer = (response) => response.writeHead(200, json).end(document);
      const { asked, got } = yield* played([wrapped], { method: "POST", target: "/v1/embeddings" });
      assert.lengthOf(asked, 1);
      assert.strictEqual(got.text, document);
    }),
  );

  it.live("has no calls and no text that a decoder reads: a token count is not an empty answer", () =>
    Effect.gen(function* () {
      const { asked, got } = yield* played([whole], { method: "POST", target: "/v1/messages/count_tokens" });
      assert.lengthOf(asked, 1);
      isGood(got, 1);
      const legacy: Answer = (response) =>
        response
          .writeHead(200, json)
          .end('{"object":"text_completion","choices":[{"text":"","finish_reason":"stop"}]}');
      const empty = yield* played([legacy], { method: "POST", target: "/v1/completions" });
      assert.lengthOf(empty.asked, 1);
    }),
  );
});
