/**
 * Is one attempt of a run: a fiber of its own reads the provider's stream, folds its facts and hands its parts over.
 *
 * One flag says whether the attempt has ended; source, watchdog and cancel race for it, and exactly one of them wins. From
 * that step on the attempt is frozen: what was not handed over waits for the decision, and the attempt refuses whatever the
 * source still says (L6).
 */
import type * as Cause from "effect/Cause";
import type * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Fiber from "effect/Fiber";
import * as Option from "effect/Option";
import type * as Scope from "effect/Scope";
import * as Stream from "effect/Stream";
import { Delivery } from "../../domain/AttemptFacts.ts";
import type { ClockName, Failure } from "../../domain/Failure.ts";
import { none, type Observation } from "../../domain/Observation.ts";
import * as ObservationReading from "../../domain/ObservationReading.ts";
import type { AttemptMode } from "../../domain/RunFacts.ts";
import type { FactsFold } from "../../facts/Facts.ts";
import { AttemptPath } from "../../paths/Path.ts";
import { closeGraceMs } from "../contract/Clocks.ts";
import type { AttemptContext, RunOptions, Withdrawn } from "../contract/RunOptions.ts";
import type { SettledCall } from "../contract/ToolCall.ts";
import { Fence } from "../tools/Fence.ts";
import type { NamedCall } from "../tools/ToolLedger.ts";
import { type AsyncSource, sourceOf } from "./AsyncSource.ts";
import { type AttemptEnd, endOf, failed, pathLost } from "./AttemptEnd.ts";
import type { AttemptHost, ErrorReader } from "./AttemptHost.ts";
import { type FlowOwner, PartFlow } from "./PartFlow.ts";
import type { Carried, Reveal } from "./Reveal.ts";
import type { Watch, WatchListener } from "./Watchdog.ts";

/** What makes one attempt of a run different from the next. */
export interface AttemptSetup<P> {
  /** Counts the attempts of the run, from 1. */
  readonly number: number;
  readonly mode: AttemptMode;
  readonly request: AttemptContext["request"];
  readonly calls: ReadonlyArray<SettledCall>;
  readonly cursor: string | undefined;
  readonly discarded: ReadonlyArray<Withdrawn>;
  /** The route that it goes by; undefined for the run's own first one. */
  readonly route: string | undefined;
  readonly facts: FactsFold;
  readonly reveal: Reveal<P>;
  /** Parts of the same response that were held back before; they are in `reveal` already. */
  readonly carried: Carried<P> | undefined;
}

/** One attempt of a run. */
export class Attempt<P> implements FlowOwner, WatchListener {
  readonly setup: AttemptSetup<P>;
  readonly fence = new Fence();
  readonly facts: FactsFold;
  readonly path: string;
  readonly #host: AttemptHost<P, Attempt<P>>;
  #watch: Watch | undefined;
  #fiber: Fiber.Fiber<unknown, unknown> | undefined;
  #started = false;
  #responded = false;
  #answered = false;
  #over = false;
  /** How the attempt has ended; set once its run has taken note of it. */
  #end: AttemptEnd | undefined;
  #whenEnded: ((end: AttemptEnd) => void) | undefined;
  #pulled = false;
  #reports = false;
  #terminalAtEnd = false;
  /** While the whole response is held: the finish of a marker that has come before the protocol's last event. */
  #marker: { readonly finish: string | undefined } | undefined;
  #unpark: (() => void) | undefined;
  readonly flow: PartFlow<P>;
  cursor: string | undefined;
  finish: string | undefined;

  constructor(host: AttemptHost<P, Attempt<P>>, setup: AttemptSetup<P>) {
    this.#host = host;
    this.setup = setup;
    this.facts = setup.facts;
    this.path = host.path;
    this.cursor = setup.cursor;
    this.flow = new PartFlow<P>(host, this);
  }

  get number(): number {
    return this.setup.number;
  }

  /** What a continuation keeps: text, and the calls that have settled. */
  get keepThrough(): number {
    return Math.max(this.flow.lastTextOrdinal, this.#host.ledger.settledThrough(this));
  }

  get watch(): Watch | undefined {
    return this.#watch;
  }

  /**
   * Starts the attempt's fiber.
   *
   * @param services what the caller's stream needs
   * @param watch the attempt's clocks, running from now
   * @param errors says how an error of the source becomes a failure
   */
  start<E, R>(options: RunOptions<P, E, R>, services: Context.Context<R>, watch: Watch, errors: ErrorReader<E>): void {
    this.#watch = watch;
    this.#started = true;
    const read = Effect.suspend(() => {
      const made = this.#guarded(() => options.attempt(this.#context()));
      // An attempt that ends in its own factory, by a signal or a cancel, opens no source: nothing would close it.
      const stream = this.#over ? undefined : made;
      const source = stream === undefined ? undefined : sourceOf(stream);
      if (source !== undefined) return this.#decided(this.#readDirectly(source, options), errors);
      const pulled = stream === undefined ? Effect.void : this.#read(stream, options);
      // Only here: a source that is read directly has no transport below it that could ask for it, and holds nothing.
      return Effect.provideService(Effect.scoped(this.#decided(pulled, errors)), AttemptPath, (way) =>
        this.#host.attach(this.path, way),
      );
    });
    this.#fiber = Effect.runForkWith(services)(read);
  }

  /**
   * Waits before it starts: nothing is sent, no clock runs, and a close ends the wait at once.
   *
   * @param go starts the attempt or decides its end
   */
  waits(go: Effect.Effect<void>, services: Context.Context<never>): void {
    this.#started = true;
    this.#fiber = Effect.runForkWith(services)(go);
  }

  /** The run has heard that the head of a response has come. */
  get isAnswered(): boolean {
    return this.#answered;
  }

  #headCame(): void {
    if (this.#answered) return;
    this.#answered = true;
    this.#host.answered();
  }

  /** Lets the end of the reading decide, before what the reading opened is closed. */
  #decided<A, E, R>(reading: Effect.Effect<A, E | Cause.Done, R>, errors: ErrorReader<E>) {
    return Effect.onExit(reading, (exit) =>
      Effect.sync(() => {
        if (!this.#over) this.#guarded(() => this.decide(endOf(exit, errors.classifying())));
      }),
    );
  }

  toolStarted(): void {
    this.#watch?.hold(this.#host.now());
  }

  toolEnded(): void {
    this.#watch?.release(this.#host.now());
  }

  stalled(clock: ClockName): void {
    this.#host.note(this.number, "watchdog", clock);
    this.decide({ _tag: "failed", failure: { kind: "stalled", clock }, cause: undefined });
  }

  lost(): void {
    this.#host.note(this.number, "watchdog", pathLost);
    const operation = this.facts.snapshot().delivery === "accepted" ? "body" : "head";
    this.decide(failed({ kind: "transport", code: pathLost, operation }, undefined));
  }

  suspended(ms: number): void {
    this.facts.suspended(ms);
    this.#host.note(this.number, "suspended");
  }

  recordShown(calls: ReadonlyArray<NamedCall>): Effect.Effect<boolean> {
    return this.#host.recordShown(this, calls);
  }

  taken(): void {
    this.#unpark?.();
  }

  /** Decides how the attempt ends. Only the first call counts; it freezes everything in the same step. */
  decide(end: AttemptEnd): boolean {
    if (this.#over) return false;
    this.#over = true;
    this.fence.suspend();
    const frozen = this.#frozen(end);
    this.#host.ended(this, frozen);
    this.#end = frozen;
    const told = this.#whenEnded;
    this.#whenEnded = undefined;
    told?.(frozen);
    return true;
  }

  /** Calls the one listener in the step that decides the end, or now where the attempt has ended. */
  whenEnded(listener: (end: AttemptEnd) => void): void {
    if (this.#end === undefined) this.#whenEnded = listener;
    else listener(this.#end);
  }

  /** Waits for the end of the attempt. */
  get ended(): Effect.Effect<AttemptEnd> {
    return Effect.callback((resume) => this.whenEnded((end) => resume(Effect.succeed(end))));
  }

  /** Freezes what was not handed over. Whatever throws in here, the run hears of an end, because it waits for nothing else (L7). */
  #frozen(end: AttemptEnd): AttemptEnd {
    try {
      if (!this.#isCut(end)) this.countMarker();
      this.flow.freeze(this.setup.reveal.release());
      if (end._tag === "ended" && this.#terminalAtEnd) this.facts.decoded(terminalAtCleanEnd);
      if (this.#pulled && !this.#reports) this.facts.delivery("ambiguous");
      return end;
    } catch (cause) {
      return failed({ kind: "caller_failed" }, cause);
    }
  }

  /**
   * Counts a marker whose protocol's last event never came: the response is whole all the same.
   *
   * @returns whether there was such a marker
   */
  countMarker(): boolean {
    if (this.#marker === undefined) return false;
    this.#marker = undefined;
    this.facts.decoded(terminalAtCleanEnd);
    return true;
  }

  /** A marker has come, and the protocol's last event has not. */
  get awaitsLast(): boolean {
    return this.#marker !== undefined;
  }

  /** Holds the whole response no longer: what may be shown of it is handed over now, and the rest as it comes. */
  endHold(): void {
    const { reveal } = this.setup;
    if (this.#over || !reveal.holdsAll) return;
    this.#guarded(() => {
      const passed = reveal.endHold(this.countMarker());
      if (passed.parts.length > 0) this.flow.offer(passed);
    });
  }

  /** The connection broke before the protocol's last event: what is held may be asked for again, unseen. */
  #isCut(end: AttemptEnd): boolean {
    const { reveal } = this.setup;
    return reveal.holdsAll && end._tag === "failed" && end.failure.kind === "transport";
  }

  /** The observation as it counts: where the whole response is held, its marker waits for the protocol's last event. */
  #due(observation: Observation): Observation {
    const { closes, failure, finish, terminal } = observation;
    if (closes === undefined) return observation;
    if (closes === "later" && terminal && failure === undefined && this.setup.reveal.holdsAll) {
      this.#marker = { finish };
      this.#watch?.terminal();
      return { ...observation, terminal: false };
    }
    if (closes !== "now" || this.#marker === undefined) return observation;
    const marker = this.#marker;
    this.#marker = undefined;
    return { ...observation, terminal: true, ...(marker.finish === undefined ? {} : { finish: marker.finish }) };
  }

  /** Interrupts the fiber and waits for its finalizers, at most the close grace. Returns whether it has closed. */
  close(): Effect.Effect<boolean> {
    return Effect.suspend((): Effect.Effect<boolean> => {
      const fiber = this.#fiber;
      // A source that ends in its very first step ends before its fiber is known, and is closed like any other.
      if (fiber === undefined) {
        return this.#started ? Effect.andThen(Effect.yieldNow, this.close()) : Effect.succeed(true);
      }
      fiber.interruptUnsafe();
      return Effect.map(Effect.timeoutOption(Fiber.await(fiber), closeGraceMs), Option.isSome);
    });
  }

  /** The read loop: parked while the slot is full, else reading. */
  #read<E, R>(
    stream: Stream.Stream<P, E, R>,
    options: RunOptions<P, E, R>,
  ): Effect.Effect<void, E | Cause.Done, R | Scope.Scope> {
    return Effect.flatMap(Stream.toPull(stream), (pull) => {
      const parked = this.#parked();
      this.#pulled = true;
      return Effect.whileLoop({
        while: () => !this.#over,
        body: (): Effect.Effect<ReadonlyArray<P>, E | Cause.Done, R> => (this.flow.full ? parked : pull),
        step: (parts) => {
          if (parts.length > 0) this.#guarded(() => this.#arrived(parts, options));
        },
      });
    });
  }

  /** Reads a source without a fiber in between: it hands its chunks over in the step in which they arrive. */
  #readDirectly<E, R>(source: AsyncSource<P, E>, options: RunOptions<P, E, R>): Effect.Effect<void, E | Cause.Done> {
    return Effect.callback((resume) => {
      const reader = source.open();
      this.#pulled = true;
      const step = (): void => {
        let polled = this.#over ? undefined : reader.poll();
        while (polled?._tag === "chunk") {
          const { chunk } = polled;
          this.#guarded(() => this.#arrived(chunk, options));
          if (this.flow.full) {
            this.#park(step);
            return;
          }
          polled = this.#over ? undefined : reader.poll();
        }
        if (this.#over || polled?._tag === "end") resume(Effect.void);
        else if (polled?._tag === "error") resume(Effect.fail(source.onError(polled.error)));
        else reader.wait(step);
      };
      step();
      return Effect.sync(() => reader.close());
    });
  }

  /** Waits until the reader has taken the slot. The clocks stand still: a slow caller is never a stalled provider. */
  #parked(): Effect.Effect<ReadonlyArray<P>> {
    return Effect.callback((resume) => {
      if (!this.flow.full) return resume(Effect.succeed([]));
      return this.#park(() => resume(Effect.succeed([])));
    });
  }

  /** Stops the clocks until the slot is taken. */
  #park(free: () => void): void {
    this.#watch?.hold(this.#host.now());
    this.#unpark = () => {
      this.#watch?.release(this.#host.now());
      this.#unpark = undefined;
      free();
    };
  }

  /** Runs the caller's own code: what it throws is the caller's failure, never the provider's. */
  #guarded<A>(run: () => A): A | undefined {
    try {
      return run();
    } catch (cause) {
      this.decide(failed({ kind: "caller_failed" }, cause));
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
      cursor: setup.request === "resume" ? setup.cursor : undefined,
      delivery: (delivery, status) => {
        if (this.#over) return;
        this.#reports = true;
        // A word that is not known means that more may have happened, never less (L2).
        const known = Delivery.literals.includes(delivery) ? delivery : "accepted";
        this.facts.delivery(known);
        // What a refusal announces stands in its body too: until that is read, nobody goes because of its head.
        if (known === "accepted" && (status === undefined || (status >= 200 && status < 400))) this.#headCame();
      },
      bytes: (count) => {
        if (this.#over) return;
        this.facts.bytes(ObservationReading.count(count));
        this.#watch?.bytes(this.#host.now());
      },
    };
  }

  #arrived<E, R>(parts: ReadonlyArray<P>, options: RunOptions<P, E, R>): void {
    if (this.#over) {
      this.#host.note(this.number, "late_part_refused");
      return;
    }
    if (!this.#responded) {
      this.#responded = true;
      this.#headCame();
      this.#host.responded();
    }
    const observations: Array<Observation> = [];
    const broken = this.#observe(parts, options, observations);
    const seen = observations.length === parts.length ? parts : parts.slice(0, observations.length);
    const passed = this.setup.reveal.pass({ parts: seen, observations });
    if (broken === undefined) {
      if (passed.parts.length > 0) this.flow.offer(passed);
      return;
    }
    // What came before the error was seen, in order, and waits for the decision.
    this.flow.keepFrozen(passed);
    // An error behind the marker takes nothing back.
    this.countMarker();
    if (!broken.observation.terminal) this.facts.decoded(broken.observation);
    this.decide(failed({ in_band: true, ...broken.failure }, broken.part));
  }

  /** Observes parts up to the first that carries an error, and tells the clocks. */
  #observe<E, R>(parts: ReadonlyArray<P>, options: RunOptions<P, E, R>, observations: Array<Observation>) {
    let progress = false;
    let broken: { readonly part: P; readonly observation: Observation; readonly failure: Failure } | undefined;
    for (const part of parts) {
      const observation = this.#due(ObservationReading.read(options.observe(part)));
      if (observation.failure !== undefined) broken = { part, observation, failure: observation.failure };
      // A finish that is malformed is the marker too, and goes with what came before it.
      if (broken !== undefined && !observation.terminal) break;
      if (observation.progress === "output" || observation.progress === "reasoning") progress = true;
      if (observation.keep_alive) this.#watch?.keepAlive();
      if (observation.finish !== undefined) this.finish = observation.finish;
      if (observation.terminal) {
        this.#host.note(this.number, "terminal_candidate", observation.finish);
        this.#watch?.terminal();
      }
      this.#terminalAtEnd = observation.terminal_at_end === true;
      if (options.cursor !== undefined) this.cursor = cursorOf(options.cursor(part)) ?? this.cursor;
      observations.push(observation);
      if (broken !== undefined) break;
    }
    this.#watch?.arrived(this.#host.now(), progress);
    return broken;
  }
}

/** Gemini's marker is its last finishReason and a clean end: it is a fact of the end, not of a part. */
const terminalAtCleanEnd: Observation = { ...none, terminal: true, quiet: true };

/** A cursor is a text; null and undefined say that a part has none. */
const cursorOf = (given: string | null | undefined): string | undefined => {
  if (given === undefined || given === null || typeof given === "string") return given ?? undefined;
  throw new TypeError("cursor: expected a text or undefined");
};
