/**
 * Commits the writes of this process in groups: each returns when it is on disk (law L8), and many cost one commit.
 *
 * `make` gives the way that every write can go. What goes its usual way rests on what this process knows: a run that begins, or whose
 * record it knows and drives, under a lease that is good. The rows say whether that still is so; where they say otherwise, the
 * group begins anew and reads them first.
 *
 * `makeTogether` gives the short way of a file on this machine, where a commit takes no more than one step: what is ready to be written
 * within one turn of the scheduler shares it. There, only what goes its usual way is written. Anything else is left to the other way,
 * which asks for more, waits and explains.
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
import { endsWithin, inRealTime } from "../MonotonicTime.ts";
import { invalid, RecorderError, refused } from "../RecorderError.ts";
import * as RunRecord from "../RunRecord.ts";
import type { Told, WriteTogether } from "../RunRecorder.ts";
import * as SqlEntryCheck from "./entry/SqlEntryCheck.ts";
import * as SqlParts from "./postgres/SqlParts.ts";
import type { SqlDatabase } from "./SqlDatabase.ts";
import * as SqlFailure from "./SqlFailure.ts";
import type { Driven, Held, SqlLease } from "./SqlLease.ts";
import * as SqlStore from "./SqlStore.ts";
import type { RowStatement } from "./sqlite/SqlNodeSqlite.ts";

/** Most writes that wait for one commit, which takes all of them. A later writer waits to be let in. */
const queuedWritesMax = 256;

/**
 * How long a write waits for others to join its commit, in turns of the scheduler: every fiber that is ready to write does
 * so within one. A commit blocks the thread, so more time would only add to it.
 */
const gatherTurns = 1;

/**
 * How often a group finds the file locked by another process's commit before its writes go the way that waits, and how long it leaves
 * the thread to others in between, in milliseconds. That way costs each write several times what its share of a group does.
 */
const lockedMax = 8;
const lockedPauseMs = 1;

/** How long the end of a run waits for another run's write, in milliseconds: a commit is a third of what a short stream costs the store. */
const endPauseMs = 1;

/** Writes entries of a run; returns when they are committed. */
export type Write = (runId: string, entries: ReadonlyArray<RunRecord.Entry>) => Effect.Effect<void, RecorderError>;

/** Entries of a run that are to be written. */
interface Entries {
  readonly runId: string;
  readonly entries: ReadonlyArray<RunRecord.Entry>;
}

interface Job extends Entries {
  readonly told: Told;
}

/** How a process writes. */
export interface Writer {
  readonly write: Write;
  /** The same for a caller without a fiber; undefined where a write has to look at who calls it. */
  readonly together: WriteTogether | undefined;
}

/**
 * Starts the writer of a scope; what is queued when the scope closes is still committed, where that comes to its end in time.
 *
 * @param closeMs so long it is waited for, in milliseconds
 */
export const make = (
  database: SqlDatabase,
  lease: SqlLease,
  closeMs: number,
): Effect.Effect<Writer, never, Scope.Scope> =>
  Effect.gen(function* () {
    const queue = yield* Queue.bounded<Job, Cause.Done>(queuedWritesMax);
    const commit = commitAll(database, lease);
    const fiber = yield* Effect.forkDetach(work(queue, commit));
    yield* Effect.addFinalizer(() => Effect.andThen(Queue.end(queue), endsWithin(Fiber.join(fiber), closeMs)));
    const { dialect } = database.tables;
    const write: Write = (runId, entries) =>
      Effect.suspend(() => {
        if (entries.length === 0) return Effect.void;
        const checked = SqlEntryCheck.readable(runId, entries);
        if (!dialect.keeps(runId)) return Effect.fail(invalid(runId, 0, `.run_id: expected ${dialect.keepable}`));
        if ("reason" in checked) return Effect.fail(checked);
        const done = Deferred.makeUnsafe<void, RecorderError>();
        const told: Told = (_, why) => Deferred.doneUnsafe(done, why === undefined ? Exit.void : Exit.fail(why));
        return database.free.pipe(
          Effect.andThen(Queue.offer(queue, { runId, entries: checked, told })),
          Effect.flatMap((taken) => (taken ? Deferred.await(done) : Effect.fail(closed(runId)))),
        );
      });
    const together: WriteTogether = (runId, entries, told) => {
      const checked = SqlEntryCheck.readable(runId, entries);
      if ("reason" in checked || !dialect.keeps(runId)) return false;
      return Queue.offerUnsafe(queue, { runId, entries: checked, told });
    };
    // Whether a caller is inside of a transaction that a file has to wait for, its fiber says.
    return { write, together: dialect.name === "postgres" ? together : undefined };
  });

const closed = (run_id: string): RecorderError =>
  new RecorderError({ reason: "unavailable", run_id, message: `${run_id}: the recorder is closed` });

type Commit = (jobs: ReadonlyArray<Job>) => Effect.Effect<void>;

/** An interrupted writer still commits its queue: what is in it has happened. */
const work = (queue: Queue.Queue<Job, Cause.Done>, commit: Commit): Effect.Effect<void> =>
  Effect.gen(function* () {
    while (true) {
      const first = yield* Queue.take(queue);
      for (let turn = 0; turn < gatherTurns; turn += 1) yield* Effect.yieldNow;
      const more = yield* Queue.clear(queue);
      yield* Effect.uninterruptible(commit([first, ...more]));
    }
  }).pipe(Effect.ignore);

const commitAll =
  (database: SqlDatabase, lease: SqlLease): Commit =>
  (jobs) =>
    database.write(transaction(database, lease, jobs)).pipe(
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
        // A write that fails by itself (a damaged page, a refused value) must not fail the others.
        if (jobs.length > 1 && SqlFailure.isOfOne(error)) {
          return Effect.forEach(jobs, (job) => commitAll(database, lease)([job]), { discard: true });
        }
        return failAll(jobs, error);
      }),
      // A defect must not end the writer: every later write would wait for ever.
      Effect.catchDefect((cause) => failAll(jobs, SqlFailure.explained(cause, "the recorder"))),
    );

const failAll = (jobs: ReadonlyArray<Job>, error: RecorderError): Effect.Effect<void> =>
  Effect.sync(() => {
    for (const { told } of jobs) told(false, error);
  });

/** A run inside of a transaction. */
interface Open {
  /** As the transaction found it; undefined for a new run. */
  readonly before: SqlStore.Stored | undefined;
  record: RunRecord.RunRecord | undefined;
  owner: string | undefined;
  /** This process has lost the run, and another one has given it back since. */
  readonly isLost?: boolean;
  /** As this process drove it when the transaction began. */
  readonly driven?: Driven | undefined;
}

interface Committed {
  readonly held: Held;
  readonly runs: ReadonlyMap<string, Open | RecorderError>;
  readonly kept: SqlStore.Kept;
  /** Why each write was refused, in their order. */
  readonly refused: ReadonlyArray<RecorderError | undefined>;
}

/** The transaction of a group. It rests on what this process knows once, and reads every row where it has to be run again. */
const transaction = (
  database: SqlDatabase,
  lease: SqlLease,
  jobs: ReadonlyArray<Job>,
): Effect.Effect<Committed, SqlError | SqlFailure.RowChanged> => {
  let tried = false;
  return Effect.suspend(() => {
    if (tried || database.tables.dialect.name !== "postgres") return written(database, lease, jobs, false);
    tried = true;
    // A run that begins and is on record already is one of which this process knew too little.
    return Effect.catchIf(written(database, lease, jobs, true), isTaken, () =>
      Effect.fail(new SqlFailure.RowChanged()),
    );
  });
};

/** Whether a row of that key is there already. */
const isTaken = (error: unknown): boolean => isSqlError(error) && error.reason._tag === "UniqueViolation";

const written = (
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
      const run = trusts ? usual(lease, held.id, job) : undefined;
      if (run === undefined) asked.add(job.runId);
      else runs.set(job.runId, run);
    }
    const found = asked.size === 0 ? [] : yield* SqlStore.heads(tables, [...asked]);
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

/** A run that begins. Where its id is on record, the statement that adds its row fails. */
const beginning = (owner: string, { entries }: Entries): Open | undefined =>
  entries[0]?._tag === "RunStarted" ? { before: undefined, record: undefined, owner } : undefined;

/** A run of which this process knows what its row says, or one that begins; undefined where its row has to be read. */
const usual = (lease: SqlLease, held: string, write: Entries): Open | undefined => {
  const mine = lease.driven(write.runId);
  if (mine === undefined) return beginning(held, write);
  // Of a run that was driven under another lease nothing is known any more.
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
  const mine = lease.driven(runId);
  if (head === undefined) return Effect.succeed({ before: undefined, record: undefined, owner: held, driven: mine });
  const isLost = mine !== undefined && mine.lease !== held;
  if (head.owner !== null && (isLost || head.owner !== held)) return Effect.succeed(refused("fenced", runId));
  const owner = head.owner ?? undefined;
  if (!isLost && mine?.known?.version === head.version) {
    const before = { ...SqlStore.placeOf(head), ...mine.known, owner };
    return Effect.succeed({ before, record: before.record, owner, driven: mine });
  }
  const lossFirst = (damage: RecorderError) => Effect.succeed(isLost ? refused("fenced", runId) : damage);
  return SqlStore.load(database.tables, runId).pipe(
    Effect.map((stored) => ({ before: stored, record: stored?.record, owner, isLost, driven: mine })),
    Effect.catchIf((error) => error instanceof RecorderError, lossFirst),
  );
};

/** Folds a write into its run, whole or not at all. */
const apply = (run: Open, { entries, runId }: Entries): RecorderError | undefined => {
  if (run.isLost === true && !RunRecord.isLastWord(run.record, entries)) return refused("fenced", runId);
  // Without an owner the process has given the run back while this write was under way.
  const record = RunRecord.applyAll(run.record, entries, run.owner === undefined);
  if (typeof record === "string") return refused(record, runId);
  run.record = record;
  // A claimed run may still be parked: only its driver's own word gives it back.
  if (entries.some(RunRecord.givesBack)) run.owner = undefined;
  return undefined;
};

const settle = (lease: SqlLease, jobs: ReadonlyArray<Job>, committed: Committed): void => {
  remember(lease, committed);
  for (const [index, { told }] of jobs.entries()) {
    const why = committed.refused[index];
    told(why === undefined, why);
  }
};

/** Takes note of what a transaction has committed. */
const remember = (
  lease: SqlLease,
  { held, kept, runs }: Pick<Committed, "held" | "runs"> & Partial<Committed>,
): void => {
  lease.adopt(held);
  for (const [runId, run] of runs) {
    if ("message" in run) {
      if (run.reason === "fenced") lease.tell(runId);
      continue;
    }
    if (run.record === undefined) continue;
    if (run.owner !== held.id) {
      lease.leave(runId, run.driven);
      continue;
    }
    const version = (run.before?.version ?? 0) + Number(run.record !== run.before?.record);
    const where = kept?.get(runId) ?? (kept && run.before && SqlStore.keptOf(run.before));
    lease.drive(runId, held.id, { version, record: run.record, ...where });
  }
};

/** Gives what commits writes of a scope together; undefined where a transaction waits for a server or for the program. */
export const makeTogether = (
  database: SqlDatabase,
  lease: SqlLease,
): Effect.Effect<WriteTogether | undefined, never, Scope.Scope> =>
  Effect.gen(function* () {
    if (database.step === undefined) return undefined;
    const services = yield* Effect.context<never>();
    const dispatcher = (yield* Scheduler.Scheduler).makeDispatcher();
    const group = new SqlGroup(database, lease, services, {
      soon: (flush) => dispatcher.scheduleTask(flush, 0),
      // A group is no fiber: it would cost each write more than its share of a commit.
      after: (ms, flush) => void Effect.runForkWith(services)(Effect.andThen(inRealTime(ms), Effect.sync(flush))),
    });
    yield* Effect.addFinalizer(() => Effect.sync(() => group.close()));
    return (runId, entries, told) => group.take(runId, entries, told);
  });

/** What a commit is to write. */
interface Prepared {
  readonly held: Held;
  readonly rows: ReadonlyArray<RowStatement>;
  readonly runs: ReadonlyMap<string, Open>;
  readonly taken: ReadonlySet<Job>;
}

/** When a group is committed. */
interface Times {
  /** In a step of its own, once what is ready to write has done so. */
  readonly soon: (flush: () => void) => void;
  /** After so long, in milliseconds of real time: a lock takes that, also where a test moves the clock. */
  readonly after: (ms: number, flush: () => void) => void;
}

class SqlGroup {
  readonly #database: SqlDatabase;
  readonly #lease: SqlLease;
  readonly #services: Context.Context<never>;
  readonly #times: Times;
  /** At most `queuedWritesMax`. */
  #jobs: Array<Job> = [];
  #locked = 0;
  /** These are committed soon: one of them is no end. */
  #isDue = false;
  #isClosed = false;

  constructor(database: SqlDatabase, lease: SqlLease, services: Context.Context<never>, times: Times) {
    this.#database = database;
    this.#lease = lease;
    this.#services = services;
    this.#times = times;
  }

  /** Takes a write into the next commit; see `WriteTogether`. */
  take(...[runId, entries, told]: Parameters<WriteTogether>): boolean {
    if (this.#isClosed || this.#jobs.length >= queuedWritesMax || this.#lease.steady === undefined) return false;
    const checked = SqlEntryCheck.readable(runId, entries);
    if ("reason" in checked || !this.#database.tables.dialect.keeps(runId)) return false;
    this.#jobs.push({ runId, entries: checked, told });
    if (this.#isDue) return true;
    // An end that no other run is there to share a commit with waits for nothing.
    if (!checked.some(({ _tag }) => _tag === "RunEnded") || this.#lease.drives <= 1) {
      this.#isDue = true;
      this.#times.soon(() => this.#flush());
    } else if (this.#jobs.length === 1) this.#times.after(endPauseMs, () => this.#flush());
    return true;
  }

  /** What was taken is still committed. */
  close(): void {
    this.#isClosed = true;
    this.#flush();
  }

  #flush(): void {
    const jobs = this.#jobs;
    if (jobs.length === 0) return;
    const prepared = this.#prepared(jobs);
    const made = prepared !== undefined && prepared.rows.length > 0 && this.#database.step?.(prepared.rows);
    if (made === "locked" && !this.#isClosed && this.#locked < lockedMax) {
      this.#locked += 1;
      // What comes meanwhile joins these.
      this.#times.after(lockedPauseMs, () => this.#flush());
      return;
    }
    [this.#jobs, this.#locked, this.#isDue] = [[], 0, false];
    if (made === true) SqlFailure.commits.updateUnsafe(1, this.#services);
    const committed = made === true ? prepared : undefined;
    if (committed !== undefined) remember(this.#lease, committed);
    for (const job of jobs) job.told(committed?.taken.has(job) === true);
  }

  /** Undefined without a lease that is good, and where a write is no data: which one, the other way finds out. */
  #prepared(jobs: ReadonlyArray<Job>): Prepared | undefined {
    const id = this.#lease.steady;
    try {
      return id === undefined ? undefined : this.#encoded(id, jobs);
    } catch {
      return undefined;
    }
  }

  #encoded(id: string, jobs: ReadonlyArray<Job>): Prepared {
    const { dialect, textOf } = this.#database.tables;
    const runs = new Map<string, Open>();
    const taken = new Set<Job>();
    const rows: Array<RowStatement> = [];
    for (const job of jobs) {
      const found = runs.get(job.runId) ?? this.#open(id, job);
      const run = found && this.#folded(found, job);
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

  /** A run that begins, or one of which this process knows what its row says. */
  #open(id: string, job: Job): Open | undefined {
    const mine = this.#lease.driven(job.runId);
    if (mine === undefined) return beginning(id, job);
    if (mine.known === undefined) return undefined;
    const before = { ...SqlStore.inRow, ...mine.known, owner: id };
    return { before, record: mine.known.record, owner: id, driven: mine };
  }

  /** The run with a write; undefined where the write is refused, or changes what does not stand in the run's own row. */
  #folded(run: Open, job: Job): Open | undefined {
    const folded = { ...run };
    if (apply(folded, job) !== undefined || folded.record === undefined) return undefined;
    return SqlParts.isOneRow(run.before?.record, folded.record) ? folded : undefined;
  }
}
