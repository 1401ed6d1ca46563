import { connect } from "node:net";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Fiber, Layer, Redacted } from "effect";
import { Traffic } from "../../../src/gateway/api/Traffic.ts";
import { Access } from "../../../src/gateway/log/AccessRecord.ts";
import { ClientResponse } from "../../../src/gateway/proxy/ClientResponse.ts";
import { Page } from "../../../src/gateway/proxy/PageHandler.ts";
import { turns } from "../../client/Attempt.ts";
import { serverOf } from "../../Servers.ts";
import { bodies, front, fronted, post, recovery, send } from "../GatewayCases.ts";

const chat = JSON.stringify(bodies["openai-chat"]);
const token = "a-token-of-24-characters";

const turn = Effect.promise(() => new Promise((next) => setImmediate(next)));

/** Writes bytes to a gateway and reads its answer until it closes the connection. */
const raw = (port: number, bytes: string): Effect.Effect<string> =>
  Effect.promise(
    () =>
      new Promise((resolve) => {
        const chunks: Array<Buffer> = [];
        const socket = connect(port, "127.0.0.1");
        socket.on("data", (chunk) => chunks.push(chunk));
        socket.on("error", () => undefined);
        socket.on("close", () => resolve(Buffer.concat(chunks).toString()));
        socket.write(bytes);
      }),
  );

describe("Gateway, its access checks and limits", () => {
  it.live("requires its token and passes it on in no form", () =>
    Effect.gen(function* () {
      const seen: Array<string> = [];
      const at = yield* serverOf((request, response) => {
        seen.push(`${request.url}\n${request.rawHeaders.join("\n")}`);
        response.end("{}");
      });
      const { url } = yield* front(at, { token });
      const refused = yield* post(url, "openai-chat");
      assert.strictEqual(refused.status, 401);
      assert.strictEqual(recovery(refused, "refused"), "token");
      assert.lengthOf(seen, 0);
      const headers = { "x-recovery-token": token, authorization: "Bearer own" };
      yield* Effect.promise(() => send(`${url}/v1/models`, { headers }));
      yield* Effect.promise(() => send(`${url}/t/${token}/v1/files?x=1`));
      assert.match(seen[0] ?? "", /^\/v1\/models\n/);
      assert.include(seen[0] ?? "", "Bearer own");
      assert.match(seen[1] ?? "", /^\/v1\/files\?x=1\n/);
      assert.notInclude(seen.join("\n"), token);
    }),
  );

  it.live("refuses other host names and other sites before anything is forwarded", () =>
    Effect.gen(function* () {
      const { server, url } = yield* fronted({});
      const rebound = yield* post(url, "openai-chat", { headers: { host: "evil.example" } });
      assert.strictEqual(`${rebound.status} ${recovery(rebound, "refused")}`, "403 host");
      const posted = yield* post(url, "openai-chat", { headers: { origin: "https://evil.example" } });
      assert.strictEqual(`${posted.status} ${recovery(posted, "refused")}`, "403 origin");
      assert.lengthOf(yield* server.log, 0);
    }),
  );

  it.live("accepts bodies up to its limit and no byte more, with a length or without", () =>
    Effect.gen(function* () {
      const { gateway, server, url } = yield* fronted(
        {},
        { limits: { maxBodyBytes: chat.length, maxPassedBytes: 10 } },
      );
      assert.strictEqual((yield* post(url, "openai-chat")).status, 200);
      const long = yield* post(url, "openai-chat", { body: `${chat} ` });
      assert.strictEqual(`${long.status} ${recovery(long, "refused")}`, "413 body");
      const head = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n";
      const chunked = yield* raw(gateway.port, `${head}${(chat.length + 1).toString(16)}\r\n${chat} \r\n`);
      assert.match(chunked, /^HTTP\/1\.1 413 /);
      const passed = yield* Effect.promise(() => send(`${url}/v1/files`, { body: "12345678901" }));
      assert.strictEqual(passed.status, 413);
      assert.lengthOf(yield* server.log, 1);
      assert.strictEqual(yield* gateway.keptBytes, 0);
    }),
  );

  it.live("holds no more bodies than their total limit", () =>
    Effect.gen(function* () {
      const { server, url } = yield* fronted(
        { answers: [{ break: { kind: "stall", at: "before_head" } }] },
        { limits: { maxBodiesBytes: chat.length + 10 } },
      );
      yield* Effect.forkScoped(post(url, "openai-chat"));
      yield* server.until((rows) => rows[0]);
      const busy = yield* post(url, "openai-chat");
      assert.strictEqual(`${busy.status} ${recovery(busy, "refused")}`, "503 busy");
    }),
  );

  it.live("leaves room for another token beside the stalled bodies of one, and says when to retry", () =>
    Effect.gen(function* () {
      const tokens = [
        { name: "hog", token: Redacted.make("token-of-the-hog-000001"), page: false, metrics: false },
        { name: "good", token: Redacted.make("token-of-the-others-002"), page: false, metrics: false },
      ];
      const half = Math.ceil(chat.length / 2);
      const { gateway, url } = yield* fronted({}, { tokens, limits: { maxBodiesBytes: 8 * half } });
      const head = `POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nx-recovery-token: token-of-the-hog-000001\r\nContent-Length: ${chat.length}\r\n\r\n`;
      for (let stalled = 0; stalled < 4; stalled += 1)
        yield* Effect.forkScoped(raw(gateway.port, head + chat.slice(0, half)));
      yield* Effect.repeat(Effect.andThen(turn, gateway.keptBytes), { until: (kept) => kept === 4 * half });
      const refused = yield* raw(gateway.port, head + chat.slice(0, half));
      assert.match(refused, /^HTTP\/1\.1 429 /);
      assert.match(refused, /x-recovery-refused: share\r\nretry-after: 1\r\n/);
      const other = { headers: { "x-recovery-token": "token-of-the-others-002" } };
      assert.strictEqual((yield* post(url, "openai-chat", other)).status, 200);
    }),
  );

  it.live("refuses long heads and clients that take long to send theirs", () =>
    Effect.gen(function* () {
      const { gateway } = yield* fronted({}, { limits: { maxHeaderBytes: 4096, headMs: 400, requestMs: 500 } });
      const line = "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n";
      assert.match(yield* raw(gateway.port, `${line}X-Long: ${"x".repeat(5000)}\r\n\r\n`), /^HTTP\/1\.1 431 /);
      assert.match(yield* raw(gateway.port, line), /^HTTP\/1\.1 408 /);
      const post = "POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 100\r\n\r\n{";
      assert.match(yield* raw(gateway.port, post), /^(HTTP\/1\.1 408 |$)/);
      assert.strictEqual(yield* gateway.keptBytes, 0);
    }),
  );

  it.live("accepts no more connections than its limit", () =>
    Effect.gen(function* () {
      const { gateway, server, url } = yield* fronted(
        { answers: [{ break: { kind: "stall", at: "before_head" } }] },
        { limits: { maxConnections: 1 } },
      );
      yield* Effect.forkScoped(Effect.ignoreCause(post(url, "openai-chat")));
      yield* server.until((rows) => rows[0]);
      assert.strictEqual(yield* raw(gateway.port, "GET /v1/models HTTP/1.1\r\nHost: localhost\r\n\r\n"), "");
    }),
  );

  it.live("serves nothing at its own paths without a page, and never forwards them", () =>
    Effect.gen(function* () {
      const { server, url } = yield* fronted({});
      for (const path of ["/recovery", "/recovery/api/runs", "/metrics"]) {
        assert.strictEqual((yield* Effect.promise(() => send(`${url}${path}`))).status, 404);
      }
      assert.lengthOf(yield* server.log, 0);
    }),
  );

  it.live("lets its page serve its own paths, with the server's data, and breaks an answer that breaks", () =>
    Effect.gen(function* () {
      const page = Layer.effect(
        Page,
        Effect.map(Traffic, (traffic) => ({
          handle: (request) =>
            Effect.gen(function* () {
              const { pathname } = new URL(request.url);
              if (pathname === "/metrics") return undefined;
              if (pathname === "/recovery/broken")
                return new Response(
                  new ReadableStream({
                    pull: (controller) => controller.error(new Error("no more")),
                  }),
                );
              const { requests } = yield* traffic.status;
              const asked = request.method === "POST" ? yield* Effect.promise(() => request.text()) : "";
              return Response.json({ pathname, asked, ...requests }, { headers: { "x-page": "1" } });
            }),
        })),
      );
      const { url } = yield* front("http://127.0.0.1:1", { token }, page);
      const base = `${url}/t/${token}`;
      assert.strictEqual((yield* Effect.promise(() => send(`${url}/recovery/`))).status, 401);
      const got = yield* Effect.promise(() => send(`${base}/recovery/api/answer`, { body: "x" }));
      assert.deepStrictEqual(JSON.parse(got.text), {
        ...{ pathname: "/recovery/api/answer", asked: "x", relayed: 0, passed_through: 0, refused: 1 },
      });
      assert.strictEqual(got.headers["x-page"], "1");
      assert.strictEqual((yield* Effect.promise(() => send(`${base}/metrics`))).status, 404);
      assert.isTrue((yield* Effect.promise(() => send(`${base}/recovery/broken`))).broken);
      const long = yield* Effect.promise(() => send(`${base}/recovery/`, { body: "x".repeat(70_000) }));
      assert.strictEqual(long.status, 413);
    }),
  );
});

/** A response whose client does not read it. */
const opened = Effect.gen(function* () {
  let served = (_: ClientResponse): void => undefined;
  const serving = new Promise<ClientResponse>((resolve) => {
    served = resolve;
  });
  const at = yield* serverOf((_, response) => served(new ClientResponse(response, 60_000, new Access(() => 0))));
  const socket = connect(Number(new URL(at).port), "127.0.0.1").pause();
  socket.on("error", () => undefined);
  socket.write("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
  const client = yield* Effect.promise(() => serving);
  client.head({ status: 200, statusText: "OK", headers: [] });
  return { client, socket };
});

/** The same with many bytes. */
const unread = Effect.tap(opened, ({ client }) => Effect.sync(() => client.writeNow([new Uint8Array(many)])));

/** More bytes than the buffers of a local connection hold. */
const many = 64 * 1024 * 1024;

/** More bytes than one step may write, and fewer than the system accepts at once. */
const inStepMax = 256 * 1024;

describe("ClientResponse", () => {
  it.live("requests a pause in a step of many writes, although the system would accept them", () =>
    Effect.gen(function* () {
      const { client } = yield* opened;
      yield* turns(30);
      let written = 0;
      for (; client.isReady() && written < inStepMax; written += 1024) client.writeNow([new Uint8Array(1024)]);
      assert.isBelow(written, inStepMax);
    }),
  );

  it.live("sends a head before anything else", () =>
    Effect.gen(function* () {
      const { socket } = yield* opened;
      let seen = "";
      socket.resume().on("data", (bytes: Buffer) => {
        seen += bytes.toString();
      });
      yield* turns(30);
      assert.match(seen, /^HTTP\/1\.1 200 OK\r\n.*\r\n\r\n$/s);
      socket.destroy();
    }),
  );

  it.live("has ended once its client's socket has accepted everything, and no sooner", () =>
    Effect.gen(function* () {
      const { client, socket } = yield* unread;
      const ending = yield* Effect.forkChild(client.end, { startImmediately: true });
      yield* turns(30);
      assert.isUndefined(ending.pollUnsafe(), "bytes wait for the client");
      socket.resume();
      yield* Fiber.join(ending);
      assert.isFalse(client.isGone);
    }),
  );

  it.live("considers a client that closes in the middle of a write gone, and drops later bytes", () =>
    Effect.gen(function* () {
      const { client, socket } = yield* unread;
      assert.isFalse(client.isReady());
      const drained = yield* Effect.forkChild(client.drained, { startImmediately: true });
      let left = 0;
      client.whenGone(() => {
        left += 1;
      });
      yield* turns(30);
      assert.isUndefined(drained.pollUnsafe(), "the socket is full");
      socket.resetAndDestroy();
      yield* Fiber.join(drained);
      assert.isTrue(client.isGone);
      assert.isTrue(client.isReady(), "nobody waits for a client that has gone");
      client.writeNow([new Uint8Array(1)]);
      client.passOn([new Uint8Array(1)]);
      yield* client.end;
      assert.strictEqual(left, 1);
    }),
  );
});
