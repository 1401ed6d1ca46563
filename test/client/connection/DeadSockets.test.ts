import { execFileSync, spawnSync } from "node:child_process";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import { connect as connectTo, type Socket } from "node:net";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Connections from "../../../src/client/connection/Connections.ts";
import * as Connector from "../../../src/client/connection/Connector.ts";
import * as EgressProxy from "../../../src/client/connection/EgressProxy.ts";
import { Exchange } from "../../../src/client/connection/Exchange.ts";
import { Origins } from "../../../src/client/connection/Origin.ts";
import { pathTo } from "../../../src/client/connection/OriginPath.ts";
import { localhost } from "../../failure/provoked/Certificates.ts";
import { until } from "../../Polling.ts";
import { listening } from "../../Servers.ts";
import { turns } from "../Attempt.ts";
import { proxyServer } from "../EgressProxyServer.ts";

/** Connections with clocks that a test sets, so that a connection is idle at once. */
const made = (options: { readonly proxy?: string } = {}) =>
  Effect.gen(function* () {
    const clock = { monotonic: 0, wall: 0 };
    const origins = new Origins();
    const proxy = EgressProxy.useOne(options.proxy === undefined ? undefined : EgressProxy.read(options.proxy));
    const connector = Connector.make({ connectMs: 5_000, tls: { ca: localhost }, proxy });
    const agent = yield* Connections.make({
      connector,
      keepAliveMs: 600_000,
      connections: undefined,
      origins,
      now: () => clock.monotonic,
      nowMs: () => clock.wall,
    });
    const send = (origin: string): Exchange => {
      const exchange = new Exchange({}, () => clock.monotonic);
      const request = { origin, path: "/", method: "POST", headers: {}, body: Buffer.from("{}") } as const;
      connector.withWaiting(exchange, () => agent.dispatch(request, exchange));
      return exchange;
    };
    const whole = (origin: string) =>
      Effect.gen(function* () {
        const exchange = send(origin);
        yield* exchange.head;
        while ((yield* exchange.read) !== undefined);
        yield* turns(3);
        return exchange.times.carried?.connection;
      });
    // Long enough for a handshake on a busy machine, short for a test.
    const reach = { agent, connector, origins, probeMs: 500 };
    return { agent, clock, send, whole, pathOf: (url: string) => pathTo(reach, url), origins };
  });

/** A plain server whose requests the test answers. It numbers its connections. */
const plainServer = (answer: (request: IncomingMessage, response: ServerResponse) => void) =>
  Effect.suspend(() => {
    const sockets: Array<Socket> = [];
    const server = createServer((request, response) => {
      request.resume().on("end", () => answer(request, response));
    });
    server.keepAliveTimeout = 0;
    server.on("connection", (socket) => sockets.push(socket));
    return Effect.map(listening(server), (port) => ({ url: `http://127.0.0.1:${port}`, port, sockets }));
  });

describe("a kept connection that was idle for longer than the limit", () => {
  for (const [name, forward] of [
    ["monotonic time", { monotonic: 600_001, wall: 0 }],
    ["wall time alone, as behind a sleep that monotonic time does not count", { monotonic: 0, wall: 600_001 }],
  ] as const) {
    it.live(`gets no request, even if no timer has closed it: by ${name}`, () =>
      Effect.gen(function* () {
        const server = yield* plainServer((_, response) => void response.end("ok"));
        const { clock, whole } = yield* made();
        assert.strictEqual(yield* whole(server.url), 1);
        clock.monotonic += 540_000;
        clock.wall += 540_000;
        assert.strictEqual(yield* whole(server.url), 1);
        clock.monotonic += forward.monotonic;
        clock.wall += forward.wall;
        assert.strictEqual(yield* whole(server.url), 2);
        assert.strictEqual(server.sockets.length, 2);
      }),
    );
  }

  it.live("gets no request that merely passes through, and a request that passed through counts as use", () =>
    Effect.gen(function* () {
      const server = yield* plainServer((_, response) => void response.end("ok"));
      const { agent, clock, whole } = yield* made();
      const pass = Effect.promise(async () => {
        const { body } = await agent.request({ origin: server.url, path: "/models", method: "GET" });
        await body.text();
      });
      assert.strictEqual(yield* whole(server.url), 1);
      clock.monotonic += 540_000;
      yield* pass;
      yield* turns(3);
      clock.monotonic += 540_000;
      assert.strictEqual(yield* whole(server.url), 1);
      clock.monotonic += 600_001;
      yield* pass;
      assert.strictEqual(server.sockets.length, 2);
    }),
  );

  it.live("can be abandoned while the fresh one is opened, which closes its socket at once", () =>
    Effect.gen(function* () {
      const server = yield* plainServer((_, response) => void response.end("ok"));
      const proxy = yield* proxyServer({
        instead: (socket, { target }) => (proxy.asked.length === 1 ? relayed(socket, target) : undefined),
      });
      const { clock, send, whole } = yield* made({ proxy: proxy.url });
      yield* whole(server.url);
      clock.monotonic += 600_001;
      const exchange = send(server.url);
      yield* until(() => proxy.asked.length === 2);
      exchange.abort();
      yield* until(() => proxy.open() === 0);
      assert.strictEqual(exchange.delivery, "not_sent");
    }),
  );
});

describe("connections that are no longer trusted", () => {
  it.live("are closed if they are idle, and not reused if their response is still in flight", () =>
    Effect.gen(function* () {
      const held: Array<ServerResponse> = [];
      const server = yield* plainServer((_, response) => {
        response.writeHead(200).write("a");
        held.push(response);
      });
      const { pathOf, send, whole } = yield* made();
      const [first, second] = [send(server.url), send(server.url)];
      yield* first.head;
      yield* second.head;
      held[0]?.end();
      while ((yield* first.read) !== undefined);
      yield* turns(3);
      const idle = server.sockets[0];
      pathOf(server.url).way?.dropIdle();
      yield* until(() => idle?.destroyed === true);
      assert.isFalse(server.sockets[1]?.destroyed, "a response that still comes is not cut");
      held[1]?.end("b");
      while ((yield* second.read) !== undefined);
      yield* until(() => server.sockets[1]?.destroyed === true);
      const third = yield* Effect.forkChild(whole(server.url));
      yield* until(() => held.length === 3);
      held[2]?.end();
      yield* until(() => third.pollUnsafe() !== undefined);
      assert.strictEqual(server.sockets.length, 3);
    }),
  );

  it.live("are those of a path whose probe failed", () =>
    Effect.gen(function* () {
      const server = yield* plainServer((_, response) => void response.end("ok"));
      let alive = true;
      const proxy = yield* proxyServer({
        instead: (socket, { target }) => {
          if (alive) relayed(socket, target);
          else socket.end("HTTP/1.1 504 Gateway Timeout\r\n\r\n");
        },
      });
      const { pathOf, whole } = yield* made({ proxy: proxy.url });
      assert.strictEqual(yield* whole(server.url), 1);
      alive = false;
      const { way } = pathOf(server.url);
      assert.deepInclude(yield* way?.probe ?? Effect.die("no way"), { _tag: "failed", code: "PROXY_504" });
      alive = true;
      assert.strictEqual(yield* whole(server.url), 2);
    }),
  );

  it.live("do not include those with a request in flight, which continues to its end", () =>
    Effect.gen(function* () {
      const held: Array<ServerResponse> = [];
      const server = yield* plainServer((request, response) => {
        if (request.url === "/models") held.push(response);
        else response.end("ok");
      });
      const { agent, origins, whole } = yield* made();
      yield* whole(server.url);
      const passing = agent.request({ origin: server.url, path: "/models", method: "GET" });
      yield* until(() => held.length === 1);
      origins.of(server.url).discardIdle();
      yield* turns(3);
      held[0]?.end("models");
      const text = yield* Effect.promise(async () => (await passing).body.text());
      assert.strictEqual(text, "models");
      assert.strictEqual(server.sockets.length, 1);
    }),
  );
});

const relayed = (socket: Socket, target: string): void => {
  const [host = "", port = ""] = target.split(":");
  const outer = connectTo(Number(port), host);
  outer.on("connect", () => {
    socket.write("HTTP/1.1 200 Connection established\r\n\r\n");
    socket.pipe(outer);
    outer.pipe(socket);
  });
  outer.on("error", () => void socket.destroy());
  socket.on("close", () => void outer.destroy());
};

/** The kernel's timers of our sockets to a port. */
const timersTo = (port: number): ReadonlyArray<string> =>
  execFileSync("ss", ["-tnoH", "state", "established", `dport = :${port}`], { encoding: "utf8" })
    .split("\n")
    .filter((line) => line.trim() !== "")
    .map((line) => /timer:\((\w+),(?:\d+min)?([\d.]+)(ms|sec|min)?/.exec(line)?.slice(1).join(" ") ?? "none");

const seconds = (timer: string): number => {
  const [kind, amount, unit] = timer.split(" ");
  return kind === "keepalive" ? Number(amount) / (unit === "ms" ? 1_000 : 1) : Number.POSITIVE_INFINITY;
};

describe.skipIf(spawnSync("ss", ["-V"]).status !== 0)("a silent socket", () => {
  const asked = (port: number) =>
    Effect.gen(function* () {
      // A different timer runs until the last bytes are acknowledged.
      yield* until(() => timersTo(port).some((timer) => timer.startsWith("keepalive")));
      const timers = timersTo(port);
      assert.strictEqual(timers.length, 1);
      assert.isAtMost(seconds(timers[0] ?? ""), Connector.keepAliveProbeMs / 1_000, timers.join());
    });

  it.live("is probed by TCP from the fourth second on", () =>
    Effect.gen(function* () {
      const server = yield* plainServer((_, response) => void response.writeHead(200).write("a"));
      const { send } = yield* made();
      yield* send(server.url).head;
      yield* asked(server.port);
    }),
  );

  for (const secure of [false, true])
    it.live(`is probed by TCP if it leads to a proxy${secure ? " over TLS" : ""}`, () =>
      Effect.gen(function* () {
        const server = yield* plainServer((_, response) => void response.writeHead(200).write("a"));
        const proxy = yield* proxyServer({ secure });
        const { send } = yield* made({ proxy: proxy.url });
        yield* send(server.url).head;
        yield* asked(proxy.port);
      }),
    );
});
