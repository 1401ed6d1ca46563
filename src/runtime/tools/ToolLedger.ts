/**
 * Ties the calls of one run to their attempts: resolves references to calls, decides which calls may start, and tracks their outcomes.
 *
 * A call's key is (run, attempt, choice, ordinal). Provider ids are only labels, because they may be empty, `0`, or the same in every turn.
 * So an id refers to a call in the newest attempt that used the id, and is refused while another call with that id is unsettled.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import { callKey } from "../../domain/AttemptFacts.ts";
import { callsMax, label } from "../../domain/Limits.ts";
import type { CallSignal } from "../../domain/Observation.ts";
import type { ToolEffect } from "../../domain/SideEffects.ts";
import type { FactsFold } from "../../facts/Facts.ts";
import { foldKey, isFolded } from "../../facts/ToolRows.ts";
import type { CallVerdict } from "../../recorder/RunRecord.ts";
import type { CallReference, ReadyCall, SettledCall } from "../contract/ToolCall.ts";
import type { Fence } from "./Fence.ts";

/** Identifies a complete call on record. */
export type NamedCall = Pick<ReadyCall, "call" | "id" | "tool">;

/** Returns the runtime calls that these signals complete. */
export const completedCalls = (
  signals: ReadonlyArray<CallSignal>,
): ReadonlyArray<NamedCall & { readonly input?: string }> =>
  signals
    .filter((signal) => signal.phase === "ready" && signal.executor === "runtime")
    .map(({ choice, id, input, ordinal, tool }) => ({
      call: callKey(choice, ordinal),
      id: label(id ?? ""),
      tool: label(tool ?? ""),
      ...(input === undefined ? {} : { input }),
    }));

/** The parts of an attempt that the ledger uses. */
export interface LedgerAttempt {
  /** Number of the attempt within the run, from 1. */
  readonly number: number;
  readonly fence: Fence;
  readonly facts: FactsFold;
  /** `onToolStart` and `onToolEnd` enclose a handler, so that the attempt's clocks pause while it runs. */
  readonly onToolStart: () => void;
  readonly onToolEnd: () => void;
}

/** The parts of a run that the ledger uses. */
export interface LedgerRun {
  /** Returns true if calls of this tool can only start through the guard. */
  readonly isGuarded: (tool: string) => boolean;
  /** Commits the attempt's facts, or keeps them until the store is available again. */
  readonly recordFacts: (attempt: LedgerAttempt) => Effect.Effect<unknown>;
  /** Commits the attempt's facts before a handler starts, waiting for a store that is unavailable. Returns true if they are on record. */
  readonly recordDispatch: (attempt: LedgerAttempt) => Effect.Effect<boolean>;
  /** Called when a call settles after its attempt was decided, or when its outcome stays unknown. */
  readonly onLateSettle: (attempt: LedgerAttempt) => Effect.Effect<void>;
}

/** A complete call that was handed over. */
interface LedgerCall {
  readonly owner: LedgerAttempt;
  readonly key: string;
  readonly id: string;
  readonly tool: string;
  /** Ordinal of the part that completed the call. */
  readonly ordinal: number;
  state: "handed_over" | "dispatched" | "settled" | "outcome_unknown";
  verdict?: CallVerdict;
}

/** A runtime call of unknown outcome. */
export interface OpenCall extends NamedCall {
  readonly owner: LedgerAttempt;
  readonly effect: ToolEffect;
}

/** A call that passed the fence. */
export interface Entered {
  readonly recordDispatch: Effect.Effect<"recorded" | "not_recorded" | "superseded">;
  /** Reverts the entry, because the handler will not start. */
  readonly revert: () => void;
  /** Runs the handler, and interrupts it if the user cancels the run. */
  readonly withStop: <A, E, R>(handler: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>;
  readonly recordOutcome: (outcome: "settled" | "outcome_unknown") => Effect.Effect<void>;
}

/** Shared by all runs without calls. */
const none: ReadonlyArray<LedgerCall> = [];

/** The calls of one run. */
export class ToolLedger {
  readonly #run: LedgerRun;
  /** Created with the first call, because few runs have any. */
  #kept: Array<LedgerCall> | undefined;
  /** The attempt that is handing over calls. `#newestCalls` counts them, because `callsMax` applies per response. */
  #newest: LedgerAttempt | undefined;
  #newestCalls = 0;
  /** Created with the first handler or by the user's cancel. */
  #stop: Deferred.Deferred<void> | undefined;
  ended = false;

  constructor(run: LedgerRun) {
    this.#run = run;
  }

  get #calls(): ReadonlyArray<LedgerCall> {
    return this.#kept ?? none;
  }

  #keep(call: LedgerCall): void {
    this.#kept ??= [];
    this.#kept.push(call);
  }

  get #stopSignal(): Deferred.Deferred<void> {
    this.#stop ??= Deferred.makeUnsafe<void>();
    return this.#stop;
  }

  /** True if no complete call was handed over. */
  get isEmpty(): boolean {
    return this.#calls.length === 0;
  }

  /** Registers the calls that a part completes as it is handed over. Returns the calls' references for the part's event. */
  registerCalls(
    owner: LedgerAttempt,
    runId: string,
    ordinal: number,
    calls: ReadonlyArray<CallSignal>,
  ): Array<ReadyCall> {
    if (this.#newest !== owner) this.#newestCalls = 0;
    this.#newest = owner;
    return completedCalls(calls).map(({ call, id, input, tool }) => {
      if (this.#newestCalls < callsMax) {
        this.#newestCalls += 1;
        this.#keep({ owner, key: call, id, tool, ordinal, state: "handed_over" });
      }
      return { run_id: runId, attempt: owner.number, call, id, tool, input };
    });
  }

  /** Restores a call of an earlier process from its recorded facts. */
  restore(owner: LedgerAttempt, { call, id, tool }: NamedCall, verdict: CallVerdict | undefined): void {
    const rows = owner.facts.snapshot().tools.filter((it) => it.executor === "runtime");
    // A call without a row of its own takes the phase of the row that all folded calls share. Without that row, its outcome is unknown.
    const row = rows.find((it) => it.call === call) ?? rows.find(isFolded);
    const phase = row?.phase ?? "outcome_unknown";
    const state = phase === "settled" || phase === "outcome_unknown" || phase === "dispatched" ? phase : "handed_over";
    this.#keep({
      owner,
      key: call,
      id,
      tool,
      ordinal: 0,
      state,
      ...(verdict === undefined ? {} : { verdict }),
    });
  }

  /**
   * Resolves a reference by its key. A provider id refers to the newest attempt with that id: to its first call that has the id and has not
   * started, else to its last one.
   */
  find(reference: CallReference): LedgerCall | undefined {
    if ("call" in reference) {
      return this.#calls.find((it) => it.owner.number === reference.attempt && it.key === reference.call);
    }
    const newest = this.#calls.findLast((it) => it.id === reference.id);
    return (
      this.#calls.find((it) => it.id === reference.id && it.owner === newest?.owner && it.state === "handed_over") ??
      newest
    );
  }

  /**
   * Waits for the call's fence and marks the call as dispatched in the step that passes it.
   *
   * @param byId true if only a provider id was given; it is refused while another call with that id is unsettled
   */
  enter(call: LedgerCall, tool: string, byId: boolean): Effect.Effect<Entered | "superseded" | "already_dispatched"> {
    return Effect.map(
      call.owner.fence.pass((): Entered | "already_dispatched" => {
        if (call.state !== "handed_over" || (byId && this.#hasOpenTwin(call))) return "already_dispatched";
        call.state = "dispatched";
        call.owner.facts.dispatched(call.key, tool);
        call.owner.fence.addHandler();
        call.owner.onToolStart();
        return this.#makeEntered(call, tool);
      }),
      (entered) => entered ?? "superseded",
    );
  }

  /** Interrupts every running handler. Only a user's cancel does this. */
  stopAll(): void {
    Deferred.doneUnsafe(this.#stopSignal, Effect.void);
  }

  /**
   * Returns the runtime calls of these attempts whose outcome is unknown. Reads the facts, because they also contain calls that the guard
   * has not seen.
   */
  unsettledCalls(owners: ReadonlyArray<LedgerAttempt>): ReadonlyArray<OpenCall> {
    return owners.flatMap((owner) =>
      owner.facts
        .snapshot()
        .tools.filter(
          ({ executor, phase }) => executor === "runtime" && (phase === "dispatched" || phase === "outcome_unknown"),
        )
        .map(({ call, effect, tool }) => {
          const known = this.#calls.find((it) => it.owner === owner && it.key === call);
          return { owner, call, tool, effect, id: known?.id ?? "" };
        }),
    );
  }

  /** Returns true if the call's handler is running. For a folded row, returns true if any handler of the attempt is running. */
  isRunning({ call, owner }: OpenCall): boolean {
    if (owner.fence.running === 0) return false;
    const folded = call === foldKey("runtime");
    return this.#calls.some((it) => it.owner === owner && (folded || it.key === call) && it.state === "dispatched");
  }

  /** Settles a call with a verdict. Returns true if that changed anything. Calls in folded rows cannot be settled. */
  settle({ call, owner, tool }: OpenCall, verdict: CallVerdict): boolean {
    if (!owner.facts.settled(call, tool)) return false;
    const known = this.#calls.find((it) => it.owner === owner && it.key === call);
    if (known !== undefined) {
      known.state = "settled";
      known.verdict = verdict;
    }
    return true;
  }

  /** Returns the outcome of every call of the run, for a continuation. */
  calls(): ReadonlyArray<SettledCall> {
    return this.#calls.map((it) => ({
      attempt: it.owner.number,
      call: it.key,
      id: it.id,
      tool: it.tool,
      outcome:
        it.verdict ?? (it.state === "handed_over" && !this.#run.isGuarded(it.tool) ? "unknown" : outcomes[it.state]),
    }));
  }

  /** Returns the ordinal of the last part that completed a settled call; 0 if there is none. */
  lastSettledOrdinal(owner: LedgerAttempt): number {
    return this.#calls.reduce(
      (last, it) => (it.owner === owner && it.state === "settled" ? Math.max(last, it.ordinal) : last),
      0,
    );
  }

  /** True if another call with the same provider id is in progress. The id is then ambiguous. */
  #hasOpenTwin(call: LedgerCall): boolean {
    return this.#calls.some(
      (it) => it !== call && it.id === call.id && (it.state === "dispatched" || it.state === "outcome_unknown"),
    );
  }

  #makeEntered(call: LedgerCall, tool: string): Entered {
    const { owner } = call;
    const endHandler = () => {
      owner.fence.removeHandler();
      owner.onToolEnd();
    };
    return {
      recordDispatch: Effect.map(this.#run.recordDispatch(owner), (recorded) =>
        !recorded ? "not_recorded" : owner.fence.isSealed ? "superseded" : "recorded",
      ),
      revert: () => {
        // The facts stay `dispatched`, because facts only grow. `dispatched` is the stricter state.
        call.state = "handed_over";
        endHandler();
      },
      withStop: (handler) =>
        Effect.raceFirst(
          handler,
          Effect.flatMap(Deferred.await(this.#stopSignal), () => Effect.interrupt),
        ),
      recordOutcome: (outcome) =>
        Effect.suspend(() => {
          call.state = outcome;
          if (outcome === "settled") owner.facts.settled(call.key, tool);
          else owner.facts.outcomeUnknown(call.key, tool);
          // Evaluated in the step in which the facts grow. A decision after this step has read these facts, so the outcome is not late for
          // it.
          const late = this.#run.onLateSettle(owner);
          // The handler counts as ended only after its outcome is processed, because a recovery may wait for this end.
          return Effect.ensuring(Effect.andThen(this.#run.recordFacts(owner), late), Effect.sync(endHandler));
        }),
    };
  }
}

const outcomes = {
  handed_over: "not_run",
  dispatched: "unknown",
  outcome_unknown: "unknown",
  settled: "settled",
} as const;
