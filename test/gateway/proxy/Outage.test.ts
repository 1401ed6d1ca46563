/** A gateway whose provider goes down and comes back, or announces a delay: over real sockets, with many clients. */
import { request as httpRequest } from "node:http";
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Fiber, Redacted } from "effect";
import { PathPatienceMs } from "../../../src/gateway/Gateway.ts";
import type { GatewayProgram } from "../../../src/gateway/GatewayLayers.ts";
import { type PathStatus, Paths } from "../../../src/paths/Paths.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { protocols as decoders } from "../../../src/provider/Protocols.ts";
import * as Decoder from "../../../src/provider/stream/Decoder.ts";
import { FaultProvider, type FaultProviderOptions } from "../../../src/testing/index.ts";
import { until } from "../../Polling.ts";
import { serverOf } from "../../Servers.ts";
import { samples } from "../../samples/index.ts";
import { gateTo } from "../Gate.ts";
import { bodies, type Fronted, front, post, protocols, recovery, send, upstreamsAt } from "../GatewayCases.ts";

/** A fault provider behind a gate, and a gateway that has reached it once. */
const gated = (script: FaultProviderOptions["script"], program: GatewayProgram = {}) =>
  Effect.gen(function* () {
    const server = yield* FaultProvider.make(script === undefined ? {} : { script });
    const gate = yield* gateTo(server.url);
    const fronted = yield* front(gate.url, program);
    yield* post(fronted.url, "openai-chat");
    return { server, gate, ...fronted, asked: Effect.map(server.log, (log) => log.length - 1) };
  }).pipe(Effect.orDie);

/** Waits until the only path is as wanted. */
const untilPath = ({ services }: Pick<Fronted, "services">, isSo: (path: PathStatus) => boolean): Effect.Effect<void> =>
  until(() => Context.get(services, Paths).list().some(isSo));

const waiting =
  (count: number) =>
  (path: PathStatus): boolean =>
    path.waiting === count;

/** Sends the head at once, so that later events follow one. */
const early: GatewayProgram = { keepAliveMs: 20, clients: { unknown: { patienceMs: 0 } } };

/** Asks for a document. */
const unstreamed = (url: string, protocol: ProtocolId, body: object = {}) => {
  const { bare, documentPath, streams } = samples[protocol];
  const asked = JSON.stringify({ ...bare, ...streams(false), ...body });
  return Effect.promise(() => send(`${url}${documentPath}`, { body: asked }));
};

describe("Gateway, a provider that goes down", () => {
  for (const protocol of protocols) {
    it.live(`makes a ${protocol} stream wait, after our own head and no-ops, with one request in total`, () =>
      Effect.gen(function* () {
        const world = yield* gated({ answers: [{ content: [{ text: 5 }] }] }, early);
        yield* world.gate.close;
        let heard = 0;
        const onData = () => {
          heard += 1;
        };
        const asked = yield* Effect.forkScoped(post(world.url, protocol, { onData }));
        yield* untilPath(world, (path) => path.state === "down" && path.waiting === 1 && heard > 2);
        yield* world.gate.open;
        const got = yield* Fiber.join(asked);
        assert.deepStrictEqual([got.status, got.broken], [200, false]);
        assert.strictEqual(got.headers["x-recovery-waiting"], "true");
        const decoder = Decoder.make(decoders.get(protocol));
        decoder.push(got.body);
        assert.isTrue(decoder.end().end.complete);
        assert.strictEqual(yield* world.asked, 1);
      }),
    );

    it.live(`tells a ${protocol} request that does not stream to retry, in that protocol's format`, () =>
      Effect.gen(function* () {
        const world = yield* Effect.provideService(gated(undefined), PathPatienceMs, 50);
        yield* world.gate.close;
        const got = yield* unstreamed(world.url, protocol);
        assert.deepStrictEqual([got.status, got.headers["retry-after"]], [503, "5"]);
        assert.strictEqual(got.headers["x-should-retry"], "true");
        assert.strictEqual(recovery(got, "refused"), "unavailable");
        const { error, message, type } = JSON.parse(got.text);
        assert.match(message ?? error.message ?? error, /cannot be reached now.*Ask again/);
        const { vendor } = samples[protocol];
        if (vendor === "ollama" || vendor === "cohere") assert.isUndefined(type);
        else if (vendor === "gemini" || vendor === "code-assist")
          assert.deepStrictEqual([error.code, error.status], [503, "UNAVAILABLE"]);
        else assert.strictEqual(error.type, "gateway_unavailable");
        if (protocol === "anthropic-messages") assert.strictEqual(type, "error");
        const again = yield* unstreamed(world.url, protocol);
        assert.strictEqual(again.status, 503, "nothing is told from memory");
        assert.notStrictEqual(recovery(again, "run"), recovery(got, "run"));
        yield* untilPath(world, waiting(0));
        assert.strictEqual(yield* world.asked, 0);
      }),
    );
  }

  it.live("in held text makes it wait, and the text comes once", () =>
    Effect.gen(function* () {
      const world = yield* gated(
        { answers: [{ content: [{ text: 5 }] }, { content: [{ text: 40 }], delay_ms: 2 }] },
        { reveal: "on_complete" },
      );
      world.gate.closeBehind(600);
      const asked = yield* Effect.forkScoped(post(world.url, "openai-chat"));
      yield* untilPath(world, (path) => path.state === "down" && path.waiting === 1);
      yield* world.gate.open;
      const got = yield* Fiber.join(asked);
      assert.deepStrictEqual([got.status, got.broken, recovery(got, "attempts")], [200, false, "3"]);
      assert.strictEqual(got.text.split("[DONE]").length, 2);
      assert.strictEqual(yield* world.asked, 2);
    }),
  );

  it.live("holds no request that passes through, which reports nothing about the path", () =>
    Effect.gen(function* () {
      const world = yield* gated(undefined);
      yield* world.gate.close;
      const models = yield* Effect.promise(() => send(`${world.url}/v1/files`));
      assert.strictEqual(models.status, 502);
      assert.isTrue(
        Context.get(world.services, Paths)
          .list()
          .every(({ state }) => state === "up"),
      );
    }),
  );

  it.live("gets requests of those clients that still wait, and of no other", () =>
    Effect.gen(function* () {
      const world = yield* gated({ answers: [{ content: [{ text: 2 }] }] });
      yield* world.gate.close;
      const ask = (n: number) => {
        const request = httpRequest(`${world.url}/v1/chat/completions`, { method: "POST", agent: false });
        const ended = new Promise<number>((done) => {
          request.on("response", (response) => response.resume().on("close", () => done(response.statusCode ?? 0)));
          request.on("error", () => done(0));
        });
        request.end(JSON.stringify({ ...bodies["openai-chat"], messages: [{ role: "user", content: String(n) }] }));
        return { request, ended };
      };
      const clients = Array.from({ length: 20 }, (_, n) => ask(n));
      yield* untilPath(world, waiting(20));
      for (const [n, { request }] of clients.entries()) if (n % 2 === 0) request.destroy();
      yield* untilPath(world, waiting(10));
      yield* world.gate.open;
      const ended = yield* Effect.promise(() => Promise.all(clients.map((it) => it.ended)));
      assert.deepStrictEqual(
        ended,
        clients.map((_, n) => (n % 2 === 0 ? 0 : 200)),
      );
      assert.strictEqual(yield* world.asked, 10);
    }),
  );

  it.live("is remembered over a new configuration: waiting requests continue to wait, and none is sent again", () =>
    Effect.gen(function* () {
      const world = yield* gated({ answers: [{ content: [{ text: 2 }] }] });
      yield* world.gate.close;
      const before = yield* Effect.forkScoped(post(world.url, "openai-chat"));
      yield* untilPath(world, waiting(1));
      const upstreams = upstreamsAt(world.gate.url);
      assert.deepStrictEqual(yield* Effect.orDie(world.gateway.configure({ upstreams, port: 0 })), []);
      const behind = yield* Effect.forkScoped(post(world.url, "anthropic-messages"));
      yield* untilPath(world, waiting(2));
      yield* world.gate.open;
      assert.strictEqual((yield* Fiber.join(before)).status, 200);
      assert.strictEqual((yield* Fiber.join(behind)).status, 200);
    }),
  );

  it.live("is waited for even if its first request broke before a head, because a connection proves the address", () =>
    Effect.gen(function* () {
      let close: Effect.Effect<void> = Effect.void;
      const server = yield* FaultProvider.make({
        script: { answers: [{ break: { kind: "rst", at: "before_head" } }, { content: [{ text: 2 }] }] },
        beforeBreak: () => Effect.suspend(() => close),
      });
      const gate = yield* gateTo(server.url);
      close = gate.close;
      const world = yield* front(gate.url);
      const asked = yield* Effect.forkScoped(post(world.url, "openai-chat"));
      yield* untilPath(world, (path) => path.state === "down" && path.waiting === 1);
      yield* gate.open;
      const got = yield* Fiber.join(asked);
      assert.deepStrictEqual([got.status, got.broken], [200, false]);
      assert.strictEqual((yield* server.log).length, 2);
    }).pipe(Effect.orDie),
  );

  it.live("is reported within seconds if this process has never reached it", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({});
      const gate = yield* gateTo(server.url);
      const { url } = yield* front(gate.url);
      yield* gate.close;
      const got = yield* unstreamed(url, "openai-chat");
      assert.strictEqual(got.status, 400);
      assert.strictEqual(got.headers["x-recovery-code"], "ECONNREFUSED");
      assert.strictEqual(got.headers["x-should-retry"], "false");
    }).pipe(Effect.orDie),
  );
});

/** The delay that the provider announces, in milliseconds. */
const coolMs = 1_000;

/** A provider that refuses the first request of a key and announces a delay; it records the times of requests by key. */
const cooling = (refuses: ReadonlySet<string>) =>
  Effect.gen(function* () {
    const seen: Array<{ readonly key: string; readonly at: number }> = [];
    const told = new Map<string, number>();
    const url = yield* serverOf((request, response) => {
      request.resume().on("end", () => {
        const key = request.headers.authorization ?? "";
        seen.push({ key, at: performance.now() });
        if (refuses.has(key) && !told.has(key)) {
          response.writeHead(429, { "retry-after": String(coolMs / 1000), "content-type": "application/json" });
          response.end(JSON.stringify({ error: { message: "Rate limit reached", code: "rate_limit_exceeded" } }));
          told.set(key, performance.now());
          return;
        }
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ choices: [{ index: 0, message: { content: "hi" }, finish_reason: "stop" }] }));
      });
    });
    /** Requests of a key that came during its delay. */
    const early = (key: string) =>
      seen.filter((it) => it.key === key && it.at > (told.get(key) ?? 0) && it.at < (told.get(key) ?? 0) + coolMs - 5);
    return { url, seen, early };
  });

const asking = (url: string, headers: Record<string, string>, n: number) =>
  Effect.forkScoped(
    Effect.promise(() =>
      send(`${url}/v1/chat/completions`, {
        headers: { "content-type": "application/json", ...headers },
        body: JSON.stringify({ model: "m", messages: [{ role: "user", content: String(n) }] }),
      }),
    ),
  );

const isCooling = ({ cooldowns }: PathStatus): boolean => cooldowns.length > 0;

describe("Gateway, a provider that announces a delay", () => {
  it.live("gets no early request of thirty clients with its key, and all are served", () =>
    Effect.gen(function* () {
      const key = "Bearer one";
      const provider = yield* cooling(new Set([key]));
      const world = yield* front(provider.url);
      const first = yield* asking(world.url, { authorization: key }, 0);
      yield* untilPath(world, isCooling);
      const others = yield* Effect.forEach(Array.from({ length: 30 }), (_, n) =>
        asking(world.url, { authorization: key }, n + 1),
      );
      const all = yield* Effect.forEach([first, ...others], (it) => Fiber.join(it));
      assert.deepStrictEqual(
        all.map(({ status }) => status),
        all.map(() => 200),
      );
      assert.lengthOf(provider.early(key), 0);
      assert.lengthOf(provider.seen, 32);
    }),
  );

  it.live("gets requests of another key during the delay", () =>
    Effect.gen(function* () {
      const provider = yield* cooling(new Set(["Bearer one"]));
      const world = yield* front(provider.url);
      const held = yield* asking(world.url, { authorization: "Bearer one" }, 0);
      yield* untilPath(world, isCooling);
      const other = yield* Fiber.join(yield* asking(world.url, { authorization: "Bearer two" }, 1));
      assert.strictEqual(other.status, 200);
      assert.isUndefined(held.pollUnsafe(), "the other key is not held");
      assert.strictEqual((yield* Fiber.join(held)).status, 200);
      assert.lengthOf(provider.early("Bearer one"), 0);
    }),
  );

  it.live("is respected by every token whose upstream has the same credential", () =>
    Effect.gen(function* () {
      const provider = yield* cooling(new Set(["Bearer sk-own"]));
      const token = (name: string) => ({
        ...{ name, page: false, metrics: false },
        token: Redacted.make(`${name}-token-of-24-characters`),
      });
      const world = yield* front(provider.url, {
        tokens: [token("a"), token("b")],
        named: [{ name: "openai", url: `${provider.url}/v1`, headers: [], credential: Redacted.make("sk-own") }],
      });
      const by = (name: string, n: number) =>
        asking(world.url, { "x-recovery-token": `${name}-token-of-24-characters`, authorization: `Bearer ${name}` }, n);
      const first = yield* by("a", 0);
      yield* untilPath(world, isCooling);
      const second = yield* by("b", 1);
      yield* untilPath(world, waiting(2));
      assert.strictEqual((yield* Fiber.join(first)).status, 200);
      assert.strictEqual((yield* Fiber.join(second)).status, 200);
      assert.lengthOf(provider.early("Bearer sk-own"), 0);
      const [path] = Context.get(world.services, Paths).list();
      assert.notInclude(JSON.stringify(path), "sk-own");
    }),
  );
});
