/**
 * Says in the log that something fails again and again, such as a store that is away: when that begins, at most once a minute while it
 * lasts or comes again, and when it is over.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";

/** From one warning of the same outage to the next, in milliseconds. */
export const saidAgainMs = 60_000;

/** What is said. */
export interface OutageWords {
  /** What does not happen now; the reason stands behind it. */
  readonly away: string;
  /** What happens again. */
  readonly back: string;
}

/** One thing that may fail again and again. */
export class OutageLog {
  readonly #words: OutageWords;
  #outage: Outage | undefined;
  /** When it was last said, whichever outage that was: what comes and goes all the time fills no log either. */
  #saidAt = Number.NEGATIVE_INFINITY;

  constructor(words: OutageWords) {
    this.#words = words;
  }

  /** Whether it failed when it was last tried. */
  get isOn(): boolean {
    return this.#outage !== undefined;
  }

  /**
   * It has failed.
   *
   * @param why the store's own words; a stack tells an operator nothing that these do not
   */
  failed(why: string): Effect.Effect<void> {
    return Effect.flatMap(Clock.Clock, (clock) => {
      const now = monotonicMs(clock);
      const outage = this.#outage ?? { since: now, failures: 0, isSaid: false };
      this.#outage = outage;
      outage.failures += 1;
      if (now - this.#saidAt < saidAgainMs) return Effect.void;
      this.#saidAt = now;
      outage.isSaid = true;
      const what = `${this.#words.away}: ${why}`;
      return outage.failures === 1 ? Effect.logWarning(what) : Effect.logWarning(what, told(now, outage));
    });
  }

  /** It has worked. */
  readonly worked: Effect.Effect<void> = Effect.suspend(() => {
    const outage = this.#outage;
    this.#outage = undefined;
    if (outage === undefined || !outage.isSaid) return Effect.void;
    return Effect.flatMap(Clock.Clock, (clock) => Effect.logInfo(this.#words.back, told(monotonicMs(clock), outage)));
  });

  /**
   * Asks a store that may be away or slow: then it knows nothing, and its caller goes on with what it knows itself.
   *
   * @param waitMs maximum wait, in milliseconds
   */
  tried<A>(asked: Effect.Effect<A, { readonly message: string }>, waitMs: number): Effect.Effect<A | undefined> {
    return asked.pipe(
      Effect.timeoutOrElse({ duration: waitMs, orElse: () => Effect.fail({ message: "it does not answer" }) }),
      Effect.tap(this.worked),
      Effect.catch(({ message }) => Effect.as(this.failed(message), undefined)),
    );
  }
}

/** By the clock that nothing sets: a wall clock that jumps would say an outage twice, or not at all. */
const monotonicMs = (clock: Clock.Clock): number => Number(clock.monotonicTimeNanosUnsafe()) / 1e6;

interface Outage {
  /** Monotonic milliseconds. */
  readonly since: number;
  failures: number;
  isSaid: boolean;
}

const told = (now: number, { failures, since }: Outage) => ({ away_ms: Math.round(now - since), failures });

/** Gives each store the one log of its outage, where many look at the same store: they say it once. */
export const outageLogs = (words: OutageWords): ((store: object) => OutageLog) => {
  const logs = new WeakMap<object, OutageLog>();
  return (store) => {
    const known = logs.get(store) ?? new OutageLog(words);
    logs.set(store, known);
    return known;
  };
};
