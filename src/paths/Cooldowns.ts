/**
 * Keeps the waits that providers have announced, that is, the time until which the requests of a scope must wait.
 *
 * A rate limit delays the requests of its path, credential and model. An overload delays those of its path and model. The credential that
 * received the overload waits until the overload ends. Other credentials wait only a few seconds, unless a second credential receives an
 * overload too: then all of them wait until it ends. Pure: each call receives the time, in monotonic milliseconds.
 */
import { label } from "../domain/Limits.ts";
import type { Refusal, Scope } from "./Admission.ts";
import type { Waves } from "./Waves.ts";

/** Maximum scopes that are kept. Beyond it, the oldest scope without waiting requests is evicted. */
export const cooldownsMax = 4_096;

/** Maximum announced wait that is accepted, in milliseconds: a year. */
export const waitMaxMs = 366 * 86_400_000;

/** Time for which an overload of one credential delays the requests of other credentials, in milliseconds. */
export const overloadOthersMs = 5_000;

/**
 * A request that is sent before its cooldown has expired, at most one per cooldown. The wait was announced to another request, and this request
 * has waited for its own maximum.
 */
export interface Trial {
  /** True if its response head has arrived. */
  answered: boolean;
}

/** Cooldown of the requests of one scope. */
export class Hold {
  readonly key: string;
  readonly path: string;
  /** Undefined for an overload, which belongs to no credential. */
  readonly credential: string | undefined;
  readonly model: string | undefined;
  readonly kind: Refusal["kind"];
  /** The credential that received the refusal; undefined if two credentials received a refusal. */
  heardBy: string | undefined;
  heardAt: number;
  until: number;
  trial: Trial | undefined;
  /** Releases the waiting requests in batches; undefined until a request has waited. */
  waves: Waves | undefined;

  constructor(key: string, scope: Scope, kind: Refusal["kind"], until: number, heardAt: number) {
    this.key = key;
    this.path = scope.path;
    this.credential = kind === "overloaded" ? undefined : scope.credential;
    this.model = scope.model === undefined ? undefined : label(scope.model);
    this.kind = kind;
    this.heardBy = scope.credential;
    this.heardAt = heardAt;
    this.until = until;
  }

  /** Returns the time from which the cooldown no longer delays requests of a credential. */
  endOf(credential: string): number {
    const whole = this.kind === "rate_limited" || this.heardBy === undefined || this.heardBy === credential;
    return whole ? this.until : Math.min(this.until, this.heardAt + overloadOthersMs);
  }

  /** Returns the time from which the cooldown no longer delays a request that observes others' waits for at most `maxRetryAfterMs`. */
  endFor(credential: string, maxRetryAfterMs: number): number {
    return Math.min(this.endOf(credential), this.heardAt + maxRetryAfterMs);
  }

  /**
   * Records another refusal of the same scope. The longer wait counts, except that a refusal after the cooldown or during a trial replaces
   * the wait.
   */
  recordRefusal({ credential }: Scope, waitMs: number, now: number, heardAt: number): void {
    const over = now >= this.until;
    const until = now + waitMs;
    this.until = over || this.trial !== undefined ? until : Math.max(this.until, until);
    if (over) this.heardBy = credential;
    else if (this.heardBy !== credential) this.heardBy = undefined;
    this.heardAt = over ? heardAt : Math.max(this.heardAt, heardAt);
    this.trial = undefined;
    this.waves = undefined;
  }

  /** Ends the trial. If its response head was not a refusal, the cooldown ends for all requests. */
  endTrial(trial: Trial, now: number): void {
    if (this.trial !== trial) return;
    this.trial = undefined;
    if (trial.answered) this.until = Math.min(this.until, now);
  }
}

/** Returns a model's name as part of a key. A client may send a name of any length, so the name is truncated. */
export const modelKey = (model: string | undefined): string => (model === undefined ? "" : label(model));

/** Keys of the two cooldowns that may apply to a scope: a rate limit and an overload. */
export interface HoldKeys {
  readonly limit: string;
  readonly overload: string;
}

/** Returns the keys of a scope. Frequent callers should cache them. */
export const holdKeysOf = ({ path, credential, model }: Scope): HoldKeys => {
  const overload = `${path}\n${modelKey(model)}`;
  return { limit: `${overload}\n${credential}`, overload };
};

const keyOf = (scope: Scope, kind: Refusal["kind"]): string => {
  const keys = holdKeysOf(scope);
  return kind === "overloaded" ? keys.overload : keys.limit;
};

/** All cooldowns of a process. The most recent one is last. */
export class Cooldowns {
  readonly #holds = new Map<string, Hold>();
  readonly #isWaitedFor: (hold: Hold) => boolean;

  /** @param isWaitedFor returns true if requests wait for a cooldown, which is then not evicted */
  constructor(isWaitedFor: (hold: Hold) => boolean) {
    this.#isWaitedFor = isWaitedFor;
  }

  get size(): number {
    return this.#holds.size;
  }

  /**
   * Returns the cooldowns that may delay a request of a scope: a rate limit and an overload. Evicts expired cooldowns without waiting requests.
   */
  of(scope: Scope, now: number): ReadonlyArray<Hold> {
    return this.#holds.size === 0 ? none : this.findHolds(holdKeysOf(scope), now);
  }

  /** Like `of`, but by the keys of the scope. */
  findHolds(keys: HoldKeys, now: number): ReadonlyArray<Hold> {
    if (this.#holds.size === 0) return none;
    const limit = this.#findHold(keys.limit, now);
    const overload = this.#findHold(keys.overload, now);
    if (limit === undefined) return overload === undefined ? none : [overload];
    return overload === undefined ? [limit] : [limit, overload];
  }

  #findHold(key: string, now: number): Hold | undefined {
    const hold = this.#holds.get(key);
    if (hold === undefined || now < hold.until || this.#isWaitedFor(hold)) return hold;
    this.#holds.delete(key);
    return undefined;
  }

  /**
   * Records a provider's refusal. A refusal that is about a single request does not delay others.
   *
   * @param heardAt time at which the refusal was received, perhaps by another process
   */
  recordRefusal(scope: Scope, refusal: Refusal, now: number, heardAt = now): void {
    if (refusal.onlyThis || !(refusal.waitMs > 0)) return;
    const waitMs = Math.min(refusal.waitMs, waitMaxMs);
    const key = keyOf(scope, refusal.kind);
    const known = this.#findHold(key, now);
    this.#holds.delete(key);
    if (known !== undefined) {
      known.recordRefusal(scope, waitMs, now, heardAt);
      this.#holds.set(key, known);
    } else if (this.#makeRoom()) {
      this.#holds.set(key, new Hold(key, scope, refusal.kind, now + waitMs, heardAt));
    }
  }

  /** Makes room for one more cooldown. Cooldowns with waiting requests move to the end, so that the search stays short. */
  #makeRoom(): boolean {
    let tries = this.#holds.size;
    for (const [key, hold] of this.#holds) {
      if (this.#holds.size < cooldownsMax || tries === 0) break;
      tries -= 1;
      this.#holds.delete(key);
      if (this.#isWaitedFor(hold)) this.#holds.set(key, hold);
    }
    return this.#holds.size < cooldownsMax;
  }

  /** Returns the cooldowns that are not over, by path. */
  byPath(now: number): ReadonlyMap<string, ReadonlyArray<Hold>> {
    return Map.groupBy(
      [...this.#holds.values()].filter(({ until }) => now < until),
      ({ path }) => path,
    );
  }
}

const none: ReadonlyArray<Hold> = [];
