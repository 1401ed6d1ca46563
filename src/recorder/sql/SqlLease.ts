/**
 * Records the owner of each run. Each process has one lease and renews it while it lives. To take its runs over, another process *fences*
 * the lease, that is, marks it as lost for good.
 *
 * An expired lease that no process has fenced is still valid, so a laptop that slept loses nothing, and the first heartbeat after an outage
 * renews the lease. Only the fence counts: transactions set, read and obey it. `SqlLeaseWatch` decides whether a lease may be fenced.
 */
import * as Effect from "effect/Effect";
import type { SqlError } from "effect/sql/SqlError";
import { RecorderError } from "../RecorderError.ts";
import type { RunRecord } from "../RunRecord.ts";
import { type LeaseStanding, SqlLeaseWatch, type WatchedLease } from "./lease/SqlLeaseWatch.ts";
import type { Base, Place } from "./postgres/SqlParts.ts";
import { RowChanged } from "./SqlFailure.ts";
import type { SqlTables } from "./SqlTables.ts";

/** Maximum records of this process's runs cached in memory, so that a write need not read them first. */
const recordsMax = 10_000;

/** Maximum runs remembered as lost to another process. The oldest are forgotten, because the streams of old runs have ended. */
const lostRunsMax = 10_000;

/**
 * Maximum fenced leases of this process that are remembered. They are needed only while a commit under them is in flight, and in that time
 * only a few leases can be fenced.
 */
const formerMax = 10;

/** Heartbeats per lease. Two may be late before another process suspects a failure. */
export const beatsInLease = 3;

/** State of a run that this process owns or has lost. */
export interface Driven {
  readonly lease: string;
  /** The record and the place of its parts as this process last wrote them. Values that this process does not know are missing. */
  readonly known?: {
    readonly version: number;
    readonly record: RunRecord;
    readonly base?: Base;
    readonly place?: Place;
  };
  /** True if the run is lost and its stream in this process knows of the loss. The stream then writes nothing more. */
  readonly isNotified?: true;
}

/** Options of this process's lease. */
export interface LeaseOptions {
  readonly leaseMs: number;
  /** Name of the process for people, for example `4711@host`. */
  readonly label: string;
  /** Name of the process for a supervisor that reports the end of the process. The ids of its leases start with this name. */
  readonly process?: string;
  /** Wall clock, in milliseconds since the epoch. It is shown to people; to other processes it is only a hint. */
  readonly now: () => number;
  /** Monotonic clock, in milliseconds. */
  readonly elapsed: () => number;
}

/** The lease as held by a transaction. It is valid after the transaction is committed. */
export interface Held {
  readonly id: string;
  /** Monotonic time at which the transaction renewed the lease; undefined if it did not. */
  readonly beatAt: number | undefined;
}

/** A lease that owns open runs. `gone` is true if the lease was fenced or has no row. */
export interface Owner {
  readonly id: string;
  readonly gone: boolean;
  readonly lease: WatchedLease;
  /** Last renewal, by the wall clock of the lease's process; undefined without a row. */
  readonly renewedAt: number | undefined;
}

interface OwnerRow {
  readonly owner: string;
  readonly fenced: number | null;
  readonly beats: number | null;
  readonly lease_ms: number | null;
  readonly left_ms: number | null;
  readonly renewed_at: number | null;
}

/** Result of a heartbeat. `held` is undefined if another process has fenced the lease. */
export interface Beat {
  readonly id: string;
  readonly held: Held | undefined;
}

const rowless = new RecorderError({
  reason: "bad_option",
  run_id: "",
  message:
    "the client returns no rows for a statement with RETURNING, which the recorder needs; use a client that returns them",
});

/** Selects a lease if it is not fenced. @param column columns to select in addition to the id, each with a leading comma */
export const selectUnfenced = (column: string): string =>
  `SELECT id${column} FROM {leases} WHERE id = ? AND fenced = 0`;

/** The lease of this process and the runs that it owns. */
export class SqlLease {
  readonly #tables: SqlTables;
  readonly #options: LeaseOptions;
  readonly #driven = new Map<string, Driven>();
  readonly #watch: SqlLeaseWatch;
  readonly #listeners = new Set<(runId: string) => boolean>();
  readonly #leaving = new SqlLeaving<Driven>();
  #id: string | undefined;
  /** A new lease that a transaction inserted and that is not adopted yet. Concurrent transactions share this lease. */
  #next: string | undefined;
  /** Fenced leases, at most `formerMax`. The result of a transaction under a fenced lease may arrive after results under the next lease. */
  readonly #former = new Set<string>();
  /** Number of runs that the current lease owns. */
  #needs = 0;
  #beatAt = Number.NEGATIVE_INFINITY;
  /** Called when the lease gets its first run, within the same synchronous step. */
  onNeeded: () => void = () => undefined;

  constructor(tables: SqlTables, options: LeaseOptions) {
    this.#tables = tables;
    this.#options = options;
    this.#watch = new SqlLeaseWatch(options.leaseMs);
  }

  /** The current lease, as last known to this process; undefined before its first write. */
  get id(): string | undefined {
    return this.#id;
  }

  /** The lease, unless a transaction would have to renew it first. The transaction itself checks that the lease is not fenced. */
  get freshId(): string | undefined {
    return this.#isLate ? undefined : this.#id;
  }

  /** True if heartbeats were missed. A busy thread may miss heartbeats and still write. */
  get #isLate(): boolean {
    return this.#options.elapsed() - this.#beatAt >= this.beatMs * this.#tables.dialect.beatsMissed;
  }

  /** Time between heartbeats, in milliseconds. */
  get beatMs(): number {
    return this.#options.leaseMs / beatsInLease;
  }

  get ownedCount(): number {
    return this.#needs;
  }

  /** True if the lease owns runs. A lease without runs needs no renewal, because no process waits for its expiry. */
  get isNeeded(): boolean {
    return this.#needs > 0;
  }

  /** True if the lease must be renewed, because it owns runs or this process watches the leases of others. */
  get isToBeat(): boolean {
    return this.isNeeded || (this.#id !== undefined && this.#watch.isOn(this.#options.elapsed()));
  }

  /** Time since the last renewal, in milliseconds; 0 if no run needs the lease. */
  get silentMs(): number {
    return this.isNeeded ? this.#options.elapsed() - this.#beatAt : 0;
  }

  /**
   * Returns the lease to use in this transaction: the current one, or else a new one. The caller calls `adopt` after the commit; until then
   * this process does not remember the lease.
   */
  readonly hold: Effect.Effect<Held, SqlError> = Effect.suspend(() => this.#hold(false));

  /**
   * Like `hold`, but also renews the lease if the next poll of other leases is due, because a process must renew its own lease to watch
   * others.
   */
  readonly holdWatching: Effect.Effect<Held, SqlError> = Effect.suspend(() =>
    this.#hold(this.#watch.isDue(this.#options.elapsed())),
  );

  /** Adopts a committed lease. The runs of an earlier lease are lost. A lease that has been fenced since is not adopted. */
  adopt({ beatAt, id }: Held): void {
    if (this.#former.has(id)) return;
    if (beatAt !== undefined) this.#beatAt = Math.max(this.#beatAt, beatAt);
    if (this.#id !== id) {
      this.#loseRuns();
      this.#id = id;
      if (this.#next === id) this.#next = undefined;
    }
    if (beatAt !== undefined) this.#watch.recordRenewal(beatAt, id);
  }

  /** Handles a lease that another process fenced. If it is the current lease, its runs are lost. */
  handleFence(id: string): void {
    if (this.#id === id) this.#loseRuns();
  }

  /**
   * Registers a listener for runs lost to another process.
   *
   * @param listener returns true if a stream of this process was running the run; the listener then stops that stream
   * @returns a function that removes the listener
   */
  onLost(listener: (runId: string) => boolean): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #loseRuns(): void {
    const lost = [...this.#driven];
    for (const [runId] of lost.slice(0, -lostRunsMax)) this.#driven.delete(runId);
    for (const [runId, { lease, isNotified }] of lost.slice(-lostRunsMax)) {
      this.#driven.set(runId, { lease, ...(isNotified === undefined ? {} : { isNotified }) });
    }
    if (this.#id !== undefined) this.#rememberFenced(this.#id);
    this.#id = undefined;
    this.#needs = 0;
    this.#leaving.clear();
    for (const [runId, { isNotified }] of lost)
      if (isNotified === undefined && this.#isHeard(runId)) this.markLossNotified(runId);
  }

  /** Remembers that another process has fenced this lease, so that a late result under it is not adopted. */
  #rememberFenced(id: string): void {
    if (this.#next === id) this.#next = undefined;
    this.#former.add(id);
    const [oldest] = this.#former;
    if (this.#former.size > formerMax && oldest !== undefined) this.#former.delete(oldest);
  }

  #isHeard(runId: string): boolean {
    let isHeard = false;
    for (const listener of this.#listeners) isHeard = listener(runId) || isHeard;
    return isHeard;
  }

  /** Returns the state of a run that this process owns or has lost. */
  findOwned(runId: string): Driven | undefined {
    return this.#driven.get(runId);
  }

  addOwned(runId: string, lease: string, known?: Driven["known"]): void {
    const before = this.#driven.get(runId);
    const keeps = known !== undefined && (before !== undefined || this.#driven.size < recordsMax);
    const needs = lease === this.#id && before?.lease !== lease;
    if (needs) this.#needs += 1;
    this.#driven.set(runId, { lease, ...(keeps ? { known } : {}) });
    if (needs && this.#needs === 1) this.onNeeded();
  }

  /** Runs that wait to be released, as far as this process knows. */
  get pendingReleases(): ReadonlyArray<string> {
    return this.#leaving.all;
  }

  /** True if a run is being released. This process does not claim the run again until the release is confirmed. */
  isReleasing(runId: string): boolean {
    return this.#leaving.has(runId);
  }

  /**
   * Starts to release a run. Call `completeRelease` if the release succeeds, `failRelease` if it fails.
   *
   * @returns the run's state; undefined if there is nothing to release or a release is in flight
   */
  beginRelease(runId: string): Driven | undefined {
    const as = this.#driven.get(runId);
    return as !== undefined && this.#leaving.tryBegin(runId, as) ? as : undefined;
  }

  /**
   * Records that a run was released.
   *
   * @param as state that `beginRelease` returned
   * @param wasOwned true if the run still had an owner when the statement ran. Then this process has not claimed the run again in between,
   *   so the state is still the same
   */
  completeRelease(runId: string, as: Driven, wasOwned: boolean): void {
    this.#leaving.markDone(runId, as);
    const mine = this.#driven.get(runId);
    this.disown(runId, wasOwned && mine?.lease === as.lease ? mine : as);
  }

  /** Records that a run could not be released. @param as state that `beginRelease` returned */
  failRelease(runId: string, as: Driven): void {
    this.#leaving.fail(runId, as, this.#driven.has(runId));
  }

  /**
   * Gives up ownership of a run. A run that this process has lost stays lost.
   *
   * @param as state of the run at the write that ended the ownership; this process may have claimed the run again since
   */
  disown(runId: string, as: Driven | undefined): void {
    this.#leaving.forget(runId);
    const mine = this.#driven.get(runId);
    if (mine === undefined) return;
    if (mine.lease !== this.#id) {
      this.markLossNotified(runId);
      return;
    }
    if (mine !== as) return;
    this.#driven.delete(runId);
    this.#needs -= 1;
  }

  /** Records that the stream of a lost run was notified of the loss. Until then this process does not claim the run again. */
  markLossNotified(runId: string): void {
    const mine = this.#driven.get(runId);
    if (mine !== undefined && mine.lease !== this.#id) this.#driven.set(runId, { lease: mine.lease, isNotified: true });
  }

  /**
   * Renews the lease; returns undefined if this process has no lease.
   *
   * @param tables tables by the client whose transaction this joins
   */
  beat(tables: SqlTables = this.#tables): Effect.Effect<Beat | undefined, SqlError> {
    return Effect.suspend(() => {
      const id = this.#id;
      return id === undefined ? Effect.undefined : Effect.map(this.#renew(id, tables), (held) => ({ id, held }));
    });
  }

  /** Fences this process's lease, so that other processes may take over its remaining runs at once. */
  readonly end: Effect.Effect<void, SqlError> = Effect.suspend(() => {
    const { leases, sql } = this.#tables;
    return this.#id === undefined
      ? Effect.void
      : Effect.asVoid(sql`UPDATE ${leases} SET fenced = 1 WHERE id = ${this.#id}`);
  });

  /** Fences a lease for good. Fails with `RowChanged` if the lease was renewed or fenced since this process read it. */
  fence({ beats, id }: WatchedLease): Effect.Effect<void, SqlError | RowChanged> {
    const { leases, sql } = this.#tables;
    return Effect.flatMap(
      sql`UPDATE ${leases} SET fenced = 1 WHERE id = ${id} AND fenced = 0 AND beats = ${beats} RETURNING id`,
      ({ length }) => (length === 1 ? Effect.void : Effect.fail(new RowChanged())),
    );
  }

  /** Fences every lease of a process that has ended. A process name is never used again. */
  fenceAll(process: string): Effect.Effect<void, SqlError> {
    const { leases, sql } = this.#tables;
    // Matches ids that start with the name and a full stop. The character after `.` is `/`.
    const [from, to] = [`${process}.`, `${process}/`];
    return Effect.asVoid(sql`UPDATE ${leases} SET fenced = 1 WHERE id >= ${from} AND id < ${to} AND fenced = 0`);
  }

  /**
   * Returns other processes' leases that own open runs. The cost grows with the number of such processes, not with the number of their
   * runs.
   */
  readonly owners: Effect.Effect<ReadonlyArray<Owner>, SqlError> = Effect.suspend(() => {
    const { dialect, leases, runs, sql } = this.#tables;
    const rows = sql<OwnerRow>`WITH RECURSIVE o (owner) AS (
        SELECT MIN(owner) FROM ${runs} WHERE owner IS NOT NULL
        UNION ALL SELECT (SELECT MIN(r.owner) FROM ${runs} r WHERE r.owner > o.owner) FROM o WHERE o.owner IS NOT NULL)
      SELECT o.owner, l.fenced, l.beats, l.lease_ms, l.expires_at - ${dialect.time(this.#options.now())} AS left_ms,
        ${dialect.wallClock.renewedAt} AS renewed_at
      FROM o LEFT JOIN ${leases} l ON l.id = o.owner
      WHERE o.owner IS NOT NULL`;
    return Effect.map(rows, (all) =>
      all.map((row) => this.#ownerOf(row)).filter(({ gone, id }) => gone || id !== this.#id),
    );
  });

  standingOf(lease: WatchedLease): LeaseStanding {
    return this.#watch.standingOf(lease, this.#options.elapsed());
  }

  /** Handles a committed transaction that renewed this lease and read the leases of other processes. */
  observe(held: Held, owners: ReadonlyArray<Owner>): void {
    this.adopt(held);
    if (held.beatAt === undefined) return;
    const others = owners.filter(({ gone }) => !gone).map(({ lease }) => lease);
    this.#watch.observe(held.beatAt, held.id, others);
  }

  /** Time between two polls of silent leases, in milliseconds. */
  get pauseMs(): number {
    return this.#watch.pauseMs;
  }

  /** Maximum wait until each of these leases is known to be over or still held, in milliseconds. */
  longestMs(owners: ReadonlyArray<Owner>): number {
    return this.#watch.longestMs(owners.map(({ lease }) => lease));
  }

  #ownerOf({ beats, fenced, lease_ms, left_ms, owner, renewed_at }: OwnerRow): Owner {
    const [left, leaseMs] = [Number(left_ms ?? 0), Number(lease_ms ?? 0)];
    return {
      id: owner,
      gone: fenced === null || Number(fenced) !== 0,
      // If the time left exceeds the length of the lease, the expiry was written with another clock.
      lease: { id: owner, beats: Number(beats ?? 0), leaseMs, seemsOver: left <= 0 || left > leaseMs },
      renewedAt: renewed_at === null ? undefined : Number(renewed_at),
    };
  }

  readonly #hold = Effect.fnUntraced(function* (this: SqlLease, beating: boolean) {
    const { dialect } = this.#tables;
    if (this.#id !== undefined) {
      if (beating || this.#isLate) {
        const renewed = yield* this.#renew(this.#id);
        if (renewed !== undefined) return renewed;
      } else {
        const { column, note } = dialect.id;
        const [row] = yield* this.#tables.ask<{ readonly xid?: string }>(selectUnfenced(column), [this.#id]);
        if (row !== undefined) {
          if (column !== "") yield* note(row);
          return { id: this.#id, beatAt: undefined };
        }
      }
    }
    // Shares a lease that another transaction is inserting. With a second lease, the runs of the first one would be lost.
    const made = this.#next === undefined ? undefined : yield* this.#renewOrMake(this.#next);
    if (made !== undefined) return made;
    const { process } = this.#options;
    const drawn = globalThis.crypto.randomUUID();
    const id = process === undefined ? drawn : `${process}.${drawn}`;
    this.#next = id;
    return (yield* this.#make(id)) ?? (yield* Effect.die(rowless));
  });

  /**
   * Renews a lease that another transaction has inserted, or inserts it; undefined if the lease was fenced before this process knew of it.
   */
  readonly #renewOrMake = Effect.fnUntraced(function* (this: SqlLease, next: string) {
    const held = (yield* this.#renew(next)) ?? (yield* this.#make(next));
    if (held === undefined) this.#rememberFenced(next);
    return held;
  });

  /** Inserts a lease; returns undefined if it exists. On a server, this waits for a concurrent insert of the same lease. */
  readonly #make = Effect.fnUntraced(function* (this: SqlLease, id: string) {
    const { dialect, leases, sql } = this.#tables;
    const { elapsed, label, leaseMs, now } = this.#options;
    const beatAt = elapsed();
    const rows = yield* sql`INSERT INTO ${leases} (id, label, started_at, expires_at, fenced, beats, lease_ms)
      VALUES (${id}, ${label}, ${now()}, ${dialect.time(now())} + ${leaseMs}, 0, 1, ${leaseMs})
      ON CONFLICT (id) DO NOTHING RETURNING id`;
    return rows.length === 1 ? { id, beatAt } : undefined;
  });

  readonly #renew = Effect.fnUntraced(function* (this: SqlLease, id: string, tables: SqlTables = this.#tables) {
    const { dialect, leases, sql } = tables;
    const { elapsed, leaseMs, now } = this.#options;
    const beatAt = elapsed();
    const rows = yield* sql`UPDATE ${leases}
      SET beats = beats + 1, expires_at = ${dialect.time(now())} + ${leaseMs}, lease_ms = ${leaseMs}${dialect.wallClock.set(now())}
      WHERE id = ${id} AND fenced = 0 RETURNING id`;
    return rows.length === 0 ? undefined : { id, beatAt };
  });
}

/**
 * Tracks the runs that a process is releasing, from before the release statement is sent until its outcome is known.
 *
 * Each run has at most one statement in flight, because a second one could release the run after this process has claimed it again. A
 * statement remembers the run's state at its start, so it does not affect later claims.
 */

interface Leaving<A> {
  /** State of the run when its release began. */
  readonly as: A;
  /** True if a statement was sent and its outcome is not known yet. */
  readonly isUnderWay: boolean;
}

/** The runs to release, including those whose release failed. */
export class SqlLeaving<A extends object> {
  /** Has at most as many entries as this process owns runs. */
  readonly #runs = new Map<string, Leaving<A>>();

  get all(): ReadonlyArray<string> {
    return [...this.#runs.keys()];
  }

  has(runId: string): boolean {
    return this.#runs.has(runId);
  }

  /** Marks a statement as sent. Returns false if one is in flight. */
  tryBegin(runId: string, as: A): boolean {
    if (this.#runs.get(runId)?.isUnderWay === true) return false;
    this.#runs.set(runId, { as, isUnderWay: true });
    return true;
  }

  markDone(runId: string, as: A): void {
    if (this.#runs.get(runId)?.as === as) this.#runs.delete(runId);
  }

  /** Marks the statement as failed. If this process still owns the run, the release is tried again later. */
  fail(runId: string, as: A, isDriven: boolean): void {
    if (this.#runs.get(runId)?.as !== as) return;
    if (isDriven) this.#runs.set(runId, { as, isUnderWay: false });
    else this.#runs.delete(runId);
  }

  /** Forgets a run that this process has stopped owning for a reason other than a release. */
  forget(runId: string): void {
    if (this.#runs.get(runId)?.isUnderWay === false) this.#runs.delete(runId);
  }

  clear(): void {
    this.#runs.clear();
  }
}
