import { assert, describe, it } from "@effect/vitest";
import { type RelayPlan, recognise } from "../../../src/adapters/relay/RelayPlan.ts";
import { serverSideState } from "../../../src/domain/SideEffects.ts";
import type { ProtocolId } from "../../../src/provider/Protocols.ts";

const plan = (url: string, body: unknown, headers: Record<string, string> = {}, method = "POST") =>
  recognise({ method, url, headers: Object.entries(headers), body: JSON.stringify(body) }, { read: "read_only" });

const messages = [{ role: "user", content: "hi" }];

const known: ReadonlyArray<
  readonly [
    string,
    unknown,
    Record<string, string>,
    Partial<Omit<RelayPlan, "protocol">> & { readonly protocol: ProtocolId },
  ]
> = [
  [
    "https://api.openai.com/v1/chat/completions",
    { messages, stream: true },
    {},
    { protocol: "openai-chat", streaming: true },
  ],
  ["https://api.openai.com/v1/chat/completions", { messages }, {}, { protocol: "openai-chat", streaming: false }],
  [
    "https://x.azure.com/openai/deployments/d/chat/completions?api-version=1",
    { messages, stream: true, model: "gpt-4o" },
    {},
    { protocol: "openai-chat", provider: { id: "x.azure.com", model: "d" } },
  ],
  [
    "https://g.com/v1beta/openai/chat/completions",
    { messages, stream: true, n: 2 },
    {},
    { protocol: "openai-chat", tolerance: { choices: 2 } },
  ],
  [
    "https://api.openai.com/v1/responses",
    { input: "x", stream: true },
    {},
    { protocol: "openai-responses", streaming: true },
  ],
  [
    "https://api.anthropic.com/v1/messages?beta=true",
    { messages, stream: true },
    {},
    { protocol: "anthropic-messages", streaming: true },
  ],
  [
    "https://proxy/claude/messages",
    { messages, stream: true },
    { "Anthropic-Version": "2023-06-01" },
    { protocol: "anthropic-messages" },
  ],
  [
    "https://v.google/v1/projects/p/models/claude:streamRawPredict",
    { messages, stream: true },
    {},
    { protocol: "anthropic-messages" },
  ],
  [
    "https://g.com/v1beta/models/gemini-x:streamGenerateContent?alt=sse",
    { contents: [] },
    {},
    { protocol: "google-gemini", streaming: true, provider: { id: "g.com", model: "gemini-x" } },
  ],
  [
    "https://g.com/v1beta/models/gemini-x:generateContent",
    { contents: [] },
    {},
    { protocol: "google-gemini", streaming: false },
  ],
];

const strange: ReadonlyArray<readonly [string, unknown]> = [
  ["https://api.openai.com/v1/embeddings", { input: "x" }],
  ["https://api.openai.com/v1/responses/resp_1/cancel", {}],
  ["https://api.anthropic.com/v1/messages/count_tokens", { messages }],
  ["https://api.anthropic.com/v1/messages/batches", { requests: [] }],
  ["https://api.openai.com/v1/threads/t/messages", { role: "user", content: "x" }],
  ["https://g.com/v1beta/models/gemini-x:streamGenerateContent", { contents: [] }],
  ["https://survey.example/responses", { answers: [1] }],
  ["not an address/chat/completions", { messages }],
];

describe("RelayPlan", () => {
  for (const [url, body, headers, expected] of known) {
    it(`knows ${url}${JSON.stringify(body).includes("stream") ? "" : " without a stream"}`, () => {
      const { protocol, ...rest } = plan(url, body, headers) ?? assert.fail("it is recognised");
      const found = { ...rest, protocol: protocol.id };
      for (const key of Object.keys(expected))
        assert.deepStrictEqual(Reflect.get(found, key), Reflect.get(expected, key));
    });
  }

  for (const [url, body] of strange) {
    it(`leaves ${url} alone`, () => assert.isUndefined(plan(url, body)));
  }

  it("leaves other methods and bodies that are no JSON alone", () => {
    assert.isUndefined(plan("https://api.openai.com/v1/responses", { input: "x" }, {}, "GET"));
    const request = { method: "POST", url: "https://api.openai.com/v1/responses", headers: [] };
    assert.isUndefined(recognise({ ...request, body: "no json" }));
    assert.isUndefined(recognise({ ...request, body: undefined }));
  });

  it("believes a declaration about a hosted tool, by any of its spellings", () => {
    const request = {
      method: "POST",
      url: "https://api.openai.com/v1/responses",
      headers: [],
      body: JSON.stringify({
        input: "x",
        tools: [
          { type: "mcp", server_label: "docs" },
          { type: "code_interpreter", container: "cntr_1" },
          { type: "x" },
        ],
      }),
    };
    const effects = (declared: Record<string, "read_only" | "mutating">) =>
      recognise(request, declared)?.tools.map((tool) => tool.effect);
    assert.deepStrictEqual(effects({}), ["unknown", "unknown", "unknown"]);
    assert.deepStrictEqual(effects({ "mcp.docs": "read_only" }), ["read_only", "unknown", "unknown"]);
    assert.deepStrictEqual(effects({ code_interpreter: "read_only", x: "mutating" }), [
      "unknown",
      "read_only",
      "mutating",
    ]);
  });

  it("reads the tools of the body: the caller's own as unknown unless declared, hosted ones from the table", () => {
    const tools = [
      { type: "function", name: "read" },
      { type: "function", name: "pay" },
      { type: "web_search" },
      { type: "mcp", server_label: "shop" },
    ];
    const found = plan("https://api.openai.com/v1/responses", { input: "x", tools, conversation: "conv_1" });
    assert.deepStrictEqual(
      found?.tools.map(({ effect, executor, name }) => `${name} ${executor} ${effect}`),
      [
        "read runtime read_only",
        "pay runtime unknown",
        "web_search provider read_only",
        "mcp.shop provider unknown",
        "server_side_state provider mutating",
      ],
    );
  });

  it("reads a tool whose name every object has", () => {
    for (const name of ["constructor", "toString", "__proto__", "hasOwnProperty"]) {
      const body = { messages, tools: [{ type: "function", function: { name } }] };
      assert.deepStrictEqual(plan("https://api.openai.com/v1/chat/completions", body)?.tools, [
        { name, executor: "runtime", effect: "unknown" },
      ]);
    }
  });

  it("only the stream of a background response outlives its connection: OpenAI streams no other by starting_after", () => {
    const url = "https://api.openai.com/v1/responses";
    const resumes = (body: object) => plan(url, { input: "x", stream: true, ...body })?.resumes === true;
    for (const background of [{ background: true }, { background: true, store: true }])
      assert.isTrue(resumes(background), JSON.stringify(background));
    for (const other of [{}, { store: true }, { background: false }, { background: "true" }])
      assert.isFalse(resumes(other), JSON.stringify(other));
    assert.isFalse(resumes({ background: true, stream: false }), "a document is polled for");
    const chat = { messages, stream: true, background: true };
    assert.isUndefined(plan("https://api.openai.com/v1/chat/completions", chat)?.resumes);
  });

  it("a response that its provider keeps is state there, once; a declaration says otherwise", () => {
    const url = "https://api.openai.com/v1/responses";
    for (const kept of [{ background: true }, { store: true }, { background: true, store: true, conversation: "c" }])
      assert.deepStrictEqual(plan(url, { input: "x", ...kept })?.tools, [serverSideState], JSON.stringify(kept));
    for (const kept of [{}, { store: false }, { background: false }, { store: null, previous_response_id: "r" }])
      assert.deepStrictEqual(plan(url, { input: "x", ...kept })?.tools, [], JSON.stringify(kept));
    const chat = plan("https://api.openai.com/v1/chat/completions", { messages, store: true });
    assert.deepStrictEqual(chat?.tools, [], "a chat completion is stored for its owner to look at");
    const streamed = plan(url, { input: "x", store: true, stream: true });
    assert.deepStrictEqual([streamed?.tools, streamed?.stores], [[], true], "a stream says when its response exists");
    const request = { method: "POST", url, headers: [], body: JSON.stringify({ input: "x", store: true }) };
    const declared = recognise(request, { [serverSideState.name]: "read_only" });
    assert.strictEqual(declared?.tools[0]?.effect, "read_only");
    const body = JSON.stringify({ input: "x", store: true, stream: true });
    assert.isUndefined(recognise({ ...request, body }, { [serverSideState.name]: "read_only" })?.stores);
  });
});
