/**
 * Names the stores whose write is done in the step in which it is called: what waits for such a write needs no fiber.
 *
 * A service says nothing of that in its type, so that one which is wrapped or was copied is taken for any other store.
 */
import type { RecorderError } from "./RecorderError.ts";
import type { Entry } from "./RunRecord.ts";

/** Commits the entries of one run, all of them or none; gives why it does not. */
export type WriteAtOnce = (runId: string, entries: ReadonlyArray<Entry>) => RecorderError | undefined;

const known = new WeakMap<object, WriteAtOnce>();

/** This very recorder commits so. Its `write` must do the same. */
export const commitsAtOnce = <Recorder extends object>(recorder: Recorder, write: WriteAtOnce): Recorder => {
  known.set(recorder, write);
  return recorder;
};

/** How a recorder commits at once; undefined where it may take time. */
export const writeAtOnceOf = (recorder: object): WriteAtOnce | undefined => known.get(recorder);
