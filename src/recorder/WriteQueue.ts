/**
 * Writes the entries of volatile runs after their acts (L8): the run continues at once, and the store gets its entries in order.
 *
 * The entries of a run that are queued within `behindMs` become one write, and the writes of many runs share a commit. So a short run needs
 * only a share of one commit, and a killed process loses at most its last moments. While the store accepts no writes, the queue keeps
 * entries up to a total of `queueBytesMax`, each for at most `queueAgeMsMax`.
 */
import * as Clock from "effect/Clock";
import * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Duration from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Layer from "effect/Layer";
import * as Metric from "effect/Metric";
import type * as Scope from "effect/Scope";
import { join } from "../facts/Growth.ts";
import { type BoundedRecorder, toBounded } from "./BoundedRecorder.ts";
import { monotonicMs, runWithin, sleepRealTime } from "./MonotonicTime.ts";
import { isOfStore, type RecorderError } from "./RecorderError.ts";
import { isListed, type RunQuery } from "./RunFilter.ts";
import * as RunRecord from "./RunRecord.ts";
import { type Commit, listLimitDefault, RunRecorder } from "./RunRecorder.ts";
import { OutageLog, saidAgainMs } from "./shared/OutageLog.ts";

/** Maximum size of all entries in the queue, in bytes (estimated): 64 MiB. */
export const queueBytesMax = 64 * 1024 * 1024;

/** Share of `queueBytesMax` to which the entries of a full queue are reduced. */
const evictedTo = 7 / 8;

/** Maximum time that an entry waits for the store, in milliseconds: 10 minutes. */
export const queueAgeMsMax = 600_000;

/**
 * Time for which entries are collected for one write, in milliseconds. An entry is written after one to two such periods. A process that
 * does not find a run reads again after `lateRecordMs`, so it finds the entry.
 */
export const behindMs = 250;

/** Time after which a run that is not on record counts as unknown, in milliseconds. Another process may still have it queued. */
export const lateRecordMs = 1_000;

/** Reads one run. If it is not on record, reads once more later, because another process may not have written it yet. */
export const findLate = (
  recorder: Pick<RunRecorder["Service"], "durable" | "run">,
  runId: string,
): Effect.Effect<RunRecord.RunRecord | undefined, RecorderError> =>
  Effect.flatMap(recorder.run(runId), (record) =>
    record === undefined && recorder.durable
      ? Effect.delay(recorder.run(runId), Duration.millis(lateRecordMs))
      : Effect.succeed(record),
  );

/** Time after which the store counts as unavailable if writes are due and none succeeds, in milliseconds (DESIGN section 18). */
export const awayMs = 10_000;

/** First pause before an unavailable store is tried again, and its maximum, in milliseconds. */
const pauseMs = 250;
const pauseMsMax = 2_000;

/** Maximum duration of one round of writes while the process runs, in milliseconds. A longer round means that the process was suspended. */
const roundMsMax = 30_000;

/**
 * Maximum runs in one group of writes. A commit to a file blocks this thread. A commit to a server does not, and a server accepts many runs
 * at once.
 */
const groupRunsMax = { file: 16, server: 256 };

/** Default maximum time that a closing queue keeps writing, in milliseconds. */
export const lastWritesMs = 3_000;

/** Unwritten entries of one run. */
export interface Unwritten {
  readonly runId: string;
  readonly entries: ReadonlyArray<RunRecord.Entry>;
}

/** Keeps the entries that a closing queue could not write. Returns the number of entries that are lost because they could not be kept. */
export type Spill = (unwritten: ReadonlyArray<Unwritten>) => Effect.Effect<number>;

interface QueuedRun {
  readonly runId: string;
  waiting: Array<RunRecord.Entry>;
  /** Entries of the write in flight; empty if there is none. */
  writing: ReadonlyArray<RunRecord.Entry>;
  bytes: number;
  /** Monotonic time of the oldest entry, in milliseconds. */
  since: number;
  /** True if a caller waits for the run, so that its entries are written immediately. */
  isDue: boolean;
  /** Callers that wait until their entries are on record, with the number of entries queued when they began to wait. */
  waiters: Array<{ readonly through: number; readonly done: Deferred.Deferred<boolean> }>;
  queued: number;
  written: number;
}

/** Maximum number of refused runs that are remembered. */
const refusedRunsMax = 10_000;

const nothing: ReadonlyArray<RunRecord.Entry> = [];

/** Estimated size of the entries in the queue, in bytes. */
export const queuedBytes = Metric.gauge("stream_recovery.queue_bytes", {
  description: "Estimated size of the entries waiting to be recorded",
});

/** Entries that will never be on record, by `stream_recovery.reason` (overflow, invalid, refused, shutdown). */
export const lostEntries = Metric.counter("stream_recovery.lost_entries", {
  description: "Run entries that could not be recorded and were lost",
  incremental: true,
});

/** The queue of a process. The processor adds entries, and the gateway's page reads its state. */
export class WriteQueue extends Context.Service<WriteQueue, Queue>()("effect-stream-recovery/WriteQueue") {
  /**
   * Puts a queue in front of a recorder. Reads through this layer's recorder include queued entries.
   *
   * @param recorder recorder to which the queue writes
   * @param spill keeps entries that a closing queue could not write; without it, these entries are lost, and the loss is logged
   */
  static readonly wrap = <Provided, E, R>(
    recorder: Layer.Layer<RunRecorder | Provided, E, R>,
    spill?: Spill,
  ): Layer.Layer<RunRecorder | Provided | WriteQueue, E, R> =>
    Layer.effectContext(
      Effect.gen(function* () {
        const inner = yield* RunRecorder;
        const queue = yield* make(inner, spill);
        return Context.make(RunRecorder, withQueue(inner, queue)).pipe(Context.add(WriteQueue, queue));
      }),
    ).pipe(Layer.provideMerge(recorder));
}

/** Creates a queue in front of a recorder. At the end of the scope, the queue writes the remaining entries. */
export const make = (recorder: RunRecorder["Service"], spill?: Spill): Effect.Effect<Queue, never, Scope.Scope> =>
  Effect.gen(function* () {
    const services = yield* Effect.context<never>();
    const answers = recorder.write.commit?.answers;
    const queue = new Queue(toBounded(recorder), yield* Clock.Clock, services, { answers, spill });
    yield* Effect.addFinalizer(() => queue.close(lastWritesMs));
    yield* Effect.forkScoped(queue.work);
    return queue;
  });

/** The queue of the entries of volatile runs, which the store records after the acts that the entries describe. */
export class Queue {
  readonly #recorder: BoundedRecorder;
  readonly #clock: Clock.Clock;
  readonly #services: Context.Context<never>;
  readonly #spill: Spill | undefined;
  readonly #groupRuns: number;
  /** True if the store commits before the call returns. The queue is then unused. */
  readonly #isAtOnce: boolean;
  readonly #runs = new Map<string, QueuedRun>();
  /** Runs that the store can no longer record completely, at most `refusedRunsMax`. */
  readonly #refusedRuns = new Set<string>();
  #bytes = 0;
  #wake = Deferred.makeUnsafe<void>();
  /** Completed when a caller waits for a write, so that the next group starts immediately. */
  #hurry = Deferred.makeUnsafe<void>();
  #isClosed = false;
  /** Monotonic time since which writes were due and none succeeded, in milliseconds; undefined if no write is due. */
  #dueSince: number | undefined;
  #lost = { entries: 0, run_id: "", saidAt: Number.NEGATIVE_INFINITY };
  readonly #outage = new OutageLog({
    away: "cannot record runs; entries are kept for up to 10 minutes",
    back: "runs are recorded again",
  });

  constructor(
    recorder: BoundedRecorder,
    clock: Clock.Clock,
    services: Context.Context<never>,
    { answers, spill }: { readonly answers: Commit["answers"] | undefined; readonly spill: Spill | undefined },
  ) {
    this.#recorder = recorder;
    this.#groupRuns = answers === "late" ? groupRunsMax.server : groupRunsMax.file;
    this.#isAtOnce = answers === "at_once";
    this.#clock = clock;
    this.#services = services;
    this.#spill = spill;
  }

  /** True if a write has been due for `awayMs` without a success. */
  get isAway(): boolean {
    return this.#dueSince !== undefined && this.#now() - this.#dueSince >= awayMs;
  }

  /** Runs with entries in the queue. */
  get size(): number {
    return this.#runs.size;
  }

  /** Estimated size of all entries, in bytes. */
  get bytes(): number {
    return this.#bytes;
  }

  #now(): number {
    return monotonicMs(this.#clock);
  }

  /**
   * Queues entries of one run, in the order in which they happened. It never waits and never refuses.
   *
   * @param runId run whose first entry is `RunStarted`, unless it is already on record
   */
  add(runId: string, entries: ReadonlyArray<RunRecord.Entry>): void {
    if (entries.length === 0) return;
    if (this.#isAtOnce) {
      this.#recorder.commit(runId, entries, { services: this.#services }, (why) => {
        if (why !== undefined) this.#fork(this.#reportRefusal(runId, entries.length, why));
      });
      return;
    }
    // The store lacks the start of this run, so it cannot accept the rest.
    if (this.#refusedRuns.has(runId)) {
      this.#count("refused", entries.length, runId);
      return;
    }
    const now = this.#now();
    const known = this.#runs.get(runId);
    const run = known ?? emptyRun(runId, now);
    if (known === undefined) this.#runs.set(runId, run);
    else if (run.waiting.length === 0 && run.writing.length === 0) run.since = now;
    for (const entry of entries) this.#addEntry(run, entry);
    if (this.#bytes > queueBytesMax) this.#evict();
    if (this.#isClosed) this.#fork(this.#pass(this.#groupRuns));
    else if (known === undefined) this.#wakeWriter();
  }

  /** Adds an entry. Facts of one attempt are joined into one entry, because they only grow (L1). */
  #addEntry(run: QueuedRun, given: RunRecord.Entry): void {
    const at = given._tag === "FactsRaised" ? run.waiting.findLastIndex((it) => isSameRaise(it, given)) : -1;
    const before = at < 0 ? undefined : run.waiting[at];
    let entry = given;
    if (before?._tag === "FactsRaised" && given._tag === "FactsRaised") {
      entry = { ...given, facts: join(before.facts, given.facts) };
      run.waiting.splice(at, 1);
      run.queued -= 1;
      this.#addBytes(run, -weightOf(before));
    }
    run.waiting.push(entry);
    run.queued += 1;
    this.#addBytes(run, weightOf(entry));
  }

  #addBytes(run: QueuedRun, bytes: number): void {
    run.bytes += bytes;
    this.#bytes += bytes;
  }

  #wakeWriter(): void {
    Deferred.doneUnsafe(this.#wake, Effect.void);
  }

  /**
   * Waits until everything that was queued for a run is on record.
   *
   * @param ms maximum wait, in milliseconds
   * @returns false if the store did not accept the entries in time, or refused them
   */
  awaitRecorded(runId: string, ms: number): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      const run = this.#runs.get(runId);
      if (run === undefined) return Effect.succeed(!this.#refusedRuns.has(runId));
      const done = Deferred.makeUnsafe<boolean>();
      run.waiters.push({ through: run.queued, done });
      run.isDue = true;
      this.#wakeWriter();
      Deferred.doneUnsafe(this.#hurry, Effect.void);
      return Effect.timeoutOrElse(Deferred.await(done), {
        duration: Duration.millis(ms),
        orElse: () => Effect.succeed(false),
      });
    });
  }

  /** True while entries of a run wait for the store. */
  has(runId: string): boolean {
    return this.#runs.has(runId);
  }

  /** Entries of a run that the store has not confirmed, in order. */
  entriesOf(runId: string): ReadonlyArray<RunRecord.Entry> {
    const run = this.#runs.get(runId);
    return run === undefined ? nothing : [...run.writing, ...run.waiting];
  }

  /** Ids of the runs with entries in the queue, oldest first. */
  get runIds(): ReadonlyArray<string> {
    return [...this.#runs.keys()];
  }

  /** Writes due entries for as long as the scope lives. */
  readonly work: Effect.Effect<never> = Effect.gen({ self: this }, function* () {
    let pause = 0;
    while (true) {
      if (this.#runs.size === 0) yield* Deferred.await(this.#wake);
      this.#wake = Deferred.makeUnsafe<void>();
      const from = this.#now();
      const gathers = Effect.sleep(Math.max(behindMs, pause));
      // If a caller waits for its write, the queue does not collect further entries first, unless the store is unavailable.
      yield* pause === 0 ? Effect.raceFirst(gathers, Deferred.await(this.#hurry)) : gathers;
      this.#hurry = Deferred.makeUnsafe<void>();
      const isBack = yield* Effect.catchCause(this.#pass(pause > 0 ? 1 : this.#groupRuns), (cause) =>
        Effect.as(Effect.logError("a defect prevented writes of runs; they are retried", cause), false),
      );
      this.#discount(this.#now() - from - roundMsMax);
      pause = isBack ? 0 : Math.min(Math.max(pauseMs, pause * 2), pauseMsMax);
      if (pause > 0) this.#forgetOld();
      yield* Metric.update(queuedBytes, this.#bytes);
    }
  });

  /**
   * Writes the due runs, group by group, until the store fails.
   *
   * @param first maximum runs of the first group; one is enough to probe an unavailable store
   * @returns true if the store accepted everything
   */
  #pass(first: number): Effect.Effect<boolean> {
    return Effect.gen({ self: this }, function* () {
      for (let max = first; ; max = this.#groupRuns) {
        const group = this.#findDue(max);
        if (group.length === 0) {
          this.#dueSince = undefined;
          return true;
        }
        this.#dueSince ??= this.#now();
        if (!(yield* this.#write(group))) return false;
        this.#dueSince = this.#now();
        yield* Effect.yieldNow;
      }
    });
  }

  /** Returns the runs whose entries have gathered long enough or that a caller waits for, oldest first. */
  #findDue(max: number): ReadonlyArray<QueuedRun> {
    const found: Array<QueuedRun> = [];
    const gathered = this.#now() - behindMs;
    for (const run of this.#runs.values()) {
      if (found.length >= max) break;
      const isFree = run.writing.length === 0 && run.waiting.length > 0;
      if (isFree && (run.isDue || this.#isClosed || run.since <= gathered)) found.push(run);
    }
    return found;
  }

  /** Writes the entries of these runs. Returns true if the store accepted or refused each write, false if it could not accept one now. */
  #write(group: ReadonlyArray<QueuedRun>): Effect.Effect<boolean> {
    return Effect.suspend(() => {
      const over = Deferred.makeUnsafe<boolean>();
      let left = group.length;
      let isTaken = true;
      const onWritten = (run: QueuedRun, why: RecorderError | undefined): void => {
        if (!this.#handleResult(run, why)) isTaken = false;
        left -= 1;
        if (left === 0) Deferred.doneUnsafe(over, Effect.succeed(isTaken));
      };
      for (const run of group) {
        run.writing = run.waiting;
        run.waiting = [];
        run.isDue = false;
        this.#recorder.commit(run.runId, run.writing, { services: this.#services }, (why) => onWritten(run, why));
      }
      return Deferred.await(over);
    });
  }

  /** Handles the result of a write. Returns false if the store could not accept the write now; its entries are then queued again. */
  #handleResult(run: QueuedRun, why: RecorderError | undefined): boolean {
    const { writing } = run;
    run.writing = nothing;
    if (why === undefined) {
      if (this.#outage.isOn) this.#fork(this.#outage.recordSuccess);
      this.#markWritten(run, writing);
      return true;
    }
    const misfit = why.reason === "invalid" ? writing[why.entry ?? -1] : undefined;
    if (misfit !== undefined) {
      this.#count("invalid", 1, run.runId);
      this.#fork(
        Effect.logError(`could not record an entry of a run, and will not retry: ${why.message}`, {
          run_id: run.runId,
          entry: misfit._tag,
        }),
      );
      run.queued -= 1;
      this.#addBytes(run, -weightOf(misfit));
      run.waiting = [...writing.filter((it) => it !== misfit), ...run.waiting];
      run.isDue = true;
      if (run.waiting.length === 0) this.#markWritten(run, nothing);
      else this.#wakeWriter();
      return true;
    }
    if (!isOfStore(why)) {
      this.#fork(this.#reportRefusal(run.runId, writing.length + run.waiting.length, why));
      this.#forget(run);
      return true;
    }
    run.waiting = [...writing, ...run.waiting];
    run.isDue = true;
    // Moves the run to the end of the queue, so that a run that the store never accepts does not delay the others. If the store accepts
    // no run at all, the runs stay in order, because lists show runs in the order in which they were recorded.
    if (why.reason !== "locked" && why.reason !== "disk_full") {
      this.#runs.delete(run.runId);
      this.#runs.set(run.runId, run);
    }
    this.#fork(Effect.annotateLogs(this.#outage.recordFailure(why.message), { run_id: run.runId }));
    return false;
  }

  #markWritten(run: QueuedRun, written: ReadonlyArray<RunRecord.Entry>): void {
    for (const entry of written) this.#addBytes(run, -weightOf(entry));
    run.written += written.length;
    run.since = this.#now();
    const isHeard = ({ through }: QueuedRun["waiters"][number]) => Math.min(through, run.queued) <= run.written;
    for (const waiter of run.waiters) if (isHeard(waiter)) Deferred.doneUnsafe(waiter.done, Effect.succeed(true));
    run.waiters = run.waiters.filter((it) => !isHeard(it));
    if (run.waiting.length === 0) this.#runs.delete(run.runId);
  }

  /**
   * Forgets a run that the store can no longer record completely.
   *
   * @param isRefused true if no further entry of the run can be recorded
   */
  #forget(run: QueuedRun, isRefused = true): void {
    this.#bytes -= run.bytes;
    this.#runs.delete(run.runId);
    if (isRefused) this.#refusedRuns.add(run.runId);
    for (const oldest of this.#refusedRuns) {
      if (this.#refusedRuns.size > refusedRunsMax) this.#refusedRuns.delete(oldest);
      break;
    }
    for (const { done } of run.waiters) Deferred.doneUnsafe(done, Effect.succeed(false));
  }

  #reportRefusal(run_id: string, entries: number, { message, reason }: RecorderError): Effect.Effect<void> {
    this.#count("refused", entries, run_id);
    return Effect.logError(`could not record a run, and will not retry: ${message}`, { run_id, reason, entries });
  }

  /** Evicts evidence first, then runs that started and ended in the queue, then runs without an end, and finally runs with an end. */
  #evict(): void {
    // Frees more than is needed now. Otherwise each further entry would require another scan of all runs.
    const hasRoom = () => this.#bytes <= queueBytesMax * evictedTo;
    for (const run of this.#runs.values()) {
      if (hasRoom()) return;
      this.#drop(
        run,
        run.waiting.filter(({ _tag }) => _tag === "EvidenceNoted"),
      );
    }
    const orders = [(run: QueuedRun) => hasStart(run) && hasEnd(run), (run: QueuedRun) => !hasEnd(run), () => true];
    for (const goes of orders)
      for (const run of [...this.#runs.values()]) {
        if (hasRoom()) return;
        if (run.writing.length === 0 && goes(run)) this.#giveUp(run, "overflow");
      }
  }

  #drop(run: QueuedRun, dropped: ReadonlyArray<RunRecord.Entry>): void {
    if (dropped.length === 0) return;
    const gone = new Set(dropped);
    run.waiting = run.waiting.filter((it) => !gone.has(it));
    run.queued -= dropped.length;
    for (const entry of dropped) this.#addBytes(run, -weightOf(entry));
    this.#count("overflow", dropped.length, run.runId);
    if (run.waiting.length === 0 && run.writing.length === 0) this.#markWritten(run, nothing);
  }

  #giveUp(run: QueuedRun, why: string): void {
    this.#count(why, run.waiting.length, run.runId);
    // If the start of the run is on record, its end may still be recorded.
    this.#forget(run, hasStart(run));
  }

  /** Excludes time for which the process was suspended, because no write was tried in that time. */
  #discount(ms: number): void {
    if (ms <= 0) return;
    const now = this.#now();
    for (const run of this.#runs.values()) run.since = Math.min(now, run.since + ms);
    if (this.#dueSince !== undefined) this.#dueSince = Math.min(now, this.#dueSince + ms);
  }

  /** Drops the entries of runs that have waited longer than `queueAgeMsMax`. */
  #forgetOld(): void {
    const old = this.#now() - queueAgeMsMax;
    for (const run of [...this.#runs.values()])
      if (run.since < old && run.writing.length === 0) this.#giveUp(run, "overflow");
  }

  /** Counts entries that will never be on record. Overflows are logged at most once per minute. */
  #count(reason: string, entries: number, run_id: string): void {
    if (entries === 0) return;
    Metric.withAttributes(lostEntries, { "stream_recovery.reason": reason }).updateUnsafe(entries, this.#services);
    if (reason !== "overflow") return;
    const now = this.#now();
    this.#lost.entries += entries;
    if (now - this.#lost.saidAt < saidAgainMs) return;
    this.#fork(
      Effect.logError("run entries are lost, because the write queue is full; check that the store accepts writes", {
        why: reason,
        entries: this.#lost.entries,
        run_id,
      }),
    );
    this.#lost = { entries: 0, run_id, saidAt: now };
  }

  #fork(words: Effect.Effect<unknown>): void {
    Effect.runForkWith(this.#services)(words);
  }

  /**
   * Writes the remaining entries, then spills those that the store did not accept. Later entries are written immediately or spilled.
   *
   * @param ms maximum time, in milliseconds of real time; a process that exits does not wait for a test's clock
   */
  close(ms: number): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      if (this.#isClosed) return;
      this.#isClosed = true;
      yield* Effect.ignore(runWithin(this.#drain, ms));
      const left = [...this.#runs.values()].map(
        ({ runId, waiting, writing }): Unwritten => ({ runId, entries: [...writing, ...waiting] }),
      );
      if (left.length === 0) return;
      const entries = left.reduce((sum, run) => sum + run.entries.length, 0);
      const lost = this.#spill === undefined ? entries : yield* this.#spill(left);
      if (lost > 0) {
        this.#count("shutdown", lost, left[0]?.runId ?? "");
        yield* Effect.logError(
          "run entries are lost, because the store did not accept them before this process ended; check that it accepts writes",
          {
            why: "shutdown",
            runs: left.length,
            entries: lost,
            run_id: left[0]?.runId,
          },
        );
      }
    });
  }

  get #drain(): Effect.Effect<void> {
    return Effect.gen({ self: this }, function* () {
      while (this.#runs.size > 0) {
        const isBack = yield* this.#pass(this.#groupRuns);
        // A write that was in flight when the queue closed ends by itself, so only its end has to be awaited.
        if (this.#runs.size > 0) yield* sleepRealTime(isBack ? 1 : pauseMs);
      }
    });
  }
}

const emptyRun = (runId: string, since: number): QueuedRun => ({
  ...{ runId, since, waiting: [], writing: nothing, bytes: 0, isDue: false, waiters: [], queued: 0, written: 0 },
});

const isSameRaise = (entry: RunRecord.Entry, { attempt }: { readonly attempt: number }): boolean =>
  entry._tag === "FactsRaised" && entry.attempt === attempt;

const hasStart = ({ waiting }: QueuedRun): boolean => waiting[0]?._tag === "RunStarted";

const hasEnd = ({ waiting }: QueuedRun): boolean => waiting.some(({ _tag }) => _tag === "RunEnded");

/** Estimates the size of an entry in memory, in bytes. Entries of other kinds are small, because records limit their size. */
const weightOf = (entry: RunRecord.Entry): number => {
  switch (entry._tag) {
    case "FactsRaised":
    case "AttemptStarted":
      return 1_024 + 256 * entry.facts.tools.length;
    case "IncidentOpened":
      return 4_096 + 256 * entry.incident.facts.tools.length;
    default:
      return 512;
  }
};

/** Wraps the recorder so that its reads include queued entries. */
const withQueue = (recorder: RunRecorder["Service"], queue: Queue): RunRecorder["Service"] => {
  const around: RunRecorder["Service"] = {
    ...recorder,
    run: (runId) =>
      Effect.suspend(() => {
        const before = queue.entriesOf(runId);
        const overlay = (stored?: RunRecord.RunRecord) => applyQueued(stored, before, queue.entriesOf(runId));
        return recorder.run(runId).pipe(
          Effect.map(overlay),
          // A run that started while the store was unavailable is only in the queue.
          Effect.catch((error) => {
            const known = overlay();
            return known === undefined ? Effect.fail(error) : Effect.succeed(known);
          }),
        );
      }),
    incidents: (runId) => Effect.map(around.run(runId), (record) => record?.incidents ?? []),
    runs: (query = {}) =>
      Effect.suspend(() => {
        const before = new Map(queue.runIds.map((runId) => [runId, queue.entriesOf(runId)]));
        return Effect.map(recorder.runs(query), (stored) => withQueued(queue, before, stored, query));
      }),
  };
  return around;
};

/**
 * Applies queued entries to the record that a read returned. An entry that is already on record, or does not fit it, changes nothing.
 *
 * @param before entries that were queued when the read began. The store may have made the read before it committed them, so that they are
 *   in neither the record nor the queue
 * @param after entries that are queued now
 */
const applyQueued = (
  stored: RunRecord.RunRecord | undefined,
  before: ReadonlyArray<RunRecord.Entry>,
  after: ReadonlyArray<RunRecord.Entry>,
): RunRecord.RunRecord | undefined => {
  let record = stored;
  for (const entry of [...before.filter((it) => !after.includes(it)), ...after]) {
    const next = RunRecord.apply(record, entry);
    if (typeof next !== "string") record = next;
  }
  return record;
};

const withQueued = (
  queue: Queue,
  before: ReadonlyMap<string, ReadonlyArray<RunRecord.Entry>>,
  stored: ReadonlyArray<RunRecord.RunRecord>,
  query: RunQuery,
): ReadonlyArray<RunRecord.RunRecord> => {
  if (queue.size === 0 && before.size === 0) return stored;
  const overlay = (runId: string, record?: RunRecord.RunRecord) =>
    applyQueued(record, before.get(runId) ?? nothing, queue.entriesOf(runId));
  // The page keeps the length that the store returned, because readers take a page shorter than its limit for the last one.
  const page = stored.map((record) => overlay(record.run_id, record) ?? record);
  // A page after the first starts at a stored run. Queued runs are newer, so it contains none of them.
  if (query.before !== undefined) return page;
  const known = new Set(stored.map(({ run_id }) => run_id));
  for (const runId of new Set([...before.keys(), ...queue.runIds])) {
    const record = known.has(runId) ? undefined : overlay(runId);
    if (record === undefined || !isListed(record, query)) continue;
    const at = page.findIndex(({ started_at }) => started_at <= record.started_at);
    page.splice(at < 0 ? page.length : at, 0, record);
  }
  return page.slice(0, query.limit ?? listLimitDefault);
};
