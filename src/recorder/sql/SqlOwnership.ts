/**
 * Finds runs that no process owns, and claims them for the process that takes them over.
 *
 * A caller waits for a silent owner only as long as `SqlLeaseWatch` needs to distinguish a dead process from a late one. While it waits, a
 * caller holds no lock and can be interrupted at any time.
 */
import type * as Clock from "effect/Clock";
import type * as Context from "effect/Context";
import * as Deferred from "effect/Deferred";
import { millis } from "effect/Duration";
import * as Effect from "effect/Effect";
import * as Exit from "effect/Exit";
import type { SqlError } from "effect/sql/SqlError";
import { monotonicMs } from "../MonotonicTime.ts";
import { closeWait } from "../Orphan.ts";
import { type RecorderError, runError } from "../RecorderError.ts";
import type { RunRecord } from "../RunRecord.ts";
import type { LeaseStanding } from "./lease/SqlLeaseWatch.ts";
import { transpose } from "./postgres/SqlLists.ts";
import type { SqlDatabase } from "./SqlDatabase.ts";
import * as SqlFailure from "./SqlFailure.ts";
import type { Driven, Held, Owner, SqlLease } from "./SqlLease.ts";
import * as SqlRuns from "./SqlRuns.ts";
import * as SqlStore from "./SqlStore.ts";
import type { SqlTables } from "./SqlTables.ts";

/** The dependencies of a takeover. */
export interface Ownership {
  readonly database: SqlDatabase;
  readonly lease: SqlLease;
  readonly clock: Clock.Clock;
  /** Maximum wait for silent processes in one call, in milliseconds. The watch of these processes continues afterwards. */
  readonly waitMs: number;
}

/** Result of a transaction. `silent` means that it depends on leases that must be polled again after a pause. */
type Step<A> =
  | { readonly _tag: "silent"; readonly owners: ReadonlyArray<Owner> }
  | { readonly _tag: "done"; readonly value: A };

/** Maximum runs that one transaction claims. All other writes of a file wait for that transaction. */
const claimsMax = 100;

interface Claim {
  readonly runId: string;
  /** True to refuse the claim instead of waiting for a silent owner again. */
  readonly isLast: boolean;
  readonly done: Deferred.Deferred<Step<RunRecord>, RecorderError>;
  /** True if the caller has left. */
  isLeft: boolean;
  /** True once the claim is committed and this process owns the run. */
  isMade: boolean;
}

/**
 * Creates the implementation of `RunRecorder.claim`. A dead process leaves many runs, and every other process claims them, so claims that
 * are ready in one turn of the scheduler share a transaction. Each claim is granted, refused or delayed individually.
 */
export const makeClaim = (
  given: Ownership,
): Effect.Effect<(runId: string) => Effect.Effect<RunRecord, RecorderError>> =>
  Effect.map(Effect.context<never>(), (services) => {
    const claims = new Claims(given, services);
    return (runId) => retryWhileSilent(given, (isLast) => claims.claim(runId, isLast));
  });

class Claims {
  readonly #given: Ownership;
  readonly #services: Context.Context<never>;
  /** Has one entry per waiting caller. */
  #waiting: Array<Claim> = [];
  #isBusy = false;

  constructor(given: Ownership, services: Context.Context<never>) {
    this.#given = given;
    this.#services = services;
  }

  claim(runId: string, isLast: boolean): Effect.Effect<Step<RunRecord>, RecorderError> {
    const taken = Effect.uninterruptibleMask((restore) => {
      const one: Claim = { runId, isLast, done: Deferred.makeUnsafe(), isLeft: false, isMade: false };
      this.#waiting.push(one);
      if (!this.#isBusy) {
        this.#isBusy = true;
        // Uses a separate fiber, because a caller may leave while the claims of others are in flight.
        Effect.runForkWith(this.#services)(this.#work);
      }
      return Effect.onInterrupt(restore(Deferred.await(one.done)), () => this.#abandon(one));
    });
    return Effect.andThen(this.#given.database.free, taken);
  }

  /** Handles a caller that left. If its claim is committed, releases the run. */
  #abandon(one: Claim): Effect.Effect<void> {
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
    const failAll = (error: RecorderError) =>
      Effect.sync(() => {
        for (const { done } of claims) Deferred.doneUnsafe(done, Exit.fail(error));
      });
    return Effect.suspend(() => this.#given.database.write(claimRuns(this.#given, claims))).pipe(
      Effect.flatMap((found) => this.#applyClaims(found)),
      Effect.catch((error) =>
        // If a single claim fails (a damaged page), the other claims must not fail.
        claims.length > 1 && SqlFailure.isOneRunsFailure(error)
          ? Effect.forEach(claims, (one) => this.#commit([one]), { discard: true })
          : failAll(error),
      ),
      // A defect must not end the work. Otherwise every later claim would wait forever.
      Effect.catchDefect((cause) => failAll(SqlFailure.explain(cause, "the recorder"))),
    );
  }

  /** Applies a committed transaction and resolves its claims in the same step. */
  #applyClaims({ held, owners, verdicts }: Claimed): Effect.Effect<void> {
    const { lease } = this.#given;
    const [left, damage]: [Array<string>, Array<RecorderError>] = [[], []];
    if ([...verdicts.values()].includes("silent")) lease.observe(held, owners);
    else lease.adopt(held);
    for (const [one, verdict] of verdicts) {
      if (verdict === "silent") {
        Deferred.doneUnsafe(one.done, Exit.succeed({ _tag: "silent", owners }));
      } else if ("message" in verdict) {
        damage.push(verdict);
        Deferred.doneUnsafe(one.done, Exit.fail(verdict));
      } else {
        one.isMade = true;
        lease.addOwned(one.runId, held.id, verdict);
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

/** The state of a run that this process now owns, or the reason why it does not. */
type Taken = NonNullable<Driven["known"]> | RecorderError;

interface Claimed {
  readonly held: Held;
  readonly owners: ReadonlyArray<Owner>;
  readonly verdicts: ReadonlyMap<Claim, Taken | "silent">;
}

const claimRuns = Effect.fnUntraced(function* ({ database, lease }: Ownership, claims: ReadonlyArray<Claim>) {
  const { tables } = database;
  let held = yield* lease.hold;
  let owners: ReadonlyArray<Owner> | undefined;
  const verdicts = new Map<Claim, Taken | "silent">();
  const rows = new Map((yield* readOwners(tables, claims)).map((row) => [row.run_id, row]));
  const standings = new Map<string, LeaseStanding>();
  const free = new Map<string, Claim>();
  for (const one of claims) {
    const row = rows.get(one.runId);
    const refusal = free.has(one.runId) ? "owned" : refusalOf(lease, held, one.runId, row);
    if (refusal !== undefined) {
      verdicts.set(one, runError(refusal, one.runId));
      continue;
    }
    const owner = row?.owner ?? undefined;
    if (owner !== undefined) {
      owners ??= yield* lease.owners;
      const standing = standings.get(owner) ?? (yield* resolveStanding(lease, owners, owner));
      standings.set(owner, standing);
      if (standing !== "over") {
        verdicts.set(one, standing === "silent" && !one.isLast ? "silent" : runError("owned", one.runId));
        continue;
      }
    }
    free.set(one.runId, one);
  }
  const renewalTimeOf = (runId: string) => owners?.find(({ id }) => id === rows.get(runId)?.owner)?.renewedAt;
  const taken = yield* takeRuns(tables, [...free.keys()], held.id, renewalTimeOf);
  for (const [runId, one] of free) verdicts.set(one, taken.get(runId) ?? runError("unknown_run", runId));
  if ([...verdicts.values()].includes("silent")) held = yield* lease.holdWatching;
  return { held, owners: owners ?? [], verdicts } satisfies Claimed;
});

/** Returns the reason to refuse a run regardless of its owner's lease; undefined if there is none. */
const refusalOf = (lease: SqlLease, held: Held, runId: string, row: Owned | undefined) => {
  if (row === undefined) return "unknown_run" as const;
  if (row.state === "ended") return "run_ended" as const;
  const mine = lease.findOwned(runId);
  // This process has lost the run, but its stream here does not know that yet and would continue to write.
  const isHere = mine !== undefined && mine.lease !== held.id && mine.isNotified === undefined;
  return row.owner === held.id || isHere || lease.isReleasing(runId) ? ("owned" as const) : undefined;
};

/** Claims runs for this process. The result for a damaged run is its error. */
const takeRuns = Effect.fnUntraced(function* (
  tables: SqlTables,
  runIds: ReadonlyArray<string>,
  held: string,
  renewalTimeOf: (runId: string) => number | undefined,
) {
  const taken = new Map<string, Taken>();
  if (runIds.length === 0) return taken;
  const [all, waited]: [Array<{ runId: string; version: number }>, Array<SqlStore.Changed>] = [[], []];
  const rows = yield* readRows(tables, runIds);
  const found = yield* SqlStore.decodeRows(tables, rows);
  for (const [index, { run_id: runId }] of rows.entries()) {
    const result = found[index];
    if (result === undefined) continue;
    if (result._tag === "Failure") {
      taken.set(runId, result.failure);
      continue;
    }
    const before = { ...result.success, version: result.success.version + 1 };
    const record = closeWait(before.record, renewalTimeOf(runId));
    all.push({ runId, version: result.success.version });
    taken.set(runId, { version: before.version, record, ...SqlStore.toKept(before) });
    if (record !== before.record) waited.push({ runId, before, record, owner: held });
  }
  yield* assignOwner(tables, all, held);
  const kept = yield* SqlStore.save(tables, waited);
  for (const { before, record, runId } of waited)
    taken.set(runId, { version: (before?.version ?? 0) + 1, record, ...kept.get(runId) });
  return taken;
});

/** Assigns runs to a lease if their versions have not changed since they were read. */
export const assignOwner = Effect.fnUntraced(function* (
  { ask, dialect }: SqlTables,
  all: ReadonlyArray<{ readonly runId: string; readonly version: number }>,
  owner: string,
) {
  if (all.length === 0) return;
  const isTogether = dialect.name === "postgres";
  const rows = isTogether
    ? [yield* ask(ownTogether, [owner, ...transpose(all, 2, ({ runId, version }) => [runId, version])])]
    : yield* Effect.forEach(all, ({ runId, version }) => ask(ownOne, [owner, runId, version]));
  if (rows.flat().length !== all.length) return yield* Effect.fail(new SqlFailure.RowChanged());
});

const ownOne = "UPDATE {runs} SET owner = ?, version = version + 1 WHERE run_id = ? AND version = ? RETURNING seq";

/** Locks the rows in a fixed order. Otherwise two processes could deadlock, and the server would abort one of them only after a second. */
const ownTogether = `UPDATE {runs} AS r SET owner = ?, version = r.version + 1
  FROM (SELECT k.run_id FROM {runs} AS k JOIN unnest(?::text[], ?::text[]) AS v (run_id, version)
    ON k.run_id = v.run_id AND k.version = v.version::integer ORDER BY k.run_id FOR UPDATE OF k) AS l
  WHERE r.run_id = l.run_id RETURNING r.seq`;

interface Owned {
  readonly run_id: string;
  readonly state: string;
  readonly owner: string | null;
}

const readOwners = ({ ask, dialect, runs, sql }: SqlTables, claims: ReadonlyArray<Claim>) => {
  const runIds = [...new Set(claims.map(({ runId }) => runId))];
  return dialect.name === "postgres"
    ? ask<Owned>("SELECT run_id, state, owner FROM {runs} WHERE run_id = ANY (?::text[])", [runIds])
    : sql<Owned>`SELECT run_id, state, owner FROM ${runs} WHERE run_id IN ${sql.in(runIds)}`;
};

const readRows = ({ ask, dialect, runs, sql }: SqlTables, runIds: ReadonlyArray<string>) =>
  dialect.name === "postgres"
    ? ask<SqlStore.Row>(`SELECT ${dialect.head}, record, changed FROM {runs} WHERE run_id = ANY (?::text[])`, [runIds])
    : sql<SqlStore.Row>`SELECT ${dialect.row} FROM ${runs} WHERE run_id IN ${sql.in(runIds)}`;

/** Returns the standing of an owner's lease, and fences it if it has expired. */
const resolveStanding = (
  lease: SqlLease,
  owners: ReadonlyArray<Owner>,
  owner: string,
): Effect.Effect<LeaseStanding, SqlError | SqlFailure.RowChanged> => {
  const found = owners.find(({ id }) => id === owner);
  // A lease that is not listed is this process's own previous one, because only the leases of others are listed.
  if (found === undefined) return Effect.succeed("held");
  if (found.gone) return Effect.succeed("over");
  const standing = lease.standingOf(found.lease);
  return standing === "over" ? Effect.as(lease.fence(found.lease), standing) : Effect.succeed(standing);
};

/**
 * Releases a claimed run; see `RunRecorder.release`. If the store accepts no writes, a later heartbeat retries the release. The retry is
 * needed because this process keeps renewing its lease, so no other process could take the run.
 */
export const release = ({ database, lease }: Ownership, runId: string): Effect.Effect<void> =>
  Effect.catch(writeRelease(database, lease, runId), ({ reason }) =>
    Effect.logWarning("could not release a run yet; it is released as soon as the store accepts writes", {
      run_id: runId,
      reason,
    }),
  );

/** Releases the runs whose release failed while the store accepted no writes. */
export const releasePending = (database: SqlDatabase, lease: SqlLease): Effect.Effect<void, RecorderError> =>
  Effect.suspend(() =>
    Effect.forEach(lease.pendingReleases, (runId) => writeRelease(database, lease, runId), { discard: true }),
  );

const writeRelease = (database: SqlDatabase, lease: SqlLease, runId: string): Effect.Effect<void, RecorderError> =>
  // A release that was marked as in flight must be marked as ended, even if it is interrupted.
  Effect.uninterruptibleMask((restore) => {
    const mine = lease.beginRelease(runId);
    if (mine === undefined) return Effect.void;
    const { runs, sql } = database.tables;
    // If another process has the run by now, no row matches. The run is then lost, and stays lost.
    const given = sql`UPDATE ${runs} SET owner = NULL, version = version + 1
      WHERE run_id = ${runId} AND owner = ${mine.lease} RETURNING seq`;
    return Effect.onExit(restore(database.write(given)), (exit) =>
      Effect.sync(() =>
        Exit.isSuccess(exit)
          ? lease.completeRelease(runId, mine, exit.value.length > 0)
          : lease.failRelease(runId, mine),
      ),
    ).pipe(Effect.asVoid);
  });

/**
 * Finds runs that no process owns and whose next step no process has decided; see `RunRecorder.orphans`.
 *
 * @param waits false to return at once, including the runs of silent processes, without ending their leases; `all` to also wait for
 *   processes that have not shown a heartbeat yet
 */
export const orphans = (
  given: Ownership,
  limit: number,
  waits: boolean | "all",
): Effect.Effect<ReadonlyArray<RunRecord>, RecorderError> => {
  const { database, lease } = given;
  if (waits !== false)
    return retryWhileSilent(given, (isLast) => takeOrphansStep(given, limit, isLast, waits === "all"));
  const lookNow = Effect.gen(function* () {
    const lost = (yield* lease.owners).filter((it) => it.gone || isDoubtful(lease.standingOf(it.lease), false));
    return yield* readAbandoned(database.tables, lost, limit);
  });
  return database.read(lookNow);
};

const takeOrphansStep = (
  { database, lease }: Ownership,
  limit: number,
  isLast: boolean,
  all: boolean,
): Effect.Effect<Step<ReadonlyArray<RunRecord>>, RecorderError> => {
  const takeStep = Effect.gen(function* () {
    const owners = yield* lease.owners;
    const others = owners.filter(({ gone }) => !gone);
    const over = others.filter((it) => lease.standingOf(it.lease) === "over");
    for (const it of over) yield* lease.fence(it.lease);
    // The watch starts with the first call. A caller that polls then learns of a dead process as soon as its lease has expired.
    const held = over.length < others.length ? yield* lease.holdWatching : undefined;
    if (!isLast && others.some((it) => isDoubtful(lease.standingOf(it.lease), all))) {
      return { _tag: "silent" as const, held, owners };
    }
    const lost = owners.filter((it) => it.gone || over.includes(it));
    return { _tag: "done" as const, held, owners, value: yield* readAbandoned(database.tables, lost, limit) };
  });
  const observeOwners = ({
    held,
    owners,
  }: {
    readonly held: Held | undefined;
    readonly owners: ReadonlyArray<Owner>;
  }) => Effect.sync(() => held !== undefined && lease.observe(held, owners));
  return Effect.tap(database.write(takeStep), observeOwners);
};

const isDoubtful = (standing: LeaseStanding, all: boolean): boolean =>
  standing === "over" || standing === "silent" || (all && standing === "fresh");

/** Repeats a step until no lease that it depends on is silent. A silent lease becomes held or over within one lease. */
const retryWhileSilent = <A>(
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
      // A caller may be uninterruptible so that it does not lose a claim, but at this point it has claimed nothing.
      yield* Effect.interruptible(clock.sleep(millis(lease.pauseMs)));
    }
  });

/** Returns open runs, oldest first, that are not parked for an answer and whose owner is missing or has an expired lease. */
const readAbandoned = (tables: SqlTables, lost: ReadonlyArray<Owner>, limit: number) => {
  const { dialect, runs, sql } = tables;
  const undecided = sql`ended_at IS NULL AND (parked IS NULL OR parked = 'interrupted')`;
  const columns = dialect.row;
  const ids = lost.map(({ id }) => id);
  return Effect.map(
    SqlRuns.readRecords(tables, limit, (after, count) => {
      const unowned = sql`SELECT * FROM (SELECT ${columns} FROM ${runs}
        WHERE owner IS NULL AND ${undecided} AND seq > ${after ?? -1} ORDER BY seq LIMIT ${count}) AS a`;
      if (ids.length === 0) return sql<SqlStore.Row>`${unowned}`;
      // Searches by owner and does not scan all open runs, because live processes own many.
      return sql<SqlStore.Row>`${unowned} UNION ALL SELECT * FROM (SELECT ${columns} FROM ${runs}
        WHERE ${sql.in("owner", ids)} AND ${undecided} AND seq > ${after ?? -1} ORDER BY +seq LIMIT ${count}) AS b
        ORDER BY seq LIMIT ${count}`;
    }),
    (found) => found.map(({ record }) => record),
  );
};
