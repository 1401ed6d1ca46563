/**
 * Cancels a run in its user's name, whichever process drives it, and says what became of that.
 *
 * X1 The process that drives the run cancels it, and no other one does (L10): this one, or one that is told through the store.
 * X2 A run that no process drives is decided as cancelled from its recorded facts, and ends. Nothing of it is retried.
 * X3 A cancel that no process has taken yet stands: the driver takes it when it goes on, and whoever decides the run after it
 *    decides it as cancelled. It stands for `standsMs`, and never longer (L11).
 */
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Option from "effect/Option";
import { bounded } from "../../recorder/BoundedRecorder.ts";
import { RecorderError } from "../../recorder/RecorderError.ts";
import type { RunRecord } from "../../recorder/RunRecord.ts";
import { RunRecorder } from "../../recorder/RunRecorder.ts";
import type { SharedCancels } from "../../recorder/shared/SharedCancels.ts";
import type { FactsFault } from "../../recorder/shared/SharedFacts.ts";
import * as StoredCancels from "../attach/StoredCancels.ts";
import { tend } from "./Takeover.ts";

/** Longest that the end of a run which is being cancelled is waited for, in milliseconds. */
export const endMs = 5_000;

/** From one look at the record to the next, in milliseconds. */
const lookMs = 50;

/**
 * What became of a cancel. `ended`: the run had ended before. `here`: this process drove the run and cancels it. `told`: the process that
 * drives it does. `nobodys`: no process drove it, and it is ended. `stands`: a process has the run and has not answered yet. `unheard`: another process drives it, and nothing can be
 * told it.
 */
export interface CancelResult {
  readonly outcome: "ended" | "here" | "told" | "nobodys" | "stands" | "unheard";
  /** The process that drove the run, by the name that a person knows it by, where it was another one. */
  readonly driver: string | undefined;
  /** The run as it stands now. */
  readonly record: RunRecord;
}

/** How to cancel. */
export interface CancelOptions {
  /** Cancels it where this process drives it; gives whether it did. Left out in a process that drives no runs. */
  readonly here?: (runId: string) => Effect.Effect<boolean>;
  /** Longest that a silent driver is waited for, in milliseconds. Left out, until it has beaten or its lease is over. */
  readonly silentMs?: number;
}

/**
 * Cancels a run.
 *
 * @returns undefined where no such run is on record
 */
export const cancel = Effect.fn("RunCancel.cancel")(function* (
  runId: string,
  options: CancelOptions = {},
): Effect.fn.Return<CancelResult | undefined, RecorderError, RunRecorder> {
  const recorder = bounded(yield* RunRecorder);
  const record = yield* recorder.run(runId);
  if (record === undefined) return undefined;
  if (record.state === "ended") return { outcome: "ended", driver: undefined, record };
  if (yield* options.here?.(runId) ?? Effect.succeed(false))
    return { outcome: "here", driver: undefined, record: yield* ended(recorder, record) };
  const { cancels } = recorder;
  const driver = cancels === undefined ? undefined : yield* StoredCancels.driverOf(cancels, runId);
  if (cancels !== undefined && driver !== undefined && (yield* StoredCancels.cancel(cancels, { run_id: runId }, true)))
    return { outcome: "told", driver, record: yield* ended(recorder, record) };
  const tended = tend(recorder, runId, { cancelled: true });
  const { silentMs } = options;
  const row = yield* silentMs === undefined
    ? Effect.asSome(tended)
    : Effect.timeoutOption(tended, Duration.millis(silentMs));
  const now = (yield* recorder.run(runId)) ?? record;
  if (cancels !== undefined && now.state === "ended") yield* StoredCancels.settle(cancels, runId);
  if (Option.isSome(row) && row.value.outcome !== "skipped") return { outcome: "nobodys", driver, record: now };
  if (now.state === "ended") return { outcome: "ended", driver, record: now };
  return cancels === undefined
    ? { outcome: "unheard", driver, record: now }
    : yield* standing(recorder, cancels, now, driver);
});

/** Some process has the run: one that was silent, or that has taken it up since it was looked at. The cancel stands, or is taken (X3). */
const standing = Effect.fnUntraced(function* (
  recorder: RunRecorder["Service"],
  cancels: SharedCancels,
  record: RunRecord,
  before: string | undefined,
): Effect.fn.Return<CancelResult, RecorderError> {
  const { run_id } = record;
  const away = ({ message }: FactsFault) => new RecorderError({ reason: "unavailable", run_id, message });
  const driver = before ?? (yield* StoredCancels.driverOf(cancels, run_id));
  const asked = StoredCancels.asked(cancels, { run_id }, true);
  // A driver that was known was asked before.
  const wasAsked = before === undefined ? Effect.succeed(false) : StoredCancels.stands(cancels, run_id);
  const isTaken = Effect.flatMap(wasAsked, (stands) => (stands ? Effect.succeed(false) : asked));
  const taken = yield* Effect.mapError(isTaken, away);
  return taken
    ? { outcome: "told", driver, record: yield* ended(recorder, record) }
    : { outcome: "stands", driver, record };
});

/** The record once the run has ended; as it stands where that takes longer. */
const ended = (recorder: RunRecorder["Service"], before: RunRecord): Effect.Effect<RunRecord, RecorderError> => {
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
