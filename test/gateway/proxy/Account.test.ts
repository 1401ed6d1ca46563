/** The parts of the account behind the operator's credential that clients can reach. */
import { gzipSync } from "node:zlib";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Redacted } from "effect";
import type { GatewayToken } from "../../../src/gateway/config/Options.ts";
import type { UpstreamSettings } from "../../../src/gateway/config/UpstreamSettings.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";
import { samples, textAnswer } from "../../samples/index.ts";
import { bodies, front, paths, protocols, send } from "../GatewayCases.ts";
import { type Answering, recording, streaming } from "../routes/RouteCases.ts";

const key = 'sk-operator/"key"-0123456789';
const secrets = { dev: "token-of-a-developer-1", colleague: "token-of-a-colleague-1", admin: "token-of-an-admin-0001" };

const token = (name: keyof typeof secrets, more: Partial<GatewayToken> = {}): GatewayToken => ({
  ...{ name, token: Redacted.make(secrets[name]), page: false, metrics: false, ...more },
});

const ok: Answering = (response) => {
  response.writeHead(200, { "content-type": "application/json" });
  response.end('{"data":"OF-THE-ACCOUNT"}');
};

/** A gateway whose upstream `team` has the operator's credential, and `mine` has none. */
const team = (answers: Answering, more: Partial<UpstreamSettings> = {}) =>
  Effect.gen(function* () {
    const server = yield* recording(answers);
    const credential = Redacted.make(key);
    const gateway = yield* front("http://127.0.0.1:9", {
      named: [
        { name: "team", url: `${server.url}/v1`, headers: [], credential, ...more },
        { name: "root", url: server.url, headers: [], credential, ...more },
        { name: "mine", url: `${server.url}/v1`, headers: [] },
      ],
      tokens: [token("dev"), token("colleague"), token("admin", { paths: ["GET /v1/responses/*", "/v1/files"] })],
      budget: { max_auto_retries: 0, max_not_processed: 0 },
    });
    const ask = (
      name: keyof typeof secrets,
      path: string,
      { body, headers = {}, method = body === undefined ? "GET" : "POST" }: Asking = {},
    ) =>
      Effect.promise(() =>
        send(gateway.url, {
          method,
          path,
          headers: { "x-recovery-token": secrets[name], ...headers },
          ...(body === undefined ? {} : { body: typeof body === "string" ? body : JSON.stringify(body) }),
        }),
      );
    return { ask, gateway, server };
  });

interface Asking {
  readonly method?: string;
  readonly body?: object | string;
  readonly headers?: Record<string, string>;
}

const refusedBy = (got: { readonly headers: { readonly [name: string]: unknown } }) =>
  got.headers["x-recovery-refused"];

describe("behind the operator's credential", () => {
  it.live("a token reaches models, and nothing else of the account", () =>
    Effect.gen(function* () {
      const { ask, server } = yield* team(ok);
      for (const path of [
        "/v1/files",
        "/v1/organization/admin_api_keys",
        "/v1/chat/completions",
        "/v1/messages/batches",
      ]) {
        const got = yield* ask("dev", `/u/team${path}`);
        assert.strictEqual(got.status, 403, path);
        assert.strictEqual(refusedBy(got), "path", path);
        assert.include(got.text, "operator's credential", path);
      }
      const claude = yield* ask("dev", "/u/root/v1/messages/batches", { method: "POST", body: {} });
      assert.deepInclude(JSON.parse(claude.text), { type: "error" });
      const gemini = yield* ask("dev", "/u/root/v1beta/files");
      assert.deepInclude(JSON.parse(gemini.text).error, { code: 403, status: "PATH" });
      assert.lengthOf(server.asked, 0);
      for (const path of ["/v1/models", "/v1/models/gpt-5"])
        assert.strictEqual((yield* ask("dev", `/u/team${path}`)).status, 200, path);
      const counted = yield* ask("dev", "/u/root/v1/messages/count_tokens", { body: { model: "m", messages: [] } });
      assert.strictEqual(counted.status, 200);
    }),
  );

  it.live("a path in another spelling reaches no more than that", () =>
    Effect.gen(function* () {
      const { ask, server } = yield* team(ok);
      for (const path of [
        ...[
          "/chat/completions/../../v1/files",
          "/chat/completions/../files",
          "//files",
          "/%66iles",
          "/files/",
          "/FILES",
        ],
        ...[
          "/models/..%2ffiles",
          "/models/%2e%2e/files",
          "/models/x%2f..%2f..%2ffiles",
          "/models/..;/files",
          "/files;/models",
        ],
        ...[
          "/models/../files?x=/v1/models",
          "/files?/v1/models",
          "/models?$httpMethod=DELETE",
          "/responses/..%2Ffiles",
        ],
      ]) {
        const got = yield* ask("dev", `/u/team/v1${path}`);
        assert.oneOf(got.status, [403, 404], path);
      }
      assert.lengthOf(server.asked, 0);
    }),
  );

  it.live("no header of a client sends a request to another host", () =>
    Effect.gen(function* () {
      const { ask, server } = yield* team(ok);
      const headers = {
        ...{ "x-http-method-override": "DELETE", "x-http-method": "DELETE", "x-method-override": "DELETE" },
        ...{ "x-original-url": "/v1/files", "x-rewrite-url": "/v1/files", "x-forwarded-uri": "/v1/files" },
      };
      yield* ask("dev", "/u/team/v1/models", { headers });
      assert.lengthOf(server.asked, 1);
      for (const name of Object.keys(headers)) assert.notProperty(server.asked[0]?.headers, name);
      yield* ask("dev", "/u/mine/v1/models", { headers });
      assert.deepInclude(server.asked[1]?.headers, headers);
    }),
  );

  it.live("every protocol is relayed, and embeddings pass through", () =>
    Effect.gen(function* () {
      let protocol: ProtocolId = "openai-chat";
      const { ask } = yield* team((response, asked) => streaming(textAnswer(protocol, "hello"))(response, asked));
      for (protocol of protocols) {
        const name = protocol.startsWith("openai") ? "team" : "root";
        const got = yield* ask("dev", `/u/${name}${paths[protocol]}`, { body: bodies[protocol] });
        // A conversation of Mistral belongs to the account, so only `paths` can permit it.
        const isAllowed = samples[protocol].calls.length > 0;
        assert.strictEqual(got.status, isAllowed ? 200 : 403, protocol);
        if (isAllowed) assert.include(got.text, "hello", protocol);
      }
      assert.strictEqual((yield* ask("dev", "/u/team/v1/embeddings", { body: { input: "x" } })).status, 200);
    }),
  );

  it.live("paths configured for the upstream and the token permit more", () =>
    Effect.gen(function* () {
      const { ask } = yield* team(ok, { paths: ["POST /v1/images/generations"] });
      const image = { body: { model: "m" } };
      assert.strictEqual((yield* ask("dev", "/u/team/v1/images/generations", image)).status, 200);
      assert.strictEqual((yield* ask("dev", "/u/team/v1/files")).status, 403);
      assert.strictEqual((yield* ask("admin", "/u/team/v1/files")).status, 200);
      assert.strictEqual((yield* ask("admin", "/u/team/v1/files/f")).status, 403);
    }),
  );

  it.live("an upstream whose client brings its own credential accepts any path", () =>
    Effect.gen(function* () {
      const { ask } = yield* team(ok);
      for (const path of ["/v1/files", "/v1/organization/costs", "/v1/responses/resp_x"])
        assert.strictEqual((yield* ask("dev", `/u/mine${path}`)).status, 200, path);
    }),
  );
});

/** Answers posts with a response of the next id, as a stream or as a document. */
const storing = (): Answering => {
  let number = 0;
  return (response, asked) => {
    if (asked.method !== "POST" || !/\/responses$/.test(asked.url)) return ok(response, asked);
    number += 1;
    const text = textAnswer("openai-responses", "hello").replaceAll("resp_1", `resp_${number}`);
    if (JSON.parse(asked.body).stream === true) return streaming(text)(response, asked);
    response.writeHead(200, { "content-type": "application/json" });
    response.end(JSON.stringify({ id: `resp_${number}`, object: "response", status: "completed", output: [] }));
  };
};

const request = bodies["openai-responses"];

describe("a stored response", () => {
  it.live("belongs to the token that made it", () =>
    Effect.gen(function* () {
      const { ask, server } = yield* team(storing());
      const stored = [request, { ...request, stream: false }];
      for (const [at, body] of stored.entries()) {
        yield* ask("colleague", "/u/team/v1/responses", { body });
        const id = `resp_${at + 1}`;
        const before = server.asked.length;
        for (const [method, path] of [
          ...([
            ["GET", ""],
            ["DELETE", ""],
            ["GET", "/input_items"],
            ["POST", "/cancel"],
          ] as const),
        ]) {
          const got = yield* ask("dev", `/u/team/v1/responses/${id}${path}`, { method });
          assert.strictEqual(got.status, 404, `${method} ${path}`);
          assert.strictEqual(refusedBy(got), "not_found", `${method} ${path}`);
          assert.strictEqual((yield* ask("admin", `/u/team/v1/responses/${id}`)).status, 404);
        }
        // Another name for the same account gives no access to it.
        assert.strictEqual((yield* ask("dev", `/u/root/v1/responses/${id}`)).status, 404);
        assert.lengthOf(server.asked, before);
        assert.strictEqual((yield* ask("colleague", `/u/team/v1/responses/${id}`)).status, 200);
        assert.strictEqual((yield* ask("colleague", `/u/team/v1/responses/${id}`, { method: "DELETE" })).status, 200);
      }
    }),
  );

  it.live("cannot be continued with another token, even by its id", () =>
    Effect.gen(function* () {
      const { ask, server } = yield* team(storing());
      yield* ask("colleague", "/u/team/v1/responses", { body: request });
      const before = server.asked.length;
      const named = [
        { previous_response_id: "resp_1" },
        { Previous_Response_Id: "resp_1" },
        { conversation: "resp_1" },
      ];
      for (const more of [...named, { conversation: { id: "resp_1" } }])
        for (const path of ["/responses", "/responses/input_tokens", "/responses/compact"]) {
          const got = yield* ask("dev", `/u/team/v1${path}`, { body: { ...request, ...more } });
          assert.strictEqual(got.status, 404, JSON.stringify(more));
        }
      for (const body of [
        '{"previous_response_id":"resp_1","previous_response_id":"resp_0","input":"x"}',
        '{"previous_response_id":null,"previous\\u005fresponse_id":"resp_1","input":"x"}',
        `{"input":[{"role":"user","content":"${"x".repeat(400_000)}"}],"conversation":{"ID":"resp_1","id":"a"}}`,
      ])
        assert.strictEqual((yield* ask("dev", "/u/team/v1/responses", { body })).status, 404, body.slice(0, 80));
      const said = [{ role: "user", content: '"previous_response_id":"resp_1"', conversation: "resp_1" }];
      const quoting = yield* ask("dev", "/u/team/v1/responses", { body: { ...request, input: said } });
      assert.strictEqual(quoting.status, 200);
      server.asked.pop();
      const got = yield* ask("dev", "/u/team/v1/responses", { body: { ...request, previous_response_id: "resp_1" } });
      assert.strictEqual(JSON.parse(got.text).error.code, "previous_response_not_found");
      assert.lengthOf(server.asked, before);
      const own = yield* ask("colleague", "/u/team/v1/responses", {
        body: { ...request, previous_response_id: "resp_1" },
      });
      assert.strictEqual(own.status, 200);
    }),
  );

  it.live("with an unknown id is closed by path and open as a conversation, so that a restart loses none", () =>
    Effect.gen(function* () {
      const { ask, server } = yield* team(storing());
      assert.strictEqual((yield* ask("dev", "/u/team/v1/responses/resp_old")).status, 404);
      assert.lengthOf(server.asked, 0);
      assert.strictEqual((yield* ask("admin", "/u/team/v1/responses/resp_old")).status, 200);
      const body = { ...request, previous_response_id: "resp_old" };
      assert.strictEqual((yield* ask("dev", "/u/team/v1/responses", { body })).status, 200);
    }),
  );

  it.live("is not looked up in a body that the gateway cannot parse", () =>
    Effect.gen(function* () {
      const { ask, server } = yield* team(storing());
      for (const [body, headers] of [
        ["[]", {}],
        ["{", {}],
        ["{}", { "content-encoding": "unknown" }],
      ] as const) {
        const got = yield* ask("dev", "/u/team/v1/responses", { body, headers });
        assert.strictEqual(got.status, 400, body);
        assert.strictEqual(refusedBy(got), "body", body);
      }
      assert.lengthOf(server.asked, 0);
    }),
  );

  it.live("and a conversation belong to the token that made them", () =>
    Effect.gen(function* () {
      const made: Answering = (response) => {
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ id: "conv_1", object: "conversation" }));
      };
      const { ask } = yield* team(made, { paths: ["POST /v1/conversations", "/v1/conversations/*"] });
      assert.strictEqual((yield* ask("colleague", "/u/team/v1/conversations", { body: {} })).status, 200);
      assert.strictEqual((yield* ask("dev", "/u/team/v1/conversations/conv_1")).status, 404);
      assert.strictEqual((yield* ask("colleague", "/u/team/v1/conversations/conv_1")).status, 200);
      const got = yield* ask("dev", "/u/team/v1/responses", { body: { ...request, conversation: "conv_1" } });
      assert.strictEqual(got.status, 404);
    }),
  );
});

/** Spellings in which a provider may quote the key. */
const quotes = [key, JSON.stringify(key).slice(1, -1), encodeURIComponent(key)];

const quoted = `no such key: ${quotes.join(" and ")}.`;

const quotesNothing = (text: string) => {
  for (const quote of quotes) assert.notInclude(text, quote);
  assert.include(text, "no such key: ***");
};

describe("the operator's key", () => {
  const plain: Answering = (response) => {
    response.writeHead(401, `Unauthorized ${key}`, { "content-type": "text/plain", "x-quoted": quoted });
    // One byte at a time, because a key may arrive in pieces.
    const pieces = [...Buffer.from(quoted)].map((byte) => Buffer.from([byte]));
    const next = (): void => {
      const piece = pieces.shift();
      if (piece === undefined) response.end();
      else response.write(piece, next);
    };
    next();
  };

  it.live("is in no refusal, of a model request or of another one", () =>
    Effect.gen(function* () {
      const { ask, gateway } = yield* team(plain);
      const relayed = yield* ask("dev", "/u/team/v1/chat/completions", { body: bodies["openai-chat"] });
      const passed = yield* ask("dev", "/u/team/v1/models");
      const unread = yield* ask("dev", "/u/team/v1/chat/completions", { body: "[]" });
      for (const got of [relayed, passed, unread]) {
        assert.strictEqual(got.status, 401);
        quotesNothing(got.text);
        quotesNothing(String(got.headers["x-quoted"]));
        assert.notInclude(got.statusText, key);
      }
      const runs = JSON.stringify(yield* gateway.runs);
      for (const quote of quotes) assert.notInclude(runs, quote);
    }),
  );

  it.live("is in no compressed error", () =>
    Effect.gen(function* () {
      const { ask, server } = yield* team((response) => {
        response.writeHead(403, { "content-type": "text/plain", "content-encoding": "gzip" });
        response.end(gzipSync(quoted));
      });
      const got = yield* ask("dev", "/u/team/v1/models", { headers: { "accept-encoding": "gzip" } });
      assert.strictEqual(server.asked[0]?.headers["accept-encoding"], "identity");
      quotesNothing(got.text);
    }),
  );

  it.live("is in no error in an encoding that the gateway cannot read", () =>
    Effect.gen(function* () {
      const { ask } = yield* team((response) => {
        response.writeHead(403, { "content-type": "text/plain", "content-encoding": "odd" });
        response.end(quoted);
      });
      const relayed = { body: bodies["openai-chat"] };
      for (const got of [
        yield* ask("dev", "/u/team/v1/chat/completions", relayed),
        yield* ask("dev", "/u/team/v1/models"),
      ]) {
        assert.strictEqual(got.status, 403);
        assert.strictEqual(got.text, "");
        assert.isFalse(got.broken);
      }
    }),
  );

  it.live("is in no error event, and in no record of it", () =>
    Effect.gen(function* () {
      for (const protocol of protocols) {
        const error = { type: "authentication_error", code: key, message: quoted };
        const event = JSON.stringify(
          protocol === "openai-responses"
            ? { type: "response.failed", response: { id: "resp_1", status: "failed", error } }
            : { type: "error", error },
        );
        const { ask, gateway } = yield* team(
          streaming(`${protocol === "anthropic-messages" ? "event: error\n" : ""}data: ${event}\n\n`),
        );
        const name = protocol.startsWith("openai") ? "team" : "root";
        const got = yield* ask("dev", `/u/${name}${paths[protocol]}`, { body: bodies[protocol] });
        const all = got.text + JSON.stringify(got.rawHeaders) + JSON.stringify(yield* gateway.runs);
        for (const quote of quotes) assert.notInclude(all, quote, protocol);
      }
    }),
  );

  it.live("is in no error document with a status of success", () =>
    Effect.gen(function* () {
      const { ask } = yield* team((response) => {
        response.writeHead(200, { "content-type": "application/json" });
        response.end(JSON.stringify({ error: { type: "server_error", code: "server_error", message: quoted } }));
      });
      const body = { ...bodies["openai-chat"], stream: false };
      const got = yield* ask("dev", "/u/team/v1/chat/completions", { body });
      for (const quote of quotes) assert.notInclude(got.text, quote);
    }),
  );
});

describe("the root of a gateway", () => {
  it.live("reaches no provider, nor do the files that browsers and crawlers request", () =>
    Effect.gen(function* () {
      const { ask, server } = yield* team(ok);
      for (const prefix of ["", "/u/team", "/u/mine"])
        for (const [path, status] of [
          ...([
            ["/", 200],
            ["/?a", 200],
            ["/favicon.ico", 404],
            ["/robots.txt", 404],
            ["/%66avicon.ico", 404],
          ] as const),
        ])
          for (const method of ["GET", "HEAD"])
            assert.strictEqual((yield* ask("dev", `${prefix}${path}`, { method })).status, status, `${prefix}${path}`);
      assert.lengthOf(server.asked, 0);
    }),
  );

  it.live("requires a Host that is a name or an address", () =>
    Effect.gen(function* () {
      const { ask, server } = yield* team(ok);
      for (const host of [
        "a@127.0.0.1",
        "127.0.0.1@evil",
        "a:b@127.0.0.1",
        "127.0.0.1/x",
        "127.0.0.1?x",
        "127.0.0.1:1:2",
      ])
        for (const path of ["/u/team/v1/models", "/livez", "/recovery/", "/"]) {
          const got = yield* ask("dev", path, { headers: { host } });
          assert.strictEqual(got.status, 400, `${host} ${path}`);
          assert.strictEqual(refusedBy(got), "host", `${host} ${path}`);
        }
      assert.lengthOf(server.asked, 0);
      for (const host of ["127.0.0.1", "localhost:8787", "[::1]:1"])
        assert.strictEqual((yield* ask("dev", "/u/team/v1/models", { headers: { host } })).status, 200, host);
    }),
  );
});
