import { generateKeyPairSync } from "node:crypto";
import { assert, describe, it } from "@effect/vitest";
import { Redacted } from "effect";
import { readConfig } from "../../../src/gateway/config/ConfigFile.ts";
import type { ConfigSources } from "../../../src/gateway/config/ConfigSources.ts";
import { settingsOf } from "../../../src/gateway/config/GatewayOptions.ts";
import type { ProgramOptions } from "../../../src/gateway/config/ProgramOptions.ts";
import * as Certificates from "../../failure/provoked/Certificates.ts";

/** A key that belongs to no certificate here. */
const otherKey = generateKeyPairSync("ec", { namedCurve: "P-256" })
  .privateKey.export({ type: "pkcs8", format: "pem" })
  .toString();

const files: Readonly<Record<string, string>> = {
  "/run/key": "from-a-file\n",
  "ca.pem": Certificates.localhost,
  "key.pem": Certificates.key,
  "cut.pem": Certificates.localhost.slice(0, 300),
  "other.pem": otherKey,
  lines: "one\ntwo\n",
  empty: "\n",
};
const env: Readonly<Record<string, string>> = {
  KEY: "from-the-environment",
  TOKEN: "a-token-of-24-characters",
  EMPTY: "",
};

const sources = (config: unknown, more: Partial<ConfigSources> = {}): ConfigSources => ({
  text: typeof config === "string" ? config : JSON.stringify(config),
  shared: true,
  env: (name) => env[name],
  file: (path) => files[path],
  ...more,
});

const optionsIn = (config: unknown, more: Partial<ConfigSources> = {}): ProgramOptions => {
  const read = readConfig(sources(config, more));
  if ("problems" in read) throw new Error(JSON.stringify(read.problems));
  return read.options;
};

const problemsIn = (config: unknown, more: Partial<ConfigSources> = {}): ReadonlyArray<string> => {
  const read = readConfig(sources(config, more));
  return "problems" in read ? read.problems.map(({ message, path }) => `${path}: ${message}`) : [];
};

const url = "https://llm.example/v1";

/** The options with their secrets in the open. */
const unwrapped = (value: unknown): unknown => {
  if (Redacted.isRedacted(value)) return `secret ${Redacted.value(value)}`;
  if (Array.isArray(value)) return value.map(unwrapped);
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(Object.entries(value).map(([key, it]) => [key, unwrapped(it)]));
};

describe("readConfig", () => {
  it("reads every key into its option", () => {
    const options = optionsIn({
      $schema: "./gateway.schema.json",
      listen: { host: "0.0.0.0", port: 0, tls: { cert: "ca.pem", key: "key.pem" } },
      upstreams: {
        groq: {
          ...{ url, protocols: ["openai-chat"], credential: { env: "KEY" }, proxy: "http://proxy:3128", ca: "ca.pem" },
          ...{ headers: { "x-team": "a", "x-api-key": { file: "/run/key" } }, http: 1, state: "shared" },
          tolerance: { done_without_finish: true },
        },
        openai: { url: "http://127.0.0.1:1/v1", proxy: "direct" },
      },
      tokens: { team: { token: { env: "TOKEN" }, upstreams: ["groq", "anthropic"], metrics: true } },
      allowed_hosts: ["box"],
      ...{
        reveal: "on_complete",
        on_break: "as_provider",
        on_question: "hold",
        hold_ms: 1,
        hold_max_ms: 2,
        comment_ms: 3,
      },
      clients: { codex: { reveal: "live", on_break: "tell", patience_ms: 4, hold_max_ms: 5, status: 424 } },
      clocks: { idle: 1000, silence: "off" },
      budget: { max_auto_retries: 0, max_outage_ms: "forever" },
      policy: { nothing_shown: "ask_user" },
      limits: { drain_ms: 7, max_body_bytes: 8 },
      ...{ db: "memory", lease_ms: 9, keep_runs: "7d", keep_runs_max: 10 },
    });
    const shown = unwrapped(options);
    assert.deepStrictEqual(shown, {
      ...{ host: "0.0.0.0", port: 0, allowedHosts: ["box"], reveal: "on_complete", onBreak: "as_provider" },
      ...{ onQuestion: "hold", holdMs: 1, holdMaxMs: 2, keepAliveMs: 3, db: "memory", leaseMs: 9 },
      ...{ keepRuns: "7d", keepRunsMax: 10 },
      clients: { codex: { reveal: "live", onBreak: "tell", patienceMs: 4, holdMaxMs: 5, status: 424 } },
      clocks: { idle: 1000, silence: false },
      budget: { max_auto_retries: 0, max_outage_ms: "forever" },
      limits: { maxBodyBytes: 8, drainMs: 7 },
      policy: { nothing_shown: "ask_user" },
      named: [
        {
          ...{ name: "groq", url, protocols: ["openai-chat"], credential: "secret from-the-environment" },
          ...{ proxy: "secret http://proxy:3128", ca: files["ca.pem"], state: "shared" },
          headers: [
            ["x-team", "a"],
            ["x-api-key", "from-a-file"],
          ],
          tolerance: { doneWithoutFinish: true },
        },
        { name: "openai", url: "http://127.0.0.1:1/v1", headers: [], proxy: "direct" },
      ],
      tokens: [
        {
          ...{ name: "team", token: `secret ${env.TOKEN}`, page: false, metrics: true },
          upstreams: ["groq", "anthropic"],
        },
      ],
      tls: { cert: files["ca.pem"], key: `secret ${files["key.pem"]}` },
    });
    assert.deepStrictEqual(optionsIn({}), {});
  });

  it("reports all errors, each with its path in the file", () => {
    const said = problemsIn({
      lisen: {},
      listen: { port: 70_000 },
      upstreams: { a: { url: 7, protocol: [] }, b: { protocols: ["openai"] } },
      clocks: { idle: "soon" },
      reveal: "maybe",
    });
    assert.deepStrictEqual(
      said.map((line) => line.replace(/: .*/, "")).sort(),
      ["$.clocks.idle", "$.lisen", "$.listen.port", "$.reveal", "$.upstreams.a.protocol", "$.upstreams.a.url"]
        .concat(["$.upstreams.b.protocols[0]", "$.upstreams.b.url"])
        .sort(),
    );
    for (const line of said) assert.match(line, /: expected /);
  });

  it("reports all errors in the files and variables that it names", () => {
    const said = problemsIn({
      listen: { tls: { cert: "none.pem", key: "ca.pem" } },
      upstreams: {
        v1: { url },
        A: { url },
        a: { url: "https://user:hunter2@llm.example" },
        b: {
          url: "ftp://x",
          ca: "none.pem",
          proxy: "socks5://hunter2@x",
          credential: { env: "NOT_SET" },
          protocols: [],
        },
        c: { url, credential: { file: "none" }, headers: { host: "x", "a b": "y", "x-odd": "a\nb" } },
        d: { url, credential: { env: "EMPTY" }, headers: { "x-key": { file: "empty" } } },
      },
      tokens: { t: { token: { env: "KEY" }, upstreams: ["none"] }, T: { token: { env: "TOKEN" } } },
      policy: { nothing: "ask_user", text_shown: "ask_user" },
      clients: { nobody: {}, codex: { match: { user_agent: "x" } }, own: { match: { user_agent: "x" }, as: "none" } },
    });
    assert.deepStrictEqual(
      said.map((line) => line.replace(/: .*/, "")).sort(),
      [
        ...["$.listen.tls.cert", "$.listen.tls.key", "$.upstreams.v1", "$.upstreams.A", "$.upstreams.a.url"],
        ...["$.upstreams.b.url", "$.upstreams.b.ca", "$.upstreams.b.proxy", "$.upstreams.b.credential.env"],
        ...["$.upstreams.b.protocols", "$.upstreams.c.credential.file", "$.upstreams.c.headers.host"],
        ...['$.upstreams.c.headers["a b"]', "$.upstreams.c.headers.x-odd", "$.upstreams.d.credential"],
        ...["$.upstreams.d.headers.x-key", "$.tokens.t.upstreams[0]", "$.tokens.T"],
        ...["$.policy.nothing", "$.policy.text_shown", "$.clients.nobody", "$.clients.codex", "$.clients.own.as"],
      ].sort(),
    );
    assert.notMatch(said.join("\n"), /hunter2|from-the|24-characters/);
  });

  it("accepts a literal secret only from a file that others cannot read", () => {
    const config = {
      upstreams: {
        a: {
          ...{ url, credential: "SECRET-1-of-somebody", headers: { authorization: "Bearer SECRET-2", "x-team": "a" } },
          proxy: "http://user:SECRET-3@proxy:1",
        },
      },
      tokens: { t: { token: "SECRET-4-of-somebody" } },
    };
    const said = problemsIn(config);
    assert.deepStrictEqual(
      said.map((line) => line.replace(/: .*/, "")),
      ["$.upstreams.a.credential", "$.upstreams.a.proxy", "$.upstreams.a.headers.authorization", "$.tokens.t.token"],
    );
    assert.notInclude(said.join("\n"), "SECRET");
    const { named = [], tokens = [] } = optionsIn(config, { shared: false });
    assert.strictEqual(named[0]?.credential && Redacted.value(named[0].credential), "SECRET-1-of-somebody");
    assert.lengthOf(tokens, 1);
    assert.notInclude(JSON.stringify([tokens, named[0]?.credential, named[0]?.proxy]), "SECRET");
  });

  it("refuses a name that stands twice, wherever it does", () => {
    const text = `{"upstreams":{"a":{"url":"${url}"},"b":{"url":"${url}","url":"${url}"},"a":{"url":"${url}"}},
      "tokens":{"t":{"token":{"env":"TOKEN"},"upstreams":["a","b"]}},"to\\u006bens":{}}`;
    assert.deepStrictEqual(problemsIn(text), [
      "$.upstreams.b.url: expected this name once",
      "$.upstreams.a: expected this name once",
      "$.tokens: expected this name once",
    ]);
  });

  it("refuses one secret under two names of tokens, without repeating it", () => {
    const one = { token: { env: "TOKEN" } };
    const said = problemsIn(
      { tokens: { a: one, b: { token: { env: "OTHER_TOKEN" } }, c: one, d: one } },
      { env: (name) => (name === "TOKEN" ? "SECRET-of-24-characters-" : "a-token-of-24-characters") },
    );
    assert.deepStrictEqual(said, [
      "$.tokens.c.token: expected a secret that differs from that of the token a",
      "$.tokens.d.token: expected a secret that differs from that of the token a",
    ]);
    const twice = settingsOf({
      token: "a-token-of-24-characters",
      tokens: [{ name: "a", token: Redacted.make("a-token-of-24-characters"), page: false, metrics: false }],
    });
    assert.deepInclude(twice, { message: "token a: expected a secret that differs from that of the token default" });
  });

  it("reads an access key of AWS, whose region may be in the host", () => {
    const bedrock = "https://bedrock-runtime.eu-west-1.amazonaws.com";
    const aws = { access_key_id: { env: "KEY" }, secret_access_key: { env: "TOKEN" } };
    const { named = [] } = optionsIn({
      upstreams: {
        bedrock: { url: bedrock, aws, paths: ["POST /model/*/async-invoke"] },
        own: { url, aws: { ...aws, session_token: { env: "KEY" }, region: "us-east-1" } },
      },
    });
    assert.deepStrictEqual(unwrapped(named.map((it) => it.aws)), [
      { accessKeyId: "from-the-environment", secretAccessKey: "secret a-token-of-24-characters" },
      {
        accessKeyId: "from-the-environment",
        secretAccessKey: "secret a-token-of-24-characters",
        sessionToken: "secret from-the-environment",
        region: "us-east-1",
      },
    ]);
    assert.deepStrictEqual(
      problemsIn({
        upstreams: {
          a: { url, aws },
          b: { url: bedrock, aws, credential: { env: "KEY" } },
          c: { url: bedrock, aws: { ...aws, access_key_id: { file: "lines" }, secret_access_key: { env: "NOT_SET" } } },
        },
      }),
      [
        "$.upstreams.a.aws.region: expected a region, because the host names none",
        "$.upstreams.b.aws: expected either `credential` or `aws`",
        "$.upstreams.c.aws.secret_access_key.env: expected the name of an environment variable that is set",
        "$.upstreams.c.aws: expected a valid header value",
      ],
    );
  });

  it("reads paths, and says which one has another form", () => {
    const paths = ["GET /v1/files/*", "/v1/batches"];
    const token = { env: "TOKEN" };
    const { named = [], tokens = [] } = optionsIn({
      upstreams: { a: { url, credential: { env: "KEY" }, paths } },
      tokens: { t: { token, paths } },
    });
    assert.deepStrictEqual([named[0]?.paths, tokens[0]?.paths], [paths, paths]);
    const form =
      "expected METHOD /path, or /path for every method, in which * matches any text without a slash, as in GET /v1/files/*";
    assert.deepStrictEqual(
      problemsIn({
        upstreams: { a: { url, credential: { env: "KEY" }, paths: ["/v1", "get /v1"] } },
        tokens: { t: { token, paths: ["v1/files"] } },
      }),
      [`$.upstreams.a.paths[1]: ${form}`, `$.tokens.t.paths[0]: ${form}`],
    );
    assert.deepStrictEqual(
      problemsIn({
        upstreams: { a: { url, paths }, b: { url, headers: { "x-api-key": { env: "KEY" } }, paths: ["GET /a/../b"] } },
        tokens: { t: { token, paths: ["/v1/**"] } },
      }),
      [
        "$.upstreams.a.paths: expected only with a credential: without one, the client's own credential decides which paths it may use",
        `$.upstreams.b.paths[0]: ${form}`,
        `$.tokens.t.paths[0]: ${form}`,
      ],
    );
    const many = problemsIn({ tokens: { t: { token, paths: Array.from({ length: 65 }, () => "/v1") } } });
    assert.lengthOf(many, 1);
    assert.include(many.join(), "$.tokens.t.paths");
    const made = settingsOf({ named: [{ name: "a", url, headers: [], paths: ["x"] }] });
    assert.deepInclude(made, { message: `paths of a: ${form}` });
  });

  it("warns of a secret's file that others can read", () => {
    const config = {
      upstreams: { a: { url, credential: { file: "/run/key" } }, b: { url, credential: { file: "own" } } },
      listen: { tls: { cert: "ca.pem", key: "key.pem" } },
    };
    const read = readConfig(
      sources(config, {
        isShared: (path) => path !== "own",
        file: (path) => (path === "own" ? "k" : files[path]),
      }),
    );
    const message = "others can read or write this secret's file (chmod 600 keeps them out)";
    assert.deepInclude(read, {
      warnings: [
        { path: "$.upstreams.a.credential.file", message },
        { path: "$.listen.tls.key", message },
      ],
    });
  });

  it("refuses what is no JSON without repeating it", () => {
    for (const text of ["", "{", '{"tokens": {"t": {"token": SECRET}}}', '{"a": "SECRET', "SECRET", '{"a":1,}'])
      assert.match(
        problemsIn(text).join(),
        /^\$: expected JSON(?:, got a syntax error at line \d+, column \d+)?$/,
        text,
      );
    for (const text of ["[]", "null", '"SECRET"', "7"]) {
      assert.lengthOf(problemsIn(text), 1);
      assert.notInclude(problemsIn(text).join(), "SECRET");
    }
    assert.deepStrictEqual(optionsIn("\uFEFF{}"), {});
  });

  it("refuses HTTP/2 with a sentence", () => {
    assert.deepStrictEqual(problemsIn({ upstreams: { a: { url, http: 2 } } }), [
      "$.upstreams.a.http: expected 1: the gateway speaks HTTP/1.1 to providers; omit `http`",
    ]);
  });

  it("refuses the delivery log with a sentence that says what replaces it", () => {
    assert.deepStrictEqual(problemsIn({ delivery_log: true }), [
      "$.delivery_log: expected a known key: set `advertise` to the address at which other gateways reach this one",
    ]);
  });

  it("refuses what would fail with every request", () => {
    const found = problemsIn({
      listen: { tls: { cert: "ca.pem", key: "other.pem" } },
      upstreams: {
        a: { url: "https://llm.example/v1?" },
        b: { url: "https://llm.example/v1 " },
        c: { url: "https://llm.example/v1#" },
        d: { url, credential: { file: "lines" } },
        e: { url, ca: "cut.pem" },
        f: { url, client_cert: { cert: "ca.pem", key: "other.pem" } },
      },
    });
    assert.deepStrictEqual(
      found.map((line) => line.replace(/: expected.*/, "")),
      [
        ...["a.url", "b.url", "c.url", "d.credential", "e.ca", "f.client_cert"].map((at) => `$.upstreams.${at}`),
        "$.listen.tls",
      ],
    );
    assert.notInclude(found.join(), "two");
  });
});
