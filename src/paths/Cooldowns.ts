/**
 * Keeps what providers have announced: until when the requests of a scope are to wait.
 *
 * A rate limit holds the requests of its path, credential and model. An overload holds those of its path and model: the
 * credential that heard it until its end, the others only for a few seconds, or until its end once two credentials heard it.
 * Pure: each call is given the time, in monotonic milliseconds.
 */
import { label } from "../domain/Limits.ts";
import type { Refusal, Scope } from "./Admission.ts";
import type { Waves } from "./Waves.ts";

/** Most scopes that are kept. Beyond it the oldest is forgotten that nobody waits for. */
export const cooldownsMax = 4_096;

/** Longest announced wait that is believed, in milliseconds: a year. */
export const waitMaxMs = 366 * 86_400_000;

/** How long an overload that one credential heard holds the requests of others, in milliseconds. */
export const overloadOthersMs = 5_000;

/** The one request that goes before its cooldown is over, because it waits no longer for what another one heard. */
export interface Trial {
  /** Its head has come. */
  answered: boolean;
}

/** What holds the requests of one scope. */
export class Hold {
  readonly key: string;
  readonly path: string;
  /** Undefined for an overload, which is of no credential. */
  readonly credential: string | undefined;
  readonly model: string | undefined;
  readonly kind: Refusal["kind"];
  /** The credential that heard it; undefined where two did. */
  heardBy: string | undefined;
  heardAt: number;
  until: number;
  trial: Trial | undefined;
  /** Lets those go that waited; there is none before somebody did. */
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

  /** When it no longer holds the requests of a credential. */
  endOf(credential: string): number {
    const whole = this.kind === "rate_limited" || this.heardBy === undefined || this.heardBy === credential;
    return whole ? this.until : Math.min(this.until, this.heardAt + overloadOthersMs);
  }

  /** When it no longer holds a request that keeps what others heard for so long at most. */
  endFor(credential: string, maxRetryAfterMs: number): number {
    return Math.min(this.endOf(credential), this.heardAt + maxRetryAfterMs);
  }

  /** Another refusal of the same scope. The longer wait wins; the one that a trial or a later wave meets stands for itself. */
  heard({ credential }: Scope, waitMs: number, now: number, heardAt: number): void {
    const over = now >= this.until;
    const until = now + waitMs;
    this.until = over || this.trial !== undefined ? until : Math.max(this.until, until);
    if (over) this.heardBy = credential;
    else if (this.heardBy !== credential) this.heardBy = undefined;
    this.heardAt = over ? heardAt : Math.max(this.heardAt, heardAt);
    this.trial = undefined;
    this.waves = undefined;
  }

  /** The trial is over. A head that refused nothing ends the cooldown for everybody. */
  tried(trial: Trial, now: number): void {
    if (this.trial !== trial) return;
    this.trial = undefined;
    if (trial.answered) this.until = Math.min(this.until, now);
  }
}

/** Names a model in a key: a client may spell it, at any length. */
export const modelKey = (model: string | undefined): string => (model === undefined ? "" : label(model));

/** Under what the cooldowns of a scope are kept. */
export interface HoldKeys {
  readonly limit: string;
  readonly overload: string;
}

/** The keys of a scope. Who asks often keeps them. */
export const holdKeysOf = ({ path, credential, model }: Scope): HoldKeys => {
  const overload = `${path}\n${modelKey(model)}`;
  return { limit: `${overload}\n${credential}`, overload };
};

const keyOf = (scope: Scope, kind: Refusal["kind"]): string => {
  const keys = holdKeysOf(scope);
  return kind === "overloaded" ? keys.overload : keys.limit;
};

/** All cooldowns of a process, the one that was heard last at the end. */
export class Cooldowns {
  readonly #holds = new Map<string, Hold>();
  readonly #isWaitedFor: (hold: Hold) => boolean;

  /** @param isWaitedFor whether requests wait for a cooldown; such a one is not forgotten */
  constructor(isWaitedFor: (hold: Hold) => boolean) {
    this.#isWaitedFor = isWaitedFor;
  }

  get size(): number {
    return this.#holds.size;
  }

  /** What may hold a request of a scope: a rate limit and an overload. Those that are over and that nobody waits for are forgotten. */
  of(scope: Scope, now: number): ReadonlyArray<Hold> {
    return this.#holds.size === 0 ? none : this.under(holdKeysOf(scope), now);
  }

  /** The same, by the keys of the scope. */
  under(keys: HoldKeys, now: number): ReadonlyArray<Hold> {
    if (this.#holds.size === 0) return none;
    const limit = this.#current(keys.limit, now);
    const overload = this.#current(keys.overload, now);
    if (limit === undefined) return overload === undefined ? none : [overload];
    return overload === undefined ? [limit] : [limit, overload];
  }

  #current(key: string, now: number): Hold | undefined {
    const hold = this.#holds.get(key);
    if (hold === undefined || now < hold.until || this.#isWaitedFor(hold)) return hold;
    this.#holds.delete(key);
    return undefined;
  }

  /**
   * A provider has refused. One that is about a single request holds no other.
   *
   * @param heardAt when it did, which may have been at another process
   */
  refused(scope: Scope, refusal: Refusal, now: number, heardAt = now): void {
    if (refusal.onlyThis || !(refusal.waitMs > 0)) return;
    const waitMs = Math.min(refusal.waitMs, waitMaxMs);
    const key = keyOf(scope, refusal.kind);
    const known = this.#current(key, now);
    this.#holds.delete(key);
    if (known !== undefined) {
      known.heard(scope, waitMs, now, heardAt);
      this.#holds.set(key, known);
    } else if (this.#makeRoom()) {
      this.#holds.set(key, new Hold(key, scope, refusal.kind, now + waitMs, heardAt));
    }
  }

  /** What is left of the wait of one kind, in milliseconds. */
  leftOf(scope: Scope, kind: Refusal["kind"], now: number): number {
    return Math.max(0, (this.#holds.get(keyOf(scope, kind))?.until ?? now) - now);
  }

  /** Those that are waited for move to the end, so that the search for room stays short. */
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

  /** The cooldowns that are not over, by path. */
  byPath(now: number): ReadonlyMap<string, ReadonlyArray<Hold>> {
    return Map.groupBy(
      [...this.#holds.values()].filter(({ until }) => now < until),
      ({ path }) => path,
    );
  }
}

const none: ReadonlyArray<Hold> = [];
