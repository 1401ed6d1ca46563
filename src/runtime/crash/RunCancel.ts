/**
 * Cancels a run on behalf of its user, whichever process owns it, and reports the result.
 *
 * X1 Only the owner cancels a run (L10): this process, or another one that is notified through the store.
 * X2 A run without an owner is decided as cancelled from its recorded facts, and ends. No part of it is retried.
 * X3 A cancel that no process has taken yet stays pending, for at most `standsMs` (L11). The owner takes it when it continues. If the owner
 * is gone, the process that recovers the run decides it as cancelled.
 */
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import { toBounded } from "../../recorder/BoundedRecorder.ts";
import { RecorderError } from "../../recorder/RecorderError.ts";
import type { RunRecord } from "../../recorder/RunRecord.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import type { SharedCancels } from "../../recorder/shared/SharedCancels.ts";
import type { FactsFault } from "../../recorder/shared/SharedFacts.ts";
import { findLate } from "../../recorder/WriteQueue.ts";
import * as StoredCancels from "../run/StoredCancels.ts";
import { takeOver } from "./Takeover.ts";

/** Maximum wait for the end of a run that is being cancelled, in milliseconds. */
export const endMs = 5_000;

/** Interval between two reads of the record, in milliseconds. */
const lookMs = 50;

/**
 * The result of a cancel. `ended`: the run had already ended. `here`: this process owned the run and cancels it. `forwarded`: the
 * owner, another process, cancels it. `unowned`: the run had no owner, and is now ended. `pending`: the owner has not answered
 * yet. `unreachable`: another process owns the run and cannot be notified.
 */
export interface CancelResult {
  readonly outcome: "ended" | "here" | "forwarded" | "unowned" | "pending" | "unreachable";
  /** The display name of the owner, if it is another process. */
  readonly driver: string | undefined;
  /** The current record of the run. */
  readonly record: RunRecord;
}

/** Access to the runs of this process, and the maximum wait for another owner. */
export interface CancelOptions {
  /** Cancels the run if this process owns it, and returns true if so. Absent in a process that owns no runs. */
  readonly cancelHere?: (runId: string) => Effect.Effect<boolean>;
  /** Maximum wait for a silent owner, in milliseconds. Default: until its next heartbeat or the end of its lease. */
  readonly silentMs?: number;
}

/**
 * Cancels a run.
 *
 * @returns undefined if no such run is on record
 */
export const cancel = Effect.fn("RunCancel.cancel")(function* (
  runId: string,
  options: CancelOptions = {},
): Effect.fn.Return<CancelResult | undefined, RecorderError, RunRecorder> {
  const recorder = toBounded(yield* RunRecorder);
  const record = yield* findLate(recorder, runId);
  if (record === undefined) return undefined;
  if (record.state === "ended") return { outcome: "ended", driver: undefined, record };
  if (yield* options.cancelHere?.(runId) ?? Effect.succeed(false))
    return { outcome: "here", driver: undefined, record: yield* awaitEnd(recorder, record) };
  const { cancels } = recorder;
  const driver = cancels === undefined ? undefined : yield* StoredCancels.driverOf(cancels, runId);
  if (cancels !== undefined && driver !== undefined && (yield* StoredCancels.cancel(cancels, { run_id: runId }, true)))
    return { outcome: "forwarded", driver, record: yield* awaitEnd(recorder, record) };
  const tended = takeOver(recorder, runId, { cancelled: true });
  const { silentMs } = options;
  const row = yield* silentMs === undefined
    ? Effect.asSome(tended)
    : Effect.timeoutOption(tended, Duration.millis(silentMs));
  const now = (yield* recorder.run(runId)) ?? record;
  if (cancels !== undefined && now.state === "ended") yield* StoredCancels.settle(cancels, runId);
  if (Option.isSome(row) && row.value.outcome !== "skipped") return { outcome: "unowned", driver, record: now };
  if (now.state === "ended") return { outcome: "ended", driver, record: now };
  return cancels === undefined
    ? { outcome: "unreachable", driver, record: now }
    : yield* cancelOwned(recorder, cancels, now, driver);
});

/**
 * Handles a run that a process owns. The owner was silent, or it has claimed the run since the first check. The owner takes the cancel, or
 * the cancel stays pending (X3).
 */
const cancelOwned = Effect.fnUntraced(function* (
  recorder: RunRecorder["Service"],
  cancels: SharedCancels,
  record: RunRecord,
  before: string | undefined,
): Effect.fn.Return<CancelResult, RecorderError> {
  const { run_id } = record;
  const unavailableError = ({ message }: FactsFault) => new RecorderError({ reason: "unavailable", run_id, message });
  const driver = before ?? (yield* StoredCancels.driverOf(cancels, run_id));
  const asked = StoredCancels.request(cancels, { run_id }, true);
  // If the owner was known before, the cancel has already been requested.
  const wasAsked = before === undefined ? Effect.succeed(false) : StoredCancels.isPending(cancels, run_id);
  const isTaken = Effect.flatMap(wasAsked, (stands) => (stands ? Effect.succeed(false) : asked));
  const taken = yield* Effect.mapError(isTaken, unavailableError);
  return taken
    ? { outcome: "forwarded", driver, record: yield* awaitEnd(recorder, record) }
    : { outcome: "pending", driver, record };
});

/** Returns the record after the run has ended, or the newest one if that takes longer than `endMs`. */
const awaitEnd = (recorder: RunRecorder["Service"], before: RunRecord): Effect.Effect<RunRecord, RecorderError> => {
  let newest = before;
  const look = Effect.map(recorder.run(before.run_id), (found) => {
    newest = found ?? newest;
    return newest.state === "ended";
  });
  const pause = Effect.sleep(Duration.millis(lookMs));
  const until = Effect.repeat(
    Effect.tap(look, (isOver) => (isOver ? Effect.void : pause)),
    { until: (it) => it },
  );
  return Effect.map(Effect.timeoutOption(until, Duration.millis(endMs)), () => newest);
};
