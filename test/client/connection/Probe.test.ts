import { connect, createServer as createNet } from "node:net";
import { createServer as createTls, type TLSSocket } from "node:tls";
import { assert, describe, it } from "@effect/vitest";
import { Deferred, Effect, Fiber, Redacted, Stream } from "effect";
import * as Connector from "../../../src/client/connection/Connector.ts";
import * as EgressProxy from "../../../src/client/connection/EgressProxy.ts";
import * as Probe from "../../../src/client/connection/Probe.ts";
import { ProviderClient } from "../../../src/client/index.ts";
import type { Delivery } from "../../../src/domain/AttemptFacts.ts";
import { AttemptPath, type Path } from "../../../src/paths/Path.ts";
import { askAfterMs, askGridMs } from "../../../src/runtime/contract/Clocks.ts";
import { elsewhere, expired, key, localhost } from "../../failure/provoked/Certificates.ts";
import { until } from "../../Polling.ts";
import { closedPort, listening } from "../../Servers.ts";
import { silentServer } from "../Attempt.ts";
import { type ProxyServerOptions, proxyServer } from "../EgressProxyServer.ts";
import { protocols } from "../Protocols.ts";

/** A server behind TLS that counts its connections and records their bytes. */
const secure = (cert = localhost) =>
  Effect.suspend(() => {
    const sockets = new Set<TLSSocket>();
    let bytes = 0;
    const server = createTls({ key, cert }, (socket) => {
      sockets.add(socket);
      socket.on("error", () => undefined).on("close", () => sockets.delete(socket));
      socket.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
    });
    return Effect.map(listening(server), (port) => ({ port, sockets, bytes: () => bytes }));
  });

const connector = (proxy?: string, ca = localhost) =>
  Connector.make({
    connectMs: 5_000,
    tls: { ca },
    proxy: EgressProxy.useOne(proxy === undefined ? undefined : EgressProxy.read(proxy)),
  });

const probe = (origin: string, proxy?: string, limitMs?: number, ca?: string) =>
  Probe.connection(connector(proxy, ca), origin, limitMs ?? Probe.probeMs);

/** Long enough for a handshake on a busy machine, short for a test. */
const soon = 300;

describe("a probe", () => {
  it("ends early enough that a silent path is detected within 16 s", () => {
    assert.isBelow(askAfterMs + askGridMs + Probe.probeMs, 16_000);
  });

  it.live(
    "finds a working path with TCP and TLS alone: no byte of a request is sent, and no connection stays open",
    () =>
      Effect.gen(function* () {
        const server = yield* secure();
        assert.deepStrictEqual(yield* probe(`https://localhost:${server.port}`), { _tag: "works" });
        yield* until(() => server.sockets.size === 0);
        assert.strictEqual(server.bytes(), 0);
        const plain = yield* silentServer;
        assert.deepStrictEqual(yield* probe(`http://127.0.0.1:${plain.port}`), { _tag: "works" });
        yield* Deferred.await(plain.closed);
      }),
  );

  it.live("reports a port without a listener and a name that does not resolve", () =>
    Effect.gen(function* () {
      const port = yield* closedPort;
      const refused = { _tag: "failed", reason: "network", code: "ECONNREFUSED" } as const;
      assert.deepStrictEqual(yield* probe(`https://127.0.0.1:${port}`), refused);
      assert.deepStrictEqual(yield* probe(`http://127.0.0.1:${port}`), refused);
      const unknown = yield* probe("https://nowhere.invalid");
      assert.strictEqual(unknown._tag, "failed");
      assert.include(["ENOTFOUND", "EAI_AGAIN"], unknown._tag === "failed" ? unknown.code : "");
    }),
  );

  it.live("does not wait for TLS that hangs, and leaves no socket behind", () =>
    Effect.gen(function* () {
      const silent = yield* silentServer;
      assert.deepStrictEqual(yield* probe(`https://127.0.0.1:${silent.port}`, undefined, soon), {
        _tag: "failed",
        reason: "network",
        code: "CONNECT_STALLED",
      });
      yield* Deferred.await(silent.closed);
    }),
  );

  it.live("leaves no socket behind if it is interrupted", () =>
    Effect.gen(function* () {
      const silent = yield* silentServer;
      const fiber = yield* Effect.forkChild(probe(`https://127.0.0.1:${silent.port}`));
      yield* Deferred.await(silent.accepted);
      yield* Fiber.interrupt(fiber);
      yield* Deferred.await(silent.closed);
    }),
  );

  it.live("opens another connection beside one that hangs, and finds a recovered path with it", () =>
    Effect.gen(function* () {
      const server = yield* secure();
      let opened = 0;
      // The first connection hangs, like one whose first packets were dropped.
      const proxy = yield* proxyServer({
        instead: (socket, { target }) => {
          opened += 1;
          if (opened === 1) return;
          const [, port = ""] = target.split(":");
          const origin = connect(Number(port), "127.0.0.1");
          for (const end of [socket, origin]) end.on("error", () => undefined);
          socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
          socket.pipe(origin);
          origin.pipe(socket);
        },
      });
      assert.deepStrictEqual(yield* probe(`https://localhost:${server.port}`, proxy.url), { _tag: "works" });
      assert.strictEqual(opened, 2);
      yield* until(() => proxy.open() === 0);
    }),
  );

  it.live("distinguishes a wrong certificate from a lost network, because some host answered", () =>
    Effect.gen(function* () {
      const stranger = yield* secure(elsewhere);
      assert.deepStrictEqual(yield* probe(`https://localhost:${stranger.port}`, undefined, undefined, elsewhere), {
        _tag: "failed",
        reason: "certificate",
        code: "ERR_TLS_CERT_ALTNAME_INVALID",
      });
      const old = yield* secure(expired);
      assert.deepStrictEqual(yield* probe(`https://localhost:${old.port}`, undefined, undefined, expired), {
        _tag: "failed",
        reason: "certificate",
        code: "CERT_HAS_EXPIRED",
      });
      const portal = yield* listening(
        createNet((socket) => {
          socket.on("error", () => undefined).end("HTTP/1.1 302 Found\r\nlocation: http://portal.test/\r\n\r\n");
        }),
      );
      const answered = yield* probe(`https://localhost:${portal}`);
      assert.deepInclude(answered, { _tag: "failed", reason: "certificate" });
    }),
  );
});

describe("a probe through an egress proxy", () => {
  const through = (options: ProxyServerOptions, origin: string, limitMs?: number) =>
    Effect.gen(function* () {
      const proxy = yield* proxyServer(options);
      const probed = yield* probe(origin, proxy.url, limitMs);
      yield* until(() => proxy.open() === 0);
      return { probed, asked: proxy.asked.map(({ target }) => target) };
    });

  it.live("requests the tunnel and TLS inside it", () =>
    Effect.gen(function* () {
      const server = yield* secure();
      const found = yield* through({}, `https://localhost:${server.port}`);
      assert.deepStrictEqual(found, { probed: { _tag: "works" }, asked: [`localhost:${server.port}`] });
    }),
  );

  it.live("requests the tunnel of a plain origin, too", () =>
    Effect.gen(function* () {
      const plain = yield* silentServer;
      const found = yield* through({}, `http://127.0.0.1:${plain.port}`);
      assert.deepStrictEqual(found, { probed: { _tag: "works" }, asked: [`127.0.0.1:${plain.port}`] });
    }),
  );

  it.live("finds a dead proxy, and one that does not answer", () =>
    Effect.gen(function* () {
      const dead = yield* probe("https://localhost:1", `http://127.0.0.1:${yield* closedPort}`);
      assert.deepStrictEqual(dead, { _tag: "failed", reason: "network", code: "PROXY_ECONNREFUSED" });
      const { probed } = yield* through({ instead: () => undefined }, "https://localhost:1", soon);
      assert.deepStrictEqual(probed, { _tag: "failed", reason: "network", code: "PROXY_STALLED" });
    }),
  );

  it.live("finds a live proxy whose far side is dead", () =>
    Effect.gen(function* () {
      const refused = yield* through({}, `https://localhost:${yield* closedPort}`);
      assert.deepStrictEqual(refused.probed, { _tag: "failed", reason: "network", code: "PROXY_502" });
      const opened = "HTTP/1.1 200 Connection established\r\n\r\n";
      const hole = yield* through({ instead: (socket) => void socket.write(opened) }, "https://localhost:1", soon);
      assert.deepStrictEqual(hole.probed, { _tag: "failed", reason: "network", code: "CONNECT_STALLED" });
    }),
  );
});

describe("the path of a client's requests", () => {
  it.live("is scheme, host and port, with the proxy first and never its login", () =>
    Effect.gen(function* () {
      const direct = yield* ProviderClient.make({ proxy: "direct" });
      assert.strictEqual(direct.path("https://api.test/v1/messages?key=secret").id, "https://api.test");
      assert.strictEqual(direct.path("http://[::1]:8080/").id, "http://[::1]:8080");
      const behind = yield* ProviderClient.make({ proxy: Redacted.make("http://user:secret@proxy.test:3128") });
      const { id } = behind.path(new URL("https://api.test:8443/v1"));
      assert.strictEqual(id, "https://api.test:8443 via http://proxy.test:3128");
      assert.throws(() => direct.path("api"), TypeError);
    }),
  );

  it.live("identifies credentials by digests", () =>
    Effect.gen(function* () {
      const client = yield* ProviderClient.make();
      const of = (credential: string | Redacted.Redacted<string>) =>
        client.path("https://api.test", { credential }).credential;
      assert.match(of("one") ?? "", /^[0-9a-f]{32}$/);
      assert.strictEqual(of("one"), of(Redacted.make("one")));
      assert.notStrictEqual(of("one"), of("two"));
      assert.notProperty(client.path("https://api.test"), "credential");
      assert.notProperty(client.path("https://api.test", { credential: "" }), "credential");
    }),
  );

  it.live("can be probed in the same way as the client connects", () =>
    Effect.gen(function* () {
      const server = yield* secure();
      const client = yield* ProviderClient.make({ proxy: "direct", tls: { ca: localhost } });
      const stranger = yield* ProviderClient.make({ proxy: "direct" });
      const url = `https://localhost:${server.port}/v1`;
      assert.deepStrictEqual(yield* client.path(url).way?.probe ?? Effect.die("no way"), { _tag: "works" });
      assert.deepInclude(yield* stranger.path(url).way?.probe ?? Effect.die("no way"), { reason: "certificate" });
    }),
  );

  it.live("is reported to the listening run before anything is sent", () =>
    Effect.gen(function* () {
      const server = yield* silentServer;
      const client = yield* ProviderClient.make({ proxy: "direct" });
      const told: Array<Path | Delivery> = [];
      const chat = protocols["openai-chat"];
      const delivery = (now: Delivery) => void told.push(now);
      const url = `http://127.0.0.1:${server.port}/v1`;
      const fiber = yield* Stream.runDrain(client.stream({ protocol: chat, url, body: {}, delivery })).pipe(
        Effect.provideService(AttemptPath, (path) => void told.push(path)),
        Effect.forkChild,
      );
      yield* until(() => told.length === 3);
      yield* Fiber.interrupt(fiber);
      const [path, ...deliveries] = told;
      assert.deepStrictEqual(deliveries, ["not_sent", "ambiguous"]);
      const reported = typeof path === "object" ? path : undefined;
      assert.strictEqual(reported?.id, `http://127.0.0.1:${server.port}`);
      const probed = reported?.way === undefined ? undefined : yield* reported.way.probe;
      assert.deepStrictEqual(probed, { _tag: "works" });
      // An invalid address has no path, and fails as before.
      const asked = yield* Effect.flip(Stream.runDrain(client.stream({ protocol: chat, url: "api", body: {} }))).pipe(
        Effect.provideService(AttemptPath, (told) => assert.fail(String(told))),
      );
      assert.deepInclude(asked.reason, { kind: "caller_failed" });
    }),
  );
});
