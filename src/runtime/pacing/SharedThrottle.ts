/**
 * Draws the tokens of retries from the store, so that all processes of it together start no more than one would.
 *
 * Only a response that would be tried again asks, and puts its token back where it is not. Those that break together are one statement.
 * A store that is away, or slow, is not waited for: the process then goes by a bucket of its own that holds one token.
 */
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import type { SharedPacing } from "../../recorder/shared/SharedFacts.ts";
import { Throttle, throttleSize, tokensMax, tokensPerSecond } from "./Throttle.ts";

/** Longest that a decision waits for its token, in milliseconds. */
const drawWaitMs = 500;

/** What a process goes by alone: a part of as many as there are tokens, so that each has at least one retry at once. */
const aloneSize = { max: 1, perSecond: tokensPerSecond / tokensMax };

/** How long that is gone by, in milliseconds: other processes put their tokens back meanwhile. */
const knownMs = 1_000;

/** Providers of which it is known how long their tokens were taken ahead; beyond, the oldest is forgotten, and asked for again. */
const knownMax = 256;

/** A token of the store that a run holds while it decides. */
export interface Drawn {
  readonly provider: string;
  /** Milliseconds until it may be spent. */
  readonly waitMs: number;
  /** No token was taken: so long is the wait for one known to be. */
  readonly isNone: boolean;
}

/** A run that waits for its token. */
interface Asking {
  readonly told: Deferred.Deferred<Drawn | undefined>;
  /** It waits no longer, and goes by what its process has. */
  isLeft: boolean;
}

/** What the store has said of a bucket whose tokens are taken ahead, in monotonic milliseconds. */
interface Known {
  readonly until: number;
  readonly at: number;
}

/** What is asked of one provider's bucket while a statement is under way. */
interface Line {
  asking: Array<Asking>;
  back: number;
}

/** The throttle of one processor, as the processes of its store share it. */
export class SharedThrottle {
  /** What the process goes by where it shares nothing, or cannot ask now. */
  readonly own: Throttle;
  readonly #pacing: SharedPacing | undefined;
  /** Providers whose bucket is asked right now. */
  readonly #lines = new Map<string, Line>();
  readonly #taken = new Map<string, Known>();

  /** @param pacing of a bounded recorder: its calls come back */
  constructor(pacing: SharedPacing | undefined) {
    this.#pacing = pacing;
    this.own = new Throttle(pacing === undefined ? throttleSize : aloneSize);
  }

  /** Whether tokens are drawn from the store. */
  get isShared(): boolean {
    return this.#pacing !== undefined;
  }

  /**
   * Takes a token for a retry.
   *
   * @param maxWaitMs a token that is further away is of no use to the run, and the store is not asked for one
   * @returns undefined where the store does not say: the run goes by `own`
   */
  draw(provider: string, maxWaitMs: number, now: () => number): Effect.Effect<Drawn | undefined> {
    const pacing = this.#pacing;
    if (pacing === undefined) return Effect.undefined;
    // A run that is interrupted before it waits has asked in vain, and would leave its token nowhere.
    return Effect.uninterruptibleMask((restore): Effect.Effect<Drawn | undefined> => {
      const known = this.#knownMs(provider, now());
      if (known > maxWaitMs) return Effect.succeed({ provider, waitMs: Math.ceil(known), isNone: true });
      const asking: Asking = { told: Deferred.makeUnsafe(), isLeft: false };
      const leaves = Effect.sync(() => {
        asking.isLeft = true;
        return undefined;
      });
      const told = Effect.timeoutOrElse(Deferred.await(asking.told), { duration: drawWaitMs, orElse: () => leaves });
      return Effect.andThen(
        this.#asks(pacing, provider, now, (line) => line.asking.push(asking)),
        Effect.onInterrupt(restore(told), () => leaves),
      );
    });
  }

  /** The run takes no retry, or one that needs no token: it is there for others again. Nothing of the run waits for it. */
  putBack({ isNone, provider }: Drawn, now: () => number): Effect.Effect<void> {
    const pacing = this.#pacing;
    if (isNone || pacing === undefined) return Effect.void;
    const back = this.#asks(pacing, provider, now, (line) => {
      line.back += 1;
    });
    return Effect.uninterruptible(back);
  }

  /** Not to be interrupted: a line that nobody works at would be waited in for ever. */
  #asks(pacing: SharedPacing, provider: string, now: () => number, joins: (line: Line) => void): Effect.Effect<void> {
    return Effect.suspend(() => {
      const found = this.#lines.get(provider);
      if (found !== undefined) return Effect.sync(() => joins(found));
      const line: Line = { asking: [], back: 0 };
      joins(line);
      this.#lines.set(provider, line);
      // In a fiber of its own: who asks may leave while others wait.
      return Effect.asVoid(Effect.forkDetach(this.#works(pacing, provider, line, now)));
    });
  }

  /** One statement after the other, each for all that have come meanwhile. */
  readonly #works = Effect.fnUntraced(function* (
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
      this.#tells(provider, asking, left, line, now());
    }
    this.#lines.delete(provider);
  });

  /** @param left tokens behind the last of them. A recorder may come from another author, and say what is no number */
  #tells(provider: string, asking: ReadonlyArray<Asking>, left: number, line: Line, now: number): void {
    const isKnown = Number.isFinite(left);
    const waitMs = (tokens: number) =>
      Math.min(Number.MAX_SAFE_INTEGER, Math.ceil((Math.max(0, -tokens) / tokensPerSecond) * 1_000));
    if (isKnown) this.#learns(provider, waitMs(left), now);
    for (const [place, { isLeft, told }] of asking.entries()) {
      const drawn = { provider, waitMs: waitMs(left + asking.length - 1 - place), isNone: false };
      if (isLeft && isKnown) line.back += 1;
      Deferred.doneUnsafe(told, Effect.succeed(isKnown ? drawn : undefined));
    }
  }

  /** Milliseconds until a token is there, as far as that is known; 0 where the store has to be asked. */
  #knownMs(provider: string, now: number): number {
    const known = this.#taken.get(provider);
    return known === undefined || now - known.at >= knownMs ? 0 : known.until - now;
  }

  /** Remembers what is ahead of its time only: a bucket that has tokens is asked. */
  #learns(provider: string, waitMs: number, now: number): void {
    this.#taken.delete(provider);
    if (waitMs === 0) return;
    this.#taken.set(provider, { until: now + waitMs, at: now });
    for (const oldest of this.#taken.keys()) {
      if (this.#taken.size > knownMax) this.#taken.delete(oldest);
      break;
    }
  }
}
