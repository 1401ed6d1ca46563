/**
 * Reads a long list of runs page by page: no reader holds all of it.
 */
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import * as Stream from "effect/Stream";
import type { RecorderError } from "./RecorderError.ts";
import type { RunRecord } from "./RunRecord.ts";
import type { RunQuery, RunRecorder } from "./RunRecorder.ts";

/** Runs of a page, where a reader names no number. */
const pageRuns = 500;

/**
 * The runs of a query, the newest first. A page is read when all runs of the one before were taken.
 *
 * @param query which runs
 * @param limit runs of a page
 */
export const runsOf = (
  recorder: RunRecorder["Service"],
  query: Pick<RunQuery, "state" | "broken">,
  limit = pageRuns,
): Stream.Stream<RunRecord, RecorderError> =>
  Stream.paginate<string | undefined, RunRecord, RecorderError>(undefined, (before) =>
    Effect.map(recorder.runs({ ...query, limit, ...(before === undefined ? {} : { before }) }), (runs) => {
      const oldest = runs.length < limit ? undefined : runs.at(-1)?.run_id;
      return [runs, Option.fromUndefinedOr(oldest)] as const;
    }),
  );

/**
 * The runs that may have no driver: those that ask or are parked. A run whose question is open is asking, whether a process
 * drives it or not.
 *
 * @param limit runs of a page
 */
export const waitingRuns = (
  recorder: RunRecorder["Service"],
  limit = pageRuns,
): Stream.Stream<RunRecord, RecorderError> =>
  Stream.concat(runsOf(recorder, { state: "asking" }, limit), runsOf(recorder, { state: "parked" }, limit));
