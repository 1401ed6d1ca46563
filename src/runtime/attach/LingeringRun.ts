/**
 * Is the output of a run whose readers come and go: one of them at a time.
 *
 * What leaves the run is kept in the step in which it leaves, and each reader takes from what is kept. The run is asked for more only
 * where the reader has all of that and waits: so a part still counts as shown when the reader takes it (L4), and a reader that is
 * interrupted loses nothing. While no reader is there the run holds its parts (Presence); its other events, and its end, are kept.
 *
 * A reader departs when its consumer goes away without a signed cancel. Then the run goes on for its time, and is cancelled in its
 * user's name when that is over (L10); a run that has ended stays for the same time behind its end. A reader that attaches takes the
 * place of the one before. A run whose events do not fit goes on and cannot be attached to any more.
 */
import type * as Cause from "effect/Cause";
import type * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import type * as Fiber from "effect/Fiber";
import type { Handoff } from "../attempt/Handoff.ts";
import { weigherOf } from "../attempt/Reveal.ts";
import type { AttachAfter, AttachRefused } from "../contract/AttachRefused.ts";
import { departs, type Stopper, stopperOf } from "../contract/InterruptSignature.ts";
import { Presence } from "../contract/Presence.ts";
import { type RunEvent, RunInterrupted } from "../contract/RunEvent.ts";
import type { RunOptions } from "../contract/RunOptions.ts";
import type { Taps } from "../contract/Taps.ts";
import { KeptEvents, type KeptPool } from "./KeptEvents.ts";

/** What readers need of their run. */
interface ReadRun<P> {
  readonly runId: string;
  readonly attempts: number;
  readonly handoff: Pick<Handoff<P>, "take">;
  readonly ledger: { readonly ended: boolean };
  /** Why the run stops; undefined while it runs. */
  readonly stopper: Stopper | undefined;
  readonly stop: (by: Stopper) => void;
  /** What the run's own fibers run with. */
  readonly services: Context.Context<never>;
}

type Events<P> = readonly [RunEvent<P>, ...Array<RunEvent<P>>];

/** What a reader pulls. */
export type Taken<P> = Effect.Effect<Events<P>, RunInterrupted | Cause.Done>;

/** One reader of a run, and the position behind what it has. */
interface Reader<P> {
  position: number;
  /** Events before this position were taken by readers before it. */
  readonly deliveredTo: number;
  /** Another reader has taken its place. */
  isReplaced: boolean;
  /** It waits. */
  resume: ((taken: Taken<P>) => void) | undefined;
}

/** A reader that was attached. */
interface AttachedReader<P> {
  readonly take: Taken<P>;
  /** It goes away. */
  readonly left: (exit: Exit.Exit<unknown, unknown>) => boolean;
}

/** A run that goes on without its reader. */
export class LingeringRun<P> {
  readonly #lingerMs: number;
  readonly #kept: KeptEvents<P>;
  readonly #presence: Presence;
  /** The reader that the run begins with. */
  readonly first: Reader<P> = { position: 0, deliveredTo: 0, isReplaced: false, resume: undefined };
  /** Events before this position were taken by a reader. */
  #deliveredTo = 0;
  /** Undefined until the run has begun. */
  #run: ReadRun<P> | undefined;
  #reader: Reader<P> | undefined = this.first;
  #end: Taken<P> | undefined;
  /** What is asked of the run. */
  #asked: { fiber?: Fiber.Fiber<unknown> } | undefined;
  #timer: Fiber.Fiber<unknown> | undefined;
  #whenOver: (() => void) | undefined;
  #isOver = false;

  private constructor(lingerMs: number, pool: KeptPool, sizeOf: RunOptions<P, never, never>["sizeOf"]) {
    this.#lingerMs = lingerMs;
    this.#kept = new KeptEvents(pool, weigherOf(sizeOf));
    this.#presence = new Presence(() => this.#kept.bytes);
    this.#presence.whenEvicted(() => {
      this.#kept.breaks();
      this.#kept.dropBefore(this.#kept.end);
    });
  }

  /** The readers of a run with these options; undefined where it ends with its one reader. */
  static readonly of = <P, E, R>(
    { lingerMs = 0, sizeOf }: RunOptions<P, E, R>,
    pool: KeptPool,
  ): LingeringRun<P> | undefined => (lingerMs > 0 ? new LingeringRun<P>(lingerMs, pool, sizeOf) : undefined);

  /** The taps that the run needs. */
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

  /** The run begins; its first reader is there. */
  begins(run: ReadRun<P>): void {
    this.#run = run;
  }

  /** Calls the one listener when no reader can be attached any more, because the time is over. */
  whenOver(listener: () => void): void {
    this.#whenOver = listener;
  }

  /** It has ended and nobody reads it: of all that are kept it is missed least. */
  get isIdle(): boolean {
    return this.#end !== undefined && this.#reader === undefined;
  }

  /** There is no room for the run among those that can be attached to. */
  breaks(): void {
    this.#kept.breaks();
  }

  /** Attaches a reader behind what it has, in the place of the one before; or says why it cannot. */
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
    // What was asked for the reader before, or for none, is asked again once this one has all that is kept.
    this.#recall();
    if (before !== undefined) {
      before.isReplaced = true;
      this.#serve(before);
    }
    this.#presence.returns();
    return { take: this.take(reader), left: (exit) => this.left(reader, exit) };
  }

  /** What a reader pulls. */
  take(reader: Reader<P>): Taken<P> {
    return Effect.suspend((): Taken<P> => {
      if (reader.isReplaced) return Effect.fail(this.#replaced);
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

  /** The events that a reader has not taken. Calls that were delivered before say so: nothing may be run twice. */
  #eventsFor({ deliveredTo, position }: Reader<P>): ReadonlyArray<RunEvent<P>> {
    const events = this.#kept.from(position);
    const again = deliveredTo - position;
    return again <= 0 ? events : events.map((event, at) => (at < again ? markDelivered(event) : event));
  }

  /**
   * A reader has gone away.
   *
   * @returns whether the run stops, has ended or never began: then its consumer waits until it is done
   */
  left(reader: Reader<P>, exit: Exit.Exit<unknown, unknown>): boolean {
    const run = this.#run;
    if (run === undefined) return true;
    if (this.#reader !== reader) return false;
    this.#reader = undefined;
    if (!run.ledger.ended && run.stopper === undefined && !departs(exit)) run.stop(stopperOf(exit));
    if (run.stopper === undefined) this.#presence.leaves();
    // No other reader can have the whole run.
    if (this.#presence.isAway && !this.#kept.isWhole) this.#presence.evict();
    if (this.#isOver) this.#letGo();
    else {
      this.#startTimer();
      this.#ask();
    }
    return run.ledger.ended || run.stopper !== undefined;
  }

  /** Nothing more is kept, and no reader can be attached; one that is there reads on. */
  over(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#stopTimer();
    this.#whenOver?.();
    if (this.#reader === undefined) this.#letGo();
  }

  #keep(events: ReadonlyArray<RunEvent<P>>): void {
    this.#kept.add(events);
    if (this.#kept.isWhole || this.#reader !== undefined) return;
    if (this.#presence.isAway) this.#presence.evict();
    this.#kept.dropBefore(this.#kept.end);
  }

  /** Asks the run for more, where somebody waits for it or nobody reads. */
  #ask(): void {
    const run = this.#run;
    const isWanted = this.#reader === undefined ? !this.#isOver : this.#reader.resume !== undefined;
    if (run === undefined || this.#asked !== undefined || this.#end !== undefined || !isWanted) return;
    const asked: { fiber?: Fiber.Fiber<unknown> } = {};
    this.#asked = asked;
    const heard = Effect.map(Effect.exit(run.handoff.take), (exit) => {
      if (this.#asked !== asked) return;
      this.#asked = undefined;
      if (Exit.isFailure(exit)) this.#ends(Effect.failCause(exit.cause));
      if (this.#reader !== undefined) this.#serve(this.#reader);
      this.#ask();
    });
    asked.fiber = Effect.runForkWith(run.services)(heard);
  }

  /** What is asked of the run is asked no more; what has left it is kept all the same. */
  #recall(): void {
    const asked = this.#asked;
    this.#asked = undefined;
    asked?.fiber?.interruptUnsafe();
  }

  #serve(reader: Reader<P>): void {
    const { resume } = reader;
    reader.resume = undefined;
    resume?.(this.take(reader));
  }

  #ends(end: Taken<P>): void {
    this.#end = end;
    if (this.#reader !== undefined || this.#isOver) return;
    this.#startTimer();
    // Nobody may attach to a run that was cancelled.
    if (this.#run?.stopper !== undefined) this.#letGo();
  }

  #startTimer(): void {
    const run = this.#run;
    if (run === undefined) return;
    this.#stopTimer();
    const over = Effect.sync(() => {
      this.#timer = undefined;
      if (!run.ledger.ended) run.stop("user");
      this.over();
    });
    this.#timer = Effect.runForkWith(run.services)(Effect.delay(over, this.#lingerMs));
  }

  #stopTimer(): void {
    const timer = this.#timer;
    this.#timer = undefined;
    timer?.interruptUnsafe();
  }

  /** Gives back what is kept (L11). */
  #letGo(): void {
    this.#recall();
    this.#kept.breaks();
    this.#kept.dropBefore(this.#kept.end);
  }

  get #replaced(): RunInterrupted {
    return new RunInterrupted({
      reason: "attached_elsewhere",
      run_id: this.#run?.runId ?? "",
      rule: "caller_interrupted",
      failure: { kind: "cancelled", by: "caller" },
      attempts: this.#run?.attempts ?? 0,
      message: "Another reader has attached to this run and takes its place. The run goes on; nothing was repeated.",
    });
  }
}

const markDelivered = <P>(event: RunEvent<P>): RunEvent<P> => {
  if (event._tag !== "Part" || event.calls === undefined) return event;
  const { calls, ...part } = event;
  return { ...part, delivered_calls: calls.map((call) => ({ ...call, delivered: true })) };
};

const isFilled = <A>(events: ReadonlyArray<A>): events is readonly [A, ...Array<A>] => events.length > 0;
