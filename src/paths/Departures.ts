/**
 * Releases requests that wait for a path, and notifies them of the reason for their wait.
 *
 * After an outage or a cooldown, requests are released in batches (`Waves`): a few at first, more with each response. A request is released
 * if its path, and every cooldown that applies to it, is either clear or has a free slot in its batch. A request whose wait would exceed
 * its time limit is rejected at once. Results are delivered through the outbox, because a released run may continue at once and ask again.
 */
import type { Admission, Admitted, Wait } from "./Admission.ts";
import type { Cooldowns, Hold, Trial } from "./Cooldowns.ts";
import type { Entry, TableWorld } from "./Entry.ts";
import * as State from "./PathState.ts";
import type { Lane, Waiter } from "./Queue.ts";
import { firstWaveSize, Waves } from "./Waves.ts";

/** Maximum requests that wait, for all paths together. Further requests end as `full`. */
export const waitingMax = 10_000;

/**
 * Delay of the next release after a request of the same batch ended without a response head, in milliseconds. The run of that request may
 * be about to report that it could not connect.
 */
export const headlessMs = 20;

/** Reported when a released request has ended or has a response. */
export interface Left {
  /** Delay after which other requests may be released, in milliseconds. */
  readonly afterMs: number;
  /** True if a cooldown applied to the request, even an expired one. */
  readonly wasHeld: boolean;
}

type OnLeft = (entry: Entry, now: number, left: Left) => void;

/** Calls that notify waiting requests. They are made after the step that decides about the requests. */
export class Outbox {
  readonly #calls: Array<() => void> = [];
  readonly #onError: (error: unknown) => void;
  #isOpen = false;

  /** @param failed called with the error if a call throws; the other calls are still made */
  constructor(failed: (error: unknown) => void) {
    this.#onError = failed;
  }

  enqueue(call: () => void): void {
    this.#calls.push(call);
  }

  /** Makes the calls. Calls added meanwhile are made by the outermost `flush`, so that runs that continue at once do not nest. */
  flush(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    for (let call = this.#calls.shift(); call !== undefined; call = this.#calls.shift()) {
      try {
        call();
      } catch (error) {
        this.#onError(error);
      }
    }
    this.#isOpen = false;
  }
}

/**
 * Readiness of a request. A lane contains the requests of one credential and model. `waits`: this request is not ready, but another request
 * of the lane may be. `closed`: no request of the lane is ready.
 */
type Readiness = "ready" | "waits" | "closed";

/** Requests of all paths that wait to be sent. */
export class Departures {
  readonly #world: TableWorld;
  readonly #cooldowns: Cooldowns;
  readonly #outbox: Outbox;
  readonly #onDone: OnLeft;
  #waiting = 0;
  #looks = 0;

  constructor(world: TableWorld, cooldowns: Cooldowns, outbox: Outbox, left: OnLeft) {
    this.#world = world;
    this.#cooldowns = cooldowns;
    this.#outbox = outbox;
    this.#onDone = left;
  }

  get isFull(): boolean {
    return this.#waiting >= waitingMax;
  }

  /** Releases a request or lets it wait. Earlier requests that may be sent are released first. */
  add(entry: Entry, admission: Admission, now: number, done: (admitted: Admitted) => void): Waiter {
    const waiter = entry.queue.add(admission, now, done);
    this.#waiting += 1;
    entry.waves?.grow(now);
    if (isOpen(entry, now) && this.#readiness(waiter, now) === "ready") this.#release(entry, waiter, now);
    else if (waiter.deadline <= now) this.#giveUp(entry, waiter, now);
    else {
      this.#notify(entry, waiter, now);
      const at = this.#laneAt(waiter.lane, now);
      if (at > now) entry.lanesAt = Math.min(entry.lanesAt, at);
    }
    return waiter;
  }

  /** Withdraws the request of an interrupted run. A request that was released in the same step frees its slot. */
  withdraw(entry: Entry, waiter: Waiter): void {
    if (entry.queue.remove(waiter)) this.#waiting -= 1;
    else waiter.release?.();
  }

  /** Ends every wait, because the table has been closed. */
  close(entry: Entry, now: number): void {
    for (const waiter of entry.queue.waiters) {
      this.withdraw(entry, waiter);
      const waitedMs = Math.round(now - waiter.since);
      this.#outbox.enqueue(() => waiter.done({ _tag: "full", waitedMs }));
    }
  }

  /** Handles everything that is due for the requests of a path, after time has passed or an event has happened. */
  step(entry: Entry, now: number): void {
    for (const waiter of entry.queue.listOverdue(now)) this.#giveUp(entry, waiter, now);
    this.pump(entry, now);
    if (entry.hasNews) for (const lane of entry.queue.lanes) this.#notifyLane(entry, lane, now);
    entry.hasNews = false;
    this.plan(entry, now);
  }

  /** Releases the requests that may be sent, in order of arrival. */
  pump(entry: Entry, now: number): void {
    const { queue } = entry;
    entry.waves?.grow(now);
    if (!isOpen(entry, now)) return;
    this.#looks += 1;
    const look = this.#looks;
    let closed = 0;
    for (const waiter of queue.waiters) {
      if (waiter.lane.closedIn === look) continue;
      const readiness = this.#readiness(waiter, now);
      if (readiness === "ready") {
        this.#release(entry, waiter, now);
        if (!isOpen(entry, now)) return;
      } else if (readiness === "closed") {
        waiter.lane.closedIn = look;
        closed += 1;
        if (closed === queue.laneCount) return;
      }
    }
  }

  /** Returns the readiness of a request with regard to cooldowns. */
  #readiness({ admission, lane }: Waiter, now: number): Readiness {
    const { credential } = lane.scope;
    let readiness: Readiness = "ready";
    for (const hold of this.#cooldowns.findHolds(lane.holds, now)) {
      if (now >= hold.endOf(credential)) {
        hold.waves ??= new Waves(now, firstWaveSize(this.#world.processCount?.() ?? 1));
        hold.waves.grow(now);
        if (!hold.waves.hasRoom) return "closed";
      } else {
        if (hold.trial !== undefined || now < hold.heardAt + lane.leastRetryAfterMs) return "closed";
        if (now < hold.heardAt + admission.maxRetryAfterMs) readiness = "waits";
      }
    }
    return readiness;
  }

  #release(entry: Entry, waiter: Waiter, now: number): void {
    const { hold, scope } = waiter.admission;
    const holds = this.#cooldowns.findHolds(waiter.lane.holds, now);
    entry.queue.remove(waiter);
    this.#waiting -= 1;
    const leaves: Array<(at: number) => void> = [];
    const join = (waves: Waves): void => {
      waves.takeSlot();
      leaves.push(() => waves.freeSlot());
    };
    const { waves } = entry;
    const heads = waves?.heads;
    if (waves !== undefined) join(waves);
    if (entry.state.state === "down") leaves.push(this.#startTrial(entry, now));
    for (const held of holds) {
      if (now < held.endOf(scope.credential)) {
        const trial: Trial = { answered: false };
        held.trial = trial;
        leaves.push((at) => held.endTrial(trial, at));
      } else if (held.waves !== undefined) join(held.waves);
    }
    const leave = callOnce(() => {
      const at = this.#world.now();
      for (const give of leaves) give(at);
      const isHeadless = waves !== undefined && waves.heads === heads;
      this.#onDone(entry, at, { afterMs: isHeadless ? headlessMs : 0, wasHeld: holds.length > 0 });
    });
    waiter.release = leave;
    hold(leave);
    const waitedMs = Math.round(now - waiter.since);
    this.#outbox.enqueue(() => waiter.done({ _tag: "admitted", waitedMs }));
  }

  /** Marks a released request as the trial that replaces a probe, because this path cannot be probed. */
  #startTrial(entry: Entry, now: number): (at: number) => void {
    entry.state = State.startTrial(entry.state, now);
    const { probedAt } = entry.state;
    return (at) => {
      const { state } = entry;
      if (state.probedAt !== probedAt || !state.trying) return;
      entry.state = State.endTrial(state, at, this.#world.jitter());
    };
  }

  /** Ends a request's wait, because its time limit is reached or would be reached before the announced wait ends. */
  #giveUp(entry: Entry, waiter: Waiter, now: number): void {
    if (!entry.queue.remove(waiter)) return;
    this.#waiting -= 1;
    const waitMs = Math.max(0, Math.ceil(this.#cooldownEnd(waiter, now) - now));
    const waitsFor =
      waitMs > 0 ? "cooldown" : (waiter.reportedWait?.for ?? waitReasonOf(entry, this.#cooldownsOf(waiter, now), now));
    const waitedMs = Math.round(now - waiter.since);
    this.#outbox.enqueue(() => waiter.done({ _tag: "too_long", for: waitsFor, waitedMs, waitMs }));
  }

  #cooldownsOf({ lane }: Waiter, now: number): ReadonlyArray<Hold> {
    return this.#cooldowns.findHolds(lane.holds, now);
  }

  /** Returns the time until which a request observes cooldowns; 0 if there are none. */
  #cooldownEnd(waiter: Waiter, now: number): number {
    const { maxRetryAfterMs, scope } = waiter.admission;
    return this.#cooldownsOf(waiter, now).reduce(
      (until, hold) => Math.max(until, hold.endFor(scope.credential, maxRetryAfterMs)),
      0,
    );
  }

  /** Notifies the requests of a lane if the reason or the end of their wait has changed. */
  #notifyLane(entry: Entry, lane: Lane, now: number): void {
    const holds = this.#cooldowns.findHolds(lane.holds, now);
    const until = holds.reduce((last, hold) => Math.max(last, hold.endOf(lane.scope.credential)), 0);
    const waitsFor = waitReasonOf(entry, holds, now);
    if (lane.waitsFor === waitsFor && (until <= now || lane.waitsUntil === until)) return;
    lane.waitsFor = waitsFor;
    lane.waitsUntil = until;
    for (const waiter of lane.waiters) this.#notify(entry, waiter, now);
  }

  /** Notifies a request of the reason for its wait, or rejects it if its time limit is too short for the wait. */
  #notify(entry: Entry, waiter: Waiter, now: number): void {
    const until = this.#cooldownEnd(waiter, now);
    if (until > now && until > waiter.deadline) {
      this.#giveUp(entry, waiter, now);
      return;
    }
    const waitsFor = waitReasonOf(entry, this.#cooldownsOf(waiter, now), now);
    const toldUntil = waitsFor === "cooldown" && until > now ? until : 0;
    if (waiter.reportedWait?.for === waitsFor && (toldUntil === 0 || waiter.reportedUntil === toldUntil)) return;
    const wall = this.#world.wallNow();
    const wait: Wait = {
      for: waitsFor,
      since: waiter.reportedWait?.for === waitsFor ? waiter.reportedWait.since : wall,
      ...(toldUntil === 0 ? {} : { until: Math.ceil(wall + until - now) }),
    };
    waiter.reportedWait = wait;
    waiter.reportedUntil = toldUntil;
    this.#outbox.enqueue(() => waiter.admission.onWait(wait));
  }

  /**
   * Plans the next time at which cooldowns may release a request. A lane that no cooldown blocks now needs no plan, because its next event
   * is handled when it happens.
   */
  plan(entry: Entry, now: number): void {
    entry.lanesAt = Number.POSITIVE_INFINITY;
    if (this.#cooldowns.size === 0) return;
    for (const lane of entry.queue.lanes) {
      const at = this.#laneAt(lane, now);
      if (at > now) entry.lanesAt = Math.min(entry.lanesAt, at);
    }
  }

  /** Returns the time at which something is due for the requests of a path; infinite if only an event can make something due. */
  nextAt({ queue, state, waves, way, lanesAt }: Entry, now: number): number {
    let at = queue.deadlineFrom;
    if (queue.size === 0) return at;
    if (way === undefined && state.probeAt > now) at = Math.min(at, state.probeAt);
    if (waves !== undefined && waves.nextGrowthAt > now) at = Math.min(at, waves.nextGrowthAt);
    return lanesAt > now ? Math.min(at, lanesAt) : at;
  }

  /** Returns the time at which cooldowns may release a request of a lane. */
  #laneAt(lane: Lane, now: number): number {
    let at = 0;
    for (const hold of this.#cooldowns.findHolds(lane.holds, now)) {
      const end = hold.endOf(lane.scope.credential);
      if (now >= end) at = Math.max(at, hold.waves === undefined || hold.waves.hasRoom ? 0 : hold.waves.nextGrowthAt);
      else if (hold.trial !== undefined) at = Math.max(at, end);
      else {
        if (now >= hold.heardAt + lane.leastRetryAfterMs) lane.leastRetryAfterMs = minRetryAfterOf(lane);
        at = Math.max(at, Math.min(end, hold.heardAt + lane.leastRetryAfterMs));
      }
    }
    return at;
  }
}

/** True if a path may release one more request, regardless of cooldowns. */
const isOpen = ({ state, waves, way }: Entry, now: number): boolean => {
  if (state.state === "down") return way === undefined && now >= state.probeAt;
  return waves?.hasRoom !== false;
};

const minRetryAfterOf = ({ waiters }: Lane): number => {
  let least = Number.POSITIVE_INFINITY;
  for (const { admission } of waiters) least = Math.min(least, admission.maxRetryAfterMs);
  return least;
};

/** Returns the reason for the wait of requests. A path that is down takes precedence over its cooldowns. */
const waitReasonOf = ({ state }: Entry, holds: ReadonlyArray<Hold>, now: number): Wait["for"] =>
  state.state !== "down" && holds.some(({ until, waves }) => now < until || waves !== undefined) ? "cooldown" : "path";

const callOnce = (call: () => void): (() => void) => {
  let called = false;
  return () => {
    if (called) return;
    called = true;
    call();
  };
};
