/**
 * Looks up what is declared of a tool by its name: by the request first, then by the table of hosted tools.
 */
import { higher } from "../domain/Attempt.ts";
import * as HostedTools from "../domain/HostedTools.ts";
import { label } from "../domain/Limits.ts";
import { type Executor, type ToolBoundary, ToolEffect } from "../domain/SideEffects.ts";

/** The declared boundaries of one attempt. A name that is declared twice has the higher effect of the two. */
export class Boundaries {
  readonly #declared: ReadonlyArray<ToolBoundary>;
  readonly #runtime = new Map<string, ToolEffect>();
  readonly #provider = new Map<string, ToolEffect>();

  constructor(boundaries: ReadonlyArray<ToolBoundary>) {
    this.#declared = boundaries;
    for (const { name, executor, effect } of boundaries) {
      const declared = executor === "runtime" ? this.#runtime : this.#provider;
      const known = declared.get(label(name));
      declared.set(label(name), known === undefined ? effect : higher(ToolEffect, known, effect));
    }
  }

  /** Whether the request declares a runtime tool of that name. */
  declares(name: string): boolean {
    return this.#runtime.has(name);
  }

  /** The declared effect; for a tool that the provider runs also that of the hosted tool; else unknown. */
  effectOf(executor: Executor, name: string): ToolEffect {
    if (executor === "runtime") return this.#runtime.get(name) ?? "unknown";
    return this.#provider.get(name) ?? HostedTools.effectOf(name, this.#declared);
  }
}
