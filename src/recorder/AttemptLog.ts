/**
 * Describes recorded attempts, and applies the entries that change them.
 */
import * as Schema from "effect/Schema";
import { AttemptFacts } from "../domain/AttemptFacts.ts";
import { Label, Milliseconds } from "../domain/Limits.ts";
import { AttemptMode, RunFacts } from "../domain/RunFacts.ts";
import { SeamProof } from "../domain/SeamWords.ts";
import { join } from "../facts/Growth.ts";

/** Request kind of an attempt. A replay of a continuation is a `continue` again (law L3). */
export const AttemptRequest = Schema.Literals(["first", "continue", "resume"]);
export type AttemptRequest = typeof AttemptRequest.Type;

/** One attempt as recorded, with its facts as of the last commit. */
export const AttemptRecord = Schema.Struct({
  attempt: Schema.Natural,
  mode: AttemptMode,
  /** Milliseconds since the run started. */
  started_ms: Milliseconds,
  facts: AttemptFacts,
  request: Schema.optionalKey(AttemptRequest),
  /** The run's facts when the attempt started. After a crash, the decision uses these facts. */
  run: Schema.optionalKey(RunFacts),
  /** The attempt's route; absent if the run has only one. */
  route: Schema.optionalKey(Label),
  /** Position at which the attempt's text joins the shown text. Absent if the attempt continues no text. */
  seam: Schema.optionalKey(Schema.Struct({ at: Schema.Natural, proof: SeamProof, proven: Schema.Boolean })),
});
export type AttemptRecord = typeof AttemptRecord.Type;

/** Maximum attempts kept per run. A retry budget ends a run much earlier, but each answered question allows another attempt. */
export const attemptsMax = 64;

/** Joins facts into their attempt. Recorded facts only grow (L1), so writes that arrive late or out of order lose nothing. */
export const raise = (it: AttemptRecord, entry: Pick<AttemptRecord, "attempt" | "facts">): AttemptRecord =>
  it.attempt === entry.attempt ? { ...it, facts: join(it.facts, entry.facts) } : it;

/** Marks as proven that an attempt's text continues the shown text (its seam). A proven seam never changes. */
export const markSeamProven = (it: AttemptRecord, { at, attempt, proof }: SeamEntry): AttemptRecord =>
  it.attempt === attempt && it.seam?.proven !== true ? { ...it, seam: { at, proof, proven: true } } : it;

interface SeamEntry {
  readonly attempt: number;
  readonly at: number;
  readonly proof: SeamProof;
}

type StartEntry = Omit<AttemptRecord, "started_ms" | "seam"> & {
  readonly at_ms: number;
  readonly seam?: Omit<SeamEntry, "attempt">;
};

/** The fields of a record that change when an attempt is evicted. */
interface AttemptLog<Call> {
  readonly attempts: ReadonlyArray<AttemptRecord>;
  readonly attempts_omitted: number;
  readonly calls: ReadonlyArray<Call>;
}

/** Adds an attempt. At the maximum, it evicts the oldest attempt and that attempt's calls. */
export const addAttempt = <Call extends Pick<AttemptRecord, "attempt">>(
  log: AttemptLog<Call>,
  entry: StartEntry,
): AttemptLog<Call> => {
  const attempt: AttemptRecord = {
    attempt: entry.attempt,
    mode: entry.mode,
    started_ms: entry.at_ms,
    facts: entry.facts,
    ...(entry.request === undefined ? {} : { request: entry.request }),
    ...(entry.run === undefined ? {} : { run: entry.run }),
    ...(entry.route === undefined ? {} : { route: entry.route }),
    ...(entry.seam === undefined ? {} : { seam: { ...entry.seam, proven: false } }),
  };
  const { attempts, attempts_omitted, calls } = log;
  if (attempts.length < attemptsMax) return { attempts: [...attempts, attempt], attempts_omitted, calls };
  return {
    attempts: [...attempts.slice(1), attempt],
    attempts_omitted: attempts_omitted + 1,
    calls: calls.filter((call) => call.attempt !== attempts[0]?.attempt),
  };
};
