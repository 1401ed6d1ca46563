/**
 * Holds the state of the response that a run reads now, and of the attempts before it.
 *
 * R1 At most one attempt is live, and it is the last one of the chain. The previous one is closed or was abandoned (L6).
 * R2 From the step in which an attempt ends until the decision, none of the response's calls starts.
 * R3 After a refused cursor, a response is decided on its first interruption (L3).
 * R4 Withdrawn parts stay withdrawn. If an attempt is withdrawn twice, the newer extent counts.
 * R5 A hold that has reached its maximum time stays over for every later attempt.
 * R6 If two attempts break after exactly the same content, a third would break there too. A retry that a person asks for resets this.
 */
import * as Effect from "effect/Effect";
import type { Failure } from "../../domain/Failure.ts";
import type { Attempt } from "../attempt/Attempt.ts";
import type { AttemptDiscarded } from "../contract/RunEvent.ts";
import type { Withdrawn } from "../contract/RunOptions.ts";
import { type BrokenAttempt, Chain } from "./Chain.ts";

/** An attempt with the failure that it was decided on. */
interface DecidedAttempt<P> {
  readonly attempt: Attempt<P>;
  readonly failure: Failure;
}

/** Maximum digests of broken attempts that a run keeps. */
const partialsMax = 64;

/** Shared by all runs that have withdrawn nothing. */
const none: ReadonlyArray<never> = [];

/** The response that a run is reading. */
export class ResponseUnderWay<P> {
  #chain: Chain<P> | undefined;
  #live: Attempt<P> | undefined;
  #firstBreak: BrokenAttempt<P> | undefined;
  #decided: DecidedAttempt<P> | undefined;
  #withdrawn: ReadonlyArray<Withdrawn> = none;
  #closed: Effect.Effect<void> = Effect.void;
  #isHoldOver = false;
  /** Digests of the content of broken attempts (R6). */
  #partials: Set<string> | undefined;
  #samePartial: Attempt<P> | undefined;
  /** The first attempt whose response ended, unbroken, without its protocol's last event. */
  #lacksLast: Attempt<P> | undefined;

  /** The attempts of the response; undefined before the run's first attempt. */
  get chain(): Chain<P> | undefined {
    return this.#chain;
  }

  /** The live attempt; undefined between attempts. */
  get live(): Attempt<P> | undefined {
    return this.#live;
  }

  /** The first interruption of the response (R3). */
  get firstBreak(): BrokenAttempt<P> | undefined {
    return this.#firstBreak;
  }

  /** The parts withdrawn so far, one entry per attempt. */
  get withdrawn(): ReadonlyArray<Withdrawn> {
    return this.#withdrawn;
  }

  /** True if the run no longer holds whole responses (R5). */
  get isHoldOver(): boolean {
    return this.#isHoldOver;
  }

  /** Ends the hold of a whole response after its maximum time. The live attempt continues as if shown from its start (R5). */
  endHold(): void {
    this.#isHoldOver = true;
    this.#live?.endHold();
  }

  /** Starts a new response with this attempt. */
  begin(attempt: Attempt<P>): void {
    this.#chain = new Chain(attempt);
  }

  /** Adds an attempt that resumes the response that `broken` read. */
  resume(attempt: Attempt<P>, broken: Attempt<P>): void {
    this.#chain = (this.#chain ?? new Chain(broken)).withAttempt(attempt);
  }

  /** Makes the attempt the live one (R1). */
  setLive(attempt: Attempt<P>): void {
    this.#live = attempt;
  }

  /** Called when the live attempt has ended (R1, R2). */
  endLive(): void {
    this.#live = undefined;
    this.#chain?.suspend();
  }

  /** Called when the last attempt begins to close; `awaitClose` waits until it has closed or was abandoned. */
  setClosed(closed: Effect.Effect<void>): void {
    this.#closed = closed;
  }

  /** Waits until the last attempt has closed or was abandoned (R1). */
  get awaitClose(): Effect.Effect<void> {
    return this.#closed;
  }

  /** Called when an attempt broke. Only the break of the chain's first attempt is kept (R3). */
  recordBreak(broken: BrokenAttempt<P>): void {
    if (broken.attempt === this.#chain?.first) this.#firstBreak = broken;
  }

  /**
   * Notes the content after which an attempt broke (R6).
   *
   * @param digest a digest of the content; undefined if there was none
   */
  recordPartial(attempt: Attempt<P>, digest: string | undefined): void {
    if (digest === undefined) return;
    this.#partials ??= new Set();
    if (this.#partials.has(digest)) this.#samePartial = attempt;
    else if (this.#partials.size < partialsMax) this.#partials.add(digest);
  }

  /** True if an earlier attempt broke after exactly the same content (R6). */
  isSamePartial(attempt: Attempt<P>): boolean {
    return this.#samePartial === attempt;
  }

  /** Forgets the digests, because a person asks for one more attempt (R6). */
  forgetPartials(): void {
    this.#partials = undefined;
    this.#samePartial = undefined;
  }

  /**
   * Notes a response that ended, unbroken, without its protocol's last event.
   *
   * @returns true if an earlier attempt of the run ended the same way
   */
  recordMissingLast(attempt: Attempt<P>): boolean {
    this.#lacksLast ??= attempt;
    return this.#lacksLast !== attempt;
  }

  /** Called when a decision is taken. A call of the attempt that settles after the decision is late. */
  noteDecision(attempt: Attempt<P>, failure: Failure): void {
    this.#decided = { attempt, failure };
  }

  /** The attempt that was decided last, with its failure. */
  get lastDecided(): DecidedAttempt<P> | undefined {
    return this.#decided;
  }

  /** Records the parts that the caller must discard (R4). */
  withdraw(discards: ReadonlyArray<AttemptDiscarded>): void {
    this.#withdrawn = [
      ...this.#withdrawn.filter(({ attempt }) => !discards.some((it) => it.attempt === attempt)),
      ...discards.map(({ attempt, keep_through }) => ({ attempt, keep_through })),
    ];
  }

  restore(chain: Chain<P>, firstBreak: BrokenAttempt<P>): void {
    this.#chain = chain;
    this.#firstBreak = firstBreak;
  }
}
