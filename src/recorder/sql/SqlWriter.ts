/**
 * Commits the writes of this process in groups: each returns when it is on disk (law L8), and many cost one commit.
 */
import type * as Cause from "effect/Cause";
import * as Deferred from "effect/Deferred";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import * as Fiber from "effect/Fiber";
import * as Metric from "effect/Metric";
import * as Queue from "effect/Queue";
import type * as Scope from "effect/Scope";
import type { SqlError } from "effect/sql/SqlError";
import { invalid, RecorderError, refused } from "../RecorderError.ts";
import * as RunRecord from "../RunRecord.ts";
import * as SqlEntryCheck from "./entry/SqlEntryCheck.ts";
import type { SqlDatabase } from "./SqlDatabase.ts";
import * as SqlFailure from "./SqlFailure.ts";
import type { Held, SqlLease } from "./SqlLease.ts";
import * as SqlStore from "./SqlStore.ts";

/** Most writes that wait for one commit, which takes all of them. A later writer waits to be let in. */
const queuedWritesMax = 256;

/**
 * How long a write waits for others to join its commit, in turns of the scheduler: every fiber that is ready to write does
 * so within one. A commit blocks the thread, so more time would only add to it.
 */
const gatherTurns = 1;

/** Writes entries of a run; returns when they are committed. */
export type Write = (runId: string, entries: ReadonlyArray<RunRecord.Entry>) => Effect.Effect<void, RecorderError>;

interface Job {
  readonly runId: string;
  readonly entries: ReadonlyArray<RunRecord.Entry>;
  readonly done: Deferred.Deferred<void, RecorderError>;
}

/** Starts the writer of a scope; what is queued when the scope closes is still committed. */
export const make = (database: SqlDatabase, lease: SqlLease): Effect.Effect<Write, never, Scope.Scope> =>
  Effect.gen(function* () {
    const queue = yield* Queue.bounded<Job, Cause.Done>(queuedWritesMax);
    const commit = commitAll(database, lease);
    const fiber = yield* Effect.forkScoped(work(queue, commit));
    yield* Effect.addFinalizer(() => Effect.andThen(Queue.end(queue), Fiber.await(fiber)));
    return (runId, entries) =>
      Effect.suspend(() => {
        if (entries.length === 0) return Effect.void;
        const checked = SqlEntryCheck.readable(runId, entries);
        if (!database.tables.dialect.keeps(runId)) return Effect.fail(invalid(runId, 0, unkept));
        if ("reason" in checked) return Effect.fail(checked);
        const done = Deferred.makeUnsafe<void, RecorderError>();
        return database.free.pipe(
          Effect.andThen(Queue.offer(queue, { runId, entries: checked, done })),
          Effect.flatMap((taken) => (taken ? Deferred.await(done) : Effect.fail(closed(runId)))),
        );
      });
  });

const unkept = ".run_id: expected a text without NUL and without half of a pair, which PostgreSQL does not keep";

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
      Effect.tap(({ refused }) => Effect.forEach(refused, SqlFailure.countDamage, { discard: true })),
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
    for (const { done } of jobs) Deferred.doneUnsafe(done, Exit.fail(error));
  });

/** A run inside of a transaction. */
interface Open {
  /** As the transaction found it; undefined for a new run. */
  readonly before: Omit<SqlStore.Stored, "seq"> | undefined;
  record: RunRecord.RunRecord | undefined;
  owner: string | undefined;
}

interface Committed {
  readonly held: Held;
  readonly runs: ReadonlyMap<string, Open | RecorderError>;
  /** Why each write was refused, in their order. */
  readonly refused: ReadonlyArray<RecorderError | undefined>;
}

const transaction = (
  database: SqlDatabase,
  lease: SqlLease,
  jobs: ReadonlyArray<Job>,
): Effect.Effect<Committed, SqlError | SqlFailure.RowChanged> =>
  Effect.gen(function* () {
    const { tables } = database;
    const held = yield* lease.hold;
    const heads = new Map(
      (yield* SqlStore.heads(tables, [...new Set(jobs.map(({ runId }) => runId))])).map((it) => [it.run_id, it]),
    );
    const runs = new Map<string, Open | RecorderError>();
    const refused: Array<RecorderError | undefined> = [];
    for (const job of jobs) {
      const run = runs.get(job.runId) ?? (yield* open(database, lease, held.id, job.runId, heads.get(job.runId)));
      runs.set(job.runId, run);
      refused.push("message" in run ? run : apply(run, job));
    }
    const changed: Array<SqlStore.Changed> = [];
    for (const [runId, run] of runs) {
      if ("message" in run || run.record === undefined || run.record === run.before?.record) continue;
      const { before, record } = run;
      changed.push({ runId, before, record, owner: before === undefined ? held.id : run.owner });
    }
    yield* SqlStore.save(tables, changed);
    return { held, runs, refused };
  });

const open = (
  database: SqlDatabase,
  lease: SqlLease,
  held: string,
  runId: string,
  head: SqlStore.Head | undefined,
): Effect.Effect<Open | RecorderError, SqlError> => {
  if (head === undefined) return Effect.succeed({ before: undefined, record: undefined, owner: held });
  const mine = lease.driven(runId);
  const isLost = mine !== undefined && mine.lease !== held;
  if (isLost || (head.owner !== null && head.owner !== held)) {
    return Effect.succeed(refused("fenced", runId));
  }
  const owner = head.owner ?? undefined;
  if (mine?.known?.version === head.version) {
    const before = { ...mine.known, owner };
    return Effect.succeed({ before, record: before.record, owner });
  }
  return SqlStore.load(database.tables, runId).pipe(
    Effect.map((stored) => ({ before: stored, record: stored?.record, owner })),
    Effect.catchIf((error) => error instanceof RecorderError, Effect.succeed),
  );
};

/** Folds a write into its run, whole or not at all. */
const apply = (run: Open, { entries, runId }: Job): RecorderError | undefined => {
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
  for (const [index, { done }] of jobs.entries()) {
    const failed = committed.refused[index];
    Deferred.doneUnsafe(done, failed === undefined ? Exit.void : Exit.fail(failed));
  }
};

const remember = (lease: SqlLease, { held, runs }: Committed): void => {
  lease.adopt(held);
  for (const [runId, run] of runs) {
    if ("message" in run) {
      if (run.reason === "fenced") lease.tell(runId);
      continue;
    }
    if (run.record === undefined) continue;
    if (run.owner !== held.id) {
      lease.leave(runId);
      continue;
    }
    const version = (run.before?.version ?? 0) + (run.record === run.before?.record ? 0 : 1);
    lease.drive(runId, held.id, { version, record: run.record });
  }
};
