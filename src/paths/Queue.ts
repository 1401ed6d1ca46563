/** Holds the requests that wait for one path, in order of arrival and grouped by the cooldowns that may delay them. */
import type { Admission, Admitted, Scope, Wait } from "./Admission.ts";
import { type HoldKeys, holdKeysOf, modelKey } from "./Cooldowns.ts";

/** A waiting request. Times are in monotonic milliseconds. */
export interface Waiter {
  readonly admission: Admission;
  readonly lane: Lane;
  readonly since: number;
  /** Time at which the request stops waiting; infinite for no limit. */
  readonly deadline: number;
  readonly done: (admitted: Admitted) => void;
  /** Wait that was last reported to the request; undefined before the first report. */
  reportedWait: Wait | undefined;
  /** End of that wait, in monotonic milliseconds. */
  reportedUntil: number;
  /** Frees the slot of a released request. */
  release: (() => void) | undefined;
}

/** Requests of one credential and model, to which the same cooldowns apply. */
export interface Lane {
  readonly key: string;
  readonly scope: Scope;
  readonly holds: HoldKeys;
  readonly waiters: Set<Waiter>;
  /** Lower bound of the `maxRetryAfterMs` of its requests, in milliseconds. It is not raised when a request leaves. */
  leastRetryAfterMs: number;
  /** The reason why the requests of the lane wait. `waitsUntil` is the end of the wait, if known. */
  waitsFor: Wait["for"] | undefined;
  waitsUntil: number;
  /** Number of the last check in which none of its requests could be sent. */
  closedIn: number;
}

const laneKey = ({ credential, model }: Scope): string => `${modelKey(model)}\n${credential}`;

const emptyLane = (key: string, scope: Scope): Lane => ({
  key,
  scope,
  holds: holdKeysOf(scope),
  waiters: new Set(),
  leastRetryAfterMs: Number.POSITIVE_INFINITY,
  waitsFor: undefined,
  waitsUntil: 0,
  closedIn: 0,
});

/** Requests that wait for one path. */
export class Queue {
  readonly #lanes = new Map<string, Lane>();
  readonly #models = new Map<string, number>();
  /** All requests, in order of arrival. */
  readonly #waiters = new Set<Waiter>();
  /** Lower bound of the deadlines. It is not raised when a request leaves. */
  #deadlineFrom = Number.POSITIVE_INFINITY;

  get size(): number {
    return this.#waiters.size;
  }

  get waiters(): Iterable<Waiter> {
    return this.#waiters;
  }

  get lanes(): Iterable<Lane> {
    return this.#lanes.values();
  }

  get laneCount(): number {
    return this.#lanes.size;
  }

  get deadlineFrom(): number {
    return this.#deadlineFrom;
  }

  add(admission: Admission, now: number, done: (admitted: Admitted) => void): Waiter {
    const { maxRetryAfterMs, scope, withinMs } = admission;
    const key = laneKey(scope);
    const lane = this.#lanes.get(key) ?? emptyLane(key, scope);
    const waiter: Waiter = {
      admission,
      lane,
      since: now,
      deadline: now + withinMs,
      done,
      reportedWait: undefined,
      reportedUntil: 0,
      release: undefined,
    };
    this.#lanes.set(key, lane);
    this.#waiters.add(waiter);
    lane.waiters.add(waiter);
    lane.leastRetryAfterMs = Math.min(lane.leastRetryAfterMs, maxRetryAfterMs);
    const model = modelKey(scope.model);
    this.#models.set(model, (this.#models.get(model) ?? 0) + 1);
    this.#deadlineFrom = Math.min(this.#deadlineFrom, waiter.deadline);
    return waiter;
  }

  /** Removes a request. Returns true if it was still waiting. */
  remove(waiter: Waiter): boolean {
    if (!this.#waiters.delete(waiter)) return false;
    const { lane } = waiter;
    lane.waiters.delete(waiter);
    if (lane.waiters.size === 0) this.#lanes.delete(lane.key);
    const model = modelKey(lane.scope.model);
    const left = (this.#models.get(model) ?? 1) - 1;
    if (left === 0) this.#models.delete(model);
    else this.#models.set(model, left);
    if (this.#waiters.size === 0) this.#deadlineFrom = Number.POSITIVE_INFINITY;
    return true;
  }

  /** Returns true if a request of this model waits, and of this credential if one is given. */
  has(model: string | undefined, credential: string | undefined): boolean {
    if (credential === undefined) return this.#models.has(modelKey(model));
    return this.#lanes.has(laneKey({ path: "", credential, model }));
  }

  listOverdue(now: number): ReadonlyArray<Waiter> {
    if (now < this.#deadlineFrom) return [];
    const overdue: Array<Waiter> = [];
    this.#deadlineFrom = Number.POSITIVE_INFINITY;
    for (const waiter of this.#waiters) {
      if (waiter.deadline <= now) overdue.push(waiter);
      else this.#deadlineFrom = Math.min(this.#deadlineFrom, waiter.deadline);
    }
    return overdue;
  }
}
