/**
 * Plays the tools of a scenario, guarded or not, and a runtime that runs them inline, in the background or after the stream.
 */
import { Effect, Exit } from "effect";
import type { ToolEffect } from "../../../src/domain/SideEffects.ts";
import type { CallReference } from "../../../src/runtime/contract/ToolCall.ts";
import { type GuardedTool, type ToolGuard, ToolRefused } from "../../../src/runtime/tools/ToolGuard.ts";
import type { Calm } from "../Calm.ts";
import type { HandlerCall, Journal, Part } from "../Journal.ts";
import type { Scenario, ToolSpec } from "../Scenario.ts";
import { pause } from "./VirtualTime.ts";

/** Id of the run in every simulation. */
export const runId = "simulated";

/** A typed failure of a handler, which is a normal outcome. */
class ToolBroke {
  readonly _tag = "ToolBroke";
}

type Guarded = GuardedTool<HandlerCall, void, ToolBroke, never>;

export class Tools {
  readonly #scenario: Scenario;
  readonly #journal: Journal;
  readonly #calm: Calm;
  readonly #guarded = new Map<string, Guarded>();
  /** The tools that `run` gets. */
  readonly boundaries: ReadonlyArray<ToolGuard.Tool>;
  /** Whole calls that were handed over and wait for the end of the stream. */
  #waiting: Array<HandlerCall & { readonly id: string }> = [];
  #handedOut = new Map<string, number>();

  constructor(scenario: Scenario, journal: Journal, guard: ToolGuard["Service"], calm: Calm) {
    this.#scenario = scenario;
    this.#journal = journal;
    this.#calm = calm;
    this.boundaries = scenario.tools.map((spec): ToolGuard.Tool => {
      if (!spec.guarded || spec.executor === "provider") return spec;
      const make = { read_only: guard.readOnly, mutating: guard.mutating, unknown: guard.unknown }[spec.effect];
      const tool: Guarded = make(spec.name, (call: HandlerCall) => this.#handle(spec, call));
      this.#guarded.set(spec.name, tool);
      return tool;
    });
  }

  /** Uses the calls of a part that was handed over, as the scenario's runtime does. */
  readonly handed = (part: Part): Effect.Effect<void> => {
    const { when } = this.#scenario.toolUse;
    const calls = this.#callsOf(part);
    if (when === "after") {
      this.#waiting.push(...calls);
      return Effect.void;
    }
    return Effect.forEach(calls, (call) => (when === "inline" ? this.#use(call) : Effect.forkDetach(this.#use(call))), {
      discard: true,
    });
  };

  /** Runs the postponed calls after the stream. A sane caller runs no unguarded call that was withdrawn. */
  readonly afterwards = (withdrawn: ReadonlySet<number>): Effect.Effect<void> => {
    const calls = this.#waiting.filter((call) => call.guarded || !withdrawn.has(call.attempt));
    this.#waiting = [];
    return Effect.forEach(calls, (call) => Effect.forkDetach(this.#use(call)), { discard: true });
  };

  #callsOf(part: Part): ReadonlyArray<HandlerCall & { readonly id: string }> {
    return part.says.calls.flatMap((signal) => {
      if (signal.phase !== "ready" || signal.executor !== "runtime") return [];
      const tool = signal.tool ?? "";
      const id = signal.id ?? "";
      const seen = (this.#handedOut.get(id) ?? 0) + 1;
      this.#handedOut.set(id, seen);
      const effect: ToolEffect = this.#scenario.tools.find(({ name }) => name === tool)?.effect ?? "unknown";
      const guarded = this.#guarded.has(tool);
      const call = `${signal.choice}.${signal.ordinal}`;
      return [{ tool, guarded, effect, attempt: part.attempt, call, id, vague: false }];
    });
  }

  #use(call: HandlerCall & { readonly id: string }): Effect.Effect<void> {
    const { delay, twice } = this.#scenario.toolUse;
    // Plain parts have no references.
    const byId = this.#scenario.toolUse.byId || this.#scenario.surface === "parts";
    const once = Effect.andThen(
      pause(delay),
      Effect.suspend(() => this.#run(call, byId)),
    );
    // With only an id, a second try could mean another call with the same id, which no runtime does.
    return twice && call.guarded && !byId ? Effect.all([once, once], { concurrency: 2, discard: true }) : once;
  }

  #run(call: HandlerCall & { readonly id: string }, byId: boolean): Effect.Effect<void> {
    const guarded = this.#guarded.get(call.tool);
    const vague = byId && (this.#handedOut.get(call.id) ?? 0) > 1;
    const named: HandlerCall = { ...call, vague };
    const reference: CallReference = byId
      ? { run_id: runId, id: call.id }
      : { run_id: runId, attempt: call.attempt, call: call.call };
    const spec = this.#scenario.tools.find(({ name }) => name === call.tool) ?? mystery(call.tool);
    const run: Effect.Effect<void, ToolBroke | ToolRefused> =
      guarded === undefined ? this.#handle(spec, named) : guarded.run(reference, named);
    const logged = Effect.onExit(run, (exit) =>
      Effect.sync(() => this.#journal.add({ what: "tool_returned", call: named, refused: refusal(exit) })),
    );
    return Effect.asVoid(Effect.exit(logged));
  }

  #handle(spec: ToolSpec, call: HandlerCall): Effect.Effect<void, ToolBroke> {
    return Effect.suspend(() => {
      this.#journal.add({ what: "handler_started", call });
      switch (spec.handler) {
        case "fast":
          return Effect.void;
        case "slow":
          return this.#calm.pause(spec.ms);
        case "failing":
          return Effect.andThen(this.#calm.pause(spec.ms), Effect.fail(new ToolBroke()));
        case "dying":
          return Effect.andThen(this.#calm.pause(spec.ms), Effect.die(new Error("the handler died")));
        case "hanging":
          return this.#calm.forever;
      }
    });
  }
}

/** A tool that the model made up, although some runtimes may have one of that name. */
const mystery = (name: string): ToolSpec => ({
  name,
  executor: "runtime",
  effect: "unknown",
  guarded: false,
  handler: "fast",
  ms: 0,
});

const refusal = (exit: Exit.Exit<void, ToolBroke | ToolRefused>): string | undefined => {
  if (Exit.isSuccess(exit)) return undefined;
  for (const reason of exit.cause.reasons) {
    if (reason._tag === "Fail" && reason.error instanceof ToolRefused) return reason.error.reason;
  }
  return undefined;
};
