import { createServer as createHttps } from "node:https";
import type { Socket } from "node:net";
import { inspect } from "node:util";
import { assert, describe, it } from "@effect/vitest";
import { ConfigProvider, Deferred, Effect, Fiber, Stream } from "effect";
import { type ExchangeRecord, ProviderClient, type ProviderClientOptions } from "../../src/client/index.ts";
import { FaultProvider } from "../../src/testing/index.ts";
import { elsewhere, key, localhost } from "../failure/provoked/Certificates.ts";
import { until } from "../Polling.ts";
import { closedPort, listening } from "../Servers.ts";
import { attempt, turns } from "./Attempt.ts";
import { type ProxyServerOptions, proxyServer } from "./EgressProxyServer.ts";
import { protocols } from "./Protocols.ts";
import { answer } from "./Server.ts";

const chat = protocols["openai-chat"];

/** A provider behind TLS, with a certificate for localhost and 127.0.0.1 by default. */
const secureOrigin = (cert = localhost) =>
  Effect.suspend(() => {
    const names: Array<unknown> = [];
    const server = createHttps({ key, cert }, (_, response) => {
      response.writeHead(200, { "content-type": "text/event-stream" }).end(answer);
    });
    server.on("secureConnection", ({ servername }) => names.push(servername));
    return Effect.map(listening(server), (port) => ({ port, names }));
  });

const textOf = (seen: { readonly parts: ReadonlyArray<unknown> }) => JSON.stringify(seen.parts.length);

describe("ProviderClient through an egress proxy", () => {
  for (const secure of [false, true]) {
    it.live(
      `reaches an https provider ${secure ? "over TLS to the proxy" : "over TCP to the proxy"}: TLS is the origin's, and the tunnel is reused`,
      () =>
        Effect.gen(function* () {
          const origin = yield* secureOrigin();
          const proxy = yield* proxyServer({ secure, login: "user:p@ss" });
          const records: Array<ExchangeRecord> = [];
          const client = yield* ProviderClient.make({
            proxy: proxy.url.replace("://", "://user:p%40ss@"),
            tls: { ca: localhost },
            onExchange: (record) => records.push(record),
          });
          for (const _ of [1, 2]) {
            const seen = yield* attempt(client, chat, { url: `https://localhost:${origin.port}/v1/chat/completions` });
            assert.isUndefined(seen.error);
            assert.notStrictEqual(textOf(seen), "0");
            assert.deepStrictEqual(seen.deliveries, ["not_sent", "ambiguous", "accepted"]);
            yield* turns(20);
          }
          assert.deepStrictEqual(origin.names, ["localhost"]);
          assert.deepStrictEqual(
            proxy.asked.map(({ target }) => target),
            [`localhost:${origin.port}`],
          );
          assert.deepStrictEqual(
            records.map(({ reused }) => reused),
            [false, true],
          );
        }),
    );
  }

  it.live(
    "reaches an http provider by CONNECT, too, by a name that only the proxy knows, as set in the environment",
    () =>
      Effect.gen(function* () {
        const server = yield* FaultProvider.make({ script: { answers: [{ content: [{ text: 2 }] }] } });
        const port = Number(new URL(server.endpoint("openai-chat")).port);
        const proxy = yield* proxyServer({ names: { "provider.test": port } });
        const values = { HTTP_PROXY: proxy.url, NO_PROXY: "other.test" };
        const client = yield* ProviderClient.make().pipe(
          Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(values))),
        );
        const url = server.endpoint("openai-chat").replace(/127\.0\.0\.1:\d+/, "provider.test");
        const seen = yield* attempt(client, chat, { url, headers: { authorization: "Bearer key" } });
        assert.isUndefined(seen.error);
        assert.strictEqual(proxy.asked[0]?.target, "provider.test:80");
        assert.notInclude(proxy.asked[0]?.head, "Bearer");
        // A server on this machine needs no proxy.
        assert.isUndefined((yield* attempt(client, chat, { url: server.endpoint("openai-chat") })).error);
        assert.strictEqual(proxy.asked.length, 1);
      }),
  );

  it.live("trusts the origin's certificate only for the origin's name", () =>
    Effect.gen(function* () {
      const origin = yield* secureOrigin(elsewhere);
      const proxy = yield* proxyServer();
      const client = yield* ProviderClient.make({ proxy: proxy.url, tls: { ca: elsewhere } });
      const { error } = yield* attempt(client, chat, { url: `https://localhost:${origin.port}/v1` });
      assert.deepInclude(error?.reason, {
        kind: "transport",
        operation: "connect",
        code: "ERR_TLS_CERT_ALTNAME_INVALID",
        retryable: false,
      });
      yield* until(() => proxy.open() === 0);
    }),
  );

  const says = (text: string) => (socket: Socket) => void socket.end(text);
  const refusals: ReadonlyArray<readonly [string, ProxyServerOptions, string, boolean]> = [
    ["wants another password", { login: "user:other" }, "PROXY_407", false],
    [
      "does not permit the host",
      { instead: says("HTTP/1.1 403 Forbidden\r\n\r\n<html>no</html>") },
      "PROXY_403",
      false,
    ],
    ["cannot reach the origin", { instead: says("HTTP/1.1 502 Bad Gateway\r\n\r\n") }, "PROXY_502", true],
    ["is busy", { instead: says("HTTP/1.1 429 Slow\r\nretry-after: 3\r\n\r\n") }, "PROXY_429", true],
    ["redirects", { instead: says("HTTP/1.1 302 Found\r\nlocation: http://x\r\n\r\n") }, "PROXY_302", false],
    ["hangs up", { instead: (socket) => void socket.end() }, "PROXY_CLOSED", true],
    ["hangs up in its head", { instead: says("HTTP/1.1 200 OK\r\nVia") }, "PROXY_CLOSED", true],
    ["resets", { instead: (socket) => void socket.resetAndDestroy() }, "PROXY_ECONNRESET", true],
    ["sends garbage", { instead: says("\u0000\u0001garbage") }, "PROXY_BAD_RESPONSE", false],
    ["speaks inside the tunnel", { instead: says("HTTP/1.1 200 OK\r\n\r\nhello") }, "PROXY_BAD_RESPONSE", false],
    [
      "sends a head without end",
      { instead: says(`HTTP/1.1 200 OK\r\nx: ${"a".repeat(70_000)}`) },
      "PROXY_HEAD_OVERFLOW",
      false,
    ],
  ];
  for (const [name, options, code, retryable] of refusals) {
    it.live(
      `fails as ${code} if the proxy ${name}: nothing was sent, no socket stays open, no address is revealed`,
      () =>
        Effect.gen(function* () {
          const proxy = yield* proxyServer(options);
          const client = yield* ProviderClient.make({ proxy: proxy.url.replace("://", "://user:hunter2secret@") });
          for (const url of ["https://provider.test/v1", "http://provider.test/v1"]) {
            const { deliveries, error } = yield* attempt(client, chat, { url });
            assert.deepInclude(error?.reason, { kind: "transport", operation: "connect", code, retryable });
            assert.deepStrictEqual(deliveries, ["not_sent"]);
            assert.include(error?.message, code);
            assert.notMatch(inspect(error, { depth: 9 }), /hunter2|dXNlcjpodW50ZXIy|provider\.test/);
          }
          yield* until(() => proxy.open() === 0);
        }),
    );
  }

  it.live("fails with a proxy error if the proxy is unreachable", () =>
    Effect.gen(function* () {
      const client = yield* ProviderClient.make({ proxy: `http://127.0.0.1:${yield* closedPort}` });
      const { error } = yield* attempt(client, chat, { url: "https://provider.test/v1" });
      assert.deepInclude(error?.reason, {
        kind: "transport",
        operation: "connect",
        code: "PROXY_ECONNREFUSED",
        retryable: true,
      });
      // A proxy with an untrusted certificate, and one that does not speak TLS.
      const wrong = yield* proxyServer({ secure: true });
      const plain = yield* proxyServer({ greeting: "HTTP/1.1 400 Bad Request\r\n\r\n" });
      const tls: ReadonlyArray<readonly [string, RegExp]> = [
        [wrong.url, /^PROXY_DEPTH_ZERO_SELF_SIGNED_CERT$/],
        [plain.url.replace("http:", "https:"), /^PROXY_(ERR_SSL_[A-Z_]+|EPROTO|ECONNRESET|CLOSED)$/],
      ];
      for (const [proxy, code] of tls) {
        const client = yield* ProviderClient.make({ proxy, connectMs: 2_000 });
        const { error } = yield* attempt(client, chat, { url: "https://provider.test/v1" });
        assert.deepInclude(error?.reason, { kind: "transport", operation: "connect" });
        assert.match(error?.reason.code ?? "", code);
      }
    }),
  );

  /** A proxy that hangs in a stage of opening a tunnel. */
  const hanging: ReadonlyArray<readonly [string, ProxyServerOptions, string]> = [
    ["CONNECT", { instead: () => undefined }, "PROXY_STALLED"],
    ["its head", { instead: (socket) => void socket.write("HTTP/1.1 200 OK\r\n") }, "PROXY_STALLED"],
    ["TLS of the origin", { instead: (socket) => void socket.write("HTTP/1.1 200 OK\r\n\r\n") }, "CONNECT_STALLED"],
  ];
  for (const [stage, options, code] of hanging) {
    for (const secure of [false, true]) {
      const client = (proxy: { readonly url: string }, more: ProviderClientOptions = {}) =>
        ProviderClient.make({ proxy: proxy.url, tls: { ca: localhost }, ...more });
      it.live(`is limited by the connect timeout in ${stage}${secure ? ", over TLS" : ""}`, () =>
        Effect.gen(function* () {
          const proxy = yield* proxyServer({ ...options, secure });
          const { deliveries, error } = yield* attempt(yield* client(proxy, { connectMs: 150 }), chat, {
            url: "https://localhost/v1",
          });
          assert.deepInclude(error?.reason, { kind: "stalled", clock: "connect", code });
          assert.deepStrictEqual(deliveries, ["not_sent"]);
          yield* until(() => proxy.open() === 0);
        }),
      );

      it.live(`leaves no socket behind if a request is abandoned in ${stage}${secure ? ", over TLS" : ""}`, () =>
        Effect.gen(function* () {
          const proxy = yield* proxyServer({ ...options, secure });
          const fiber = yield* Effect.forkChild(attempt(yield* client(proxy), chat, { url: "https://localhost/v1" }));
          yield* until(() => proxy.asked.length === 1);
          yield* Fiber.interrupt(fiber);
          yield* until(() => proxy.open() === 0);
        }),
      );
    }
  }

  it.live("breaks in the middle of a stream when its proxy does, like a connection", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({
        script: { answers: [{ content: [{ text: 2 }], break: { kind: "stall", at: "event", n: 2 } }] },
      });
      const proxy = yield* proxyServer();
      const client = yield* ProviderClient.make({ proxy: proxy.url });
      const begun = yield* Deferred.make<void>();
      const stream = client.stream({ protocol: chat, url: server.endpoint("openai-chat"), body: {} });
      const fiber = yield* Effect.forkChild(
        Effect.flip(Stream.runForEach(stream, () => Deferred.succeed(begun, undefined))),
      );
      yield* Deferred.await(begun);
      proxy.kill();
      const error = yield* Fiber.join(fiber);
      assert.deepInclude(error.reason, { kind: "transport", operation: "body", retryable: true });
      assert.strictEqual(error.delivery, "accepted");
    }),
  );

  it.live("does not write on a tunnel whose proxy has died: the next request gets a new tunnel", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({ script: { answers: [{ content: [{ text: 1 }] }], after: "repeat" } });
      const proxy = yield* proxyServer();
      const client = yield* ProviderClient.make({ proxy: proxy.url });
      const call = attempt(client, chat, { url: server.endpoint("openai-chat") });
      assert.isUndefined((yield* call).error);
      proxy.kill();
      yield* until(() => proxy.open() === 0);
      yield* until(() => true);
      assert.isUndefined((yield* call).error);
      assert.strictEqual(proxy.asked.length, 2);
    }),
  );

  it.live("closes an idle tunnel after the keep-alive limit", () =>
    Effect.gen(function* () {
      const origin = yield* secureOrigin();
      const proxy = yield* proxyServer();
      const client = yield* ProviderClient.make({ proxy: proxy.url, tls: { ca: localhost }, keepAliveMs: 30 });
      assert.isUndefined((yield* attempt(client, chat, { url: `https://localhost:${origin.port}/v1` })).error);
      yield* until(() => proxy.open() === 0);
    }),
  );

  it.live("is closed with its scope while a tunnel is being opened", () =>
    Effect.gen(function* () {
      const proxy = yield* proxyServer({ instead: () => undefined });
      const begun = yield* Deferred.make<void>();
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* ProviderClient.make({ proxy: proxy.url });
          yield* Effect.forkScoped(attempt(client, chat, { url: "https://provider.test/v1" }));
          yield* until(() => proxy.asked.length === 1);
          yield* Deferred.succeed(begun, undefined);
        }),
      );
      yield* until(() => proxy.open() === 0);
    }),
  );
});
