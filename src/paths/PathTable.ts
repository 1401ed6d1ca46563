/**
 * Decides which requests may be sent, for all paths of a process. Each decision is made in the same step as the event that causes it.
 *
 * It has no fiber and no timer. `runDue` handles the work that is due, `nextAt` returns the time of the next work, and `TableWorld.due` is
 * called with each newly planned time, which may be earlier. Waiting requests are notified after the step, because a released run may
 * continue at once and ask again.
 */
import type { Admission, Admitted, PathStatus, Refusal, Scope, Standing } from "./Admission.ts";
import { Cooldowns, type Hold } from "./Cooldowns.ts";
import { Departures, type Left, Outbox } from "./Departures.ts";
import { type DueProbe, type Entry, newEntry, type PathWord, type TableWorld } from "./Entry.ts";
import type { PathWay, Probed } from "./Path.ts";
import * as State from "./PathState.ts";
import { firstWaveSize, Waves } from "./Waves.ts";

/** Maximum paths that are kept. Beyond it, the least recently used path without waiting requests is evicted. */
export const pathsMax = 1_024;

/**
 * Time for which a path that works again releases requests in batches, in milliseconds. This applies even if no request waits, so that runs
 * that broke together do not retry together.
 */
export const returningMs = 5_000;

/** A path without waiting requests is probed after a suspension only if it was used within this time, in milliseconds. */
export const inUseMs = 3_600_000;

/**
 * Time for which a path that is down is still probed although no request needs it, in milliseconds. After that the path is no longer probed
 * and counts as up again.
 */
export const wantedMs = 120_000;

const doNothing = (): void => {};

/** The paths of one process, with their waiting requests and cooldowns. The owner calls `runDue` at the time of `nextAt`. */
export class PathTable {
  readonly #world: TableWorld;
  readonly #entries = new Map<string, Entry>();
  readonly #busy = new Set<Entry>();
  readonly #cooldowns = new Cooldowns((hold) => this.#isWaitedFor(hold));
  readonly #outbox = new Outbox((error) => this.#world.onError(error));
  readonly #departures: Departures;
  #probes = 0;
  #isClosed = false;

  constructor(world: TableWorld) {
    this.#world = world;
    this.#departures = new Departures(world, this.#cooldowns, this.#outbox, (entry, now, left) =>
      this.#onRequestDone(entry, now, left),
    );
  }

  attach(path: string, way: PathWay): void {
    const now = this.#world.now();
    const entry = this.#entry(path, now);
    const isNew = entry.way === undefined;
    entry.way = way;
    if (isNew && entry.state.state === "down") this.#setState(entry, State.requestProbe(entry.state, now), now);
    this.#settle(entry, now);
  }

  markReached(path: string): void {
    const entry = this.#entry(path, this.#world.now());
    entry.state = State.markReached(entry.state);
  }

  hasReached(path: string): boolean {
    return this.#entries.get(path)?.state.reached ?? false;
  }

  /** Handles a finding of another process about a path. The finding proves nothing for this process, so the path is probed from here. */
  onFinding(path: string, word: PathWord): void {
    const now = this.#world.now();
    const entry = this.#entry(path, now);
    entry.state = State.markReached(entry.state);
    if (word !== "reached") entry.state = State.applyFinding(entry.state, word === "down", now);
    this.#step(entry, now);
  }

  standingOf(scope: Scope, maxRetryAfterMs: number): Standing {
    const now = this.#world.now();
    const entry = this.#entries.get(scope.path);
    if (entry !== undefined) entry.wantedAt = now;
    const ends = this.#cooldowns.of(scope, now).map((hold) => hold.endFor(scope.credential, maxRetryAfterMs));
    return {
      path: entry === undefined || entry.state.state === "up" ? "up" : "down",
      ...(entry?.state.state === "returning" ? { returning: true } : {}),
      cooldownMs: Math.max(0, ...ends.map((end) => end - now)),
    };
  }

  isOpen(scope: Scope): boolean {
    if (this.#isClosed) return true;
    const entry = this.#entries.get(scope.path);
    if (entry !== undefined && entry.state.state !== "up") return false;
    if (this.#cooldowns.size === 0) return true;
    const now = this.#world.now();
    return this.#cooldowns
      .of(scope, now)
      .every((hold) => hold.waves === undefined && now >= hold.endOf(scope.credential));
  }

  /** Releases a request or adds it to the queue. The returned function removes it from the queue. */
  admit(admission: Admission, done: (admitted: Admitted) => void): () => void {
    const { scope } = admission;
    const now = this.#world.now();
    const entry = this.#entry(scope.path, now);
    entry.wantedAt = now;
    if (this.isOpen(scope)) {
      admission.hold(doNothing);
      done({ _tag: "admitted", waitedMs: 0 });
      return doNothing;
    }
    if (this.#departures.isFull) {
      done({ _tag: "full", waitedMs: 0 });
      return doNothing;
    }
    const waiter = this.#departures.add(entry, admission, now, done);
    this.#settle(entry, now);
    return () => {
      const leftAt = this.#world.now();
      markWanted(entry, leftAt);
      this.#departures.withdraw(entry, waiter);
      this.#settle(entry, leftAt);
    };
  }

  recordResponse(scope: Scope): void {
    const now = this.#world.now();
    const entry = this.#entry(scope.path, now);
    const next = State.recordResponse(entry.state, entry.way !== undefined, now);
    if (next === entry.state && !this.#busy.has(entry) && this.#cooldowns.size === 0) return;
    this.#setState(entry, next, now);
    entry.waves?.recordResponse();
    for (const hold of this.#cooldowns.of(scope, now)) {
      hold.waves?.recordResponse();
      if (hold.trial !== undefined) hold.trial.answered = true;
    }
    // No request is released in this step, because the same response head may still announce a refusal.
    if (entry.queue.size > 0) entry.stepAt = now;
    this.#settle(entry, now);
  }

  /**
   * Records a provider's refusal.
   *
   * @param agoMs milliseconds since the refusal, which another process may have received
   */
  recordRefusal(scope: Scope, refusal: Refusal, agoMs = 0): void {
    const now = this.#world.now();
    const entry = this.#entry(scope.path, now);
    this.#cooldowns.recordRefusal(scope, refusal, now, now - agoMs);
    if (!refusal.onlyThis) entry.waves?.recordRefusal(now);
    entry.hasNews = true;
    this.#step(entry, now);
  }

  /**
   * Calls `done` as soon as it is known whether the path is down. The returned function cancels only this `done`; other callers still wait for
   * the probe.
   */
  recordConnectFailure(scope: Scope, code: string | undefined, done: () => void): () => void {
    const now = this.#world.now();
    const entry = this.#entry(scope.path, now);
    const { state, way, waves } = entry;
    const canProbe = way !== undefined;
    const inDoubt = state.state === "up" || (state.state === "returning" && waves?.hasBegun !== true);
    if (canProbe && inDoubt && state.reached) return this.#ask(entry, done, now);
    this.#setState(entry, State.recordConnectFailure(state, canProbe, code, now, this.#world.jitter()), now);
    this.#step(entry, now);
    done();
    return doNothing;
  }

  recordBreak(scope: Scope): void {
    const now = this.#world.now();
    const entry = this.#entry(scope.path, now);
    this.#setState(entry, State.recordBreak(entry.state, entry.way !== undefined, now, this.#world.jitter()), now);
    this.#step(entry, now);
  }

  /**
   * Calls `done` with true if the path is lost, as soon as that is known. The returned function cancels only this `done`; other callers
   * still wait for the probe.
   */
  isLost(path: string, done: (lost: boolean) => void): () => void {
    const entry = this.#entries.get(path);
    if (entry?.way === undefined) {
      done(false);
      return doNothing;
    }
    if (entry.state.state === "down" && entry.state.probes > 0) {
      done(true);
      return doNothing;
    }
    return this.#ask(entry, done, this.#world.now());
  }

  tryNow(path: string, done: (known: boolean) => void): () => void {
    const entry = this.#entries.get(path);
    if (entry === undefined) {
      done(false);
      return doNothing;
    }
    const now = this.#world.now();
    if (entry.way !== undefined) return this.#ask(entry, () => done(true), now);
    if (entry.state.state === "down") entry.state = State.requestProbe(entry.state, now);
    this.#step(entry, now);
    done(true);
    return doNothing;
  }

  onWake(): void {
    const now = this.#world.now();
    for (const entry of this.#entries.values()) {
      dropIdle(entry);
      if (entry.queue.size === 0 && now - entry.usedAt > inUseMs) continue;
      if (entry.way !== undefined || entry.state.state === "down")
        entry.state = State.restartSchedule(entry.state, now);
      this.#step(entry, now);
    }
  }

  /** Closes the table. Waiting requests end as `full`, and no later request has to wait. */
  close(): void {
    this.#isClosed = true;
    const now = this.#world.now();
    for (const entry of this.#entries.values()) this.#departures.close(entry, now);
    for (const entry of this.#entries.values()) {
      for (const done of entry.askers) this.#outbox.enqueue(() => done(false));
      entry.askers.clear();
    }
    this.#outbox.flush();
  }

  /** Handles all work that is due by now. */
  runDue(): void {
    const now = this.#world.now();
    for (const entry of [...this.#busy]) this.#step(entry, now);
  }

  /** Records the result of a probe. The result of an abandoned probe is ignored. */
  recordProbe({ path, number }: Pick<DueProbe, "path" | "number">, found: Probed): void {
    const entry = this.#entries.get(path);
    if (entry?.probe !== number || !entry.state.probing) return;
    const now = this.#world.now();
    if (found._tag === "failed") dropIdle(entry);
    this.#setState(entry, State.recordProbe(entry.state, found, now, this.#world.jitter()), now);
    const askers = [...entry.askers];
    entry.askers.clear();
    for (const done of askers) this.#outbox.enqueue(() => done(found._tag === "failed"));
    this.#step(entry, now);
  }

  /**
   * Returns the time at which `runDue` next has work to do; infinite if there is none.
   *
   * @param now the start of the last `runDue`, in monotonic milliseconds; work that became due after that is still pending
   */
  nextAt(now = this.#world.now()): number {
    let at = Number.POSITIVE_INFINITY;
    for (const entry of this.#busy) at = Math.min(at, this.#entryAt(entry, now));
    return at;
  }

  list(): ReadonlyArray<PathStatus> {
    const now = this.#world.now();
    const wall = this.#world.wallNow();
    const wallOf = (at: number): number => Math.round(wall + at - now);
    const cooldowns = this.#cooldowns.byPath(now);
    return [...this.#entries.values()].map(({ id, state, queue }) => ({
      path: id,
      state: state.state,
      since: wallOf(state.since),
      reached: state.reached,
      probes: state.probes,
      ...(state.state === "down" && Number.isFinite(state.probeAt) ? { nextProbeAt: wallOf(state.probeAt) } : {}),
      ...(state.code === undefined ? {} : { code: state.code }),
      waiting: queue.size,
      cooldowns: (cooldowns.get(id) ?? []).map((hold) => ({
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
    if (this.#entries.size >= pathsMax) this.#evictOne();
    const entry = newEntry(id, now);
    this.#entries.set(id, entry);
    return entry;
  }

  /** Evicts an idle path. If there is none, evicts a path that is down and has no waiting requests. */
  #evictOne(): void {
    const free = [...this.#entries.values()].filter(({ askers, queue }) => askers.size === 0 && queue.size === 0);
    const idle = free.filter((entry) => !this.#busy.has(entry));
    const [first, ...others] = idle.length > 0 ? idle : free;
    if (first === undefined) return;
    const oldest = others.reduce((old, entry) => (entry.usedAt < old.usedAt ? entry : old), first);
    this.#entries.delete(oldest.id);
    this.#busy.delete(oldest);
  }

  #onRequestDone(entry: Entry, now: number, { afterMs, wasHeld }: Left): void {
    if (afterMs > 0) entry.stepAt = Math.min(entry.stepAt, now + afterMs);
    else this.#departures.pump(entry, now);
    if (wasHeld) this.#departures.plan(entry, now);
    this.#settle(entry, now);
  }

  #ask(entry: Entry, done: (failed: boolean) => void, now: number): () => void {
    if (this.#isClosed) {
      done(false);
      return doNothing;
    }
    entry.askers.add(done);
    entry.wantedAt = now;
    if (!entry.state.probing) entry.state = State.requestProbe(entry.state, now);
    this.#settle(entry, now);
    return () => entry.askers.delete(done);
  }

  #isWaitedFor({ path, model, credential }: Hold): boolean {
    return this.#entries.get(path)?.queue.has(model, credential) ?? false;
  }

  #setState(entry: Entry, next: State.PathState, now: number): void {
    const before = entry.state;
    entry.state = next;
    if (next.state !== before.state) entry.hasNews = true;
    if (next.state !== "returning") entry.waves = undefined;
    else if (before.state !== "returning" || before.since !== next.since) {
      entry.waves = new Waves(now, next.relapsed ? 1 : firstWaveSize(this.#world.processCount?.() ?? 1));
    }
    this.#reportFinding(entry, before);
  }

  /** Reports a changed finding to the other processes. A mere suspicion is not reported. */
  #reportFinding(entry: Entry, before: State.PathState): void {
    const { id, state } = entry;
    if (state.reached && !before.reached) this.#world.reportFinding?.(id, "reached");
    if (state.state === "up") entry.reportedWord = undefined;
    const word = findingOf(entry);
    if (word === undefined || word === entry.reportedWord) return;
    entry.reportedWord = word;
    this.#world.reportFinding?.(id, word);
  }

  #step(entry: Entry, now: number): void {
    entry.stepAt = Number.POSITIVE_INFINITY;
    markWanted(entry, now);
    this.#departures.step(entry, now);
    this.#settle(entry, now);
  }

  /** Resets a path whose state no request needs any more, plans the next step, and notifies the requests of this step. */
  #settle(entry: Entry, now: number): void {
    const { state, queue } = entry;
    if (queue.size === 0) {
      const isBack = state.state === "returning" && now >= state.since + returningMs;
      const isForgotten = state.state === "down" && now >= entry.wantedAt + wantedMs;
      if (isBack || isForgotten) this.#setState(entry, State.reset(state, now), now);
    }
    this.#probe(entry, now);
    const at = this.#entryAt(entry, now);
    if (at === Number.POSITIVE_INFINITY && !entry.state.probing) this.#busy.delete(entry);
    else this.#busy.add(entry);
    if (at < Number.POSITIVE_INFINITY) this.#world.onDue(at);
    this.#outbox.flush();
  }

  #probe(entry: Entry, now: number): void {
    const { state, way, id } = entry;
    if (way === undefined || state.probing || state.probeAt > now) return;
    entry.state = State.startProbe(state, now);
    this.#probes += 1;
    const number = this.#probes;
    entry.probe = number;
    this.#outbox.enqueue(() => this.#world.probe({ path: id, way, number }));
  }

  #entryAt(entry: Entry, now: number): number {
    const { state, way, queue } = entry;
    let at = Math.min(entry.stepAt, this.#departures.nextAt(entry, now));
    if (way !== undefined && !state.probing) at = Math.min(at, state.probeAt);
    if (queue.size > 0) return at;
    if (state.state === "returning") return Math.min(at, state.since + returningMs);
    return state.state === "down" ? Math.min(at, entry.wantedAt + wantedMs) : at;
  }
}

/** Returns the finding to report about a path. The finding that it works again is reported only if the path was reported as down. */
const findingOf = ({ state, reportedWord }: Entry): PathWord | undefined => {
  if (state.state === "down") return state.probes > 0 ? "down" : undefined;
  return state.state === "returning" && reportedWord === "down" ? "returning" : undefined;
};

/** Closes idle connections, which may be dead. An exception of the transport is ignored, because it must not delay the other paths. */
const dropIdle = ({ way }: Entry): void => {
  try {
    way?.dropIdle();
  } catch {
    // If the connections are dead, the next request of the transport fails and reveals it.
  }
};

/**
 * Records that the state of a path with waiting requests is needed, so that it is still known after the last request has stopped waiting.
 */
const markWanted = (entry: Entry, now: number): void => {
  if (entry.queue.size > 0) entry.wantedAt = now;
};
