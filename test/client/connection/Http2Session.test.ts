import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as Connections from "../../../src/client/connection/Connections.ts";
import * as Connector from "../../../src/client/connection/Connector.ts";
import { Exchange } from "../../../src/client/connection/Exchange.ts";
import { failureOf } from "../../../src/client/connection/ExchangeFailure.ts";
import { Origins } from "../../../src/client/connection/Origin.ts";
import { localhost } from "../../failure/provoked/Certificates.ts";
import { http2Server } from "../Http2Server.ts";
import { relayTo } from "../Relay.ts";

const until = (holds: () => boolean) =>
  Effect.gen(function* () {
    while (!holds()) yield* Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)));
  });

const made = Effect.gen(function* () {
  const origins = new Origins();
  const now = () => performance.now();
  const way = { connectMs: 5_000, tls: { ca: localhost }, proxy: () => undefined };
  const agent = yield* Connections.make({
    connector: Connector.make(way),
    http2: { connectMs: 5_000, connector: Connector.make({ ...way, http2: true }), pingMs: 40 },
    keepAliveMs: 5_000,
    connections: undefined,
    origins,
    now,
    nowMs: now,
  });
  const send = (origin: string): Exchange => {
    const exchange = new Exchange({}, now);
    agent.dispatch({ origin, path: "/", method: "POST", headers: {}, body: Buffer.from("{}") }, exchange);
    return exchange;
  };
  return { origins, now, send };
});

describe("an HTTP/2 connection on which nothing comes", () => {
  it.live("is asked by a PING, and dropped where none is answered; the next request has another", () =>
    Effect.gen(function* () {
      const server = yield* http2Server((stream, number) => {
        stream.respond({ ":status": 200 });
        if (number > 1) stream.end();
      });
      const relay = yield* relayTo(server.port);
      const { now, origins, send } = yield* made;
      const url = `https://localhost:${relay.port}`;
      const exchange = send(url);
      yield* exchange.head;
      relay.freeze();
      const broken = yield* Effect.flip(exchange.read);
      const origin = origins.of(url);
      assert.deepInclude(failureOf(broken, { origin, exchange, now: now(), nowMs: 0 }), {
        kind: "transport",
        operation: "body",
        code: "ERR_HTTP2_PING_CANCEL",
        retryable: true,
      });
      assert.strictEqual((yield* send(url).head).status, 200);
      assert.strictEqual(server.sessions.length, 2);
    }),
  );

  it.live("stays where the peer answers: silence of a model is no failure", () =>
    Effect.gen(function* () {
      let pings = 0;
      const server = yield* http2Server((stream) => {
        stream.session?.on("ping", () => {
          pings += 1;
          if (pings === 4) stream.respond({ ":status": 200 }, { endStream: true });
        });
      });
      const { send } = yield* made;
      const exchange = send(`https://localhost:${server.port}`);
      assert.strictEqual((yield* exchange.head).status, 200);
      yield* until(() => pings === 4);
    }),
  );

  it.live("is trusted by no request after one that got no response and was given up", () =>
    Effect.gen(function* () {
      const server = yield* http2Server((stream, number) => {
        if (number > 1) stream.respond({ ":status": 200 }, { endStream: true });
      });
      const { send } = yield* made;
      const url = `https://localhost:${server.port}`;
      const exchange = send(url);
      yield* until(() => server.streams.length === 1);
      exchange.abort();
      assert.strictEqual((yield* send(url).head).status, 200);
      assert.strictEqual(server.sessions.length, 2);
    }),
  );
});
