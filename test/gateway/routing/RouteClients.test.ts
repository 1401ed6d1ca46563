import { assert, describe, it } from "@effect/vitest";
import type { RelayHeaders } from "../../../src/adapters/relay/RelayTransport.ts";
import { type Upstreams, upstreamsDefault } from "../../../src/gateway/config/Options.ts";
import { routeOf } from "../../../src/gateway/routing/Route.ts";
import { isPrivate, ownerOf } from "../../../src/gateway/routing/Vendor.ts";

const bearer = (key: string): readonly [string, string] => ["Authorization", `Bearer ${key}`];
const version = ["anthropic-version", "2023-06-01"] as const;
const beta = ["anthropic-beta", "oauth-2025-04-20,claude-code-20250219"] as const;
const oauth = bearer("sk-ant-oat01-EXAMPLE");
const jwt = bearer("eyJhbGciOiJSUzI1NiJ9.EXAMPLE.EXAMPLE");
const google = bearer("ya29.EXAMPLE");

type Configured = Partial<Upstreams>;
type Case = readonly [what: string, target: string, headers: RelayHeaders, configured: Configured, url: string];

const chat = "/v1/chat/completions";
const messages = "/v1/messages?beta=true";
const gemini = "/v1beta/models/g:streamGenerateContent?alt=sse";
const vertexClaude = "/v1/projects/p/locations/l/publishers/anthropic/models/c:streamRawPredict";
const bedrock = "/model/us.anthropic.claude/invoke-with-response-stream";
const bedrockUrl = "https://bedrock-runtime.us-east-1.amazonaws.com";

const openaiCompatible: ReadonlyArray<readonly [what: string, base: string, headers: RelayHeaders]> = [
  ["LiteLLM", "http://litellm:4000/v1", [bearer("sk-1234")]],
  ["LiteLLM with an option of Anthropic's", "http://litellm:4000/v1", [bearer("sk-1234"), beta]],
  ["OpenRouter", "https://openrouter.ai/api/v1", [bearer("sk-or-v1-EXAMPLE"), ["x-title", "a"]]],
  ["OpenRouter with an option of Anthropic's", "https://openrouter.ai/api/v1", [bearer("sk-or-v1-EXAMPLE"), beta]],
  ["Azure", "https://x.openai.azure.com/openai/v1", [["api-key", "k"]]],
  ["Azure with Entra ID", "https://x.openai.azure.com/openai/v1", [jwt]],
  ["Azure Foundry", "https://x.services.ai.azure.com/openai/v1", [["api-key", "k"]]],
  ["Azure for governments", "https://x.openai.azure.us/openai/v1", [["api-key", "k"]]],
  ["Azure API Management", "https://x.azure-api.net/openai/v1", [["ocp-apim-subscription-key", "k"]]],
  ["xAI", "https://api.x.ai/v1", [bearer("xai-EXAMPLE")]],
  ["Groq", "https://api.groq.com/openai/v1", [bearer("gsk_EXAMPLE")]],
  ["Mistral", "https://api.mistral.ai/v1", [bearer("EXAMPLE")]],
  ["Hugging Face", "https://router.huggingface.co/v1", [bearer("hf_EXAMPLE")]],
  ["Bedrock with a bearer", `${bedrockUrl}/openai/v1`, [bearer("ABSKEXAMPLE")]],
  ["Vertex AI", "https://us-central1-aiplatform.googleapis.com/v1/projects/p/locations/l/endpoints/openapi", [google]],
  ["GitHub's models", "https://models.github.ai/inference", [bearer("github_pat_EXAMPLE")]],
  ["GitHub's models at Azure", "https://models.inference.ai.azure.com/v1", [bearer("ghp_EXAMPLE")]],
  ["a rented machine", "http://ec2-1-2-3-4.us-west-2.compute.amazonaws.com:8000/v1", [bearer("hf_EXAMPLE")]],
  ["a rented front end", "https://llm-1.us-east-1.elb.amazonaws.com/v1", [bearer("k"), ["api-key", "other"]]],
  ["Ollama", "http://localhost:11434/v1", [bearer("ollama")]],
  ["a local server, and a key that looks like Anthropic's", "http://127.0.0.1:1234/v1", [bearer("sk-ant-dummy")]],
  ["a local server, and a key that looks like Google's", "http://[::1]:1234/v1", [bearer("AIzaSyEXAMPLE")]],
  ["a local server that reads x-api-key", "http://10.0.0.3:5000/v1", [["x-api-key", "k"]]],
  ["a firm's own server behind a key of its own", "https://llm.firm.example/v1", [["x-api-key", "k"], jwt]],
];

const cases: ReadonlyArray<Case> = [
  ...openaiCompatible.map(
    ([what, openai, headers]): Case => [what, chat, headers, { openai }, `${openai}/chat/completions`],
  ),
  [
    "codex with a key",
    "/v1/responses",
    [bearer("sk-proj-EXAMPLE"), ["originator", "codex_exec"]],
    {},
    "https://api.openai.com/v1/responses",
  ],
  [
    "codex with a ChatGPT login",
    "/responses",
    [jwt, ["chatgpt-account-id", "a"], ["originator", "codex_exec"], ["session_id", "s"]],
    { openai: "https://chatgpt.com/backend-api/codex" },
    "https://chatgpt.com/backend-api/codex/responses",
  ],
  [
    "claude-code with a key",
    messages,
    [["x-api-key", "sk-ant-api03-E"], version, beta],
    {},
    `https://api.anthropic.com${messages}`,
  ],
  [
    "claude-code with OAuth",
    messages,
    [oauth, version, beta, ["x-app", "cli"]],
    {},
    `https://api.anthropic.com${messages}`,
  ],
  [
    "claude-code's usage",
    "/api/oauth/usage",
    [oauth, beta],
    { openai: "http://h:1/v1" },
    "https://api.anthropic.com/api/oauth/usage",
  ],
  ["claude-code's first word", "/api/hello", [], {}, "https://api.anthropic.com/api/hello"],
  [
    "claude-code at a proxy",
    messages,
    [["x-litellm-api-key", "Bearer sk-1"], oauth, version],
    { anthropic: "http://h:4000" },
    `http://h:4000${messages}`,
  ],
  [
    "claude-code at OpenRouter",
    "/v1/messages",
    [bearer("sk-or-v1-E"), version],
    { anthropic: "https://openrouter.ai/api" },
    "https://openrouter.ai/api/v1/messages",
  ],
  [
    "claude-code at Foundry",
    "/v1/messages",
    [["x-api-key", "k"], version],
    { anthropic: "https://x.services.ai.azure.com/anthropic" },
    "https://x.services.ai.azure.com/anthropic/v1/messages",
  ],
  [
    "claude-code at a local server with OpenAI's key",
    "/v1/messages",
    [["x-api-key", "sk-proj-E"], version],
    { anthropic: "http://h:1" },
    "http://h:1/v1/messages",
  ],
  [
    "claude-code with a bearer of Bedrock",
    bedrock,
    [bearer("ABSKEXAMPLE")],
    { openai: bedrockUrl },
    `${bedrockUrl}${bedrock}`,
  ],
  [
    "claude-code with Bedrock in Anthropic's place",
    bedrock,
    [bearer("ABSKEXAMPLE")],
    { anthropic: bedrockUrl },
    `${bedrockUrl}${bedrock}`,
  ],
  [
    "claude-code on Vertex AI",
    vertexClaude,
    [google, version, beta],
    { anthropic: "https://us-east5-aiplatform.googleapis.com" },
    `https://us-east5-aiplatform.googleapis.com${vertexClaude}`,
  ],
  [
    "gemini-cli with a key",
    gemini,
    [
      ["x-goog-api-key", "AIzaSyEXAMPLE"],
      ["x-goog-api-client", "google-genai-sdk/1"],
    ],
    {},
    `https://generativelanguage.googleapis.com${gemini}`,
  ],
  [
    "gemini-cli with a Google account",
    "/v1internal:streamGenerateContent?alt=sse",
    [google],
    {},
    "https://cloudcode-pa.googleapis.com/v1internal:streamGenerateContent?alt=sse",
  ],
  [
    "gemini-cli's first request of an account",
    "/v1internal:loadCodeAssist",
    [jwt],
    {},
    "https://cloudcode-pa.googleapis.com/v1internal:loadCodeAssist",
  ],
  [
    "gemini-cli at a proxy",
    gemini,
    [["x-goog-api-key", "sk-1234"]],
    { gemini: "http://litellm:4000" },
    `http://litellm:4000${gemini}`,
  ],
  [
    "copilot",
    "/chat/completions",
    [bearer("gho_EXAMPLE"), ["x-initiator", "agent"]],
    { openai: "https://api.githubcopilot.com" },
    "https://api.githubcopilot.com/chat/completions",
  ],
  [
    "copilot with a key of one's own",
    chat,
    [bearer("sk-proj-E"), ["x-initiator", "agent"]],
    {},
    "https://api.openai.com/v1/chat/completions",
  ],
  [
    "Azure's deployments",
    "/openai/deployments/d/chat/completions?api-version=1",
    [["api-key", "k"]],
    { openai: "https://x.openai.azure.com" },
    "https://x.openai.azure.com/openai/deployments/d/chat/completions?api-version=1",
  ],
  // Continue says its key twice, for Azure, also where there is none.
  [
    "continue",
    chat,
    [bearer("a-key-of-a-team"), ["api-key", "a-key-of-a-team"]],
    {},
    "https://api.openai.com/v1/chat/completions",
  ],
  [
    "continue without a key",
    chat,
    [bearer("undefined"), ["api-key", ""]],
    { openai: "https://ollama.com/v1" },
    "https://ollama.com/v1/chat/completions",
  ],
  [
    "Ollama's own path to a server elsewhere",
    "/api/chat",
    [],
    { ollama: "http://gpu.lan:11434" },
    "http://gpu.lan:11434/api/chat",
  ],
  [
    "a client behind CloudFront",
    chat,
    [bearer("sk-proj-E"), ["x-amz-cf-id", "a"]],
    {},
    "https://api.openai.com/v1/chat/completions",
  ],
  [
    "a client behind Google's IAP",
    chat,
    [bearer("sk-proj-E"), ["x-goog-iap-jwt-assertion", "a"], ["x-goog-authenticated-user-id", "a"]],
    {},
    "https://api.openai.com/v1/chat/completions",
  ],
];

describe("routeOf, for what clients really send", () => {
  for (const [what, target, headers, configured, url] of cases)
    it(`passes ${what}`, () => {
      const route = routeOf(target, headers, { ...upstreamsDefault, ...configured });
      assert.strictEqual("refused" in route ? route.refused.message : route.url, url);
    });

  const wrong: ReadonlyArray<readonly [what: string, target: string, headers: RelayHeaders, configured: Configured]> = [
    [
      "a server of the operator's on the Internet, and another vendor's key",
      "/v1/responses",
      [bearer("sk-ant-E")],
      { openai: "https://llm.firm.example/v1" },
    ],
    [
      "a local server, where another one is configured for the key",
      "/v1/responses",
      [bearer("sk-ant-E")],
      { openai: "http://h:1/v1", anthropic: "http://h:2" },
    ],
    [
      "a local server, and a header that one vendor alone has",
      chat,
      [["x-goog-api-key", "k"]],
      { openai: "http://h:1/v1" },
    ],
    ["a vendor, and another one's name for a key", chat, [bearer("k"), ["x-api-key", "other"]], {}],
  ];
  for (const [what, target, headers, configured] of wrong)
    it(`refuses ${what}`, () => {
      assert.isTrue("refused" in routeOf(target, headers, { ...upstreamsDefault, ...configured }));
    });

  it("sends a key on a path that every vendor has to its own vendor, whatever is local", () => {
    const local = { ...upstreamsDefault, openai: "http://localhost:11434/v1" };
    for (const path of ["/v1/models", "/v1/files", "/api/oauth/profile"]) {
      const route = routeOf(path, [oauth], local);
      assert.strictEqual("refused" in route ? route.refused.reason : route.upstream, "anthropic", path);
    }
  });

  it("distinguishes a private network from the Internet, and a vendor from its tenants", () => {
    for (const host of [
      "localhost",
      "127.0.0.1",
      "10.1.2.3",
      "172.16.0.1",
      "172.31.9.9",
      "192.168.0.2",
      "100.64.0.1",
      "[::1]",
      "[fd00::1]",
      "[fe80::1]",
      "litellm",
      "nas.local",
      "host.docker.internal",
    ])
      assert.isTrue(isPrivate(host), host);
    for (const host of [
      "api.openai.com",
      "8.8.8.8",
      "172.32.0.1",
      "100.128.0.1",
      "[2001:db8::1]",
      "10.example.com",
      "llm.firm.example",
      "localhost.evil.example",
    ])
      assert.isFalse(isPrivate(host), host);
    assert.strictEqual(ownerOf("bedrock-runtime.us-east-1.amazonaws.com"), "bedrock");
    assert.isUndefined(ownerOf("a.us-east-1.elb.amazonaws.com"));
    assert.isUndefined(ownerOf("vm.eastus.cloudapp.azure.com"));
    assert.strictEqual(ownerOf("x.openai.azure.com"), "azure");
  });
});
