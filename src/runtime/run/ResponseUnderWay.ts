/**
 * Holds what a run knows of the response that it reads now, and of the attempts before it.
 *
 * R1 At most one attempt is live, and it is the last one of the chain. The one before it is closed, or was abandoned (L6).
 * R2 From the step in which an attempt ends until the decision, none of the response's calls starts.
 * R3 What interrupted a response first stays what it is decided on when its cursor is refused (L3).
 * R4 What was withdrawn stays withdrawn; of an attempt that was withdrawn twice the newer word counts.
 * R5 A hold that has lasted as long as it may is over for every later attempt too.
 * R6 An attempt that broke behind exactly the words of an earlier one broke for a reason that the next attempt would meet too, until a
 *    person asks for it all the same.
 */
import * as Effect from "effect/Effect";
import type { Failure } from "../../domain/Failure.ts";
import type { Attempt } from "../attempt/Attempt.ts";
import type { AttemptDiscarded } from "../contract/RunEvent.ts";
import type { Withdrawn } from "../contract/RunOptions.ts";
import { type BrokenAttempt, Chain } from "./Chain.ts";

/** An attempt, and the failure that it was decided on. */
interface DecidedAttempt<P> {
  readonly attempt: Attempt<P>;
  readonly failure: Failure;
}

/** Maximum digests of broken attempts that a run keeps. */
const partialsMax = 64;

/** Shared by all runs that have withdrawn nothing. */
const none: ReadonlyArray<never> = [];

/** The response that one run reads. */
export class ResponseUnderWay<P> {
  #chain: Chain<P> | undefined;
  #live: Attempt<P> | undefined;
  #brokeFirst: BrokenAttempt<P> | undefined;
  #decided: DecidedAttempt<P> | undefined;
  #withdrawn: ReadonlyArray<Withdrawn> = none;
  #closed: Effect.Effect<void> = Effect.void;
  #holdIsOver = false;
  /** Digests of what broken attempts had said (R6). */
  #partials: Set<string> | undefined;
  #samePartial: Attempt<P> | undefined;
  /** The first attempt whose response ended, unbroken, without its protocol's last event. */
  #lacksLast: Attempt<P> | undefined;

  /** The attempts of the response; undefined before the run's first one. */
  get chain(): Chain<P> | undefined {
    return this.#chain;
  }

  /** The attempt that reads; undefined between two. */
  get live(): Attempt<P> | undefined {
    return this.#live;
  }

  /** What interrupted the response first (R3). */
  get brokeFirst(): BrokenAttempt<P> | undefined {
    return this.#brokeFirst;
  }

  /** What was withdrawn so far, one entry an attempt. */
  get withdrawn(): ReadonlyArray<Withdrawn> {
    return this.#withdrawn;
  }

  /** No response of the run is held whole any more (R5). */
  get holdIsOver(): boolean {
    return this.#holdIsOver;
  }

  /** The time is over for which a whole response may be held: the live attempt goes on as if shown from its start (R5). */
  endHold(): void {
    this.#holdIsOver = true;
    this.#live?.endHold();
  }

  /** An attempt asks for a response of its own. */
  begins(attempt: Attempt<P>): void {
    this.#chain = new Chain(attempt);
  }

  /** An attempt goes on in the response that `broken` read. */
  resumes(attempt: Attempt<P>, broken: Attempt<P>): void {
    this.#chain = (this.#chain ?? new Chain(broken)).resumedBy(attempt);
  }

  /** The attempt reads from now on (R1). */
  starts(attempt: Attempt<P>): void {
    this.#live = attempt;
  }

  /** The live attempt has ended (R1, R2). */
  ended(): void {
    this.#live = undefined;
    this.#chain?.suspend();
  }

  /** The attempt that ended last begins to close; `closed` waits until it has, or was abandoned. */
  closes(closed: Effect.Effect<void>): void {
    this.#closed = closed;
  }

  /** Waits until the attempt that ended last has closed or was abandoned (R1). */
  get closed(): Effect.Effect<void> {
    return this.#closed;
  }

  /** An attempt broke: of the chain's first one that is what the response is decided on (R3). */
  broke(broken: BrokenAttempt<P>): void {
    if (broken.attempt === this.#chain?.first) this.#brokeFirst = broken;
  }

  /**
   * An attempt broke behind these words (R6).
   *
   * @param digest undefined if it had said nothing
   */
  brokeBehind(attempt: Attempt<P>, digest: string | undefined): void {
    if (digest === undefined) return;
    this.#partials ??= new Set();
    if (this.#partials.has(digest)) this.#samePartial = attempt;
    else if (this.#partials.size < partialsMax) this.#partials.add(digest);
  }

  /** True if an earlier attempt broke after exactly the same words (R6). */
  isSamePartial(attempt: Attempt<P>): boolean {
    return this.#samePartial === attempt;
  }

  /** A person asks for one more attempt (R6). */
  forgetPartials(): void {
    this.#partials = undefined;
    this.#samePartial = undefined;
  }

  /**
   * A response has ended, unbroken, without its protocol's last event.
   *
   * @returns whether an earlier one of the run had ended so
   */
  lacksLastAgain(attempt: Attempt<P>): boolean {
    this.#lacksLast ??= attempt;
    return this.#lacksLast !== attempt;
  }

  /** From here on a call of this attempt that settles is late. */
  decided(attempt: Attempt<P>, failure: Failure): void {
    this.#decided = { attempt, failure };
  }

  /** The attempt that was decided last, and on what. */
  get lastDecided(): DecidedAttempt<P> | undefined {
    return this.#decided;
  }

  /** The caller is told to throw these away (R4). */
  withdraw(discards: ReadonlyArray<AttemptDiscarded>): void {
    this.#withdrawn = [
      ...this.#withdrawn.filter(({ attempt }) => !discards.some((it) => it.attempt === attempt)),
      ...discards.map(({ attempt, keep_through }) => ({ attempt, keep_through })),
    ];
  }

  /** The run goes on from its record. */
  restored(chain: Chain<P>, brokeFirst: BrokenAttempt<P>): void {
    this.#chain = chain;
    this.#brokeFirst = brokeFirst;
  }
}
