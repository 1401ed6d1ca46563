/**
 * Holds the requests that wait for one path, in order of their coming, and apart by what may hold them.
 */
import type { Admission, Admitted, Scope, Wait } from "./Admission.ts";
import { modelKey } from "./Cooldowns.ts";

/** A request that waits. Times are monotonic milliseconds. */
export interface Waiter {
  readonly admission: Admission;
  /** Its place in the order of coming. */
  readonly number: number;
  readonly since: number;
  /** When it waits no longer; infinite for ever. */
  readonly deadline: number;
  readonly done: (admitted: Admitted) => void;
  /** What it was last told; undefined before it was told anything. */
  told: Wait | undefined;
  /** Until when, by the monotonic clock. */
  toldUntil: number;
  /** Gives back the place of one that was let go. */
  leave: (() => void) | undefined;
}

/** The requests of one credential and model, which the same cooldowns hold. */
export interface Lane {
  readonly scope: Scope;
  readonly waiters: Set<Waiter>;
  /** The least that one of them keeps of what others heard, in milliseconds. May be of one that is gone: then it is too small. */
  leastRetryAfterMs: number;
  /** What its requests wait for, and until when as far as it is known. */
  waitsFor: Wait["for"] | undefined;
  waitsUntil: number;
}

const laneKey = ({ credential, model }: Scope): string => `${modelKey(model)}\n${credential}`;

const emptyLane = (scope: Scope): Lane => ({
  scope,
  waiters: new Set(),
  leastRetryAfterMs: Number.POSITIVE_INFINITY,
  waitsFor: undefined,
  waitsUntil: 0,
});

/** The requests that wait for one path. */
export class Queue {
  readonly #lanes = new Map<string, Lane>();
  readonly #models = new Map<string, number>();
  #size = 0;
  /** No deadline is before; may be of one that is gone. */
  #deadlineFrom = Number.POSITIVE_INFINITY;

  get size(): number {
    return this.#size;
  }

  get lanes(): Iterable<Lane> {
    return this.#lanes.values();
  }

  get deadlineFrom(): number {
    return this.#deadlineFrom;
  }

  add(waiter: Waiter): Lane {
    const { scope, maxRetryAfterMs } = waiter.admission;
    const key = laneKey(scope);
    const lane = this.#lanes.get(key) ?? emptyLane(scope);
    this.#lanes.set(key, lane);
    lane.waiters.add(waiter);
    lane.leastRetryAfterMs = Math.min(lane.leastRetryAfterMs, maxRetryAfterMs);
    const model = modelKey(scope.model);
    this.#models.set(model, (this.#models.get(model) ?? 0) + 1);
    this.#size += 1;
    if (waiter.deadline < this.#deadlineFrom) this.#deadlineFrom = waiter.deadline;
    return lane;
  }

  /** Whether it still waited. */
  remove(waiter: Waiter): boolean {
    const { scope } = waiter.admission;
    const key = laneKey(scope);
    const lane = this.#lanes.get(key);
    if (!lane?.waiters.delete(waiter)) return false;
    if (lane.waiters.size === 0) this.#lanes.delete(key);
    const model = modelKey(scope.model);
    const left = (this.#models.get(model) ?? 1) - 1;
    if (left === 0) this.#models.delete(model);
    else this.#models.set(model, left);
    this.#size -= 1;
    if (this.#size === 0) this.#deadlineFrom = Number.POSITIVE_INFINITY;
    return true;
  }

  /** Whether a request waits of a model, and of a credential where one is given. */
  has(model: string | undefined, credential: string | undefined): boolean {
    if (credential === undefined) return this.#models.has(modelKey(model));
    return this.#lanes.has(laneKey({ path: "", credential, model }));
  }

  /** All that wait, in no order. */
  all(): ReadonlyArray<Waiter> {
    return [...this.#lanes.values()].flatMap(({ waiters }) => [...waiters]);
  }

  /** Those whose time is over. */
  late(now: number): ReadonlyArray<Waiter> {
    if (now < this.#deadlineFrom) return [];
    const all = this.all();
    this.#deadlineFrom = all.reduce(
      (from, { deadline }) => (deadline > now && deadline < from ? deadline : from),
      Number.POSITIVE_INFINITY,
    );
    return all.filter(({ deadline }) => deadline <= now);
  }
}
