/**
 * Plays all recordings of a folder, a few at a time.
 */
import { Effect } from "effect";
import * as Progress from "../stage/Progress.ts";
import { playRecording } from "./RecordingRun.ts";
import type { Recordings } from "./Recordings.ts";

/** Recordings that are played at the same time; their waits are real, their work is little. */
export const recordingsAtOnce = 6;

/**
 * Plays the recordings, with progress on stderr.
 *
 * @param recordings what to play
 * @param seed says where each breaks
 * @param cuts breaks of each kind in each recording
 */
export const playRecordings = Effect.fn("demo.playRecordings")(function* (
  { folder, list }: Recordings,
  seed: number,
  cuts: number,
) {
  const progress = Progress.make(process.stderr, list.length);
  const rows = yield* Effect.forEach(
    list,
    (recording) =>
      Effect.tap(playRecording(folder, recording, seed, cuts), (played) =>
        progress.finished(
          recording.file,
          played.every((row) => row.problems.length === 0),
        ),
      ),
    { concurrency: recordingsAtOnce },
  );
  yield* progress.done;
  return rows.flat();
});
