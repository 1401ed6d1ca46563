/**
 * Recorders that commit without a fiber, for tests that play them or call them.
 */
import type { RecorderError } from "../../src/recorder/RecorderError.ts";
import type { Entry } from "../../src/recorder/RunRecord.ts";
import { type Commit, type Outcome, type RunRecorder, type Write, withCommit } from "../../src/recorder/RunRecorder.ts";

/** Called at the end of a write. A write that is not on record and has no reason is left to `write`. */
export type Told = (isOnRecord: boolean, why?: RecorderError) => void;

/** A recorder that commits in groups, as `take` does. `take` returns false for a write that it leaves to `write`. */
export const inGroups = (
  recorder: RunRecorder["Service"],
  take: (runId: string, entries: ReadonlyArray<Entry>, told: Told) => boolean,
  answers: Commit["answers"] = "soon",
): RunRecorder["Service"] => ({
  ...recorder,
  write: withCommit(recorder.write, answers, (runId, entries, onDone) => {
    const isTaken = take(runId, entries, (isOnRecord, why) => onDone(isOnRecord ? "recorded" : (why ?? "undecided")));
    if (!isTaken) onDone("undecided");
  }),
});

/** Commits without a fiber. Returns false if the recorder leaves the entries to `write` within the call. */
export const take = (
  recorder: { readonly write: Write },
  runId: string,
  entries: ReadonlyArray<Entry>,
  told: Told,
): boolean => {
  let isWithinCall = true;
  let isTaken = recorder.write.commit !== undefined;
  recorder.write.commit?.(runId, entries, (outcome: Outcome) => {
    if (isWithinCall && outcome === "undecided") isTaken = false;
    else told(outcome === "recorded", typeof outcome === "string" ? undefined : outcome);
  });
  isWithinCall = false;
  return isTaken;
};
