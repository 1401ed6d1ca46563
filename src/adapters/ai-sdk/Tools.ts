/**
 * Guards the tools of the AI SDK: their `execute` is only reached through ToolGuard.
 *
 * A guarded tool carries a mark in its definition. The mark comes back with the request that exposes the tool, so that a run
 * is guarded by what its own request says and not by anybody's word; it is taken off before the request is sent.
 */
import type { ToolSet } from "ai";
import * as HostedTools from "../../domain/HostedTools.ts";
import { label } from "../../domain/Limits.ts";
import { serverSideState, type ToolEffect } from "../../domain/SideEffects.ts";
import type { Tool, ToolGuard } from "../../runtime/tools/ToolGuard.ts";
import type { Dispatch } from "./CallRegistry.ts";
import { guardedExecute } from "./Handler.ts";
import { MarkedTool } from "./MarkedTool.ts";
import type { CallOptions, ExposedTool } from "./Spec.ts";

/** What the tools of a set do; one that is not named is `unknown`. */
export interface GuardOptions<T extends ToolSet> {
  readonly effects?: { readonly [K in keyof T]?: ToolEffect };
}

/** The name under which a function tool carries its mark among its provider options. */
const markKey = "effect-stream-recovery";

// By the identity of an object that only `guardTools` makes: a copy of the definition made elsewhere proves nothing.
const marks = new WeakMap<object, MarkedTool>();

/**
 * Wraps the `execute` of every tool.
 *
 * @param tools a set as `streamText` takes it
 * @param options the effects of its tools
 * @param dispatch starts a handler through the guard
 * @returns the same set, of the same type
 */
export const guardTools = <T extends ToolSet>(tools: T, options: GuardOptions<T>, dispatch: Dispatch): T => {
  const guarded = Object.entries(tools).map(([name, tool]) => {
    const effect = options.effects?.[name] ?? "unknown";
    const marked = new MarkedTool(name, effect, tool.execute !== undefined);
    return [name, { ...markedDefinition(tool, marked), ...guardedExecute(tool, marked, dispatch) }] as const;
  });
  // Every tool is itself but for its handler and its mark, which no type of a call is inferred from.
  return Object.fromEntries(guarded) as T;
};

const markedDefinition = (tool: ToolSet[string], marked: MarkedTool): ToolSet[string] => {
  const mark = {};
  marks.set(mark, marked);
  if (tool.type !== "provider") return { ...tool, providerOptions: { ...tool.providerOptions, [markKey]: mark } };
  // The SDK hands on nothing of a provider's tool but its arguments, as they are.
  const args = { ...tool.args };
  marks.set(args, marked);
  return { ...tool, args };
};

/** What a request exposes, and the request without our marks. */
export interface Exposed {
  readonly tools: (guard: ToolGuard["Service"]) => ReadonlyArray<Tool>;
  readonly params: CallOptions;
}

/** Reads what a call exposes: guarded tools by their marks, other functions as unknown, the provider's own by the table. */
export const exposed = (params: CallOptions): Exposed => {
  const given = params.tools ?? [];
  const outside = stateOf(params);
  return {
    tools: (guard) => [...given.flatMap((tool) => boundariesOf(tool, params, guard)), ...outside],
    params: given.some(isMarkedFunction) ? { ...params, tools: given.map(unmarked) } : params,
  };
};

const boundariesOf = (tool: ExposedTool, params: CallOptions, guard: ToolGuard["Service"]): ReadonlyArray<Tool> => {
  const marked = markOf(tool);
  if (tool.type === "function") {
    return [marked?.boundary(guard) ?? { name: label(tool.name), effect: "unknown", executor: "runtime" }];
  }
  return HostedTools.fromRequestTool(wireEntry(tool), keepsContainer(params)).map((hosted) =>
    hosted.executor === "runtime"
      ? (marked?.boundary(guard) ?? { ...hosted, name: label(tool.name) })
      : // What a person declared of a hosted tool wins over the table; the SDK calls it by the name in the set.
        { ...hosted, name: label(tool.name), effect: declared(marked) ?? hosted.effect },
  );
};

/** `unknown` is what nobody has declared. */
const declared = (marked: MarkedTool | undefined): ToolEffect | undefined =>
  marked === undefined || marked.effect === "unknown" ? undefined : marked.effect;

/** A provider's tool as it stands in a request body: `openai.web_search` has the type `web_search`. */
const wireEntry = (tool: Extract<ExposedTool, { readonly type: "provider" }>): unknown => {
  const type = tool.id.slice(tool.id.indexOf(".") + 1);
  const { serverLabel, ...args } = tool.args;
  return { ...args, ...(serverLabel === undefined ? {} : { server_label: serverLabel }), type, name: tool.name };
};

const optionsOf = (params: CallOptions, provider: string): Readonly<Record<string, unknown>> =>
  params.providerOptions?.[provider] ?? {};

const keepsContainer = (params: CallOptions): boolean => {
  const { container } = optionsOf(params, "anthropic");
  return container !== undefined && container !== null;
};

/** What a call exposes beside its tools: hosted MCP servers, and a conversation that the provider keeps. */
const stateOf = (params: CallOptions): ReadonlyArray<Tool> => {
  const { mcpServers } = optionsOf(params, "anthropic");
  const servers = HostedTools.fromRequestTools({ mcp_servers: mcpServers });
  const kept = ["openai", "azure"].some((provider) => {
    const { conversation } = optionsOf(params, provider);
    return typeof conversation === "string" && conversation !== "";
  });
  return kept ? [...servers, serverSideState] : servers;
};

const markOf = (tool: ExposedTool): MarkedTool | undefined => {
  const mark = tool.type === "function" ? tool.providerOptions?.[markKey] : tool.args;
  return mark === undefined ? undefined : marks.get(mark);
};

const isMarkedFunction = (tool: ExposedTool): boolean => tool.type === "function" && markOf(tool) !== undefined;

/** The definition as its caller wrote it, so that the request is the one that the caller's own set would have made. */
const unmarked = (tool: ExposedTool): ExposedTool => {
  if (tool.type !== "function" || !isMarkedFunction(tool)) return tool;
  const { providerOptions, ...rest } = tool;
  const { [markKey]: _mark, ...others } = providerOptions ?? {};
  return Object.keys(others).length === 0 ? rest : { ...rest, providerOptions: others };
};
