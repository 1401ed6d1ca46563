/**
 * Ends a run that its process left behind, in the words in which Ending ends a living one.
 */
import type { Evidence, RunEnd, RunIncident } from "../../domain/RunIncident.ts";
import type { Entry, RunRecord } from "../../recorder/RunRecord.ts";

/** The end of a run by its incident's rule. */
export const stopped = (record: RunRecord, { decision, id }: RunIncident, now: number): ReadonlyArray<Entry> =>
  ended(record, now, { state: "stopped", reason: decision.rule, incident: id });

/** The end of a run whose partial answer is kept. */
export const accepted = (record: RunRecord, { id }: RunIncident, now: number): ReadonlyArray<Entry> =>
  ended(record, now, { state: "stopped", reason: "accepted_partial", incident: id });

/** The end of a run whose answer is whole: the incident came after the provider's marker. */
export const completed = (record: RunRecord, now: number): ReadonlyArray<Entry> =>
  ended(record, now, { state: "completed", reason: "completed" });

/** The end of a run that has no attempt on record: it sent nothing, so there is nothing to recover. */
export const notStarted = (record: RunRecord, now: number): ReadonlyArray<Entry> =>
  ended(record, now, { state: "stopped", reason: "not_started" });

/** The end of a run that no process goes on with, for the reason of the one that ends it. */
export const byHand = (
  record: RunRecord,
  reason: string,
  incident: string | undefined,
  now: number,
): ReadonlyArray<Entry> =>
  ended(record, now, { state: "stopped", reason, ...(incident === undefined ? {} : { incident }) });

/**
 * The end of a run that has to go on and cannot: it was started without its transcript, so that its request died with its
 * caller, and `StreamProcessor.takeUp` takes it from no one.
 */
export const notResumable = (
  record: RunRecord,
  incident: RunIncident,
  now: number,
  reason = "not_resumable",
): ReadonlyArray<Entry> => ended(record, now, { state: "stopped", reason, incident: incident.id });

/** How many attempts have started. */
export const attemptsOf = ({ attempts }: RunRecord): number => attempts.at(-1)?.attempt ?? 0;

/** Evidence of what recovery found or did. */
export const noted = (record: RunRecord, now: number, event: Evidence["event"], detail: string): Entry => ({
  _tag: "EvidenceNoted",
  evidence: { at_ms: Math.max(0, now - record.started_at), attempt: attemptsOf(record), event, detail },
});

const ended = (record: RunRecord, now: number, end: Omit<RunEnd, "attempts" | "at">): ReadonlyArray<Entry> => [
  noted(record, now, "end", end.reason),
  { _tag: "RunEnded", end: { ...end, attempts: attemptsOf(record), at: now } },
];
