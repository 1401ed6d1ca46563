/**
 * Remembers runs: what was seen of each attempt, its incidents with their decisions, questions, answers and the end.
 *
 * The service is the seam that durable layers share. It never decides; it commits what it is given, or says why not.
 */
import * as Context from "effect/Context";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Schema from "effect/Schema";
import type { RunIncident } from "../domain/RunIncident.ts";
import * as RunRecord from "./RunRecord.ts";

/** A run's record could not be written. `reason` says why; whoever acts on records must then not act (law L8). */
export class RecorderError extends Schema.TaggedError<RecorderError>()("RecorderError", {
  reason: Schema.Literals(["unknown_run", "run_exists", "run_ended", "full", "unavailable"]),
  run_id: Schema.String,
  message: Schema.String,
  cause: Schema.optionalKey(Schema.Defect()),
}) {}

/** Which runs to list, newest first. */
export interface RunQuery {
  readonly state?: RunRecord.RunRecord["state"];
  /** At most this many runs; default 100. */
  readonly limit?: number;
}

/** Most runs that the memory layer keeps by default: a few KiB each, and more than one process streams at once. */
export const memoryRunsMax = 10_000;

/** Runs listed when a query names no limit. */
const listLimitDefault = 100;

/** The store of runs. */
export class RunRecorder extends Context.Service<
  RunRecorder,
  {
    /**
     * Commits entries of one run together; returns when they are committed.
     *
     * @param runId the run that the entries belong to
     * @param entries in the order in which they happened
     */
    write(runId: string, entries: ReadonlyArray<RunRecord.Entry>): Effect.Effect<void, RecorderError>;
    /** Reads one run; undefined when it is not known (any more). */
    run(runId: string): Effect.Effect<RunRecord.RunRecord | undefined, RecorderError>;
    /** Lists runs, newest first. */
    runs(query?: RunQuery): Effect.Effect<ReadonlyArray<RunRecord.RunRecord>, RecorderError>;
    /** Reads the incidents of a run, oldest first; empty when the run is not known. */
    incidents(runId: string): Effect.Effect<ReadonlyArray<RunIncident>, RecorderError>;
  }
>()("effect-stream-recovery/RunRecorder") {
  /**
   * Keeps runs in this process's memory.
   *
   * @param options.runsMax most runs kept (default 10,000). When it is full the oldest ended run goes; when every run is
   *   still live a new one is refused with reason `full`, because forgetting a live run would lose it.
   */
  static readonly layerMemory = (options?: { readonly runsMax?: number }) =>
    Layer.sync(RunRecorder, () => makeMemory(options?.runsMax ?? memoryRunsMax));
}

const makeMemory = (runsMax: number): RunRecorder["Service"] => {
  const records = new Map<string, RunRecord.RunRecord>();

  const write = (runId: string, entries: ReadonlyArray<RunRecord.Entry>): Effect.Effect<void, RecorderError> =>
    Effect.suspend(() => {
      const before = records.get(runId);
      let record = before;
      for (const entry of entries) {
        const next = RunRecord.apply(record, entry);
        if (typeof next === "string") return Effect.fail(misfit(next, runId));
        record = next;
      }
      if (record === undefined) return Effect.void;
      if (before === undefined && records.size >= runsMax && !forgetOldestEnded(records)) {
        return Effect.fail(misfit("full", runId));
      }
      records.set(runId, record);
      return Effect.void;
    });

  return RunRecorder.of({
    write,
    run: (runId) => Effect.sync(() => records.get(runId)),
    runs: (query) => Effect.sync(() => list(records, query)),
    incidents: (runId) => Effect.sync(() => records.get(runId)?.incidents ?? []),
  });
};

const forgetOldestEnded = (records: Map<string, RunRecord.RunRecord>): boolean => {
  for (const [id, record] of records) {
    if (record.state === "ended") return records.delete(id);
  }
  return false;
};

const list = (records: Map<string, RunRecord.RunRecord>, query: RunQuery | undefined) =>
  [...records.values()]
    .reverse()
    .filter((record) => query?.state === undefined || record.state === query.state)
    .slice(0, query?.limit ?? listLimitDefault);

const sentences = {
  unknown_run: "the run was never started in this recorder",
  run_exists: "a run with this id is already recorded",
  run_ended: "the run has ended and takes no further entries",
  full: "every kept run is still live; raise runsMax or end some runs",
} as const;

const misfit = (reason: keyof typeof sentences, run_id: string) =>
  new RecorderError({ reason, run_id, message: `${run_id}: ${sentences[reason]}` });
