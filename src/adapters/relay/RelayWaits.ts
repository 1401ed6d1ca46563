/**
 * Knows what a relayed run waits for before a request of it goes out, and for how long it has waited.
 *
 * The run says when a wait begins; no event says that it is over, because the next thing that comes of a first request is its response.
 * So a wait is over in the step in which the request that waited is opened.
 */
import { Clock, Context, Deferred, Effect, Exit, Scope } from "effect";
import * as Cause from "effect/Cause";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { InterruptSignature } from "../../runtime/contract/InterruptSignature.ts";
import type { RelayEvent } from "./RelayReader.ts";

/** A wait of a run that is over. */
export interface RelayWait {
  readonly for: "path" | "cooldown";
  /** How long it was, in milliseconds. */
  readonly ms: number;
}

/** The waits of one run. Times are monotonic milliseconds. */
export class RelayWaits {
  readonly #now: () => number;
  readonly #told: ((wait: RelayWait) => void) | undefined;
  /** The attempt whose request waits, or will be the next to go. */
  #awaited = 1;
  /** The attempt whose request was opened last, and when. */
  #opened = 0;
  #openedAt: number;
  readonly #startedAt: number;
  #open: { readonly for: "path" | "cooldown"; readonly since: number } | undefined;
  /** What the run has waited for paths in waits that are over. */
  #pathMs = 0;
  #begun = Deferred.makeUnsafe<void>();
  /** Retries that began behind a wait for a path: they repeat nothing that cost anything. */
  pathAttempts = 0;

  /** @param told called with each wait that is over; it must not throw */
  constructor(now: () => number, told: ((wait: RelayWait) => void) | undefined) {
    this.#now = now;
    this.#told = told;
    this.#startedAt = now();
    this.#openedAt = this.#startedAt;
  }

  /** Makes it; a wait that the run ends in is over with the scope. */
  static readonly make = Effect.fnUntraced(function* (
    told: ((wait: RelayWait) => void) | undefined,
  ): Effect.fn.Return<RelayWaits, never, Scope.Scope> {
    const clock = yield* Clock.Clock;
    const made = new RelayWaits(() => monotonicMs(clock), told);
    // `Effect.addFinalizer` would copy all services of the request, which this one needs none of.
    const ends = Effect.sync(() => made.#end());
    yield* Scope.addFinalizer(yield* Effect.scope, ends);
    return made;
  });

  /** Something has happened to the run. A word that comes once its request was opened is late, and says nothing. */
  heard(event: RelayEvent): void {
    if (event._tag === "AttemptStarted") this.#awaited = event.attempt;
    if (event._tag === "RetryScheduled") this.#awaited = event.attempt + 1;
    if (event._tag !== "Waiting" || this.#opened >= this.#awaited || this.#open?.for === event.for) return;
    this.#end();
    this.#open = { for: event.for, since: this.#now() };
    const begun = this.#begun;
    this.#begun = Deferred.makeUnsafe();
    Deferred.doneUnsafe(begun, Effect.void);
  }

  /** The request of an attempt goes out. */
  opened(attempt: number): void {
    this.#opened = attempt;
    this.#openedAt = this.#now();
    if (this.#open?.for === "path" && attempt > 1) this.pathAttempts += 1;
    this.#end();
  }

  /**
   * How long a refused request may wait for its next attempt, in milliseconds, if its client is to hear of it within its patience: the
   * next refusal may take as long as this one.
   */
  leftOf(patienceMs: number): number {
    const now = this.#now();
    return patienceMs - (now - this.#startedAt) - (now - this.#openedAt);
  }

  /** Done once the run has waited for paths so long in all, and still does. */
  untilPathHasTaken(limitMs: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      const open = this.#open;
      if (open?.for !== "path") return Effect.andThen(Deferred.await(this.#begun), this.untilPathHasTaken(limitMs));
      const left = limitMs - this.#pathMs - (this.#now() - open.since);
      return left <= 0 ? Effect.void : Effect.andThen(Effect.sleep(left), this.untilPathHasTaken(limitMs));
    });
  }

  #end(): void {
    const open = this.#open;
    if (open === undefined) return;
    this.#open = undefined;
    const ms = Math.max(0, this.#now() - open.since);
    if (open.for === "path") this.#pathMs += ms;
    this.#told?.({ for: open.for, ms });
  }
}

/** Ends a run in the name of the program that embeds the relay: no user has cancelled it, and no process is to take it up. */
export const closeRun = (scope: Scope.Closeable): Effect.Effect<void> =>
  Scope.close(scope, Exit.failCause(Cause.annotate(Cause.interrupt(), Context.make(InterruptSignature, "lifecycle"))));
