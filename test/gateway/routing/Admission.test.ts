import { assert, describe, it } from "@effect/vitest";
import { Redacted } from "effect";
import type { RelayHeaders } from "../../../src/adapters/relay/RelayTransport.ts";
import { type AdmittedToken, digestOf, GatewayError, settingsOf } from "../../../src/gateway/config/GatewayOptions.ts";
import { addressOf } from "../../../src/gateway/routing/Address.ts";
import { admit, forbiddenRefusal } from "../../../src/gateway/routing/Admission.ts";

const local = { local: true, tokens: [], allowedHosts: [] };
const host: RelayHeaders = [["Host", "127.0.0.1:8787"]];
const token = "a-token-of-24-characters";

const admitted = (name: string, text: string, permits: Partial<AdmittedToken> = {}): AdmittedToken => ({
  ...{ name, token: Redacted.make(text), digest: digestOf(text), page: true, metrics: true, ...permits },
});

const verdict = (
  headers: RelayHeaders,
  settings: Parameters<typeof admit>[1] = local,
  target = "/v1/models",
  method = "POST",
): string => {
  const address = addressOf(target);
  if ("refused" in address) return `${address.refused.status} ${address.refused.reason}`;
  const answer = admit({ method, headers, token: address.token }, settings);
  return "reason" in answer ? `${answer.status} ${answer.reason}` : address.target;
};

describe("admit", () => {
  it("accepts only the names of this machine as Host, because a rebound DNS name has another one", () => {
    for (const name of ["localhost", "localhost:8787", "LOCALHOST:1", "127.0.0.1", "127.8.9.1:2", "[::1]:8787"]) {
      assert.strictEqual(verdict([["host", name]]), "/v1/models", name);
    }
    for (const name of [
      "evil.example",
      "evil.example:8787",
      "127.0.0.1.evil.example",
      "localhost.evil.example",
      "",
      "a b",
    ]) {
      assert.strictEqual(verdict([["host", name]]), "403 host", name);
    }
    assert.strictEqual(verdict([]), "403 host");
    assert.strictEqual(verdict([["host", "box:1"]], { ...local, allowedHosts: ["Box"] }), "/v1/models");
  });

  it("refuses requests that a browser sends for another site, but not links that a person follows", () => {
    assert.strictEqual(verdict([...host, ["Origin", "https://evil.example"]]), "403 origin");
    assert.strictEqual(verdict([...host, ["origin", "null"]]), "403 origin");
    assert.strictEqual(verdict([...host, ["origin", "http://127.0.0.1:3000"]]), "403 origin");
    assert.strictEqual(verdict([...host, ["origin", "http://127.0.0.1:8787"]]), "/v1/models");
    assert.strictEqual(
      verdict([...host, ["sec-fetch-site", "cross-site"]], local, "/recovery/api", "GET"),
      "403 origin",
    );
    assert.strictEqual(
      verdict([...host, ["sec-fetch-site", "same-site"]], local, "/recovery/api", "GET"),
      "403 origin",
    );
    assert.strictEqual(verdict([...host, ["sec-fetch-site", "same-origin"]]), "/v1/models");
    const link: RelayHeaders = [...host, ["sec-fetch-site", "cross-site"], ["sec-fetch-mode", "navigate"]];
    assert.strictEqual(verdict(link, local, "/recovery/", "GET"), "/recovery/");
    assert.strictEqual(verdict(link, local, "/recovery/api", "POST"), "403 origin");
  });

  it("wants the token where there is one, in a header or before the path, and cuts it off", () => {
    const guarded = { ...local, tokens: [admitted("default", token)] };
    assert.strictEqual(verdict(host, guarded), "401 token");
    assert.strictEqual(verdict([...host, ["X-Recovery-Token", `${token}x`]], guarded), "401 token");
    assert.strictEqual(verdict([...host, ["X-Recovery-Token", token]], guarded), "/v1/models");
    assert.strictEqual(verdict(host, guarded, `/t/${token}/v1/x?a=1`), "/v1/x?a=1");
    assert.strictEqual(verdict(host, guarded, `/t/${token}`), "/");
    assert.strictEqual(verdict(host, guarded, `/t/${token}?a=1`), "/?a=1");
    assert.strictEqual(verdict(host, guarded, `/t/${token.slice(1)}/v1/x`), "401 token");
    // Without a token the path is no provider's all the same: what stands in it is a secret of some gateway's.
    assert.strictEqual(verdict(host, local, "/t/anything/v1/x"), "404 address");
    assert.strictEqual(verdict(host, guarded, `/t/${token}/t/${token}/v1/x`), "404 address");
  });

  it("recognises each of several tokens, and names the token that admitted a request", () => {
    const other = "another-token-of-some-length";
    const guarded = { ...local, tokens: [admitted("one", token), admitted("two", other)] };
    const by = (given: string) => {
      const answer = admit({ method: "GET", headers: [...host, ["x-recovery-token", given]] }, guarded);
      return "token" in answer ? answer.token?.name : answer.status;
    };
    assert.deepStrictEqual([by(token), by(other), by(`${other}x`), by("")], ["one", "two", 401, 401]);
  });

  it("permits what a token says, and everything where there are no tokens", () => {
    const one = admitted("one", token, { upstreams: ["groq"], page: false, metrics: true });
    assert.isUndefined(forbiddenRefusal(undefined, { own: "page" }));
    assert.isUndefined(forbiddenRefusal(one, { upstream: "groq" }));
    assert.isUndefined(forbiddenRefusal(one, { own: "metrics" }));
    assert.isUndefined(forbiddenRefusal(admitted("all", token), { upstream: "openai" }));
    for (const asked of [{ upstream: "openai" }, { own: "page" }] as const) {
      const refused = forbiddenRefusal(one, asked);
      assert.deepInclude(refused, { status: 403, reason: "permission" });
      assert.match(refused?.message ?? "", /^The token one does not permit /);
      assert.notInclude(JSON.stringify(refused), token);
    }
    assert.strictEqual(
      forbiddenRefusal(admitted("none", token, { upstreams: [] }), { upstream: "openai" })?.status,
      403,
    );
  });

  it("is no forward proxy", () => {
    assert.strictEqual(verdict(host, local, "http://api.openai.com/v1/models"), "400 target");
    assert.strictEqual(verdict(host, local, "*"), "400 target");
  });
});

describe("settingsOf", () => {
  const said = (options: Parameters<typeof settingsOf>[0]): string | undefined => {
    const settings = settingsOf(options);
    return settings instanceof GatewayError ? settings.message : undefined;
  };

  it("wants a token of some length for any address but this machine's own, and never prints it", () => {
    assert.isUndefined(said({}));
    assert.isUndefined(said({ host: "::1" }));
    assert.match(said({ host: "0.0.0.0" }) ?? "", /^token: required/);
    assert.match(said({ host: "192.168.0.2" }) ?? "", /^token: required/);
    assert.isUndefined(said({ host: "0.0.0.0", token }));
    for (const bad of ["short", "with/slash-and-more-of-it"]) {
      assert.match(said({ token: bad }) ?? "", /^token: expected/);
      assert.notInclude(said({ token: bad }) ?? "", bad);
    }
  });

  it("names the option that cannot be", () => {
    assert.match(said({ port: 70_000 }) ?? "", /^port: /);
    assert.match(said({ upstreams: { openai: "api.openai.com" } }) ?? "", /^openai-url: /);
    assert.match(said({ upstreams: { gemini: "ftp://x" } }) ?? "", /^gemini-url: /);
    assert.match(said({ upstreams: { anthropic: "https://u:secret@x/" } }) ?? "", /^anthropic-url: /);
    assert.match(said({ limits: { maxBodyBytes: 0 } }) ?? "", /^maxBodyBytes: /);
  });
});
