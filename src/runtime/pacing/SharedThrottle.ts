/**
 * Draws tokens for retries from the store, so that all processes that share the store start no more retries than one process would.
 *
 * Only a response that would be retried draws a token, and the token is given back if the response is not retried. Responses that break
 * together share one statement to the store. If the store is unavailable or slow, the process does not wait. It uses its own bucket, which
 * holds one token.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import type { SharedPacing } from "../../recorder/shared/SharedFacts.ts";
import { Throttle, throttleSize, tokensMax, tokensPerSecond } from "./Throttle.ts";

/** Maximum time that a decision waits for its token, in milliseconds. */
const drawWaitMs = 500;

/**
 * Bucket of a process without a shared store: `1 / tokensMax` of the shared bucket, so that each process has at least one immediate retry.
 */
const aloneSize = { max: 1, perSecond: tokensPerSecond / tokensMax };

/** Time for which a known wait is reused, in milliseconds. It is short, because other processes give tokens back in the meantime. */
const knownMs = 1_000;

/** Maximum providers with a known wait. Beyond it the oldest is forgotten, and the store is asked again. */
const knownMax = 256;

/** A token of the store that a run holds while its retry is decided. */
export interface Drawn {
  readonly provider: string;
  /** Milliseconds until the token may be spent. */
  readonly waitMs: number;
  /** True if no token was taken, because the known wait is longer than the run's maximum. */
  readonly isNone: boolean;
}

/** A run that waits for its token. */
interface Asking {
  readonly answered: Deferred.Deferred<Drawn | undefined>;
  /** True if the run stopped waiting and uses its own process's bucket. */
  isLeft: boolean;
}

/** The store's answer for an empty bucket: the time at which its next token is free, in monotonic milliseconds. */
interface Known {
  readonly until: number;
  readonly at: number;
}

/** Requests for one provider's bucket that wait for the next statement, and tokens that the statement gives back. */
interface Line {
  asking: Array<Asking>;
  back: number;
}

/** The throttle of one processor, shared by the processes of its store. */
export class SharedThrottle {
  /** The bucket of this process, used without a shared store or while the store does not answer. */
  readonly own: Throttle;
  readonly #pacing: SharedPacing | undefined;
  /** Providers with a worker that is asking the store. */
  readonly #lines = new Map<string, Line>();
  readonly #taken = new Map<string, Known>();

  /** @param pacing shared pacing of a bounded recorder, whose calls are limited in time */
  constructor(pacing: SharedPacing | undefined) {
    this.#pacing = pacing;
    this.own = new Throttle(pacing === undefined ? throttleSize : aloneSize);
  }

  /** True if tokens are drawn from the store. */
  get isShared(): boolean {
    return this.#pacing !== undefined;
  }

  /**
   * Takes a token for a retry.
   *
   * @param maxWaitMs maximum useful wait; if the known wait is longer, the store is not asked
   * @returns undefined if the store does not answer; the run then uses `own`
   */
  draw(provider: string, maxWaitMs: number, now: () => number): Effect.Effect<Drawn | undefined> {
    const pacing = this.#pacing;
    if (pacing === undefined) return Effect.undefined;
    // Not interruptible: an interrupt between the request and the wait would leave a token that no run gives back.
    return Effect.uninterruptibleMask((restore): Effect.Effect<Drawn | undefined> => {
      const known = this.#knownMs(provider, now());
      if (known > maxWaitMs) return Effect.succeed({ provider, waitMs: Math.ceil(known), isNone: true });
      const asking: Asking = { answered: Deferred.makeUnsafe(), isLeft: false };
      const markLeft = Effect.sync(() => {
        asking.isLeft = true;
        return undefined;
      });
      const drawn = Effect.timeoutOrElse(Deferred.await(asking.answered), {
        duration: drawWaitMs,
        orElse: () => markLeft,
      });
      return Effect.andThen(
        this.#joinLine(pacing, provider, now, (line) => line.asking.push(asking)),
        Effect.onInterrupt(restore(drawn), () => markLeft),
      );
    });
  }

  /** Gives a token that the run does not need back to the store. The run does not wait for the write. */
  returnToken({ isNone, provider }: Drawn, now: () => number): Effect.Effect<void> {
    const pacing = this.#pacing;
    if (isNone || pacing === undefined) return Effect.void;
    const back = this.#joinLine(pacing, provider, now, (line) => {
      line.back += 1;
    });
    return Effect.uninterruptible(back);
  }

  /** Not interruptible, because without the worker the runs of this line would wait forever. */
  #joinLine(
    pacing: SharedPacing,
    provider: string,
    now: () => number,
    join: (line: Line) => void,
  ): Effect.Effect<void> {
    return Effect.suspend(() => {
      const found = this.#lines.get(provider);
      if (found !== undefined) return Effect.sync(() => join(found));
      const line: Line = { asking: [], back: 0 };
      join(line);
      this.#lines.set(provider, line);
      // Runs in a detached fiber, because the run that asks may leave while other runs wait for the same statement.
      return Effect.asVoid(Effect.forkDetach(this.#serveLine(pacing, provider, line, now)));
    });
  }

  /** Runs statements one after the other. Each one serves all requests that arrived during the previous one. */
  readonly #serveLine = Effect.fnUntraced(function* (
    this: SharedThrottle,
    pacing: SharedPacing,
    provider: string,
    line: Line,
    now: () => number,
  ) {
    while (line.asking.length > 0 || line.back !== 0) {
      const [asking, back] = [line.asking, line.back];
      [line.asking, line.back] = [[], 0];
      const draw = Effect.suspend(() => pacing.draw(provider, asking.length - back, throttleSize));
      const left = yield* Effect.matchCause(draw, {
        onFailure: () => Number.NaN,
        onSuccess: (it) => it,
      });
      this.#resolveDraws(provider, asking, left, line, now());
    }
    this.#lines.delete(provider);
  });

  /**
   * @param left tokens left after the last request; checked, because a third-party recorder may return a value that is not a
   *   number
   */
  #resolveDraws(provider: string, asking: ReadonlyArray<Asking>, left: number, line: Line, now: number): void {
    const isKnown = Number.isFinite(left);
    const waitMs = (tokens: number) =>
      Math.min(Number.MAX_SAFE_INTEGER, Math.ceil((Math.max(0, -tokens) / tokensPerSecond) * 1_000));
    if (isKnown) this.#rememberWait(provider, waitMs(left), now);
    for (const [place, { isLeft, answered }] of asking.entries()) {
      const drawn = { provider, waitMs: waitMs(left + asking.length - 1 - place), isNone: false };
      if (isLeft && isKnown) line.back += 1;
      Deferred.doneUnsafe(answered, Effect.succeed(isKnown ? drawn : undefined));
    }
  }

  /** Returns the known wait for a token, in milliseconds; 0 if the store has to be asked. */
  #knownMs(provider: string, now: number): number {
    const known = this.#taken.get(provider);
    return known === undefined || now - known.at >= knownMs ? 0 : known.until - now;
  }

  /** Remembers a wait for the next token. A bucket with tokens is not remembered, because other processes also draw from it. */
  #rememberWait(provider: string, waitMs: number, now: number): void {
    this.#taken.delete(provider);
    if (waitMs === 0) return;
    this.#taken.set(provider, { until: now + waitMs, at: now });
    for (const oldest of this.#taken.keys()) {
      if (this.#taken.size > knownMax) this.#taken.delete(oldest);
      break;
    }
  }
}
