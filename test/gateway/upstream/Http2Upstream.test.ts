import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import { http2Server } from "../../client/Http2Server.ts";
import { answer } from "../../client/Server.ts";
import { localhost } from "../../failure/provoked/Certificates.ts";
import { front, post, send } from "../GatewayCases.ts";

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
});
