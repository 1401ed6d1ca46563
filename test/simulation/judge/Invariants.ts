/** A violation of an invariant, with the observation that shows it. */
export interface Violation {
  readonly invariant: Invariant;
  readonly found: string;
}

/** The invariants by number. */
export const invariants = {
  I1: "the grammar of RunEvent.ts: attempts and ordinals without gaps, discards of handed-over parts only, one end and nothing after it",
  I2: "what is left after the discards holds no part of a response twice, loses none before the last, and nothing that was withdrawn",
  I3: "a guarded effect happens at most once a call and never for a superseded attempt; an automatic replay never repeats an effect",
  I4: "one attempt is open at a time, unless the earlier was abandoned after the close grace",
  I5: "a run completes only behind its provider's own terminal marker, with no error before it",
  I6: "every run ends, its record has exactly one end and its scope closes",
  I7: "record, then act: incidents, attempts, hand-overs and dispatches are on record before they are acted on (L8)",
  I8: "a stored incident is decided again as it was (L9)",
  I9: "the cause of the end is the provider's own error, the very object (L12)",
  I10: "only a cancel is user_cancelled, only a close lifecycle_closed, only an unsigned interrupt caller_interrupted (L10)",
  I11: "no guarded handler starts in a run that was stopped",
  I12: "the record stays within its limits (L11)",
  I13: "plain parts: none is handed out twice, and no call before the terminal marker",
  I14: "recorded facts only grow (L1)",
  I15: "automatic retries stay within the budget",
  I16: "a replay repeats the failed attempt's own request (L3)",
  I17: "an id that is live or on record is refused before its first request (L8)",
  I18: "every entry that is written can be read back (L9)",
  I19: "the record has one end and says what the caller was told, also where the store was gone meanwhile (L7)",
  I20: "a write or a digest that does not come back holds a run at most five seconds (L11)",
  I21: "a clock counts only time in which the process ran",
  I22: "once nothing fails any more, every run ends or asks within a bound",
  I23: "only what was handed over counts as shown (L4)",
  I24: "a call whose handler runs is not settled as one that did not run (L8)",
  I25: "a run moves to another route by a replay of its first request alone, with nothing shown and nothing done, and never goes back to one",
  I26: "a run that has moved ends with the last failure of the first route that it tried (L12)",
  I27: "text that was shown goes on by itself only behind a seam, at most twice, and nothing of such an attempt comes in front of its seam",
  I28: "decisions about an attempt lead to a wait, a request, a question or an end: there are few of them within a second (L11)",
  I29: "a request that was not sent and waited for its path goes once, whatever is spent of the budget",
  I30: "a volatile run that needs neither a guarded tool nor an answer shows the same at the same time, whatever its store does (L8)",
} as const;

export type Invariant = keyof typeof invariants;

/** Collects the violations of one invariant. */
export const against = (invariant: Invariant) => {
  const violations: Array<Violation> = [];
  return {
    violations,
    /** Reports `found` unless the condition holds. */
    holds: (condition: boolean, found: () => string): void => {
      if (!condition) violations.push({ invariant, found: found() });
    },
  };
};
