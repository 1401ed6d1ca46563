/**
 * Plays the tools of a cell: handlers that record their input and settle, hang or die as the cell says.
 */
import { Effect, FiberSet, type Scope } from "effect";
import type { Part } from "../../src/provider/Protocols.ts";
import type { ReadyCall } from "../../src/runtime/contract/ToolCall.ts";
import { ToolGuard } from "../../src/runtime/tools/ToolGuard.ts";
import type { FaultProvider } from "../../src/testing/index.ts";
import { type Cell, toolName } from "./Cell.ts";
import type { Gate } from "./Gate.ts";

/** A call as a caller runs it: from a `Part` event, or read from a plain part. */
export type Call = Pick<ReadyCall, "run_id" | "attempt" | "call" | "input">;

export interface Handlers {
  /** The tools that the run exposes. */
  readonly exposed: ReadonlyArray<ToolGuard.Tool>;
  /** The inputs with which handlers ran, in order. */
  readonly inputs: ReadonlyArray<string>;
  readonly handed: (calls: ReadonlyArray<Call>) => Effect.Effect<void>;
  /** Called when the run has completed: runs the postponed calls, or waits for the running ones. */
  readonly completed: (calls: ReadonlyArray<Call>) => Effect.Effect<void>;
}

/** Builds the tools of a cell. A handler that still hangs at the end of the scope is interrupted. */
export const make = Effect.fnUntraced(function* (
  cell: Cell,
  server: FaultProvider["Service"],
  gate: Gate,
): Effect.fn.Return<Handlers, never, ToolGuard | Scope.Scope> {
  const guard = yield* ToolGuard;
  const { hosted, runtime } = cell.tools;
  const inputs: Array<string> = [];
  const work = handler(cell, server, gate, inputs);
  const makers = { read_only: guard.readOnly, mutating: guard.mutating, unknown: guard.unknown };
  const guarded = runtime?.guarded === true ? makers[runtime.effect](toolName, work) : undefined;
  const running = yield* FiberSet.make<void>();
  const run = (call: Call): Effect.Effect<void> =>
    guarded === undefined
      ? work(call.input ?? "")
      : guarded.run(call, call.input ?? "").pipe(
          Effect.tap(() => Effect.sync(() => gate.tool("settled"))),
          // A refused call has not run, and a dying handler is intended by the cell.
          Effect.catchCause((cause) => Effect.logDebug("a call did not settle", cause.reasons.length)),
        );
  const runAll = (calls: ReadonlyArray<Call>) => Effect.forEach(calls, run, { discard: true });
  const exposed: Array<ToolGuard.Tool> = [];
  if (guarded !== undefined) exposed.push(guarded);
  else if (runtime !== undefined) exposed.push({ name: toolName, executor: "runtime", effect: runtime.effect });
  if (hosted !== undefined) exposed.push({ name: hosted.name, executor: "provider", effect: hosted.effect });
  return {
    exposed,
    inputs,
    handed: (calls) => {
      if (runtime === undefined || runtime.handling === "at_end" || calls.length === 0) return Effect.void;
      if (runtime.handling === "at_once") return runAll(calls);
      return Effect.asVoid(FiberSet.run(running, runAll(calls)));
    },
    completed: (calls) =>
      runtime?.handling === "at_end"
        ? runAll(calls)
        : // The hanging ones of the first request never end.
          runtime?.handling === "hanging"
          ? Effect.void
          : FiberSet.awaitEmpty(running),
  };
});

/** Only a call of the first request can hang or die: calls of a retry run normally. */
const handler =
  (cell: Cell, server: FaultProvider["Service"], gate: Gate, inputs: Array<string>) =>
  (input: string): Effect.Effect<void> =>
    Effect.suspend(() => {
      inputs.push(input);
      if (!input.includes('"r1.t')) return Effect.void;
      gate.tool("started");
      switch (cell.tools.runtime?.handling) {
        case "running":
          return Effect.andThen(server.ended(1), gate.over);
        case "hanging":
          return Effect.never;
        case "dying":
          return Effect.die("the handler died");
        default:
          return Effect.void;
      }
    });

/** The whole calls of a plain part, for callers that get no `ReadyCall`. */
export const callsIn = (part: Part, run_id: string, attempt: number): ReadonlyArray<Call> =>
  part.observation.calls
    .filter((signal) => signal.phase === "ready" && signal.executor === "runtime")
    .map((signal) => ({ run_id, attempt, call: `${signal.choice}.${signal.ordinal}`, input: signal.input }));
