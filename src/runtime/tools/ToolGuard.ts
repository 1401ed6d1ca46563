/**
 * Wraps tool handlers so that no call of a superseded attempt starts and no call starts twice.
 *
 * Only tools made here count as `guarded`, because the processor trusts no declaration. A dispatch is on record before its handler starts,
 * and its outcome before it is returned (L8).
 */
import * as Cause from "effect/Cause";
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Layer from "effect/Layer";
import * as Schema from "effect/Schema";
import { label } from "../../domain/Limits.ts";
import type { ToolBoundary, ToolEffect } from "../../domain/SideEffects.ts";
import { Roster } from "../contract/Roster.ts";
import type { CallReference } from "../contract/ToolCall.ts";
import type { ToolLedger } from "./ToolLedger.ts";

/**
 * A call was not started.
 *
 * - `superseded`: its attempt was abandoned. A later attempt may contain a new call for the same work.
 * - `already_dispatched`: this call has started before, or an unsettled call with the same provider id has.
 * - `unknown_call`: no such call was handed over, or its response had too many calls before it.
 * - `another_tool`: the call belongs to a different tool.
 * - `unknown_run`: no such run is live, or its calls are no longer kept (`ledgersMax`).
 * - `not_recorded`: the dispatch could not be recorded, so the call must not start.
 */
export class ToolRefused extends Schema.TaggedError<ToolRefused>()("ToolRefused", {
  reason: Schema.Literals([
    "superseded",
    "already_dispatched",
    "unknown_call",
    "another_tool",
    "unknown_run",
    "not_recorded",
  ]),
  tool: Schema.String,
  message: Schema.String,
}) {}

/** A tool whose handler can only be reached through the fence. */
export interface GuardedTool<I, A, E, R> extends ToolBoundary {
  readonly executor: "runtime";
  /**
   * Runs the handler for one call.
   *
   * @param call the call to run; each runs at most once
   * @param input passed on to the handler
   * @returns the handler's result. A typed failure is an outcome too; an interrupted or dying handler leaves the outcome unknown.
   */
  readonly run: (call: CallReference, input: I) => Effect.Effect<A, E | ToolRefused, R>;
}

/** Optional abilities of a guarded tool. */
export interface ToolOptions {
  /** Reports whether a call ran. It is called before a person is asked, and its verdict settles the call like a person's answer. */
  readonly verify?: ToolGuard.Verify;
}

/** Maximum ledgers kept for tools that run after their stream has ended. The ledger that ended first is evicted first. */
export const ledgersMax = 1_024;

type Handler<I, A, E, R> = (input: I) => Effect.Effect<A, E, R>;

/** Creates a guarded tool with a fixed effect. */
type MakeTool = <I, A, E, R>(
  name: string,
  handler: Handler<I, A, E, R>,
  options?: ToolOptions,
) => GuardedTool<I, A, E, R>;

/** The `verify` of a tool, and the name of the tool on record. */
interface Verifier {
  readonly tool: string;
  readonly verify: ToolGuard.Verify;
}

/** Creates guarded tools. */
export class ToolGuard extends Context.Service<
  ToolGuard,
  {
    /** Creates a tool that changes nothing, so it may run again. */
    readonly readOnly: MakeTool;
    /** Creates a tool that changes something. */
    readonly mutating: MakeTool;
    /** Creates a tool of unknown effect. The tool is treated as mutating but counted separately. */
    readonly unknown: MakeTool;
    /** Creates tools of a given effect, for callers that have the effect as data. Equivalent to the three fields above. */
    readonly ofEffect: (effect: ToolEffect) => MakeTool;
    /** Returns true if this guard created the tool. */
    readonly made: (tool: ToolGuard.Tool) => boolean;
    /** @internal Returns the `verify` of a tool of this guard. */
    readonly verifierOf: (tool: ToolGuard.Tool) => Verifier | undefined;
    /** @internal Registers the ledger of a run, for the processor. */
    readonly registerLedger: (runId: string, ledger: ToolLedger) => void;
    /** @internal Returns true if the run has a ledger here. */
    readonly hasLedger: (runId: string) => boolean;
    /** @internal Forgets an ended run that handed over no call. */
    readonly release: (runId: string) => void;
  }
>()("effect-stream-recovery/ToolGuard") {
  static readonly layer = Layer.sync(ToolGuard, () => makeGuard());
}

/** Types of the service. */
export declare namespace ToolGuard {
  /** A tool as `run` accepts it: guarded, or a plain boundary that only declares its effect. */
  export type Tool = ToolBoundary;

  /** A call of unknown outcome, as passed to its tool's `verify`. */
  export interface UnknownCall {
    readonly run_id: string;
    readonly attempt: number;
    readonly call: string;
    /** The provider's own id. Some providers send it empty, as `0` or repeated. */
    readonly id: string;
    readonly tool: string;
  }

  /**
   * Reports whether a call ran. Called if its handler was interrupted, threw, or died with its process. It must not make the call itself.
   * After `unknown`, a person is asked.
   */
  export type Verify = (call: UnknownCall) => Effect.Effect<"it_ran" | "it_did_not_run" | "unknown", unknown>;
}

const makeGuard = (): ToolGuard["Service"] => {
  const ledgers = new Roster<string, ToolLedger>();
  const tools = new WeakMap<ToolBoundary, Verifier | undefined>();

  const make =
    (effect: ToolEffect): MakeTool =>
    <I, A, E, R>(name: string, handler: Handler<I, A, E, R>, options?: ToolOptions) => {
      const tool: GuardedTool<I, A, E, R> = Object.freeze({
        name,
        effect,
        executor: "runtime" as const,
        run: (call: CallReference, input: I) =>
          Effect.suspend(() => dispatch(ledgers.get(call.run_id), name, call, handler, input)),
      });
      const verify = options?.verify;
      tools.set(tool, verify === undefined ? undefined : { tool: label(name), verify });
      return tool;
    };

  return ToolGuard.of({
    readOnly: make("read_only"),
    mutating: make("mutating"),
    unknown: make("unknown"),
    ofEffect: make,
    made: (tool) => tools.has(tool),
    verifierOf: (tool) => tools.get(tool),
    registerLedger: (runId, ledger) => {
      ledgers.set(runId, ledger);
      if (ledgers.size > ledgersMax) forgetOldestEnded(ledgers);
    },
    hasLedger: (runId) => ledgers.has(runId),
    release: (runId) => {
      if (ledgers.get(runId)?.isEmpty === true) ledgers.delete(runId);
    },
  });
};

const dispatch = <I, A, E, R>(
  ledger: ToolLedger | undefined,
  tool: string,
  call: CallReference,
  handler: Handler<I, A, E, R>,
  input: I,
): Effect.Effect<A, E | ToolRefused, R> => {
  if (ledger === undefined) return Effect.fail(refusedError("unknown_run", tool));
  return Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const found = ledger.find(call);
      if (found === undefined) return yield* refusedError("unknown_call", tool);
      // A call without a name may belong to any tool. A named call may only start its own tool.
      if (found.tool !== "" && found.tool !== label(tool)) return yield* refusedError("another_tool", tool);
      const entered = yield* restore(ledger.enter(found, tool, !("call" in call)));
      if (typeof entered === "string") return yield* refusedError(entered, tool);
      const recorded = yield* Effect.onInterrupt(restore(entered.recordDispatch), () => Effect.sync(entered.revert));
      if (recorded !== "recorded") {
        entered.revert();
        return yield* refusedError(recorded, tool);
      }
      const exit = yield* Effect.exit(restore(entered.withStop(Effect.suspend(() => handler(input)))));
      yield* entered.recordOutcome(outcomeOf(exit));
      return yield* exit;
    }),
  );
};

/** A typed failure is an outcome. An interrupt or a defect within a handler leaves the outcome unknown. */
const outcomeOf = <A, E>(exit: Exit.Exit<A, E>): "settled" | "outcome_unknown" =>
  Exit.isSuccess(exit) || (Cause.hasFails(exit.cause) && !Cause.hasInterrupts(exit.cause) && !Cause.hasDies(exit.cause))
    ? "settled"
    : "outcome_unknown";

const forgetOldestEnded = (ledgers: Roster<string, ToolLedger>): void => {
  for (const [id, ledger] of ledgers.entries()) {
    if (ledger.ended) {
      ledgers.delete(id);
      return;
    }
  }
};

const sentences = {
  superseded: "its attempt was abandoned, so it did not start",
  already_dispatched: "this call, or an unsettled call with the same id, has already started",
  unknown_call: "no such call was handed over",
  another_tool: "the call belongs to another tool",
  unknown_run: "the run is unknown",
  not_recorded: "the dispatch could not be recorded, so it did not start",
} as const;

const refusedError = (reason: keyof typeof sentences, tool: string) =>
  new ToolRefused({ reason, tool, message: `${tool}: ${sentences[reason]}` });
