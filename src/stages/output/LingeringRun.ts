/**
 * The output of a run whose readers come and go, one at a time.
 *
 * Events are kept in the step in which they leave the run, and each reader takes from the kept events. The run is asked for more only if
 * the reader has taken all of them and waits. So a part still counts as shown when the reader takes it (L4), and an interrupted reader
 * loses nothing. Without a reader the run holds its parts (Presence), but its other events and its end are kept.
 *
 * A reader is detached when its consumer leaves without a signed cancel. The run then continues for the linger time, and is then cancelled
 * on behalf of its user (L10). An ended run is kept for the same time. A new reader replaces the previous one. A run whose events exceed
 * the limits continues, but no reader can attach to it any more.
 */
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import type * as Fiber from "effect/Fiber";
import { weigherOf } from "../../runtime/attempt/Reveal.ts";
import type { AttachAfter, AttachRefused } from "../../runtime/contract/AttachRefused.ts";
import { canReturn, deriveStopper } from "../../runtime/contract/InterruptSignature.ts";
import { type RunEvent, RunInterrupted } from "../../runtime/contract/RunEvent.ts";
import type { RunOptions } from "../../runtime/contract/RunOptions.ts";
import type { Readers, ReadHost, Taken } from "../../runtime/contract/Stages.ts";
import type { Taps } from "../../runtime/contract/Taps.ts";
import { KeptEvents, type KeptPool } from "./KeptEvents.ts";
import { Presence } from "./Presence.ts";

/** One reader of a run, with the position after its last event. */
interface Reader<P> {
  position: number;
  /** Events before this position were taken by earlier readers. */
  readonly deliveredTo: number;
  /** True if another reader has replaced this one. */
  isReplaced: boolean;
  /** Resumes the waiting reader; undefined if it does not wait. */
  resume: ((taken: Taken<P>) => void) | undefined;
}

/** A reader that was attached. */
interface AttachedReader<P> {
  readonly take: Taken<P>;
  /** Called when the reader leaves. */
  readonly detach: (exit: Exit.Exit<unknown, unknown>) => boolean;
}

/** A run that can continue without a reader. */
export class LingeringRun<P> implements Readers<P> {
  readonly #lingerMs: number;
  readonly #kept: KeptEvents<P>;
  readonly #presence: Presence;
  /** The reader that the run starts with. */
  readonly #first: Reader<P> = { position: 0, deliveredTo: 0, isReplaced: false, resume: undefined };
  /** Events before this position were taken by a reader. */
  #deliveredTo = 0;
  /** Undefined until the run begins. */
  #run: ReadHost<P> | undefined;
  #reader: Reader<P> | undefined = this.#first;
  #end: Taken<P> | undefined;
  /** The pending pull from the run; undefined if there is none. */
  #asked: { fiber?: Fiber.Fiber<unknown> } | undefined;
  #timer: Fiber.Fiber<unknown> | undefined;
  #whenOver: (() => void) | undefined;
  #isOver = false;

  readonly #list: (run: LingeringRun<P>, runId: string) => void;

  /**
   * @param lingerMs time that the run continues without a reader, in milliseconds
   * @param list lists the run when it begins
   */
  constructor(
    lingerMs: number,
    pool: KeptPool,
    sizeOf: RunOptions<P, never, never>["sizeOf"],
    list: (run: LingeringRun<P>, runId: string) => void,
  ) {
    this.#list = list;
    this.#lingerMs = lingerMs;
    this.#kept = new KeptEvents(pool, weigherOf(sizeOf));
    this.#presence = new Presence(() => this.#kept.bytes);
    this.#presence.whenEvicted(() => {
      this.#kept.markIncomplete();
      this.#kept.dropBefore(this.#kept.end);
    });
  }

  get taps(): Taps<P> {
    return {
      presence: this.#presence,
      weighed: (event, observation) => this.#kept.weigh(event, observation),
      tee: (events) => {
        this.#keep(events);
        return false;
      },
    };
  }

  begin(run: ReadHost<P>): Taken<P> {
    this.#run = run;
    this.#list(this, run.runId);
    return this.#take(this.#first);
  }

  leave(exit: Exit.Exit<unknown, unknown>): boolean {
    return this.#detach(this.#first, exit);
  }

  /** Registers a listener that is called when no reader can attach any more. There is only one listener. */
  whenOver(listener: () => void): void {
    this.#whenOver = listener;
  }

  /** True if the run has ended and has no reader. Idle runs are evicted first. */
  get isIdle(): boolean {
    return this.#end !== undefined && this.#reader === undefined;
  }

  /** Prevents readers from attaching, because too many runs keep events already. */
  refuseReaders(): void {
    this.#kept.markIncomplete();
  }

  /** Attaches a reader after its last event and replaces the previous reader, or returns the reason why the reader cannot attach. */
  attach(after: AttachAfter | undefined): AttachedReader<P> | AttachRefused["reason"] {
    if (this.#presence.isEvicted) return "evicted";
    if (this.#run?.stopper !== undefined) return "ended";
    if (!this.#kept.isWhole) return "evicted";
    const position = after === undefined ? 0 : this.#kept.positionAfter(after);
    if (position === undefined) return "ahead";
    const before = this.#reader;
    const reader: Reader<P> = { position, deliveredTo: this.#deliveredTo, isReplaced: false, resume: undefined };
    this.#reader = reader;
    this.#stopTimer();
    // The pending pull served the previous reader or none. It is repeated once this reader has taken all kept events.
    this.#cancelPull();
    if (before !== undefined) {
      before.isReplaced = true;
      this.#serve(before);
    }
    this.#presence.markPresent();
    return { take: this.#take(reader), detach: (exit) => this.#detach(reader, exit) };
  }

  /** Returns the effect that takes the next events of a reader. */
  #take(reader: Reader<P>): Taken<P> {
    return Effect.suspend((): Taken<P> => {
      if (reader.isReplaced) return Effect.fail(this.#replacedError);
      const events = this.#eventsFor(reader);
      if (isFilled(events)) {
        reader.position = this.#kept.end;
        this.#deliveredTo = Math.max(this.#deliveredTo, reader.position);
        if (!this.#kept.isWhole) this.#kept.dropBefore(reader.position);
        return Effect.succeed(events);
      }
      if (this.#end !== undefined) return this.#end;
      return Effect.callback((resume) => {
        reader.resume = resume;
        this.#ask();
        return Effect.sync(() => {
          if (reader.resume === resume) reader.resume = undefined;
        });
      });
    });
  }

  /** Returns the events that a reader has not taken. Calls that were delivered before are marked, so that none runs twice. */
  #eventsFor({ deliveredTo, position }: Reader<P>): ReadonlyArray<RunEvent<P>> {
    const events = this.#kept.readFrom(position);
    const again = deliveredTo - position;
    return again <= 0 ? events : events.map((event, at) => (at < again ? markDelivered(event) : event));
  }

  /**
   * Handles the departure of a reader.
   *
   * @returns true if the run stops, has ended or never began. The consumer then waits for the end of the run
   */
  #detach(reader: Reader<P>, exit: Exit.Exit<unknown, unknown>): boolean {
    const run = this.#run;
    if (run === undefined) return true;
    if (this.#reader !== reader) return false;
    this.#reader = undefined;
    if (!run.ledger.ended && run.stopper === undefined && !canReturn(exit)) run.stop(deriveStopper(exit));
    if (run.stopper === undefined) this.#presence.markAway();
    // The whole response can no longer reach a reader, because part of it is gone.
    if (this.#presence.isAway && !this.#kept.isWhole) this.#presence.evict();
    if (this.#isOver) this.#discardKept();
    else {
      this.#startTimer();
      this.#ask();
    }
    return run.ledger.ended || run.stopper !== undefined;
  }

  /** Stops keeping events and prevents further readers. A present reader continues. */
  retire(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopTimer();
    this.#whenOver?.();
    if (this.#reader === undefined) this.#discardKept();
  }

  #keep(events: ReadonlyArray<RunEvent<P>>): void {
    this.#kept.add(events);
    if (this.#kept.isWhole || this.#reader !== undefined) return;
    if (this.#presence.isAway) this.#presence.evict();
    this.#kept.dropBefore(this.#kept.end);
  }

  /** Pulls from the run, if a reader waits or no reader is present. */
  #ask(): void {
    const run = this.#run;
    const isWanted = this.#reader === undefined ? !this.#isOver : this.#reader.resume !== undefined;
    if (run === undefined || this.#asked !== undefined || this.#end !== undefined || !isWanted) return;
    const asked: { fiber?: Fiber.Fiber<unknown> } = {};
    this.#asked = asked;
    const onTaken = Effect.map(Effect.exit(run.handoff.take), (exit) => {
      if (this.#asked !== asked) return;
      this.#asked = undefined;
      if (Exit.isFailure(exit)) this.#finish(Effect.failCause(exit.cause));
      if (this.#reader !== undefined) this.#serve(this.#reader);
      this.#ask();
    });
    asked.fiber = Effect.runForkWith(run.services)(onTaken);
  }

  /** Cancels the pending pull. Events that have left the run are kept. */
  #cancelPull(): void {
    const asked = this.#asked;
    this.#asked = undefined;
    asked?.fiber?.interruptUnsafe();
  }

  #serve(reader: Reader<P>): void {
    const { resume } = reader;
    reader.resume = undefined;
    resume?.(this.#take(reader));
  }

  #finish(end: Taken<P>): void {
    this.#end = end;
    if (this.#reader !== undefined || this.#isOver) return;
    this.#startTimer();
    // A cancelled run accepts no reader, so its events are not kept.
    if (this.#run?.stopper !== undefined) this.#discardKept();
  }

  #startTimer(): void {
    const run = this.#run;
    if (run === undefined) return;
    this.#stopTimer();
    const over = Effect.sync(() => {
      this.#timer = undefined;
      if (!run.ledger.ended) run.stop("user");
      this.retire();
    });
    this.#timer = Effect.runForkWith(run.services)(Effect.delay(over, this.#lingerMs));
  }

  #stopTimer(): void {
    const timer = this.#timer;
    this.#timer = undefined;
    timer?.interruptUnsafe();
  }

  /** Discards the kept events (L11). */
  #discardKept(): void {
    this.#cancelPull();
    this.#kept.markIncomplete();
    this.#kept.dropBefore(this.#kept.end);
  }

  get #replacedError(): RunInterrupted {
    return new RunInterrupted({
      reason: "attached_elsewhere",
      run_id: this.#run?.runId ?? "",
      rule: "caller_interrupted",
      failure: { kind: "cancelled", by: "caller" },
      attempts: this.#run?.attempts ?? 0,
      message: "Another reader attached to this run and took over. The run continues, and nothing was repeated.",
    });
  }
}

const markDelivered = <P>(event: RunEvent<P>): RunEvent<P> => {
  if (event._tag !== "Part" || event.calls === undefined) return event;
  const { calls, ...part } = event;
  return { ...part, delivered_calls: calls.map((call) => ({ ...call, delivered: true })) };
};

const isFilled = <A>(events: ReadonlyArray<A>): events is readonly [A, ...Array<A>] => events.length > 0;
