/** Describes the side effects that a request may have. The tools that it exposes are counted before the attempt starts. */
import * as Schema from "effect/Schema";

/** Effect of running a tool, from harmless to unknown, in growing order. */
export const ToolEffect = Schema.Literals(["read_only", "mutating", "unknown"]);
export type ToolEffect = typeof ToolEffect.Type;

/** The side that runs a tool: the agent runtime, or the provider on its own servers. */
export const Executor = Schema.Literals(["runtime", "provider"]);
export type Executor = typeof Executor.Type;

/** A caller's declaration of one tool that its request exposes. */
export interface ToolBoundary {
  readonly name: string;
  readonly executor: Executor;
  readonly effect: ToolEffect;
}

const Counts = Schema.Struct({ read_only: Schema.Natural, mutating: Schema.Natural, unknown: Schema.Natural });
/** Number of tools by effect. */
export type Counts = typeof Counts.Type;

/**
 * Side-effect boundary of one attempt. `guarded` proves that ToolGuard made every runtime tool; `complete` means that every exposed tool is
 * classified. It holds only counts and enums, no names.
 */
export const SideEffects = Schema.Struct({
  guarded: Schema.Boolean,
  complete: Schema.Boolean,
  reason: Schema.Literals(["all_classified", "unclassified_tools", "provider_tools"]),
  runtime: Counts,
  provider: Counts,
});
export type SideEffects = typeof SideEffects.Type;

const none: Counts = { read_only: 0, mutating: 0, unknown: 0 };

/** Snapshot of a request without tools. It proves nothing about tools that were not counted, so it is not guarded. */
export const empty: SideEffects = {
  guarded: false,
  complete: true,
  reason: "all_classified",
  runtime: none,
  provider: none,
};

/**
 * Counts the tools that a request exposes.
 *
 * @param tools exactly the tools that the provider is given, after permission filters
 * @param guarded true if ToolGuard made every runtime tool among them
 */
export const snapshot = (tools: ReadonlyArray<ToolBoundary>, guarded: boolean): SideEffects => {
  if (tools.length === 0 && !guarded) return empty;
  const runtime = { read_only: 0, mutating: 0, unknown: 0 };
  const provider = { read_only: 0, mutating: 0, unknown: 0 };
  for (const tool of tools) (tool.executor === "runtime" ? runtime : provider)[tool.effect] += 1;
  const reason =
    provider.mutating + provider.unknown > 0
      ? "provider_tools"
      : runtime.unknown > 0
        ? "unclassified_tools"
        : "all_classified";
  return { guarded, complete: reason === "all_classified", reason, runtime, provider };
};

/**
 * State that a request stores at the provider (a server-side conversation, `store: true` with a thread). It counts as one
 * mutating provider tool, because repeating the request would append to it twice.
 */
export const serverSideState: ToolBoundary = {
  name: "server_side_state",
  executor: "provider",
  effect: "mutating",
};

/** Returns the boundary of an attempt after its provider has begun to keep server-side state. */
export const withState = (exposed: SideEffects | null): SideEffects | null =>
  exposed === null
    ? null
    : {
        ...exposed,
        complete: false,
        reason: "provider_tools",
        provider: { ...exposed.provider, mutating: exposed.provider.mutating + 1 },
      };
