/**
 * Holds the state of one run: its attempts, flags and counters, its side of the recorder, and the signals that stop it.
 *
 * It decides nothing and waits for nothing; Recovery does both.
 */

import type * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import type { Rule } from "../../domain/Decision.ts";
import type { Failure } from "../../domain/Failure.ts";
import { label } from "../../domain/Limits.ts";
import * as Runs from "../../domain/RunFacts.ts";
import type { Evidence, RunEnd } from "../../domain/RunIncident.ts";
import { type SideEffects, snapshot } from "../../domain/SideEffects.ts";
import * as Facts from "../../facts/Facts.ts";
import * as RecoveryPolicy from "../../policy/RecoveryPolicy.ts";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import type { Entry, Parked } from "../../recorder/RunRecord.ts";
import type { AttemptSetup } from "../attempt/Attempt.ts";
import { Attempt, type AttemptHost } from "../attempt/Attempt.ts";
import type { AttemptEnd, Classifying } from "../attempt/AttemptEnd.ts";
import { Handoff } from "../attempt/Handoff.ts";
import { type Carried, Reveal, weigherOf } from "../attempt/Reveal.ts";
import * as Clocks from "../contract/Clocks.ts";
import { type Stopper, stopFailure, stopperOfSignal } from "../contract/InterruptSignature.ts";
import { letGo, type RunOptions, type Withdrawn } from "../contract/RunOptions.ts";
import { type LedgerAttempt, type LedgerRun, type NamedCall, ToolLedger } from "../tools/ToolLedger.ts";
import type { BrokenAttempt, Chain } from "./Chain.ts";
import { keptBack, type Loss, needsRecord, RunWriter } from "./RunWriter.ts";
import type { Shared } from "./Shared.ts";
import { freshCounters } from "./Spent.ts";
import { RunTelemetry, type StreamEnd } from "./Telemetry.ts";

/** What the run tells whoever recovers it. Both must not block. */
export interface RunHooks<P, E, R> {
  readonly ended: (run: Run<P, E, R>, attempt: Attempt<P>, outcome: AttemptEnd) => void;
  /** A tool of an attempt that was decided has settled. */
  readonly late: (run: Run<P, E, R>, attempt: Attempt<P>, failure: Failure) => Effect.Effect<void>;
}

/** One run while it lives. */
export class Run<P, E, R> implements AttemptHost<P>, LedgerRun {
  readonly runId: string;
  options: RunOptions<P, E, R>;
  /** Whether the caller can throw away what it was shown. */
  discardable: boolean;
  readonly shared: Shared;
  readonly telemetry: RunTelemetry<R>;
  /** The caller's services, below the run's span. */
  readonly services: Context.Context<R>;
  readonly policy: RecoveryPolicy.RecoveryPolicy;
  readonly budget: Runs.Budget;
  readonly handoff = new Handoff<P>();
  readonly ledger: ToolLedger;
  readonly sideEffects: SideEffects;
  startedAt: number;
  stopper: Stopper | undefined;
  userCancelled = false;
  lifecycleClosed = false;
  live: Attempt<P> | undefined;
  attempts = 0;
  clocks: Clocks.Clocks;
  counters = freshCounters();
  /** The attempt that was decided last and on what, for settles that come late. */
  decided: { readonly attempt: Attempt<P>; readonly failure: Failure } | undefined;
  /** The attempts of the response that is read now. */
  chain: Chain<P> | undefined;
  /** What interrupted that response first: a refused cursor is decided on it. */
  brokeFirst: BrokenAttempt<P> | undefined;
  /** Gives back the run's place among its provider's unanswered retries. */
  leaveGate: (() => void) | undefined;
  /** A question is open. */
  asking = false;
  /** Why the run is not this process's any more. */
  loss: Loss | undefined;
  /** `StreamProcessor.takeUp` can take the run: the digest of what it was started from is on record. */
  resumable = false;
  /** What was withdrawn so far, one entry an attempt. */
  discarded: ReadonlyArray<Withdrawn> = none;
  /** Calls whose tool was asked whether they happened; each is asked once. */
  verified: ReadonlyArray<string> = none;
  incidents = 0;
  questions = 0;
  readonly #hooks: RunHooks<P, E, R>;
  #runElapsedMs = 0;
  // Made when something waits for them: many runs wait at once, and each holds what it has.
  #stopped: Deferred.Deferred<void> | undefined;
  #done: Deferred.Deferred<void> | undefined;
  #factsGrew: Deferred.Deferred<void> | undefined;
  #closing: Deferred.Deferred<void> | undefined;
  readonly #writer: RunWriter;
  /** What the caller's signal calls. */
  #listener: (() => void) | undefined;

  constructor(
    runId: string,
    options: RunOptions<P, E, R>,
    discardable: boolean,
    shared: Shared,
    services: Context.Context<R>,
    hooks: RunHooks<P, E, R>,
  ) {
    this.runId = runId;
    this.options = options;
    this.discardable = discardable;
    this.shared = shared;
    this.telemetry = new RunTelemetry(services, this);
    this.services = this.telemetry.services;
    this.policy = options.policy ?? RecoveryPolicy.default;
    this.budget = options.budget === undefined ? Runs.defaultBudget : { ...Runs.defaultBudget, ...options.budget };
    this.clocks = Clocks.make(options.provider, options.streaming ?? true, options.clocks);
    this.startedAt = shared.watchdog.now();
    const runtimeTools = options.tools.filter((tool) => tool.executor === "runtime");
    this.sideEffects = snapshot(options.tools, runtimeTools.length > 0 && runtimeTools.every(shared.guard.made));
    this.ledger = new ToolLedger(this);
    this.#writer = new RunWriter(this, shared.recorder, shared.backlog);
    this.#hooks = hooks;
  }

  get provider(): Runs.Provider {
    return this.options.provider;
  }

  /** Done as soon as anyone stops the run. */
  get stopped(): Deferred.Deferred<void> {
    this.#stopped ??= Deferred.makeUnsafe<void>();
    return this.#stopped;
  }

  /** Done when the end is on record and the last attempt has closed or was abandoned. */
  get done(): Deferred.Deferred<void> {
    this.#done ??= Deferred.makeUnsafe<void>();
    return this.#done;
  }

  /** Wakes an open question when its facts have grown. */
  get factsGrew(): Deferred.Deferred<void> {
    this.#factsGrew ??= Deferred.makeUnsafe<void>();
    return this.#factsGrew;
  }

  /** A question opens, which only what grows from now on overtakes; or it has ended. */
  setAsking(asking: boolean): void {
    if (asking) this.#factsGrew = undefined;
    this.asking = asking;
  }

  now(): number {
    return this.shared.watchdog.now();
  }

  /** Milliseconds since the run started. */
  get elapsedMs(): number {
    return Math.max(0, Math.round(this.now() - this.startedAt));
  }

  /** Prepares the next attempt; `start` runs it. */
  prepare(setup: Pick<AttemptSetup<P>, "mode" | "request" | "calls" | "cursor">, carried?: Carried<P>): Attempt<P> {
    this.attempts += 1;
    const { discardable, options, shared } = this;
    const resumed = setup.request === "resume";
    const facts = Facts.make({
      // A resumed response exposes nothing anew: its calls were counted by the attempt that it resumes.
      sideEffects: resumed ? { ...snapshot([], false), guarded: this.sideEffects.guarded } : this.sideEffects,
      discardable,
      boundaries: options.tools,
      guarded: this.sideEffects.guarded,
    });
    const mode = options.reveal === "on_complete" ? "on_complete" : discardable ? "live" : "undiscardable";
    return new Attempt<P>(this, {
      number: this.attempts,
      mode: setup.mode,
      request: setup.request,
      calls: setup.calls,
      cursor: setup.cursor,
      facts,
      reveal: new Reveal<P>(mode, shared.pool, weigherOf(options.sizeOf), carried, discardable),
      carried,
      discarded: this.discarded,
    });
  }

  /** How the start of an attempt stands on record: with what a decision would take, in case this process does not live to take it. */
  startOf(attempt: Attempt<P>, at_ms: number): Extract<Entry, { readonly _tag: "AttemptStarted" }> {
    const { mode, request } = attempt.setup;
    const run = { ...this.facts(attempt, false), throttle_wait_ms: 0 };
    return {
      _tag: "AttemptStarted",
      attempt: attempt.number,
      mode,
      at_ms,
      facts: attempt.facts.snapshot(),
      request,
      run,
    };
  }

  /** Starts an attempt; one that was stopped in the meantime ends at once, and its source is never opened. */
  start(attempt: Attempt<P>): void {
    this.live = attempt;
    const services = this.telemetry.started();
    if (this.stopper !== undefined) {
      attempt.decide({ _tag: "failed", failure: stopFailure(this.stopper), cause: undefined });
      return;
    }
    const watch = this.shared.watchdog.watch(this.clocks, attempt, this.#runElapsedMs);
    attempt.start(this.options, services, watch, this);
  }

  /** How an error of the source becomes a failure, as it is known now. */
  classifying(): Classifying<E> {
    const { options, shared } = this;
    return {
      classify: options.classify,
      nowMs: shared.clock.currentTimeMillisUnsafe(),
      reachedHostBefore: shared.reached.has(options.provider.id),
    };
  }

  /** The provider has answered, or never will: the next retry may have the place. */
  answered(): void {
    this.leaveGate?.();
    this.leaveGate = undefined;
  }

  ended(attempt: Attempt<P>, outcome: AttemptEnd): void {
    const watch = attempt.watch;
    // The break may be heard of before the watchdog has woken from a suspension: the gap is no time that the run has spent.
    if (watch !== undefined) this.shared.watchdog.catchUp();
    const now = this.now();
    if (watch !== undefined) {
      this.shared.watchdog.unwatch(watch);
      this.#runElapsedMs = watch.runElapsed(now);
      if (this.counters.failures > 0) this.counters.elapsed += watch.withoutProgress(now);
    }
    if (outcome._tag === "failed") this.counters.failures += 1;
    // The error that an abort makes of a request may be seen before the abort itself (law L10).
    if (outcome._tag === "failed" && this.stopper === undefined) this.#heard();
    if (attempt.facts.snapshot().delivery === "accepted") this.shared.reached.add(this.options.provider.id);
    this.note(attempt.number, outcome._tag === "ended" ? "source_ended" : "failure", kindOf(outcome));
    this.live = undefined;
    this.answered();
    this.chain?.suspend();
    this.telemetry.ended(attempt, outcome);
    this.#hooks.ended(this, attempt, outcome);
  }

  /** Listens to the caller's own signal, from now until the run has ended. */
  heed(): void {
    const { signal } = this.options;
    if (signal === undefined) return;
    this.#listener = () => this.#heard();
    signal.addEventListener("abort", this.#listener, { once: true });
    this.#heard();
  }

  #heard(): void {
    const by = stopperOfSignal(this.options.signal);
    if (by !== undefined) this.stop(by);
  }

  /** Hears the caller's signal no more. */
  unheed(): void {
    if (this.#listener === undefined) return;
    this.options.signal?.removeEventListener("abort", this.#listener);
  }

  /** Stops the run from outside: the first word names the stopper, later ones only add their flag. */
  stop(by: Stopper): void {
    if (by === "user") this.userCancelled = true;
    if (by === "lifecycle") {
      this.lifecycleClosed = true;
      if (this.#closing !== undefined) Deferred.doneUnsafe(this.#closing, Effect.void);
    }
    this.stopper ??= by;
    this.note(this.attempts, by === "lifecycle" ? "close" : "cancel", by);
    if (by === "user") this.ledger.stopAll();
    Deferred.doneUnsafe(this.stopped, Effect.void);
    this.live?.decide({ _tag: "failed", failure: stopFailure(by), cause: undefined });
  }

  /** The run's side of a decision. */
  facts(attempt: Attempt<P>, resumable: boolean): Runs.RunFacts {
    const { counters, options } = this;
    return {
      mode: attempt.setup.mode,
      user_cancelled: this.userCancelled,
      lifecycle_closed: this.lifecycleClosed,
      can_continue: options.canContinue ?? false,
      continue_text: options.continueText ?? "ask",
      resumable: resumable && attempt.cursor !== undefined,
      discardable: this.discardable,
      can_refresh_credentials: options.refreshCredentials !== undefined,
      credential_refreshes: counters.credential_refreshes,
      throttle_wait_ms: this.shared.throttle.waitMs(options.provider.id, this.now()),
      auto_retries: counters.auto_retries,
      not_processed_retries: counters.not_processed_retries,
      retries_after_shown: counters.retries_after_shown,
      retries_after_stall: counters.retries_after_stall,
      elapsed_ms: Math.round(counters.elapsed),
    };
  }

  /** Notes evidence; it is committed with the next write. */
  note(attempt: number, event: Evidence["event"], detail?: string): void {
    this.#writer.note(attempt, event, detail);
  }

  /** Done as soon as the processor closes, also where the run was stopped before. */
  get closing(): Effect.Effect<void> {
    if (this.lifecycleClosed) return Effect.void;
    this.#closing ??= Deferred.makeUnsafe<void>();
    return Deferred.await(this.#closing);
  }

  /** Commits the entries that begin the run; says why the store refuses it. See RunWriter. */
  writeBegin(entries: ReadonlyArray<Entry>): Effect.Effect<RecorderError["reason"] | undefined> {
    return this.#writer.begin(entries);
  }

  /** Commits what has happened; whether it is on record by now. While the store is away it is kept. */
  write(entries: ReadonlyArray<Entry>): Effect.Effect<boolean> {
    return Effect.map(this.#writer.write(entries, true), (written) => written === "recorded");
  }

  /** Commits what has happened before something is done about it; waits for a store that is away. See RunWriter. */
  writeFirst(entries: ReadonlyArray<Entry>): Effect.Effect<boolean> {
    return this.#writer.writeFirst(entries, true);
  }

  /** Commits what its caller does only once it is on record; waits for a store that is away. */
  writeIntent(entries: ReadonlyArray<Entry>): Effect.Effect<boolean> {
    return this.#writer.writeFirst(entries);
  }

  recordFacts(attempt: LedgerAttempt): Effect.Effect<boolean> {
    return this.write([this.#raised(attempt)]);
  }

  recordDispatch(attempt: LedgerAttempt): Effect.Effect<boolean> {
    return this.writeFirst([this.#raised(attempt)]);
  }

  /**
   * Commits the attempt's facts before something of it is handed over. Text goes on unrecorded; calls that may not wait for
   * the store to come back, and break the attempt where it does not (law L8).
   *
   * @returns whether the hand-over may go on
   */
  recordShown(attempt: Attempt<P>, calls: ReadonlyArray<NamedCall>): Effect.Effect<boolean> {
    this.note(attempt.number, "shown", attempt.facts.snapshot().shown);
    const handedOver = calls.map(
      ({ call, id, tool }): Entry => ({ _tag: "CallHandedOver", attempt: attempt.number, call, id, tool }),
    );
    const entries = [...handedOver, this.#raised(attempt)];
    if (!needsRecord(this, calls)) return Effect.map(this.write(entries), () => this.loss === undefined);
    return Effect.map(this.writeFirst(entries), (recorded) => {
      if (!recorded && this.loss === undefined) attempt.decide(keptBack(this.runId));
      return recorded;
    });
  }

  unrecorded(reason: string, first: boolean): void {
    if (first) this.note(this.attempts, "shown", "unrecorded");
    this.telemetry.unrecorded(reason);
  }

  /** The run is not this process's any more: nothing more of it is handed over or started here. */
  lost(why: Loss): void {
    this.loss ??= why;
    this.chain?.close();
    this.stop("lifecycle");
  }

  /** The recorder has found that another process has taken the run over. */
  takenOver(): void {
    this.#writer.takenOver();
  }

  guards(tool: string): boolean {
    return this.sideEffects.guarded && this.options.tools.some((it) => label(it.name) === tool);
  }

  settledLate(attempt: LedgerAttempt): Effect.Effect<void> {
    const { decided } = this;
    if (decided?.attempt !== attempt) return Effect.void;
    if (!this.asking) return this.#hooks.late(this, decided.attempt, decided.failure);
    // An open question is overtaken now, whatever time the writes before this one take.
    Deferred.doneUnsafe(this.factsGrew, Effect.void);
    return Effect.sync(() => this.note(attempt.number, "late_settle"));
  }

  /** Records the end and ends the stream; the first end counts (law L7). */
  finish(attempt: Attempt<P>, end: Omit<RunEnd, "attempts" | "at">, emit: () => void): Effect.Effect<void> {
    const at = this.shared.clock.currentTimeMillisUnsafe();
    return this.#end(attempt, end, [{ _tag: "RunEnded", end: { ...end, attempts: this.attempts, at } }], emit);
  }

  /**
   * Ends the stream and leaves the run to the process that takes it over; the first end counts. The run is free only once no
   * handler of it runs here.
   */
  park(attempt: Attempt<P>, reason: Parked, rule: Rule, emit: () => void): Effect.Effect<unknown> {
    const end: StreamEnd = { state: "parked", reason: rule };
    const parked: Entry = { _tag: "RunParked", reason };
    const { chain } = this;
    if (chain === undefined || chain.running === 0) return this.#end(attempt, end, [parked], emit);
    const free = Effect.andThen(chain.drained, this.write([parked]));
    return Effect.andThen(this.#end(attempt, end, [], emit), Effect.forkDetach(free));
  }

  #end(attempt: Attempt<P>, end: StreamEnd, entries: ReadonlyArray<Entry>, emit: () => void): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.ledger.ended) return Effect.void;
      this.ledger.ended = true;
      this.unheed();
      this.options = letGo(this.options);
      this.answered();
      this.note(this.attempts, "end", end.reason);
      // A store that is away takes the end later: the caller is told now. A run that was lost has another end (law L7).
      return Effect.map(this.#writer.write([this.#raised(attempt), ...entries], true), (written) => {
        this.telemetry.finished(written === "lost" ? lostEnd : end, this.attempts);
        emit();
      });
    });
  }

  #raised({ facts, number }: LedgerAttempt): Extract<Entry, { readonly _tag: "FactsRaised" }> {
    return { _tag: "FactsRaised", attempt: number, facts: facts.snapshot() };
  }
}

/** How a stream ends whose run another process drives by now. */
const lostEnd: StreamEnd = { state: "stopped", reason: "lifecycle_closed" };

/** Shared by all runs that have withdrawn nothing. */
const none: ReadonlyArray<never> = [];

const kindOf = (outcome: AttemptEnd): string | undefined =>
  outcome._tag === "ended" ? undefined : outcome.failure.kind;
