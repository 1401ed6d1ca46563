/** Signatures of requests to Amazon's APIs: the client's, which never changes, and the upstream's own. */
import type { IncomingMessage } from "node:http";
import { connect } from "node:http2";
import { assert, describe, it } from "@effect/vitest";
import { Effect, Redacted } from "effect";
import { signatureOf, validMs } from "../../../src/adapters/relay/RequestSignature.ts";
import { upstreamsDefault } from "../../../src/gateway/config/Options.ts";
import { type AwsCredential, regionOf } from "../../../src/gateway/config/UpstreamSettings.ts";
import { routeOf } from "../../../src/gateway/routing/Route.ts";
import { upstreamHeadersOf } from "../../../src/gateway/upstream/Headers.ts";
import { signatureHeaders } from "../../../src/gateway/upstream/Signing.ts";
import { Answers } from "../../../src/testing/index.ts";
import { serverOf } from "../../Servers.ts";
import { samples } from "../../samples/index.ts";
import { front, recovery, send } from "../GatewayCases.ts";

const { bare, path } = samples["bedrock-converse"];
const url = "https://bedrock-runtime.us-east-1.amazonaws.com/model/anthropic.m-v1%3A0/converse-stream";

const authorization = (region = "eu-west-1") =>
  `AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261130/${region}/bedrock/aws4_request, SignedHeaders=accept-encoding;content-type;host;x-amz-date, Signature=${"0".repeat(64)}`;

const dated = (ms: number): string => new Date(ms).toISOString().replaceAll(/[:-]|\.\d{3}/g, "");

describe("the signature of a request", () => {
  const signedMs = Date.UTC(2026, 10, 30, 12, 0, 0);

  it("is valid for five minutes in the headers, and for its own time in the query", () => {
    const headers = [
      ["Authorization", authorization()],
      ["X-Amz-Date", "20261130T120000Z"],
    ] as const;
    assert.deepStrictEqual(signatureOf({ headers, url }), {
      region: "eu-west-1",
      validUntilMs: signedMs + validMs,
      headers: ["accept-encoding", "content-type", "host", "x-amz-date"],
    });
    const query = `X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Credential=AKID%2F20261130%2Fus-west-2%2Fbedrock%2Faws4_request&X-Amz-Date=20261130T120000Z&X-Amz-SignedHeaders=host&X-Amz-Signature=00`;
    const presigned = (more: string) => signatureOf({ headers: [], url: `${url}?${query}${more}` });
    assert.deepStrictEqual(presigned("&X-Amz-Expires=60"), {
      ...{ region: "us-west-2", validUntilMs: signedMs + 60_000, headers: ["host"] },
    });
    assert.strictEqual(presigned("")?.validUntilMs, signedMs + validMs);
  });

  it("reads a date of HTTP, and knows no time without a date", () => {
    const at = (...more: ReadonlyArray<readonly [string, string]>) =>
      signatureOf({ headers: [["authorization", authorization()], ...more], url })?.validUntilMs;
    assert.strictEqual(at(["date", "Mon, 30 Nov 2026 12:00:00 GMT"]), signedMs + validMs);
    assert.isUndefined(at());
    assert.isUndefined(at(["x-amz-date", "yesterday"]));
  });

  it("is no bearer token, and no other address", () => {
    assert.isUndefined(signatureOf({ headers: [["authorization", "Bearer ABSKQmVkcm9jaw"]], url }));
    assert.isUndefined(signatureOf({ headers: [], url: `${url}?key=x` }));
  });

  it("keeps the headers that the signature covers", () => {
    const headers = [
      ["accept-encoding", "gzip"],
      ["authorization", authorization()],
    ] as const;
    assert.deepInclude(upstreamHeadersOf(headers, true), ["accept-encoding", "gzip"]);
    assert.notDeepInclude(upstreamHeadersOf(headers, true), ["accept-encoding", "identity"]);
    assert.deepInclude(upstreamHeadersOf([["accept-encoding", "gzip"]], true), ["accept-encoding", "identity"]);
  });
});

describe("the address of a request to Bedrock", () => {
  const upstreams = upstreamsDefault;
  const at = (
    headers: ReadonlyArray<readonly [string, string]>,
    bedrock = upstreams.bedrock,
    own?: ReadonlySet<string>,
  ) => {
    const route = routeOf(path, headers, { ...upstreams, bedrock }, own);
    return "url" in route ? route.url : route.refused.reason;
  };

  it("has the region of the client's signature, and nothing else of it", () => {
    const signed = (region: string) => [["authorization", authorization(region)]] as const;
    assert.strictEqual(at(signed("eu-west-1")), `https://bedrock-runtime.eu-west-1.amazonaws.com${path}`);
    assert.strictEqual(at(signed("us-gov-east-1")), `https://bedrock-runtime.us-gov-east-1.amazonaws.com${path}`);
    for (const region of ["evil.example#", "..", "x", ""])
      assert.strictEqual(at(signed(region)), upstreams.bedrock + path);
    assert.strictEqual(at([["authorization", "Bearer ABSKQmVkcm9jaw"]]), upstreams.bedrock + path);
    assert.strictEqual(at(signed("eu-west-1"), upstreams.bedrock, new Set(["bedrock"])), upstreams.bedrock + path);
    const own = "https://vpce-1.bedrock-runtime.us-east-1.vpce.amazonaws.com";
    assert.strictEqual(at(signed("eu-west-1"), own), own + path);
  });

  it("refuses a credential of another vendor, and accepts Anthropic's options", () => {
    assert.strictEqual(at([["x-api-key", "sk-ant-api03-x"]]), "vendor");
    assert.strictEqual(at([["authorization", "Bearer sk-proj-1"]]), "vendor");
    assert.strictEqual(at([["anthropic-version", "2023-06-01"]]), upstreams.bedrock + path);
  });

  it("names its region", () => {
    assert.strictEqual(regionOf(url), "us-east-1");
    assert.strictEqual(regionOf("https://bedrock-runtime.cn-north-1.amazonaws.com.cn"), "cn-north-1");
    assert.strictEqual(regionOf("https://bedrock-runtime.us-west-2.api.aws"), "us-west-2");
    assert.isUndefined(regionOf("http://127.0.0.1:80"));
  });
});

/** A provider whose first responses break, and the requests that it got. */
const breaking = (breaks: number) =>
  Effect.gen(function* () {
    const asked: Array<{ readonly headers: IncomingMessage["headers"]; readonly body: string }> = [];
    const url = yield* serverOf((request, response) => {
      let body = "";
      request.on("data", (chunk) => {
        body += chunk;
      });
      request.on("end", () => {
        asked.push({ headers: request.headers, body });
        if (asked.length <= breaks) return void response.destroy();
        response.writeHead(200, { "content-type": "application/vnd.amazon.eventstream" });
        for (const { frame } of Answers.render("bedrock-converse", 1, { content: [{ text: 1 }] }))
          response.write(frame);
        response.end();
      });
    });
    return { asked, url };
  });

const sent = (url: string, headers: Record<string, string>) =>
  Effect.promise(() => send(`${url}${path}`, { body: JSON.stringify(bare), headers }));

const aws: AwsCredential = {
  accessKeyId: "AKIDOWN",
  secretAccessKey: Redacted.make("own-secret-own-secret"),
  sessionToken: Redacted.make("own-session"),
  region: "us-west-2",
};

describe.concurrent("a replay of a signed request", () => {
  it.live("has the bytes and the signature of the client while that is valid", () =>
    Effect.gen(function* () {
      const { asked, url } = yield* breaking(1);
      const gateway = yield* front(url);
      const headers = { authorization: authorization(), "x-amz-date": dated(Date.now()), "x-amz-security-token": "t" };
      const got = yield* sent(gateway.url, { ...headers, "content-type": "application/json" });
      assert.deepStrictEqual([got.status, recovery(got, "attempts")], [200, "2"]);
      assert.lengthOf(asked, 2);
      assert.deepStrictEqual(asked[1], asked[0]);
      assert.deepInclude(asked[1]?.headers, headers);
    }),
  );

  it.live("is not sent after that, and the message says why", () =>
    Effect.gen(function* () {
      const { asked, url } = yield* breaking(9);
      const gateway = yield* front(url);
      const got = yield* sent(gateway.url, {
        authorization: authorization(),
        "x-amz-date": dated(Date.now() - validMs - 1_000),
      });
      assert.strictEqual(got.status, 400);
      assert.match(got.text, /the signature of the request has expired, and only its client can sign a repeat/);
      assert.strictEqual(got.headers["x-recovery-code"], "signature_expired");
      assert.lengthOf(asked, 1);
    }),
  );

  it.live("is signed anew with the upstream's own access key, whose secrets stay secret", () =>
    Effect.gen(function* () {
      const { asked, url } = yield* breaking(1);
      const gateway = yield* front(url, { named: [{ name: "bedrock", url, headers: [], aws }] });
      const got = yield* sent(gateway.url, {
        authorization: authorization(),
        "x-amz-date": dated(Date.now() - validMs - 1_000),
        "x-amz-security-token": "clients",
        "content-type": "application/json",
      });
      assert.deepStrictEqual([got.status, recovery(got, "attempts")], [200, "2"]);
      for (const { body, headers } of asked) {
        assert.match(String(headers.authorization), /Credential=AKIDOWN\/\d{8}\/us-west-2\/bedrock\/aws4_request/);
        assert.strictEqual(headers["x-amz-security-token"], "own-session");
        const nowMs = signatureOf({
          headers: Object.entries(headers).map(([name, value]) => [name, String(value)]),
          url,
        });
        const date = (nowMs?.validUntilMs ?? 0) - validMs;
        const given = [["content-type", "application/json"]] as const;
        const request = { method: "POST", url: `${url}${path}`, headers: given };
        const expected = Object.fromEntries(signatureHeaders(request, body, { ...aws, region: "us-west-2" }, date));
        assert.strictEqual(headers.authorization, expected.Authorization);
      }
      const runs = JSON.stringify(yield* gateway.runs);
      for (const secret of ["own-secret", "own-session", "clients"]) assert.notInclude(runs + got.text, secret);
    }),
  );

  it("is the signature of AWS's own SDK", () => {
    // Computed with `SignatureV4` of @smithy/signature-v4 for the same request.
    const headers = [["content-type", "application/json"]] as const;
    const made = signatureHeaders(
      { method: "POST", url, headers },
      '{"messages":[]}',
      {
        accessKeyId: "AKIDEXAMPLE",
        secretAccessKey: Redacted.make("wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
        region: "us-east-1",
      },
      Date.UTC(2026, 10, 30, 12, 0, 0),
    );
    assert.deepStrictEqual(made, [
      ["x-amz-date", "20261130T120000Z"],
      [
        "Authorization",
        "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261130/us-east-1/bedrock/aws4_request, SignedHeaders=content-length;content-type;host;x-amz-date, Signature=2ee6cbf2f29d8042d6f6c13754d329feecfa5afbf7870e9ddae106f59c75f403",
      ],
    ]);
  });
});

describe("a client of HTTP/2", () => {
  it.live("learns in HTTP/2 that the gateway speaks HTTP/1.1", () =>
    Effect.gen(function* () {
      const gateway = yield* front("http://127.0.0.1:9");
      const got = yield* Effect.promise(
        () =>
          new Promise<{ status: number; text: string }>((resolve, reject) => {
            const session = connect(gateway.url);
            session.on("error", () => undefined);
            const request = session.request({ ":method": "POST", ":path": path });
            let status = 0;
            let text = "";
            request.on("response", (headers) => {
              status = headers[":status"] ?? 0;
            });
            request.on("data", (chunk) => {
              text += chunk;
            });
            request.on("end", () => resolve({ status, text }));
            request.on("error", reject);
            request.end("{}");
          }),
      );
      assert.strictEqual(got.status, 400);
      assert.match(got.text, /"__type":"ValidationException".*speaks HTTP\/1\.1 only.*NodeHttpHandler/);
    }),
  );
});
