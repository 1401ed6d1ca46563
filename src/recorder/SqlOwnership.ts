/**
 * Finds runs that nobody drives, and gives them to who takes them over.
 */
import * as Effect from "effect/Effect";
import type { SqlClient } from "effect/sql/SqlClient";
import type { RecorderError } from "./RecorderError.ts";
import type { RunRecord } from "./RunRecord.ts";
import type { SqlDatabase } from "./SqlDatabase.ts";
import * as SqlFailure from "./SqlFailure.ts";
import type { SqlLease } from "./SqlLease.ts";
import * as SqlRuns from "./SqlRuns.ts";
import * as SqlStore from "./SqlStore.ts";

/** Takes a run over; see `RunRecorder.claim`. */
export const claim = (
  database: SqlDatabase,
  lease: SqlLease,
  runId: string,
  now: () => number,
): Effect.Effect<RunRecord, RecorderError> =>
  database
    .write(
      Effect.gen(function* () {
        const { sql } = database;
        const held = yield* lease.hold;
        const [owned] = yield* sql<Owned>`SELECT r.state, r.owner, l.fenced, l.expires_at
          FROM runs r LEFT JOIN leases l ON l.id = r.owner WHERE r.run_id = ${runId}`;
        if (owned === undefined) return yield* SqlFailure.refused("unknown_run", runId);
        if (owned.state === "ended") return yield* SqlFailure.refused("run_ended", runId);
        if (owned.owner === held || isAlive(owned, now())) return yield* SqlFailure.refused("owned", runId);
        if (owned.owner !== null) yield* lease.fence([owned.owner]);
        const stored = yield* SqlStore.load(sql, runId);
        if (stored === undefined) return yield* SqlFailure.refused("unknown_run", runId);
        yield* sql`UPDATE runs SET owner = ${held} WHERE run_id = ${runId}`;
        return { held, stored };
      }),
    )
    .pipe(
      Effect.map(({ held, stored: { record, version } }) => {
        lease.adopt(held);
        lease.drive(runId, held, { version, record });
        return record;
      }),
    );

/** Gives a claimed run back; see `RunRecorder.release`. */
export const release = (database: SqlDatabase, lease: SqlLease, runId: string): Effect.Effect<void, RecorderError> =>
  Effect.suspend(() => {
    const mine = lease.driven(runId);
    if (mine === undefined) return Effect.void;
    const { sql } = database;
    return Effect.map(
      database.write(sql`UPDATE runs SET owner = NULL WHERE run_id = ${runId} AND owner = ${mine.lease}`),
      () => lease.leave(runId),
    );
  });

/** Finds what nobody drives and nobody has decided; see `RunRecorder.orphans`. */
export const orphans = (
  database: SqlDatabase,
  lease: SqlLease,
  limit: number,
  now: () => number,
): Effect.Effect<ReadonlyArray<RunRecord>, RecorderError> =>
  database.write(
    Effect.gen(function* () {
      const records = yield* SqlRuns.readable(database.sql, limit, (after, count) =>
        abandoned(database.sql, lease.id ?? "", now(), after, count),
      );
      const owners = records.flatMap(({ owner }) => (owner === undefined ? [] : [owner]));
      yield* lease.fence([...new Set(owners)]);
      return records.map(({ record }) => record);
    }),
  );

interface Owned {
  readonly state: string;
  readonly owner: string | null;
  readonly fenced: number | null;
  readonly expires_at: number | null;
}

const isAlive = ({ fenced, expires_at }: Owned, now: number): boolean =>
  fenced !== null && Number(fenced) === 0 && expires_at !== null && Number(expires_at) > now;

/** Open runs that were not parked to wait, and whose driver's lease is over; never this process's own. */
const abandoned = (sql: SqlClient, own: string, now: number, after: number | undefined, count: number) =>
  sql<SqlStore.Row>`SELECT r.seq, r.run_id, r.version, r.owner, r.record
    FROM runs r LEFT JOIN leases l ON l.id = r.owner
    WHERE r.ended_at IS NULL AND (r.parked IS NULL OR r.parked = 'interrupted') AND r.seq > ${after ?? -1}
      AND (r.owner IS NULL OR (r.owner <> ${own} AND (l.id IS NULL OR l.fenced <> 0 OR l.expires_at <= ${now})))
    ORDER BY r.seq LIMIT ${count}`;
