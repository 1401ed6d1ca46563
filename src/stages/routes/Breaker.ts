/**
 * Decides whether a route accepts requests, as pure functions of the failures and successes of the runs that used it.
 *
 * Five failures of different runs within thirty seconds open a breaker for ten seconds. Each further opening lasts twice as long, up to
 * five minutes. When the time is over, one run at a time may try the route. A success of that run closes the breaker, and a failure opens
 * it again.
 */

/** Number of failures of different runs that open a breaker. */
export const failuresToOpen = 5;

/** Time within which the failures must occur to open a breaker, in milliseconds. */
export const failuresWithinMs = 30_000;

/** Time for which a breaker stays open the first time, in milliseconds. */
export const openMs = 10_000;

/** Maximum time for which a breaker stays open, in milliseconds. */
export const openMsMax = 300_000;

/** Maximum time for which the trial of one run blocks other runs from the route, in milliseconds. Its response may take much longer. */
export const trialMs = 60_000;

/** A failure of one run. Times are in monotonic milliseconds. */
interface Failed {
  readonly run: string;
  readonly at: number;
}

/** State of a breaker. */
export type Breaker =
  | { readonly _tag: "closed"; readonly failures: ReadonlyArray<Failed> }
  /** From `until` on, one run may try the route. */
  | { readonly _tag: "open"; readonly until: number; readonly forMs: number }
  | { readonly _tag: "trying"; readonly run: string; readonly since: number; readonly forMs: number };

/** A breaker without failures. */
export const closed: Breaker = { _tag: "closed", failures: [] };

/** State of a breaker for a run that does not use the route yet. `half_open`: the run may use the route as a trial. */
export type BreakerStanding = "closed" | "half_open" | "open";

/** Returns the state of a breaker at `now`, as a run sees it. */
export const standingOf = (breaker: Breaker, now: number): BreakerStanding => {
  switch (breaker._tag) {
    case "closed":
      return "closed";
    case "open":
      return now >= breaker.until ? "half_open" : "open";
    case "trying":
      return now >= breaker.since + trialMs ? "half_open" : "open";
  }
};

/** Records that a run starts to use the route. If the breaker is half open, this run is the trial. */
export const enter = (breaker: Breaker, run: string, now: number): Breaker =>
  breaker._tag !== "closed" && standingOf(breaker, now) === "half_open"
    ? { _tag: "trying", run, since: now, forMs: breaker.forMs }
    : breaker;

/** Records a failure of a run that counts against the route. */
export const recordFailure = (breaker: Breaker, run: string, now: number): Breaker => {
  switch (breaker._tag) {
    case "closed": {
      const others = breaker.failures.filter((it) => it.run !== run && now - it.at < failuresWithinMs);
      const failures = [...others, { run, at: now }];
      return failures.length >= failuresToOpen ? open(now, openMs) : { _tag: "closed", failures };
    }
    case "open":
      // The run started before the breaker opened, so its failure is no new evidence.
      return breaker;
    case "trying":
      return breaker.run === run ? open(now, extendOpenMs(breaker.forMs)) : breaker;
  }
};

/** Records that the route failed on its own credential or model. It accepts no requests until a trial succeeds. */
export const trip = (breaker: Breaker, now: number): Breaker => {
  switch (breaker._tag) {
    case "closed":
      return open(now, openMs);
    case "open":
      return breaker;
    case "trying":
      return open(now, extendOpenMs(breaker.forMs));
  }
};

/** Records a response to a run. Has no effect while the breaker is open, because the run sent its request before the breaker opened. */
export const recordResponse = (breaker: Breaker, run: string): Breaker => {
  if (breaker._tag === "closed") return breaker.failures.length === 0 ? breaker : closed;
  return breaker._tag === "trying" && breaker.run === run ? closed : breaker;
};

/** Records that the run on trial left the route without a success or a failure, so that another run may try the route. */
export const abandonTrial = (breaker: Breaker, run: string, now: number): Breaker =>
  breaker._tag === "trying" && breaker.run === run ? { _tag: "open", until: now, forMs: breaker.forMs } : breaker;

const open = (now: number, forMs: number): Breaker => ({ _tag: "open", until: now + forMs, forMs });

const extendOpenMs = (forMs: number): number => Math.min(openMsMax, forMs * 2);
