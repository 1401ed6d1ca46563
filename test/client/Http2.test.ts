import { constants, type ServerHttp2Stream } from "node:http2";
import { createServer as createHttps } from "node:https";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Stream } from "effect";
import { type ExchangeRecord, ProviderClient, type ProviderClientOptions } from "../../src/client/index.ts";
import type { Delivery } from "../../src/domain/AttemptFacts.ts";
import type { Failure } from "../../src/domain/Failure.ts";
import { key, localhost } from "../failure/provoked/Certificates.ts";
import { withFrames } from "../failure/provoked/Http2Frames.ts";
import { attempt, turns } from "./Attempt.ts";
import { proxyServer } from "./EgressProxyServer.ts";
import { http2Server, silentHttp2 } from "./Http2Server.ts";
import { protocols } from "./Protocols.ts";
import { answer } from "./Server.ts";

const chat = protocols["openai-chat"];
const head = { ":status": 200, "content-type": "text/event-stream" };
const [first = ""] = answer.split("\n\n");

const begin = (stream: ServerHttp2Stream): void => {
  stream.respond(head);
  stream.write(`${first}\n\n`);
};

const whole = (stream: ServerHttp2Stream): void => {
  stream.respond(head);
  stream.end(answer);
};

/** Goes on when the client has read what was written until now: it answers a PING behind that. */
const arrived = (stream: ServerHttp2Stream, then: () => void): void => void stream.session?.ping(then);

const answered = (stream: ServerHttp2Stream | undefined) =>
  Effect.callback<void>((resume) => {
    stream?.session?.ping(() => resume(Effect.void));
  });

const clientOf = (options: ProviderClientOptions = {}) =>
  ProviderClient.make({ http: 2, tls: { ca: localhost }, ...options });

const until = (holds: () => boolean) =>
  Effect.gen(function* () {
    while (!holds()) yield* Effect.callback<void>((resume) => void setImmediate(() => resume(Effect.void)));
  });

describe("ProviderClient over HTTP/2", () => {
  it.live("sends requests side by side on one connection, in their own words", () =>
    Effect.gen(function* () {
      const held: Array<ServerHttp2Stream> = [];
      const server = yield* http2Server((stream) => void held.push(stream));
      const records: Array<ExchangeRecord> = [];
      const client = yield* clientOf({ onExchange: (record) => records.push(record) });
      const call = (name: string) =>
        attempt(client, chat, {
          url: `${server.url}/chat?x=1`,
          headers: { "X-Name": name, Authorization: `Bearer ${name}` },
          body: { name },
        });
      const fibers = yield* Effect.forEach(["a", "b", "c"], (name) => Effect.forkChild(call(name)));
      yield* until(() => held.length === 3);
      for (const stream of held) whole(stream);
      for (const fiber of fibers) {
        const seen = yield* Fiber.join(fiber);
        assert.isUndefined(seen.error);
        assert.deepStrictEqual(seen.deliveries, ["not_sent", "ambiguous", "accepted"]);
      }
      assert.strictEqual(server.sessions.length, 1);
      assert.deepStrictEqual(
        server.streams.map(({ body, headers }) => [headers["x-name"], headers[":path"], headers[":authority"], body()]),
        [
          ["a", "/v1/chat?x=1", `localhost:${server.port}`, '{"name":"a"}'],
          ["b", "/v1/chat?x=1", `localhost:${server.port}`, '{"name":"b"}'],
          ["c", "/v1/chat?x=1", `localhost:${server.port}`, '{"name":"c"}'],
        ],
      );
      assert.deepStrictEqual(
        records.map(({ connection }) => connection),
        [1, 1, 1],
      );
    }),
  );

  it.live("goes on over HTTP/1.1 with a server that does not speak it", () =>
    Effect.gen(function* () {
      const versions: Array<string> = [];
      const port = yield* Effect.acquireRelease(
        Effect.callback<{ readonly port: number; readonly stop: () => void }>((resume) => {
          const server = createHttps({ key, cert: localhost }, (request, response) => {
            versions.push(request.httpVersion);
            response.writeHead(200, { "content-type": "text/event-stream" }).end(answer);
          });
          server.listen(0, "127.0.0.1", () => {
            const address = server.address();
            const stop = (): void => {
              server.closeAllConnections();
              server.close();
            };
            resume(Effect.succeed({ port: typeof address === "object" && address !== null ? address.port : 0, stop }));
          });
        }),
        ({ stop }) => Effect.sync(stop),
      ).pipe(Effect.map((server) => server.port));
      const client = yield* clientOf();
      const call = attempt(client, chat, { url: `https://localhost:${port}/v1` });
      for (const seen of yield* Effect.all([call, call], { concurrency: 2 })) assert.isUndefined(seen.error);
      assert.deepStrictEqual(versions, ["1.1", "1.1"]);
    }),
  );

  it.live("does not send what the peer permits no stream for until it permits one", () =>
    Effect.gen(function* () {
      const server = yield* http2Server(whole, { settings: { maxConcurrentStreams: 0 } });
      const client = yield* clientOf();
      const said: Array<Array<Delivery>> = [[], [], []];
      const call = (number: number) =>
        Stream.runDrain(
          client.stream({ protocol: chat, url: server.url, body: {}, delivery: (now) => void said[number]?.push(now) }),
        );
      const fibers = yield* Effect.forEach([0, 1, 2], (number) => Effect.forkChild(call(number)));
      // The client has read what is permitted.
      yield* until(() => server.sessions[0]?.pendingSettingsAck === false);
      yield* turns(20);
      assert.deepStrictEqual(said, [["not_sent"], ["not_sent"], ["not_sent"]]);
      assert.strictEqual(server.sessions.length, 1, "a further connection would be permitted none either");
      for (const fiber of fibers.slice(2)) yield* Fiber.interrupt(fiber);
      server.sessions[0]?.settings({ maxConcurrentStreams: 1 });
      for (const fiber of fibers.slice(0, 2)) yield* Fiber.join(fiber);
      assert.strictEqual(server.streams.length, 2, "what was given up while it waited was never sent");
      assert.deepStrictEqual(said[2], ["not_sent"]);
    }),
  );

  it.live(
    "lets no request wait for the end of another's stream: where the peer permits no more it has a connection more",
    () =>
      Effect.gen(function* () {
        const server = yield* http2Server(() => undefined, { settings: { maxConcurrentStreams: 2 } });
        const records: Array<ExchangeRecord> = [];
        const client = yield* clientOf({ onExchange: (record) => records.push(record) });
        const call = Effect.forkChild(attempt(client, chat, { url: server.url }));
        const fibers = yield* Effect.all([call, call, call, call, call]);
        yield* until(() => server.streams.length === 5);
        assert.strictEqual(server.sessions.length, 3);
        for (const { stream } of server.streams) whole(stream);
        for (const fiber of fibers) assert.isUndefined((yield* Fiber.join(fiber)).error);
        assert.deepStrictEqual(records.map(({ connection }) => connection).sort(), [1, 1, 2, 2, 3]);
        // The next goes over the first that has room, so that the others idle to their ends.
        const next = yield* call;
        yield* until(() => server.streams.length === 6);
        for (const { stream } of server.streams.slice(5)) whole(stream);
        assert.isUndefined((yield* Fiber.join(next)).error);
        assert.strictEqual(records.at(-1)?.connection, 1);
        assert.strictEqual(server.sessions.length, 3);
      }),
  );

  it.live("closes the further connections too once they have idled", () =>
    Effect.gen(function* () {
      const server = yield* http2Server(() => undefined, { settings: { maxConcurrentStreams: 1 } });
      const client = yield* clientOf({ keepAliveMs: 20 });
      const call = Effect.forkChild(attempt(client, chat, { url: server.url }));
      const fibers = yield* Effect.all([call, call, call]);
      yield* until(() => server.streams.length === 3);
      assert.strictEqual(server.sockets(), 3);
      for (const { stream } of server.streams) whole(stream);
      for (const fiber of fibers) assert.isUndefined((yield* Fiber.join(fiber)).error);
      yield* until(() => server.sockets() === 0);
    }),
  );

  const resets: ReadonlyArray<
    readonly [string, number, boolean, Partial<Extract<Failure, { readonly kind: "transport" }>>]
  > = [
    [
      "REFUSED_STREAM",
      constants.NGHTTP2_REFUSED_STREAM,
      false,
      { http2_code: "REFUSED_STREAM", retryable: true, not_processed: true },
    ],
    ["CANCEL", constants.NGHTTP2_CANCEL, false, { http2_code: "CANCEL", retryable: true, not_processed: false }],
    [
      "INTERNAL_ERROR behind the head",
      constants.NGHTTP2_INTERNAL_ERROR,
      true,
      { http2_code: "INTERNAL_ERROR", retryable: true },
    ],
    ["PROTOCOL_ERROR", constants.NGHTTP2_PROTOCOL_ERROR, false, { http2_code: "PROTOCOL_ERROR", retryable: false }],
    [
      "HTTP_1_1_REQUIRED",
      constants.NGHTTP2_HTTP_1_1_REQUIRED,
      false,
      { http2_code: "HTTP_1_1_REQUIRED", retryable: false },
    ],
  ];
  for (const [name, code, behind, expected] of resets) {
    it.live(`tells a reset by ${name}, sends the request once, and keeps the connection`, () =>
      Effect.gen(function* () {
        const server = yield* http2Server((stream, number) => {
          if (number > 1) {
            whole(stream);
            return;
          }
          if (!behind) {
            stream.close(code);
            return;
          }
          begin(stream);
          // `close` would end the response first.
          arrived(stream, () => stream.destroy(new Error("broken")));
        });
        const client = yield* clientOf();
        const call = attempt(client, chat, { url: server.url });
        const { error } = yield* call;
        assert.deepInclude(error?.reason, { kind: "transport", ...expected });
        assert.strictEqual(server.streams.length, 1);
        assert.isUndefined((yield* call).error);
        assert.strictEqual(server.sessions.length, 1);
      }),
    );
  }

  it.live("tells a CANCEL behind the head, which node:http2 tells as an end", () =>
    Effect.gen(function* () {
      const server = yield* http2Server((stream) => {
        // `close` ends no response that waits for its trailers, while the request is not read to its end.
        stream.removeAllListeners("data").pause();
        stream.respond(head, { waitForTrailers: true });
        stream.write(`${first}\n\n`);
        arrived(stream, () => stream.close(constants.NGHTTP2_CANCEL));
      });
      const { error } = yield* attempt(yield* clientOf(), chat, { url: server.url });
      assert.deepInclude(error?.reason, {
        kind: "transport",
        operation: "body",
        http2_code: "CANCEL",
        retryable: true,
      });
    }),
  );

  it.live("takes a reset without a word for no whole response", () =>
    Effect.gen(function* () {
      const server = yield* http2Server((stream) => {
        begin(stream);
        arrived(stream, () => stream.destroy());
      });
      const { error } = yield* attempt(yield* clientOf(), chat, { url: server.url });
      assert.deepInclude(error?.reason, { kind: "transport", operation: "body", retryable: true });
    }),
  );

  it.live("lets a stream go to its end behind a GOAWAY, and sends the next request over another connection", () =>
    Effect.gen(function* () {
      const server = yield* http2Server((stream, number) => {
        if (number > 1) {
          whole(stream);
          return;
        }
        begin(stream);
        stream.session?.goaway(constants.NGHTTP2_NO_ERROR, stream.id);
      });
      const client = yield* clientOf();
      const call = attempt(client, chat, { url: server.url });
      const drained = yield* Effect.forkChild(call);
      yield* until(() => server.streams.length === 1);
      yield* answered(server.streams[0]?.stream);
      const next = yield* call;
      assert.isUndefined(next.error);
      assert.strictEqual(server.sessions.length, 2);
      server.streams[0]?.stream.end(answer.slice(first.length + 2));
      assert.isUndefined((yield* Fiber.join(drained)).error);
    }),
  );

  it.live("tells of a request above the last stream of a GOAWAY that it was not processed", () =>
    Effect.gen(function* () {
      const server = yield* http2Server((stream, number) => {
        if (number === 2) stream.session?.goaway(constants.NGHTTP2_NO_ERROR, 1);
        if (number > 2) whole(stream);
      });
      const client = yield* clientOf();
      const call = attempt(client, chat, { url: server.url });
      const below = yield* Effect.forkChild(call);
      yield* until(() => server.streams.length === 1);
      const { error } = yield* call;
      assert.deepInclude(error?.reason, { kind: "transport", retryable: true, not_processed: true });
      assert.strictEqual(server.streams.length, 2, "nothing below repeats a request");
      const [held] = server.streams;
      if (held !== undefined) whole(held.stream);
      assert.isUndefined((yield* Fiber.join(below)).error, "the stream below the last one was drained");
    }),
  );

  it.live("tells a GOAWAY with a code, and a connection that ends under a stream", () =>
    Effect.gen(function* () {
      const calm = yield* http2Server((stream) =>
        stream.session?.goaway(constants.NGHTTP2_ENHANCE_YOUR_CALM, stream.id),
      );
      const client = yield* clientOf();
      const told = yield* attempt(client, chat, { url: calm.url });
      assert.deepInclude(told.error?.reason, { kind: "transport", http2_code: "ENHANCE_YOUR_CALM", retryable: true });
      for (const end of ["destroy", "close"] as const) {
        const cut = yield* http2Server((stream) => {
          begin(stream);
          arrived(
            stream,
            () => void (end === "destroy" ? stream.session?.destroy() : stream.session?.socket.destroy()),
          );
        });
        const { error } = yield* attempt(client, chat, { url: cut.url });
        assert.deepInclude(error?.reason, { kind: "transport", operation: "body", retryable: true });
        assert.strictEqual(cut.streams.length, 1);
      }
    }),
  );

  it.live("tells of a request above the last stream of a GOAWAY with a code too that it was not processed", () =>
    Effect.gen(function* () {
      const server = yield* http2Server((stream, number) => {
        if (number === 2) stream.session?.goaway(constants.NGHTTP2_INTERNAL_ERROR, 1);
      });
      const client = yield* clientOf();
      const call = attempt(client, chat, { url: server.url });
      const taken = yield* Effect.forkChild(call);
      yield* until(() => server.streams.length === 1);
      const above = { kind: "transport", http2_code: "INTERNAL_ERROR", not_processed: true } as const;
      assert.deepInclude((yield* call).error?.reason, above);
      assert.deepInclude((yield* Fiber.join(taken)).error?.reason, { ...above, not_processed: false });
    }),
  );

  it.live("gives up one stream and leaves the others of its connection alone", () =>
    Effect.gen(function* () {
      const server = yield* http2Server(begin);
      const client = yield* clientOf();
      const call = attempt(client, chat, { url: server.url });
      const [given, kept] = [yield* Effect.forkChild(call), yield* Effect.forkChild(call)];
      yield* until(() => server.streams.length === 2);
      yield* answered(server.streams[1]?.stream);
      yield* Fiber.interrupt(given);
      yield* until(() => server.streams[0]?.stream.closed === true);
      assert.strictEqual(server.streams[0]?.stream.rstCode, constants.NGHTTP2_CANCEL);
      server.streams[1]?.stream.end(answer.slice(first.length + 2));
      assert.isUndefined((yield* Fiber.join(kept)).error);
    }),
  );

  it.live(
    "meets the connect clock where the peer agrees on HTTP/2 and says no word of it: nothing was sent, no socket stays",
    () =>
      Effect.gen(function* () {
        const server = yield* silentHttp2;
        const client = yield* clientOf({ connectMs: 150 });
        const call = attempt(client, chat, { url: server.url });
        for (const { deliveries, error } of yield* Effect.all([call, call], { concurrency: 2 })) {
          assert.deepInclude(error?.reason, { kind: "stalled", clock: "connect" });
          assert.deepStrictEqual(deliveries, ["not_sent"]);
        }
        yield* until(() => server.sockets() === 0);
      }),
  );

  it.live(
    "leaves no socket behind where the last request that waits for it is given up, and keeps it for another",
    () =>
      Effect.gen(function* () {
        const server = yield* silentHttp2;
        const client = yield* clientOf();
        const call = attempt(client, chat, { url: server.url });
        const [one, other] = [yield* Effect.forkChild(call), yield* Effect.forkChild(call)];
        yield* until(() => server.sockets() === 1);
        yield* Fiber.interrupt(one);
        yield* turns(20);
        assert.strictEqual(server.sockets(), 1);
        yield* Fiber.interrupt(other);
        yield* until(() => server.sockets() === 0);
      }),
  );

  it.live(
    "sends the next request over a connection of its own where the last one for it was given up in the same turn",
    () =>
      Effect.gen(function* () {
        const server = yield* http2Server(whole);
        const client = yield* clientOf();
        const call = attempt(client, chat, { url: server.url });
        yield* Fiber.interrupt(yield* Effect.forkChild(call, { startImmediately: true }));
        const { deliveries, error } = yield* call;
        assert.deepStrictEqual([error, deliveries], [undefined, ["not_sent", "ambiguous", "accepted"]]);
      }),
  );

  it.live(
    "is told of a reset without an error in the middle of its body: the response is none, and its stream is closed",
    () =>
      Effect.promise(() =>
        withFrames(
          (frames, stream) =>
            frames.together(() => {
              frames.head(stream);
              frames.data(stream, `${first}\n\n`);
              frames.reset(stream, constants.NGHTTP2_NO_ERROR);
            }),
          (port) =>
            Effect.gen(function* () {
              // More than a peer's window lets through, so that it is not written.
              const body = { stream: true, text: "a".repeat(200_000) };
              const call = attempt(yield* clientOf(), chat, { url: `https://localhost:${port}/v1`, body });
              const seen = yield* Effect.all([call, call], { concurrency: 2 });
              for (const { error } of seen)
                assert.deepInclude(error?.reason, { kind: "transport", operation: "body", retryable: true });
            }).pipe(Effect.scoped, Effect.runPromise),
        ),
      ),
  );

  it.live("closes an idle connection after the keep-alive limit, and all with its scope", () =>
    Effect.gen(function* () {
      const server = yield* http2Server((stream, number) => (number === 1 ? whole(stream) : begin(stream)));
      yield* Effect.scoped(
        Effect.gen(function* () {
          const client = yield* clientOf({ keepAliveMs: 30 });
          const call = attempt(client, chat, { url: server.url });
          assert.isUndefined((yield* call).error);
          yield* until(() => server.sockets() === 0);
          yield* Effect.forkScoped(call);
          yield* until(() => server.streams.length === 2);
        }),
      );
      yield* until(() => server.sockets() === 0);
    }),
  );

  it.live("goes through an egress proxy, and names its failures as HTTP/1.1 does", () =>
    Effect.gen(function* () {
      const server = yield* http2Server(whole);
      const proxy = yield* proxyServer({ login: "a:b" });
      const good = yield* clientOf({ proxy: proxy.url.replace("://", "://a:b@") });
      assert.isUndefined((yield* attempt(good, chat, { url: server.url })).error);
      const bad = yield* clientOf({ proxy: proxy.url });
      const { deliveries, error } = yield* attempt(bad, chat, { url: server.url });
      assert.deepInclude(error?.reason, {
        kind: "transport",
        operation: "connect",
        code: "PROXY_407",
        retryable: false,
      });
      assert.deepStrictEqual(deliveries, ["not_sent"]);
    }),
  );

  it.live("stops reading a stream that its reader does not take, and no other", () =>
    Effect.gen(function* () {
      const mebibyte = "x".repeat(1024 * 1024);
      let written = 0;
      const server = yield* http2Server((stream, number) => {
        if (number > 1) {
          whole(stream);
          return;
        }
        stream.respond({ ":status": 200, "content-type": "text/event-stream" });
        const more = (): void => {
          while (written < 64 && stream.write(`: ${mebibyte}\n\n`)) written += 1;
          if (written < 64) stream.once("drain", more);
        };
        more();
      });
      const client = yield* clientOf();
      const slow = yield* Effect.forkChild(attempt(client, chat, { url: server.url, headers: { "x-slow": "1" } }));
      yield* until(() => server.streams.length === 1);
      assert.isUndefined((yield* attempt(client, chat, { url: server.url })).error);
      assert.strictEqual(server.sessions.length, 1);
      yield* Fiber.interrupt(slow);
    }),
  );
});
