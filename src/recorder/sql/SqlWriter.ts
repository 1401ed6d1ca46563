/**
 * Commits the writes of this process in groups. Each write returns once it is on disk (law L8), and many writes share one commit.
 *
 * `make` returns a write that accepts every entry. The write assumes that this process's knowledge is current: a run is new, or its record
 * is known and its lease is valid. The statements check these assumptions. If one no longer holds, the group starts again and reads the
 * rows first.
 *
 * `makeTogether` adds a fast path for a file on this machine, which commits synchronously. Writes that are ready within one turn of the
 * scheduler share a commit. The fast path accepts only the usual writes, and leaves all others to the write of `make`, which reads, waits
 * and reports errors.
 */
import type * as Cause from "effect/Cause";
import type * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Metric from "effect/Metric";
import * as Queue from "effect/Queue";
import * as Scheduler from "effect/Scheduler";
import type * as Scope from "effect/Scope";
import { isSqlError, type SqlError } from "effect/sql/SqlError";
import { runWithin, sleepRealTime } from "../MonotonicTime.ts";
import { invalidEntryError, RecorderError, runError } from "../RecorderError.ts";
import * as RunRecord from "../RunRecord.ts";
import { type Commit, type Outcome, type Write, withCommit } from "../RunRecorder.ts";
import * as SqlEntryCheck from "./entry/SqlEntryCheck.ts";
import * as SqlParts from "./postgres/SqlParts.ts";
import type { SqlDatabase } from "./SqlDatabase.ts";
import * as SqlFailure from "./SqlFailure.ts";
import type { Driven, Held, SqlLease } from "./SqlLease.ts";
import * as SqlStore from "./SqlStore.ts";
import type { RowStatement } from "./sqlite/SqlNodeSqlite.ts";

/** Maximum writes in the queue. The next commit includes all of them, and further writers wait for room (backpressure). */
const queuedWritesMax = 256;

/**
 * Turns of the scheduler for which a write waits for others to join its commit. Every fiber that is ready to write does so within one turn.
 * A commit blocks the thread, so a longer wait would only delay the streams more.
 */
const gatherTurns = 1;

/**
 * Maximum tries of a group whose file another process's commit has locked. After that, each write is committed alone, which costs several
 * times as much.
 */
const lockedMax = 8;

/** Pause between these tries, in milliseconds. */
const lockedPauseMs = 1;

/**
 * Time for which the end of a run waits for another run's write, so that both share a commit, in milliseconds. For a short stream, the
 * commit of its end is a third of the total cost of the store.
 */
const endPauseMs = 1;

interface Entries {
  readonly runId: string;
  readonly entries: ReadonlyArray<RunRecord.Entry>;
}

interface Job extends Entries {
  readonly onDone: (outcome: Outcome) => void;
}

/**
 * Starts the writer of a scope. At the end of the scope, queued writes are still committed, within a time limit.
 *
 * @param closeMs maximum time for these commits, in milliseconds
 */
export const make = (
  database: SqlDatabase,
  lease: SqlLease,
  closeMs: number,
): Effect.Effect<Write, never, Scope.Scope> =>
  Effect.gen(function* () {
    const queue = yield* Queue.bounded<Job, Cause.Done>(queuedWritesMax);
    const commit = commitAll(database, lease);
    const fiber = yield* Effect.forkDetach(processQueue(queue, commit));
    yield* Effect.addFinalizer(() => Effect.andThen(Queue.end(queue), runWithin(Fiber.join(fiber), closeMs)));
    const { dialect } = database.tables;
    const write: Write = (runId, entries) =>
      Effect.suspend(() => {
        if (entries.length === 0) return Effect.void;
        const checked = SqlEntryCheck.normalizeEntries(runId, entries);
        if (!dialect.canStore(runId))
          return Effect.fail(invalidEntryError(runId, 0, `.run_id: expected ${dialect.keepable}`));
        if ("reason" in checked) return Effect.fail(checked);
        const done = Deferred.makeUnsafe<void, RecorderError>();
        const onDone = (outcome: Outcome): void =>
          void Deferred.doneUnsafe(done, typeof outcome === "string" ? Exit.void : Exit.fail(outcome));
        return database.free.pipe(
          Effect.andThen(Queue.offer(queue, { runId, entries: checked, onDone })),
          Effect.flatMap((taken) => (taken ? Deferred.await(done) : Effect.fail(errorAfterClose(runId)))),
        );
      });
    // On a file, a write may have to wait for a transaction of its caller, and only the caller's fiber knows that transaction. So only
    // PostgreSQL gets the fiberless commit.
    if (dialect.name !== "postgres") return write;
    return withCommit(write, "late", (runId, entries, onDone) => {
      const checked = SqlEntryCheck.normalizeEntries(runId, entries);
      const isTaken =
        !("reason" in checked) &&
        dialect.canStore(runId) &&
        Queue.offerUnsafe(queue, { runId, entries: checked, onDone });
      if (!isTaken) onDone("undecided");
    });
  });

const errorAfterClose = (run_id: string): RecorderError =>
  new RecorderError({ reason: "unavailable", run_id, message: `${run_id}: the recorder is closed` });

type CommitGroup = (jobs: ReadonlyArray<Job>) => Effect.Effect<void>;

/** Commits groups until the queue ends. An interrupted writer still commits its queue, because the queued events have already happened. */
const processQueue = (queue: Queue.Queue<Job, Cause.Done>, commit: CommitGroup): Effect.Effect<void> =>
  Effect.gen(function* () {
    while (true) {
      const first = yield* Queue.take(queue);
      for (let turn = 0; turn < gatherTurns; turn += 1) yield* Effect.yieldNow;
      const more = yield* Queue.clear(queue);
      yield* Effect.uninterruptible(commit([first, ...more]));
    }
  }).pipe(Effect.ignore);

/** Commits new runs first, because requests wait for them. */
const commitAll =
  (database: SqlDatabase, lease: SqlLease): CommitGroup =>
  (jobs) =>
    commitNewRuns(database, lease, jobs).pipe(
      // A write that cannot be encoded makes this fast path fail for all writes. The transaction then rejects only that write.
      Effect.catchCause(() => Effect.succeed(jobs)),
      Effect.flatMap((left) => (left.length === 0 ? Effect.void : commitTransaction(database, lease)(left))),
    );

/** Commits new runs in one round trip if the server supports it. Returns the writes that are left to a transaction. */
const commitNewRuns = Effect.fnUntraced(function* (database: SqlDatabase, lease: SqlLease, jobs: ReadonlyArray<Job>) {
  const id = lease.freshId;
  if (id === undefined || !database.canCommitOne) return jobs;
  const runs = new Map<string, Open | undefined>();
  for (const job of jobs) {
    const isNew = !runs.has(job.runId) && isRepeatable(job) && lease.findOwned(job.runId) === undefined;
    const run = isNew ? openNew(id, job) : runs.get(job.runId);
    runs.set(job.runId, run !== undefined && apply(run, job) === undefined ? run : undefined);
  }
  const begun = new Map<string, Open>();
  const fresh: Array<SqlStore.Changed> = [];
  for (const [runId, run] of runs) {
    if (run?.record === undefined || !SqlParts.isOneRow(undefined, run.record)) continue;
    begun.set(runId, run);
    fresh.push({ runId, before: undefined, record: run.record, owner: run.owner });
  }
  if (fresh.length === 0) return jobs;
  const { toKept, template, values } = SqlStore.beginStatement(database.tables, fresh, id);
  const rows = yield* database.commitOne(template, values);
  const kept = rows && toKept(rows);
  // If the commit is not confirmed, the transaction repeats all jobs; entries that are already on record change nothing.
  if (kept === undefined) return jobs;
  yield* Metric.update(SqlFailure.commits, 1);
  updateLease(lease, { held: { id, beatAt: undefined }, kept, runs: begun });
  for (const { onDone, runId } of jobs) if (begun.has(runId)) onDone("recorded");
  return jobs.filter(({ runId }) => !begun.has(runId));
});

const commitTransaction =
  (database: SqlDatabase, lease: SqlLease): CommitGroup =>
  (jobs) =>
    database.write(makeTransaction(database, lease, jobs)).pipe(
      Effect.tap(({ refused }) =>
        Effect.forEach(
          refused.filter((why) => why !== undefined),
          SqlFailure.countDamage,
          { discard: true },
        ),
      ),
      Effect.tap(Metric.update(SqlFailure.commits, 1)),
      Effect.flatMap((committed) => Effect.sync(() => settle(lease, jobs, committed))),
      Effect.catch((error) => {
        // If a single write fails (a damaged page, a refused value), the other writes must not fail.
        if (jobs.length > 1 && SqlFailure.isOneRunsFailure(error)) {
          return Effect.forEach(jobs, (job) => commitTransaction(database, lease)([job]), { discard: true });
        }
        return failAll(jobs, error);
      }),
      // A defect must not end the writer. Otherwise every later write would wait forever.
      Effect.catchDefect((cause) => failAll(jobs, SqlFailure.explain(cause, "the recorder"))),
    );

const failAll = (jobs: ReadonlyArray<Job>, error: RecorderError): Effect.Effect<void> =>
  Effect.sync(() => {
    for (const { onDone } of jobs) onDone(error);
  });

/** A run to which a transaction applies writes. */
interface Open {
  /** State that the transaction found; undefined for a new run. */
  readonly before: SqlStore.Stored | undefined;
  record: RunRecord.RunRecord | undefined;
  owner: string | undefined;
  /** State of the run in this process when the transaction began. */
  readonly driven?: Driven | undefined;
}

interface Committed {
  readonly held: Held;
  readonly runs: ReadonlyMap<string, Open | RecorderError>;
  readonly kept: SqlStore.Kept;
  /** The reason for each refused write, in the order of the writes. */
  readonly refused: ReadonlyArray<RecorderError | undefined>;
}

/** Creates the transaction of a group. The first try trusts this process's knowledge. If the transaction runs again, it reads every row. */
const makeTransaction = (
  database: SqlDatabase,
  lease: SqlLease,
  jobs: ReadonlyArray<Job>,
): Effect.Effect<Committed, SqlError | SqlFailure.RowChanged> => {
  let tried = false;
  return Effect.suspend(() => {
    if (tried || database.tables.dialect.name !== "postgres") return writeJobs(database, lease, jobs, false);
    tried = true;
    // If a run that this process takes for new is already on record, its cached rows are stale. The next try reads every row.
    return Effect.catchIf(writeJobs(database, lease, jobs, true), isTaken, () =>
      Effect.fail(new SqlFailure.RowChanged()),
    );
  });
};

const isTaken = (error: unknown): boolean => isSqlError(error) && error.reason._tag === "UniqueViolation";

const writeJobs = (
  database: SqlDatabase,
  lease: SqlLease,
  jobs: ReadonlyArray<Job>,
  trusts: boolean,
): Effect.Effect<Committed, SqlError | SqlFailure.RowChanged> =>
  Effect.gen(function* () {
    const { tables } = database;
    const held = yield* lease.hold;
    const runs = new Map<string, Open | RecorderError>();
    const asked = new Set<string>();
    for (const job of jobs) {
      if (runs.has(job.runId) || asked.has(job.runId)) continue;
      const run = trusts ? openKnown(lease, held.id, job) : undefined;
      if (run === undefined) asked.add(job.runId);
      else runs.set(job.runId, run);
    }
    const found = asked.size === 0 ? [] : yield* SqlStore.readHeads(tables, [...asked]);
    const heads = new Map(found.map((it) => [it.run_id, it]));
    for (const runId of asked) runs.set(runId, yield* open(database, lease, held.id, runId, heads.get(runId)));
    const refused = jobs.map((job) => {
      const run = runs.get(job.runId);
      return run === undefined || "message" in run ? run : apply(run, job);
    });
    const changed: Array<SqlStore.Changed> = [];
    for (const runId of new Set(jobs.map((job) => job.runId))) {
      const run = runs.get(runId);
      if (run === undefined || "message" in run || run.record === undefined) continue;
      const { before, owner, record } = run;
      if (record !== before?.record) changed.push({ runId, before, record, owner: before ? owner : held.id });
    }
    const kept = yield* SqlStore.save(tables, changed);
    return { held, runs, refused, kept };
  });

/** Opens a new run. If its id is on record, the insert fails. */
const openNew = (owner: string, { entries }: Entries): Open | undefined =>
  entries[0]?._tag === "RunStarted" ? { before: undefined, record: undefined, owner } : undefined;

/** True if the start of the run can be repeated safely, because its first entry names the process that started the run. */
const isRepeatable = ({ entries: [first] }: Entries): boolean =>
  first?._tag === "RunStarted" && first.started_by !== undefined;

/** Opens a new run or one whose row is known to this process; returns undefined if the row has to be read. */
const openKnown = (lease: SqlLease, held: string, write: Entries): Open | undefined => {
  const mine = lease.findOwned(write.runId);
  if (mine === undefined) return openNew(held, write);
  // Knowledge of a run under another lease is stale.
  const { known } = mine;
  if (mine.lease !== held || known?.place === undefined) return undefined;
  const { base, place, record, version } = known;
  const before = { seq: place.seq, shelf: place.shelf, version, record, owner: held, ...(base && { base }) };
  return { before, record, owner: held, driven: mine };
};

const open = (
  database: SqlDatabase,
  lease: SqlLease,
  held: string,
  runId: string,
  head: SqlStore.Head | undefined,
): Effect.Effect<Open | RecorderError, SqlError | SqlFailure.RowChanged> => {
  const mine = lease.findOwned(runId);
  if (head === undefined) return Effect.succeed({ before: undefined, record: undefined, owner: held, driven: mine });
  const isLost = mine !== undefined && mine.lease !== held;
  const owner = head.owner ?? undefined;
  // A fence stops only durable runs, because a volatile run is written only by the process that started it (L8).
  if (isLost || (owner !== undefined && owner !== held))
    return openFenced(database, held, runId, { owner, driven: mine });
  if (!isLost && mine?.known?.version === head.version) {
    const before = { ...SqlStore.placeOf(head), ...mine.known, owner };
    return Effect.succeed({ before, record: before.record, owner, driven: mine });
  }
  return SqlStore.load(database.tables, runId).pipe(
    Effect.map((stored) => ({
      ...{ before: stored, record: stored?.record, driven: mine },
      // If a previous process spilled the entries of this run, this process writes these entries and owns the run.
      owner: stored !== undefined && isTakenBack(stored.record) ? held : owner,
    })),
    Effect.catchIf((error) => error instanceof RecorderError, Effect.succeed),
  );
};

/**
 * Opens a run that is owned by another lease than the current one. A volatile run returns to this process with the next write of this
 * process.
 */
const openFenced = (
  database: SqlDatabase,
  held: string,
  runId: string,
  known: Pick<Open, "owner" | "driven">,
): Effect.Effect<Open | RecorderError, SqlError | SqlFailure.RowChanged> =>
  SqlStore.load(database.tables, runId).pipe(
    Effect.map((stored) =>
      stored?.record.volatile === true
        ? { ...known, before: stored, record: stored.record, owner: isTakenBack(stored.record) ? held : undefined }
        : runError("fenced", runId),
    ),
    Effect.catchIf(
      (error) => error instanceof RecorderError,
      () => Effect.succeed(runError("fenced", runId)),
    ),
  );

/** True if a process that writes this run takes it back: the run is volatile, and has not ended or has only an assumed end. */
const isTakenBack = ({ end, volatile }: RunRecord.RunRecord): boolean =>
  volatile === true && (end === undefined || end.assumed === true);

/** Applies a write to its run, completely or not at all. */
const apply = (run: Open, { entries, runId }: Entries): RecorderError | undefined => {
  // If the run has no owner, this process released the run while the write was in flight.
  const record = RunRecord.applyAll(run.record, entries, run.owner === undefined);
  if (typeof record === "string") return runError(record, runId);
  run.record = record;
  // A claimed run may still be parked, so its state does not tell whether it was released. Only an entry of its owner releases it.
  if (entries.some(RunRecord.isRelease) || record?.state === "ended") run.owner = undefined;
  return undefined;
};

const settle = (lease: SqlLease, jobs: ReadonlyArray<Job>, committed: Committed): void => {
  updateLease(lease, committed);
  for (const [index, { onDone }] of jobs.entries()) onDone(committed.refused[index] ?? "recorded");
};

/** Applies a committed transaction to the lease. */
const updateLease = (
  lease: SqlLease,
  { held, kept, runs }: Pick<Committed, "held" | "runs"> & Partial<Committed>,
): void => {
  lease.adopt(held);
  for (const [runId, run] of runs) {
    if ("message" in run) {
      if (run.reason === "fenced") lease.markLossNotified(runId);
      continue;
    }
    if (run.record === undefined) continue;
    if (run.owner !== held.id) {
      lease.disown(runId, run.driven);
      continue;
    }
    const version = (run.before?.version ?? 0) + Number(run.record !== run.before?.record);
    const where = kept?.get(runId) ?? (kept && run.before && SqlStore.toKept(run.before));
    lease.addOwned(runId, held.id, { version, record: run.record, ...where });
  }
};

/** Adds the fast path to a `write`, if the file is on this machine and its client is not shared with a program. */
export const makeTogether = (
  database: SqlDatabase,
  lease: SqlLease,
  write: Write,
): Effect.Effect<Write, never, Scope.Scope> =>
  Effect.gen(function* () {
    if (database.step === undefined) return write;
    const services = yield* Effect.context<never>();
    const dispatcher = (yield* Scheduler.Scheduler).makeDispatcher();
    const group = new SqlGroup(database, lease, services, {
      scheduleSoon: (flush) => dispatcher.scheduleTask(flush, 0),
      // Starts a fiber only for the timer. A fiber for the commit would cost each write more than its share of the commit.
      scheduleAfter: (ms, flush) =>
        void Effect.runForkWith(services)(Effect.andThen(sleepRealTime(ms), Effect.sync(flush))),
    });
    yield* Effect.addFinalizer(() => Effect.sync(() => group.close()));
    return withCommit(write, "soon", (...[runId, entries, onDone]) => {
      if (!group.take(runId, entries, onDone)) onDone("undecided");
    });
  });

interface Prepared {
  readonly held: Held;
  readonly rows: ReadonlyArray<RowStatement>;
  readonly runs: ReadonlyMap<string, Open>;
  readonly taken: ReadonlySet<Job>;
}

interface Times {
  /** Commits in a separate step, after everything that is ready has been written. */
  readonly scheduleSoon: (flush: () => void) => void;
  /** Commits after `ms` of real time. A lock takes real time, even if a test controls the clock. */
  readonly scheduleAfter: (ms: number, flush: () => void) => void;
}

class SqlGroup {
  readonly #database: SqlDatabase;
  readonly #lease: SqlLease;
  readonly #services: Context.Context<never>;
  readonly #times: Times;
  #jobs: Array<Job> = [];
  #locked = 0;
  /** True if the jobs are about to be committed, because one of them does not end a run. */
  #isDue = false;
  #isClosed = false;

  constructor(database: SqlDatabase, lease: SqlLease, services: Context.Context<never>, times: Times) {
    this.#database = database;
    this.#lease = lease;
    this.#services = services;
    this.#times = times;
  }

  /** Adds a write to the next commit. Returns false if the write has to take the slow path, a transaction of `make`. */
  take(...[runId, entries, onDone]: Parameters<Commit>): boolean {
    if (this.#isClosed || this.#jobs.length >= queuedWritesMax || this.#lease.freshId === undefined) return false;
    const checked = SqlEntryCheck.normalizeEntries(runId, entries);
    if ("reason" in checked || !this.#database.tables.dialect.canStore(runId)) return false;
    this.#jobs.push({ runId, entries: checked, onDone });
    if (this.#isDue) return true;
    // If no other run could share the commit, the end of a run need not wait.
    if (!checked.some(({ _tag }) => _tag === "RunEnded") || this.#lease.ownedCount <= 1) {
      this.#isDue = true;
      this.#times.scheduleSoon(() => this.#flush());
    } else if (this.#jobs.length === 1) this.#times.scheduleAfter(endPauseMs, () => this.#flush());
    return true;
  }

  /** Commits the remaining writes and closes. */
  close(): void {
    this.#isClosed = true;
    this.#flush();
  }

  #flush(): void {
    const jobs = this.#jobs;
    if (jobs.length === 0) return;
    const prepared = this.#prepare(jobs);
    const made = prepared !== undefined && prepared.rows.length > 0 && this.#database.step?.(prepared.rows);
    if (made === "locked" && !this.#isClosed && this.#locked < lockedMax) {
      this.#locked += 1;
      // Writes that arrive in the meantime join this commit.
      this.#times.scheduleAfter(lockedPauseMs, () => this.#flush());
      return;
    }
    [this.#jobs, this.#locked, this.#isDue] = [[], 0, false];
    if (made === true) SqlFailure.commits.updateUnsafe(1, this.#services);
    const committed = made === true ? prepared : undefined;
    if (committed !== undefined) updateLease(this.#lease, committed);
    for (const job of jobs) job.onDone(committed?.taken.has(job) === true ? "recorded" : "undecided");
  }

  /** Prepares a commit. Returns undefined without a valid lease, or if a write is not plain data. The slow path then finds the cause. */
  #prepare(jobs: ReadonlyArray<Job>): Prepared | undefined {
    const id = this.#lease.freshId;
    try {
      return id === undefined ? undefined : this.#encode(id, jobs);
    } catch {
      return undefined;
    }
  }

  #encode(id: string, jobs: ReadonlyArray<Job>): Prepared {
    const { dialect, textOf } = this.#database.tables;
    const runs = new Map<string, Open>();
    const taken = new Set<Job>();
    const rows: Array<RowStatement> = [];
    for (const job of jobs) {
      const found = runs.get(job.runId) ?? this.#open(id, job);
      const run = found && this.#fold(found, job);
      if (run === undefined) continue;
      runs.set(job.runId, run);
      taken.add(job);
    }
    for (const [runId, { before, owner, record }] of runs) {
      if (record === undefined || record === before?.record) continue;
      const [template, values] = SqlStore.rowStatement({ runId, before, record, owner }, id, dialect);
      rows.push([textOf(template), values]);
    }
    return { held: { id, beatAt: undefined }, rows, runs, taken };
  }

  /** Opens a new run, or one whose row is known to this process. */
  #open(id: string, job: Job): Open | undefined {
    const mine = this.#lease.findOwned(job.runId);
    if (mine === undefined) return openNew(id, job);
    if (mine.known === undefined) return undefined;
    const before = { ...SqlStore.inRow, ...mine.known, owner: id };
    return { before, record: mine.known.record, owner: id, driven: mine };
  }

  /** Applies a write to a copy of the run. Returns undefined if the write is refused or changes more than the run's own row. */
  #fold(run: Open, job: Job): Open | undefined {
    const folded = { ...run };
    if (apply(folded, job) !== undefined || folded.record === undefined) return undefined;
    return SqlParts.isOneRow(run.before?.record, folded.record) ? folded : undefined;
  }
}
