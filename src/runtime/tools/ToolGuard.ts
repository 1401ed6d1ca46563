/**
 * Wraps tool handlers so that no call of a superseded attempt starts and no call starts twice.
 *
 * A guarded tool is the only proof of `guarded`: the processor knows the tools that were made here, and believes no
 * declaration. A dispatch is on record before its handler starts, its outcome before it is returned (L8).
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
 * A call was not started. `superseded`: its attempt was given up; what it would do is asked for again or not at all.
 * `already_dispatched`: this call, or an unsettled one with the same provider id, has started before. `unknown_call`: no
 * such call was handed over, or too many of its response were before it. `another_tool`: the call is another tool's, and its
 * handler is not this one. `unknown_run`: no such run is live, or it is too old. `not_recorded`: the dispatch could not
 * be recorded, so it may not happen.
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
   * @param call which call; each runs at most once
   * @param input passed on to the handler
   * @returns what the handler returns. An interrupted or dying handler leaves the call's outcome unknown; a typed failure is an outcome.
   */
  readonly run: (call: CallReference, input: I) => Effect.Effect<A, E | ToolRefused, R>;
}

/** What a guarded tool may have beside its handler. */
export interface ToolOptions {
  /** Asked before a person is. Its word settles the call as the person's would. */
  readonly verify?: ToolGuard.Verify;
}

/** Runs whose ledgers are kept for tools that run after their stream has ended; the oldest ended run goes first. */
export const ledgersMax = 1_024;

type Handler<I, A, E, R> = (input: I) => Effect.Effect<A, E, R>;

/** Makes a guarded tool of one effect. */
type MakeTool = <I, A, E, R>(
  name: string,
  handler: Handler<I, A, E, R>,
  options?: ToolOptions,
) => GuardedTool<I, A, E, R>;

/** A tool's `verify`, by the tool's name on record. */
interface Verifier {
  readonly tool: string;
  readonly verify: ToolGuard.Verify;
}

/** Makes guarded tools. */
export class ToolGuard extends Context.Service<
  ToolGuard,
  {
    /** A tool that changes nothing: it may run again. */
    readonly readOnly: MakeTool;
    /** A tool that changes something. */
    readonly mutating: MakeTool;
    /** A tool of unknown effect: treated as mutating, counted apart. */
    readonly unknown: MakeTool;
    /** Makes tools of one effect, where the effect is data: the same as the three above. */
    readonly ofEffect: (effect: ToolEffect) => MakeTool;
    /** Whether a tool was made by this guard. */
    readonly made: (tool: ToolGuard.Tool) => boolean;
    /** @internal How a tool of this guard says whether a call happened. */
    readonly verifierOf: (tool: ToolGuard.Tool) => Verifier | undefined;
    /** @internal The processor's side: makes a run's calls known. */
    readonly enrol: (runId: string, ledger: ToolLedger) => void;
    /** @internal Whether calls of a run of this id are known. */
    readonly knows: (runId: string) => boolean;
    /** @internal Forgets an ended run that handed over no call. */
    readonly release: (runId: string) => void;
  }
>()("effect-stream-recovery/ToolGuard") {
  static readonly layer = Layer.sync(ToolGuard, () => makeGuard());
}

/** Its types stand in the namespace of the same name. */
export declare namespace ToolGuard {
  /** A tool as `run` takes it: guarded, or a plain boundary that proves nothing. */
  export type Tool = ToolBoundary;

  /** A call of unknown outcome, as its tool is asked about it. */
  export interface UnknownCall {
    readonly run_id: string;
    readonly attempt: number;
    readonly call: string;
    /** The provider's own id: empty, `0` or repeated with some providers. */
    readonly id: string;
    readonly tool: string;
  }

  /**
   * Says whether a call happened whose handler was interrupted, died, or went down with its process: `unknown` when that
   * cannot be told, and a person is asked. It must not do the call.
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
    enrol: (runId, ledger) => {
      ledgers.set(runId, ledger);
      if (ledgers.size > ledgersMax) forgetOldestEnded(ledgers);
    },
    knows: (runId) => ledgers.has(runId),
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
  if (ledger === undefined) return Effect.fail(refused("unknown_run", tool));
  return Effect.uninterruptibleMask((restore) =>
    Effect.gen(function* () {
      const found = ledger.find(call);
      if (found === undefined) return yield* refused("unknown_call", tool);
      // A call without a name may be any tool's. A named one starts its own tool and no other.
      if (found.tool !== "" && found.tool !== label(tool)) return yield* refused("another_tool", tool);
      const entered = yield* restore(ledger.enter(found, tool, !("call" in call)));
      if (typeof entered === "string") return yield* refused(entered, tool);
      const recorded = yield* Effect.onInterrupt(restore(entered.recordDispatch), () => Effect.sync(entered.leave));
      if (recorded !== "recorded") {
        entered.leave();
        return yield* refused(recorded, tool);
      }
      const exit = yield* Effect.exit(restore(entered.stoppable(Effect.suspend(() => handler(input)))));
      yield* entered.recordOutcome(outcomeOf(exit));
      return yield* exit;
    }),
  );
};

/** A typed failure is an outcome. An interrupt or a defect in the middle of a handler proves nothing. */
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
  superseded: "its attempt was given up, so it did not start",
  already_dispatched: "the call, or an unsettled one with the same id, has been started before",
  unknown_call: "no such call was handed over",
  another_tool: "the call is another tool's",
  unknown_run: "no such run is known",
  not_recorded: "the dispatch could not be recorded, so it did not start",
} as const;

const refused = (reason: keyof typeof sentences, tool: string) =>
  new ToolRefused({ reason, tool, message: `${tool}: ${sentences[reason]}` });
