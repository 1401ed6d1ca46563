/**
 * Logs a repeated failure, for example of an unavailable store: its start, at most one warning per minute while it lasts or recurs, and its
 * end.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";

/** Minimum time between two warnings, in milliseconds. */
export const saidAgainMs = 60_000;

/** Log messages of an outage. */
export interface OutageWords {
  /** Message at the start of the outage; the reason is appended. */
  readonly away: string;
  /** Message after the outage. */
  readonly back: string;
}

/** Logs the outages of one operation. */
export class OutageLog {
  readonly #words: OutageWords;
  #outage: Outage | undefined;
  /** Time of the last warning, across outages, so that a flapping store does not flood the log. */
  #saidAt = Number.NEGATIVE_INFINITY;

  constructor(words: OutageWords) {
    this.#words = words;
  }

  /** True if the last attempt at the operation failed. */
  get isOn(): boolean {
    return this.#outage !== undefined;
  }

  /**
   * Records a failure, and logs it unless the last warning is less than a minute old.
   *
   * @param why the store's message, without a stack, because a stack would not help an operator
   */
  recordFailure(why: string): Effect.Effect<void> {
    return Effect.flatMap(Clock.Clock, (clock) => {
      const now = monotonicMs(clock);
      const outage = this.#outage ?? { since: now, failures: 0, isSaid: false };
      this.#outage = outage;
      outage.failures += 1;
      if (now - this.#saidAt < saidAgainMs) return Effect.void;
      this.#saidAt = now;
      outage.isSaid = true;
      const what = `${this.#words.away}: ${why}`;
      return outage.failures === 1 ? Effect.logWarning(what) : Effect.logWarning(what, fieldsOf(now, outage));
    });
  }

  /** Records a success, and logs the end of the outage if its start was logged. */
  readonly recordSuccess: Effect.Effect<void> = Effect.suspend(() => {
    const outage = this.#outage;
    this.#outage = undefined;
    if (outage === undefined || !outage.isSaid) return Effect.void;
    return Effect.flatMap(Clock.Clock, (clock) =>
      Effect.logInfo(this.#words.back, fieldsOf(monotonicMs(clock), outage)),
    );
  });

  /**
   * Queries a store that may be unavailable or slow. If the query fails or times out, returns undefined, and the caller continues with its
   * own knowledge.
   *
   * @param waitMs timeout, in milliseconds
   */
  tryWithin<A>(asked: Effect.Effect<A, { readonly message: string }>, waitMs: number): Effect.Effect<A | undefined> {
    return asked.pipe(
      Effect.timeoutOrElse({ duration: waitMs, orElse: () => Effect.fail({ message: "it does not answer" }) }),
      Effect.tap(this.recordSuccess),
      Effect.catch(({ message }) => Effect.as(this.recordFailure(message), undefined)),
    );
  }
}

/** Monotonic, because after a jump of the wall clock an outage could be logged twice or not at all. */
const monotonicMs = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6;

interface Outage {
  /** Start of the outage, in monotonic milliseconds. */
  readonly since: number;
  failures: number;
  isSaid: boolean;
}

const fieldsOf = (now: number, { failures, since }: Outage) => ({ away_ms: Math.round(now - since), failures });

/** Returns a function that gives each store one log, so that several users of a store log its outage only once. */
export const outageLogs = (words: OutageWords): ((store: object) => OutageLog) => {
  const logs = new WeakMap<object, OutageLog>();
  return (store) => {
    const known = logs.get(store) ?? new OutageLog(words);
    logs.set(store, known);
    return known;
  };
};
