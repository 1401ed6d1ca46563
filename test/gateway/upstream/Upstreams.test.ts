import { createServer as createHttps, type ServerOptions } from "node:https";
import { createServer } from "node:net";
import { TLSSocket } from "node:tls";
import { assert, describe, it } from "@effect/vitest";
import { ConfigProvider, Effect, Redacted } from "effect";
import type { RelayReporters } from "../../../src/adapters/relay/RelayTransport.ts";
import * as Connections from "../../../src/client/connection/Connections.ts";
import * as Connector from "../../../src/client/connection/Connector.ts";
import * as EgressProxy from "../../../src/client/connection/EgressProxy.ts";
import { Origins, unreachedMs } from "../../../src/client/connection/Origin.ts";
import { of, type Upstream } from "../../../src/gateway/upstream/Upstream.ts";
import * as Upstreams from "../../../src/gateway/upstream/Upstreams.ts";
import { proxyServer } from "../../client/EgressProxyServer.ts";
import { key, localhost } from "../../failure/provoked/Certificates.ts";
import { until } from "../../Polling.ts";
import { listening, serverOf } from "../../Servers.ts";

const reporters: RelayReporters = { delivery: () => undefined, bytes: () => undefined };

/** Sends one request and reads its response to the end. */
const asked = (upstream: Upstream, url: string) =>
  Effect.promise(async () => {
    const exchange = upstream.transport.open({ method: "POST", url, headers: [], body: undefined }, reporters);
    const { status } = await exchange.head();
    let text = "";
    for (let more = await exchange.read(); more !== undefined; more = await exchange.read())
      text += Buffer.concat([...more]).toString();
    return { status, text };
  });

/** The failure of a request that gets no head. */
const failed = (upstream: Upstream, url: string) =>
  Effect.promise(async () => {
    const exchange = upstream.transport.open({ method: "POST", url, headers: [], body: undefined }, reporters);
    return exchange.head().then(
      () => undefined,
      (error: unknown) => (error instanceof Error && "reason" in error ? error.reason : undefined),
    );
  });

const secureServer = (options: ServerOptions = {}, shown: Array<string> = []) =>
  Effect.map(
    listening(
      createHttps({ key, cert: localhost, ...options }, ({ socket }, response) => {
        if (socket instanceof TLSSocket) shown.push(String(socket.getPeerCertificate().subject?.CN));
        response.end("secure");
      }),
    ),
    (port) => ({ url: `https://localhost:${port}` }),
  );

const environment = (values: Record<string, string>) =>
  Effect.provide(ConfigProvider.layer(ConfigProvider.fromUnknown(values)));

describe("the ways to several upstreams", () => {
  it.live("differ in proxy and certificates, and nothing of one is on the way of another", () =>
    Effect.gen(function* () {
      const plain = yield* serverOf((_, response) => void response.end("plain"));
      const secure = yield* secureServer();
      const named = yield* proxyServer({ login: "a:b" });
      const common = yield* proxyServer({ names: { "common.test": Number(new URL(plain).port) } });
      const upstreams = yield* Upstreams.make.pipe(environment({ HTTP_PROXY: common.url }));
      const own = upstreams.reach({ proxy: Redacted.make(named.url.replace("://", "://a:b@")) });
      const direct = upstreams.reach({ proxy: "direct" });
      const trusting = upstreams.reach({ ca: localhost });
      assert.deepStrictEqual(yield* asked(own, `${plain}/`), { status: 200, text: "plain" });
      assert.deepStrictEqual([named.asked.length, common.asked.length], [1, 0]);
      assert.deepStrictEqual(yield* asked(direct, `${plain}/`), { status: 200, text: "plain" });
      assert.deepStrictEqual([named.asked.length, common.asked.length], [1, 0]);
      assert.deepStrictEqual(yield* asked(upstreams.reach({}), "http://common.test/"), { status: 200, text: "plain" });
      assert.deepStrictEqual([named.asked.length, common.asked.length], [1, 1]);
      assert.deepStrictEqual(yield* asked(trusting, `${secure.url}/`), { status: 200, text: "secure" });
      assert.deepInclude(yield* failed(direct, `${secure.url}/`), {
        kind: "transport",
        operation: "connect",
        code: "DEPTH_ZERO_SELF_SIGNED_CERT",
        retryable: false,
      });
    }),
  );

  it.live("show a server that asks for one the certificate of their own, and no other server", () =>
    Effect.gen(function* () {
      const shown: Array<string> = [];
      const { url } = yield* secureServer({ ca: localhost, requestCert: true, rejectUnauthorized: true }, shown);
      const upstreams = yield* Upstreams.make.pipe(environment({}));
      const clientCert = { cert: localhost, key: Redacted.make(key) };
      const own = upstreams.reach({ ca: localhost, clientCert });
      assert.deepStrictEqual(yield* asked(own, `${url}/`), { status: 200, text: "secure" });
      assert.deepStrictEqual(shown, ["test only, valid"]);
      const without = yield* failed(upstreams.reach({ ca: localhost }), `${url}/`);
      assert.deepInclude(without, { kind: "transport" });
    }),
  );

  it.live("give a connection up when their own connect clock is over", () =>
    Effect.gen(function* () {
      // It takes a connection and never speaks TLS.
      const port = yield* listening(createServer(() => undefined));
      const upstreams = yield* Upstreams.make.pipe(environment({}));
      const hasty = yield* failed(upstreams.reach({ connectMs: 50 }), `https://127.0.0.1:${port}/`);
      assert.deepInclude(hasty, { kind: "stalled", clock: "connect" });
      assert.notStrictEqual(upstreams.reach({ connectMs: 50 }), upstreams.reach({}));
    }),
  );

  it.live("know a server that answered a request that passed through: it is away when it cannot be connected to", () =>
    Effect.gen(function* () {
      const url = yield* serverOf((_, response) => void response.end("one"));
      let now = 0;
      const origins = new Origins();
      const parts = { begin: () => () => undefined, monotonicMs: () => now, nowMs: () => 0, origins };
      const connector = Connector.make({ connectMs: 1_000, tls: {}, proxy: EgressProxy.useOne(undefined) });
      const clocks = { now: () => now, nowMs: () => 0 };
      const agent = Connections.open({ connector, keepAliveMs: 1, connections: undefined, origins, ...clocks });
      yield* Effect.addFinalizer(() => Effect.promise(() => agent.destroy()));
      const upstream = of({ ...parts, wire: { agent, connector } });
      now = unreachedMs;
      const request = { method: "GET", url, headers: [], body: undefined, length: undefined };
      const { body } = yield* Effect.promise((signal) => upstream.pass(request, signal));
      body.resume();
      assert.isFalse(origins.of(new URL(url).origin).isWrongAddress(0, 10 * unreachedMs));
    }),
  );

  it.live("are shared where nothing differs", () =>
    Effect.gen(function* () {
      const upstreams = yield* Upstreams.make.pipe(environment({}));
      const proxy = () => Redacted.make("http://user:secret@proxy.test");
      assert.strictEqual(upstreams.reach({}), upstreams.reach({}));
      assert.strictEqual(upstreams.reach({ proxy: proxy() }), upstreams.reach({ proxy: proxy() }));
      assert.notStrictEqual(upstreams.reach({ proxy: "direct" }), upstreams.reach({}));
      assert.strictEqual(upstreams.open(), 3);
    }),
  );

  it.live("refuse a proxy that cannot be read, and do not go direct", () =>
    Effect.gen(function* () {
      const upstreams = yield* Upstreams.make.pipe(environment({}));
      const proxy = Redacted.make("socks5://user:hunter2@proxy.test");
      assert.throws(() => upstreams.reach({ proxy }), /^An upstream's proxy is not of the form http/);
    }),
  );

  it.live("stay as they were for what began on them, and are closed when the last of it has ended", () =>
    Effect.gen(function* () {
      let finish = (): void => undefined;
      let sockets = 0;
      const url = yield* serverOf((request, response) => {
        if (request.url === "/count") {
          sockets += 1;
          request.socket.once("close", () => {
            sockets -= 1;
          });
        }
        response.write("begun");
        finish = () => void response.end(" and ended");
        if (request.url === "/again") finish();
      });
      const upstreams = yield* Upstreams.make.pipe(environment({}));
      const before = upstreams.reach({});
      const exchange = before.transport.open(
        { method: "POST", url: `${url}/count`, headers: [], body: undefined },
        reporters,
      );
      yield* Effect.promise(() => exchange.head());
      upstreams.keep([{ proxy: "direct" }]);
      assert.notStrictEqual(upstreams.reach({}), before);
      assert.strictEqual(upstreams.open(), 2);
      finish();
      yield* Effect.promise(async () => {
        while ((await exchange.read()) !== undefined);
      });
      yield* until(() => sockets === 0 && upstreams.open() === 1);
      // A repeat of a run that began on the old way.
      assert.deepStrictEqual(yield* asked(before, `${url}/again`), { status: 200, text: "begun and ended" });
      yield* until(() => upstreams.open() === 1);
    }),
  );

  it.live("are closed with what they belong to, those that no configuration names any more too", () =>
    Effect.gen(function* () {
      const url = yield* serverOf((_, response) => void response.write("begun"));
      const error = yield* Effect.scoped(
        Effect.gen(function* () {
          const upstreams = yield* Upstreams.make.pipe(environment({}));
          const way = upstreams.reach({});
          const exchange = way.transport.open({ method: "POST", url, headers: [], body: undefined }, reporters);
          yield* Effect.promise(() => exchange.head());
          upstreams.keep([]);
          return Effect.promise(async () => {
            try {
              while ((await exchange.read()) !== undefined);
              return undefined;
            } catch (broken) {
              return broken;
            }
          });
        }),
      ).pipe(Effect.flatten);
      assert.instanceOf(error, Error);
    }),
  );
});
