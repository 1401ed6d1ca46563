/**
 * Describes an attempt as it is recorded, and folds what happened to the attempts of a run.
 */
import * as Schema from "effect/Schema";
import { AttemptFacts } from "../domain/AttemptFacts.ts";
import { Label, Milliseconds } from "../domain/Limits.ts";
import { AttemptMode, RunFacts } from "../domain/RunFacts.ts";
import { SeamProof } from "../domain/SeamWords.ts";
import { join } from "../facts/Growth.ts";

/** Which request an attempt sends; a replay of a continuation is a `continue` again (law L3). */
export const AttemptRequest = Schema.Literals(["first", "continue", "resume"]);
export type AttemptRequest = typeof AttemptRequest.Type;

/** One attempt as recorded: its facts as they stood at the last commit. */
export const AttemptRecord = Schema.Struct({
  attempt: Schema.Natural,
  mode: AttemptMode,
  /** Milliseconds since the run started. */
  started_ms: Milliseconds,
  facts: AttemptFacts,
  request: Schema.optionalKey(AttemptRequest),
  /** The run's side of a decision as it stood when the attempt started: a crash is decided on it. */
  run: Schema.optionalKey(RunFacts),
  /** The route that it went by; left out where the run has one alone. */
  route: Schema.optionalKey(Label),
  /** Where its text is to join what was shown before, and whether that was proven. Left out: it goes on with no text. */
  seam: Schema.optionalKey(Schema.Struct({ at: Schema.Natural, proof: SeamProof, proven: Schema.Boolean })),
});
export type AttemptRecord = typeof AttemptRecord.Type;

/** Most attempts of a run whose facts are kept; the budget ends a run long before, answered questions may not. */
export const attemptsMax = 64;

/** Facts only grow on record too: the slower one of two writes takes nothing back (L1). */
export const raise = (it: AttemptRecord, entry: Pick<AttemptRecord, "attempt" | "facts">): AttemptRecord =>
  it.attempt === entry.attempt ? { ...it, facts: join(it.facts, entry.facts) } : it;

/** An attempt has one seam, which is proven once: what comes later takes nothing back. */
export const joinedAt = (it: AttemptRecord, { at, attempt, proof }: SeamEntry): AttemptRecord =>
  it.attempt === attempt && it.seam?.proven !== true ? { ...it, seam: { at, proof, proven: true } } : it;

/** Where the text of an attempt joins what was shown. */
interface SeamEntry {
  readonly attempt: number;
  readonly at: number;
  readonly proof: SeamProof;
}

/** The start of an attempt. */
type StartEntry = Omit<AttemptRecord, "started_ms" | "seam"> & {
  readonly at_ms: number;
  readonly seam?: Omit<SeamEntry, "attempt">;
};

/** The attempts of a record, with what goes when one of them does. */
interface AttemptLog<Call> {
  readonly attempts: ReadonlyArray<AttemptRecord>;
  readonly attempts_omitted: number;
  readonly calls: ReadonlyArray<Call>;
}

/** One more attempt. Where there are as many as are kept, the oldest one gives way, and its calls with it. */
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
