/**
 * Holds one live run: its groups of state, its side of the recorder, and the signals that stop it. Most groups are created on first use,
 * because many runs wait at once and stay in memory.
 *
 * It decides nothing; Recovery does. No other file assigns its fields. The main methods by caller:
 *
 * - StreamProcessor: `prepare`, `start`, `writeBegin`, `response.begin`, `switchRoute`, `allowTakeUp`, `listenForAbort`, `stopListening`,
 *   `stop`, `onTakenOver`
 * - Attempt: `recordShown`, `attach`, `onHead`, `onContinued`, `onResponse`, `onAttemptEnd`, `note`; Presence: `reader`; ToolLedger:
 *   `recordFacts`, `recordDispatch`, `onLateSettle`
 * - Recovery, Incidents, Launch, Asking, Verify, Waits: `prepare`, `dropPrepared`, `start`, `switchRoute`, `routes`, `write`, `writeFirst`,
 *   `writeThrough`, `writeIntent`, `nextIncident`, `place`, `onResponse`, `departure`, `spending`, `response`, `question`
 * - Ending: `finish`, `finishThen`, `park`, `routes`; Revival: `restore`, here and of each group; `switchRoute`, `response.withdraw`
 *
 * The groups document their invariants in their own headers: `spending` (S1–S5), `response` (R1–R6), `question` (Q1–Q4), `routes` (O1–O3),
 * `departure` (D1–D4), and the reason for the run's stop (RunStop, T1–T3), which only this file changes. The run itself:
 *
 * U1 Attempts and incidents are numbered from 1. An attempt that was never recorded releases its number.
 * U2 A run ends once, and releases its request then (L7, L11).
 * U3 The run releases its place among the provider's waiting retries once: when the response begins or cannot begin any more.
 */
import type * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import type { Rule } from "../../domain/Decision.ts";
import type { Failure } from "../../domain/Failure.ts";
import { label } from "../../domain/Limits.ts";
import type * as Runs from "../../domain/RunFacts.ts";
import type { Evidence, RunEnd } from "../../domain/RunIncident.ts";
import { type SideEffects, snapshot } from "../../domain/SideEffects.ts";
import type { Path } from "../../paths/Path.ts";
import type { Scope } from "../../paths/Paths.ts";
import type { RecoveryPolicy } from "../../policy/RecoveryPolicy.ts";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import type { Entry, Parked } from "../../recorder/RunRecord.ts";
import { Attempt } from "../attempt/Attempt.ts";
import type { AttemptEnd, Classifying } from "../attempt/AttemptEnd.ts";
import type { AttemptHost, AttemptSetup } from "../attempt/AttemptHost.ts";
import { attach, Departure, isUp, tell } from "../attempt/Departure.ts";
import { emptyFacts } from "../attempt/EmptyFacts.ts";
import { Handoff } from "../attempt/Handoff.ts";
import { type Carried, modeOf, Reveal, weigherOf } from "../attempt/Reveal.ts";
import { RunClocks, runClock } from "../attempt/RunClocks.ts";
import { type Stopper, stopFailure } from "../contract/InterruptSignature.ts";
import { hasFinishFailures, type RunOptions, releaseStreams } from "../contract/RunOptions.ts";
import type { RouteGate, SeamSlot } from "../contract/Stages.ts";
import type { ReaderListener, ReaderWord, Taps } from "../contract/Taps.ts";
import { isRecordNeeded, unrecordedCallEnd } from "../tools/CallRecording.ts";
import { type LedgerAttempt, type LedgerRun, type NamedCall, ToolLedger } from "../tools/ToolLedger.ts";
import { factsRaised, type Written } from "./Backlog.ts";
import type { BrokenAttempt, Chain } from "./Chain.ts";
import { EarlierSpending } from "./EarlierSpending.ts";
import type { Loss } from "./Loss.ts";
import { OpenQuestion } from "./OpenQuestion.ts";
import { ResponseUnderWay } from "./ResponseUnderWay.ts";
import * as RunPolicy from "./RunPolicy.ts";
import { RunStop } from "./RunStop.ts";
import { RunWriter } from "./RunWriter.ts";
import type { Shared } from "./Shared.ts";
import { nothingSpent, Spending, type SpentBudget } from "./Spending.ts";
import { BoundedReads, type StoreReads, unboundedReads } from "./StoreReads.ts";
import { RunTelemetry, type StreamEnd } from "./Telemetry.ts";

/** Records that a call of a decided attempt has settled. */
type Late<P, E, R> = (run: Run<P, E, R>, attempt: Attempt<P>, failure: Failure) => Effect.Effect<void>;

/** One live run. */
export class Run<P, E, R> implements AttemptHost<P, Attempt<P>>, LedgerRun, ReaderListener {
  readonly runId: string;
  readonly shared: Shared;
  readonly telemetry: RunTelemetry<R>;
  /** The caller's services, below the run's span. */
  readonly services: Context.Context<R>;
  readonly policy: Pick<RecoveryPolicy, "name" | "decide">;
  readonly handoff: Handoff<P>;
  readonly ledger: ToolLedger;
  readonly sideEffects: SideEffects;
  readonly response = new ResponseUnderWay<P>();
  /** Kept after the run has ended, because its last events are taken later. */
  readonly taps: Taps<P> | undefined;
  /** The budget, and what was spent of it before the run began. */
  readonly earlier: EarlierSpending;
  #spending: Spending | undefined;
  #stopState: RunStop | undefined;
  #question: OpenQuestion | undefined;
  #done: Deferred.Deferred<void> | undefined;
  #attempts = 0;
  #incidents = 0;
  #canBeTakenUp = false;
  #options: RunOptions<P, E, R>;
  #discardable: boolean;
  #startedAt: number;
  readonly clocks: RunClocks;
  #endIsRecorded = false;
  /** Joins the text of continuations to the shown text; undefined if the caller gave no seam. */
  readonly seams: SeamSlot<P, BrokenAttempt<P>> | undefined;
  /** The routes of the run; undefined if it has only one. */
  readonly routes: RouteGate<RunOptions<P, E, R>> | undefined;
  #departure: Departure | undefined;
  /** Releases the run's place among its provider's waiting retries (U3). */
  #leavePlace: (() => void) | undefined;
  readonly #late: Late<P, E, R>;
  readonly #writer: RunWriter;
  /**
   * True if the run acts before its entries are recorded (L8). Always false with a recorder that is not durable, because that recorder
   * accepts every entry at once.
   */
  readonly isVolatile: boolean;
  /** Bounds the time that the run waits for reads of the store. */
  readonly reads: StoreReads;

  constructor(
    runId: string,
    options: RunOptions<P, E, R>,
    discardable: boolean,
    shared: Shared,
    services: Context.Context<R>,
    late: Late<P, E, R>,
  ) {
    this.runId = runId;
    this.taps = options.taps;
    this.earlier = new EarlierSpending(options);
    this.#options = options;
    this.#discardable = discardable;
    this.shared = shared;
    this.handoff = new Handoff(options.taps?.tee, options.taps?.room);
    this.telemetry = new RunTelemetry(services, this);
    this.services = this.telemetry.services;
    this.policy = RunPolicy.make(options.policy, (error) => this.#report("the policy threw", error));
    this.clocks = new RunClocks(shared.watchdog, options);
    this.#startedAt = shared.watchdog.now();
    const runtimeTools = options.tools.filter((tool) => tool.executor === "runtime");
    this.sideEffects = snapshot(options.tools, runtimeTools.length > 0 && runtimeTools.every(shared.guard.made));
    this.ledger = new ToolLedger(this);
    this.seams = options.seam?.begin(options.seam);
    this.routes = options.routes?.begin(options.routes, options, this);
    this.isVolatile = options.record === "behind" && shared.recorder.durable;
    this.#writer = new RunWriter(this, shared.recorder, shared.backlog, this.isVolatile ? shared.queue : undefined);
    this.reads = this.isVolatile ? new BoundedReads(shared.queue, () => this.now()) : unboundedReads;
    this.#late = late;
    attach(shared, options.path);
    options.taps?.presence?.setListener(this);
  }

  get budget(): Runs.Budget {
    return this.earlier.budget;
  }

  get provider(): Runs.Provider {
    return this.options.provider;
  }

  /** Logs an error of the caller's own code that does not end the run. */
  #report(message: string, error: unknown): void {
    Effect.runForkWith(this.services)(Effect.logError(message, { run_id: this.runId }, error));
  }

  /** The caller's options, as they apply to the current route. */
  get options(): RunOptions<P, E, R> {
    return this.#options;
  }

  switchRoute(options: RunOptions<P, E, R>): void {
    this.#options = options;
    this.clocks.reset(options);
    attach(this.shared, options.path);
  }

  /** Notes a change of the reader and passes it to the live attempt. A new attempt gets the current state when it starts. */
  reader(word: ReaderWord): void {
    if (this.ledger.ended) return;
    this.note(this.attempts, "reader", word);
    this.response.live?.reader(word);
  }

  /** True if the caller can discard what it was shown. */
  get discardable(): boolean {
    return this.#discardable;
  }

  /** Decides when the run's requests may be sent. Created on first use. */
  get departure(): Departure {
    this.#departure ??= new Departure(this);
    return this.#departure;
  }

  /** The departure; undefined if no request of this run ever had to wait. */
  get going(): Departure | undefined {
    return this.#departure;
  }

  /** The scope of the next attempt's request. Requests of one scope share a wait. */
  get scope(): Scope {
    return this.shared.origins.next(this.options.provider, this.options.path);
  }

  get path(): string {
    return this.scope.path;
  }

  /** The attempts of the current response. */
  get chain(): Chain<P> | undefined {
    return this.response.chain;
  }

  now(): number {
    return this.shared.watchdog.now();
  }

  /** Milliseconds since the run started. */
  get elapsedMs(): number {
    return Math.max(0, Math.round(this.now() - this.#startedAt));
  }

  /** Number of attempts prepared so far (U1). */
  get attempts(): number {
    return this.#attempts;
  }

  /** Releases the number of the last prepared attempt, which was never recorded. */
  dropPrepared(): void {
    this.#attempts -= 1;
  }

  /** Returns the number for the next incident. */
  nextIncident(): number {
    this.#incidents += 1;
    return this.#incidents;
  }

  /** True if `StreamProcessor.takeUp` can take up the run, because the digest of its transcript is on record. */
  get canBeTakenUp(): boolean {
    return this.#canBeTakenUp;
  }

  /** Called when the digest of the run's transcript is on record. */
  allowTakeUp(): void {
    this.#canBeTakenUp = true;
  }

  /** True if the run has no reader at the moment. */
  get isAway(): boolean {
    return this.taps?.presence?.isAway === true;
  }

  get spending(): Spending {
    this.#spending ??= new Spending();
    return this.#spending;
  }

  /** The spending as a decision reads it. */
  get spent(): SpentBudget {
    return this.#spending?.facts() ?? nothingSpent;
  }

  /** The reason for the run's stop. */
  get #stopping(): RunStop {
    this.#stopState ??= new RunStop();
    return this.#stopState;
  }

  /** Stops listening to the caller's signal. */
  stopListening(): void {
    this.#stopState?.stopListening();
  }

  get stopper(): Stopper | undefined {
    return this.#stopState?.by;
  }

  get isUserCancelled(): boolean {
    return this.#stopState?.isUserCancelled === true;
  }

  get isLifecycleClosed(): boolean {
    return this.#stopState?.isLifecycleClosed === true;
  }

  /** Reason why this process no longer owns the run. */
  get loss(): Loss | undefined {
    return this.#stopState?.loss;
  }

  /** Completes as soon as the run is stopped. */
  get stopped(): Deferred.Deferred<void> {
    return this.#stopping.stopped;
  }

  /** Waits until the processor closes, even if the run was stopped before. */
  get closing(): Effect.Effect<void> {
    return this.#stopping.closing;
  }

  get question(): OpenQuestion {
    this.#question ??= new OpenQuestion();
    return this.#question;
  }

  /** Completes when the end was written (or waits for the store) and the last attempt has closed or was abandoned. */
  get done(): Deferred.Deferred<void> {
    this.#done ??= Deferred.makeUnsafe<void>();
    return this.#done;
  }

  /** Prepares the next attempt; `start` runs it. */
  prepare(
    setup: Pick<AttemptSetup<P>, "mode" | "request" | "calls" | "cursor"> & Partial<Pick<AttemptSetup<P>, "seam">>,
    carried?: Carried<P>,
  ): Attempt<P> {
    this.#attempts += 1;
    const { discardable, options, shared, taps } = this;
    const mode = modeOf(options.reveal, discardable, this.response.isHoldOver);
    const held = { carried, discardable, holdsEnd: hasFinishFailures(options), presence: taps?.presence };
    return new Attempt<P>(this, {
      number: this.#attempts,
      seam: undefined,
      ...setup,
      route: this.routes?.id,
      facts: emptyFacts(this, options.tools, setup.request),
      reveal: new Reveal<P>(mode, shared.pool, weigherOf(options.sizeOf), held),
      carried,
      discarded: this.response.withdrawn,
    });
  }

  /** Starts an attempt as soon as its request may be sent. If the run was stopped before, the attempt ends without opening its source. */
  start(attempt: Attempt<P>): void {
    this.response.setLive(attempt);
    if (this.taps?.presence !== undefined) attempt.reader(this.isAway ? "left" : "back");
    if (this.stopper !== undefined) {
      attempt.decide({ _tag: "failed", failure: stopFailure(this.stopper), cause: undefined });
    } else if (this.#departure?.mayGo ?? this.shared.paths.isOpen(this.scope)) this.#startNow(attempt);
    else {
      const elsewhere = this.routes?.elsewhere(attempt.setup);
      const turn = this.departure.inTurn(attempt, () => this.#startNow(attempt), elsewhere);
      attempt.waitToStart(this.clocks.waiting(this.#inTime(attempt, turn)), this.services);
    }
  }

  /** Waits until an attempt may send its request. Ends the attempt if the run's clock runs out first. */
  #inTime(attempt: Attempt<P>, turn: Effect.Effect<void>): Effect.Effect<void> {
    const { clocks } = this;
    if (clocks.leftMs === Number.POSITIVE_INFINITY) return turn;
    const late = Effect.sync(() => void attempt.decide({ _tag: "failed", failure: runClock, cause: undefined }));
    return Effect.raceFirst(turn, Effect.andThen(clocks.awaitExpiry, late));
  }

  #startNow(attempt: Attempt<P>): void {
    attempt.start(this.options, this.telemetry.reportAttemptStart(), this.clocks.watch(attempt), this);
  }

  /** Returns the context in which an error of the source becomes a failure, at the current time. */
  classifying(): Classifying<E> {
    const { classify, provider } = this.options;
    const { clock, reached } = this.shared;
    return { classify, nowMs: clock.currentTimeMillisUnsafe(), reachedHostBefore: reached.has(provider.id) };
  }

  /**
   * Waits for a place among its provider's retries that wait for their first part. The run owns the place as soon as it is granted (U3).
   */
  get place(): Effect.Effect<void> {
    return this.shared.gate.enter(this.provider.id, (leave) => {
      this.#leavePlace = leave;
    });
  }

  /**
   * Called when the transport of an attempt reports the path of its request. The reported path applies unless the run has a path of its
   * own.
   */
  attach(path: string, { id, way }: Path): string {
    const { path: own, provider } = this.options;
    const counts = own === undefined ? id : path;
    if (own === undefined) this.shared.origins.saw(provider, id);
    if (way !== undefined) this.shared.paths.attach(counts, way);
    return counts;
  }

  /** Called when a response head has arrived. The path works, so waiting requests may start in turn. */
  onHead(path: string): void {
    this.shared.paths.recordResponse({ ...this.scope, path });
    this.#departure?.leave();
  }

  /** Called when the text of an attempt is proven to continue what was shown. Does not wait for the store. */
  onContinued({ number, setup }: Attempt<P>): void {
    if (setup.seam === undefined) return;
    const { at, proof } = setup.seam;
    this.note(number, "seam", proof);
    this.telemetry.reportSeam("joined", proof);
    this.handoff.push({ _tag: "Continued", attempt: number, at: (this.seams?.before ?? 0) + at, proof });
    Effect.runForkWith(this.services)(this.write([{ _tag: "RunContinued", attempt: number, at, proof }]));
  }

  /** Called when the provider has responded, or cannot respond any more. Another retry may then take the place (U3). */
  onResponse(): void {
    this.#departure?.leave();
    this.#leavePlace?.();
    this.#leavePlace = undefined;
  }

  onAttemptEnd(attempt: Attempt<P>, outcome: AttemptEnd): void {
    const failure = outcome._tag === "failed" ? outcome.failure : undefined;
    // A stall does not prove that the model is slow if the path of the attempt is down.
    const stalled = failure?.kind === "stalled" && isUp(this) ? failure.clock : undefined;
    const elapsedMs = this.clocks.endWatch(attempt.watch, stalled);
    this.#spending?.addElapsed(elapsedMs);
    if (failure !== undefined) {
      this.spending.recordFailure(attempt.facts.snapshot().counters.input_tokens);
      // The error that an abort causes may arrive before the abort event (L10).
      if (this.stopper === undefined) this.#stopping.checkSignal();
    }
    if (attempt.facts.snapshot().delivery === "accepted") this.shared.reached.add(this.options.provider.id);
    this.note(attempt.number, failure === undefined ? "source_ended" : "failure", failure?.kind);
    tell(this, attempt, failure);
    this.onResponse();
    this.response.endLive();
    this.telemetry.reportAttemptEnd(attempt, outcome);
  }

  /** Listens to the caller's signal from now until the run has ended. */
  listenForAbort(): void {
    const { signal } = this.options;
    if (signal !== undefined) this.#stopping.listenForAbort(signal, (by) => this.stop(by));
  }

  /** Stops the run from outside. The first stop names the stopper; later ones only add their flag. */
  stop(by: Stopper): void {
    this.#stopping.note(by);
    this.note(this.attempts, by === "lifecycle" ? "close" : "cancel", by);
    if (by === "user") this.ledger.stopAll();
    this.#stopping.tell();
    this.response.live?.decide({ _tag: "failed", failure: stopFailure(by), cause: undefined });
  }

  /** Notes evidence, which the next write commits. */
  note(attempt: number, event: Evidence["event"], detail?: string): void {
    this.#writer.note(attempt, event, detail);
  }

  /** Commits the entries that begin the run. Returns the reason if the store refuses it. See RunWriter. */
  writeBegin(entries: ReadonlyArray<Entry>): Effect.Effect<RecorderError["reason"] | undefined> {
    return this.#writer.begin(entries);
  }

  /** Commits what has happened, and keeps it while the store is unavailable. Returns true if it is now on record. */
  write(entries: ReadonlyArray<Entry>): Effect.Effect<boolean> {
    return Effect.map(this.#writer.write(entries, true), (written) => written === "recorded");
  }

  /** Commits what has happened before the run acts on it. Waits for an unavailable store. See RunWriter. */
  writeFirst(entries: ReadonlyArray<Entry>): Effect.Effect<boolean> {
    return this.#writer.writeFirst(entries, true);
  }

  /** Commits an act that the run carries out only once it is on record. Waits for an unavailable store. */
  writeIntent(entries: ReadonlyArray<Entry>): Effect.Effect<boolean> {
    return this.#writer.writeFirst(entries);
  }

  /** Commits what every run must have on record before it acts. Waits at most `storeWaitMs` for an unavailable store. */
  writeThrough(entries: ReadonlyArray<Entry>): Effect.Effect<boolean> {
    return this.#writer.writeThrough(entries);
  }

  /** While a question is open (until `endAsking`), the run waits until each entry is recorded. */
  beginAsking(): void {
    this.#writer.beginAsking();
  }

  /** Called when the answer was carried out or the question was abandoned. */
  endAsking(): void {
    this.#writer.endAsking();
  }

  recordFacts(attempt: LedgerAttempt): Effect.Effect<boolean> {
    const entries = [factsRaised(attempt)];
    return this.isVolatile ? this.#writer.writeThrough(entries, false) : this.write(entries);
  }

  recordDispatch(attempt: LedgerAttempt): Effect.Effect<boolean> {
    return this.writeThrough([factsRaised(attempt)]);
  }

  /**
   * Records the facts before a hand-over. Text is handed over even if the facts are not recorded. A call of a durable run may have to be on
   * record first: its hand-over waits for the store, and the attempt breaks if the call is not recorded (L8).
   */
  recordShown(attempt: Attempt<P>, calls: ReadonlyArray<NamedCall>): true | Deferred.Deferred<boolean> {
    this.note(attempt.number, "shown", attempt.facts.snapshot().shown);
    const waits = isRecordNeeded(this, calls);
    return this.#writer.writeShown(attempt, calls, waits, (isOnRecord) => {
      // The run may have been lost while the store handled the write.
      if (this.loss !== undefined) return false;
      if (waits && !isOnRecord) attempt.decide(unrecordedCallEnd(this.runId));
      return isOnRecord || !waits;
    });
  }

  onUnrecorded(reason: string, first: boolean): void {
    if (first) this.note(this.attempts, "shown", "unrecorded");
    this.telemetry.reportUnrecorded(reason);
  }

  /**
   * Stops a run that this process no longer owns. The first reason counts. From then on, no call of the run starts and no event leaves,
   * except an end that is already on record.
   */
  onLost(why: Loss): void {
    if (this.loss !== undefined) return;
    this.chain?.seal();
    if (!this.#endIsRecorded) this.handoff.recall();
    this.#stopping.markLost(why);
    this.stop("lifecycle");
  }

  /** Called when the recorder finds that another process has taken the run over. */
  onTakenOver(): void {
    this.#writer.onTakenOver();
  }

  isGuarded(tool: string): boolean {
    return this.sideEffects.guarded && this.options.tools.some((it) => label(it.name) === tool);
  }

  onLateSettle(attempt: LedgerAttempt): Effect.Effect<void> {
    const decided = this.response.lastDecided;
    if (decided?.attempt !== attempt) return Effect.void;
    // Overtakes an open question immediately, even if earlier writes are still in progress.
    if (this.#question?.overtake() !== true) return this.#late(this, decided.attempt, decided.failure);
    return Effect.sync(() => this.note(attempt.number, "late_settle"));
  }

  /** Restores the state that a previous process recorded. */
  restore(run: Pick<Run<P, E, R>, "attempts" | "discardable" | "elapsedMs">, incidents: number): void {
    this.#discardable = run.discardable;
    this.#startedAt -= run.elapsedMs;
    this.#attempts = run.attempts;
    this.#incidents = incidents;
  }

  /** Records the end and ends the stream. The first end counts (L7). */
  finish(attempt: Attempt<P>, end: Omit<RunEnd, "attempts" | "at">, emit: () => void): Effect.Effect<void> {
    return this.#end(attempt, end, [this.#endOf(end)], emit);
  }

  /**
   * Like `finish`, without a fiber, for a run that has not ended.
   *
   * @param over called when the stream has its end
   */
  finishThen(attempt: Attempt<P>, end: Omit<RunEnd, "attempts" | "at">, emit: () => void, over: () => void): void {
    const ending = (act: () => void): void => {
      try {
        act();
      } catch (defect) {
        this.handoff.end(Effect.die(defect));
        over();
      }
    };
    ending(() =>
      this.#writer.writeThen([...this.#markEnded(attempt, end), this.#endOf(end)], (written) =>
        ending(() => {
          this.#onEndWritten(written, end, emit);
          over();
        }),
      ),
    );
  }

  /**
   * Ends the stream and leaves the run to the process that takes it over. It is recorded as parked once none of its tool handlers runs
   * here. The first end counts.
   */
  park(attempt: Attempt<P>, reason: Parked, rule: Rule, emit: () => void): Effect.Effect<unknown> {
    const end: StreamEnd = { state: "parked", reason: rule };
    const parked: Entry = { _tag: "RunParked", reason };
    if (this.chain === undefined || this.chain.running === 0) return this.#end(attempt, end, [parked], emit);
    const free = Effect.andThen(this.chain.awaitDrain, this.write([parked]));
    return Effect.andThen(this.#end(attempt, end, [], emit), Effect.forkDetach(free));
  }

  #endOf(end: Omit<RunEnd, "attempts" | "at">): Entry {
    const at = this.shared.clock.currentTimeMillisUnsafe();
    return { _tag: "RunEnded", end: { ...end, attempts: this.attempts, at } };
  }

  /** The first end counts (U2). */
  #end(attempt: Attempt<P>, end: StreamEnd, entries: ReadonlyArray<Entry>, emit: () => void): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.ledger.ended) return Effect.void;
      // The caller gets the end now, even if the store takes it later.
      const write = this.#writer.write([...this.#markEnded(attempt, end), ...entries], true);
      return Effect.map(write, (written) => this.#onEndWritten(written, end, emit));
    });
  }

  /** Marks the run as ended and releases what it holds. Returns the entries that precede the end on record. */
  #markEnded(attempt: Attempt<P>, end: StreamEnd): ReadonlyArray<Entry> {
    this.ledger.ended = true;
    this.stopListening();
    this.taps?.presence?.clearListener(this);
    this.#options = releaseStreams(this.#options);
    this.routes?.onRunEnd();
    this.seams?.onRunEnd();
    this.onResponse();
    this.note(this.attempts, "end", end.reason);
    return [factsRaised(attempt)];
  }

  /** Reports the end. A lost run reports `lifecycle_closed` instead (L7). */
  #onEndWritten(written: Written, end: StreamEnd, emit: () => void): void {
    this.#endIsRecorded = written === "recorded";
    const isOurs = written !== "lost";
    this.telemetry.reportRunEnd(isOurs ? end : { state: "stopped", reason: "lifecycle_closed" }, this.attempts);
    emit();
  }
}
