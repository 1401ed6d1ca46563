/**
 * Tracks when and for how long a relayed run waits before it sends a request.
 *
 * The run reports the start of a wait, but no event reports its end, because the next event of a first request is its response. So a wait
 * ends in the step in which the waiting request is opened.
 */
import { type Clock, Context, Deferred, Effect, Exit, Scope } from "effect";
import * as Cause from "effect/Cause";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { InterruptSignature } from "../../runtime/contract/InterruptSignature.ts";
import type { RelayEvent } from "./RelayReader.ts";

/** A finished wait of a run. */
export interface RelayWait {
  readonly for: "path" | "cooldown";
  /** Duration of the wait, in milliseconds. */
  readonly ms: number;
}

/** The waits of one run. Times are monotonic milliseconds. */
export class RelayWaits {
  readonly #clock: Clock.Clock;
  readonly #scope: Scope.Scope;
  #hasWaited = false;
  readonly #onWaited: ((wait: RelayWait) => void) | undefined;
  /** Number of the attempt whose request waits or is sent next. */
  #awaited = 1;
  /** Number of the attempt whose request was opened last. */
  #opened = 0;
  #openedAt: number;
  readonly #startedAt: number;
  #open: { readonly for: "path" | "cooldown"; readonly since: number } | undefined;
  /** Total of the finished waits for paths, in milliseconds. */
  #pathMs = 0;
  #begun = Deferred.makeUnsafe<void>();
  /** Number of retries that began after a wait for a path. They repeat nothing that had a cost. */
  pathAttempts = 0;

  /**
   * @param scope the scope of the run; when it closes, an open wait ends
   * @param onWaited called with each finished wait; must not throw
   */
  constructor(clock: Clock.Clock, scope: Scope.Scope, onWaited: ((wait: RelayWait) => void) | undefined) {
    this.#clock = clock;
    this.#scope = scope;
    this.#onWaited = onWaited;
    this.#startedAt = this.#now();
    this.#openedAt = this.#startedAt;
  }

  /** Handles an event of the run. Ignores a wait that is reported after its request was opened. */
  onEvent(event: RelayEvent): void {
    if (event._tag === "AttemptStarted") this.#awaited = event.attempt;
    if (event._tag === "RetryScheduled") this.#awaited = event.attempt + 1;
    if (event._tag !== "Waiting" || this.#opened >= this.#awaited || this.#open?.for === event.for) return;
    this.#end();
    // The finalizer is added by the first wait, because most runs never wait.
    if (!this.#hasWaited)
      Effect.runFork(
        Scope.addFinalizer(
          this.#scope,
          Effect.sync(() => this.#end()),
        ),
      );
    this.#hasWaited = true;
    this.#open = { for: event.for, since: this.#now() };
    const begun = this.#begun;
    this.#begun = Deferred.makeUnsafe();
    Deferred.doneUnsafe(begun, Effect.void);
  }

  /** Ends the open wait, because the request of an attempt is sent. */
  onOpened(attempt: number): void {
    this.#opened = attempt;
    this.#openedAt = this.#now();
    if (this.#open?.for === "path" && attempt > 1) this.pathAttempts += 1;
    this.#end();
  }

  /**
   * Returns the time that a refused request may wait for its next attempt, in milliseconds, so that its client still gets a response within
   * `patienceMs`. The next refusal may take as long as this refusal did.
   */
  remainingWait(patienceMs: number): number {
    const now = this.#now();
    return patienceMs - (now - this.#startedAt) - (now - this.#openedAt);
  }

  /** Completes once the run has waited for paths for `limitMs` in total and is still waiting. */
  untilPathHasTaken(limitMs: number): Effect.Effect<void> {
    return Effect.suspend(() => {
      const open = this.#open;
      if (open?.for !== "path") return Effect.andThen(Deferred.await(this.#begun), this.untilPathHasTaken(limitMs));
      const left = limitMs - this.#pathMs - (this.#now() - open.since);
      return left <= 0 ? Effect.void : Effect.andThen(Effect.sleep(left), this.untilPathHasTaken(limitMs));
    });
  }

  #now(): number {
    return monotonicMs(this.#clock);
  }

  #end(): void {
    const open = this.#open;
    if (open === undefined) return;
    this.#open = undefined;
    const ms = Math.max(0, this.#now() - open.since);
    if (open.for === "path") this.#pathMs += ms;
    this.#onWaited?.({ for: open.for, ms });
  }
}

/** Ends a run on behalf of the embedding program. The end is not a user's cancel, and no process may resume the run. */
export const closeRun = (scope: Scope.Closeable): Effect.Effect<void> =>
  Scope.close(scope, Exit.failCause(Cause.annotate(Cause.interrupt(), Context.make(InterruptSignature, "lifecycle"))));
