/**
 * Ties the calls of one run to their attempts: which call a reference means, whether it may start, what became of it.
 *
 * A call's key is (run, attempt, choice, ordinal). Provider ids are labels: they come empty, as `0`, or repeated every
 * turn, so an id stands for the newest call that carried it, and is refused while an earlier one with it is unsettled.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import { callKey } from "../../domain/AttemptFacts.ts";
import { callsMax, label } from "../../domain/Limits.ts";
import type { CallSignal } from "../../domain/Observation.ts";
import type { ToolEffect } from "../../domain/SideEffects.ts";
import type { FactsFold } from "../../facts/Facts.ts";
import { foldedCall, isFolded } from "../../facts/ToolRows.ts";
import type { CallVerdict } from "../../recorder/RunRecord.ts";
import type { CallReference, ReadyCall, SettledCall } from "../contract/ToolCall.ts";
import type { Fence } from "./Fence.ts";

/** How a call is named on record. */
export type NamedCall = Pick<ReadyCall, "call" | "id" | "tool">;

/** The runtime calls that these signals make whole. */
export const wholeCalls = (
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

/** What the ledger needs of an attempt. */
export interface LedgerAttempt {
  /** Counts the attempts of the run, from 1. */
  readonly number: number;
  readonly fence: Fence;
  readonly facts: FactsFold;
  /** A handler starts or ends: the attempt's clocks stand still while one runs. */
  readonly toolStarted: () => void;
  readonly toolEnded: () => void;
}

/** What the ledger needs of its run. */
export interface LedgerRun {
  /** Whether a call of this tool can only have started through the guard. */
  readonly guards: (tool: string) => boolean;
  /** Commits the attempt's facts; while the store is away they are kept. */
  readonly recordFacts: (attempt: LedgerAttempt) => Effect.Effect<unknown>;
  /** Commits the attempt's facts before a handler starts; whether that worked. Waits for a store that is away. */
  readonly recordDispatch: (attempt: LedgerAttempt) => Effect.Effect<boolean>;
  /** A call has settled, or never will, after its attempt's decision was taken. */
  readonly settledLate: (attempt: LedgerAttempt) => Effect.Effect<void>;
}

/** One call that was handed over whole. */
interface LedgerCall {
  readonly owner: LedgerAttempt;
  readonly key: string;
  readonly id: string;
  readonly tool: string;
  /** Ordinal of the part that made it whole. */
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
  /** The handler will not start after all. */
  readonly leave: () => void;
  /** Lets a user's cancel reach the handler. */
  readonly stoppable: <A, E, R>(handler: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>;
  readonly recordOutcome: (outcome: "settled" | "outcome_unknown") => Effect.Effect<void>;
}

/** Shared by all runs without calls. */
const none: ReadonlyArray<LedgerCall> = [];

/** The calls of one run. */
export class ToolLedger {
  readonly #run: LedgerRun;
  /** Made with the first call: most runs have none. */
  #kept: Array<LedgerCall> | undefined;
  /** The attempt that hands calls over, and how many it has: each response has its own `callsMax`. */
  #newest: LedgerAttempt | undefined;
  #newestCalls = 0;
  /** Made with the first handler, or by the user's cancel. */
  #stop: Deferred.Deferred<void> | undefined;
  /** Whether the run has ended. */
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

  get #stopped(): Deferred.Deferred<void> {
    this.#stop ??= Deferred.makeUnsafe<void>();
    return this.#stop;
  }

  /** Whether no call was handed over whole. */
  get isEmpty(): boolean {
    return this.#calls.length === 0;
  }

  /** A part that makes calls whole is being handed over. Returns the references that go with it. */
  handedOver(owner: LedgerAttempt, runId: string, ordinal: number, calls: ReadonlyArray<CallSignal>): Array<ReadyCall> {
    if (this.#newest !== owner) this.#newestCalls = 0;
    this.#newest = owner;
    return wholeCalls(calls).map(({ call, id, input, tool }) => {
      if (this.#newestCalls < callsMax) {
        this.#newestCalls += 1;
        this.#keep({ owner, key: call, id, tool, ordinal, state: "handed_over" });
      }
      return { run_id: runId, attempt: owner.number, call, id, tool, input };
    });
  }

  /** A call of an earlier process, as its facts stand on record. */
  restore(owner: LedgerAttempt, { call, id, tool }: NamedCall, verdict: CallVerdict | undefined): void {
    const rows = owner.facts.snapshot().tools.filter((it) => it.executor === "runtime");
    // A call without a row of its own is where the furthest of the folded ones is; without any row it may be anywhere.
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

  /** The call that a reference means: by key, or by id the first of the newest attempt that has not started. */
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
   * @param byId only a provider's id was given: it is refused while another call with that id is unsettled
   */
  enter(call: LedgerCall, tool: string, byId: boolean): Effect.Effect<Entered | "superseded" | "already_dispatched"> {
    return Effect.map(
      call.owner.fence.pass((): Entered | "already_dispatched" => {
        if (call.state !== "handed_over" || (byId && this.#twinIsOpen(call))) return "already_dispatched";
        call.state = "dispatched";
        call.owner.facts.dispatched(call.key, tool);
        call.owner.fence.started();
        call.owner.toolStarted();
        return this.#entered(call, tool);
      }),
      (entered) => entered ?? "superseded",
    );
  }

  /** Interrupts every running handler: only a user's cancel does. */
  stopAll(): void {
    Deferred.doneUnsafe(this.#stopped, Effect.void);
  }

  /**
   * The runtime calls of unknown outcome that these attempts have.
   *
   * The facts say which those are: they hold calls too that no guard has seen.
   */
  unsettled(owners: ReadonlyArray<LedgerAttempt>): ReadonlyArray<OpenCall> {
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

  /** Whether a call's handler still runs; of a folded row, whether the handler of any such call may. */
  isRunning({ call, owner }: OpenCall): boolean {
    if (owner.fence.running === 0) return false;
    const folded = call === foldedCall("runtime");
    return this.#calls.some((it) => it.owner === owner && (folded || it.key === call) && it.state === "dispatched");
  }

  /** Settles a call by a word on it. Returns whether that was news: rows that were folded cannot be settled. */
  settle({ call, owner, tool }: OpenCall, verdict: CallVerdict): boolean {
    if (!owner.facts.settled(call, tool)) return false;
    const known = this.#calls.find((it) => it.owner === owner && it.key === call);
    if (known !== undefined) {
      known.state = "settled";
      known.verdict = verdict;
    }
    return true;
  }

  /** What became of every call of the run, for a continuation. */
  calls(): ReadonlyArray<SettledCall> {
    return this.#calls.map((it) => ({
      attempt: it.owner.number,
      call: it.key,
      id: it.id,
      tool: it.tool,
      outcome:
        it.verdict ?? (it.state === "handed_over" && !this.#run.guards(it.tool) ? "unknown" : outcomes[it.state]),
    }));
  }

  /** Ordinal of the last part that made a call whole that has settled by now; 0 when there is none. */
  settledThrough(owner: LedgerAttempt): number {
    return this.#calls.reduce(
      (last, it) => (it.owner === owner && it.state === "settled" ? Math.max(last, it.ordinal) : last),
      0,
    );
  }

  /** While one of two calls with the same provider's id is under way, that id does not say which of them a runtime means. */
  #twinIsOpen(call: LedgerCall): boolean {
    return this.#calls.some(
      (it) => it !== call && it.id === call.id && (it.state === "dispatched" || it.state === "outcome_unknown"),
    );
  }

  #entered(call: LedgerCall, tool: string): Entered {
    const { owner } = call;
    const left = () => {
      owner.fence.ended();
      owner.toolEnded();
    };
    return {
      recordDispatch: Effect.map(this.#run.recordDispatch(owner), (recorded) =>
        !recorded ? "not_recorded" : owner.fence.isSealed ? "superseded" : "recorded",
      ),
      leave: () => {
        // Its facts stay dispatched: they only grow, and this is the stricter side.
        call.state = "handed_over";
        left();
      },
      stoppable: (handler) =>
        Effect.raceFirst(
          handler,
          Effect.flatMap(Deferred.await(this.#stopped), () => Effect.interrupt),
        ),
      recordOutcome: (outcome) =>
        Effect.suspend(() => {
          call.state = outcome;
          if (outcome === "settled") owner.facts.settled(call.key, tool);
          else owner.facts.outcomeUnknown(call.key, tool);
          // Asked in the step in which the facts grow: a decision after this line has read them, and this is not late.
          const late = this.#run.settledLate(owner);
          // A recovery that waits for the handler to end goes on behind what is made of its outcome.
          return Effect.ensuring(Effect.andThen(this.#run.recordFacts(owner), late), Effect.sync(left));
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
