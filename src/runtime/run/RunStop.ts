/**
 * Knows why a run stops: its stopper from outside, and why it is not this process's any more.
 *
 * T1 The first word names the stopper; a later one only adds its flag (L10).
 * T2 Nothing takes a stop back.
 * T3 A run that was lost stops, as a close stops it; one whose response flows on stops at that response's end.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import { type Stopper, stopperOfSignal } from "../contract/InterruptSignature.ts";
import type { Loss } from "./Loss.ts";

/** Why one run stops. */
export class RunStop {
  #by: Stopper | undefined;
  #userCancelled = false;
  #lifecycleClosed = false;
  #loss: Loss | undefined;
  #flows = false;
  // Each is made when something waits for it: of many idle runs each holds what it has.
  #stopped: Deferred.Deferred<void> | undefined;
  #closing: Deferred.Deferred<void> | undefined;
  /** The caller's own signal, while the run listens to it. */
  #heeded:
    | { readonly signal: AbortSignal; readonly listener: () => void; readonly stop: (by: Stopper) => void }
    | undefined;

  /** The stopper of the run; undefined while it runs. */
  get by(): Stopper | undefined {
    return this.#by;
  }

  /** Its user has cancelled it, before or after another stop. */
  get userCancelled(): boolean {
    return this.#userCancelled;
  }

  /** The processor was closed, before or after another stop. */
  get lifecycleClosed(): boolean {
    return this.#lifecycleClosed;
  }

  /** Why the run is not this process's any more. */
  get loss(): Loss | undefined {
    return this.#loss;
  }

  /** Done as soon as the run is stopped. */
  get stopped(): Deferred.Deferred<void> {
    if (this.#stopped === undefined) {
      this.#stopped = Deferred.makeUnsafe<void>();
      if (this.#by !== undefined) Deferred.doneUnsafe(this.#stopped, Effect.void);
    }
    return this.#stopped;
  }

  /** Waits until the processor closes, also where the run was stopped before. */
  get closing(): Effect.Effect<void> {
    if (this.#lifecycleClosed) return Effect.void;
    this.#closing ??= Deferred.makeUnsafe<void>();
    return Deferred.await(this.#closing);
  }

  /**
   * Listens to the caller's own signal.
   *
   * @param stop stops the run
   */
  heed(signal: AbortSignal, stop: (by: Stopper) => void): void {
    const listener = () => this.heard();
    this.#heeded = { signal, listener, stop };
    signal.addEventListener("abort", listener, { once: true });
    this.heard();
  }

  /** Looks at the caller's signal: an error that an abort makes may come before the abort itself (L10). */
  heard(): void {
    const by = stopperOfSignal(this.#heeded?.signal);
    if (by !== undefined) this.#heeded?.stop(by);
  }

  /** Listens no more. What the signal throws is its owner's: it must not keep the run from its end (L7). */
  unheed(): void {
    const heeded = this.#heeded;
    this.#heeded = undefined;
    try {
      heeded?.signal.removeEventListener("abort", heeded.listener);
    } catch {
      // It may call its listener still, which stops nothing any more.
    }
  }

  /** Notes a stop (T1). What waits for it is told by `tell`. */
  note(by: Stopper): void {
    if (by === "user") this.#userCancelled = true;
    if (by === "lifecycle") {
      this.#lifecycleClosed = true;
      if (this.#closing !== undefined) Deferred.doneUnsafe(this.#closing, Effect.void);
    }
    this.#by ??= by;
  }

  /** Wakes what waits for the run's stop. */
  tell(): void {
    if (this.#stopped !== undefined) Deferred.doneUnsafe(this.#stopped, Effect.void);
  }

  /** The run is lost, and its response flows on or not; the first reason counts (T3). */
  lost(why: Loss, flows: boolean): void {
    if (this.#loss !== undefined) return;
    this.#loss = why;
    this.#flows = flows;
  }

  /** The run is lost, and its response goes on here to its end, or has come to it. */
  get flows(): boolean {
    return this.#flows;
  }

  /** What flowed on may not go on any more. */
  flowsNoMore(): void {
    this.#flows = false;
  }
}
