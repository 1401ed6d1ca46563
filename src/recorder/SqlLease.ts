/**
 * Says which process drives a run: one lease a process, renewed while it lives, fenced for ever by whoever takes over.
 *
 * A lease that has expired and that nobody has fenced is still good: a laptop that slept loses nothing. What decides is the
 * fence, and it is set, read and obeyed inside of transactions only.
 */
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { SqlError } from "effect/sql/SqlError";
import type { RunRecord } from "./RunRecord.ts";

/** Most records of driven runs that are kept in memory beside their rows, so that a write need not read them. */
const recordsMax = 10_000;

/** Most runs that are remembered as lost to another process; the oldest are forgotten, as their streams are over. */
const lostRunsMax = 10_000;

/** What this process knows of a run that it drives. */
export interface Driven {
  readonly lease: string;
  /** The record as this process last wrote it. */
  readonly known?: { readonly version: number; readonly record: RunRecord };
}

/** How this process holds its lease. */
export interface LeaseOptions {
  readonly leaseMs: number;
  /** Names the process for a person: `4711@host`. */
  readonly label: string;
  /** Wall clock, milliseconds since the epoch. */
  readonly now: () => number;
}

/** The lease of this process and the runs that it drives under it. */
export class SqlLease {
  readonly #sql: SqlClient;
  readonly #options: LeaseOptions;
  readonly #driven = new Map<string, Driven>();
  #id: string | undefined;

  constructor(sql: SqlClient, options: LeaseOptions) {
    this.#sql = sql;
    this.#options = options;
  }

  /** The lease as far as this process knows; none before its first write. */
  get id(): string | undefined {
    return this.#id;
  }

  /** Whether a run is driven under the lease: one without runs need not be renewed, as nobody waits for its end. */
  get isNeeded(): boolean {
    return this.#id !== undefined && [...this.#driven.values()].some(({ lease }) => lease === this.#id);
  }

  /**
   * Gives the lease that is good in this transaction: the one held, else a new one. Nothing is remembered before the
   * transaction is committed: `adopt` is what its caller does then.
   */
  readonly hold: Effect.Effect<string, SqlError> = Effect.suspend(() => this.#hold());

  /** Takes note that a lease is committed; the runs of an earlier one are lost. */
  adopt(id: string): void {
    if (this.#id === id) return;
    this.#id = id;
    const lost = [...this.#driven].filter(([, run]) => run.lease !== id);
    for (const [runId] of lost.slice(0, -lostRunsMax)) this.#driven.delete(runId);
    for (const [runId, { lease }] of lost.slice(-lostRunsMax)) this.#driven.set(runId, { lease });
  }

  /** What is known of a run that this process drives or has lost. */
  driven(runId: string): Driven | undefined {
    return this.#driven.get(runId);
  }

  /** Takes note that this process drives a run. */
  drive(runId: string, lease: string, known?: Driven["known"]): void {
    const keeps = known !== undefined && (this.#driven.has(runId) || this.#driven.size < recordsMax);
    this.#driven.set(runId, { lease, ...(keeps ? { known } : {}) });
  }

  /** Takes note that this process does not drive a run any more. */
  leave(runId: string): void {
    this.#driven.delete(runId);
  }

  /** Renews the lease; a fenced one stays fenced. */
  readonly beat: Effect.Effect<void, SqlError> = Effect.suspend(() =>
    this.#id === undefined
      ? Effect.void
      : Effect.asVoid(
          this.#sql`UPDATE leases SET expires_at = ${this.#expiry()} WHERE id = ${this.#id} AND fenced = 0`,
        ),
  );

  /** Ends the lease: whatever this process still drives may be taken over at once. */
  readonly end: Effect.Effect<void, SqlError> = Effect.suspend(() =>
    this.#id === undefined ? Effect.void : this.fence([this.#id]),
  );

  /** Fences leases for ever. */
  fence(ids: ReadonlyArray<string>): Effect.Effect<void, SqlError> {
    return ids.length === 0
      ? Effect.void
      : Effect.asVoid(this.#sql`UPDATE leases SET fenced = 1 WHERE id IN ${this.#sql.in(ids)}`);
  }

  readonly #hold = Effect.fnUntraced(function* (this: SqlLease) {
    if (this.#id !== undefined) {
      const [row] = yield* this.#sql<{ readonly expires_at: number }>`
        SELECT expires_at FROM leases WHERE id = ${this.#id} AND fenced = 0`;
      // A thread that is busy may miss its heartbeat and still write.
      if (row !== undefined && Number(row.expires_at) < this.#options.now() + this.#options.leaseMs / 2) {
        yield* this.beat;
      }
      if (row !== undefined) return this.#id;
    }
    const id = globalThis.crypto.randomUUID();
    yield* this.#sql`INSERT INTO leases (id, label, started_at, expires_at, fenced)
      VALUES (${id}, ${this.#options.label}, ${this.#options.now()}, ${this.#expiry()}, 0)`;
    return id;
  });

  #expiry(): number {
    return this.#options.now() + this.#options.leaseMs;
  }
}
