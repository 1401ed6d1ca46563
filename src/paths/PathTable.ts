/**
 * Decides for all paths of a process which requests may go, each in the step in which something is heard.
 *
 * It has no fiber and no timer: `look` does what the time has made due, `nextAt` says when that is, and `due` is called where it comes
 * nearer. What a step decides is told to those who wait behind the step, since a run that is let go may go on at once and ask again.
 */
import type { Admission, Admitted, PathStatus, Refusal, Scope, Standing } from "./Admission.ts";
import { Cooldowns, type Hold, type Trial } from "./Cooldowns.ts";
import type { PathWay, Probed } from "./Path.ts";
import * as State from "./PathState.ts";
import { type Lane, Queue, type Waiter } from "./Queue.ts";
import { firstWave, Waves } from "./Waves.ts";

/** Most paths that are kept. Beyond it the one is forgotten that was used longest ago and that nobody waits for. */
export const pathsMax = 1_024;

/** Most requests that wait. */
export const waitingMax = 10_000;

/** A path that is back lets requests go in waves for so long after it was back, also while none waits: runs that broke together
 * do not ask together, in milliseconds. */
export const returningMs = 5_000;

/** A path is asked after a wake if it was used within so long, in milliseconds. */
export const inUseMs = 3_600_000;

/** A path that is down is no longer asked once nobody wanted it for so long, in milliseconds. Then nothing is known of it. */
export const wantedMs = 120_000;

/** What a table needs of its world. */
export interface TableWorld {
  /** Monotonic milliseconds. */
  readonly now: () => number;
  /** Milliseconds since the epoch. */
  readonly wall: () => number;
  /** Between 0 and 1. */
  readonly jitter: () => number;
  /** Something is to be done at a time, perhaps earlier than was known. */
  readonly due: (at: number) => void;
}

/** One path. */
interface Entry {
  readonly id: string;
  way: PathWay | undefined;
  state: State.PathState;
  /** While it is returning. */
  waves: Waves | undefined;
  readonly queue: Queue;
  usedAt: number;
  wantedAt: number;
  /** The run that went in place of a probe. */
  trial: object | undefined;
  /** Those who want to know what the next probe finds: whether the path is lost. */
  readonly askers: Set<(failed: boolean) => void>;
}

const nothing = (): void => {};

/** What is known of all paths. */
export class PathTable {
  readonly #world: TableWorld;
  readonly #entries = new Map<string, Entry>();
  /** The entries that have something to do. */
  readonly #busy = new Set<Entry>();
  readonly #cooldowns = new Cooldowns((hold) => this.#isWaitedFor(hold));
  #waiting = 0;
  #number = 0;
  readonly #outbox: Array<() => void> = [];

  constructor(world: TableWorld) {
    this.#world = world;
  }

  attach(path: string, way: PathWay): void {
    const now = this.#world.now();
    const entry = this.#entry(path, now);
    const isNew = entry.way === undefined;
    entry.way = way;
    if (isNew && entry.state.state === "down") this.#become(entry, State.asked(entry.state, now), now);
    this.#settle(entry, now);
  }

  wasReached(path: string): void {
    const entry = this.#entry(path, this.#world.now());
    entry.state = State.wasReached(entry.state);
  }

  hasReached(path: string): boolean {
    return this.#entries.get(path)?.state.reached ?? false;
  }

  standing(scope: Scope, maxRetryAfterMs: number): Standing {
    const now = this.#world.now();
    const entry = this.#entries.get(scope.path);
    if (entry !== undefined) entry.wantedAt = now;
    const ends = this.#cooldowns.of(scope, now).map((hold) => hold.endFor(scope.credential, maxRetryAfterMs));
    return {
      path: entry === undefined || entry.state.state === "up" ? "up" : "down",
      cooldownMs: Math.max(0, ...ends.map((end) => end - now)),
    };
  }

  isOpen(scope: Scope): boolean {
    const entry = this.#entries.get(scope.path);
    if (entry !== undefined && entry.state.state !== "up") return false;
    if (this.#cooldowns.size === 0) return true;
    const now = this.#world.now();
    return this.#cooldowns
      .of(scope, now)
      .every((hold) => hold.waves === undefined && now >= hold.endOf(scope.credential));
  }

  /** Lets a request go or puts it in the queue. The returned function takes it out again. */
  admit(admission: Admission, done: (admitted: Admitted) => void): () => void {
    const { scope } = admission;
    const now = this.#world.now();
    const entry = this.#entry(scope.path, now);
    entry.wantedAt = now;
    if (this.isOpen(scope)) {
      admission.hold(nothing);
      done({ _tag: "admitted", waitedMs: 0 });
      return nothing;
    }
    if (this.#waiting >= waitingMax) {
      done({ _tag: "full", waitedMs: 0 });
      return nothing;
    }
    this.#number += 1;
    const waiter: Waiter = {
      admission,
      number: this.#number,
      since: now,
      sinceWall: this.#world.wall(),
      deadline: now + admission.withinMs,
      done,
      told: undefined,
      toldUntil: 0,
    };
    this.#waiting += 1;
    const lane = entry.queue.add(waiter);
    if (entry.waves === undefined || entry.waves.hasRoom) this.#pump(entry, now);
    if (lane.waiters.has(waiter)) this.#tell(entry, lane, waiter, now);
    this.#settle(entry, now);
    return () => this.#withdraw(entry, waiter);
  }

  #withdraw(entry: Entry, waiter: Waiter): void {
    if (!entry.queue.remove(waiter)) return;
    this.#waiting -= 1;
    this.#settle(entry, this.#world.now());
  }

  answered(scope: Scope): void {
    const now = this.#world.now();
    const entry = this.#entry(scope.path, now);
    const next = State.answered(entry.state, entry.way !== undefined, now);
    if (next === entry.state && !this.#busy.has(entry) && this.#cooldowns.size === 0) return;
    this.#become(entry, next, now);
    entry.waves?.answered();
    for (const hold of this.#cooldowns.of(scope, now)) {
      hold.waves?.answered();
      if (hold.trial !== undefined) hold.trial.answered = true;
    }
    this.#step(entry, now);
  }

  refused(scope: Scope, refusal: Refusal): void {
    const now = this.#world.now();
    const entry = this.#entry(scope.path, now);
    this.#cooldowns.refused(scope, refusal, now);
    if (!refusal.onlyThis) entry.waves?.refused(now);
    this.#step(entry, now);
  }

  /** Calls `done` as soon as it is known whether the path is down. The returned function leaves the others to wait for it. */
  unconnected(scope: Scope, code: string | undefined, done: () => void): () => void {
    const now = this.#world.now();
    const entry = this.#entry(scope.path, now);
    const { state, way, waves } = entry;
    const canProbe = way !== undefined;
    const inDoubt = state.state === "up" || (state.state === "returning" && (waves?.going ?? 0) === 0);
    if (canProbe && inDoubt && state.reached) return this.#ask(entry, done, now);
    this.#become(entry, State.unconnected(state, canProbe, code, now, this.#world.jitter()), now);
    this.#step(entry, now);
    done();
    return nothing;
  }

  broke(scope: Scope): void {
    const now = this.#world.now();
    const entry = this.#entry(scope.path, now);
    this.#become(entry, State.broke(entry.state, entry.way !== undefined, now, this.#world.jitter()), now);
    this.#step(entry, now);
  }

  /** Tells whether the path is lost, once it is known. The returned function leaves the others to wait for it. */
  isLost(path: string, done: (lost: boolean) => void): () => void {
    const entry = this.#entries.get(path);
    if (entry?.way === undefined) {
      done(false);
      return nothing;
    }
    if (entry.state.state === "down" && entry.state.probes > 0) {
      done(true);
      return nothing;
    }
    return this.#ask(entry, done, this.#world.now());
  }

  tryNow(path: string, done: (known: boolean) => void): () => void {
    const entry = this.#entries.get(path);
    if (entry === undefined) {
      done(false);
      return nothing;
    }
    const now = this.#world.now();
    if (entry.way !== undefined) return this.#ask(entry, () => done(true), now);
    if (entry.state.state === "down") entry.state = State.asked(entry.state, now);
    this.#step(entry, now);
    done(true);
    return nothing;
  }

  woke(): void {
    const now = this.#world.now();
    for (const entry of this.#entries.values()) {
      entry.way?.dropIdle();
      if (entry.queue.size === 0 && now - entry.usedAt > inUseMs) continue;
      if (entry.way !== undefined || entry.state.state === "down") entry.state = State.woke(entry.state, now);
      this.#step(entry, now);
    }
  }

  /** Does what the time has made due. Returns the paths that are to be asked; the answer comes by `probed`. */
  look(): ReadonlyArray<{ readonly path: string; readonly way: PathWay }> {
    const now = this.#world.now();
    const probes: Array<{ readonly path: string; readonly way: PathWay }> = [];
    for (const entry of [...this.#busy]) {
      this.#step(entry, now);
      const { state, way } = entry;
      if (way === undefined || state.probing || state.probeAt > now) continue;
      entry.state = State.probing(state, now);
      probes.push({ path: entry.id, way });
    }
    return probes;
  }

  /** What a probe of `look` has found. */
  probed(path: string, found: Probed): void {
    const entry = this.#entries.get(path);
    if (entry === undefined) return;
    const now = this.#world.now();
    if (found._tag === "failed") entry.way?.dropIdle();
    this.#become(entry, State.probed(entry.state, found, now, this.#world.jitter()), now);
    const askers = [...entry.askers];
    entry.askers.clear();
    for (const done of askers) this.#outbox.push(() => done(found._tag === "failed"));
    this.#step(entry, now);
  }

  /** When `look` has something to do; infinite while it has not. */
  nextAt(): number {
    const now = this.#world.now();
    let at = Number.POSITIVE_INFINITY;
    for (const entry of this.#busy) at = Math.min(at, this.#entryAt(entry, now));
    return at;
  }

  list(): ReadonlyArray<PathStatus> {
    const now = this.#world.now();
    const wall = this.#world.wall();
    const wallOf = (at: number): number => Math.round(wall + at - now);
    return [...this.#entries.values()].map(({ id, state, queue }) => ({
      path: id,
      state: state.state,
      since: wallOf(state.since),
      reached: state.reached,
      probes: state.probes,
      ...(state.state === "down" && Number.isFinite(state.probeAt) ? { nextProbeAt: wallOf(state.probeAt) } : {}),
      ...(state.code === undefined ? {} : { code: state.code }),
      waiting: queue.size,
      cooldowns: this.#cooldowns.list(id, now).map((hold) => ({
        ...(hold.model === undefined ? {} : { model: hold.model }),
        ...(hold.credential ? { credential: hold.credential.slice(0, 8) } : {}),
        kind: hold.kind,
        until: wallOf(hold.until),
      })),
    }));
  }

  #entry(id: string, now: number): Entry {
    const known = this.#entries.get(id);
    if (known !== undefined) {
      known.usedAt = now;
      return known;
    }
    if (this.#entries.size >= pathsMax) this.#forgetOne();
    const entry: Entry = {
      id,
      way: undefined,
      state: State.unknownPath(now),
      waves: undefined,
      queue: new Queue(),
      usedAt: now,
      wantedAt: now,
      trial: undefined,
      askers: new Set(),
    };
    this.#entries.set(id, entry);
    return entry;
  }

  #forgetOne(): void {
    let oldest: Entry | undefined;
    for (const entry of this.#entries.values()) {
      if (!this.#busy.has(entry) && (oldest === undefined || entry.usedAt < oldest.usedAt)) oldest = entry;
    }
    if (oldest !== undefined) this.#entries.delete(oldest.id);
  }

  #ask(entry: Entry, done: (failed: boolean) => void, now: number): () => void {
    entry.askers.add(done);
    entry.wantedAt = now;
    if (!entry.state.probing) entry.state = State.asked(entry.state, now);
    this.#settle(entry, now);
    return () => entry.askers.delete(done);
  }

  #isWaitedFor({ path, model, credential }: Hold): boolean {
    return this.#entries.get(path)?.queue.has(model, credential) ?? false;
  }

  #become(entry: Entry, next: State.PathState, now: number): void {
    const before = entry.state;
    entry.state = next;
    if (next.state !== "down") entry.trial = undefined;
    if (next.state !== "returning") entry.waves = undefined;
    else if (before.state !== "returning" || before.since !== next.since) {
      entry.waves = new Waves(now, next.relapsed ? 1 : firstWave);
    }
  }

  /** Does all that can be done for a path now. */
  #step(entry: Entry, now: number): void {
    for (const waiter of entry.queue.late(now)) this.#giveUp(entry, waiter, now);
    this.#pump(entry, now);
    for (const lane of [...entry.queue.lanes]) this.#retell(entry, lane, now);
    this.#settle(entry, now);
  }

  /** Lets go those that may, the one that came first at first. */
  #pump(entry: Entry, now: number): void {
    entry.waves?.passed(now);
    for (;;) {
      const { state, way, waves } = entry;
      if (entry.queue.size === 0 || (state.state === "returning" && waves?.hasRoom === false)) return;
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
    let least = Number.POSITIVE_INFINITY;
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
    for (const waiter of waiters) {
      const { maxRetryAfterMs } = waiter.admission;
      if (trials.every(({ heardAt }) => now >= heardAt + maxRetryAfterMs)) return waiter;
      least = Math.min(least, maxRetryAfterMs);
    }
    lane.leastRetryAfterMs = least;
    return undefined;
  }

  #letGo(entry: Entry, waiter: Waiter, now: number): void {
    const { scope } = waiter.admission;
    entry.queue.remove(waiter);
    this.#waiting -= 1;
    const leaves: Array<(at: number) => void> = [];
    const join = (waves: Waves): void => {
      waves.went();
      leaves.push(() => waves.left());
    };
    if (entry.waves !== undefined) join(entry.waves);
    if (entry.state.state === "down") leaves.push(this.#goAsProbe(entry, now));
    for (const hold of this.#cooldowns.of(scope, now)) {
      if (hold.waves !== undefined) join(hold.waves);
      else if (now < hold.endOf(scope.credential)) {
        const trial: Trial = { answered: false };
        hold.trial = trial;
        leaves.push((at) => hold.tried(trial, at));
      }
    }
    let left = false;
    waiter.admission.hold(() => {
      if (left) return;
      left = true;
      const at = this.#world.now();
      for (const leave of leaves) leave(at);
      this.#step(entry, at);
    });
    this.#outbox.push(() => waiter.done({ _tag: "admitted", waitedMs: now - waiter.since }));
  }

  #goAsProbe(entry: Entry, now: number): (at: number) => void {
    const trial = {};
    entry.trial = trial;
    entry.state = State.tried(entry.state, now);
    const tries = entry.state.tries;
    return (at) => {
      if (entry.trial !== trial || entry.state.tries !== tries) return;
      entry.trial = undefined;
      entry.state = State.undecided(entry.state, at, this.#world.jitter());
    };
  }

  #giveUp(entry: Entry, waiter: Waiter, now: number, waitMs = 0): void {
    const waitsFor = waiter.told?.for ?? "path";
    if (!entry.queue.remove(waiter)) return;
    this.#waiting -= 1;
    this.#outbox.push(() => waiter.done({ _tag: "too_long", for: waitsFor, waitedMs: now - waiter.since, waitMs }));
  }

  /** Tells the requests of a lane where they wait for something else than before. */
  #retell(entry: Entry, lane: Lane, now: number): void {
    const { credential } = lane.scope;
    const holds = this.#cooldowns.of(lane.scope, now);
    const until = Math.max(0, ...holds.map((hold) => hold.endOf(credential)));
    const waitsFor = entry.state.state !== "down" && holds.length > 0 ? "cooldown" : "path";
    if (lane.waitsFor === waitsFor && (until <= now || lane.waitsUntil === until)) return;
    lane.waitsFor = waitsFor;
    lane.waitsUntil = until;
    for (const waiter of [...lane.waiters]) this.#tell(entry, lane, waiter, now);
  }

  /** Tells a request for what it waits, or that it would wait in vain. */
  #tell(entry: Entry, lane: Lane, waiter: Waiter, now: number): void {
    const { maxRetryAfterMs, told } = waiter.admission;
    const holds = this.#cooldowns.of(lane.scope, now);
    const until = Math.max(0, ...holds.map((hold) => hold.endFor(lane.scope.credential, maxRetryAfterMs)));
    const isCooling = until > now;
    if (isCooling && until > waiter.deadline) {
      waiter.told = { for: "cooldown", since: waiter.sinceWall };
      this.#giveUp(entry, waiter, now, until - now);
      return;
    }
    const waitsFor = entry.state.state !== "down" && holds.length > 0 ? "cooldown" : "path";
    const toldUntil = waitsFor === "cooldown" && isCooling ? until : 0;
    if (waiter.told?.for === waitsFor && (toldUntil === 0 || waiter.toldUntil === toldUntil)) return;
    const since = waiter.told?.for === waitsFor ? waiter.told.since : this.#world.wall();
    waiter.toldUntil = toldUntil;
    waiter.told = {
      for: waitsFor,
      since,
      ...(toldUntil === 0 ? {} : { until: Math.round(this.#world.wall() + until - now) }),
    };
    told(waiter.told);
  }

  /** Ends what nobody waits for any more, plans what is next, and tells those that the step has let go. */
  #settle(entry: Entry, now: number): void {
    const { state, queue } = entry;
    if (queue.size === 0) {
      const isBack = state.state === "returning" && now >= state.since + returningMs;
      const isForgotten = state.state === "down" && now >= entry.wantedAt + wantedMs;
      if (isBack || isForgotten) this.#become(entry, State.settled(state, now), now);
    }
    const at = this.#entryAt(entry, now);
    if (at === Number.POSITIVE_INFINITY && !entry.state.probing) this.#busy.delete(entry);
    else this.#busy.add(entry);
    if (at < Number.POSITIVE_INFINITY) this.#world.due(at);
    for (let next = this.#outbox.shift(); next !== undefined; next = this.#outbox.shift()) next();
  }

  /** When something is to be done for a path. */
  #entryAt(entry: Entry, now: number): number {
    const { state, way, waves, queue } = entry;
    let at = queue.deadlineFrom;
    if (way !== undefined && !state.probing) at = Math.min(at, state.probeAt);
    if (queue.size === 0) {
      if (state.state === "returning") return Math.min(at, state.since + returningMs);
      return state.state === "down" ? Math.min(at, entry.wantedAt + wantedMs) : at;
    }
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
      if (hold.waves !== undefined && now >= end) at = Math.max(at, hold.waves.hasRoom ? 0 : hold.waves.growsAt);
      else if (hold.trial !== undefined) at = Math.max(at, end);
      else at = Math.max(at, Math.min(end, hold.heardAt + leastRetryAfterMs));
    }
    return at;
  }
}
