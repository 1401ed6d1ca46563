/**
 * Peers over HTTP/2 that say goodbye, permit little, upload slowly, send much or never close: worlds that a server which is well has not.
 */
import { once } from "node:events";
import type { ServerHttp2Session } from "node:http2";
import { createServer as createHttps } from "node:https";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Connections from "../../../src/client/connection/Connections.ts";
import * as Connector from "../../../src/client/connection/Connector.ts";
import { Exchange } from "../../../src/client/connection/Exchange.ts";
import { failureOf } from "../../../src/client/connection/ExchangeFailure.ts";
import { Origins } from "../../../src/client/connection/Origin.ts";
import { pathTo } from "../../../src/client/connection/OriginPath.ts";
import { key, localhost } from "../../failure/provoked/Certificates.ts";
import { http2Server } from "../Http2Server.ts";
import { relayTo, uplinkTo } from "../Relay.ts";

const until = (holds: () => boolean) =>
  Effect.gen(function* () {
    while (!holds()) yield* Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)));
  });

interface Sent {
  readonly headers?: Record<string, string> | Array<string>;
  readonly body?: Buffer;
}

/** Connections that are asked after 40 ms without a word. */
const made = Effect.gen(function* () {
  const origins = new Origins();
  const now = () => performance.now();
  const way = { connectMs: 5_000, tls: { ca: localhost }, proxy: () => undefined };
  const connector = Connector.make(way);
  const agent = yield* Connections.make({
    connector,
    http2: { connectMs: 5_000, connector: Connector.make({ ...way, http2: true }), pingMs: 40 },
    keepAliveMs: 5_000,
    connections: undefined,
    origins,
    now,
    nowMs: now,
  });
  const send = (origin: string, { body = Buffer.from("{}"), headers = {} }: Sent = {}): Exchange => {
    const exchange = new Exchange({}, now);
    const request = { origin, path: "/", method: "POST", headers, body } as const;
    try {
      connector.dispatching(exchange, () => agent.dispatch(request, exchange));
    } catch (error) {
      exchange.refuse(error);
    }
    return exchange;
  };
  const whole = (exchange: Exchange) =>
    Effect.gen(function* () {
      yield* exchange.head;
      let text = "";
      for (let read = yield* exchange.read; read !== undefined; read = yield* exchange.read)
        text += Buffer.concat([...read]).toString();
      return text;
    });
  const failure = (origin: string, exchange: Exchange) =>
    exchange.broken && failureOf(exchange.broken, { origin: origins.of(origin), exchange, now: now(), nowMs: 0 });
  const probe = (origin: string) =>
    pathTo({ agent, connector, origins, probeMs: 500 }, origin).way?.probe ?? Effect.die("no way");
  return { agent, failure, origins, probe, send, whole };
});

/** Stands in front of servers, may listen or not while its connections live, and ends none of them. */
const doorTo = (portOf: (number: number) => number) =>
  Effect.acquireRelease(
    Effect.callback<{
      readonly port: number;
      readonly shut: () => void;
      readonly reopen: () => Promise<unknown>;
      readonly came: () => number;
      readonly stop: () => void;
    }>((resume) => {
      const sockets: Array<Socket> = [];
      let came = 0;
      const server = createServer({ allowHalfOpen: true }, (inner) => {
        came += 1;
        const outer = connect(portOf(came), "127.0.0.1");
        for (const socket of [inner, outer]) sockets.push(socket.on("error", () => undefined));
        inner.pipe(outer, { end: false }).pipe(inner, { end: false });
      });
      server.listen(0, "127.0.0.1", () => {
        const { port } = server.address() as AddressInfo; // a server that listens at a port
        resume(
          Effect.succeed({
            port,
            shut: () => void server.close(),
            reopen: () => once(server.listen(port, "127.0.0.1"), "listening"),
            came: () => came,
            stop: () => {
              for (const socket of sockets) socket.destroy();
              server.close();
            },
          }),
        );
      });
    }),
    ({ stop }) => Effect.sync(stop),
  );

/** Questions of this side that a server has answered while it said nothing else. */
const questions = 6;

const questionsTo = (session: ServerHttp2Session | undefined) => {
  let asked = 0;
  for (const event of ["ping", "remoteSettings"] as const)
    session?.on(event, () => {
      asked += 1;
    });
  return () => asked;
};

describe("a connection that takes no new streams", () => {
  for (const [what, goodbye] of [
    ["after a GOAWAY", true],
    ["after a neighbour that was given up before its head", false],
  ] as const)
    it.live(`is asked as others are, and its silent stream goes on to its end: ${what}`, () =>
      Effect.gen(function* () {
        const server = yield* http2Server((stream, number) => {
          if (number > 1) return;
          stream.respond({ ":status": 200 });
          stream.write("a");
        });
        const { send, whole } = yield* made;
        const origin = `https://localhost:${server.port}`;
        const silent = send(origin);
        yield* silent.head;
        yield* silent.read;
        const [session] = server.sessions;
        const asked = questionsTo(session);
        if (goodbye) session?.goaway(0, server.streams[0]?.stream.id ?? 0);
        else {
          const neighbour = send(origin);
          yield* until(() => server.streams.length === 2);
          neighbour.abort();
        }
        yield* until(() => asked() >= questions);
        server.streams[0]?.stream.end("b");
        assert.strictEqual(yield* whole(silent), "b");
      }),
    );

  it.live("is dropped where it is dead, with its stream", () =>
    Effect.gen(function* () {
      const server = yield* http2Server((stream) => void stream.respond({ ":status": 200 }));
      const relay = yield* relayTo(server.port);
      const { failure, send } = yield* made;
      const origin = `https://localhost:${relay.port}`;
      const exchange = send(origin);
      yield* exchange.head;
      const [session] = server.sessions;
      session?.goaway(0, server.streams[0]?.stream.id ?? 0);
      // It has read the goodbye: it asks by what such a connection still sends.
      if (session !== undefined) yield* Effect.promise(() => once(session, "remoteSettings"));
      relay.freeze();
      yield* Effect.flip(exchange.read);
      assert.deepInclude(failure(origin, exchange), { code: "ERR_HTTP2_PING_CANCEL", operation: "body" });
    }),
  );

  it.live("that says goodbye twice has taken up what its second word says", () =>
    Effect.gen(function* () {
      const server = yield* http2Server((stream, number) => {
        if (number < 2) return;
        stream.session?.goaway(0, 2 ** 31 - 1);
        stream.session?.ping(() => stream.session?.goaway(11, server.streams[0]?.stream.id ?? 0));
      });
      const { failure, send } = yield* made;
      const origin = `https://localhost:${server.port}`;
      const below = send(origin);
      yield* until(() => server.streams.length === 1);
      const above = send(origin);
      yield* Effect.flip(above.head);
      assert.deepInclude(failure(origin, above), { not_processed: true, http2_code: "ENHANCE_YOUR_CALM" });
      below.abort();
    }),
  );
});

describe("a slow uplink", () => {
  for (const goodbye of [false, true])
    it.live(
      `is no dead connection: an upload goes on to its end, and so does the silent stream beside it${goodbye ? ", behind a GOAWAY" : ""}`,
      () =>
        Effect.gen(function* () {
          const windowBytes = 64 * 1024 * 1024;
          const server = yield* http2Server(
            (stream, number) => {
              if (number === 1) {
                stream.respond({ ":status": 200 });
                stream.write("a");
                return;
              }
              if (goodbye) stream.session?.goaway(0, stream.id);
              stream.on("end", () => stream.respond({ ":status": 200 }, { endStream: true }));
            },
            { settings: { initialWindowSize: windowBytes } },
          );
          // A part of it is in the system's hands at once, and all takes many times as long as a connection is waited for.
          const uplink = yield* uplinkTo(server.port, 4_000_000);
          const { send, whole } = yield* made;
          const origin = `https://localhost:${uplink.port}`;
          const silent = send(origin);
          yield* silent.head;
          server.sessions[0]?.setLocalWindowSize(windowBytes);
          assert.strictEqual(yield* whole(send(origin, { body: Buffer.alloc(6_000_000, "a") })), "");
          server.streams[0]?.stream.end("b");
          assert.strictEqual(yield* whole(silent), "ab");
          assert.strictEqual(server.sessions.length, 1);
        }),
    );
});

describe("a peer that permits few streams", () => {
  it.live("and ends its connections before they carry one fails what waits, and is not asked again and again", () =>
    Effect.gen(function* () {
      const server = yield* http2Server(() => undefined, { settings: { maxConcurrentStreams: 0 } });
      const { failure, send } = yield* made;
      const origin = `https://localhost:${server.port}`;
      const exchange = send(origin);
      yield* until(() => server.sessions[0]?.pendingSettingsAck === false);
      server.sessions[0]?.goaway(0, 0);
      yield* Effect.flip(exchange.head);
      assert.strictEqual(exchange.delivery, "not_sent");
      assert.deepInclude(failure(origin, exchange), { kind: "transport", operation: "connect", retryable: true });
      assert.strictEqual(server.sessions.length, 1);
    }),
  );

  it.live("and lowers that to none on one connection is asked for another", () =>
    Effect.gen(function* () {
      const server = yield* http2Server((stream) => stream.respond({ ":status": 200 }), {
        settings: { maxConcurrentStreams: 1 },
      });
      const { send } = yield* made;
      const origin = `https://localhost:${server.port}`;
      const [one, two] = [send(origin), send(origin)];
      yield* one.head;
      yield* two.head;
      server.sessions[1]?.settings({ maxConcurrentStreams: 0 });
      yield* until(() => server.sessions[1]?.pendingSettingsAck === false);
      yield* send(origin).head;
      assert.strictEqual(server.sessions.length, 3);
    }),
  );

  it.live("is asked by a connection, not by a PING, once no further one can be made", () =>
    Effect.gen(function* () {
      const server = yield* http2Server((stream) => stream.respond({ ":status": 200 }), {
        settings: { maxConcurrentStreams: 1 },
      });
      const door = yield* doorTo(() => server.port);
      const { failure, probe, send } = yield* made;
      const origin = `https://localhost:${door.port}`;
      yield* send(origin).head;
      assert.deepStrictEqual(yield* probe(origin), { _tag: "works" });
      assert.strictEqual(door.came(), 1, "a PING is enough where nothing says otherwise");
      door.shut();
      const further = send(origin);
      yield* Effect.flip(further.head);
      assert.deepInclude(failure(origin, further), { operation: "connect", code: "ECONNREFUSED" });
      assert.deepInclude(yield* probe(origin), { _tag: "failed", code: "ECONNREFUSED" });
      yield* Effect.promise(() => door.reopen());
      assert.deepStrictEqual(yield* probe(origin), { _tag: "works" });
      yield* send(origin).head;
    }),
  );

  it.live("and has an older server beside it is not taken for one of HTTP/1.1 for ever", () =>
    Effect.gen(function* () {
      const server = yield* http2Server((stream) => stream.respond({ ":status": 200 }), {
        settings: { maxConcurrentStreams: 1 },
      });
      const older = yield* Effect.acquireRelease(
        Effect.promise(async () => {
          const it = createHttps({ key, cert: localhost }, (_, response) => void response.end("older"));
          await once(it.listen(0, "127.0.0.1"), "listening");
          return it;
        }),
        (it) =>
          Effect.sync(() => {
            it.closeAllConnections();
            it.close();
          }),
      );
      const { port } = older.address() as AddressInfo; // a server that listens at a port
      const door = yield* doorTo((number) => (number === 2 || number === 3 ? port : server.port));
      const { send, whole } = yield* made;
      const origin = `https://localhost:${door.port}`;
      yield* send(origin).head;
      assert.strictEqual(yield* whole(send(origin)), "older");
      yield* send(origin).head;
      assert.strictEqual(server.streams.length, 2);
    }),
  );
});

describe("what HTTP/1.1 carries", () => {
  it.live("HTTP/2 does, too: many headers, long ones, and names that an object has", () =>
    Effect.gen(function* () {
      const server = yield* http2Server(
        (stream) => {
          const many = Array.from({ length: 150 }, (_, number) => [`x-${number}`, "v"]);
          stream.respond({ ":status": 200, ...Object.fromEntries(many) }, { endStream: true });
        },
        { settings: { maxHeaderListSize: 200_000 } },
      );
      const { send, whole } = yield* made;
      const headers = ["constructor", "c", "__proto__", "p", "HTTP2-Settings", "AAMA", "x-long", "a".repeat(70_000)];
      const exchange = send(`https://localhost:${server.port}`, { headers });
      assert.strictEqual(yield* whole(exchange), "");
      const seen = server.streams[0]?.headers;
      assert.deepStrictEqual([seen?.constructor, seen?.["http2-settings"]], ["c", undefined]);
      assert.strictEqual(seen?.["x-long"]?.length, 70_000);
    }),
  );

  it.live("and refuses what it refuses, before anything is written", () =>
    Effect.gen(function* () {
      const server = yield* http2Server(() => undefined);
      const { failure, send } = yield* made;
      const origin = `https://localhost:${server.port}`;
      for (const headers of [{ "x y": "a" }, { x: "a\nb" }]) {
        const exchange = send(origin, { headers });
        assert.deepInclude(failure(origin, exchange), { kind: "caller_failed" });
        assert.strictEqual(exchange.delivery, "not_sent");
      }
    }),
  );

  it.live("an answer comes while many large bodies of this side still wait", () =>
    Effect.gen(function* () {
      const server = yield* http2Server((stream) => void stream.removeAllListeners("data").pause());
      const { send, whole } = yield* made;
      const origin = `https://localhost:${server.port}`;
      const body = Buffer.alloc(2_000_000, "a");
      const exchanges = Array.from({ length: 40 }, () => send(origin, { body }));
      yield* until(() => server.streams.length === exchanges.length);
      server.streams[0]?.stream.respond({ ":status": 200 });
      server.streams[0]?.stream.end("early");
      const [first] = exchanges;
      assert.strictEqual(first && (yield* whole(first)), "early");
      for (const exchange of exchanges) exchange.abort();
    }),
  );
});
