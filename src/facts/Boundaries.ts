/**
 * Looks up a tool's effect by its name: in the request's declaration first, then in the table of hosted tools.
 */
import { higher } from "../domain/AttemptFacts.ts";
import * as HostedTools from "../domain/HostedTools.ts";
import { label } from "../domain/Limits.ts";
import { type Executor, type ToolBoundary, ToolEffect } from "../domain/SideEffects.ts";

/** Declared boundaries of one attempt. If a name is declared twice, the higher of its two effects applies. */
export class Boundaries {
  readonly #declared: ReadonlyArray<ToolBoundary>;
  readonly #runtime: ReadonlyMap<string, ToolEffect>;
  readonly #provider: ReadonlyMap<string, ToolEffect>;

  constructor(boundaries: ReadonlyArray<ToolBoundary>) {
    this.#declared = boundaries;
    this.#runtime = effects(boundaries, "runtime");
    this.#provider = effects(boundaries, "provider");
  }

  /** Returns true if the request declares a runtime tool of that name. */
  isDeclared(name: string): boolean {
    return this.#runtime.has(name);
  }

  /** Returns the declared effect; else, for a tool that the provider runs, the effect of the hosted tool; else unknown. */
  effectOf(executor: Executor, name: string): ToolEffect {
    if (executor === "runtime") return this.#runtime.get(name) ?? "unknown";
    return this.#provider.get(name) ?? HostedTools.effectOf(name, this.#declared);
  }
}

/** Shared by all attempts without such tools, because a separate map would take up nearly all memory of an idle attempt. */
const nothingDeclared: ReadonlyMap<string, ToolEffect> = new Map();

const effects = (boundaries: ReadonlyArray<ToolBoundary>, executor: Executor): ReadonlyMap<string, ToolEffect> => {
  const own = boundaries.filter((boundary) => boundary.executor === executor);
  if (own.length === 0) return nothingDeclared;
  const declared = new Map<string, ToolEffect>();
  for (const { name, effect } of own) {
    const known = declared.get(label(name));
    declared.set(label(name), known === undefined ? effect : higher(ToolEffect, known, effect));
  }
  return declared;
};
