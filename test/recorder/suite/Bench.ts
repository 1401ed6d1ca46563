/**
 * Helpers of the recorder suite.
 */
import { Effect, type Scope } from "effect";
import type { RunRecord } from "../../../src/recorder/RunRecord.ts";
import type { RecorderError, RunRecorder } from "../../../src/recorder/RunRecorder.ts";

export type Recorder = RunRecorder["Service"];

/** Reads a run that must exist. */
export const record = (recorder: Recorder, runId: string): Effect.Effect<RunRecord> =>
  Effect.gen(function* () {
    const found = yield* Effect.orDie(recorder.run(runId));
    return found ?? (yield* Effect.die(new Error(`no record of ${runId}`)));
  });

/** The error of a refused write. A write that succeeds fails the test. */
export const refusal = (write: Effect.Effect<void, RecorderError>): Effect.Effect<RecorderError> =>
  Effect.catch(
    Effect.flatMap(write, () => Effect.die(new Error("the write was taken"))),
    Effect.succeed,
  );

/** Adds a test with a recorder over an empty store. */
export type Test = <F>(title: string, run: (recorder: Recorder) => Effect.Effect<void, F, Scope.Scope>) => void;
