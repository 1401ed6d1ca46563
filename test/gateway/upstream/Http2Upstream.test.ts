import { once } from "node:events";
import { constants } from "node:http2";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { http2Server } from "../../client/Http2Server.ts";
import { answer } from "../../client/Server.ts";
import { localhost } from "../../failure/provoked/Certificates.ts";
import { withFrames } from "../../failure/provoked/Http2Frames.ts";
import { front, post, send } from "../GatewayCases.ts";

const json = { "content-type": "application/json" };
const refusal = '{"error":{"message":"no","type":"invalid_request_error"}}';
const document =
  '{"id":"a","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"hi"},"finish_reason":"stop"}]}';

const askedOf = (upstream: string, body: string, path = "/chat/completions") =>
  Effect.gen(function* () {
    const named = [{ name: "two", url: upstream, headers: [], ca: localhost, http: 2 as const }];
    const { url } = yield* front("http://127.0.0.1:1", { named });
    return yield* Effect.promise(() => send(`${url}/u/two/v1${path}`, { body, headers: json }));
  });

/** More than a server has to read before it answers. */
const large = JSON.stringify({
  model: "m",
  stream: true,
  messages: [{ role: "user", content: "a".repeat(3_000_000) }],
});

describe("an upstream over HTTP/2", () => {
  it.live("gets a relayed request whole, and its response goes back byte for byte, its headers in their order", () =>
    Effect.gen(function* () {
      const server = yield* http2Server((stream) => {
        stream.respond({ ":status": 200, "content-type": "text/event-stream", "x-b": "1", "x-a": ["2", "3"] });
        stream.end(answer);
      });
      const named = [{ name: "two", url: server.url, headers: [], ca: localhost, http: 2 as const }];
      const { url } = yield* front("http://127.0.0.1:1", { named });
      const got = yield* post(`${url}/u/two`, "openai-chat", {
        headers: ["host", "127.0.0.1", "X-Name", "a", "x-name", "b", "authorization", "Bearer k"],
      });
      assert.strictEqual(got.text, answer);
      const flat = got.rawHeaders.join("\n");
      assert.include(flat, "content-type\ntext/event-stream\nx-b\n1\nx-a\n2\nx-a\n3");
      assert.notInclude(flat, ":status");
      assert.strictEqual(server.streams[0]?.headers["x-name"], "a, b");
      assert.strictEqual(server.streams[0]?.headers.authorization, "Bearer k");
    }),
  );

  it.live("is passed a body as it comes, and gives its response as it comes", () =>
    Effect.gen(function* () {
      const server = yield* http2Server((stream) => {
        stream.respond({ ":status": 201, "x-kind": "file" });
        stream.pipe(stream);
      });
      const named = [{ name: "two", url: server.url, headers: [], ca: localhost, http: 2 as const }];
      const { url } = yield* front("http://127.0.0.1:1", { named });
      const body = "a file\n".repeat(100_000);
      const got = yield* Effect.promise(() =>
        send(`${url}/u/two/v1/files`, { body, headers: { "content-type": "text/plain" } }),
      );
      assert.strictEqual(got.status, 201);
      assert.strictEqual(got.text, body);
    }),
  );

  for (const [what, status, stream, text] of [
    ["a document", 200, false, document],
    ["a refusal", 401, true, refusal],
    ["a refusal of a document", 401, false, refusal],
  ] as const)
    for (const length of [undefined, String(text.length)])
      it.live(`gives ${what} whole, by one request, ${length === undefined ? "without" : "with"} its length`, () =>
        Effect.gen(function* () {
          const server = yield* http2Server((it) => {
            it.respond({ ":status": status, ...json, ...(length === undefined ? {} : { "content-length": length }) });
            it.end(text);
          });
          const got = yield* askedOf(server.url, JSON.stringify({ model: "m", stream, messages: [] }));
          assert.deepStrictEqual([got.status, got.text, got.broken], [status, text, false]);
          assert.strictEqual(server.streams.length, 1);
        }),
      );

  for (const path of ["/chat/completions", "/files"])
    it.live(`gives ${path} the whole answer of one that reads no more of the request`, () =>
      Effect.gen(function* () {
        const server = yield* http2Server((it) => {
          it.once("data", () => {
            it.pause();
            it.respond({ ":status": 413, ...json });
            it.end(refusal);
          });
        });
        const got = yield* askedOf(server.url, large, path);
        assert.deepStrictEqual([got.status, got.text, got.broken], [413, refusal, false]);
        assert.strictEqual(server.streams.length, 1);
        const [asked] = server.streams;
        if (asked?.stream.closed === false) yield* Effect.promise(() => once(asked.stream, "close"));
        assert.strictEqual(asked?.stream.rstCode, constants.NGHTTP2_CANCEL);
      }),
    );

  for (const [what, isEnded, body] of [
    ["whole where it has said its end", true, large],
    ["broken where it has not", false, "{}"],
  ] as const)
    it.live(`that answers and closes its stream in the same breath: the answer is ${what}`, () =>
      Effect.promise(() =>
        withFrames(
          (frames, stream) =>
            frames.together(() => {
              frames.head(stream);
              frames.data(stream, refusal);
              if (isEnded) frames.end(stream);
              frames.reset(stream, constants.NGHTTP2_NO_ERROR);
            }),
          async (port) => {
            const asked = askedOf(`https://localhost:${port}/v1`, body, "/files");
            const got = await Effect.runPromise(Effect.scoped(asked));
            assert.deepStrictEqual([got.text, got.broken], [refusal, !isEnded]);
          },
        ),
      ),
    );
});
