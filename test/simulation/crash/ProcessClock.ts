/**
 * The clock of one of several processes. Its wall clock may be off, and while the process is frozen none of its sleeps ends.
 * Sleeps that were due in the meantime end late, at the thaw.
 */
import { type Clock, Deferred, Effect } from "effect";

export class ProcessClock implements Clock.Clock {
  /** The clock of the world outside the process. */
  readonly inner: Clock.Clock;
  readonly #offsetMs: number;
  #thawed: Deferred.Deferred<void> | undefined;

  constructor(inner: Clock.Clock, offsetMs: number) {
    this.inner = inner;
    this.#offsetMs = offsetMs;
  }

  /** Stops all waits until `thaw`. */
  freeze(): void {
    this.#thawed ??= Deferred.makeUnsafe<void>();
  }

  thaw(): void {
    const thawed = this.#thawed;
    this.#thawed = undefined;
    if (thawed !== undefined) Deferred.doneUnsafe(thawed, Effect.void);
  }

  get isFrozen(): boolean {
    return this.#thawed !== undefined;
  }

  /** Waits until the process is not frozen. */
  readonly running: Effect.Effect<void> = Effect.suspend(() =>
    this.#thawed === undefined ? Effect.void : Effect.flatMap(Deferred.await(this.#thawed), () => this.running),
  );

  currentTimeMillisUnsafe(): number {
    return this.inner.currentTimeMillisUnsafe() + this.#offsetMs;
  }

  currentTimeNanosUnsafe(): bigint {
    return this.inner.currentTimeNanosUnsafe() + BigInt(this.#offsetMs) * 1_000_000n;
  }

  monotonicTimeNanosUnsafe(): bigint {
    return this.inner.monotonicTimeNanosUnsafe();
  }

  readonly currentTimeMillis = Effect.sync(() => this.currentTimeMillisUnsafe());
  readonly currentTimeNanos = Effect.sync(() => this.currentTimeNanosUnsafe());
  readonly monotonicTimeNanos = Effect.sync(() => this.monotonicTimeNanosUnsafe());

  sleep(duration: Parameters<Clock.Clock["sleep"]>[0]): Effect.Effect<void> {
    return Effect.andThen(this.inner.sleep(duration), this.running);
  }
}
