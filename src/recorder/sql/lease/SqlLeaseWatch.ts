/**
 * Watches the leases of other processes, and says which of them are over.
 *
 * A lease counts its beats. It is over when this process has seen the same number for a whole lease, by its own monotonic
 * clock, and has itself beaten in that time without a gap. So clocks of other machines say nothing here, and an outage that
 * kept every process from beating ends no lease. The watch is pure except for what it remembers: the caller tells the time.
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

/**
 * What is known of a lease: `over` may be taken, `held` may not, and `silent` will be one of both within a lease. `fresh`: no
 * beat of it was seen yet, and its stored end is still to come, so that it counts as held.
 */
export type LeaseStanding = "over" | "held" | "fresh" | "silent";

interface Seen {
  readonly beats: number;
  /** From when on it was watched without a gap and has not changed, in milliseconds of the monotonic clock. */
  readonly since: number;
  /** The last new beat came after this time: that of the look before. */
  readonly beatenAfter: number | undefined;
}

/** How long a watch goes on between two looks, in leases: sweeps are about one lease apart. */
const leasesOn = 4;

/** Longest from one look to the next while a caller waits, in milliseconds: it learns so much later that a lease is over. */
const pauseMsMax = 1_000;

/** What one process has seen of the leases of others. */
export class SqlLeaseWatch {
  readonly #leaseMs: number;
  #seen: ReadonlyMap<string, Seen> = new Map();
  /** When this process looked at the leases of others last. */
  #lookedAt = Number.NEGATIVE_INFINITY;
  /** When it beat last, with or without a look. */
  #beatAt = Number.NEGATIVE_INFINITY;
  #beatAs: string | undefined;

  /** @param leaseMs lease of this process, in milliseconds */
  constructor(leaseMs: number) {
    this.#leaseMs = leaseMs;
  }

  /** From one look to the next while a caller waits, in milliseconds: often enough that a late one is no gap. */
  get pauseMs(): number {
    return Math.min(pauseMsMax, this.#leaseMs / 6);
  }

  /** Whether it is time to look again. */
  isDue(at: number): boolean {
    return at - this.#lookedAt >= this.pauseMs;
  }

  /**
   * Whether this process has to beat to go on watching: it has lately seen a lease that did not change. What it sees at its
   * next look, a sweep later, counts only when it has beaten all the time.
   */
  isOn(at: number): boolean {
    if (at - this.#lookedAt > leasesOn * this.#leaseMs) return false;
    for (const { since } of this.#seen.values()) if (since < this.#lookedAt) return true;
    return false;
  }

  /** Longest that this process waits for a lease to be over or held, in milliseconds: gaps begin the watch anew. */
  longestMs(leases: ReadonlyArray<WatchedLease>): number {
    return 2 * leases.reduce((most, { leaseMs }) => Math.max(most, leaseMs), this.#leaseMs);
  }

  /**
   * Takes note of a beat of this process that is committed.
   *
   * @param at when it began, by the monotonic clock
   * @param as the lease of this process: one that was fenced has watched nothing
   */
  beaten(at: number, as: string): void {
    if (as === this.#beatAs && at <= this.#beatAt) return;
    // Longer than half a lease without a beat: for so long other processes may have been kept from beating too.
    const gap = at - this.#beatAt > this.#leaseMs / 2 || as !== this.#beatAs;
    if (gap) this.#seen = new Map([...this.#seen].map(([id, known]) => [id, { ...known, since: at }]));
    this.#beatAt = at;
    this.#beatAs = as;
  }

  /**
   * Takes note of a transaction that is committed, in which this process renewed its own lease and saw those of others.
   *
   * @param at when it began, by the monotonic clock
   * @param as the lease of this process: one that was fenced has watched nothing
   */
  looked(at: number, as: string, leases: ReadonlyArray<WatchedLease>): void {
    this.beaten(at, as);
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
   * Says how a lease stands.
   *
   * @param at now, by the monotonic clock
   */
  standing({ beats, id, leaseMs, seemsOver }: WatchedLease, at: number): LeaseStanding {
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
