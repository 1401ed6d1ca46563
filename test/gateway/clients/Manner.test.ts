import { assert, describe, it } from "@effect/vitest";
import { Exit, Schema } from "effect";
import { ClientOverrides } from "../../../src/gateway/clients/ClientOverrides.ts";
import { clientRows } from "../../../src/gateway/clients/ClientRows.ts";
import { isLeftToClient } from "../../../src/gateway/clients/GivenUp.ts";
import { type Manner, mannerOf } from "../../../src/gateway/clients/Manner.ts";
import { protocols } from "../../../src/provider/Protocols.ts";

type Headers = Readonly<Record<string, string>>;

const manner = (headers: Headers, protocol = "openai-chat", settings: Parameters<typeof mannerOf>[1] = {}) =>
  mannerOf({ headers: Object.entries(headers), protocol }, settings);

const agent = (text: string): Headers => ({ "User-Agent": text });

/** The headers that each client was seen to send. */
const seen: ReadonlyArray<readonly [client: string, headers: Headers]> = [
  ["codex", agent("codex_exec/0.169.0 (Debian 12.0.0; x86_64) unknown")],
  ["codex", { "user-agent": "anything", originator: "codex_cli_rs" }],
  ["claude-code", agent("claude-cli/2.1.330 (external, sdk-cli)")],
  ["claude-code", { "user-agent": "Anthropic/JS 1.12.0", "X-App": "cli" }],
  ["opencode", agent("opencode/1.18.33 ai-sdk/provider-utils/5.0.30 runtime/bun/1.3.13")],
  ["opencode-2", agent("opencode/latest/2.0.15/cli")],
  ["gemini-cli", agent("GeminiCLI-tui/0.61.0/gemini-2.5-flash (linux; x64; terminal)")],
  ["qwen-code", agent("QwenCode/0.24.4 (linux; x64)")],
  ["openai-sdk", agent("OpenAI/JS 6.26.0")],
  ["anthropic-sdk", agent("Anthropic/JS 0.91.1")],
  ["pi", agent("pi/1.6.0 (linux; node/v24.21.0)")],
  ["pi", { ...agent("pi/1.6.0 (linux; node/v24.21.0)"), "x-stainless-lang": "js" }],
  ["copilot", { "user-agent": "OpenAI/JS 5.20.1", "x-initiator": "user" }],
  ["copilot", { "user-agent": "Anthropic/JS 0.94.0", "X-Interaction-Type": "conversation" }],
  ["ai-sdk", agent("ai-sdk/openai-compatible/3.0.37 ai-sdk/provider-utils/5.0.30 runtime/bun/1.3.13")],
  ["ai-sdk", agent("ai/7.0.173 ai-sdk/openai/4.0.118 ai-sdk/provider-utils/5.0.30 runtime/node.js/24")],
  ["ai-sdk", agent("ai-sdk-anthropic/4.0.105 ai-sdk-provider-utils/5.0.30")],
  ["continue", agent("ls/JS 5.23.2")],
  ["langchain", agent("langchainjs-openai/1.0.0 (node/24.21.0; linux)")],
  ["anthropic-sdk", agent("Anthropic/JS 0.122.0")],
  ["openai-sdk", agent("OpenAI/JS 7.57.0")],
  ["anthropic-sdk", agent("Anthropic/JS 1.12.0")],
  ["google-genai-sdk", agent("google-genai-sdk/3.1.0 gl-node/v24.21.0")],
  ["sdk-agent", { "user-agent": "Mozilla/5.0", "x-goog-api-client": "google-genai-sdk/3.1.0 gl-web/" }],
  ["sdk-agent", { "user-agent": "an-agent/1", "x-goog-api-client": "google-genai-sdk/3.1.0 gl-node/v24.21.0" }],
  ["ai-sdk", agent("an-agent/1 ai-sdk/openai/4.0.118 ai-sdk/provider-utils/5.0.30 runtime/node.js/24")],
  ["openai-sdk", agent("AsyncOpenAI/Python 2.8.0")],
  ["openai-sdk", agent("AsyncAzureOpenAI/Python 2.8.0")],
  ["anthropic-sdk", agent("AsyncAnthropic/Python 0.75.0")],
  ["anthropic-sdk", agent("AnthropicBedrock/Python 0.75.0")],
  ["google-genai-sdk", agent("google-genai-sdk/1.52.0 gl-python/3.12.1")],
  ["stainless-sdk", { "user-agent": "OpenAI/Go 3.8.0", "X-Stainless-Lang": "go" }],
  ["stainless-sdk", { "user-agent": "Mozilla/5.0", "x-stainless-lang": "js" }],
  ["stainless-sdk", { "user-agent": "an-agent/1", "x-stainless-lang": "js" }],
  ["aws-sdk", agent("aws-sdk-js/3.1164.0 ua/2.1 os/linux#6.1 lang/js md/nodejs#24.21.0 api/bedrock-runtime#3.1164.0")],
  ["aws-sdk", agent("Boto3/1.40.1 md/Botocore#1.40.1 ua/2.1 os/linux lang/python#3.12")],
  ["unknown", agent("curl/8.14.1")],
  ["unknown", agent("python-requests/2.32 OpenAI/JS")],
  ["unknown", agent("not-ai-sdkish/1")],
  ["unknown", {}],
];

describe("the treatment of a client", () => {
  it("is found by the headers that the client was seen to send", () => {
    for (const [client, headers] of seen) assert.strictEqual(manner(headers).client, client, JSON.stringify(headers));
    const shipped = new Set(clientRows.map(({ name }) => name));
    for (const [client] of seen) shipped.delete(client);
    assert.deepStrictEqual([...shipped], [], "every row was seen");
  });

  it("for an unknown client never looks like a whole response", () => {
    const unknown: Manner = {
      client: "unknown",
      reveal: "live",
      onBreak: "tell",
      patienceMs: 45_000,
      holdMaxMs: undefined,
      status: 400,
      ending: "broken",
      mends: "nothing",
      asksByWords: true,
      firstNoOp: "event",
    };
    for (const id of protocols.ids) {
      const firstNoOp = /^openai-|^cohere-|^mistral-/.test(id) ? "comment" : "event";
      assert.deepStrictEqual(manner({}, id), { ...unknown, firstNoOp });
    }
    assert.deepStrictEqual(manner({}, "a protocol of its own"), unknown);
  });

  it("for every known client reports a break, and breaks the body if a clean end was not measured", () => {
    for (const [client, headers] of seen) {
      const { ending, onBreak, status } = manner(headers);
      if (client === "unknown") continue;
      assert.strictEqual(onBreak, "tell");
      assert.strictEqual(ending, client === "stainless-sdk" ? "broken" : "clean", client);
      assert.strictEqual(status, client === "claude-code" ? 424 : 400, client);
    }
  });

  it("ends a shown response that broke if the client retries by itself, once", () => {
    const left = (headers: Headers, said: boolean, repeated = false) =>
      isLeftToClient(manner(headers), { said, repeated });
    const mending = seen.filter(([, headers]) => left(headers, false)).map(([client]) => client);
    const always = seen.filter(([, headers]) => left(headers, true)).map(([client]) => client);
    const overSdks = ["opencode", "pi", "openai-sdk", "anthropic-sdk", "sdk-agent", "stainless-sdk"];
    assert.sameMembers([...new Set(mending)], ["codex", "claude-code", ...overSdks]);
    assert.sameMembers([...new Set(always)], overSdks);
    const openCode = manner(agent("opencode/1.18.33"), "anthropic-messages");
    assert.isFalse(isLeftToClient(openCode, { said: true, repeated: false }), "it shows its text twice");
    assert.isTrue(isLeftToClient(openCode, { said: false, repeated: false }));
    for (const [client, headers] of seen) assert.isFalse(left(headers, false, true), `${client}: its repeat is told`);
    const aborted = { ...manner(agent("codex_exec/0.169.0")), onBreak: "as_provider" } as const;
    assert.isFalse(isLeftToClient(aborted, { said: false, repeated: false }));
  });

  it("sends keep-alive events to codex and qwen-code from the start, and comments to others until the response has begun", () => {
    const ids = (headers: Headers) => protocols.ids.map((id) => [id, manner(headers, id).firstNoOp]);
    assert.deepInclude(ids(agent("codex_exec/0.169.0")), ["openai-responses", "event"]);
    assert.deepInclude(ids(agent("QwenCode/0.24.4")), ["openai-chat", "event"]);
    for (const id of ["openai-responses", "openai-chat"])
      assert.deepInclude(ids(agent("opencode/1.18.33")), [id, "comment"]);
    for (const [, headers] of seen) {
      assert.strictEqual(
        manner(headers, "google-gemini").firstNoOp,
        "event",
        "gemini-cli loses its place at a comment",
      );
    }
  });

  it("holds everything back from copilot if no event in its stream can end it", () => {
    const copilot = { "x-initiator": "agent" };
    assert.deepStrictEqual(
      protocols.ids.map((id) => manner(copilot, id).reveal),
      protocols.ids.map((id) => (id === "openai-chat" || id === "anthropic-messages" ? "on_complete" : "live")),
    );
  });

  it("withholds a head no longer than its client waits", () => {
    const patience = (headers: Headers, patienceMs?: number) =>
      manner(headers, "openai-chat", patienceMs === undefined ? {} : { clients: { unknown: { patienceMs } } })
        .patienceMs;
    const qwen = agent("QwenCode/0.24.4 (linux; x64)");
    assert.strictEqual(patience(agent("GeminiCLI-tui/0.61.0/m (linux)")), 45_000);
    assert.strictEqual(patience(qwen), 100_000);
    assert.strictEqual(patience({ ...qwen, "x-stainless-timeout": "120" }), 100_000);
    assert.strictEqual(patience({ ...qwen, "x-stainless-timeout": "30" }), 25_000);
    assert.strictEqual(patience({ "x-initiator": "user", "x-stainless-timeout": "600" }), 240_000);
    assert.strictEqual(patience({ "x-initiator": "user", "x-stainless-timeout": "60" }), 30_000);
    // Its in-stream ending is correct, and a proxy before the gateway may cut a silent connection after 60 s.
    assert.strictEqual(
      patience({ ...agent("claude-cli/2.1.330 (external, sdk-cli)"), "x-stainless-timeout": "600" }),
      45_000,
    );
    assert.strictEqual(patience({ "x-stainless-timeout": "60" }), 30_000);
    assert.strictEqual(patience({ "x-stainless-timeout": "0" }), 0);
    assert.strictEqual(patience({ "x-stainless-read-timeout": "600.0" }), 45_000);
    assert.strictEqual(patience({ "x-stainless-read-timeout": "6.5" }), 3_250);
    for (const strange of ["", "-1", "1e9", "Infinity", "NaN", "9".repeat(400), "1,2", " 5"])
      assert.strictEqual(patience({ "x-stainless-timeout": strange }), 45_000, strange);
    assert.strictEqual(patience({}, 90_000), 90_000);
    assert.strictEqual(patience({ "x-stainless-timeout": "600" }, 90_000), 90_000);
    assert.strictEqual(patience({ "x-stainless-timeout": "60" }, 90_000), 30_000, "a request's own wait counts");
  });

  it("hands a held response over before qwen-code ends it, and earlier if configured", () => {
    const qwen = agent("QwenCode/0.24.4 (linux; x64)");
    assert.strictEqual(manner(qwen).holdMaxMs, 840_000);
    assert.strictEqual(manner(qwen, "openai-chat", { holdMaxMs: 60_000 }).holdMaxMs, 60_000);
    assert.strictEqual(manner(qwen, "openai-chat", { holdMaxMs: 900_000 }).holdMaxMs, 840_000);
    assert.strictEqual(manner({}, "openai-chat", { holdMaxMs: 60_000 }).holdMaxMs, 60_000);
  });

  it("reveals by the request, then the client's configuration, then the general configuration, then the table", () => {
    const headers = Object.entries({ "x-initiator": "user" });
    const protocol = "openai-chat";
    const clients = { copilot: { reveal: "live" } } as const;
    const reveal = (...[request, settings]: Parameters<typeof mannerOf>) => mannerOf(request, settings).reveal;
    assert.strictEqual(reveal({ headers, protocol }), "on_complete");
    assert.strictEqual(reveal({ headers, protocol }, { reveal: "live" }), "live");
    assert.strictEqual(reveal({ headers, protocol }, { reveal: "on_complete", clients }), "live");
    assert.strictEqual(reveal({ headers, protocol, asked: "on_complete" }, { clients }), "on_complete");
    assert.strictEqual(reveal({ headers: [], protocol }, { clients }), "live");
  });

  it("ends by the client's configuration, then the general configuration, then the table", () => {
    const codex = agent("codex_exec/0.169.0");
    const clients = { codex: { onBreak: "abort" }, unknown: { ending: "clean" } } as const;
    assert.strictEqual(manner(codex, "openai-responses", { onBreak: "as_provider" }).onBreak, "as_provider");
    assert.strictEqual(manner(codex, "openai-responses", { onBreak: "tell", clients }).onBreak, "abort");
    assert.deepInclude(manner({}, "openai-chat", { onBreak: "tell" }), { onBreak: "tell", ending: "broken" });
    assert.deepInclude(manner({}, "openai-chat", { onBreak: "tell", clients }), { onBreak: "tell", ending: "clean" });
  });
});

describe("the clients of a configuration", () => {
  const decode = Schema.decodeUnknownExit(ClientOverrides, { onExcessProperty: "error" });
  const problem = (clients: unknown): string => {
    const exit = decode(clients);
    return Exit.isSuccess(exit) ? "" : String(exit.cause);
  };

  it("change shipped rows, and may have their own rows, which are matched first", () => {
    const decoded = decode({
      codex: { patienceMs: 60_000 },
      "our-agent": { match: { userAgent: "OpenAI/JS 9" }, as: "claude-code", ending: "broken" },
      "by-header": { match: { header: "X-Team", value: "red" }, reveal: "on_complete" },
      "any-team": { match: { header: "x-team" } },
    });
    if (!Exit.isSuccess(decoded)) return assert.fail(String(decoded.cause));
    const clients = decoded.value;
    const of = (headers: Headers) => manner(headers, "openai-responses", { clients });
    assert.deepInclude(of(agent("codex_exec/1")), { client: "codex", patienceMs: 60_000, firstNoOp: "event" });
    assert.deepInclude(of(agent("OpenAI/JS 9.1")), {
      client: "our-agent",
      status: 424,
      ending: "broken",
      onBreak: "tell",
    });
    assert.strictEqual(of(agent("OpenAI/JS 8")).client, "openai-sdk");
    assert.deepInclude(of({ "x-team": "red-1" }), { client: "by-header", reveal: "on_complete", onBreak: "tell" });
    assert.strictEqual(of({ "x-team": "blue" }).client, "any-team");
    assert.strictEqual(of({}).client, "unknown");
  });

  it("are refused with the path of the error", () => {
    assert.strictEqual(problem({}), "");
    assert.match(problem({ codex: { match: { userAgent: "x" } } }), /expected neither `match` nor `as`[\s\S]*codex/);
    assert.match(problem({ mine: {} }), /expected `match`[\s\S]*mine/);
    assert.match(problem({ "No Good": { match: { userAgent: "x" } } }), /expected a name[\s\S]*No Good/);
    assert.match(problem({ mine: { match: { userAgent: "" } } }), /userAgent/);
    assert.match(problem({ mine: { match: { userAgent: "x" }, as: "nobody" } }), /as/);
    assert.match(problem({ codex: { patienceMs: 300_000 } }), /patienceMs/);
    assert.match(problem({ codex: { patienceMs: -1 } }), /patienceMs/);
    assert.match(problem({ codex: { status: 500 } }), /status/);
    assert.match(problem({ codex: { reveals: "live" } }), /reveals/);
    const many = Object.fromEntries(Array.from({ length: 65 }, (_, n) => [`c${n}`, { match: { userAgent: "x" } }]));
    assert.match(problem(many), /at most 64/);
  });

  it("with the names of inherited members change nothing", () => {
    assert.isNotEmpty(problem(JSON.parse('{"__proto__":{"reveal":"on_complete"}}')));
    assert.isNotEmpty(problem({ constructor: { reveal: "on_complete" } }));
    const own = decode({ constructor: { match: { userAgent: "C/" } } });
    if (!Exit.isSuccess(own)) return assert.fail(String(own.cause));
    assert.strictEqual(manner(agent("C/1"), "openai-chat", { clients: own.value }).client, "constructor");
    assert.strictEqual(manner({}, "openai-chat", { clients: own.value }).client, "unknown");
  });
});
