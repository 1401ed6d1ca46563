import { assert, describe, it } from "@effect/vitest";
import * as HostedTools from "../../src/domain/HostedTools.ts";
import { labelCharactersMax } from "../../src/domain/Limits.ts";
import {
  type Executor,
  serverSideState,
  snapshot,
  type ToolBoundary,
  type ToolEffect,
} from "../../src/domain/SideEffects.ts";

describe("the table of hosted tools", () => {
  const rows: ReadonlyArray<readonly [Executor, ToolEffect, ReadonlyArray<string>]> = [
    [
      "provider",
      "read_only",
      ["web_search", "web_search_20250305", "web_search_preview", "web_search_preview_2025_03_11"],
    ],
    [
      "provider",
      "read_only",
      ["web_search_2025_08_26", "openrouter:web_search", "web_fetch_20260209", "x_search", "advisor_20260301"],
    ],
    [
      "provider",
      "read_only",
      ["google_search", "googleSearch", "googleSearchRetrieval", "url_context", "urlContext", "googleMaps"],
    ],
    [
      "provider",
      "read_only",
      ["file_search", "fileSearch", "tool_search", "tool_search_tool_bm25_20251119", "tool_search_tool_regex"],
    ],
    ["provider", "read_only", ["image_generation", "code_interpreter", "codeExecution", "code_execution_20250825"]],
    ["provider", "read_only", ["bash_code_execution", "text_editor_code_execution", "program"]],
    ["provider", "unknown", ["mcp", "mcp_toolset", "mcp.tracker", "mcp.tracker.web_search"]],
    [
      "runtime",
      "unknown",
      ["function", "custom", "local_shell", "apply_patch", "computer_use_preview", "computer_20250124"],
    ],
    ["runtime", "unknown", ["bash_20250124", "text_editor_20250728", "memory_20250818", "computerUse"]],
  ];
  for (const [executor, effect, names] of rows)
    it(`${names.join(", ")}: ${executor}, ${effect}`, () => {
      for (const name of names) {
        assert.deepStrictEqual(HostedTools.lookup(name), { executor, effect }, name);
        assert.strictEqual(HostedTools.effectOf(name), effect, name);
      }
    });

  it("has no name that no provider hosts, and the effect of such a tool is unknown", () => {
    for (const name of ["", "robot_arm", "web_searcher", "constructor", "__proto__", "mcpx"]) {
      assert.isUndefined(HostedTools.lookup(name), name);
      assert.strictEqual(HostedTools.effectOf(name), "unknown", name);
    }
  });

  it("uses a declared effect for a provider's tool, and the worst one if several apply", () => {
    const declared = (name: string, effect: ToolEffect, executor: Executor = "provider"): ToolBoundary => ({
      name,
      executor,
      effect,
    });
    const rows: ReadonlyArray<readonly [string, ReadonlyArray<ToolBoundary>, ToolEffect]> = [
      ["code_interpreter", [declared("code_interpreter", "unknown")], "unknown"],
      ["bash_code_execution", [declared("code_execution", "unknown")], "unknown"],
      ["web_search", [declared("web_search_20250305", "mutating")], "mutating"],
      ["x_keyword_search", [declared("x_search", "unknown")], "unknown"],
      ["mcp.docs.find", [declared("mcp.docs", "read_only")], "read_only"],
      ["mcp.docs.a.b", [declared("mcp.docs", "read_only")], "read_only"],
      ["mcp.docs.find", [declared("mcp", "read_only")], "read_only"],
      ["mcp.docs.find", [declared("mcp.docs", "read_only"), declared("mcp.docs.find", "mutating")], "mutating"],
      ["mcp.docs2.find", [declared("mcp.docs", "read_only")], "unknown"],
      ["shell", [declared("shell", "read_only")], "read_only"],
      ["web_search", [declared("web_search", "mutating", "runtime")], "read_only"],
    ];
    for (const [name, tools, effect] of rows) assert.strictEqual(HostedTools.effectOf(name, tools), effect, name);
  });
});

describe("the tools that a request exposes", () => {
  const exposed = (body: unknown) =>
    HostedTools.fromRequestTools(body).map((tool) => `${tool.executor} ${tool.effect} ${tool.name}`);

  it("Converse: its own tools and those of Amazon", () => {
    const spec = { toolSpec: { name: "bash", inputSchema: { json: {} } } };
    const body = {
      toolConfig: { tools: [spec, { cachePoint: { type: "default" } }, { systemTool: { name: "nova_grounding" } }] },
    };
    assert.deepStrictEqual(exposed(body), ["runtime unknown bash", "provider unknown nova_grounding"]);
    assert.deepStrictEqual(exposed({ toolConfig: { functionCallingConfig: { mode: "AUTO" } } }), []);
  });

  it("Chat: functions in both forms, custom tools, and search by option, parameter or plugin", () => {
    const tools = [
      { type: "function", function: { name: "read" } },
      { type: "custom", custom: { name: "sql" } },
    ];
    assert.deepStrictEqual(exposed({ messages: [], tools }), ["runtime unknown read", "runtime unknown sql"]);
    assert.deepStrictEqual(exposed({ functions: [{ name: "old" }] }), ["runtime unknown old"]);
    assert.deepStrictEqual(exposed({ web_search_options: {} }), ["provider read_only web_search"]);
    assert.deepStrictEqual(exposed({ search_parameters: { mode: "auto" } }), ["provider read_only web_search"]);
    assert.deepStrictEqual(exposed({ search_parameters: { mode: "off" } }), []);
    assert.deepStrictEqual(exposed({ plugins: [{ id: "web" }, { id: "file-parser" }] }), [
      "provider read_only web_search",
    ]);
    assert.deepStrictEqual(exposed({ tools: [{ type: "openrouter:web_search" }] }), ["provider read_only web_search"]);
  });

  it("Responses: hosted tools, their containers, client tools and namespaces", () => {
    const rows: ReadonlyArray<readonly [object, ReadonlyArray<string>]> = [
      [{ type: "function", name: "read" }, ["runtime unknown read"]],
      [{ type: "function", name: "web_search" }, ["runtime unknown web_search"]],
      [{ type: "custom", name: "sql" }, ["runtime unknown sql"]],
      [{ type: "web_search_preview_2025_03_11" }, ["provider read_only web_search"]],
      [{ type: "file_search", vector_store_ids: ["v"] }, ["provider read_only file_search"]],
      [{ type: "image_generation" }, ["provider read_only image_generation"]],
      [{ type: "code_interpreter", container: { type: "auto" } }, ["provider read_only code_interpreter"]],
      [{ type: "code_interpreter", container: "cntr_1" }, ["provider unknown code_interpreter"]],
      [{ type: "mcp", server_label: "docs", server_url: "x" }, ["provider unknown mcp.docs"]],
      [{ type: "local_shell" }, ["runtime unknown local_shell"]],
      [{ type: "apply_patch" }, ["runtime unknown apply_patch"]],
      [{ type: "computer_use_preview" }, ["runtime unknown computer_use"]],
      [{ type: "shell" }, ["runtime unknown shell"]],
      [{ type: "shell", environment: { type: "local" } }, ["runtime unknown shell"]],
      [{ type: "shell", environment: { type: "container_auto" } }, ["provider read_only shell"]],
      [{ type: "shell", environment: { type: "container_reference", container_id: "c" } }, ["provider unknown shell"]],
      [{ type: "tool_search" }, ["provider read_only tool_search"]],
      [{ type: "tool_search", execution: "client" }, ["runtime unknown tool_search"]],
      [{ type: "namespace", name: "crm", tools: [{ type: "function", name: "a" }] }, ["runtime unknown a"]],
      [{ type: "robot_arm" }, ["provider unknown robot_arm"]],
    ];
    for (const [tool, expected] of rows)
      assert.deepStrictEqual(exposed({ tools: [tool] }), expected, JSON.stringify(tool));
  });

  it("Anthropic: client tools with and without a type, server tools, kept containers, MCP servers", () => {
    const rows: ReadonlyArray<readonly [object, ReadonlyArray<string>]> = [
      [{ tools: [{ name: "read", input_schema: {} }] }, ["runtime unknown read"]],
      [{ tools: [{ name: "web_search", input_schema: {} }] }, ["runtime unknown web_search"]],
      [{ tools: [{ type: "custom", name: "read", input_schema: {} }] }, ["runtime unknown read"]],
      [{ tools: [{ type: "bash_20250124", name: "bash" }] }, ["runtime unknown bash"]],
      [
        { tools: [{ type: "text_editor_20250728", name: "str_replace_based_edit_tool" }] },
        ["runtime unknown str_replace_based_edit_tool"],
      ],
      [{ tools: [{ type: "web_search_20250305", name: "web_search" }] }, ["provider read_only web_search"]],
      [{ tools: [{ type: "code_execution_20250825", name: "code_execution" }] }, ["provider read_only code_execution"]],
      [
        { container: { skills: [] }, tools: [{ type: "code_execution_20250825" }] },
        ["provider read_only code_execution"],
      ],
      [{ container: "container_1", tools: [{ type: "code_execution_20250825" }] }, ["provider unknown code_execution"]],
      [
        { container: { id: "container_1" }, tools: [{ type: "code_execution_20250825" }] },
        ["provider unknown code_execution"],
      ],
      [{ container: "container_1" }, ["provider unknown code_execution"]],
      [{ mcp_servers: [{ type: "url", name: "docs" }] }, ["provider unknown mcp.docs"]],
      [
        { mcp_servers: [{ name: "docs" }], tools: [{ type: "mcp_toolset", mcp_server_name: "docs" }] },
        ["provider unknown mcp.docs"],
      ],
    ];
    for (const [body, expected] of rows) assert.deepStrictEqual(exposed(body), expected, JSON.stringify(body));
  });

  it("Gemini: every key of an entry is a tool, in either spelling", () => {
    const tools = [
      { functionDeclarations: [{ name: "read" }, { name: "write" }] },
      { googleSearch: {}, url_context: {}, codeExecution: {} },
      { function_declarations: [{ name: "list" }], computerUse: {}, fileSearch: null },
      { robotArm: {} },
    ];
    assert.deepStrictEqual(exposed({ contents: [], tools }), [
      "runtime unknown read",
      "runtime unknown write",
      "provider read_only google_search",
      "provider read_only url_context",
      "provider read_only code_execution",
      "runtime unknown list",
      "runtime unknown computer_use",
      "provider unknown robot_arm",
    ]);
  });

  it("a conversation stored at the provider is state that a repeat appends to, and a previous response is not", () => {
    assert.deepStrictEqual(HostedTools.fromRequestTools({ conversation: "conv_1" }), [serverSideState]);
    assert.deepStrictEqual(HostedTools.fromRequestTools({ conversation: { id: "conv_1" } }), [serverSideState]);
    for (const body of [{ conversation: null }, { previous_response_id: "resp_1", store: true }, { background: true }])
      assert.deepStrictEqual(HostedTools.fromRequestTools(body), []);
    const side = snapshot(HostedTools.fromRequestTools({ conversation: "conv_1" }), true);
    assert.deepInclude(side, { complete: false, reason: "provider_tools" });
  });

  it("any other request exposes nothing and never throws", () => {
    for (const body of [
      undefined,
      null,
      1,
      "tools",
      [],
      {},
      { tools: null },
      { tools: {} },
      { tools: [null, 1, "x", [], {}] },
    ])
      assert.deepStrictEqual(HostedTools.fromRequestTools(body), [], JSON.stringify(body));
  });

  it("cuts names to the length of labels", () => {
    const name = "x".repeat(labelCharactersMax + 1);
    assert.strictEqual(
      HostedTools.fromRequestTools({ tools: [{ type: "function", name }] })[0]?.name.length,
      labelCharactersMax,
    );
    assert.strictEqual(HostedTools.mcpName(name, name).length, labelCharactersMax);
  });
});
