/**
 * Finds runs that no process drives, and gives them to the process that takes them over.
 *
 * A run whose driver is silent is waited for, at most as long as `SqlLeaseWatch` needs to tell a dead process from a late one.
 * A caller that waits holds nothing, and may leave at any moment.
 */
import type * as Clock from "effect/Clock";
import { millis } from "effect/Duration";
import * as Effect from "effect/Effect";
import type { SqlError } from "effect/sql/SqlError";
import { monotonicMs } from "../MonotonicTime.ts";
import { waitedUntil } from "../Orphan.ts";
import { type RecorderError, refused } from "../RecorderError.ts";
import type { RunRecord } from "../RunRecord.ts";
import type { SqlDatabase } from "./SqlDatabase.ts";
import type * as SqlFailure from "./SqlFailure.ts";
import type { Held, Owner, SqlLease } from "./SqlLease.ts";
import type { LeaseStanding } from "./SqlLeaseWatch.ts";
import * as SqlRuns from "./SqlRuns.ts";
import * as SqlStore from "./SqlStore.ts";
import type { SqlTables } from "./SqlTables.ts";

/** The process that takes runs over, and where. */
export interface Ownership {
  readonly database: SqlDatabase;
  readonly lease: SqlLease;
  readonly clock: Clock.Clock;
  /** Longest that silent processes are waited for at once, in milliseconds; they are watched on. */
  readonly waitMs: number;
}

/** What a transaction came to. `silent`: leases that it needs are looked at again after a pause. */
type Step<A> =
  | { readonly _tag: "silent"; readonly owners: ReadonlyArray<Owner> }
  | { readonly _tag: "done"; readonly value: A };

/** Takes a run over; see `RunRecorder.claim`. */
export const claim = (given: Ownership, runId: string): Effect.Effect<RunRecord, RecorderError> =>
  waiting(given, (isLast) => claimNow(given, runId, isLast));

const claimNow = (given: Ownership, runId: string, isLast: boolean): Effect.Effect<Step<RunRecord>, RecorderError> => {
  const { database, lease } = given;
  return Effect.map(database.write(claiming(given, runId, isLast)), (found): Step<RunRecord> => {
    if (found._tag === "silent") {
      lease.looked(found.held, found.owners);
      return found;
    }
    const { held, record, version } = found;
    lease.adopt(held);
    lease.drive(runId, held.id, { version: version + 1, record });
    return { _tag: "done", value: record };
  });
};

const claiming = Effect.fnUntraced(function* ({ database, lease }: Ownership, runId: string, isLast: boolean) {
  const { runs, sql } = database.tables;
  const held = yield* lease.hold;
  const [owned] = yield* sql<Owned>`SELECT state, owner FROM ${runs} WHERE run_id = ${runId}`;
  if (owned === undefined) return yield* refused("unknown_run", runId);
  if (owned.state === "ended") return yield* refused("run_ended", runId);
  const mine = lease.driven(runId);
  // The stream that drives the run here does not know yet that it has lost the run, and would write on.
  const isHere = mine !== undefined && mine.lease !== held.id && mine.told === undefined;
  if (owned.owner === held.id || isHere) return yield* refused("owned", runId);
  const owners = owned.owner === null ? [] : yield* lease.owners;
  if (owned.owner !== null) {
    const standing = yield* standingOf(lease, owners, owned.owner);
    const isSilent = standing === "silent" && !isLast;
    if (standing !== "over" && !isSilent) return yield* refused("owned", runId);
    if (isSilent) return { _tag: "silent" as const, held: yield* lease.holdWatching, owners };
  }
  const stored = yield* SqlStore.load(database.tables, runId);
  if (stored === undefined) return yield* refused("unknown_run", runId);
  const { version } = stored;
  const record = waitedUntil(stored.record, owners.find(({ id }) => id === owned.owner)?.renewedAt);
  yield* record === stored.record
    ? SqlStore.own(database.tables, runId, version, held.id)
    : SqlStore.update(database.tables, runId, stored, record, held.id);
  return { _tag: "claimed" as const, held, version, record };
});

interface Owned {
  readonly state: string;
  readonly owner: string | null;
}

/** How the lease of an owner stands; one that is over is fenced. */
const standingOf = (
  lease: SqlLease,
  owners: ReadonlyArray<Owner>,
  owner: string,
): Effect.Effect<LeaseStanding, SqlError | SqlFailure.RowChanged> => {
  const found = owners.find(({ id }) => id === owner);
  // The lease that this process held until now is not among those of others.
  if (found === undefined) return Effect.succeed("held");
  if (found.gone) return Effect.succeed("over");
  const standing = lease.standing(found.lease);
  return standing === "over" ? Effect.as(lease.fence(found.lease), standing) : Effect.succeed(standing);
};

/**
 * Gives a claimed run back; see `RunRecorder.release`. While the store takes no writes, the run is kept, and given back at a
 * heartbeat. This process renews its lease while it lives, so that no other process could take the run.
 */
export const release = ({ database, lease }: Ownership, runId: string): Effect.Effect<void> =>
  Effect.suspend(() => {
    lease.part(runId);
    return Effect.catch(givenBack(database, lease, runId), ({ reason }) =>
      Effect.logWarning("a run could not be given back; it will be as soon as the store takes writes", {
        run_id: runId,
        reason,
      }),
    );
  });

/** Gives the runs back that could not be given back while the store took no writes. */
export const giveBack = (database: SqlDatabase, lease: SqlLease): Effect.Effect<void, RecorderError> =>
  Effect.suspend(() => Effect.forEach(lease.leaving, (runId) => givenBack(database, lease, runId), { discard: true }));

const givenBack = (database: SqlDatabase, lease: SqlLease, runId: string): Effect.Effect<void, RecorderError> =>
  Effect.suspend(() => {
    const mine = lease.driven(runId);
    if (mine === undefined) return Effect.void;
    const { runs, sql } = database.tables;
    // There is no such row where another process has the run by now: then it is lost, and stays lost.
    const given = sql`UPDATE ${runs} SET owner = NULL, version = version + 1
      WHERE run_id = ${runId} AND owner = ${mine.lease}`;
    return Effect.map(database.write(given), () => lease.leave(runId));
  });

/**
 * Finds what no process drives and no process has decided; see `RunRecorder.orphans`.
 *
 * @param waits false gives what there is now, with the runs of silent processes, and takes nothing from them; `all` waits
 *   also for processes that no beat was seen of
 */
export const orphans = (
  given: Ownership,
  limit: number,
  waits: boolean | "all",
): Effect.Effect<ReadonlyArray<RunRecord>, RecorderError> => {
  const { database, lease } = given;
  if (waits !== false) return waiting(given, (isLast) => orphansNow(given, limit, isLast, waits === "all"));
  const seen = Effect.gen(function* () {
    const lost = (yield* lease.owners).filter((it) => it.gone || isDoubtful(lease.standing(it.lease), false));
    return yield* abandoned(database.tables, lost, limit);
  });
  return database.read(seen);
};

const orphansNow = (
  { database, lease }: Ownership,
  limit: number,
  isLast: boolean,
  all: boolean,
): Effect.Effect<Step<ReadonlyArray<RunRecord>>, RecorderError> => {
  const found = Effect.gen(function* () {
    const owners = yield* lease.owners;
    const others = owners.filter(({ gone }) => !gone);
    const over = others.filter((it) => lease.standing(it.lease) === "over");
    for (const it of over) yield* lease.fence(it.lease);
    // Watched from the first time on: a caller that asks again and again knows of a dead process when its lease is over.
    const held = over.length < others.length ? yield* lease.holdWatching : undefined;
    if (!isLast && others.some((it) => isDoubtful(lease.standing(it.lease), all))) {
      return { _tag: "silent" as const, held, owners };
    }
    const lost = owners.filter((it) => it.gone || over.includes(it));
    return { _tag: "done" as const, held, owners, value: yield* abandoned(database.tables, lost, limit) };
  });
  const looked = ({ held, owners }: { readonly held: Held | undefined; readonly owners: ReadonlyArray<Owner> }) =>
    Effect.sync(() => held !== undefined && lease.looked(held, owners));
  return Effect.tap(database.write(found), looked);
};

const isDoubtful = (standing: LeaseStanding, all: boolean): boolean =>
  standing === "over" || standing === "silent" || (all && standing === "fresh");

/** Repeats a step until no lease that it needs is silent any more. A silent lease is held or over within one lease. */
const waiting = <A>(
  { clock, lease, waitMs }: Ownership,
  step: (isLast: boolean) => Effect.Effect<Step<A>, RecorderError>,
): Effect.Effect<A, RecorderError> =>
  Effect.gen(function* () {
    let until = Number.POSITIVE_INFINITY;
    while (true) {
      const now = monotonicMs(clock);
      const found = yield* step(now >= until);
      if (found._tag === "done") return found.value;
      until = Math.min(until, now + Math.min(waitMs, lease.longestMs(found.owners)));
      // A caller may be uninterruptible because it must not lose what it has claimed. Here it has claimed nothing.
      yield* Effect.interruptible(clock.sleep(millis(lease.pauseMs)));
    }
  });

/** Open runs that were not parked to wait and that have no driver, or one whose lease is over; oldest first. */
const abandoned = (tables: SqlTables, lost: ReadonlyArray<Owner>, limit: number) => {
  const { dialect, runs, sql } = tables;
  const undecided = sql`ended_at IS NULL AND (parked IS NULL OR parked = 'interrupted')`;
  const columns = dialect.row;
  const ids = lost.map(({ id }) => id);
  return Effect.map(
    SqlRuns.readable(tables, limit, (after, count) => {
      const unowned = sql`SELECT * FROM (SELECT ${columns} FROM ${runs}
        WHERE owner IS NULL AND ${undecided} AND seq > ${after ?? -1} ORDER BY seq LIMIT ${count}) AS a`;
      if (ids.length === 0) return sql<SqlStore.Row>`${unowned}`;
      // By owner, and not along all open runs: those of living processes are many.
      return sql<SqlStore.Row>`${unowned} UNION ALL SELECT * FROM (SELECT ${columns} FROM ${runs}
        WHERE ${sql.in("owner", ids)} AND ${undecided} AND seq > ${after ?? -1} ORDER BY +seq LIMIT ${count}) AS b
        ORDER BY seq LIMIT ${count}`;
    }),
    (found) => found.map(({ record }) => record),
  );
};
