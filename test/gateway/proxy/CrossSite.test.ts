/**
 * A browser's access to a local gateway, over sockets: the requests that are refused, and the answers to the others.
 */
import { connect } from "node:net";
import { assert, describe, it } from "@effect/vitest";
import { Effect } from "effect";
import * as RecoveryPage from "../../../src/gateway/page/RecoveryPage.ts";
import { serverOf } from "../../Servers.ts";
import { bodies, front, type Got, recovery, send } from "../GatewayCases.ts";

/** An upstream whose every answer is a page that would act on the gateway's origin. */
const hostile = (status = 200) =>
  Effect.gen(function* () {
    const seen: Array<Readonly<Record<string, string | ReadonlyArray<string> | undefined>>> = [];
    const at = yield* serverOf((request, response) => {
      seen.push(request.headers);
      request.resume();
      response.writeHead(status, [
        ...["content-type", "text/html", "x-content-type-options", "sniff", "location", "https://elsewhere.example/"],
        ...["set-cookie", "a=1", "Set-Cookie", "b=2", "service-worker-allowed", "/", "clear-site-data", '"*"'],
        ...["refresh", "0; url=https://elsewhere.example/", "access-control-allow-origin", "*", "alt-svc", 'h3=":443"'],
        ...["strict-transport-security", "max-age=1", "x-accel-redirect", "/etc/passwd", "x-request-id", "kept"],
      ]);
      response.end("<script>fetch('/recovery/api/runs')</script>");
    });
    return { at, seen };
  });

const host = { host: "127.0.0.1" };
const navigation = { ...host, "sec-fetch-site": "none", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document" };
const asPage = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";

describe("a browser in front of the gateway", () => {
  const refused: Readonly<Record<string, Record<string, string>>> = {
    "an address that is typed": navigation,
    "a link of another site": { ...navigation, "sec-fetch-site": "cross-site" },
    "a link of the gateway's own page": { ...navigation, "sec-fetch-site": "same-origin" },
    "a navigation with a key": { ...navigation, authorization: "Bearer k" },
    "a frame": { ...host, "sec-fetch-site": "same-origin", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe" },
    "a script": { ...host, "sec-fetch-site": "same-origin", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script" },
    "an image of another site": {
      ...host,
      "sec-fetch-site": "cross-site",
      "sec-fetch-mode": "no-cors",
      "sec-fetch-dest": "image",
    },
    "a worker": {
      ...host,
      "sec-fetch-site": "same-origin",
      "sec-fetch-mode": "same-origin",
      "sec-fetch-dest": "worker",
    },
    "a service worker": { ...host, "service-worker": "script" },
    "a prefetch": { ...host, "sec-purpose": "prefetch" },
    "a page, of a browser that does not say so": { ...host, accept: asPage },
    "an upgraded link": { ...host, "upgrade-insecure-requests": "1" },
  };
  for (const [what, headers] of Object.entries(refused)) {
    it.live(`gets nothing of a provider: ${what}`, () =>
      Effect.gen(function* () {
        const { at, seen } = yield* hostile();
        const { url } = yield* front(at);
        for (const path of ["/v1/models", "/", "/anything"]) {
          const got = yield* Effect.promise(() => send(`${url}${path}`, { headers: { ...headers } }));
          assert.strictEqual(got.status, 403, path);
          assert.match(recovery(got, "refused") ?? "", /^(?:browser|origin)$/);
          assert.match(got.headers["content-type"] ?? "", /^application\/json/);
          assert.strictEqual(got.headers["x-content-type-options"], "nosniff");
        }
        assert.lengthOf(seen, 0);
      }),
    );
  }

  it.live("may open the gateway's own page, even from a link", () =>
    Effect.gen(function* () {
      const { at } = yield* hostile();
      const { url } = yield* front(at, {}, RecoveryPage.layer);
      for (const site of ["none", "cross-site", "same-origin"]) {
        const headers = { ...navigation, "sec-fetch-site": site, accept: asPage };
        assert.strictEqual((yield* Effect.promise(() => send(`${url}/recovery/`, { headers }))).status, 200, site);
      }
    }),
  );

  it.live(
    "can neither send a form nor read anything from another site: by Origin, by a rebound name, or by several of them",
    () =>
      Effect.gen(function* () {
        const { at, seen } = yield* hostile();
        const { url } = yield* front(at, {}, RecoveryPage.layer);
        const body = JSON.stringify(bodies["openai-chat"]);
        const plain = { ...host, "content-type": "text/plain" };
        const asked: ReadonlyArray<readonly [string, Record<string, string> | ReadonlyArray<string>]> = [
          ["POST", { ...plain, origin: "https://evil.example" }],
          ["POST", { ...plain, origin: "null" }],
          ["POST", { ...plain, origin: "http://127.0.0.1:3000" }],
          ["POST", { ...plain, "sec-fetch-site": "same-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "empty" }],
          ["OPTIONS", { ...host, origin: "https://evil.example", "access-control-request-method": "POST" }],
          ["POST", { ...plain, host: "evil.example" }],
          ["POST", ["host", "127.0.0.1", "host", "evil.example", "content-type", "text/plain"]],
          ["POST", ["host", "evil.example", "host", "127.0.0.1", "content-type", "text/plain"]],
          ["POST", [...["host", "127.0.0.1", "origin", "http://127.0.0.1"], ...["origin", "https://evil.example"]]],
        ];
        for (const [method, headers] of asked) {
          for (const path of ["/v1/chat/completions", "/recovery/api/runs/x/answer", "/v1/models"]) {
            const sent = { method, headers, ...(method === "POST" ? { body } : {}) };
            const got = yield* Effect.promise(() => send(`${url}${path}`, sent));
            assert.isTrue(got.status === 403 || got.status === 400, `${method} ${path} ${JSON.stringify(headers)}`);
            assert.notProperty(got.headers, "access-control-allow-origin");
          }
        }
        assert.lengthOf(seen, 0);
      }),
  );

  it.live("gets no response of a provider that could act on the gateway's origin, and no cookie", () =>
    Effect.gen(function* () {
      for (const status of [200, 401, 404]) {
        const { at, seen } = yield* hostile(status);
        const { url } = yield* front(at, { budget: { max_auto_retries: 0, max_not_processed: 0 } });
        const headers = { ...host, cookie: "session=LOCAL", Cookie2: "x", authorization: "Bearer k", accept: "*/*" };
        const body = JSON.stringify({ ...bodies["openai-chat"], stream: false });
        for (const sending of [{ headers }, { headers, body }]) {
          const path = "body" in sending ? "/v1/chat/completions" : "/v1/models";
          const got = yield* Effect.promise(() => send(`${url}${path}`, sending));
          for (const name of [
            ...["set-cookie", "service-worker-allowed", "clear-site-data", "refresh", "alt-svc", "x-accel-redirect"],
            ...["access-control-allow-origin", "strict-transport-security"],
          ])
            assert.notProperty(got.headers, name);
          if (got.headers["x-request-id"] === undefined) continue;
          assert.strictEqual(got.headers["x-content-type-options"], "nosniff");
          assert.match(String(got.headers["content-security-policy"]), /sandbox/);
        }
        assert.isAbove(seen.length, 0);
        for (const { authorization, cookie, cookie2 } of seen)
          assert.deepStrictEqual([authorization, cookie, cookie2], ["Bearer k", undefined, undefined]);
      }
    }),
  );

  it.live("is not redirected: a redirect is passed on and not followed", () =>
    Effect.gen(function* () {
      const elsewhere = yield* hostile();
      const at = yield* serverOf((_, response) => {
        response.writeHead(307, { location: `${elsewhere.at}/stolen` }).end();
      });
      const { url } = yield* front(at);
      const body = JSON.stringify(bodies["openai-chat"]);
      for (const sending of [{}, { body }]) {
        const path = "body" in sending ? "/v1/chat/completions" : "/v1/models";
        const got = yield* Effect.promise(() => send(`${url}${path}`, sending));
        assert.strictEqual(got.status, 307);
      }
      assert.lengthOf(elsewhere.seen, 0);
    }),
  );
});

/** Sends bytes and reads the whole answer. */
const raw = (port: number, head: string): Promise<string> =>
  new Promise((resolve) => {
    const socket = connect(port, "127.0.0.1");
    const chunks: Array<Buffer> = [];
    socket.on("data", (chunk) => chunks.push(chunk));
    socket.on("error", () => undefined);
    socket.on("close", () => resolve(Buffer.concat(chunks).toString()));
    socket.write(head);
  });

const upgrade = "connection: Upgrade\r\nupgrade: websocket\r\nsec-websocket-version: 13\r\nsec-websocket-key: k\r\n";

describe("requests that the gateway does not serve", () => {
  it.live("include an upgrade, answered with 426 at every path in the provider's format, and closed", () =>
    Effect.gen(function* () {
      const { at, seen } = yield* hostile();
      const { gateway } = yield* front(at, {}, RecoveryPage.layer);
      const expected = {
        "/v1/responses": /"type":"gateway_upgrade"/,
        "/v1/realtime?model=m": /"type":"gateway_upgrade"/,
        "/v1/messages": /"type":"error","error":\{"type":"gateway_upgrade"/,
        "/v1beta/models/m:streamGenerateContent": /"code":426.*"status":"UPGRADE"/,
        "/recovery/": /"type":"gateway_upgrade"/,
      };
      for (const [path, words] of Object.entries(expected)) {
        const got = yield* Effect.promise(() =>
          raw(gateway.port, `GET ${path} HTTP/1.1\r\nhost: localhost\r\n${upgrade}\r\n`),
        );
        assert.match(got, /^HTTP\/1\.1 426 /, path);
        assert.match(got, /\r\nupgrade: HTTP\/1\.1\r\n/i);
        assert.match(got, /\r\nconnection: close\r\n/i);
        assert.match(got, words);
      }
      assert.lengthOf(seen, 0);
    }),
  );

  it.live("include other upgrades, even if a proxy has removed the hop-by-hop part", () =>
    Effect.gen(function* () {
      const { at, seen } = yield* hostile();
      const { gateway } = yield* front(at);
      for (const asked of [
        "connection: upgrade\r\nupgrade: h2c, websocket\r\n",
        "upgrade: something/1\r\n",
        "sec-websocket-key: k\r\nsec-websocket-version: 13\r\n",
      ]) {
        const got = yield* Effect.promise(() =>
          raw(gateway.port, `GET /v1/responses HTTP/1.1\r\nhost: localhost\r\n${asked}\r\n`),
        );
        assert.match(got, /^HTTP\/1\.1 426 /, asked);
      }
      assert.lengthOf(seen, 0);
    }),
  );

  it.live("do not include an offer of HTTP/2 in HTTP/1.1, which is not passed on to a provider", () =>
    Effect.gen(function* () {
      const { at, seen } = yield* hostile();
      const { gateway } = yield* front(at);
      const offer =
        "connection: Upgrade, HTTP2-Settings, close\r\nupgrade: h2c\r\nhttp2-settings: AAMAAABkAAQAAP__\r\n";
      const got = yield* Effect.promise(() =>
        raw(gateway.port, `POST /v1/files HTTP/1.1\r\nhost: localhost\r\n${offer}content-length: 2\r\n\r\n{}`),
      );
      assert.match(got, /^HTTP\/1\.1 200 /);
      assert.lengthOf(seen, 1);
      assert.deepStrictEqual([seen[0]?.upgrade, seen[0]?.["http2-settings"]], [undefined, undefined]);
    }),
  );

  it.live("include a body with a transfer coding that it would pass on as if there were none", () =>
    Effect.gen(function* () {
      const { at, seen } = yield* hostile();
      const { gateway } = yield* front(at);
      const ask = (coding: string) =>
        Effect.promise(() =>
          raw(
            gateway.port,
            `POST /v1/responses HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: ${coding}\r\nconnection: close\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
          ),
        );
      for (const coding of ["gzip, chunked", "x-lz ,chunked"]) {
        const got = yield* ask(coding);
        assert.match(got, /^HTTP\/1\.1 501 /, coding);
        assert.match(got, /\r\nx-recovery-refused: coding\r\n/i);
        assert.match(got, /"message":"stream-recovery gateway: .*without any other Transfer-Encoding/);
      }
      assert.lengthOf(seen, 0);
      assert.match(yield* ask("Chunked"), /^HTTP\/1\.1 200 /);
    }),
  );

  it.live("are refused only after the token and the host name were checked", () =>
    Effect.gen(function* () {
      const { at } = yield* hostile();
      const { gateway } = yield* front(at, { token: "a-token-of-24-characters" });
      const ask = (path: string, name = "localhost") =>
        raw(gateway.port, `GET ${path} HTTP/1.1\r\nhost: ${name}\r\n${upgrade}connection: close\r\n\r\n`);
      assert.match(yield* Effect.promise(() => ask("/v1/responses")), /^HTTP\/1\.1 401 /);
      assert.match(yield* Effect.promise(() => ask("/t/a-token-of-24-characters/v1/responses")), /^HTTP\/1\.1 426 /);
      assert.match(
        yield* Effect.promise(() => ask("/t/a-token-of-24-characters/v1/x", "evil.example")),
        /^HTTP\/1\.1 403 /,
      );
    }),
  );

  it.live("include CONNECT, TRACE, TRACK and a proxy's targets, none of which is passed on", () =>
    Effect.gen(function* () {
      const { at, seen } = yield* hostile();
      const { gateway } = yield* front(at);
      const asked: ReadonlyArray<readonly [string, RegExp]> = [
        ["CONNECT api.openai.com:443 HTTP/1.1", /^HTTP\/1\.1 400 [\s\S]*"code":"target"/],
        ["TRACE /v1/models HTTP/1.1", /^HTTP\/1\.1 405 [\s\S]*\r\nallow: GET/],
        ["GET http://api.openai.com/v1/models HTTP/1.1", /^HTTP\/1\.1 400 [\s\S]*"code":"target"/],
        ["OPTIONS * HTTP/1.1", /^HTTP\/1\.1 400 /],
      ];
      for (const [line, answer] of asked) {
        const got = yield* Effect.promise(() =>
          raw(gateway.port, `${line}\r\nhost: localhost\r\nauthorization: Bearer k\r\nconnection: close\r\n\r\n`),
        );
        assert.match(got, answer, line);
        assert.notInclude(got, "Bearer k");
      }
      assert.lengthOf(seen, 0);
    }),
  );
});

/** Opens a feed, and waits only for its first bytes. */
const opened = (url: string) =>
  new Promise<{ readonly got: Promise<Got>; readonly caching: string | undefined }>((resolve) => {
    const got: Promise<Got> = send(url, {
      onData: (_, { headers }) => resolve({ got, caching: headers["cache-control"] }),
    });
  });

describe("an event stream", () => {
  const sse = (flat: ReadonlyArray<string>) =>
    serverOf((request, response) => {
      request.resume();
      response.writeHead(200, ["content-type", "text/event-stream; charset=utf-8", ...flat]);
      response.end(
        'data: {"choices":[{"index":0,"delta":{"content":"a"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
      );
    });
  for (const [said, caching] of [
    [[], "no-transform"],
    [["Cache-Control", "no-cache"], "no-cache, no-transform"],
    [["Cache-Control", "private", "cache-control", "No-Transform"], "private, No-Transform"],
    [["Cache-Control", ""], "no-transform"],
    [["X-Accel-Buffering", "yes", "cache-control", "max-age=1"], "max-age=1, no-transform"],
  ] as const) {
    it.live(`is collected and changed by no proxy: ${said.join(" ") || "nothing said"}`, () =>
      Effect.gen(function* () {
        const { url } = yield* front(yield* sse(said));
        for (const path of ["/v1/chat/completions", "/v1/audio/speech"]) {
          const body = JSON.stringify(bodies["openai-chat"]);
          const got = yield* Effect.promise(() => send(`${url}${path}`, { body }));
          assert.strictEqual(got.headers["cache-control"], caching, path);
          assert.strictEqual(got.headers["x-accel-buffering"], "no");
        }
      }),
    );
  }

  it.live("of the page is neither, too, and ends with the gateway, whatever path opened it", () =>
    Effect.gen(function* () {
      const token = "a-token-of-24-characters";
      for (const [before, program] of [
        ["", {}],
        [`/t/${token}`, { token }],
      ] as const) {
        const { got, since } = yield* Effect.scoped(
          Effect.gen(function* () {
            const { url } = yield* front(
              "http://127.0.0.1:1",
              { ...program, limits: { drainMs: 20_000 } },
              RecoveryPage.layer,
            );
            const feed = yield* Effect.promise(() => opened(`${url}${before}/recovery/api/events`));
            assert.strictEqual(feed.caching, "no-store, no-transform");
            return { ...feed, since: performance.now() };
          }),
        );
        // It was ended, not broken, so its reader connects again.
        assert.isFalse((yield* Effect.promise(() => got)).broken);
        assert.isBelow(performance.now() - since, 2_000);
      }
    }),
  );
});
