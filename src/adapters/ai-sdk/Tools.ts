/**
 * Guards the tools of the AI SDK: their `execute` runs only through ToolGuard.
 *
 * The definition of a guarded tool contains a mark. A request contains the definitions of its tools, so its marks prove which of them are
 * guarded. The marks are removed before the request is sent.
 */
import type { ToolSet } from "ai";
import type { Effect } from "effect";
import * as HostedTools from "../../domain/HostedTools.ts";
import * as Json from "../../domain/Json.ts";
import { label } from "../../domain/Limits.ts";
import { serverSideState, type ToolEffect } from "../../domain/SideEffects.ts";
import type { GuardedTool, ToolGuard } from "../../runtime/tools/ToolGuard.ts";
import { guardExecute } from "./Handler.ts";
import type { CallOptions, ExposedTool } from "./Parts.ts";

/** The effects of a set of tools. A tool without an effect is `unknown`. */
export interface GuardOptions<T extends ToolSet> {
  readonly effects?: { readonly [K in keyof T]?: ToolEffect };
}

/** Starts the handler of one call through the guard. */
export type Dispatch = (
  marked: MarkedTool,
  call: { readonly id: string; readonly input: unknown },
  handler: Effect.Effect<unknown, unknown>,
) => Promise<unknown>;

/** A handler in the form that the guard runs: its input is the effect that executes it. */
export type Started = GuardedTool<Effect.Effect<unknown, unknown>, unknown, unknown, never>;

/** The mark of a tool from `guardTools`: its name and effect, and whether it has a handler. */
export class MarkedTool {
  readonly name: string;
  readonly effect: ToolEffect;
  readonly #executes: boolean;
  #made: { readonly guard: ToolGuard["Service"]; readonly tool: Started } | undefined;

  constructor(name: string, effect: ToolEffect, executes: boolean) {
    this.name = label(name);
    this.effect = effect;
    this.#executes = executes;
  }

  /** Returns the tool as a run knows it: guarded if the guard starts its handler, otherwise only its name and effect. */
  boundary(guard: ToolGuard["Service"]): ToolGuard.Tool {
    return this.#executes ? this.guardWith(guard) : { name: this.name, effect: this.effect, executor: "runtime" };
  }

  /** Returns the guarded tool. It is cached for the last guard. */
  guardWith(guard: ToolGuard["Service"]): Started {
    if (this.#made?.guard === guard) return this.#made.tool;
    const tool = guard.ofEffect(this.effect)(this.name, (start: Effect.Effect<unknown, unknown>) => start);
    this.#made = { guard, tool };
    return tool;
  }
}

/** Key of a function tool's mark among its provider options. */
const markKey = "effect-stream-recovery";

// Only `guardTools` creates the key objects, so a copy of a definition has no mark.
const marks = new WeakMap<object, MarkedTool>();

/**
 * Wraps the `execute` of every tool.
 *
 * @param tools a tool set for `streamText`
 * @param options the effects of the tools
 * @param dispatch starts a handler through the guard
 * @returns the set, of the same type
 */
export const guardTools = <T extends ToolSet>(tools: T, options: GuardOptions<T>, dispatch: Dispatch): T => {
  const guarded = Object.entries(tools).map(([name, tool]) => {
    const effect = Json.own(options.effects ?? {}, name) ?? "unknown";
    const marked = new MarkedTool(name, effect, tool.execute !== undefined);
    const execute = guardExecute(tool, (call, handler) => dispatch(marked, call, handler));
    return [name, { ...markDefinition(tool, marked), ...execute }] as const;
  });
  // Only the handlers and the marks have changed. No type of a call is inferred from them, so the cast is safe.
  return Object.fromEntries(guarded) as T;
};

const markDefinition = (tool: ToolSet[string], marked: MarkedTool): ToolSet[string] => {
  const mark = {};
  marks.set(mark, marked);
  if (tool.type !== "provider") return { ...tool, providerOptions: { ...tool.providerOptions, [markKey]: mark } };
  // For a provider's tool the SDK keeps only the arguments, as the same object, so the object is the mark.
  const args = { ...tool.args };
  marks.set(args, marked);
  return { ...tool, args };
};

/** The tools in a request, and the request without the marks. */
export interface Exposed {
  readonly tools: (guard: ToolGuard["Service"]) => ReadonlyArray<ToolGuard.Tool>;
  readonly params: CallOptions;
}

/**
 * Determines the tools that a call exposes. Marks identify guarded tools, a table identifies the provider's own tools, and all others have
 * unknown effects.
 */
export const readExposed = (params: CallOptions): Exposed => {
  const given = params.tools ?? [];
  const outside = stateOf(params);
  return {
    tools: (guard) => [...given.flatMap((tool) => boundariesOf(tool, params, guard)), ...outside],
    params: given.some(isMarkedFunction) ? { ...params, tools: given.map(withoutMark) } : params,
  };
};

const boundariesOf = (
  tool: ExposedTool,
  params: CallOptions,
  guard: ToolGuard["Service"],
): ReadonlyArray<ToolGuard.Tool> => {
  const marked = markOf(tool);
  if (tool.type === "function") {
    return [marked?.boundary(guard) ?? { name: label(tool.name), effect: "unknown", executor: "runtime" }];
  }
  return HostedTools.fromRequestTool(wireEntry(tool), hasContainer(params)).map((hosted) =>
    hosted.executor === "runtime"
      ? (marked?.boundary(guard) ?? { ...hosted, name: label(tool.name) })
      : // A declared effect overrides the table of hosted tools. The SDK calls the tool by its name in the set.
        { ...hosted, name: label(tool.name), effect: declaredEffect(marked) ?? hosted.effect },
  );
};

/** Returns the declared effect; undefined for `unknown`, which means that no effect was declared. */
const declaredEffect = (marked: MarkedTool | undefined): ToolEffect | undefined =>
  marked === undefined || marked.effect === "unknown" ? undefined : marked.effect;

/** Converts a provider's tool to its form in a request body. For example, `openai.web_search` becomes an entry of type `web_search`. */
const wireEntry = (tool: Extract<ExposedTool, { readonly type: "provider" }>): unknown => {
  const type = tool.id.slice(tool.id.indexOf(".") + 1);
  const { serverLabel, ...args } = tool.args;
  return { ...args, ...(serverLabel === undefined ? {} : { server_label: serverLabel }), type, name: tool.name };
};

const optionsOf = (params: CallOptions, provider: string): Readonly<Record<string, unknown>> =>
  params.providerOptions?.[provider] ?? {};

const hasContainer = (params: CallOptions): boolean => {
  const { container } = optionsOf(params, "anthropic");
  return container !== undefined && container !== null;
};

/** Returns what a call exposes besides its tools: hosted MCP servers, and a conversation that is stored at the provider. */
const stateOf = (params: CallOptions): ReadonlyArray<ToolGuard.Tool> => {
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

/** Restores the definition that the caller passed, so that the request matches the caller's set of tools. */
const withoutMark = (tool: ExposedTool): ExposedTool => {
  if (tool.type !== "function" || !isMarkedFunction(tool)) return tool;
  const { providerOptions, ...rest } = tool;
  const { [markKey]: _mark, ...others } = providerOptions ?? {};
  return Object.keys(others).length === 0 ? rest : { ...rest, providerOptions: others };
};
