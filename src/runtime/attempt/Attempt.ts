/**
 * One attempt of a run: reads the provider's stream (directly or in a fiber), folds its facts and hands over its parts.
 *
 * Source, watchdog and cancel race to end the attempt; the `isOver` flag lets exactly one of them win. From then on the attempt is frozen:
 * parts that were not handed over wait for the decision, and further parts of the source are refused (L6).
 */
import type * as Cause from "effect/Cause";
import type * as Context from "effect/Context";
import type * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import type * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Option from "effect/Option";
import { Delivery } from "../../domain/AttemptFacts.ts";
import type { ClockName, Failure } from "../../domain/Failure.ts";
import { isProgress, type Observation } from "../../domain/Observation.ts";
import * as ObservationReading from "../../domain/ObservationReading.ts";
import type { FactsFold } from "../../facts/Facts.ts";
import { AttemptPath } from "../../paths/Path.ts";
import { closeGraceMs } from "../contract/Clocks.ts";
import type { AttemptContext, RunOptions } from "../contract/RunOptions.ts";
import type { SeamCheck } from "../contract/Stages.ts";
import type { ReaderWord } from "../contract/Taps.ts";
import { Fence } from "../tools/Fence.ts";
import type { NamedCall } from "../tools/ToolLedger.ts";
import { sourceOf } from "./AsyncSource.ts";
import { type AttemptEnd, ended, endOf, failureEnd, pathLost, terminalAtCleanEnd, unproven } from "./AttemptEnd.ts";
import type { AttemptHost, AttemptSetup, ErrorReader } from "./AttemptHost.ts";
import { HeldMarker } from "./HeldMarker.ts";
import { type FlowOwner, PartFlow } from "./PartFlow.ts";
import { DirectReading, type PartReader, readStream } from "./PartReader.ts";
import type { Batch } from "./Reveal.ts";
import type { Watch, WatchListener } from "./Watch.ts";

/** Progress of an attempt: created, started, first pull, response head, first part. */
const steps = { made: 0, started: 1, pulled: 2, answered: 3, responded: 4 } as const;

/** Rejects a resumed run without `canContinue`, because its first request would run the settled calls again (L2). */
const refuseContinuation = (): never => {
  throw new TypeError("canContinue: expected the function that opens a continuation, got none");
};

/** One attempt of a run. */
export class Attempt<P> implements FlowOwner, WatchListener, PartReader<P> {
  readonly setup: AttemptSetup<P>;
  #fence: Fence | undefined;
  readonly facts: FactsFold;
  /** Path of the request: the run's own, or the origin that the transport reported. */
  path: string;
  readonly #host: AttemptHost<P, Attempt<P>>;
  #watch: Watch | undefined;
  /** The fiber that reads the stream. Before the start, it waits for the attempt's turn. */
  #fiber: Fiber.Fiber<unknown, unknown> | undefined;
  /** Progress, as a value of `steps`. A single number saves memory, because many runs may wait at once. */
  #step: number = steps.made;
  isOver = false;
  /** Reads the source if it needs no fiber. */
  #reading: { readonly isOver: boolean; readonly close: () => void } | undefined;
  /** The end of the attempt. Set after the run has processed it. */
  #end: AttemptEnd | undefined;
  #whenEnded: ((end: AttemptEnd) => void) | undefined;
  #reports = false;
  #terminalAtEnd = false;
  /** True if the last finish counts only with a clean end and should be the last event. A long silence then counts as a clean end. */
  #lingers = false;
  /**
   * True if content has followed a finish that counts only with a clean end. The server then sends a finish with every chunk, so only a
   * clean end proves the last one.
   */
  #finishRecurs = false;
  /** True if content has arrived without a finish. The server then does not send a finish with every chunk. */
  #hasOpenContent = false;
  /** Created for a protocol that separates its terminal marker from its last event. */
  #marker: HeldMarker | undefined;
  /** Checks the parts of an attempt that continues shown text. */
  readonly #seam: SeamCheck<P> | undefined;
  #unpark: (() => void) | undefined;
  readonly flow: PartFlow<P>;
  /**
   * The cursor from which the response can resume. It stays undefined if the attempt has a seam, because the seam may withhold the end of
   * the part that carries the cursor (L4).
   */
  cursor: string | undefined;
  finish: string | undefined;

  constructor(host: AttemptHost<P, Attempt<P>>, setup: AttemptSetup<P>) {
    this.#host = host;
    this.setup = setup;
    this.facts = setup.facts;
    this.path = host.path;
    this.cursor = setup.cursor;
    this.flow = new PartFlow<P>(host, this, setup.reveal);
    this.#seam =
      setup.seam && host.seams?.check(setup.seam, { facts: setup.facts, onContinued: () => host.onContinued(this) });
  }

  get number(): number {
    return this.setup.number;
  }

  /** Decides which calls of this attempt may start. Created on first use, because many runs wait at once and few have called a tool. */
  get fence(): Fence {
    this.#fence ??= new Fence();
    return this.#fence;
  }

  /** Ordinal of the last part that a continuation keeps: the last text part, or the part of the last settled call if that came later. */
  get keepThrough(): number {
    return Math.max(this.flow.lastTextOrdinal, this.#host.ledger.lastSettledOrdinal(this));
  }

  get watch(): Watch | undefined {
    return this.#watch;
  }

  /**
   * Starts the attempt, in this step if its source can be read directly, else in a fiber.
   *
   * @param services services that the caller's stream needs
   * @param watch clocks of the attempt, running from now
   * @param errors converts an error of the source to a failure
   */
  start<E, R>(options: RunOptions<P, E, R>, services: Context.Context<R>, watch: Watch, errors: ErrorReader<E>): void {
    this.#watch = watch;
    this.#step = steps.started;
    const open = this.setup.request === "continue" ? options.canContinue : options.attempt;
    const made = this.#guard(() => (open ?? refuseContinuation)(this.#context()));
    // An attempt that its own factory has ended (by a signal or a cancel) opens no source, because nothing would close it.
    const stream = this.isOver ? undefined : made;
    const source = stream === undefined ? undefined : sourceOf(stream);
    if (source !== undefined) {
      const reading = new DirectReading(this, { source, options, onEnd: (exit) => this.#decideFrom(exit, errors) });
      this.#reading = reading;
      reading.step();
      return;
    }
    const pulled = stream === undefined ? Effect.void : readStream(stream, this, options);
    // Provided only here, because a source that is read directly has no transport that would use it.
    const read = Effect.provideService(Effect.scoped(this.#decideOnExit(pulled, errors)), AttemptPath, (reported) => {
      this.path = this.#host.attach(this.path, reported);
    });
    this.#fiber = Effect.runForkWith(services)(read);
  }

  /**
   * Waits before the start. Nothing is sent, no clock runs, and a close ends the wait immediately.
   *
   * @param go starts the attempt or decides its end
   */
  waitToStart(go: Effect.Effect<void>, services: Context.Context<never>): void {
    this.#step = steps.started;
    const waiting = Effect.runForkWith(services)(go);
    // `go` may have ended the wait and started the attempt within this call.
    if (this.#watch === undefined) this.#fiber = waiting;
  }

  /** True if the run was notified of the response head. */
  get isAnswered(): boolean {
    return this.#step >= steps.answered;
  }

  #onHead(): void {
    if (this.#step >= steps.answered) return;
    this.#step = steps.answered;
    this.#host.onHead(this.path);
  }

  /** Decides the end of the attempt before the stream's resources are released. */
  #decideOnExit<A, E, R>(reading: Effect.Effect<A, E | Cause.Done, R>, errors: ErrorReader<E>) {
    return Effect.onExit(reading, (exit) => Effect.sync(() => this.#decideFrom(exit, errors)));
  }

  #decideFrom<E>(exit: Exit.Exit<unknown, E | Cause.Done>, errors: ErrorReader<E>): void {
    if (!this.isOver) this.#guard(() => this.decide(this.#resolveEnd(endOf(exit, errors.classifying()))));
  }

  /** Handles the end of the source. A clean end after the marker releases the parts that the seam still withheld. */
  #resolveEnd(end: AttemptEnd): AttemptEnd {
    if (this.#seam === undefined || end._tag === "failed") return end;
    // A response without a marker was cut, so it does not prove the seam. The withheld text may be a repetition of the shown text.
    if (!this.#terminalAtEnd && !this.facts.snapshot().terminal_seen) return end;
    const rest = this.#seam.end();
    if (typeof rest === "string") return unproven(rest);
    // The seam withheld a finish that counts only with a clean end. The model itself stated that finish (L5).
    const last = rest.observations.at(-1);
    if (last !== undefined) this.#terminalAtEnd = last.terminal_at_end === true;
    this.finish = last?.finish ?? this.finish;
    this.flow.handOver(this.flow.pass(rest));
    return end;
  }

  onToolStart(): void {
    this.#watch?.hold(this.#host.now());
  }

  onToolEnd(): void {
    this.#watch?.release(this.#host.now());
  }

  onStalled(clock: ClockName): void {
    this.#host.note(this.number, "watchdog", clock);
    // The provider keeps its connection open after its finish. As after a clean end, nothing follows.
    if (this.#lingers && (clock === "idle" || clock === "silence")) {
      const end = this.#guard(() => this.#resolveEnd(ended));
      if (end !== undefined) this.decide(end);
      return;
    }
    this.decide({ _tag: "failed", failure: { kind: "stalled", clock }, cause: undefined });
  }

  onPathLost(): void {
    this.#host.note(this.number, "watchdog", pathLost);
    const operation = this.facts.snapshot().delivery === "accepted" ? "body" : "head";
    this.decide(failureEnd({ kind: "transport", code: pathLost, operation }, undefined));
  }

  onSuspended(ms: number): void {
    this.facts.suspended(ms);
    this.#host.note(this.number, "suspended");
  }

  recordShown(calls: ReadonlyArray<NamedCall>): true | Deferred.Deferred<boolean> {
    return this.#host.recordShown(this, calls);
  }

  onSlotFree(): void {
    this.#unpark?.();
  }

  /** Decides the end of the attempt and freezes everything in the same step. Only the first call has an effect. */
  decide(end: AttemptEnd): boolean {
    if (this.isOver) return false;
    this.isOver = true;
    this.fence.suspend();
    const frozen = this.#freeze(end);
    this.#host.onAttemptEnd(this, frozen);
    this.#end = frozen;
    const told = this.#whenEnded;
    this.#whenEnded = undefined;
    told?.(frozen);
    return true;
  }

  /** Calls the listener in the step that decides the end, or immediately if the attempt has ended. There is only one listener. */
  whenEnded(listener: (end: AttemptEnd) => void): void {
    if (this.#end === undefined) this.#whenEnded = listener;
    else listener(this.#end);
  }

  /** Waits for the end of the attempt. */
  get awaitEnd(): Effect.Effect<AttemptEnd> {
    if (this.#end !== undefined) return Effect.succeed(this.#end);
    return Effect.callback((resume) => this.whenEnded((end) => resume(Effect.succeed(end))));
  }

  /** Freezes the parts that were not handed over. If that throws, the run still gets an end, because no other code would end it (L7). */
  #freeze(end: AttemptEnd): AttemptEnd {
    try {
      if (!this.#isCut(end)) this.countMarker();
      this.flow.freeze(this.setup.reveal.release());
      if (end._tag === "ended" && this.#terminalAtEnd) this.facts.decoded(terminalAtCleanEnd);
      if (this.#step >= steps.pulled && !this.#reports) this.facts.delivery("ambiguous");
      return end;
    } catch (cause) {
      return failureEnd({ kind: "caller_failed" }, cause);
    }
  }

  /**
   * Counts a marker although the protocol's last event never arrived, because the response is complete anyway.
   *
   * @returns true if there was such a marker
   */
  countMarker(): boolean {
    if (this.#marker?.take() !== true) return false;
    this.facts.decoded(terminalAtCleanEnd);
    return true;
  }

  /** Returns the observation to count. While the whole response is held, its marker waits for the protocol's last event. */
  #due(observation: Observation): Observation {
    this.#marker ??= new HeldMarker();
    return this.#marker.due(observation, this.setup.reveal.isHoldingAll, () => this.#watch?.terminal(this.#host.now()));
  }

  /** True if the marker has arrived and the protocol's last event has not. */
  get isAwaitingLast(): boolean {
    return this.#marker?.isAwaitingLast === true;
  }

  /** Stops holding the whole response. Hands over the held parts that may be shown now, and later parts as they arrive. */
  endHold(): void {
    const { reveal } = this.setup;
    if (this.isOver || !reveal.isHoldingAll) return;
    this.#guard(() => this.flow.handOver(reveal.endHold(this.countMarker())));
  }

  /** Handles a change of the run's reader. The attempt keeps reading while the reader is away. */
  reader(word: ReaderWord): void {
    if (!this.isOver) this.#guard(() => this.flow.reader(word));
    if (word === "left") this.#unpark?.();
  }

  /** True if the response ended before the protocol's last event. The held parts were not shown, so they can be requested again. */
  #isCut(end: AttemptEnd): boolean {
    if (!this.setup.reveal.isHoldingAll) return false;
    const kind = end._tag === "failed" ? end.failure.kind : "truncated";
    if (kind === "transport") return true;
    return this.#marker?.isLastRequired === true && (kind === "truncated" || kind === "stalled");
  }

  /** True if all resources of the attempt are released. */
  get hasClosed(): boolean {
    return this.#reading?.isOver ?? this.#fiber?.pollUnsafe() !== undefined;
  }

  /**
   * Closes the source, or interrupts the fiber and waits at most `closeGraceMs` for its finalizers. Returns true if all resources are
   * released.
   */
  close(): Effect.Effect<boolean> {
    return Effect.suspend((): Effect.Effect<boolean> => {
      this.#reading?.close();
      if (this.hasClosed) return Effect.succeed(true);
      const fiber = this.#fiber;
      // A source that ends in its first step does so before `#fiber` is assigned. Close it in the next step.
      if (fiber === undefined) {
        return this.#step >= steps.started ? Effect.andThen(Effect.yieldNow, this.close()) : Effect.succeed(true);
      }
      fiber.interruptUnsafe();
      if (this.hasClosed) return Effect.succeed(true);
      return Effect.map(Effect.timeoutOption(Fiber.await(fiber), closeGraceMs), Option.isSome);
    });
  }

  arrive<E, R>(parts: ReadonlyArray<P>, options: RunOptions<P, E, R>): void {
    // `#guard` would allocate a closure for each part.
    try {
      this.#onParts(parts, options);
    } catch (cause) {
      this.decide(failureEnd({ kind: "caller_failed" }, cause));
    }
  }

  /** Marks the first pull or poll, after which something may have been sent. */
  onPull(): void {
    this.#step = Math.max(this.#step, steps.pulled);
  }

  /** Stops the clocks until the reader has emptied the slot, so that a slow caller never looks like a stalled provider. */
  park(free: () => void): void {
    this.#watch?.hold(this.#host.now());
    const unpark = () => {
      this.#watch?.release(this.#host.now());
      this.#unpark = undefined;
      free();
    };
    this.#unpark = unpark;
  }

  /** Runs the caller's code. Anything that it throws is the caller's failure, never the provider's. */
  #guard<A>(run: () => A): A | undefined {
    try {
      return run();
    } catch (cause) {
      this.decide(failureEnd({ kind: "caller_failed" }, cause));
      return undefined;
    }
  }

  #context(): AttemptContext {
    const { setup } = this;
    return {
      run_id: this.#host.runId,
      attempt: setup.number,
      mode: setup.mode,
      request: setup.request,
      calls: setup.calls,
      discarded: setup.discarded,
      route: setup.route,
      seam: setup.seam,
      cursor: setup.request === "resume" ? setup.cursor : undefined,
      delivery: (delivery, status) => {
        if (this.isOver) return;
        this.#reports = true;
        // An unknown value means that more may have happened, never less (L2).
        const known = Delivery.literals.includes(delivery) ? delivery : "accepted";
        this.facts.delivery(known);
        if (known === "ambiguous") this.#watch?.onRequestWritten(this.#host.now());
        // Only an accepted response may release other requests. The body of a refusal may still announce a cooldown.
        if (known === "accepted" && (status === undefined || (status >= 200 && status < 400))) this.#onHead();
      },
      bytes: (count) => {
        if (this.isOver) return;
        this.facts.bytes(ObservationReading.count(count));
        this.#watch?.bytes(this.#host.now());
      },
    };
  }

  #onParts<E, R>(parts: ReadonlyArray<P>, options: RunOptions<P, E, R>): void {
    if (this.isOver) {
      this.#host.note(this.number, "late_part_refused");
      return;
    }
    if (this.#step < steps.responded) {
      this.#onHead();
      this.#step = steps.responded;
      this.#host.onResponse();
    }
    if (this.#seam === undefined) this.#take(parts, options);
    else {
      const joined = this.#join(this.#seam, parts, options);
      if (joined !== undefined) this.#take(joined.parts, options, joined.observations);
    }
  }

  /** Joins parts to the shown text. If the seam cannot be proven, ends the attempt and returns undefined. */
  #join<E, R>(seam: SeamCheck<P>, parts: ReadonlyArray<P>, options: RunOptions<P, E, R>): Batch<P> | undefined {
    const observations = parts.map((part) => ObservationReading.read(options.observe(part)));
    // Parts that the seam withholds also reset the clocks.
    for (const { keep_alive } of observations) if (keep_alive) this.#watch?.keepAlive();
    this.#watch?.recordParts(this.#host.now(), observations.some(isProgress));
    // The last observation before a clean end determines whether the response is complete, so withheld parts count too.
    for (const observation of observations) {
      if (isProgress(observation) && observation.terminal_at_end !== true) this.#hasOpenContent = true;
      this.#mayEnd(observation);
    }
    const joined = seam.take({ parts, observations });
    if (typeof joined !== "string") return joined;
    this.decide(unproven(joined));
    return undefined;
  }

  #take<E, R>(parts: ReadonlyArray<P>, options: RunOptions<P, E, R>, said?: ReadonlyArray<Observation>): void {
    const { broken, observations } = this.#observe(parts, options, said);
    const seen = observations.length === parts.length ? parts : parts.slice(0, observations.length);
    const passed = this.flow.pass({ parts: seen, observations });
    if (broken === undefined) {
      this.flow.handOver(passed);
      return;
    }
    // Parts that arrived before the error wait for the decision, in order.
    this.flow.keepFrozen(passed);
    // The response was already complete at the marker, so an error after it changes nothing.
    this.countMarker();
    if (!broken.observation.terminal) this.facts.decoded(broken.observation);
    this.decide(failureEnd({ in_band: true, ...broken.failure }, broken.part));
  }

  /**
   * Tracks a finish that a clean end proves. Keep-alives after the finish change nothing. Silence proves the finish too, if it came with a
   * call or after content that had no finish. A finish in the first chunk proves nothing yet, because every chunk may carry one.
   */
  #mayEnd(observation: Observation): void {
    const { closes, keep_alive, terminal_at_end } = observation;
    if (this.#terminalAtEnd && isProgress(observation)) this.#finishRecurs = true;
    this.#terminalAtEnd = terminal_at_end === true;
    if (keep_alive && this.#terminalAtEnd) return;
    const lingered = this.#lingers;
    const isLast = this.#hasOpenContent || observation.calls.length > 0;
    this.#lingers = this.#terminalAtEnd && closes === undefined && !this.#finishRecurs && isLast;
    if (this.#lingers) this.#watch?.terminal(this.#host.now());
    else if (lingered) this.#watch?.forgetTerminal();
  }

  /** Observes parts up to the first that contains an error, and updates the clocks. */
  #observe<E, R>(parts: ReadonlyArray<P>, options: RunOptions<P, E, R>, said?: ReadonlyArray<Observation>) {
    // Nearly every chunk has one part, and V8 reserves room for seventeen elements when an empty array grows. So the array starts with one
    // element.
    let observations: Array<Observation> | undefined;
    let progress = false;
    let broken: { readonly part: P; readonly observation: Observation; readonly failure: Failure } | undefined;
    const hasCursor = this.#seam === undefined && options.cursor !== undefined;
    for (const part of parts) {
      const read = said?.[observations?.length ?? 0] ?? ObservationReading.read(options.observe(part));
      const observation = read.closes === undefined ? read : this.#due(read);
      if (observation.failure !== undefined) broken = { part, observation, failure: observation.failure };
      // A malformed finish is also the marker, so it is processed with the parts before it.
      if (broken !== undefined && !observation.terminal) break;
      if (isProgress(observation)) {
        progress = true;
        if (observation.terminal_at_end !== true) this.#hasOpenContent = true;
      }
      if (observation.keep_alive) this.#watch?.keepAlive();
      if (observation.finish !== undefined) this.finish = observation.finish;
      if (this.#seam === undefined && (this.#terminalAtEnd || observation.terminal_at_end === true))
        this.#mayEnd(observation);
      if (observation.terminal) {
        this.#host.note(this.number, "terminal_candidate", observation.finish);
        this.#watch?.terminal(this.#host.now());
      }
      if (hasCursor) this.cursor = ObservationReading.readCursor(options.cursor?.(part)) ?? this.cursor;
      if (observations === undefined) observations = [observation];
      else observations.push(observation);
      if (broken !== undefined) break;
    }
    this.#watch?.recordParts(this.#host.now(), progress);
    return { broken, observations: observations ?? [] };
  }
}
