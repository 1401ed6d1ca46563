/**
 * Holds what is declared of one AI SDK tool, and its handler's place behind the guard.
 */
import type { Effect } from "effect";
import { label } from "../../domain/Limits.ts";
import type { ToolEffect } from "../../domain/SideEffects.ts";
import type { GuardedTool, Tool, ToolGuard } from "../../runtime/tools/ToolGuard.ts";

/** A handler as the guard sees it: started by the effect that it is given. */
export type Started = GuardedTool<Effect.Effect<unknown, unknown>, unknown, unknown, never>;

/** A tool that came through `guardTools`. */
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

  /** The boundary of the tool: proven where its handler is ours to start. */
  boundary(guard: ToolGuard["Service"]): Tool {
    return this.#executes ? this.guarded(guard) : { name: this.name, effect: this.effect, executor: "runtime" };
  }

  /** The guarded tool, one for each guard. */
  guarded(guard: ToolGuard["Service"]): Started {
    if (this.#made?.guard === guard) return this.#made.tool;
    const handler = (start: Effect.Effect<unknown, unknown>) => start;
    const tool =
      this.effect === "read_only"
        ? guard.readOnly(this.name, handler)
        : this.effect === "mutating"
          ? guard.mutating(this.name, handler)
          : guard.unknown(this.name, handler);
    this.#made = { guard, tool };
    return tool;
  }
}
