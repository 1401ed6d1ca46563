/**
 * Stands between an attempt's tool calls and their handlers (L6).
 *
 * Open: a call may start. Suspended: the stream has failed and the decision is not taken yet; new calls wait. Sealed: the
 * attempt is superseded or stopped; no call of it starts any more. A running handler is counted until it has ended, so
 * that a decision can wait for an outcome that it would otherwise have to guess.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";

/** The fence of one attempt. */
export class Fence {
  #state: "open" | "suspended" | "sealed" = "open";
  /** Made when a call waits: at most fences none ever does. */
  #changed: Deferred.Deferred<void> | undefined;
  #running = 0;
  #drained: Deferred.Deferred<void> | undefined;

  get isSealed(): boolean {
    return this.#state === "sealed";
  }

  /** Handlers that have been let through and have not ended. */
  get running(): number {
    return this.#running;
  }

  suspend(): void {
    if (this.#state === "open") this.#state = "suspended";
  }

  /** Lets waiting calls through. A sealed fence stays sealed. */
  open(): void {
    if (this.#state === "suspended") this.#turn("open");
  }

  /** Lets no further call through. */
  seal(): void {
    if (this.#state !== "sealed") this.#turn("sealed");
  }

  /**
   * Waits for the fence and passes it in the same step: `enter` runs while the fence is known to be open, so no decision
   * can fall between the look and the mark.
   *
   * @param enter marks the call as dispatched; its result is given back
   * @returns undefined when the fence is sealed
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

  /** A handler starts. Called inside `pass`. */
  started(): void {
    this.#running += 1;
  }

  ended(): void {
    this.#running -= 1;
    if (this.#running > 0) return;
    const drained = this.#drained;
    this.#drained = undefined;
    if (drained !== undefined) Deferred.doneUnsafe(drained, Effect.void);
  }

  /** Waits until no handler runs. */
  get drained(): Effect.Effect<void> {
    return Effect.suspend(() => {
      if (this.#running === 0) return Effect.void;
      this.#drained ??= Deferred.makeUnsafe<void>();
      return Deferred.await(this.#drained);
    });
  }

  #turn(state: "open" | "sealed"): void {
    this.#state = state;
    const changed = this.#changed;
    this.#changed = undefined;
    if (changed !== undefined) Deferred.doneUnsafe(changed, Effect.void);
  }
}
