/**
 * Watches the leases of other processes and decides which of them have expired.
 *
 * Each renewal increments a lease's count. A lease has expired once this process has seen the same count for a whole lease duration by its own
 * monotonic clock, and has renewed its own lease without a gap in that time. So clocks of other machines do not matter, and an outage that
 * blocks every process ends no lease. The watch only stores observations, and its callers pass the time.
 */

/** Another process's lease as a transaction found it. */
export interface WatchedLease {
  readonly id: string;
  readonly beats: number;
  /** Maximum time without a renewal, in milliseconds. */
  readonly leaseMs: number;
  /** True if the owner's wall clock suggests that the lease has expired. It is only a hint: no lease is fenced because of it. */
  readonly seemsOver: boolean;
}

/**
 * Standing of a lease: `over` may be fenced, `held` may not, and a `silent` one becomes `over` or `held` within one lease duration. `fresh`
 * has no observed renewal and has not expired yet, so it counts as held.
 */
export type LeaseStanding = "over" | "held" | "fresh" | "silent";

interface Seen {
  readonly beats: number;
  /** Start of the time in which the lease was watched without a gap and did not change, in monotonic milliseconds. */
  readonly since: number;
  /** Time of the last poll before the most recent renewal was seen: a lower bound for the time of that renewal. */
  readonly beatenAfter: number | undefined;
}

/**
 * Maximum time between two polls of a continuous watch, in lease durations. Sweeps (the periodic searches for runs of dead processes) are
 * about one lease duration apart.
 */
const leasesOn = 4;

/** Maximum time between two polls while a caller waits, in milliseconds. An expiry may be noticed this much later. */
const pauseMsMax = 1_000;

/** This process's observations of other leases. */
export class SqlLeaseWatch {
  readonly #leaseMs: number;
  #seen: ReadonlyMap<string, Seen> = new Map();
  /** Time of the last poll of other leases. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** Time of the last renewal of this process's lease, with or without a poll of others. */
  #beatAt = Number.NEGATIVE_INFINITY;
  #beatAs: string | undefined;

  /** @param leaseMs lease of this process, in milliseconds */
  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs;
  }

  /** Time between two polls while a caller waits, in milliseconds. One late poll then does not exceed half a lease, which would restart the watch. */
  get pauseMs(): number {
    return Math.min(pauseMsMax, this.#leaseMs / 6);
  }

  /** True if the next poll is due. */
  isDue(at: number): boolean {
    return at - this.#lookedAt >= this.pauseMs;
  }

  /**
   * True if this process must renew its own lease to continue the watch, because it has recently seen an unchanged lease. The next poll,
   * one sweep later, counts only if this process has renewed its own lease throughout.
   */
  isOn(at: number): boolean {
    if (at - this.#lookedAt > leasesOn * this.#leaseMs) return false;
    for (const { since } of this.#seen.values()) if (since < this.#lookedAt) return true;
    return false;
  }

  /**
   * Maximum time until each of these leases is known to be over or still held, in milliseconds. After a gap in the watch, the time starts
   * again.
   */
  longestMs(leases: ReadonlyArray<WatchedLease>): number {
    return 2 * leases.reduce((most, { leaseMs }) => Math.max(most, leaseMs), this.#leaseMs);
  }

  /**
   * Records a committed renewal of this process's lease.
   *
   * @param at start of the renewal, by the monotonic clock
   * @param as id of this process's lease. What was observed under an earlier, fenced lease does not count
   */
  recordRenewal(at: number, as: string): void {
    if (as === this.#beatAs && at <= this.#beatAt) return;
    // If this process has not renewed its lease for half a lease duration, it assumes that other processes could not renew theirs either.
    const gap = at - this.#beatAt > this.#leaseMs / 2 || as !== this.#beatAs;
    if (gap) this.#seen = new Map([...this.#seen].map(([id, known]) => [id, { ...known, since: at }]));
    this.#beatAt = at;
    this.#beatAs = as;
  }

  /**
   * Records a committed transaction in which this process renewed its lease and saw those of others.
   *
   * @param at start of the transaction, by the monotonic clock
   * @param as id of this process's lease. What was observed under an earlier, fenced lease does not count
   */
  observe(at: number, as: string, leases: ReadonlyArray<WatchedLease>): void {
    this.recordRenewal(at, as);
    const before = this.#lookedAt;
    this.#seen = new Map(
      leases.map(({ beats, id }) => {
        const known = this.#seen.get(id);
        if (known === undefined) return [id, { beats, since: at, beatenAfter: undefined }];
        if (known.beats !== beats) return [id, { beats, since: at, beatenAfter: before }];
        return [id, known];
      }),
    );
    this.#lookedAt = at;
  }

  /**
   * Returns the standing of a lease.
   *
   * @param at current time, by the monotonic clock
   */
  standingOf({ beats, id, leaseMs, seemsOver }: WatchedLease, at: number): LeaseStanding {
    const needMs = Math.max(leaseMs, this.#leaseMs);
    const seen = this.#seen.get(id);
    if (seen === undefined) return seemsOver ? "silent" : "fresh";
    const unbroken = at - this.#beatAt <= this.#leaseMs / 2;
    if (unbroken && seen.beats === beats && at - seen.since >= needMs) return "over";
    const beatenAfter = seen.beats === beats ? seen.beatenAfter : this.#lookedAt;
    if (beatenAfter !== undefined && at - beatenAfter < needMs) return "held";
    return seemsOver ? "silent" : "fresh";
  }
}
