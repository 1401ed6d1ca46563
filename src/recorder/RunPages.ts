/**
 * Reads a long list of runs page by page, so that no reader holds all of it.
 */
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import * as Stream from "effect/Stream";
import type { RecorderError } from "./RecorderError.ts";
import type { RunRecord } from "./RunRecord.ts";
import type { RunQuery, RunRecorder } from "./RunRecorder.ts";

/** Default runs per page. */
const pageRuns = 500;

/**
 * Streams the runs of a query, newest first. It reads a page only after all runs of the previous page were consumed.
 *
 * @param limit runs per page
 */
export const streamRuns = (
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
 * Streams the runs that may have no owner: runs that ask or are parked. A run with an open question counts as asking even while a process
 * owns it.
 *
 * @param limit runs per page
 */
export const waitingRuns = (
  recorder: RunRecorder["Service"],
  limit = pageRuns,
): Stream.Stream<RunRecord, RecorderError> =>
  Stream.concat(streamRuns(recorder, { state: "asking" }, limit), streamRuns(recorder, { state: "parked" }, limit));
