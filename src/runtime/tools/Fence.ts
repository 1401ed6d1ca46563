/**
 * Controls which tool calls of an attempt may start (L6).
 *
 * Open: a call may start. Suspended: the stream failed and the decision is pending, so new calls wait. Sealed: the attempt is
 * superseded or stopped, and none of its calls starts any more. Running handlers are counted, so that a decision can wait for an
 * outcome instead of guessing it.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";

/** The fence of one attempt. */
export class Fence {
  #state: "open" | "suspended" | "sealed" = "open";
  /** Created by the first call that has to wait. Few fences ever need it. */
  #changed: Deferred.Deferred<void> | undefined;
  #running = 0;
  #drained: Deferred.Deferred<void> | undefined;

  get isSealed(): boolean {
    return this.#state === "sealed";
  }

  /** Number of handlers that passed the fence and have not ended. */
  get running(): number {
    return this.#running;
  }

  suspend(): void {
    if (this.#state === "open") this.#state = "suspended";
  }

  /** Lets waiting calls pass. A sealed fence stays sealed. */
  open(): void {
    if (this.#state === "suspended") this.#setState("open");
  }

  /** Blocks all further calls for good. */
  seal(): void {
    if (this.#state !== "sealed") this.#setState("sealed");
  }

  /**
   * Waits for the fence and passes it in the same step. `enter` runs while the fence is open, so the fence cannot close between the check
   * and the mark.
   *
   * @param enter marks the call as dispatched; `pass` returns its result
   * @returns undefined if the fence is sealed
   */
  pass<A>(enter: () => A): Effect.Effect<A | undefined> {
    return Effect.suspend(() => {
      if (this.#state === "sealed") return Effect.undefined;
      if (this.#state === "suspended") {
        this.#changed ??= Deferred.makeUnsafe<void>();
        return Effect.flatMap(Deferred.await(this.#changed), () => this.pass(enter));
      }
      return Effect.succeed(enter());
    });
  }

  /** Counts a handler as running. Call it inside `pass`. */
  addHandler(): void {
    this.#running += 1;
  }

  removeHandler(): void {
    this.#running -= 1;
    if (this.#running > 0) return;
    const drained = this.#drained;
    this.#drained = undefined;
    if (drained !== undefined) Deferred.doneUnsafe(drained, Effect.void);
  }

  /** Completes when no handler is running. */
  get awaitDrain(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#running === 0) return Effect.void;
      this.#drained ??= Deferred.makeUnsafe<void>();
      return Deferred.await(this.#drained);
    });
  }

  #setState(state: "open" | "sealed"): void {
    this.#state = state;
    const changed = this.#changed;
    this.#changed = undefined;
    if (changed !== undefined) Deferred.doneUnsafe(changed, Effect.void);
  }
}
