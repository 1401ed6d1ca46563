/**
 * Says whether a route takes requests: pure, from the failures and successes of the runs that went by it.
 *
 * Five failures of different runs within thirty seconds open a breaker, for ten seconds that double up to five minutes. Then one run
 * at a time may try the route: its success closes the breaker, and its failure opens it again.
 */

/** Failures of different runs that open a breaker. */
export const failuresToOpen = 5;

/** The time within which those failures count, in milliseconds. */
export const failuresWithinMs = 30_000;

/** How long a breaker is open at first, in milliseconds. */
export const openMs = 10_000;

/** How long a breaker is open at most, in milliseconds. */
export const openMsMax = 300_000;

/** How long a run that tries the route keeps others from it, in milliseconds: a response may take much longer. */
export const trialMs = 60_000;

/** A failure of one run. Times are monotonic milliseconds. */
interface Failed {
  readonly run: string;
  readonly at: number;
}

/** A breaker. */
export type Breaker =
  | { readonly _tag: "closed"; readonly failures: ReadonlyArray<Failed> }
  /** From `until` on one run may try the route. */
  | { readonly _tag: "open"; readonly until: number; readonly forMs: number }
  /** A run tries the route. */
  | { readonly _tag: "trying"; readonly run: string; readonly since: number; readonly forMs: number };

/** A breaker that knows nothing. */
export const closed: Breaker = { _tag: "closed", failures: [] };

/** How a breaker stands for a run that does not go by the route yet. `half_open`: it may go as the one that tries. */
export type BreakerStanding = "closed" | "half_open" | "open";

/** How a breaker stands at `now`. */
export const standing = (breaker: Breaker, now: number): BreakerStanding => {
  switch (breaker._tag) {
    case "closed":
      return "closed";
    case "open":
      return now >= breaker.until ? "half_open" : "open";
    case "trying":
      return now >= breaker.since + trialMs ? "half_open" : "open";
  }
};

/** A run goes by the route from now on. Where the breaker is half open it is the one that tries. */
export const entered = (breaker: Breaker, run: string, now: number): Breaker =>
  breaker._tag !== "closed" && standing(breaker, now) === "half_open"
    ? { _tag: "trying", run, since: now, forMs: breaker.forMs }
    : breaker;

/** A run has met a failure that speaks against the route. */
export const failed = (breaker: Breaker, run: string, now: number): Breaker => {
  switch (breaker._tag) {
    case "closed": {
      const others = breaker.failures.filter((it) => it.run !== run && now - it.at < failuresWithinMs);
      const failures = [...others, { run, at: now }];
      return failures.length >= failuresToOpen ? open(now, openMs) : { _tag: "closed", failures };
    }
    case "open":
      // It went before the breaker opened, and says nothing new.
      return breaker;
    case "trying":
      return breaker.run === run ? open(now, longer(breaker.forMs)) : breaker;
  }
};

/** The route has refused what is its own: its credential or its model. No request is taken until that is mended. */
export const refused = (breaker: Breaker, now: number): Breaker => {
  switch (breaker._tag) {
    case "closed":
      return open(now, openMs);
    case "open":
      return breaker;
    case "trying":
      return open(now, longer(breaker.forMs));
  }
};

/** The route has answered a run. While the breaker is open that was asked for before, and says nothing of now. */
export const answered = (breaker: Breaker, run: string): Breaker => {
  if (breaker._tag === "closed") return breaker.failures.length === 0 ? breaker : closed;
  return breaker._tag === "trying" && breaker.run === run ? closed : breaker;
};

/** The run that tries has left without a word on the route: the next one may try. */
export const left = (breaker: Breaker, run: string, now: number): Breaker =>
  breaker._tag === "trying" && breaker.run === run ? { _tag: "open", until: now, forMs: breaker.forMs } : breaker;

const open = (now: number, forMs: number): Breaker => ({ _tag: "open", until: now + forMs, forMs });

const longer = (forMs: number): number => Math.min(openMsMax, forMs * 2);
