/**
 * Finds runs that no process drives, and gives them to the process that takes them over.
 *
 * A run whose driver is silent is waited for, at most as long as `SqlLeaseWatch` needs to tell a dead process from a late one.
 * A caller that waits holds nothing, and may leave at any moment.
 */
import type * as Clock from "effect/Clock";
import type * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import { millis } from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import type { SqlError } from "effect/sql/SqlError";
import { monotonicMs } from "../MonotonicTime.ts";
import { waitedUntil } from "../Orphan.ts";
import { type RecorderError, refused } from "../RecorderError.ts";
import type { RunRecord } from "../RunRecord.ts";
import type { LeaseStanding } from "./lease/SqlLeaseWatch.ts";
import { listsOf } from "./postgres/SqlLists.ts";
import type { SqlDatabase } from "./SqlDatabase.ts";
import * as SqlFailure from "./SqlFailure.ts";
import type { Driven, Held, Owner, SqlLease } from "./SqlLease.ts";
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

/** Most runs that one transaction claims: whatever else a file is written with waits for it. */
const claimsMax = 100;

/** A claim that waits for its transaction. */
interface Claim {
  readonly runId: string;
  /** A silent driver is not waited for any longer. */
  readonly isLast: boolean;
  readonly done: Deferred.Deferred<Step<RunRecord>, RecorderError>;
  /** Its caller is gone. */
  isLeft: boolean;
  /** It is committed: this process drives the run. */
  isMade: boolean;
}

/**
 * Gives what takes runs over; see `RunRecorder.claim`. Claims that are ready within one turn of the scheduler are one transaction: a
 * process that has died leaves many runs, and each process that is left looks for them. Within it each is claimed, refused or waited
 * for by itself.
 */
export const claimer = (given: Ownership): Effect.Effect<(runId: string) => Effect.Effect<RunRecord, RecorderError>> =>
  Effect.map(Effect.context<never>(), (services) => {
    const claims = new Claims(given, services);
    return (runId) => waiting(given, (isLast) => claims.take(runId, isLast));
  });

class Claims {
  readonly #given: Ownership;
  readonly #services: Context.Context<never>;
  /** As many as callers wait. */
  #waiting: Array<Claim> = [];
  #isBusy = false;

  constructor(given: Ownership, services: Context.Context<never>) {
    this.#given = given;
    this.#services = services;
  }

  take(runId: string, isLast: boolean): Effect.Effect<Step<RunRecord>, RecorderError> {
    const taken = Effect.uninterruptibleMask((restore) => {
      const one: Claim = { runId, isLast, done: Deferred.makeUnsafe(), isLeft: false, isMade: false };
      this.#waiting.push(one);
      if (!this.#isBusy) {
        this.#isBusy = true;
        // In a fiber of its own: a caller may leave while the claims of others are made.
        Effect.runForkWith(this.#services)(this.#work);
      }
      return Effect.onInterrupt(restore(Deferred.await(one.done)), () => this.#leave(one));
    });
    return Effect.andThen(this.#given.database.free, taken);
  }

  /** A run that is claimed for a caller who is gone has no driver here, and is given back. */
  #leave(one: Claim): Effect.Effect<void> {
    return Effect.suspend(() => {
      one.isLeft = true;
      this.#waiting = this.#waiting.filter((it) => it !== one);
      return one.isMade ? release(this.#given, one.runId) : Effect.void;
    });
  }

  readonly #work: Effect.Effect<void> = Effect.gen({ self: this }, function* () {
    yield* Effect.yieldNow;
    while (this.#waiting.length > 0) yield* this.#commit(this.#waiting.splice(0, claimsMax));
    this.#isBusy = false;
  });

  #commit(claims: ReadonlyArray<Claim>): Effect.Effect<void> {
    const failed = (error: RecorderError) =>
      Effect.sync(() => {
        for (const { done } of claims) Deferred.doneUnsafe(done, Exit.fail(error));
      });
    return Effect.suspend(() => this.#given.database.write(claiming(this.#given, claims))).pipe(
      Effect.flatMap((found) => this.#made(found)),
      Effect.catch((error) =>
        // A claim that fails by itself (a damaged page) must not fail the others.
        claims.length > 1 && SqlFailure.isOfOne(error)
          ? Effect.forEach(claims, (one) => this.#commit([one]), { discard: true })
          : failed(error),
      ),
      // A defect must not end the work: every later claim would wait for ever.
      Effect.catchDefect((cause) => failed(SqlFailure.explained(cause, "the recorder"))),
    );
  }

  /** Takes note of what is committed, and tells the callers in the same step. */
  #made({ held, owners, verdicts }: Claimed): Effect.Effect<void> {
    const { lease } = this.#given;
    const [left, damage]: [Array<string>, Array<RecorderError>] = [[], []];
    if ([...verdicts.values()].includes("silent")) lease.looked(held, owners);
    else lease.adopt(held);
    for (const [one, verdict] of verdicts) {
      if (verdict === "silent") {
        Deferred.doneUnsafe(one.done, Exit.succeed({ _tag: "silent", owners }));
      } else if ("message" in verdict) {
        damage.push(verdict);
        Deferred.doneUnsafe(one.done, Exit.fail(verdict));
      } else {
        one.isMade = true;
        lease.drive(one.runId, held.id, verdict);
        if (one.isLeft) left.push(one.runId);
        Deferred.doneUnsafe(one.done, Exit.succeed({ _tag: "done", value: verdict.record }));
      }
    }
    return Effect.andThen(
      Effect.forEach(damage, SqlFailure.countDamage, { discard: true }),
      Effect.forEach(left, (runId) => release(this.#given, runId), { discard: true }),
    );
  }
}

/** A run as this process drives it from now on, or why it does not. */
type Taken = NonNullable<Driven["known"]> | RecorderError;

/** What a transaction has made of each claim. */
interface Claimed {
  readonly held: Held;
  readonly owners: ReadonlyArray<Owner>;
  readonly verdicts: ReadonlyMap<Claim, Taken | "silent">;
}

const claiming = Effect.fnUntraced(function* ({ database, lease }: Ownership, claims: ReadonlyArray<Claim>) {
  const { tables } = database;
  let held = yield* lease.hold;
  let owners: ReadonlyArray<Owner> | undefined;
  const verdicts = new Map<Claim, Taken | "silent">();
  const rows = new Map((yield* owned(tables, claims)).map((row) => [row.run_id, row]));
  const standings = new Map<string, LeaseStanding>();
  const free = new Map<string, Claim>();
  for (const one of claims) {
    const row = rows.get(one.runId);
    const refusal = free.has(one.runId) ? "owned" : refusalOf(lease, held, one.runId, row);
    if (refusal !== undefined) {
      verdicts.set(one, refused(refusal, one.runId));
      continue;
    }
    const owner = row?.owner ?? undefined;
    if (owner !== undefined) {
      owners ??= yield* lease.owners;
      const standing = standings.get(owner) ?? (yield* standingOf(lease, owners, owner));
      standings.set(owner, standing);
      if (standing !== "over") {
        verdicts.set(one, standing === "silent" && !one.isLast ? "silent" : refused("owned", one.runId));
        continue;
      }
    }
    free.set(one.runId, one);
  }
  const renewedAt = (runId: string) => owners?.find(({ id }) => id === rows.get(runId)?.owner)?.renewedAt;
  const taken = yield* taking(tables, [...free.keys()], held.id, renewedAt);
  for (const [runId, one] of free) verdicts.set(one, taken.get(runId) ?? refused("unknown_run", runId));
  if ([...verdicts.values()].includes("silent")) held = yield* lease.holdWatching;
  return { held, owners: owners ?? [], verdicts } satisfies Claimed;
});

/** Why a run is refused before it is asked how the lease of its owner stands. */
const refusalOf = (lease: SqlLease, held: Held, runId: string, row: Owned | undefined) => {
  if (row === undefined) return "unknown_run" as const;
  if (row.state === "ended") return "run_ended" as const;
  const mine = lease.driven(runId);
  // The stream that drives the run here does not know yet that it has lost the run, and would write on.
  const isHere = mine !== undefined && mine.lease !== held.id && mine.told === undefined;
  return row.owner === held.id || isHere || lease.isLeaving(runId) ? ("owned" as const) : undefined;
};

/** Gives runs to this process; a damaged one is its error. */
const taking = Effect.fnUntraced(function* (
  tables: SqlTables,
  runIds: ReadonlyArray<string>,
  held: string,
  renewedAt: (runId: string) => number | undefined,
) {
  const taken = new Map<string, Taken>();
  if (runIds.length === 0) return taken;
  const [all, waited]: [Array<{ runId: string; version: number }>, Array<SqlStore.Changed>] = [[], []];
  const rows = yield* rowsOf(tables, runIds);
  const found = yield* SqlStore.decoded(tables, rows);
  for (const [index, { run_id: runId }] of rows.entries()) {
    const result = found[index];
    if (result === undefined) continue;
    if (result._tag === "Failure") {
      taken.set(runId, result.failure);
      continue;
    }
    const before = { ...result.success, version: result.success.version + 1 };
    const record = waitedUntil(before.record, renewedAt(runId));
    all.push({ runId, version: result.success.version });
    taken.set(runId, { version: before.version, record, ...SqlStore.keptOf(before) });
    if (record !== before.record) waited.push({ runId, before, record, owner: held });
  }
  yield* own(tables, all, held);
  const kept = yield* SqlStore.save(tables, waited);
  for (const { before, record, runId } of waited)
    taken.set(runId, { version: (before?.version ?? 0) + 1, record, ...kept.get(runId) });
  return taken;
});

/** Gives runs as their versions were read to the process of a lease. */
export const own = Effect.fnUntraced(function* (
  { ask, dialect }: SqlTables,
  all: ReadonlyArray<{ readonly runId: string; readonly version: number }>,
  owner: string,
) {
  if (all.length === 0) return;
  const isTogether = dialect.name === "postgres";
  const rows = isTogether
    ? [yield* ask(ownTogether, [owner, ...listsOf(all, 2, ({ runId, version }) => [runId, version])])]
    : yield* Effect.forEach(all, ({ runId, version }) => ask(ownOne, [owner, runId, version]));
  if (rows.flat().length !== all.length) return yield* Effect.fail(new SqlFailure.RowChanged());
});

const ownOne = "UPDATE {runs} SET owner = ?, version = version + 1 WHERE run_id = ? AND version = ? RETURNING seq";

/** Rows are locked in their order: of two processes that each hold what the other waits for, one is undone by the server a second later. */
const ownTogether = `UPDATE {runs} AS r SET owner = ?, version = r.version + 1
  FROM (SELECT k.run_id FROM {runs} AS k JOIN unnest(?::text[], ?::text[]) AS v (run_id, version)
    ON k.run_id = v.run_id AND k.version = v.version::integer ORDER BY k.run_id FOR UPDATE OF k) AS l
  WHERE r.run_id = l.run_id RETURNING r.seq`;

interface Owned {
  readonly run_id: string;
  readonly state: string;
  readonly owner: string | null;
}

const owned = ({ ask, dialect, runs, sql }: SqlTables, claims: ReadonlyArray<Claim>) => {
  const runIds = [...new Set(claims.map(({ runId }) => runId))];
  return dialect.name === "postgres"
    ? ask<Owned>("SELECT run_id, state, owner FROM {runs} WHERE run_id = ANY (?::text[])", [runIds])
    : sql<Owned>`SELECT run_id, state, owner FROM ${runs} WHERE run_id IN ${sql.in(runIds)}`;
};

const rowsOf = ({ ask, dialect, runs, sql }: SqlTables, runIds: ReadonlyArray<string>) =>
  dialect.name === "postgres"
    ? ask<SqlStore.Row>(`SELECT ${dialect.head}, record, changed FROM {runs} WHERE run_id = ANY (?::text[])`, [runIds])
    : sql<SqlStore.Row>`SELECT ${dialect.row} FROM ${runs} WHERE run_id IN ${sql.in(runIds)}`;

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
  Effect.catch(givenBack(database, lease, runId), ({ reason }) =>
    Effect.logWarning("a run could not be given back; it will be as soon as the store takes writes", {
      run_id: runId,
      reason,
    }),
  );

/** Gives the runs back that could not be given back while the store took no writes. */
export const giveBack = (database: SqlDatabase, lease: SqlLease): Effect.Effect<void, RecorderError> =>
  Effect.suspend(() => Effect.forEach(lease.leaving, (runId) => givenBack(database, lease, runId), { discard: true }));

const givenBack = (database: SqlDatabase, lease: SqlLease, runId: string): Effect.Effect<void, RecorderError> =>
  // What is noted as under way has to be noted as over.
  Effect.uninterruptibleMask((restore) => {
    const mine = lease.part(runId);
    if (mine === undefined) return Effect.void;
    const { runs, sql } = database.tables;
    // There is no such row where another process has the run by now: then it is lost, and stays lost.
    const given = sql`UPDATE ${runs} SET owner = NULL, version = version + 1
      WHERE run_id = ${runId} AND owner = ${mine.lease} RETURNING seq`;
    return Effect.onExit(restore(database.write(given)), (exit) =>
      Effect.sync(() =>
        Exit.isSuccess(exit) ? lease.parted(runId, mine, exit.value.length > 0) : lease.stays(runId, mine),
      ),
    ).pipe(Effect.asVoid);
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
