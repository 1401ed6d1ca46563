/**
 * Keeps deliveries in PostgreSQL. Each call is one statement that is its own transaction: nothing here rests on what another one has read.
 *
 * The tables are not logged: a response that may be had again for a minute costs no write-ahead log, and no commit waits for the disk.
 */
import * as Clock from "effect/Clock";
import * as Effect from "effect/Effect";
import type { SqlError } from "effect/sql/SqlError";
import { realClock } from "../MonotonicTime.ts";
import type { RecorderError } from "../RecorderError.ts";
import * as SqlFailure from "../sql/SqlFailure.ts";
import type { SqlTables } from "../sql/SqlTables.ts";
import type { Delivery, DeliveryLook, DeliveryStanding, DeliveryStore, DeliveryWish } from "./DeliveryStore.ts";

/** Most parts that one look brings, and most deliveries of one request. */
const lookMax = 32;
const foundMax = 8;

/** A live delivery whose owner is silent is kept for so much longer than its run lingers, in milliseconds. */
export const silentKeptMs = 60_000;

/**
 * Makes the store.
 *
 * @param place the database, as a person knows it
 * @param secret of all gateways over it
 */
export const make = (tables: SqlTables, place: string, secret: string): DeliveryStore["Service"] => {
  const asked = asking(tables, place);
  const done = (template: string, values: Values) => Effect.asVoid(asked(template, values));
  return {
    secret,
    begin: (all) =>
      done(begin, [
        ...columns(all, ["run_id", "node", "request"]),
        all.map(({ named }) => named ?? ""),
        all.map(({ salt }) => base64(salt)),
        all.map(({ lock }) => base64(lock)),
        all.map((it) => String(it.linger_ms)),
      ]),
    append: (parts) =>
      done(append, [
        ...columns(parts, ["run_id"]),
        parts.map(({ n }) => String(n)),
        parts.map(({ at }) => String(at)),
        parts.map(({ sealed }) => base64(sealed)),
      ]),
    beat: (sizes) =>
      Effect.map(
        asked<{ readonly run_id: string }>(beat, [[...sizes.keys()], [...sizes.values()].map(String)]),
        (rows) => new Set(rows.map((row) => row.run_id)),
      ),
    ended: (all) => done(ended, [...columns(all, ["run_id", "state"]), all.map(({ bytes }) => String(bytes))]),
    drop: (runId) => done("DELETE FROM {deliveries} WHERE run_id = ?", [runId]),
    wishes: (node) => asked<DeliveryWish>(wishes, [node]),
    answer: (runId, wish, granted) => done(granted ? grant : refuse, [runId, wish]),
    unseat: (runId) => done("UPDATE {deliveries} SET reader = NULL WHERE run_id = ?", [runId]),
    find: (by) =>
      Effect.map(
        "runId" in by ? asked<FoundRow>(`${found} run_id = ?`, [by.runId]) : asked<FoundRow>(ofRequest, [by.request]),
        (rows) => rows.map((row): Delivery => ({ ...row, named: row.named === "" ? undefined : row.named })),
      ),
    wish: (runId, wish, how) => done(wished, [wish, how, runId]),
    leave: (runId, reader) => done(left, [reader, reader, runId]),
    renew: (runId, reader) => done(renewed, [runId, reader]),
    standing: (runId) => Effect.map(asked<DeliveryStanding>(standing, [runId]), ([row]) => row),
    // The standing is read with the parts: what had ended by then has all of its parts there.
    look: (runId, from) =>
      Effect.map(
        "n" in from ? asked<LookRow>(lookedFrom, [from.n, runId]) : asked<LookRow>(lookedAt, [from.at, runId]),
        lookOf,
      ),
    forget: Effect.andThen(
      done("DELETE FROM {deliveries} WHERE expires_at < now()", []),
      Effect.map(
        asked<{ readonly bytes: number }>(
          "SELECT COALESCE(sum(bytes), 0)::double precision AS bytes FROM {deliveries}",
          [],
        ),
        ([row]) => row?.bytes ?? 0,
      ),
    ),
  };
};

type Values = ReadonlyArray<string | number | null | ReadonlyArray<string>>;

/** Asks in real time: the socket is. */
const asking =
  (tables: SqlTables, place: string) =>
  <Row extends object>(template: string, values: Values): Effect.Effect<ReadonlyArray<Row>, RecorderError> =>
    tables.ask<Row>(template, values).pipe(
      Effect.provideService(Clock.Clock, realClock),
      Effect.mapError((error: SqlError) => SqlFailure.explained(error, place)),
      Effect.catchDefect((defect) => Effect.fail(SqlFailure.explained(defect, place))),
      Effect.withTracerEnabled(false),
    );

const base64 = (bytes: Uint8Array): string => Buffer.from(bytes).toString("base64");

const columns = <Name extends string>(rows: ReadonlyArray<Record<Name, string>>, names: ReadonlyArray<Name>) =>
  names.map((name) => rows.map((row) => row[name]));

interface FoundRow extends Omit<Delivery, "named"> {
  readonly named: string;
}

interface LookRow extends DeliveryStanding {
  readonly n: number | null;
  readonly at: number | null;
  readonly sealed: Uint8Array | null;
}

/** A delivery without parts has one row of nulls. */
const lookOf = (rows: ReadonlyArray<LookRow>): DeliveryLook => ({
  standing: rows[0],
  parts: rows.flatMap(({ at, n, sealed }) => (n === null || at === null || sealed === null ? [] : [{ n, at, sealed }])),
});

/** When a delivery expires that lives, as its owner knows no better. */
const kept = (linger: string) => `now() + (${linger} + ${silentKeptMs}) * interval '1 millisecond'`;

const begin = `INSERT INTO {deliveries} (run_id, node, request, named, salt, lock, linger_ms, state, expires_at)
  SELECT v.run_id, v.node, v.request, v.named, decode(v.salt, 'base64'), decode(v.lock, 'base64'),
    v.linger::double precision, 'live', ${kept("v.linger::double precision")}
  FROM unnest(?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[], ?::text[])
    AS v (run_id, node, request, named, salt, lock, linger)
  ON CONFLICT (run_id) DO NOTHING`;

/** Parts of a delivery that is gone are dropped with it. */
const append = `INSERT INTO {deliveryparts} (run_id, n, at, sealed)
  SELECT v.run_id, v.n::integer, v.at::integer, decode(v.sealed, 'base64')
  FROM unnest(?::text[], ?::text[], ?::text[], ?::text[]) AS v (run_id, n, at, sealed)
  WHERE EXISTS (SELECT 1 FROM {deliveries} d WHERE d.run_id = v.run_id)
  ON CONFLICT (run_id, n) DO NOTHING`;

const beat = `UPDATE {deliveries} d SET beats = d.beats + 1, bytes = v.bytes::integer, expires_at = ${kept("d.linger_ms")}
  FROM unnest(?::text[], ?::text[]) AS v (run_id, bytes) WHERE d.run_id = v.run_id RETURNING d.run_id`;

const ended = `UPDATE {deliveries} d SET state = v.state, bytes = v.bytes::integer,
    expires_at = now() + d.linger_ms * interval '1 millisecond'
  FROM unnest(?::text[], ?::text[], ?::text[]) AS v (run_id, state, bytes) WHERE d.run_id = v.run_id`;

const wishes = `SELECT run_id, wish, wish_how, reader, reader_beats FROM {deliveries}
  WHERE node = ? AND state = 'live' AND (wish IS NOT NULL OR reader IS NOT NULL)`;

const grant = `UPDATE {deliveries} SET reader = wish, wish = NULL, reader_beats = 0 WHERE run_id = ? AND wish = ?`;

const refuse = `UPDATE {deliveries} SET refused = wish, wish = NULL WHERE run_id = ? AND wish = ?`;

const found = "SELECT run_id, node, request, named, salt, lock, linger_ms, state FROM {deliveries} WHERE";

const ofRequest = `${found} request = ? ORDER BY expires_at DESC LIMIT ${foundMax}`;

const wished = `UPDATE {deliveries} SET wish = ?, wish_how = ? WHERE run_id = ?`;

const left = `UPDATE {deliveries} SET reader = NULLIF(reader, ?), wish = NULLIF(wish, ?) WHERE run_id = ?`;

const renewed = `UPDATE {deliveries} SET reader_beats = reader_beats + 1 WHERE run_id = ? AND reader = ?`;

const standing = "SELECT state, beats, reader, refused FROM {deliveries} WHERE run_id = ?";

const looked = `SELECT d.state, d.beats, d.reader, d.refused, p.n, p.at, p.sealed
  FROM {deliveries} d LEFT JOIN {deliveryparts} p ON p.run_id = d.run_id AND p.n >=`;

const lookedFrom = `${looked} ? WHERE d.run_id = ? ORDER BY p.n LIMIT ${lookMax}`;

/** From the last part that begins at a byte or before it; the head, which has no bytes, stands in front of all of them. */
const lookedAt = `${looked} (SELECT max(q.n) FROM {deliveryparts} q WHERE q.run_id = d.run_id AND q.at <= ?)
  WHERE d.run_id = ? ORDER BY p.n LIMIT ${lookMax}`;
