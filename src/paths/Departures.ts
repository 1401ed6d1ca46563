/**
 * Lets the requests that wait for a path go, and tells them for what they wait.
 *
 * A request goes when its path is up, or has room in its wave, and each cooldown of its scope is over and has room in its own wave. What
 * a request cannot outwait is given up at once: it never waits in vain. What is decided is put in the outbox, since a run that is let go
 * may go on at once and ask again.
 */
import type { Admission, Admitted, Wait } from "./Admission.ts";
import type { Cooldowns, Hold, Trial } from "./Cooldowns.ts";
import type { Entry, TableWorld } from "./Entry.ts";
import * as State from "./PathState.ts";
import type { Lane, Waiter } from "./Queue.ts";
import { Waves } from "./Waves.ts";

/** Most requests that wait. */
export const waitingMax = 10_000;

/** What the requests have to be told behind the step that decides it. */
export class Outbox {
  readonly #calls: Array<() => void> = [];
  readonly #failed: (error: unknown) => void;
  #isOpen = false;

  /** @param failed is told of a call that throws: one run that dies must not keep the others waiting */
  constructor(failed: (error: unknown) => void) {
    this.#failed = failed;
  }

  put(call: () => void): void {
    this.#calls.push(call);
  }

  /** Tells them. What one of them puts in is told by the outermost call, so that runs that go on at once do not nest. */
  empty(): void {
    if (this.#isOpen) return;
    this.#isOpen = true;
    for (let call = this.#calls.shift(); call !== undefined; call = this.#calls.shift()) {
      try {
        call();
      } catch (error) {
        this.#failed(error);
      }
    }
    this.#isOpen = false;
  }
}

/** The requests of all paths on their way out. */
export class Departures {
  readonly #world: TableWorld;
  readonly #cooldowns: Cooldowns;
  readonly #outbox: Outbox;
  /** Called where a request that was let go has a response or is over. */
  readonly #left: (entry: Entry, now: number) => void;
  #waiting = 0;
  #number = 0;

  constructor(world: TableWorld, cooldowns: Cooldowns, outbox: Outbox, left: (entry: Entry, now: number) => void) {
    this.#world = world;
    this.#cooldowns = cooldowns;
    this.#outbox = outbox;
    this.#left = left;
  }

  get isFull(): boolean {
    return this.#waiting >= waitingMax;
  }

  /** Lets a request go or lets it wait. */
  add(entry: Entry, admission: Admission, now: number, done: (admitted: Admitted) => void): Waiter {
    this.#number += 1;
    this.#waiting += 1;
    const waiter: Waiter = {
      admission,
      number: this.#number,
      since: now,
      deadline: now + admission.withinMs,
      done,
      told: undefined,
      toldUntil: 0,
      leave: undefined,
    };
    const lane = entry.queue.add(waiter);
    this.pump(entry, now);
    if (lane.waiters.has(waiter)) this.#tell(entry, lane, waiter, now);
    return waiter;
  }

  /** The run was interrupted: the request waits no longer, and gives its place back where it was let go in this very step. */
  withdraw(entry: Entry, waiter: Waiter): void {
    if (entry.queue.remove(waiter)) this.#waiting -= 1;
    else waiter.leave?.();
  }

  /** Does for the requests of a path what the time has made due. */
  step(entry: Entry, now: number): void {
    for (const waiter of entry.queue.late(now)) this.#giveUp(entry, waiter, now);
    this.pump(entry, now);
    for (const lane of entry.queue.lanes) this.#retell(entry, lane, now);
  }

  /** Lets go those that may, the one that came first at first. */
  pump(entry: Entry, now: number): void {
    entry.waves?.passed(now);
    for (;;) {
      const { state, way, waves, queue } = entry;
      if (queue.size === 0 || (state.state === "returning" && waves?.hasRoom === false)) return;
      if (state.state === "down" && (way !== undefined || now < state.probeAt)) return;
      const waiter = this.#next(entry, now);
      if (waiter === undefined) return;
      this.#letGo(entry, waiter, now);
    }
  }

  #next(entry: Entry, now: number): Waiter | undefined {
    let next: Waiter | undefined;
    for (const lane of entry.queue.lanes) {
      const waiter = this.#candidate(lane, now);
      if (waiter !== undefined && (next === undefined || waiter.number < next.number)) next = waiter;
    }
    return next;
  }

  /** The request of a lane that may go, as far as cooldowns say. */
  #candidate(lane: Lane, now: number): Waiter | undefined {
    const { scope, waiters, leastRetryAfterMs } = lane;
    const trials: Array<Hold> = [];
    for (const hold of this.#cooldowns.of(scope, now)) {
      if (now >= hold.endOf(scope.credential)) {
        hold.waves ??= new Waves(now);
        hold.waves.passed(now);
        if (!hold.waves.hasRoom) return undefined;
      } else {
        if (hold.trial !== undefined || now < hold.heardAt + leastRetryAfterMs) return undefined;
        trials.push(hold);
      }
    }
    let least = Number.POSITIVE_INFINITY;
    for (const waiter of waiters) {
      const { maxRetryAfterMs } = waiter.admission;
      if (trials.every(({ heardAt }) => now >= heardAt + maxRetryAfterMs)) return waiter;
      least = Math.min(least, maxRetryAfterMs);
    }
    lane.leastRetryAfterMs = least;
    return undefined;
  }

  #letGo(entry: Entry, waiter: Waiter, now: number): void {
    const { hold, scope } = waiter.admission;
    const holds = this.#cooldowns.of(scope, now);
    entry.queue.remove(waiter);
    this.#waiting -= 1;
    const leaves: Array<(at: number) => void> = [];
    const join = (waves: Waves): void => {
      waves.went();
      leaves.push(() => waves.left());
    };
    if (entry.waves !== undefined) join(entry.waves);
    if (entry.state.state === "down") leaves.push(this.#goAsProbe(entry, now));
    for (const held of holds) {
      if (now < held.endOf(scope.credential)) {
        const trial: Trial = { answered: false };
        held.trial = trial;
        leaves.push((at) => held.tried(trial, at));
      } else if (held.waves !== undefined) join(held.waves);
    }
    const leave = once(() => {
      const at = this.#world.now();
      for (const give of leaves) give(at);
      this.#left(entry, at);
    });
    waiter.leave = leave;
    hold(leave);
    const waitedMs = Math.round(now - waiter.since);
    this.#outbox.put(() => waiter.done({ _tag: "admitted", waitedMs }));
  }

  /** One request goes in place of a probe: nobody can probe the path. */
  #goAsProbe(entry: Entry, now: number): (at: number) => void {
    entry.state = State.tried(entry.state, now);
    const { probedAt } = entry.state;
    return (at) => {
      const { state } = entry;
      if (state.probedAt !== probedAt || !state.trying) return;
      entry.state = State.undecided(state, at, this.#world.jitter());
    };
  }

  /** A request waits no longer: its time is over, or would be before the announced wait is. */
  #giveUp(entry: Entry, waiter: Waiter, now: number): void {
    if (!entry.queue.remove(waiter)) return;
    this.#waiting -= 1;
    const waitMs = Math.max(0, Math.ceil(this.#coolsUntil(waiter, now) - now));
    const waitsFor = waitMs > 0 ? "cooldown" : (waiter.told?.for ?? waitsForOf(entry, this.#holds(waiter, now), now));
    const waitedMs = Math.round(now - waiter.since);
    this.#outbox.put(() => waiter.done({ _tag: "too_long", for: waitsFor, waitedMs, waitMs }));
  }

  #holds({ admission }: Waiter, now: number): ReadonlyArray<Hold> {
    return this.#cooldowns.of(admission.scope, now);
  }

  /** Until when a request waits for cooldowns as it keeps them; 0 for none. */
  #coolsUntil(waiter: Waiter, now: number): number {
    const { maxRetryAfterMs, scope } = waiter.admission;
    return this.#holds(waiter, now).reduce(
      (until, hold) => Math.max(until, hold.endFor(scope.credential, maxRetryAfterMs)),
      0,
    );
  }

  /** Tells the requests of a lane where they wait for something else than before. */
  #retell(entry: Entry, lane: Lane, now: number): void {
    const holds = this.#cooldowns.of(lane.scope, now);
    const until = holds.reduce((last, hold) => Math.max(last, hold.endOf(lane.scope.credential)), 0);
    const waitsFor = waitsForOf(entry, holds, now);
    if (lane.waitsFor === waitsFor && (until <= now || lane.waitsUntil === until)) return;
    lane.waitsFor = waitsFor;
    lane.waitsUntil = until;
    for (const waiter of lane.waiters) this.#tell(entry, lane, waiter, now);
  }

  /** Tells a request for what it waits, or that it would wait in vain. */
  #tell(entry: Entry, lane: Lane, waiter: Waiter, now: number): void {
    const until = this.#coolsUntil(waiter, now);
    if (until > now && until > waiter.deadline) {
      this.#giveUp(entry, waiter, now);
      return;
    }
    const waitsFor = waitsForOf(entry, this.#cooldowns.of(lane.scope, now), now);
    const toldUntil = waitsFor === "cooldown" && until > now ? until : 0;
    if (waiter.told?.for === waitsFor && (toldUntil === 0 || waiter.toldUntil === toldUntil)) return;
    const wall = this.#world.wall();
    const told: Wait = {
      for: waitsFor,
      since: waiter.told?.for === waitsFor ? waiter.told.since : wall,
      ...(toldUntil === 0 ? {} : { until: Math.ceil(wall + until - now) }),
    };
    waiter.told = told;
    waiter.toldUntil = toldUntil;
    this.#outbox.put(() => waiter.admission.told(told));
  }

  /** When something is to be done for those that wait for a path; infinite where nothing is but what somebody has to say. */
  nextAt({ queue, state, waves, way }: Entry, now: number): number {
    let at = queue.deadlineFrom;
    if (queue.size === 0) return at;
    // What could have gone by now waits for something else than a time.
    const later = (time: number): void => {
      if (time > now) at = Math.min(at, time);
    };
    if (way === undefined) later(state.probeAt);
    if (waves !== undefined) later(waves.growsAt);
    for (const lane of queue.lanes) later(this.#laneAt(lane, now));
    return at;
  }

  /** When cooldowns may let a request of a lane go. */
  #laneAt({ scope, leastRetryAfterMs }: Lane, now: number): number {
    let at = 0;
    for (const hold of this.#cooldowns.of(scope, now)) {
      const end = hold.endOf(scope.credential);
      if (now >= end) at = Math.max(at, hold.waves === undefined || hold.waves.hasRoom ? 0 : hold.waves.growsAt);
      else at = Math.max(at, hold.trial === undefined ? Math.min(end, hold.heardAt + leastRetryAfterMs) : end);
    }
    return at;
  }
}

/** What requests wait for. A path that is down comes before what cools on it. */
const waitsForOf = ({ state }: Entry, holds: ReadonlyArray<Hold>, now: number): Wait["for"] =>
  state.state !== "down" && holds.some(({ until, waves }) => now < until || waves !== undefined) ? "cooldown" : "path";

/** Calls a function once, however often it is asked to. */
const once = (call: () => void): (() => void) => {
  let called = false;
  return () => {
    if (called) return;
    called = true;
    call();
  };
};
