/**
 * Recovers runs whose process is gone: takes pending decisions, asks pending questions, and ends runs that cannot continue.
 *
 * It contacts no provider. A retry that is decided here waits for `StreamProcessor.takeUp`, which has the request. docs/recovery.md
 * describes the steps.
 */
import * as Cause from "effect/Cause";
import * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Metric from "effect/Metric";
import * as Option from "effect/Option";
import type * as Scope from "effect/Scope";
import * as Stream from "effect/Stream";
import { readMs } from "../../domain/Durations.ts";
import { toBounded } from "../../recorder/BoundedRecorder.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import { type AnswerRefused, open as openQuestionOf, type Question } from "../../recorder/Question.ts";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import { waitingRuns } from "../../recorder/RunPages.ts";
import { openQuestion, type RunRecord } from "../../recorder/RunRecord.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { OutageLog } from "../../recorder/shared/OutageLog.ts";
import { notifyAnswered } from "../questions/DurableQuestions.ts";
import * as StoredCancels from "../run/StoredCancels.ts";
import * as CrashPlan from "./CrashPlan.ts";
import { endByHand, isOverdue, type Outcome, type Row, type TakeoverOptions, takeOver } from "./Takeover.ts";

export { resumesMax } from "../../domain/Limits.ts";
export type { Outcome, Row } from "./Takeover.ts";
export { findPolicy as policyNamed } from "./Takeover.ts";

/** Number of runs read from the store at once. */
export const batchRuns = 100;

/**
 * Number of runs recovered concurrently. The whole batch runs at once, because each run waits for commits and a durable store groups them.
 */
export const concurrentRuns = batchRuns;

/** Maximum runs that one `recover` handles, and maximum rows of its report. `more` is true if the next call would find further runs. */
export const runsMax = 10_000;

/** Default interval of sweeps, in milliseconds: about as long as the lease of a silent process. */
export const sweepIntervalMsDefault = 15_000;

/** Limit and progress of one `recover`, in addition to the settings of a takeover. */
export interface RecoverOptions extends TakeoverOptions {
  /** Maximum runs of this call; default and upper limit `runsMax`. */
  readonly limit?: number;
  /** Called after every batch with the number of runs handled so far. */
  readonly onProgress?: (runs: number) => Effect.Effect<void>;
}

/** The result of one recovery. */
export interface Report {
  readonly runs: ReadonlyArray<Row>;
  readonly counts: Readonly<Record<Outcome, number>>;
  /** True if the recovery stopped at its limit and the next call would find more runs. */
  readonly more: boolean;
}

/**
 * Recovers every undecided run without an owner, and every parked run that was answered or has expired.
 *
 * Each run is claimed first, so that only one process recovers it. If a recovery dies, the next one continues, because every step is one
 * write and pending work is read from the record again.
 *
 * @returns one row per run. Fails if the store fails; the steps done by then remain.
 */
export const recover = (options: RecoverOptions = {}): Effect.Effect<Report, RecorderError, RunRecorder> =>
  recoverRuns(options, true);

/** @param isWhole true to include parked runs in addition to those whose process is gone */
const recoverRuns = (options: RecoverOptions, isWhole: boolean): Effect.Effect<Report, RecorderError, RunRecorder> =>
  Effect.gen(function* () {
    const recorder = toBounded(yield* RunRecorder);
    const limit = Math.min(options.limit ?? runsMax, runsMax);
    const rows: Array<Row> = [];
    const recoverBatch = (runIds: ReadonlyArray<string>) =>
      Effect.gen(function* () {
        const cancelled = yield* StoredCancels.standing(recorder.cancels);
        const batch = yield* Effect.forEach(runIds, (runId) => recoverOne(recorder, runId, options, cancelled), {
          concurrency: concurrentRuns,
        });
        rows.push(...batch);
        yield* options.onProgress?.(rows.length) ?? Effect.void;
        return batch;
      });
    const more = yield* recoverOrphans(recorder, limit, recoverBatch);
    const overdue = isWhole
      ? yield* findOverdueRuns(recorder, limit - rows.length, options.restored === true)
      : nothingOverdue;
    for (let at = 0; at < overdue.runIds.length; at += batchRuns) {
      yield* recoverBatch(overdue.runIds.slice(at, at + batchRuns));
    }
    return reportOf(rows, more || overdue.more);
  });

/** Recovers one run. A run with a pending cancel is decided as cancelled, and the cancel is settled. */
const recoverOne = (
  recorder: RunRecorder["Service"],
  runId: string,
  options: TakeoverOptions,
  cancelled: ReadonlySet<string>,
): Effect.Effect<Row, RecorderError> =>
  cancelled.has(runId)
    ? Effect.tap(takeOver(recorder, runId, { ...options, cancelled: true }), ({ outcome }) =>
        outcome === "skipped" ? Effect.void : StoredCancels.settle(recorder.cancels, runId),
      )
    : takeOver(recorder, runId, options);

const nothingOverdue = { runIds: [], more: false };

const reportOf = (runs: ReadonlyArray<Row>, more: boolean): Report => {
  const counts = { offered: 0, answered: 0, asked: 0, waiting: 0, completed: 0, stopped: 0, skipped: 0 };
  for (const { outcome } of runs) counts[outcome] += 1;
  return { runs, counts, more };
};

type RecoverBatch = (runIds: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Row>, RecorderError>;

/** Handles each orphaned run once, until no new one appears. Returns true if there are more. */
const recoverOrphans = (
  recorder: RunRecorder["Service"],
  limit: number,
  recoverBatch: RecoverBatch,
): Effect.Effect<boolean, RecorderError> =>
  Effect.gen(function* () {
    const seen = new Set<string>();
    // Runs that other processes hold stay in the list of orphans. Read one more row for each of these runs, so that they do not hide other
    // runs.
    let held = 0;
    while (seen.size < limit) {
      const found = yield* recorder.orphans(held + batchRuns);
      const fresh = found.map(({ run_id }) => run_id).filter((runId) => !seen.has(runId));
      if (fresh.length === 0) return false;
      const batch = fresh.slice(0, Math.min(batchRuns, limit - seen.size));
      for (const runId of batch) seen.add(runId);
      const rows = yield* recoverBatch(batch);
      held += rows.filter(({ outcome }) => outcome === "skipped").length;
    }
    return true;
  });

/**
 * Finds parked runs whose question was answered or has expired. The process that took the answer may have died before it acted.
 *
 * @param restored true to include runs that would continue on a decision or answer from before the restore
 */
const findOverdueRuns = (
  recorder: RunRecorder["Service"],
  limit: number,
  restored: boolean,
): Effect.Effect<{ readonly runIds: ReadonlyArray<string>; readonly more: boolean }, RecorderError> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock;
    const overdue = waitingRuns(recorder, batchRuns).pipe(
      Stream.filter(
        (record) =>
          isOverdue(record, clock.currentTimeMillisUnsafe()) || (restored && CrashPlan.canContinueUnasked(record)),
      ),
      // One more than the limit, to see whether there are more runs.
      Stream.take(limit + 1),
      Stream.map(({ run_id }) => run_id),
    );
    const runIds = yield* Stream.runCollect(overdue);
    return { runIds: runIds.slice(0, limit), more: runIds.length > limit };
  });

/**
 * Reads the open questions of the store, newest run first, of runs with and without an owner. `answer` answers one.
 *
 * @param query selects the runs; default: at most 100
 */
export const questions = (
  query: Omit<RunRecorder.RunQuery, "state"> = {},
): Effect.Effect<ReadonlyArray<Question>, RecorderError, RunRecorder> =>
  Effect.gen(function* () {
    const recorder = toBounded(yield* RunRecorder);
    const records = yield* recorder.runs({ ...query, state: "asking" });
    return records.flatMap((record) => openQuestionOf(record) ?? []);
  });

/**
 * Answers the newest question of a run. Carries out the answer if the run has no owner and the answer needs no provider. `stop` and
 * `accept` end the run; a verdict settles its calls. Any other answer waits for `StreamProcessor.takeUp`. If a process owns the run, that
 * process acts on the answer.
 *
 * @returns the resulting run. An accepted answer is never lost: if it cannot be carried out now, the next `recover` does so.
 */
export const answer = (
  given: RunRecorder.Answer,
  options: TakeoverOptions = {},
): Effect.Effect<RunRecord, AnswerRefused | RecorderError, RunRecorder> =>
  Effect.gen(function* () {
    const recorder = toBounded(yield* RunRecorder);
    const { run_id } = given;
    const taken = yield* recorder.answer(given);
    yield* notifyAnswered(recorder, run_id);
    return yield* Effect.andThen(takeOver(recorder, run_id, options), recorder.run(run_id)).pipe(
      Effect.map((record) => record ?? taken),
      Effect.catch(({ reason }) =>
        Effect.as(Effect.logWarning("could not carry out an answer yet", { run_id, reason }), taken),
      ),
    );
  });

/**
 * Ends a run that has no owner and that no program will continue, for example the run of an adapter, whose request is not on record.
 * Pending work is recovered first, and an open question is answered with `stop`.
 *
 * @returns the ended run. Fails with `owned` while a live process owns the run, and with `run_ended` if it has already ended.
 */
export const giveUp = (
  runId: string,
  options: TakeoverOptions = {},
): Effect.Effect<RunRecord, AnswerRefused | RecorderError, RunRecorder> =>
  Effect.gen(function* () {
    const recorder = toBounded(yield* RunRecorder);
    const { outcome } = yield* takeOver(recorder, runId, options);
    const tended = yield* recorder.run(runId);
    // The pending step has already ended the run, for example because the run has no transcript.
    if (outcome !== "skipped" && tended?.state === "ended") return tended;
    const question = tended === undefined ? undefined : openQuestion(tended);
    if (question !== undefined)
      return yield* answer({ run_id: runId, revision: question.revision, choice: "stop", by: "person" }, options);
    const claimed = yield* Effect.uninterruptible(endByHand(recorder, runId, givenUp));
    return (yield* recorder.run(runId)) ?? claimed;
  });

const givenUp = "given_up";

/** Options of the recovery sweeps that `layer` repeats. */
export interface SweepOptions<R = never> extends RecoverOptions {
  /** Pause between two sweeps, as milliseconds or a duration. */
  readonly intervalMs?: Duration.Input;
  /**
   * Minimum time between two polls of parked runs, as milliseconds or a duration. A parked run needs a step if it was answered but its process died
   * first, or if its question has expired. By default every sweep polls parked runs. Every sweep looks for runs whose process is gone.
   */
  readonly parkedMs?: Duration.Input;
  /** Completes each time a sweep is due early, because processes that owned runs are gone. */
  readonly due?: Effect.Effect<void>;
  /**
   * Called with the report of a sweep that handled at least one run. Runs with outcome `offered` or `answered` wait for
   * `StreamProcessor.takeUp`. The next sweep waits for this effect, so fork what takes long: `Effect.forkScoped` lives as long as the layer.
   */
  readonly onSwept?: (report: Report) => Effect.Effect<void, never, R>;
}

/** Counts sweeps that failed because the store could not be read or written. The next sweep tries again. */
export const sweepFailures = Metric.counter("stream_recovery.sweep_failures", {
  description: "Failed sweeps for orphaned runs",
  incremental: true,
});

/**
 * Recovers immediately and then repeatedly while the layer lives. A failed sweep is counted and does not stop the loop. While sweeps fail,
 * the log reports the first failure, then at most one per minute, and finally the recovery.
 */
export const layer = <R = never>(
  options: SweepOptions<R> = {},
): Layer.Layer<never, never, RunRecorder | Exclude<R, Scope.Scope>> => {
  const { due = Effect.never, onSwept } = options;
  const intervalMs = readMs("intervalMs", options.intervalMs ?? sweepIntervalMsDefault);
  const parkedMs = readMs("parkedMs", options.parkedMs ?? 0);
  const outage = new OutageLog(sweepWords);
  let lookedAt = Number.NEGATIVE_INFINITY;
  const found = Effect.flatMap(Clock.Clock, (clock) => {
    const now = monotonicMs(clock);
    const isWhole = now - lookedAt >= parkedMs;
    return Effect.tap(recoverRuns(options, isWhole), () => {
      // Set only after success, so that the next sweep repeats a failed poll.
      if (isWhole) lookedAt = now;
      return Effect.void;
    });
  });
  const sweep = found.pipe(
    Effect.flatMap((report) => (report.runs.length === 0 ? Effect.void : (onSwept?.(report) ?? Effect.void))),
    Effect.andThen(outage.recordSuccess),
    Effect.catchCause((cause) => Effect.andThen(Metric.update(sweepFailures, 1), logSweepFailure(outage, cause))),
  );
  const pause = Effect.raceFirst(Effect.sleep(Duration.millis(intervalMs)), due);
  return Layer.effectDiscard(Effect.forkScoped(Effect.forever(Effect.andThen(sweep, pause))));
};

const sweepWords = {
  away: "cannot look for orphaned runs; every sweep retries",
  back: "looking for orphaned runs again",
};

/** Logs a failed sweep. A store error is logged as one sentence, a defect once with its cause. */
const logSweepFailure = (outage: OutageLog, cause: Cause.Cause<RecorderError>): Effect.Effect<void> => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause));
  if (error !== undefined) return outage.recordFailure(error.message === "" ? error.reason : error.message);
  const logged = outage.isOn ? Effect.void : Effect.logError("a sweep for orphaned runs failed with a defect", cause);
  return Effect.andThen(logged, outage.recordFailure("a defect in the sweep"));
};
