/**
 * Recovers runs whose process is gone: it decides what was left undecided, asks what was left unasked, and ends what has ended.
 *
 * It reaches no provider. A retry that is decided here waits for `StreamProcessor.takeUp`, which has the request. What
 * happens step by step stands in docs/recovery.md.
 */
import * as Cause from "effect/Cause";
import * as Clock from "effect/Clock";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Metric from "effect/Metric";
import * as Option from "effect/Option";
import * as Stream from "effect/Stream";
import { bounded } from "../../recorder/BoundedRecorder.ts";
import { monotonicMs } from "../../recorder/MonotonicTime.ts";
import type { AnswerRefused } from "../../recorder/Question.ts";
import type { RecorderError } from "../../recorder/RecorderError.ts";
import { waitingRuns } from "../../recorder/RunPages.ts";
import { openQuestion, type RunRecord } from "../../recorder/RunRecord.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import { OutageLog } from "../../recorder/shared/OutageLog.ts";
import * as StoredCancels from "../attach/StoredCancels.ts";
import { answeredHere } from "../questions/DurableQuestions.ts";
import * as CrashPlan from "./CrashPlan.ts";
import { endByHand, isOverdue, type Outcome, type Row, type TendOptions, tend } from "./Takeover.ts";

export { resumesMax } from "../../domain/Limits.ts";
export type { Outcome, Row } from "./Takeover.ts";
export { named as policyNamed } from "./Takeover.ts";

/** Runs that are read from the store at once. */
export const batchRuns = 100;

/** Runs of a batch that are recovered at the same time, all of them: each waits for commits, and a durable store commits many as one. */
export const concurrentRuns = batchRuns;

/** Most runs that one `recover` looks after, and most rows of its report; `more` says that the next one finds others. */
export const runsMax = 10_000;

/** How often a sweep looks by default, in milliseconds: about as long as a process may be silent before its lease is over. */
export const sweepIntervalMsDefault = 15_000;

/** How to recover. */
export interface RecoverOptions extends TendOptions {
  /** Most runs of this call, at most and by default `runsMax`. */
  readonly limit?: number;
  /** Told after every batch how many runs were looked after so far. */
  readonly onProgress?: (runs: number) => Effect.Effect<void>;
}

/** What one recovery did. */
export interface Report {
  readonly runs: ReadonlyArray<Row>;
  readonly counts: Readonly<Record<Outcome, number>>;
  /** It stopped at its limit: the next one finds more. */
  readonly more: boolean;
}

/**
 * Recovers every run that no process drives and none has decided, and every parked run that was answered or has expired.
 *
 * Each run is taken over first, so that one of two processes recovers it. The next recovery goes on where one has died: every
 * step is one write, and what is due is read from the record anew.
 *
 * @returns a row a run. It fails where the store does; what was done until then stays done.
 */
export const recover = (options: RecoverOptions = {}): Effect.Effect<Report, RecorderError, RunRecorder> =>
  recovered(options, true);

/** @param isWhole parked runs are looked at too, and not only those whose process is gone */
const recovered = (options: RecoverOptions, isWhole: boolean): Effect.Effect<Report, RecorderError, RunRecorder> =>
  Effect.gen(function* () {
    const recorder = bounded(yield* RunRecorder);
    const limit = Math.min(options.limit ?? runsMax, runsMax);
    const rows: Array<Row> = [];
    const tended = (runIds: ReadonlyArray<string>) =>
      Effect.gen(function* () {
        const cancelled = yield* StoredCancels.standing(recorder.cancels);
        const batch = yield* Effect.forEach(runIds, (runId) => tendedAs(recorder, runId, options, cancelled), {
          concurrency: concurrentRuns,
        });
        rows.push(...batch);
        yield* options.onProgress?.(rows.length) ?? Effect.void;
        return batch;
      });
    const more = yield* eachOrphan(recorder, limit, tended);
    const overdue = isWhole
      ? yield* overdueRuns(recorder, limit - rows.length, options.restored === true)
      : nothingOverdue;
    for (let at = 0; at < overdue.runIds.length; at += batchRuns) {
      yield* tended(overdue.runIds.slice(at, at + batchRuns));
    }
    return reportOf(rows, more || overdue.more);
  });

/** A run whose cancel stands is decided as cancelled, and by that its cancel is carried out. */
const tendedAs = (
  recorder: RunRecorder["Service"],
  runId: string,
  options: TendOptions,
  cancelled: ReadonlySet<string>,
): Effect.Effect<Row, RecorderError> =>
  cancelled.has(runId)
    ? Effect.tap(tend(recorder, runId, { ...options, cancelled: true }), ({ outcome }) =>
        outcome === "skipped" ? Effect.void : StoredCancels.settle(recorder.cancels, runId),
      )
    : tend(recorder, runId, options);

const nothingOverdue = { runIds: [], more: false };

/** Counts rows. */
const reportOf = (runs: ReadonlyArray<Row>, more: boolean): Report => {
  const counts = { offered: 0, answered: 0, asked: 0, waiting: 0, completed: 0, stopped: 0, skipped: 0 };
  for (const { outcome } of runs) counts[outcome] += 1;
  return { runs, counts, more };
};

type Tended = (runIds: ReadonlyArray<string>) => Effect.Effect<ReadonlyArray<Row>, RecorderError>;

/** Orphans are asked for until none is new: each is looked after once. Returns whether there are more. */
const eachOrphan = (
  recorder: RunRecorder["Service"],
  limit: number,
  tended: Tended,
): Effect.Effect<boolean, RecorderError> =>
  Effect.gen(function* () {
    const seen = new Set<string>();
    // Runs that others hold stay in the list. As many more are asked for, so that they hide no other run.
    let held = 0;
    while (seen.size < limit) {
      const found = yield* recorder.orphans(held + batchRuns);
      const fresh = found.map(({ run_id }) => run_id).filter((runId) => !seen.has(runId));
      if (fresh.length === 0) return false;
      const batch = fresh.slice(0, Math.min(batchRuns, limit - seen.size));
      for (const runId of batch) seen.add(runId);
      const rows = yield* tended(batch);
      held += rows.filter(({ outcome }) => outcome === "skipped").length;
    }
    return true;
  });

/**
 * Parked runs whose question was answered or has expired. The process that took the answer may have died before it acted.
 *
 * @param restored those too that would go on by a word of before
 */
const overdueRuns = (
  recorder: RunRecorder["Service"],
  limit: number,
  restored: boolean,
): Effect.Effect<{ readonly runIds: ReadonlyArray<string>; readonly more: boolean }, RecorderError> =>
  Effect.gen(function* () {
    const clock = yield* Clock.Clock;
    const overdue = waitingRuns(recorder, batchRuns).pipe(
      Stream.filter(
        (record) =>
          isOverdue(record, clock.currentTimeMillisUnsafe()) || (restored && CrashPlan.goesOnByItself(record)),
      ),
      // One more than may be looked after says that there are more.
      Stream.take(limit + 1),
      Stream.map(({ run_id }) => run_id),
    );
    const runIds = yield* Stream.runCollect(overdue);
    return { runIds: runIds.slice(0, limit), more: runIds.length > limit };
  });

/**
 * Answers the newest question of a run, and carries the answer out where that needs no provider and no process drives the
 * run: `stop` and `accept` end it, a word on calls settles them. Any other answer waits for `StreamProcessor.takeUp`. A
 * process that drives the run acts on the answer itself.
 *
 * @returns the run as it stands then. An answer that was taken is never lost: what could not be carried out now is found
 *   by the next `recover`.
 */
export const answer = (
  given: RunRecorder.Answer,
  options: TendOptions = {},
): Effect.Effect<RunRecord, AnswerRefused | RecorderError, RunRecorder> =>
  Effect.gen(function* () {
    const recorder = bounded(yield* RunRecorder);
    const { run_id } = given;
    const taken = yield* recorder.answer(given);
    yield* answeredHere(recorder, run_id);
    return yield* Effect.andThen(tend(recorder, run_id, options), recorder.run(run_id)).pipe(
      Effect.map((record) => record ?? taken),
      Effect.catch(({ reason }) =>
        Effect.as(Effect.logWarning("an answer could not be carried out yet", { run_id, reason }), taken),
      ),
    );
  });

/**
 * Ends a run that no process drives and that no program will go on with: one that waits to be taken up, such as an adapter's,
 * whose request is in no record. What is due is recovered first, and a question that is open is answered `stop`.
 *
 * @returns the run as it has ended. It fails with `owned` while a living process drives the run, and with `run_ended` for one
 *   that has ended already.
 */
export const giveUp = (
  runId: string,
  options: TendOptions = {},
): Effect.Effect<RunRecord, AnswerRefused | RecorderError, RunRecorder> =>
  Effect.gen(function* () {
    const recorder = bounded(yield* RunRecorder);
    const { outcome } = yield* tend(recorder, runId, options);
    const tended = yield* recorder.run(runId);
    // The step that was due has ended the run, as it does one without its transcript.
    if (outcome !== "skipped" && tended?.state === "ended") return tended;
    const question = tended === undefined ? undefined : openQuestion(tended);
    if (question !== undefined)
      return yield* answer({ run_id: runId, revision: question.revision, choice: "stop", by: "person" }, options);
    const claimed = yield* Effect.uninterruptible(endByHand(recorder, runId, givenUp));
    return (yield* recorder.run(runId)) ?? claimed;
  });

/** Why such a run ended. */
const givenUp = "given_up";

/** How to sweep. */
export interface SweepOptions extends RecoverOptions {
  /** From the end of one sweep to the next, in milliseconds. */
  readonly intervalMs?: number;
  /**
   * Least from one look at parked runs to the next, in milliseconds: those that were answered and whose process died before it acted, and
   * those whose question has expired. Left out, each sweep looks at them. Runs whose process is gone are looked for by each sweep.
   */
  readonly parkedMs?: number;
  /** Returns each time that a sweep is due before that: runs are known to have lost their process. */
  readonly due?: Effect.Effect<void>;
  /** Told what a sweep did, if it did something: runs that are `offered` or `answered` wait for `StreamProcessor.takeUp`. */
  readonly onSwept?: (report: Report) => Effect.Effect<void>;
}

/** Sweeps that failed: the store could not be read or written. The next one tries again. */
export const sweepFailures = Metric.counter("stream_recovery.sweep_failures", {
  description: "Sweeps for orphaned runs that failed",
  incremental: true,
});

/**
 * Recovers at once and then again and again while the layer lives. A sweep that fails is counted and never ends it; the log says so
 * when the first one fails, once a minute while they do, and when one works again.
 */
export const layer = (options: SweepOptions = {}): Layer.Layer<never, never, RunRecorder> => {
  const { due = Effect.never, intervalMs = sweepIntervalMsDefault, onSwept, parkedMs = 0 } = options;
  const outage = new OutageLog(sweepWords);
  let lookedAt = Number.NEGATIVE_INFINITY;
  const found = Effect.flatMap(Clock.Clock, (clock) => {
    const now = monotonicMs(clock);
    const isWhole = now - lookedAt >= parkedMs;
    return Effect.tap(recovered(options, isWhole), () => {
      // One that fails is made up for by the next sweep.
      if (isWhole) lookedAt = now;
      return Effect.void;
    });
  });
  const sweep = found.pipe(
    Effect.flatMap((report) => (report.runs.length === 0 ? Effect.void : (onSwept?.(report) ?? Effect.void))),
    Effect.andThen(outage.worked),
    Effect.catchCause((cause) => Effect.andThen(Metric.update(sweepFailures, 1), sweepFailed(outage, cause))),
  );
  const pause = Effect.raceFirst(Effect.sleep(Duration.millis(intervalMs)), due);
  return Layer.effectDiscard(Effect.forkScoped(Effect.forever(Effect.andThen(sweep, pause))));
};

const sweepWords = {
  away: "orphaned runs cannot be looked for; each sweep tries again",
  back: "orphaned runs are looked for again",
};

/** A store that is away says why in one sentence. Anything else is a defect, and is told once with where it comes from. */
const sweepFailed = (outage: OutageLog, cause: Cause.Cause<RecorderError>): Effect.Effect<void> => {
  const error = Option.getOrUndefined(Cause.findErrorOption(cause));
  if (error !== undefined) return outage.failed(error.message === "" ? error.reason : error.message);
  const told = outage.isOn ? Effect.void : Effect.logError("a sweep for orphaned runs died", cause);
  return Effect.andThen(told, outage.failed("a sweep died"));
};
