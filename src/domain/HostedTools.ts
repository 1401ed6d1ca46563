/**
 * Describes the tools that providers host: the side that runs each tool, its effect, and the tools that a request exposes.
 *
 * A name counts here only for a call that the provider executes or for an entry of a request body. A function that a caller names
 * `web_search` belongs to the caller, with the effect that the caller declares.
 */
import { pickHigher } from "./AttemptFacts.ts";
import * as Json from "./Json.ts";
import { label } from "./Limits.ts";
import { type Executor, serverSideState, type ToolBoundary, ToolEffect } from "./SideEffects.ts";

/** The side that runs a hosted tool, and the tool's effect. */
export interface HostedTool {
  readonly executor: Executor;
  readonly effect: ToolEffect;
}

const readOnly: HostedTool = { executor: "provider", effect: "read_only" };
const unknown: HostedTool = { executor: "provider", effect: "unknown" };
const runtime: HostedTool = { executor: "runtime", effect: "unknown" };

const rows = (tool: HostedTool, ...names: ReadonlyArray<string>): ReadonlyArray<readonly [string, HostedTool]> =>
  names.map((name) => [name, tool]);

/**
 * Hosted tools by family, that is, by name without vendor prefix, version and `_preview`. Lookups, image generation and code in a
 * disposable container change nothing that outlives the response. Hosted MCP and shells may do anything.
 */
const table: ReadonlyMap<string, HostedTool> = new Map([
  ...rows(readOnly, "web_search", "web_fetch", "file_search", "url_context", "retrieval", "document_library"),
  ...rows(readOnly, "tool_search", "tool_search_tool_bm25", "tool_search_tool_regex", "mcp_list_tools"),
  ...rows(readOnly, "google_search", "google_search_retrieval", "google_maps", "enterprise_web_search"),
  ...rows(readOnly, "browser_search", "visit_website", "wolfram_alpha", "datetime"),
  ...rows(readOnly, "x_search", "x_user_search", "x_keyword_search", "x_semantic_search", "x_thread_fetch"),
  ...rows(
    readOnly,
    "web_search_with_snippets",
    "web_search_premium",
    "browse_page",
    "view_image",
    "view_x_video",
    "collections_search",
  ),
  // Image generation, and questions to a second model.
  ...rows(readOnly, "image_generation", "advisor"),
  // Code in a container that lives only as long as the response. If the request names a container, the effect is `unknown`.
  ...rows(readOnly, "code_interpreter", "code_execution", "bash_code_execution", "text_editor_code_execution"),
  ...rows(readOnly, "program", "programmatic_tool_calling"),
  ...rows(unknown, "mcp", "mcp_toolset"),
  ...rows(runtime, "function", "custom", "shell", "local_shell", "apply_patch", "bash", "text_editor", "memory"),
  ...rows(runtime, "computer", "computer_use", "mcp_approval_request"),
]);

/** Names of calls that belong to a tool which a request exposes under another name. */
const exposedAs: ReadonlyMap<string, string> = new Map([
  ["bash_code_execution", "code_execution"],
  ["text_editor_code_execution", "code_execution"],
  ["program", "programmatic_tool_calling"],
  ["x_user_search", "x_search"],
  ["x_keyword_search", "x_search"],
  ["x_semantic_search", "x_search"],
  ["x_thread_fetch", "x_search"],
]);

/**
 * Looks up a hosted tool by any of its spellings (`web_search_20250305`, `web_search_preview_2025_03_11`, `googleSearch`,
 * `openrouter:web_search`).
 *
 * @param name a tool's name or type from the wire or a request body
 * @returns undefined for a tool that no provider is known to host
 */
export const lookup = (name: string): HostedTool | undefined => {
  const found = table.get(family(name));
  // Hosted MCP calls are named `mcp.<server>.<tool>`, so that a server's own `web_search` is not mistaken for the hosted tool.
  return found ?? (name.startsWith("mcp.") ? unknown : undefined);
};

/**
 * Returns the effect of a provider-executed call: as declared, else from the table, else unknown.
 *
 * @param name the call's tool, as a decoder names it
 * @param declared the boundaries of the request; entries for the tool, its family or its MCP server override the table, and the worst of
 *   several applies
 */
export const effectOf = (name: string, declared: ReadonlyArray<ToolBoundary> = []): ToolEffect => {
  const own = family(name);
  const names = [name, own, exposedAs.get(own)];
  const isMatch = (tool: ToolBoundary) =>
    names.includes(tool.name) || names.includes(family(tool.name)) || isMcpServerOf(tool.name, name);
  const effects = declared.filter((tool) => tool.executor === "provider" && isMatch(tool)).map((tool) => tool.effect);
  return effects.length > 0
    ? effects.reduce((worst, effect) => pickHigher(ToolEffect, worst, effect))
    : (lookup(name)?.effect ?? "unknown");
};

/**
 * Lists everything that a request exposes: the tools of its body, in any protocol, and the state that it appends to at the
 * provider.
 *
 * Tools that a caller runs are `runtime` and `unknown`, because only the caller can declare their effect. A Responses `conversation` counts
 * as server-side state, because a repeat of the request appends to it again. `previous_response_id` does not, because a repeat creates a
 * separate response.
 *
 * @param body the request body as parsed JSON; anything else exposes nothing
 */
export const fromRequestTools = (body: unknown): ReadonlyArray<ToolBoundary> => {
  const request = Json.record(body);
  if (request === undefined) return [];
  const keptContainer = isNamedContainer(request.container);
  const tools = Json.list(request.tools).flatMap((tool) => fromRequestTool(tool, keptContainer));
  const found = [...tools, ...outsideTools(request, tools)];
  const conversation = request.conversation;
  const appends = Json.record(conversation) !== undefined || Json.string(conversation) !== "";
  return appends ? [...found, serverSideState] : found;
};

/**
 * Reads one entry of a request's `tools`. A Gemini entry or a namespace may hold several tools.
 *
 * @param tool the entry as parsed JSON
 * @param keptContainer true if the request names a container that outlives the response (Anthropic `container`)
 */
export const fromRequestTool = (tool: unknown, keptContainer = false): ReadonlyArray<ToolBoundary> => {
  const entry = Json.record(tool);
  if (entry === undefined) return [];
  const type = Json.string(entry.type);
  const name = Json.string(entry.name);
  const called = Json.record(entry.function);
  // A Responses namespace groups functions for tool search.
  if (type === "namespace") return Json.list(entry.tools).flatMap((inner) => fromRequestTool(inner, keptContainer));
  if (type === "function" || called !== undefined)
    return [makeBoundary(Json.string(called?.name) || name || "function", runtime)];
  if (type === "custom" || (type === "" && name !== "")) return [makeBoundary(customName(entry), runtime)];
  if (type === "") return fromKeys(entry);
  return [readTyped(entry, type, keptContainer)];
};

/** Reads an entry with a special type: a hosted tool, or a client tool of a known shape. */
const readTyped = (entry: Json.JsonRecord, type: string, keptContainer: boolean): ToolBoundary => {
  const own = family(type);
  const name = Json.string(entry.name) || own;
  switch (own) {
    case "mcp":
    case "mcp_toolset":
      return mcp(Json.string(entry.server_label) || Json.string(entry.mcp_server_name));
    case "code_interpreter":
      return makeBoundary(own, isNamedContainer(entry.container) ? unknown : readOnly);
    case "code_execution":
      return makeBoundary(own, keptContainer ? unknown : readOnly);
    case "shell":
      return makeBoundary(own, shell(Json.record(entry.environment)));
    case "tool_search":
      return makeBoundary(own, entry.execution === "client" ? runtime : readOnly);
  }
  const hosted = lookup(type);
  // We assume that a tool of unknown type runs at the provider, which is the safer assumption.
  if (hosted === undefined) return makeBoundary(name, entry.input_schema === undefined ? unknown : runtime);
  return makeBoundary(hosted.executor === "runtime" ? name : own, hosted);
};

/** Returns the side and effect of a Responses `shell`. The caller runs it if it has no environment or a local one. */
const shell = (environment: Json.JsonRecord | undefined): HostedTool => {
  const type = Json.string(environment?.type);
  if (environment === undefined || type === "local") return runtime;
  return type === "container_auto" ? readOnly : unknown;
};

/** Reads an entry of Gemini. Every key names a tool, and `functionDeclarations` lists the caller's own tools. */
const fromKeys = (entry: Json.JsonRecord): ReadonlyArray<ToolBoundary> =>
  Object.keys(entry).flatMap((key) => {
    if (entry[key] === undefined || entry[key] === null) return [];
    const own = toSnakeCase(key);
    if (own === "function_declarations")
      return Json.list(entry[key]).map((declared) =>
        makeBoundary(Json.string(Json.record(declared)?.name) || "function", runtime),
      );
    if (own === "mcp_servers")
      return Json.list(entry[key]).map((server) => mcp(Json.string(Json.record(server)?.name)));
    return [makeBoundary(own, lookup(own) ?? unknown)];
  });

/** Lists the tools that a request body exposes in other fields than `tools`. */
const outsideTools = (request: Json.JsonRecord, tools: ReadonlyArray<ToolBoundary>): ReadonlyArray<ToolBoundary> => {
  const found: Array<ToolBoundary> = [];
  // Chat: `functions` is the API's original form of tools.
  for (const entry of Json.list(request.functions))
    found.push(makeBoundary(Json.string(Json.record(entry)?.name) || "function", runtime));
  // Bedrock's Converse. Its only other kind of entry, `cachePoint`, is not a tool.
  for (const entry of Json.list(Json.record(request.toolConfig)?.tools)) {
    const { systemTool, toolSpec } = Json.record(entry) ?? {};
    const own = Json.record(toolSpec);
    const hosted = Json.string(Json.record(systemTool)?.name);
    if (own !== undefined) found.push(makeBoundary(Json.string(own.name) || "function", runtime));
    if (hosted !== "") found.push(makeBoundary(hosted, unknown));
  }
  // Anthropic: a server is exposed even if no `mcp_toolset` names it.
  for (const entry of Json.list(request.mcp_servers)) {
    const server = mcp(Json.string(Json.record(entry)?.name));
    if (!tools.some((tool) => tool.name === server.name)) found.push(server);
  }
  // Anthropic: some tools, for example web_search, can run code in a named container too.
  if (isNamedContainer(request.container) && !tools.some((tool) => tool.name === "code_execution"))
    found.push(makeBoundary("code_execution", unknown));
  // Chat: search models take search as an option (OpenAI), a parameter (xAI) or a plugin (OpenRouter).
  const xai = Json.record(request.search_parameters);
  if (Json.record(request.web_search_options) !== undefined || (xai !== undefined && xai.mode !== "off"))
    found.push(makeBoundary("web_search", readOnly));
  for (const entry of Json.list(request.plugins)) {
    const plugin = Json.string(Json.record(entry)?.id);
    if (plugin === "web") found.push(makeBoundary("web_search", readOnly));
  }
  return found;
};

const makeBoundary = (name: string, tool: HostedTool): ToolBoundary => ({ name: label(name), ...tool });

const mcp = (server: string): ToolBoundary => makeBoundary(mcpName(server), unknown);

/**
 * Returns the name of a hosted MCP tool or of a whole server. It differs from every name in the table.
 *
 * @param server the server's label or name; may be empty
 * @param tool the tool's name on that server; may be omitted
 */
export const mcpName = (server: string, tool = ""): string =>
  label(["mcp", server, tool].filter((part) => part !== "").join("."));

const isMcpServerOf = (server: string, name: string): boolean =>
  name.startsWith("mcp.") && name.startsWith(`${server}.`);

/** Returns the name of a `custom` tool. Chat nests the name; Responses and Anthropic do not. */
const customName = (entry: Json.JsonRecord): string =>
  Json.string(Json.record(entry.custom)?.name) || Json.string(entry.name) || "custom";

/**
 * True if the request names a container, which then outlives the response. `{ "type": "auto" }` and skills without an id do not name a
 * container.
 */
const isNamedContainer = (container: unknown): boolean =>
  Json.string(container) !== "" ||
  Json.string(Json.record(container)?.id) !== "" ||
  Json.string(Json.record(container)?.container_id) !== "";

/** Returns a tool's name in the spelling of the table: snake case without vendor prefix, version and `_preview`. */
const family = (name: string): string =>
  toSnakeCase(name.slice(name.lastIndexOf(":") + 1))
    .replace(/_(\d{8}|\d{4}_\d{2}_\d{2}|\d{4}-\d{2}-\d{2})$/, "")
    .replace(/_preview$/, "");

const toSnakeCase = (name: string): string => name.replace(/([a-z0-9])([A-Z])/g, "$1_$2").toLowerCase();
