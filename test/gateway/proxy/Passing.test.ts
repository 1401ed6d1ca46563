import { createServer } from "node:net";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Redacted } from "effect";
import { proxyServer } from "../../client/EgressProxyServer.ts";
import { until } from "../../Polling.ts";
import { listening, serverOf } from "../../Servers.ts";
import { front, send } from "../GatewayCases.ts";

/** Answers a TLS hello with plain HTTP. */
const withoutTls = Effect.suspend(() =>
  listening(
    createServer((socket) => {
      socket.on("error", () => undefined).end("HTTP/1.1 400 Bad Request\r\n\r\n");
    }),
  ),
);

describe("a request that passes through and fails", () => {
  it.live("is refused with the code of the failure", () =>
    Effect.gen(function* () {
      const port = yield* withoutTls;
      const gateway = yield* front(`https://127.0.0.1:${port}`);
      const got = yield* Effect.promise(() => send(`${gateway.url}/v1/files`));
      assert.strictEqual(got.status, 502);
      assert.match(got.text, /could not be reached \(ERR_SSL_[A-Z_]+\)/);
    }),
  );

  it.live("is refused with the proxy's code if the proxy refuses, and passes through it otherwise", () =>
    Effect.gen(function* () {
      const provider = yield* serverOf((_, response) => void response.end("models"));
      const proxy = yield* proxyServer({ login: "a:b" });
      const way = (pair: string) => Redacted.make(proxy.url.replace("://", `://${pair}@`));
      const gateway = yield* front(provider, {
        named: [
          { name: "good", url: `${provider}/v1`, headers: [], proxy: way("a:b") },
          { name: "bad", url: `${provider}/v1`, headers: [], proxy: way("a:hunter2") },
        ],
      });
      const bad = yield* Effect.promise(() => send(`${gateway.url}/u/bad/v1/files`));
      assert.strictEqual(bad.status, 502);
      assert.match(bad.text, /could not be reached \(PROXY_407\)/);
      assert.notInclude(bad.text, "hunter2");
      const good = yield* Effect.promise(() => send(`${gateway.url}/u/good/v1/files`));
      assert.strictEqual(good.text, "models");
    }),
  );

  it.live("leaves no connection behind if its client disconnects while the tunnel is being opened", () =>
    Effect.gen(function* () {
      const proxy = yield* proxyServer({ instead: () => undefined });
      const gateway = yield* front("http://provider.test", {
        named: [{ name: "far", url: "https://provider.test/v1", headers: [], proxy: Redacted.make(proxy.url) }],
      });
      const controller = new AbortController();
      const asked = fetch(`${gateway.url}/u/far/v1/files`, { signal: controller.signal }).catch(() => undefined);
      yield* until(() => proxy.asked.length === 1);
      controller.abort();
      yield* Effect.promise(() => asked);
      yield* until(() => proxy.open() === 0);
    }),
  );
});
