/**
/**
 * Is one run while it lives: its groups of state, its side of the recorder, and the signals that stop it.
 *
 * It decides nothing; Recovery does. No other file assigns a field of it: each changes it through the verbs that it owns.
 *
 * - StreamProcessor: `prepare`, `start`, `writeBegin`, `response.begins`, `goesBy`, `keepsTranscript`, `heed`, `unheed`, `stop`, `takenOver`
 * - Attempt: `recordShown`, `answered`, `responded`, `ended`, `note`; Presence: `reader`; ToolLedger: `recordFacts`, `recordDispatch`, `settledLate`
 * - Recovery, Incidents, Launch, Asking, Verify: `prepare`, `dropPrepared`, `start`, `goesBy`, `routes`, `write`,
 *   `writeFirst`, `writeIntent`, `nextIncident`, `place`, `responded`, `departure`, `spending`, `response`, `question`
 * - Ending: `finish`, `finishThen`, `park`, `routes`; Revival: `restored`, here and of each group; `goesBy`, `response.withdraw`
 *
 * The groups, each with its invariants in its own header: `spending` (S1–S5), `response` (R1–R4), `question` (Q1–Q4), `routes`
 * (O1–O3), `departure` (D1–D4), and why the run stops (RunStop, T1–T3), which this file alone changes. Of the run itself:
 *
 * U1 Attempts and incidents are numbered from 1. An attempt that never came on record gives its number back.
 * U2 A run ends once, and holds no request from then on (L7, L11).
 * U3 A place among the provider's waiting retries is given back once: when the response begins, or when it never will.
 */
import type * as Context from "effect/Context";
import type * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
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
import type { PresenceListener, ReaderWord } from "../contract/Presence.ts";
import { letGo, type RunOptions, raisesFinish } from "../contract/RunOptions.ts";
import { keptBack, needsRecord } from "../tools/CallRecording.ts";
import { type LedgerAttempt, type LedgerRun, type NamedCall, ToolLedger } from "../tools/ToolLedger.ts";
import { factsRaised, type Written } from "./Backlog.ts";
import type { Chain } from "./Chain.ts";
import * as Losses from "./Loss.ts";
import { ResponseUnderWay } from "./ResponseUnderWay.ts";
import { Routes } from "./Routes.ts";
import { RunGroups } from "./RunGroups.ts";
import * as RunPolicy from "./RunPolicy.ts";
import { RunWriter } from "./RunWriter.ts";
import { Seams } from "./Seams.ts";
import type { Shared } from "./Shared.ts";
import { RunTelemetry, type StreamEnd } from "./Telemetry.ts";

/** Puts on record that a call of a decided attempt has settled. */
type Late<P, E, R> = (run: Run<P, E, R>, attempt: Attempt<P>, failure: Failure) => Effect.Effect<void>;

/** One run while it lives. */
export class Run<P, E, R> extends RunGroups<P> implements AttemptHost<P, Attempt<P>>, LedgerRun, PresenceListener {
  readonly runId: string;
  readonly shared: Shared;
  readonly telemetry: RunTelemetry<R>;
  /** The caller's services, below the run's span. */
  readonly services: Context.Context<R>;
  readonly policy: Pick<RecoveryPolicy, "name" | "decide">;
  readonly handoff: Handoff<P>;
  readonly ledger: ToolLedger;
  readonly sideEffects: SideEffects;
  /** The response that is read now. */
  readonly response = new ResponseUnderWay<P>();
  #options: RunOptions<P, E, R>;
  #discardable: boolean;
  #startedAt: number;
  readonly clocks: RunClocks;
  #endIsRecorded = false;
  /** What joins the texts, where it is given. */
  readonly seams: Seams<P> | undefined;
  /** The routes of a run that has more than one. */
  readonly routes: Routes<P, E, R> | undefined;
  #departure: Departure | undefined;
  /** Gives back the run's place among its provider's waiting retries (U3). */
  #leavePlace: (() => void) | undefined;
  readonly #late: Late<P, E, R>;
  readonly #writer: RunWriter;

  constructor(
    runId: string,
    options: RunOptions<P, E, R>,
    discardable: boolean,
    shared: Shared,
    services: Context.Context<R>,
    late: Late<P, E, R>,
  ) {
    super(options);
    this.runId = runId;
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
    this.seams = options.seam && new Seams(options.seam, options.maxSeams);
    this.routes = Routes.of(options, this);
    this.#writer = new RunWriter(this, shared.recorder, shared.backlog);
    this.#late = late;
    attach(shared, options.path);
    options.taps?.presence?.tells(this);
  }

  get provider(): Runs.Provider {
    return this.options.provider;
  }

  /** Logs an error of the caller's own code that the run survives. */
  #report(message: string, error: unknown): void {
    Effect.runForkWith(this.services)(Effect.logError(message, { run_id: this.runId }, error));
  }

  /** The caller's options, as they are on the route that the run goes by. */
  get options(): RunOptions<P, E, R> {
    return this.#options;
  }

  /** The run goes by another route from now on, with its options. */
  goesBy(options: RunOptions<P, E, R>): void {
    this.#options = options;
    this.clocks.goesBy(options);
    attach(this.shared, options.path);
  }

  /** Hears of the reader, and lets the attempt that reads hear of it; one that starts hears how it stands. */
  reader(word: ReaderWord): void {
    if (this.ledger.ended) return;
    this.note(this.attempts, "reader", word);
    if (this.flows && word !== "back") this.stop("lifecycle");
    this.response.live?.reader(word);
  }

  /** Whether the caller can throw away what it was shown. */
  get discardable(): boolean {
    return this.#discardable;
  }

  /** The requests of the run on their way out. */
  get departure(): Departure {
    this.#departure ??= new Departure(this);
    return this.#departure;
  }

  /** The same, where one of them could not go at once. */
  get going(): Departure | undefined {
    return this.#departure;
  }

  /** Whose requests share a wait with that of the next attempt. */
  get scope(): Scope {
    return this.shared.origins.next(this.options.provider, this.options.path);
  }

  get path(): string {
    return this.scope.path;
  }

  /** The attempts of the response that is read now. */
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

  /** Prepares the next attempt; `start` runs it. */
  prepare(
    setup: Pick<AttemptSetup<P>, "mode" | "request" | "calls" | "cursor"> & Partial<Pick<AttemptSetup<P>, "seam">>,
    carried?: Carried<P>,
  ): Attempt<P> {
    const number = this.nextAttempt();
    const { discardable, options, shared, taps } = this;
    const mode = modeOf(options.reveal, discardable, this.response.holdIsOver);
    const held = { carried, discardable, holdsEnd: raisesFinish(options), presence: taps?.presence };
    return new Attempt<P>(this, {
      number,
      seam: undefined,
      ...setup,
      route: this.routes?.id,
      facts: emptyFacts(this, options.tools, setup.request),
      reveal: new Reveal<P>(mode, shared.pool, weigherOf(options.sizeOf), held),
      carried,
      discarded: this.response.withdrawn,
    });
  }

  /** Starts an attempt as soon as its request may go; one that was stopped in the meantime ends, and its source is never opened. */
  start(attempt: Attempt<P>): void {
    this.response.starts(attempt);
    if (this.taps?.presence !== undefined) attempt.reader(this.isAway ? "left" : "back");
    if (this.stopper !== undefined) {
      attempt.decide({ _tag: "failed", failure: stopFailure(this.stopper), cause: undefined });
    } else if (this.#departure?.mayGo ?? this.shared.paths.isOpen(this.scope)) this.#goes(attempt);
    else {
      const elsewhere = this.routes?.elsewhere(attempt.setup);
      const turn = this.departure.inTurn(attempt, () => this.#goes(attempt), elsewhere);
      attempt.waits(this.clocks.waiting(this.#inTime(attempt, turn)), this.services);
    }
  }

  /** Ends an attempt that waits for its turn for longer than the run's clock allows. */
  #inTime(attempt: Attempt<P>, turn: Effect.Effect<void>): Effect.Effect<void> {
    const { clocks } = this;
    if (clocks.leftMs === Number.POSITIVE_INFINITY) return turn;
    const late = Effect.sync(() => void attempt.decide({ _tag: "failed", failure: runClock, cause: undefined }));
    return Effect.raceFirst(turn, Effect.andThen(clocks.runsOut, late));
  }

  #goes(attempt: Attempt<P>): void {
    attempt.start(this.options, this.telemetry.started(), this.clocks.watch(attempt), this);
  }

  /** How an error of the source becomes a failure at this time. */
  classifying(): Classifying<E> {
    const { classify, provider } = this.options;
    const { clock, reached } = this.shared;
    return { classify, nowMs: clock.currentTimeMillisUnsafe(), reachedHostBefore: reached.has(provider.id) };
  }

  /** Waits for a place among its provider's waiting retries; the place is the run's from the step that grants it (U3). */
  get place(): Effect.Effect<void> {
    return this.shared.gate.enter(this.provider.id, (leave) => {
      this.#leavePlace = leave;
    });
  }

  /** A transport below an attempt reports the path of its request, which counts unless the run names its own. */
  attach(path: string, { id, way }: Path): string {
    const { path: own, provider } = this.options;
    const counts = own === undefined ? id : path;
    if (own === undefined) this.shared.origins.saw(provider, id);
    if (way !== undefined) this.shared.paths.attach(counts, way);
    return counts;
  }

  /** The head of a response has come: the path works, and the next requests may go in their turn. */
  answered(path: string): void {
    this.shared.paths.answered({ ...this.scope, path });
    this.#departure?.leave();
  }

  /** The text of an attempt is proven to go on with what was shown. Nothing waits for the store here. */
  continued({ number, setup }: Attempt<P>): void {
    if (setup.seam === undefined) return;
    const { at, proof } = setup.seam;
    this.note(number, "seam", proof);
    this.telemetry.seam("joined", proof);
    this.handoff.push({ _tag: "Continued", attempt: number, at: (this.seams?.before ?? 0) + at, proof });
    Effect.runForkWith(this.services)(this.write([{ _tag: "RunContinued", attempt: number, at, proof }]));
  }

  /** The provider has responded, or never will: the next retry may have the place (U3). */
  responded(): void {
    this.#departure?.leave();
    this.#leavePlace?.();
    this.#leavePlace = undefined;
  }

  ended(attempt: Attempt<P>, outcome: AttemptEnd): void {
    const failure = outcome._tag === "failed" ? outcome.failure : undefined;
    // What hangs while its path is down hangs for that, and not because the model is slow.
    const stalled = failure?.kind === "stalled" && isUp(this) ? failure.clock : undefined;
    this.passed(this.clocks.ended(attempt.watch, stalled));
    if (failure !== undefined) {
      this.spending.failed(attempt.facts.snapshot().counters.input_tokens);
      // The error that an abort makes of a request may be seen before the abort itself (L10).
      if (this.stopper === undefined) this.stopping.heard();
    }
    if (attempt.facts.snapshot().delivery === "accepted") this.shared.reached.add(this.options.provider.id);
    this.note(attempt.number, failure === undefined ? "source_ended" : "failure", failure?.kind);
    tell(this, attempt, failure);
    this.responded();
    this.response.ended();
    this.telemetry.ended(attempt, outcome);
  }

  /** Listens to the caller's own signal, from now until the run has ended. */
  heed(): void {
    const { signal } = this.options;
    if (signal !== undefined) this.stopping.heed(signal, (by) => this.stop(by));
  }

  /** Stops the run from outside: the first word names the stopper, later ones only add their flag (T1). */
  stop(by: Stopper): void {
    this.stopping.note(by);
    this.note(this.attempts, by === "lifecycle" ? "close" : "cancel", by);
    if (by === "user") this.ledger.stopAll();
    this.stopping.tell();
    this.response.live?.decide({ _tag: "failed", failure: stopFailure(by), cause: undefined });
  }

  /** Notes evidence; it is committed with the next write. */
  note(attempt: number, event: Evidence["event"], detail?: string): void {
    this.#writer.note(attempt, event, detail);
  }

  /** Commits the entries that begin the run; says why the store refuses it. See RunWriter. */
  writeBegin(entries: ReadonlyArray<Entry>): Effect.Effect<RecorderError["reason"] | undefined> {
    return this.#writer.begin(entries);
  }

  /** Commits what has happened, and keeps it while the store is away. Returns whether it is on record by now. */
  write(entries: ReadonlyArray<Entry>): Effect.Effect<boolean> {
    return Effect.map(this.#writer.write(entries, true), (written) => written === "recorded");
  }

  /** Commits what has happened before the run acts on it; waits for a store that is away. See RunWriter. */
  writeFirst(entries: ReadonlyArray<Entry>): Effect.Effect<boolean> {
    return this.#writer.writeFirst(entries, true);
  }

  /** Commits what the run does only once it is on record; waits for a store that is away. */
  writeIntent(entries: ReadonlyArray<Entry>): Effect.Effect<boolean> {
    return this.#writer.writeFirst(entries);
  }

  recordFacts(attempt: LedgerAttempt): Effect.Effect<boolean> {
    return this.write([factsRaised(attempt)]);
  }

  recordDispatch(attempt: LedgerAttempt): Effect.Effect<boolean> {
    return this.writeFirst([factsRaised(attempt)]);
  }

  /** Text goes on unrecorded. A call that must be on record waits for the store, and breaks the attempt without it (L8). */
  recordShown(attempt: Attempt<P>, calls: ReadonlyArray<NamedCall>): true | Deferred.Deferred<boolean> {
    this.note(attempt.number, "shown", attempt.facts.snapshot().shown);
    const waits = needsRecord(this, calls);
    return this.#writer.writeShown(attempt, calls, waits, (isOnRecord) => {
      // The run may have been lost while the store took the write.
      if (this.loss !== undefined) return this.flows && Losses.goesOn(this, attempt, calls);
      if (waits && !isOnRecord) attempt.decide(keptBack(this.runId));
      return isOnRecord || !waits;
    });
  }

  unrecorded(reason: string, first: boolean): void {
    if (first) this.note(this.attempts, "shown", "unrecorded");
    this.telemetry.unrecorded(reason);
  }

  /** The run is not this process's any more, by the first word: nothing more leaves or starts here but an end on record, and text that flows on. */
  lost(why: Losses.Loss): void {
    if (this.loss !== undefined) return;
    const flows = why === "taken_over" && Losses.isFlowing(this);
    this.chain?.seal();
    this.stopping.lost(why, (this.#endIsRecorded || this.handoff.recall(flows)) && flows);
    if (!this.flows) this.stop("lifecycle");
    else if (this.wholeBy !== undefined) Losses.notes(this, this.wholeBy);
  }

  /** The recorder has found that another process has taken the run over. */
  takenOver(): void {
    this.#writer.takenOver();
  }

  guards(tool: string): boolean {
    return this.sideEffects.guarded && this.options.tools.some((it) => label(it.name) === tool);
  }

  settledLate(attempt: LedgerAttempt): Effect.Effect<void> {
    const decided = this.response.lastDecided;
    if (decided?.attempt !== attempt) return Effect.void;
    // An open question is overtaken now, whatever time the writes before this one take.
    if (!this.grew()) return this.#late(this, decided.attempt, decided.failure);
    return Effect.sync(() => this.note(attempt.number, "late_settle"));
  }

  /** The run goes on where its record stands: a process before this one has driven it so far. */
  restored(run: Pick<Run<P, E, R>, "attempts" | "discardable" | "elapsedMs">, incidents: number): void {
    this.#discardable = run.discardable;
    this.#startedAt -= run.elapsedMs;
    this.numbered(run.attempts, incidents);
  }

  /** Records the end and ends the stream; the first end counts (L7). */
  finish(attempt: Attempt<P>, end: Omit<RunEnd, "attempts" | "at">, emit: () => void): Effect.Effect<void> {
    return this.#end(attempt, end, [this.#endOf(end)], emit);
  }

  /** As `finish`, of a run that has not ended, and without a fiber. @param over called once the stream has its end */
  finishThen(attempt: Attempt<P>, end: Omit<RunEnd, "attempts" | "at">, emit: () => void, over: () => void): void {
    const emitted = (exit: Exit.Exit<Written>): void => {
      try {
        if (Exit.isSuccess(exit)) this.#hasEnded(attempt, exit.value, end, emit);
        else this.handoff.end(Effect.failCause(exit.cause));
      } catch (defect) {
        this.handoff.end(Effect.die(defect));
      }
      over();
    };
    try {
      this.#writer.writeThen([...this.#ends(attempt, end), this.#endOf(end)], emitted);
    } catch (defect) {
      emitted(Exit.die(defect));
    }
  }

  /** Ends the stream and leaves the run to the process that takes it over, once no handler of it runs here. The first end counts. */
  park(attempt: Attempt<P>, reason: Parked, rule: Rule, emit: () => void): Effect.Effect<unknown> {
    const end: StreamEnd = { state: "parked", reason: rule };
    const parked: Entry = { _tag: "RunParked", reason };
    if (this.chain === undefined || this.chain.running === 0) return this.#end(attempt, end, [parked], emit);
    const free = Effect.andThen(this.chain.drained, this.write([parked]));
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
      // The caller hears of the end now, also where the store takes it later.
      const write = this.#writer.write([...this.#ends(attempt, end), ...entries], true);
      return Effect.map(write, (written) => this.#hasEnded(attempt, written, end, emit));
    });
  }

  /** From here on the run has its end. Gives what goes on record before it. */
  #ends(attempt: Attempt<P>, end: StreamEnd): ReadonlyArray<Entry> {
    this.ledger.ended = true;
    this.unheed();
    this.taps?.presence?.forgets(this);
    this.#options = letGo(this.#options);
    this.routes?.ended();
    this.seams?.ended();
    this.responded();
    this.note(this.attempts, "end", end.reason);
    return [factsRaised(attempt)];
  }

  /** A run that was lost has another end (L7). */
  #hasEnded(attempt: Attempt<P>, written: Written, end: StreamEnd, emit: () => void): void {
    this.#endIsRecorded = written === "recorded";
    const isWhole = written !== "lost" || (this.flows && end.state === "completed");
    this.telemetry.finished(isWhole ? end : { state: "stopped", reason: "lifecycle_closed" }, this.attempts);
    if (end.state === "completed" && !this.#endIsRecorded) this.wholeBy = attempt.number;
    if (written === "lost" && isWhole) Losses.notes(this, attempt.number);
    emit();
  }
}
