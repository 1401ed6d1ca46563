/**
 * Holds the attempts of one response: the one that asked for it, and those that resumed it by its cursor.
 *
 * What is shown, withdrawn or kept of a resumed response concerns all of them. A decision is still taken on the failed
 * attempt's own facts (L3). Only a refused cursor leaves the interrupted response to be decided as a whole.
 */
import * as Effect from "effect/Effect";
import type { AttemptFacts } from "../../domain/AttemptFacts.ts";
import type { Failure } from "../../domain/Failure.ts";
import { joined } from "../../facts/Growth.ts";
import type { Attempt } from "../attempt/Attempt.ts";
import type { AttemptDiscarded } from "../contract/RunEvent.ts";

/** A failed attempt with what its decision is taken on. */
export interface BrokenAttempt<P> {
  readonly attempt: Attempt<P>;
  readonly failure: Failure;
  /** The original error, unchanged (L12). */
  readonly cause: unknown;
  /** The cursor of the response was refused: it is decided as a whole, and the cursor is not used again. */
  readonly cursorRefused: boolean;
  /** The facts that the decision is taken on, read anew each time: the attempt's own, or the whole response's. */
  readonly facts: () => AttemptFacts;
}

/** Shared by all responses that no attempt has resumed. */
const none: ReadonlyArray<never> = [];

/** The attempts of one response, in the order in which they read it. */
export class Chain<P> {
  readonly first: Attempt<P>;
  readonly #resumed: ReadonlyArray<Attempt<P>>;

  constructor(first: Attempt<P>, resumed: ReadonlyArray<Attempt<P>> = none) {
    this.first = first;
    this.#resumed = resumed;
  }

  /** All of them. A response that never breaks has one, and holds no list. */
  get links(): ReadonlyArray<Attempt<P>> {
    return [this.first, ...this.#resumed];
  }

  /** The chain with one more attempt that goes on in the same response. */
  resumedBy(attempt: Attempt<P>): Chain<P> {
    return new Chain(this.first, [...this.#resumed, attempt]);
  }

  /** The facts of the response as far as it was read, over all its attempts. */
  facts(): AttemptFacts {
    return joined([this.first.facts.snapshot(), ...this.links.slice(1).map((link) => link.facts.snapshot())]);
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

  /** Waits until no handler of the response runs. */
  get drained(): Effect.Effect<void> {
    return Effect.suspend(() => Effect.forEach(this.links, (link) => link.fence.drained, { discard: true }));
  }

  discardFrozen(): void {
    for (const link of this.links) link.flow.discardFrozen();
  }

  /** What a caller must throw away when the whole response is asked for again. */
  withdrawn(): ReadonlyArray<AttemptDiscarded> {
    return this.links.filter((link) => link.flow.ordinal > 0).map((link) => discarded(link, 0));
  }

  /** What a caller must throw away when the run goes on from what has settled: everything after the last kept part. */
  leftOpen(): ReadonlyArray<AttemptDiscarded> {
    const lastKept = this.links.findLastIndex((link) => link.keepThrough > 0);
    return this.links
      .filter((link, index) => index >= lastKept && link.keepThrough < link.flow.ordinal)
      .map((link) => discarded(link, link.keepThrough));
  }
}

const discarded = <P>(link: Attempt<P>, keep_through: number): AttemptDiscarded => ({
  _tag: "AttemptDiscarded",
  attempt: link.number,
  keep_through,
});
