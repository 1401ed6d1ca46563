/**
 * Records why a run stops: who stopped it from outside, and why this process no longer owns it.
 *
 * T1 The first stop names the stopper; a later stop only adds its flag (L10).
 * T2 A stop is never reverted.
 * T3 A lost run stops in the same way as after a close. The first loss counts.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import { type Stopper, stopperOfSignal } from "../contract/InterruptSignature.ts";
import type { Loss } from "./Loss.ts";

/** The stop of one run. */
export class RunStop {
  #by: Stopper | undefined;
  #isUserCancelled = false;
  #isLifecycleClosed = false;
  #loss: Loss | undefined;
  // Created on demand, because many idle runs stay in memory.
  #stopped: Deferred.Deferred<void> | undefined;
  #closing: Deferred.Deferred<void> | undefined;
  /** The caller's signal, while the run listens to it. */
  #heeded:
    | { readonly signal: AbortSignal; readonly listener: () => void; readonly stop: (by: Stopper) => void }
    | undefined;

  /** The stopper of the run; undefined while it runs. */
  get by(): Stopper | undefined {
    return this.#by;
  }

  /** True if the user has cancelled the run, before or after another stop. */
  get isUserCancelled(): boolean {
    return this.#isUserCancelled;
  }

  /** True if the processor was closed, before or after another stop. */
  get isLifecycleClosed(): boolean {
    return this.#isLifecycleClosed;
  }

  /** Reason why this process no longer owns the run. */
  get loss(): Loss | undefined {
    return this.#loss;
  }

  /** Completes as soon as the run is stopped. */
  get stopped(): Deferred.Deferred<void> {
    if (this.#stopped === undefined) {
      this.#stopped = Deferred.makeUnsafe<void>();
      if (this.#by !== undefined) Deferred.doneUnsafe(this.#stopped, Effect.void);
    }
    return this.#stopped;
  }

  /** Waits until the processor closes, even if the run was stopped before. */
  get closing(): Effect.Effect<void> {
    if (this.#isLifecycleClosed) return Effect.void;
    this.#closing ??= Deferred.makeUnsafe<void>();
    return Deferred.await(this.#closing);
  }

  /**
   * Listens to the caller's signal.
   *
   * @param stop called to stop the run
   */
  listenForAbort(signal: AbortSignal, stop: (by: Stopper) => void): void {
    const listener = () => this.checkSignal();
    this.#heeded = { signal, listener, stop };
    signal.addEventListener("abort", listener, { once: true });
    this.checkSignal();
  }

  /** Checks the caller's signal, because the error that an abort causes may arrive before the abort event (L10). */
  checkSignal(): void {
    const by = stopperOfSignal(this.#heeded?.signal);
    if (by !== undefined) this.#heeded?.stop(by);
  }

  /** Stops listening. If the signal throws, the error is dropped, because it must not prevent the end of the run (L7). */
  stopListening(): void {
    const heeded = this.#heeded;
    this.#heeded = undefined;
    try {
      heeded?.signal.removeEventListener("abort", heeded.listener);
    } catch {
      // The signal may still call the listener, but that no longer stops anything.
    }
  }

  /** Records a stop (T1). Call `tell` to wake everything that waits for it. */
  note(by: Stopper): void {
    if (by === "user") this.#isUserCancelled = true;
    if (by === "lifecycle") {
      this.#isLifecycleClosed = true;
      if (this.#closing !== undefined) Deferred.doneUnsafe(this.#closing, Effect.void);
    }
    this.#by ??= by;
  }

  /** Wakes everything that waits for the run's stop. */
  tell(): void {
    if (this.#stopped !== undefined) Deferred.doneUnsafe(this.#stopped, Effect.void);
  }

  /** Records why this process no longer owns the run. The first reason counts (T3). */
  markLost(why: Loss): void {
    this.#loss ??= why;
  }
}
