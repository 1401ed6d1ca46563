/**
 * Watches the leases of other processes, and says which of them are over.
 *
 * A lease counts its beats. It is over when this process has seen the same number for a whole lease, by its own monotonic
 * clock, and has beaten itself in that time without a gap: clocks of other machines say nothing here, and an outage that
 * kept every process from beating ends no lease. Pure but for what it remembers; the caller tells the time.
 */

/** A foreign lease as a transaction found it. */
export interface WatchedLease {
  readonly id: string;
  readonly beats: number;
  /** How long its owner may be silent, in milliseconds. */
  readonly leaseMs: number;
  /** Whether its owner's wall clock, beside this one, says nothing against it: a hint that no decision rests on. */
  readonly seemsOver: boolean;
}

/** What is known of a lease: `over` may be taken, `held` may not, and `silent` will be one of both within a lease. */
export type LeaseStanding = "over" | "held" | "silent";

interface Seen {
  readonly beats: number;
  /** From when on it was watched without a gap and has not changed, in milliseconds of the monotonic clock. */
  readonly since: number;
  /** The last new beat came after this time: that of the look before. */
  readonly beatenAfter: number | undefined;
}

/** What one process has seen of the leases of others. */
export class SqlLeaseWatch {
  readonly #leaseMs: number;
  #seen: ReadonlyMap<string, Seen> = new Map();
  #beatAt = Number.NEGATIVE_INFINITY;
  #beatAs: string | undefined;

  /** @param leaseMs lease of this process, in milliseconds */
  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs;
  }

  /** From one look to the next while a caller waits, in milliseconds: often enough that a late one is no gap. */
  get pauseMs(): number {
    return this.#leaseMs / 6;
  }

  /** Whether it is time to look again. */
  isDue(at: number): boolean {
    return at - this.#beatAt >= this.pauseMs;
  }

  /** Longest that this process waits for a lease to be over or held, in milliseconds: gaps begin the watch anew. */
  longestMs(leases: ReadonlyArray<WatchedLease>): number {
    return 2 * leases.reduce((most, { leaseMs }) => Math.max(most, leaseMs), this.#leaseMs);
  }

  /**
   * Takes note of a transaction that is committed, in which this process renewed its own lease and saw those of others.
   *
   * @param at when it began, by the monotonic clock
   * @param as the lease of this process: one that was fenced has watched nothing
   */
  looked(at: number, as: string, leases: ReadonlyArray<WatchedLease>): void {
    // Longer than half a lease without a beat: for so long other processes may have been kept from beating too.
    const gap = at - this.#beatAt > this.#leaseMs / 2 || as !== this.#beatAs;
    const before = this.#beatAt;
    this.#seen = new Map(
      leases.map(({ beats, id }) => {
        const known = this.#seen.get(id);
        if (known === undefined) return [id, { beats, since: at, beatenAfter: undefined }];
        if (known.beats !== beats) return [id, { beats, since: at, beatenAfter: before }];
        return [id, gap ? { ...known, since: at } : known];
      }),
    );
    this.#beatAt = at;
    this.#beatAs = as;
  }

  /**
   * Says how a lease stands.
   *
   * @param at now, by the monotonic clock
   */
  standing({ beats, id, leaseMs, seemsOver }: WatchedLease, at: number): LeaseStanding {
    const needMs = Math.max(leaseMs, this.#leaseMs);
    const seen = this.#seen.get(id);
    if (seen === undefined) return seemsOver ? "silent" : "held";
    const unbroken = at - this.#beatAt <= this.#leaseMs / 2;
    if (unbroken && seen.beats === beats && at - seen.since >= needMs) return "over";
    const beatenAfter = seen.beats === beats ? seen.beatenAfter : this.#beatAt;
    if (beatenAfter !== undefined && at - beatenAfter < needMs) return "held";
    return seemsOver ? "silent" : "held";
  }
}
