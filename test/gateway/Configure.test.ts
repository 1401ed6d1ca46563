import type { IncomingHttpHeaders } from "node:http";
import { connect } from "node:tls";
import { assert, describe, it } from "@effect/vitest";
import { Context, Effect, Redacted } from "effect";
import { Traffic } from "../../src/gateway/api/Traffic.ts";
import type { UpstreamSettings } from "../../src/gateway/config/UpstreamSettings.ts";
import * as RecoveryPage from "../../src/gateway/page/RecoveryPage.ts";
import { FaultProvider } from "../../src/testing/index.ts";
import * as Certificates from "../failure/provoked/Certificates.ts";
import { serverOf } from "../Servers.ts";
import { bodies, front, paths, protocols, recovery, send } from "./GatewayCases.ts";

const chat = JSON.stringify(bodies["openai-chat"]);
const path = paths["openai-chat"];

const upstream = (name: string, url: string, more: Partial<UpstreamSettings> = {}): UpstreamSettings => ({
  ...{ name, url, headers: [], ...more },
});

/** A server that answers with the name it was given, and what it was sent. */
const named = (name: string, seen: Array<{ readonly url: string; readonly headers: IncomingHttpHeaders }> = []) =>
  Effect.map(
    serverOf((request, response) => {
      seen.push({ url: request.url ?? "", headers: request.headers });
      response.writeHead(200, { "content-type": "application/json" });
      response.end(JSON.stringify({ name }));
    }),
    (url) => ({ url, seen }),
  );

const nameOf = (text: string): unknown => JSON.parse(text);

describe("a gateway with named upstreams", () => {
  it.live("reaches two servers of one protocol side by side, each with what is its own", () =>
    Effect.gen(function* () {
      const [one, two] = [yield* named("one"), yield* named("two")];
      const mine = { credential: Redacted.make("sk-mine"), headers: [["x-team", "b"]] as const };
      const gateway = yield* front("http://127.0.0.1:9", {
        named: [upstream("one", `${one.url}/v1`), upstream("two", `${two.url}/v1`, mine)],
      });
      const headers = {
        authorization: "Bearer sk-theirs",
        "x-api-key": "SECRET",
        cookie: "a=SECRET",
        "x-recovery-reveal": "live",
      };
      const ask = (name: string, query = "") => send(`${gateway.url}/u/${name}/v1/models${query}`, { headers });
      const [first, second] = yield* Effect.promise(() => Promise.all([ask("one"), ask("two", "?key=SECRET&a=b")]));
      // The client's other credential is Anthropic's by its name, and goes to no server of another's.
      assert.strictEqual(first.status, 400);
      assert.deepStrictEqual(nameOf(second.text), { name: "two" });
      assert.lengthOf(one.seen, 0);
      assert.strictEqual(two.seen[0]?.url, "/v1/models?a=b");
      assert.deepInclude(two.seen[0]?.headers, { authorization: "Bearer sk-mine", "x-team": "b" });
      assert.notInclude(JSON.stringify(two.seen), "SECRET");
      assert.notProperty(two.seen[0]?.headers, "x-recovery-reveal");
      const plain = yield* Effect.promise(() =>
        send(`${gateway.url}/u/one/v1/models`, { headers: { authorization: "Bearer k" } }),
      );
      assert.deepStrictEqual(nameOf(plain.text), { name: "one" });
      assert.strictEqual(one.seen[0]?.headers.authorization, "Bearer k");
    }),
  );

  it.live("sends what is an upstream's own whatever its client calls a matter of the connection", () =>
    Effect.gen(function* () {
      const { seen, url } = yield* named("one");
      const headers = [["x-team", "b"]] as const;
      const gateway = yield* front("http://127.0.0.1:9", {
        named: [
          upstream("a", `${url}/v1`, { credential: Redacted.make("sk-mine"), headers }),
          upstream("b", `${url}/v1`, { headers }),
        ],
      });
      const connection = { connection: "authorization, x-team, x-hop", "x-hop": "1", "x-team": "theirs" };
      for (const name of ["a", "b"]) {
        yield* Effect.promise(() => send(`${gateway.url}/u/${name}/v1/models`, { headers: connection }));
        yield* Effect.promise(() => send(`${gateway.url}/u/${name}${path}`, { headers: connection, body: chat }));
      }
      assert.deepStrictEqual(
        seen.map(({ headers: sent }) => [sent.authorization, sent["x-team"], sent["x-hop"]]),
        [...[1, 2].map(() => ["Bearer sk-mine", "b", undefined]), ...[1, 2].map(() => [undefined, "b", undefined])],
      );
    }),
  );

  it.live("serves every protocol under a name, and recovers there too", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({
        script: { answers: [{ break: { kind: "rst", at: "before_head" } }, { content: [{ text: 3 }] }] },
      });
      for (const protocol of protocols) {
        const url = protocol.startsWith("openai") ? `${server.url}/v1` : server.url;
        const gateway = yield* front("http://127.0.0.1:9", { named: [upstream("a", url, { protocols: [protocol] })] });
        const got = yield* Effect.promise(() =>
          send(`${gateway.url}/on_complete/u/a${paths[protocol]}`, { body: JSON.stringify(bodies[protocol]) }),
        );
        assert.strictEqual(got.status, 200, `${protocol} ${got.text}`);
        assert.isFalse(got.broken);
      }
    }),
  );

  it.live("sends an upstream's own credential with each attempt, and knows its client's repeat by the client's", () =>
    Effect.gen(function* () {
      const seen: Array<IncomingHttpHeaders> = [];
      const url = yield* serverOf((request, response) => {
        seen.push(request.headers);
        response.writeHead(503, { "content-type": "application/json" });
        response.end('{"error":{"message":"busy"}}');
      });
      const credential = Redacted.make("sk-mine");
      const gateway = yield* front("http://127.0.0.1:9", {
        named: [upstream("a", `${url}/v1`, { credential, headers: [["user-agent", "us/1"]] })],
        budget: { max_auto_retries: 1, max_not_processed: 1 },
      });
      const ask = (key: string) =>
        Effect.promise(() =>
          send(`${gateway.url}/u/a${path}`, {
            body: chat,
            headers: { authorization: `Bearer ${key}`, "x-api-key": "SECRET" },
          }),
        );
      yield* ask("one");
      yield* ask("two");
      const sent = seen.length;
      assert.isAtLeast(sent, 4);
      // The first client's own repeat is answered from memory; another client's same request was a run of its own.
      yield* ask("one");
      assert.lengthOf(seen, sent);
      assert.lengthOf(yield* gateway.runs, 2);
      for (const headers of seen) {
        assert.deepInclude(headers, { authorization: "Bearer sk-mine", "user-agent": "us/1" });
        assert.notProperty(headers, "x-api-key");
      }
    }),
  );

  it.live("applies the tolerance of one upstream to its streams only", () =>
    Effect.gen(function* () {
      const chunk = JSON.stringify({ choices: [{ index: 0, delta: { content: "Hi" }, finish_reason: null }] });
      const url = yield* serverOf((_, response) => {
        response.writeHead(200, { "content-type": "text/event-stream" });
        response.end(`data: ${chunk}\n\ndata: [DONE]\n\n`);
      });
      const gateway = yield* front(url, {
        budget: { max_auto_retries: 0, max_not_processed: 0 },
        named: [upstream("strict", url), upstream("lax", url, { tolerance: { doneWithoutFinish: true } })],
      });
      const ask = (name: string) => Effect.promise(() => send(`${gateway.url}/u/${name}${path}`, { body: chat }));
      assert.isFalse((yield* ask("lax")).broken);
      assert.isTrue((yield* ask("strict")).broken);
    }),
  );
});

describe("Gateway.configure", () => {
  it.live("changes new requests; one that runs keeps what it began with", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({ script: { answers: [{ content: [{ text: 20 }], delay_ms: 5 }] } });
      const gateway = yield* front(server.url, { named: [upstream("a", `${server.url}/v1`)] });
      const url = `${gateway.url}/u/a${path}`;
      let configured: Promise<ReadonlyArray<string>> | undefined;
      const running = yield* Effect.promise(() =>
        send(url, {
          body: chat,
          onData: () => {
            configured ??= Effect.runPromise(gateway.gateway.configure({ token: "a-token-of-24-characters" }));
          },
        }),
      );
      assert.isFalse(running.broken);
      assert.deepStrictEqual(yield* Effect.promise(async () => await configured), ["port"]);
      const without = yield* Effect.promise(() => send(url, { body: chat }));
      assert.strictEqual(recovery(without, "refused"), "token");
      const gone = yield* Effect.promise(() =>
        send(`${gateway.url}/t/a-token-of-24-characters/u/a${path}`, { body: chat }),
      );
      assert.deepStrictEqual([gone.status, recovery(gone, "refused")], [404, "address"]);
    }),
  );

  it.live("listens with a certificate that was renewed, and keeps the one it has where the new one is none", () =>
    Effect.gen(function* () {
      const { url } = yield* named("one");
      const tls = (cert: string) => ({ cert, key: Redacted.make(Certificates.key) });
      const gateway = yield* front(url, { tls: tls(Certificates.localhost) });
      const nameNow = () =>
        Effect.promise(
          () =>
            new Promise<string | undefined>((resolve, reject) => {
              const socket = connect(
                { port: gateway.gateway.port, host: "127.0.0.1", rejectUnauthorized: false },
                () => {
                  resolve(String(socket.getPeerCertificate().subject.CN));
                  socket.destroy();
                },
              );
              socket.on("error", reject);
            }),
        );
      assert.match(gateway.url, /^https:/);
      assert.strictEqual(yield* nameNow(), "test only, valid");
      yield* gateway.gateway.configure({ port: 0, tls: tls(Certificates.elsewhere) });
      assert.strictEqual(yield* nameNow(), "test only, elsewhere");
      const failed = yield* Effect.flip(gateway.gateway.configure({ port: 0, tls: tls("no certificate") }));
      assert.strictEqual(failed.message, "tls: expected a certificate and its key (PEM)");
      assert.strictEqual(yield* nameNow(), "test only, elsewhere");
      assert.deepStrictEqual(yield* gateway.gateway.configure({ port: 0 }), ["tls"]);
    }),
  );

  it.live("changes nothing if one option is invalid", () =>
    Effect.gen(function* () {
      const { seen, url } = yield* named("one");
      const gateway = yield* front(url);
      const failed = yield* Effect.flip(
        gateway.gateway.configure({ upstreams: { openai: "nowhere" }, token: "a-token-of-24-characters" }),
      );
      assert.strictEqual(failed.reason, "bad_option");
      assert.strictEqual((yield* Effect.promise(() => send(`${gateway.url}/v1/models`))).status, 200);
      assert.lengthOf(seen, 1);
    }),
  );

  it.live("refuses to remove the token of a gateway that other machines reach", () =>
    Effect.gen(function* () {
      const { url } = yield* named("one");
      const token = "a-token-of-24-characters";
      const gateway = yield* front(url, { host: "0.0.0.0", token });
      const failed = yield* Effect.flip(gateway.gateway.configure({ host: "127.0.0.1" }));
      assert.match(failed.message, /^token: required/);
      const address = gateway.url.replace("0.0.0.0", "127.0.0.1");
      assert.strictEqual((yield* Effect.promise(() => send(`${address}/v1/models`))).status, 401);
    }),
  );

  it.live("applies new limits, modes and policies to new requests", () =>
    Effect.gen(function* () {
      const server = yield* FaultProvider.make({
        script: { answers: [{ break: { kind: "rst", at: "before_head" } }, { content: [{ text: 3 }] }] },
      });
      const gateway = yield* front(server.url);
      const upstreams = { openai: `${server.url}/v1` };
      const limits = { maxBodyBytes: 4 };
      assert.deepStrictEqual(yield* gateway.gateway.configure({ upstreams, limits, port: 0 }), []);
      assert.strictEqual((yield* Effect.promise(() => send(`${gateway.url}${path}`, { body: chat }))).status, 413);
      const policy = { not_sent: "do_not_retry", nothing_shown: "do_not_retry" } as const;
      yield* gateway.gateway.configure({ upstreams, port: 0, policy });
      const got = yield* Effect.promise(() => send(`${gateway.url}${path}`, { body: chat }));
      assert.notStrictEqual(got.status, 200);
      assert.lengthOf(yield* server.log, 1);
    }),
  );
});

describe("tokens of a gateway", () => {
  it.live("permit what they say, over sockets", () =>
    Effect.gen(function* () {
      const { seen, url } = yield* named("one");
      const [all, some] = ["a-token-of-24-characters", "another-token-of-some-length"];
      const gateway = yield* front(url, {
        token: all,
        named: [upstream("a", url)],
        tokens: [{ name: "some", token: Redacted.make(some), upstreams: ["a"], page: false, metrics: false }],
      });
      const ask = (token: string, target: string) =>
        Effect.promise(() => send(`${gateway.url}${target}`, { headers: { "x-recovery-token": token } }));
      assert.strictEqual((yield* ask(some, "/u/a/v1/models")).status, 200);
      assert.strictEqual((yield* ask(all, "/v1/models")).status, 200);
      assert.lengthOf(seen, 2);
      for (const target of ["/v1/models", "/u/openai/v1/models", "/recovery/", "/recovery/api/runs", "/metrics"]) {
        const refused = yield* ask(some, target);
        assert.deepStrictEqual([refused.status, recovery(refused, "refused")], [403, "permission"], target);
        assert.notInclude(refused.text, some);
      }
      assert.strictEqual((yield* ask("wrong-token-of-some-length", "/u/a/v1/models")).status, 401);
      assert.lengthOf(seen, 2);
      const { tokens } = yield* Context.get(gateway.services, Traffic).status;
      assert.deepStrictEqual(tokens, { default: 1, some: 6 });
    }),
  );

  it.live("permit the page and the metrics apart, however a path is written", () =>
    Effect.gen(function* () {
      const [page, metrics] = ["a-token-of-24-characters", "another-token-of-some-length"];
      const own = { page: false, metrics: false };
      const gateway = yield* front(
        "http://127.0.0.1:9",
        {
          tokens: [
            { ...own, name: "page", token: Redacted.make(page), page: true },
            { ...own, name: "metrics", token: Redacted.make(metrics), metrics: true },
          ],
        },
        RecoveryPage.layer,
      );
      const ask = (token: string, path: string) =>
        Effect.promise(() => send(gateway.url, { headers: { "x-recovery-token": token }, path }));
      assert.strictEqual((yield* ask(page, "/recovery/api/runs")).status, 200);
      assert.strictEqual((yield* ask(metrics, "/metrics")).status, 200);
      for (const path of ["/metrics/../recovery/api/runs", "/metrics/%2e%2e/recovery/"])
        assert.strictEqual((yield* ask(metrics, path)).status, 404, path);
      assert.strictEqual((yield* ask(page, "/recovery/../metrics")).status, 404);
    }),
  );
});
