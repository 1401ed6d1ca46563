/**
 * Holds the attempts of one response: the attempt that requested it, and those that resumed it by its cursor.
 *
 * Showing, withdrawing and keeping parts of a resumed response affects all of its attempts. A decision still uses only the facts of the
 * failed attempt (L3), except after a refused cursor, when the whole interrupted response is decided.
 */
import * as Effect from "effect/Effect";
import type { AttemptFacts } from "../../domain/AttemptFacts.ts";
import type { Failure } from "../../domain/Failure.ts";
import { joinAttempts } from "../../facts/Growth.ts";
import type { Attempt } from "../attempt/Attempt.ts";
import type { AttemptDiscarded } from "../contract/RunEvent.ts";

/** A failed attempt with the input of its decision. */
export interface BrokenAttempt<P> {
  readonly attempt: Attempt<P>;
  readonly failure: Failure;
  /** The original error, unchanged (L12). */
  readonly cause: unknown;
  /** True if the provider refused the cursor. The decision then covers the whole response, and the cursor is not used again. */
  readonly cursorRefused: boolean;
  /** Returns the current facts for the decision: the attempt's own, or those of the whole response. */
  readonly facts: () => AttemptFacts;
}

/** Shared by all responses that were never resumed. */
const none: ReadonlyArray<never> = [];

/** The attempts of one response, in the order in which they read it. */
export class Chain<P> {
  readonly first: Attempt<P>;
  readonly #resumed: ReadonlyArray<Attempt<P>>;

  constructor(first: Attempt<P>, resumed: ReadonlyArray<Attempt<P>> = none) {
    this.first = first;
    this.#resumed = resumed;
  }

  /** All attempts. Built on demand, because a response that never breaks has only one and needs no list. */
  get links(): ReadonlyArray<Attempt<P>> {
    return [this.first, ...this.#resumed];
  }

  /** Returns the chain with one more attempt that resumes the same response. */
  withAttempt(attempt: Attempt<P>): Chain<P> {
    return new Chain(this.first, [...this.#resumed, attempt]);
  }

  /** Returns the combined facts of all attempts of the response. */
  facts(): AttemptFacts {
    return joinAttempts([this.first.facts.snapshot(), ...this.links.slice(1).map((link) => link.facts.snapshot())]);
  }

  suspend(): void {
    for (const link of this.links) link.fence.suspend();
  }

  open(): void {
    for (const link of this.links) link.fence.open();
  }

  seal(): void {
    for (const link of this.links) link.fence.seal();
  }

  get running(): number {
    return this.links.reduce((count, link) => count + link.fence.running, 0);
  }

  /** Waits until no tool handler of the response is running. */
  get awaitDrain(): Effect.Effect<void> {
    return Effect.suspend(() => Effect.forEach(this.links, (link) => link.fence.awaitDrain, { discard: true }));
  }

  discardFrozen(): void {
    for (const link of this.links) link.flow.discardFrozen();
  }

  /** Returns the parts that the caller must discard when the whole response is requested again. */
  allDiscards(): ReadonlyArray<AttemptDiscarded> {
    return this.links.filter((link) => link.flow.ordinal > 0).map((link) => discardEvent(link, 0));
  }

  /** Returns the parts that the caller must discard when the run continues from settled calls: everything after the last kept part. */
  discardsAfterKept(): ReadonlyArray<AttemptDiscarded> {
    const lastKept = this.links.findLastIndex((link) => link.keepThrough > 0);
    return this.links
      .filter((link, index) => index >= lastKept && link.keepThrough < link.flow.ordinal)
      .map((link) => discardEvent(link, link.keepThrough));
  }
}

const discardEvent = <P>(link: Attempt<P>, keep_through: number): AttemptDiscarded => ({
  _tag: "AttemptDiscarded",
  attempt: link.number,
  keep_through,
});
