/**
 * Says which process drives a run. Each process has one lease, renews it while it lives, and loses it for ever when a process
 * that takes over fences it.
 *
 * A lease that has expired and that no process has fenced is still good: a laptop that slept loses nothing, and the first
 * beat after an outage renews it. Only the fence decides, and it is set, read and obeyed inside of transactions.
 * `SqlLeaseWatch` says when a lease may be fenced.
 */
import * as Effect from "effect/Effect";
import type { SqlError } from "effect/sql/SqlError";
import { RecorderError } from "../RecorderError.ts";
import type { RunRecord } from "../RunRecord.ts";
import { type LeaseStanding, SqlLeaseWatch, type WatchedLease } from "./lease/SqlLeaseWatch.ts";
import { SqlLeaving } from "./lease/SqlLeaving.ts";
import type { Base, Place } from "./postgres/SqlParts.ts";
import { RowChanged } from "./SqlFailure.ts";
import type { SqlTables } from "./SqlTables.ts";

/** Most records of driven runs that are kept in memory beside their rows, so that a write need not read them. */
const recordsMax = 10_000;

/** Most runs that are remembered as lost to another process; the oldest are forgotten, as their streams are over. */
const lostRunsMax = 10_000;

/** Most leases of this process that are remembered as fenced. Each takes a fence by another process, and a commit takes less time than ten. */
const formerMax = 10;

/** Beats in a lease: two may be late before another process doubts. */
export const beatsInLease = 3;

/** What this process knows of a run that it drives. */
export interface Driven {
  readonly lease: string;
  /** The record as this process last wrote it, and where its parts are, as far as it has seen that. */
  readonly known?: {
    readonly version: number;
    readonly record: RunRecord;
    readonly base?: Base;
    readonly place?: Place;
  };
  /** The run is lost, and the stream that drove it here was told so: it writes nothing more. */
  readonly told?: true;
}

/** How this process holds its lease. */
export interface LeaseOptions {
  readonly leaseMs: number;
  /** Names the process for a person: `4711@host`. */
  readonly label: string;
  /** Names the process for another one, which is told when it has ended: its leases begin with it. */
  readonly process?: string;
  /** Wall clock, milliseconds since the epoch: what a person reads, and a hint to other processes. */
  readonly now: () => number;
  /** Monotonic clock, in milliseconds. */
  readonly elapsed: () => number;
}

/** The lease as a transaction holds it; it counts once that is committed. */
export interface Held {
  readonly id: string;
  /** When the transaction renewed the lease, by the monotonic clock; undefined where it did not. */
  readonly beatAt: number | undefined;
}

/** A lease that owns open runs, as its row says; without a row it was forgotten. */
export interface Owner {
  readonly id: string;
  readonly gone: boolean;
  readonly lease: WatchedLease;
  /** When its process renewed it last, by that process's own wall clock; undefined without a row. */
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

/** What a heartbeat found: the lease that it would renew, and how it holds it; undefined where another process has fenced it. */
export interface Beat {
  readonly id: string;
  readonly held: Held | undefined;
}

const rowless = new RecorderError({
  reason: "bad_option",
  run_id: "",
  message: "the client gives no rows of a statement with RETURNING, by which the recorder knows what it has changed",
});

/** Finds a lease that no process has fenced. @param column what is selected besides */
export const holding = (column: string): string => `SELECT id${column} FROM {leases} WHERE id = ? AND fenced = 0`;

/** The lease of this process and the runs that it drives under it. */
export class SqlLease {
  readonly #tables: SqlTables;
  readonly #options: LeaseOptions;
  readonly #driven = new Map<string, Driven>();
  readonly #watch: SqlLeaseWatch;
  readonly #listeners = new Set<(runId: string) => boolean>();
  readonly #leaving = new SqlLeaving<Driven>();
  #id: string | undefined;
  /** A new lease that a transaction has made and that is not adopted yet: one that runs meanwhile holds the same. */
  #next: string | undefined;
  /** Leases that were fenced, at most `formerMax`: a transaction under one may be told later than those under the next. */
  readonly #former = new Set<string>();
  /** Runs that are driven under the lease as it is now. */
  #needs = 0;
  #beatAt = Number.NEGATIVE_INFINITY;
  /** Called in the step in which the lease comes to be needed: by its first run, or by the first one behind its last. */
  whenNeeded: () => void = () => undefined;

  constructor(tables: SqlTables, options: LeaseOptions) {
    this.#tables = tables;
    this.#options = options;
    this.#watch = new SqlLeaseWatch(options.leaseMs);
  }

  /** The lease as far as this process knows; none before its first write. */
  get id(): string | undefined {
    return this.#id;
  }

  /** The lease where a transaction that holds it would not renew it; what it is worth, the transaction asks its row. */
  get steady(): string | undefined {
    return this.#isLate ? undefined : this.#id;
  }

  /** A thread that is busy may miss its heartbeat and still write. */
  get #isLate(): boolean {
    return this.#options.elapsed() - this.#beatAt >= this.beatMs * this.#tables.dialect.beatsMissed;
  }

  /** From one heartbeat to the next, in milliseconds. */
  get beatMs(): number {
    return this.#options.leaseMs / beatsInLease;
  }

  /** How many runs are driven under the lease. */
  get drives(): number {
    return this.#needs;
  }

  /** Whether a run is driven under the lease: a lease without runs need not be renewed, as no process waits for its end. */
  get isNeeded(): boolean {
    return this.#needs > 0;
  }

  /** Whether the lease has to be renewed: runs are driven under it, or the leases of others are watched. */
  get isToBeat(): boolean {
    return this.isNeeded || (this.#id !== undefined && this.#watch.isOn(this.#options.elapsed()));
  }

  /** How long the lease was not renewed, in milliseconds; 0 where no run needs it. */
  get silentMs(): number {
    return this.isNeeded ? this.#options.elapsed() - this.#beatAt : 0;
  }

  /**
   * Gives the lease that is good in this transaction: the one held, else a new one. Nothing is remembered before the
   * transaction is committed: `adopt` is what its caller does then.
   */
  readonly hold: Effect.Effect<Held, SqlError> = Effect.suspend(() => this.#hold(false));

  /** As `hold`, and renews the lease where the next look at others is due: a process that watches leases has to beat itself. */
  readonly holdWatching: Effect.Effect<Held, SqlError> = Effect.suspend(() =>
    this.#hold(this.#watch.isDue(this.#options.elapsed())),
  );

  /** Takes note that a lease is committed. The runs of an earlier one are lost; one that was fenced meanwhile is not taken back. */
  adopt({ beatAt, id }: Held): void {
    if (this.#former.has(id)) return;
    if (beatAt !== undefined) this.#beatAt = Math.max(this.#beatAt, beatAt);
    if (this.#id !== id) {
      this.#lose();
      this.#id = id;
      if (this.#next === id) this.#next = undefined;
    }
    if (beatAt !== undefined) this.#watch.beaten(beatAt, id);
  }

  /** Takes note that another process has fenced a lease: if it is the one that is held, what was driven under it is lost. */
  lose(id: string): void {
    if (this.#id === id) this.#lose();
  }

  /**
   * Tells of each run that is lost to another process, as soon as that is known.
   *
   * @param listener gives whether it has driven the run, which it stops then
   * @returns ends it
   */
  onLost(listener: (runId: string) => boolean): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  #lose(): void {
    const lost = [...this.#driven];
    for (const [runId] of lost.slice(0, -lostRunsMax)) this.#driven.delete(runId);
    for (const [runId, { lease, told }] of lost.slice(-lostRunsMax)) {
      this.#driven.set(runId, { lease, ...(told === undefined ? {} : { told }) });
    }
    if (this.#id !== undefined) this.#pass(this.#id);
    this.#id = undefined;
    this.#needs = 0;
    this.#leaving.clear();
    for (const [runId, { told }] of lost) if (told === undefined && this.#isHeard(runId)) this.tell(runId);
  }

  /** Takes note that a lease is fenced, which it stays. */
  #pass(id: string): void {
    if (this.#next === id) this.#next = undefined;
    this.#former.add(id);
    const [oldest] = this.#former;
    if (this.#former.size > formerMax && oldest !== undefined) this.#former.delete(oldest);
  }

  #isHeard(runId: string): boolean {
    let heard = false;
    for (const listener of this.#listeners) heard = listener(runId) || heard;
    return heard;
  }

  /** What is known of a run that this process drives or has lost. */
  driven(runId: string): Driven | undefined {
    return this.#driven.get(runId);
  }

  /** Takes note that this process drives a run. */
  drive(runId: string, lease: string, known?: Driven["known"]): void {
    const before = this.#driven.get(runId);
    const keeps = known !== undefined && (before !== undefined || this.#driven.size < recordsMax);
    const needs = lease === this.#id && before?.lease !== lease;
    if (needs) this.#needs += 1;
    this.#driven.set(runId, { lease, ...(keeps ? { known } : {}) });
    if (needs && this.#needs === 1) this.whenNeeded();
  }

  /** Runs that are to be given back and are not yet, as far as this process knows. */
  get leaving(): ReadonlyArray<string> {
    return this.#leaving.all;
  }

  /** Whether a run is to be given back. Until that is known to be done, this process does not claim it again. */
  isLeaving(runId: string): boolean {
    return this.#leaving.has(runId);
  }

  /**
   * Begins to give a run back; `parted` says that it was, `stays` that it was not.
   *
   * @returns the run as it is driven here; undefined where there is nothing to give back, or that is under way
   */
  part(runId: string): Driven | undefined {
    const as = this.#driven.get(runId);
    return as !== undefined && this.#leaving.begins(runId, as) ? as : undefined;
  }

  /**
   * Takes note that a run was given back.
   *
   * @param as what `part` has given
   * @param wasOwned the statement has found the run: as nobody here could claim it meanwhile, whatever is known of it is of before
   */
  parted(runId: string, as: Driven, wasOwned: boolean): void {
    this.#leaving.done(runId, as);
    const mine = this.#driven.get(runId);
    this.leave(runId, wasOwned && mine?.lease === as.lease ? mine : as);
  }

  /** Takes note that a run could not be given back. @param as what `part` has given */
  stays(runId: string, as: Driven): void {
    this.#leaving.failed(runId, as, this.#driven.has(runId));
  }

  /**
   * Takes note that this process does not drive a run any more. A run that it has lost stays lost.
   *
   * @param as the run as it was driven when that was written: this process may have claimed it again before it hears of that
   */
  leave(runId: string, as: Driven | undefined): void {
    this.#leaving.forget(runId);
    const mine = this.#driven.get(runId);
    if (mine === undefined) return;
    if (mine.lease !== this.#id) {
      this.tell(runId);
      return;
    }
    if (mine !== as) return;
    this.#driven.delete(runId);
    this.#needs -= 1;
  }

  /** Takes note that the stream which drove a lost run here knows of it. Until then this process does not claim the run again. */
  tell(runId: string): void {
    const mine = this.#driven.get(runId);
    if (mine !== undefined && mine.lease !== this.#id) this.#driven.set(runId, { lease: mine.lease, told: true });
  }

  /**
   * Renews the lease; undefined where there is none.
   *
   * @param tables the tables by the client whose transaction this is part of
   */
  beat(tables: SqlTables = this.#tables): Effect.Effect<Beat | undefined, SqlError> {
    return Effect.suspend(() => {
      const id = this.#id;
      return id === undefined ? Effect.undefined : Effect.map(this.#renew(id, tables), (held) => ({ id, held }));
    });
  }

  /** Ends the lease: the runs that this process still drives may be taken over at once. */
  readonly end: Effect.Effect<void, SqlError> = Effect.suspend(() => {
    const { leases, sql } = this.#tables;
    return this.#id === undefined
      ? Effect.void
      : Effect.asVoid(sql`UPDATE ${leases} SET fenced = 1 WHERE id = ${this.#id}`);
  });

  /** Fences a lease for ever, as it was seen: a lease that was renewed since is held. */
  fence({ beats, id }: WatchedLease): Effect.Effect<void, SqlError | RowChanged> {
    const { leases, sql } = this.#tables;
    return Effect.flatMap(
      sql`UPDATE ${leases} SET fenced = 1 WHERE id = ${id} AND fenced = 0 AND beats = ${beats} RETURNING id`,
      ({ length }) => (length === 1 ? Effect.void : Effect.fail(new RowChanged())),
    );
  }

  /** Fences every lease of a process that has ended. No process beats under that name again. */
  fenceAll(process: string): Effect.Effect<void, SqlError> {
    const { leases, sql } = this.#tables;
    // What begins with the name and a full stop, by the order of the ids: the character behind a full stop is a slash.
    const [from, to] = [`${process}.`, `${process}/`];
    return Effect.asVoid(sql`UPDATE ${leases} SET fenced = 1 WHERE id >= ${from} AND id < ${to} AND fenced = 0`);
  }

  /**
   * The leases of other processes that own open runs, and how each stands. It costs as much as there are such processes,
   * however many runs they drive.
   */
  readonly owners: Effect.Effect<ReadonlyArray<Owner>, SqlError> = Effect.suspend(() => {
    const { dialect, leases, runs, sql } = this.#tables;
    const rows = sql<OwnerRow>`WITH RECURSIVE o (owner) AS (
        SELECT MIN(owner) FROM ${runs} WHERE owner IS NOT NULL
        UNION ALL SELECT (SELECT MIN(r.owner) FROM ${runs} r WHERE r.owner > o.owner) FROM o WHERE o.owner IS NOT NULL)
      SELECT o.owner, l.fenced, l.beats, l.lease_ms, l.expires_at - ${dialect.time(this.#options.now())} AS left_ms,
        ${dialect.told.renewedAt} AS renewed_at
      FROM o LEFT JOIN ${leases} l ON l.id = o.owner
      WHERE o.owner IS NOT NULL`;
    return Effect.map(rows, (all) =>
      all.map((row) => this.#ownerOf(row)).filter(({ gone, id }) => gone || id !== this.#id),
    );
  });

  /** How a lease stands now. */
  standing(lease: WatchedLease): LeaseStanding {
    return this.#watch.standing(lease, this.#options.elapsed());
  }

  /** Takes note of a committed transaction that renewed this lease and saw those of others. */
  looked(held: Held, owners: ReadonlyArray<Owner>): void {
    this.adopt(held);
    if (held.beatAt === undefined) return;
    const others = owners.filter(({ gone }) => !gone).map(({ lease }) => lease);
    this.#watch.looked(held.beatAt, held.id, others);
  }

  /** From one look at silent leases to the next, in milliseconds. */
  get pauseMs(): number {
    return this.#watch.pauseMs;
  }

  /** Longest wait for leases to be over or held, in milliseconds. */
  longestMs(owners: ReadonlyArray<Owner>): number {
    return this.#watch.longestMs(owners.map(({ lease }) => lease));
  }

  #ownerOf({ beats, fenced, lease_ms, left_ms, owner, renewed_at }: OwnerRow): Owner {
    const [left, leaseMs] = [Number(left_ms ?? 0), Number(lease_ms ?? 0)];
    return {
      id: owner,
      gone: fenced === null || Number(fenced) !== 0,
      // An end that is further away than the lease is long was written by another clock.
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
        const [row] = yield* this.#tables.ask<{ readonly xid?: string }>(holding(column), [this.#id]);
        if (row !== undefined) {
          if (column !== "") yield* note(row);
          return { id: this.#id, beatAt: undefined };
        }
      }
    }
    // One that another transaction makes is the same: two leases would lose the runs of the first.
    const made = this.#next === undefined ? undefined : yield* this.#made(this.#next);
    if (made !== undefined) return made;
    const { process } = this.#options;
    const drawn = globalThis.crypto.randomUUID();
    const id = process === undefined ? drawn : `${process}.${drawn}`;
    this.#next = id;
    return (yield* this.#make(id)) ?? (yield* Effect.die(rowless));
  });

  /** A lease that another transaction makes or has made; undefined where it was fenced before this process has heard of it. */
  readonly #made = Effect.fnUntraced(function* (this: SqlLease, next: string) {
    const held = (yield* this.#renew(next)) ?? (yield* this.#make(next));
    if (held === undefined) this.#pass(next);
    return held;
  });

  /** Makes a lease; undefined where it is there. A server lets this wait until the transaction that makes it too is over. */
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
      SET beats = beats + 1, expires_at = ${dialect.time(now())} + ${leaseMs}, lease_ms = ${leaseMs}${dialect.told.set(now())}
      WHERE id = ${id} AND fenced = 0 RETURNING id`;
    return rows.length === 0 ? undefined : { id, beatAt };
  });
}
